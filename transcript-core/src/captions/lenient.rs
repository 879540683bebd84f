//! Fields of a JSON body that are read where they have the expected type, and ignored where not.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::decimal::milliseconds;

/// A time in milliseconds: a number, or a number in a string. None for anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Millis(pub(super) Option<i64>);

/// A string that lies in the body where it has no escapes. None for anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

/// An object. None for anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object<T>(pub(super) Option<T>);

/// The visitor's answer to the kinds of values that are not wanted: the same stand-in for all of them.
macro_rules! otherwise {
    ($value:expr; $($kind:ident),*) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }
        $(otherwise!(@ $kind $value);)*
    };
    (@ unit $value:expr) => {
        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> { Ok($value) }
    };
    (@ bool $value:expr) => {
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> { Ok($value) }
    };
    (@ number $value:expr) => {
        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> { Ok($value) }
        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> { Ok($value) }
        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> { Ok($value) }
    };
    (@ str $value:expr) => {
        fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> { Ok($value) }
    };
    (@ list $value:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
    (@ map $value:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}
pub(super) use otherwise;

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MillisVisitor;
        impl<'de> Visitor<'de> for MillisVisitor {
            type Value = Millis;
            otherwise!(Millis(None); unit, bool, list, map);

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Millis, E> {
                Ok(Millis(Some(value)))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Millis, E> {
                Ok(Millis(Some(i64::try_from(value).unwrap_or(i64::MAX))))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Millis, E> {
                // A cast of a float saturates; what is too large for a time is dropped further on.
                Ok(Millis(Some(value.round() as i64)))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Millis, E> {
                Ok(Millis(milliseconds(value)))
            }
        }
        deserializer.deserialize_any(MillisVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for TextVisitor<'a> {
            type Value = Text<'a>;
            otherwise!(Text(None); unit, bool, number, list, map);

            fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Borrowed(value))))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Owned(value.to_owned()))))
            }

            fn visit_string<E: de::Error>(self, value: String) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Owned(value))))
            }
        }
        deserializer.deserialize_any(TextVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            otherwise!(Object(None); unit, bool, number, str, list);

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Object(Some(value)))
            }
        }
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_what_holds_a_number() {
        for (json, expect) in [
            ("5", Some(5)),
            ("-5", Some(-5)),
            ("5.5", Some(6)),
            ("1e300", Some(i64::MAX)),
            ("18446744073709551615", Some(i64::MAX)),
            ("\"70\"", Some(70)),
            ("\"x\"", None),
            ("null", None),
            ("true", None),
            ("[1,[2]]", None),
            ("{\"a\":1}", None),
        ] {
            assert_eq!(serde_json::from_str::<Millis>(json).unwrap(), Millis(expect), "{json}");
        }
    }

    #[test]
    fn strings_are_borrowed_where_they_can_be() {
        let read = |json| serde_json::from_str::<Text<'_>>(json).unwrap().0;
        assert!(matches!(read("\"plain\""), Some(Cow::Borrowed("plain"))));
        assert!(matches!(read("\"a\\nb\""), Some(Cow::Owned(text)) if text == "a\nb"));
        for json in ["1", "null", "false", "[\"a\"]", "{}", "1.5", "-1"] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
