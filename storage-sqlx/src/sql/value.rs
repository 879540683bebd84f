//! Values of statement parameters and columns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A value of a statement parameter or of a column.
///
/// A parameter borrows its text and bytes where it can; a column owns them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Value<'a> {
    /// Its name in the stored position of a copy stays.
    #[serde(rename = "None")]
    Null,
    Number(i64),
    /// A boolean. SQLite stores it as a number.
    Flag(bool),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// A list of texts. On SQLite it is a JSON array.
    Texts(Vec<Cow<'a, str>>),
    /// A list of numbers, only as a parameter. SQLite receives it as a JSON array.
    Numbers(Vec<i64>),
}

impl Value<'_> {
    /// The value with its own text and bytes, for another thread.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Number(number) => Value::Number(number),
            Self::Flag(flag) => Value::Flag(flag),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Texts(texts) => {
                Value::Texts(texts.into_iter().map(|text| Cow::Owned(text.into_owned())).collect())
            }
            Self::Numbers(numbers) => Value::Numbers(numbers),
        }
    }
}

impl Value<'static> {
    /// The values with their own texts and bytes.
    pub(crate) fn to_owned_list(values: &[Value<'_>]) -> Vec<Self> {
        values.iter().cloned().map(Value::into_owned).collect()
    }
}

/// An array of parameter values, each converted with [`Value::from`].
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// Implements `From` of these types by a conversion.
macro_rules! from {
    ($($from:ty => $convert:expr;)*) => {$(
        impl<'a> From<$from> for Value<'a> {
            fn from(value: $from) -> Self {
                let convert: fn($from) -> Self = $convert;
                convert(value)
            }
        }
    )*};
}

from! {
    i64 => Self::Number;
    u16 => |number| Self::Number(number.into());
    u32 => |number| Self::Number(number.into());
    bool => Self::Flag;
    String => |text| Self::Text(text.into());
    &'a str => |text| Self::Text(text.into());
    &'a String => |text| Self::Text(text.into());
    &'a [u8] => |bytes| Self::Bytes(bytes.into());
    &'a Vec<u8> => |bytes| Self::Bytes(bytes.into());
    Vec<i64> => Self::Numbers;
}

impl<'a> From<Vec<&'a str>> for Value<'a> {
    fn from(texts: Vec<&'a str>) -> Self {
        Self::Texts(texts.into_iter().map(Cow::Borrowed).collect())
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_conversion_selects_matching_variant() {
        let text = "text".to_owned();
        let bytes = vec![1, 2];
        let converted = values![None::<i64>, Some(7_i64), true, &text, &bytes, vec!["a", "b"], vec![1, 2]];
        let expected = [
            Value::Null,
            Value::Number(7),
            Value::Flag(true),
            Value::Text("text".into()),
            Value::Bytes(vec![1, 2].into()),
            Value::Texts(vec!["a".into(), "b".into()]),
            Value::Numbers(vec![1, 2]),
        ];
        assert_eq!(converted, expected);
        assert_eq!(converted.map(Value::into_owned), expected);
    }
}
