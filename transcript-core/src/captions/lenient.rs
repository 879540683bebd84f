//! JSON fields that are read if they have the expected type, and ignored otherwise.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{CaptionError, SEGMENTS_MAX, decimal::milliseconds};

/// Time in milliseconds: a number, or a number in a string. `None` for anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LenientMillis(pub(super) Option<i64>);

/// String, borrowed from the body if it has no escapes. `None` for anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LenientText<'a>(pub(super) Option<Cow<'a, str>>);

/// Object. `None` for anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LenientObject<T>(pub(super) Option<T>);

/// Visitor methods for values of unexpected types: all return the same substitute.
macro_rules! accept_other_types {
    ($value:expr; $($kind:ident),*) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }
        $(accept_other_types!(@ $kind $value);)*
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
pub(super) use accept_other_types;

impl<'de> Deserialize<'de> for LenientMillis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LenientMillisVisitor;
        impl<'de> Visitor<'de> for LenientMillisVisitor {
            type Value = LenientMillis;
            accept_other_types!(LenientMillis(None); unit, bool, list, map);

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<LenientMillis, E> {
                Ok(LenientMillis(Some(value)))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<LenientMillis, E> {
                Ok(LenientMillis(Some(i64::try_from(value).unwrap_or(i64::MAX))))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<LenientMillis, E> {
                // A cast of a float saturates; a value that is too large for a time is dropped later.
                Ok(LenientMillis(Some(value.round() as i64)))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<LenientMillis, E> {
                Ok(LenientMillis(milliseconds(value)))
            }
        }
        deserializer.deserialize_any(LenientMillisVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LenientTextVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for LenientTextVisitor<'a> {
            type Value = LenientText<'a>;
            accept_other_types!(LenientText(None); unit, bool, number, list, map);

            fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<LenientText<'a>, E> {
                Ok(LenientText(Some(Cow::Borrowed(value))))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<LenientText<'a>, E> {
                Ok(LenientText(Some(Cow::Owned(value.to_owned()))))
            }

            fn visit_string<E: de::Error>(self, value: String) -> Result<LenientText<'a>, E> {
                Ok(LenientText(Some(Cow::Owned(value))))
            }
        }
        deserializer.deserialize_any(LenientTextVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LenientObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LenientObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for LenientObjectVisitor<T> {
            type Value = LenientObject<T>;
            accept_other_types!(LenientObject(None); unit, bool, number, str, list);

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LenientObject<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| LenientObject(Some(value)))
            }
        }
        deserializer.deserialize_any(LenientObjectVisitor(PhantomData))
    }
}

/// Item of a list in a body of captions.
pub(super) trait TextItem {
    /// Whether it has no text.
    fn is_blank(&self) -> bool;
}

/// Items of a list. Anything but a list has none, and counts as an unreadable item.
pub(super) struct LenientList<T> {
    /// Items with text, at most one more than [`SEGMENTS_MAX`].
    pub(super) items: Vec<T>,
    /// Number of items that are not objects: they may have text. A null has none.
    pub(super) unreadable: u64,
}

impl<'de, T: Deserialize<'de> + TextItem> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LenientListVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de> + TextItem> Visitor<'de> for LenientListVisitor<T> {
            type Value = LenientList<T>;

            accept_other_types!(LenientList { items: Vec::new(), unreadable: 1 }; unit, bool, number, str, map);

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LenientList<T>, A::Error> {
                let (mut items, mut unreadable) = (Vec::new(), 0);
                while let Some(item) = list.next_element::<Option<LenientObject<T>>>()? {
                    let Some(LenientObject(item)) = item else { continue };
                    unreadable += u64::from(item.is_none());
                    items.extend(item.filter(|item| items.len() <= SEGMENTS_MAX && !item.is_blank()));
                }
                Ok(LenientList { items, unreadable })
            }
        }

        deserializer.deserialize_any(LenientListVisitor(PhantomData))
    }
}

/// Parses the object of a body; `None` if it is other JSON.
///
/// # Errors
/// [`super::CaptionErrorKind::Malformed`] if the body is no JSON.
pub(super) fn parse_object<'a, T: Deserialize<'a>>(body: &'a str) -> Result<Option<T>, CaptionError> {
    let object: LenientObject<T> = serde_json::from_str(body).map_err(|error| {
        let what = if error.is_eof() { "are truncated" } else { "are not well-formed JSON" };
        CaptionError::malformed(format!("The captions {what}. Fetch them again."))
    })?;
    Ok(object.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lenient_millis_reads_numbers_and_numeric_strings() {
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
            assert_eq!(serde_json::from_str::<LenientMillis>(json).unwrap(), LenientMillis(expect), "{json}");
        }
    }

    #[test]
    fn lenient_text_without_escapes_is_borrowed() {
        let read = |json| serde_json::from_str::<LenientText<'_>>(json).unwrap().0;
        assert!(matches!(read("\"plain\""), Some(Cow::Borrowed("plain"))));
        assert!(matches!(read("\"a\\nb\""), Some(Cow::Owned(text)) if text == "a\nb"));
        for json in ["1", "null", "false", "[\"a\"]", "{}", "1.5", "-1"] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
