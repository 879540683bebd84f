//! Rows that were read, without their connection.

use std::borrow::Cow;

use super::Value;
use crate::error::{DbError, DbResult};

/// The values of a row. A value of an unexpected type is an error.
#[derive(Debug)]
pub(crate) struct Row(Vec<Value<'static>>);

/// Conversion from an owned value.
pub(crate) trait FromValue: Sized {
    /// The converted value. `None` for a value of another type.
    fn from_value(value: Value<'static>) -> Option<Self>;
}

/// Conversion from a value that stays in its row.
pub(crate) trait FromValueRef<'a>: Sized {
    /// The converted value. `None` for a value of another type.
    fn from_value_ref(value: &'a Value<'static>) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: Value<'static>) -> Option<Self> {
        if let Value::Number(number) = value { Some(number) } else { None }
    }
}

macro_rules! from_other_number {
    ($($number:ty),*) => {
        $(impl FromValue for $number {
            fn from_value(value: Value<'static>) -> Option<Self> {
                i64::from_value(value)?.try_into().ok()
            }
        })*
    };
}
from_other_number!(u16, u32, u64);

impl FromValue for bool {
    fn from_value(value: Value<'static>) -> Option<Self> {
        if let Value::Flag(flag) = value {
            Some(flag)
        } else {
            i64::from_value(value).map(|number| number != 0)
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value<'static>) -> Option<Self> {
        if let Value::Text(text) = value { Some(text.into_owned()) } else { None }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value<'static>) -> Option<Self> {
        if let Value::Bytes(bytes) = value { Some(bytes.into_owned()) } else { None }
    }
}

impl FromValue for Vec<String> {
    fn from_value(value: Value<'static>) -> Option<Self> {
        match value {
            Value::Texts(texts) => Some(texts.into_iter().map(Cow::into_owned).collect()),
            Value::Text(json) => serde_json::from_str(&json).ok(),
            _ => None,
        }
    }
}

impl FromValue for Value<'static> {
    fn from_value(value: Value<'static>) -> Option<Self> {
        Some(value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value<'static>) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

impl<'a> FromValueRef<'a> for &'a str {
    fn from_value_ref(value: &'a Value<'static>) -> Option<Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

impl<'a> FromValueRef<'a> for &'a [u8] {
    fn from_value_ref(value: &'a Value<'static>) -> Option<Self> {
        if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
    }
}

impl<'a> FromValueRef<'a> for i64 {
    fn from_value_ref(value: &'a Value<'static>) -> Option<Self> {
        if let Value::Number(number) = value { Some(*number) } else { None }
    }
}

impl<'a, T: FromValueRef<'a>> FromValueRef<'a> for Option<T> {
    fn from_value_ref(value: &'a Value<'static>) -> Option<Self> {
        if *value == Value::Null { Some(None) } else { T::from_value_ref(value).map(Some) }
    }
}

impl Row {
    pub(crate) fn new(values: Vec<Value<'static>>) -> Self {
        Self(values)
    }

    #[cfg(all(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn into_values(self) -> Vec<Value<'static>> {
        self.0
    }

    /// Takes the value of a column. A taken or missing value is null.
    pub(crate) fn take<T: FromValue>(&mut self, column: usize) -> DbResult<T> {
        let value = self.0.get_mut(column).map_or(Value::Null, |value| std::mem::replace(value, Value::Null));
        T::from_value(value).ok_or(DbError::Unreadable)
    }

    /// Borrows the value of a column. A taken or missing value is null.
    pub(crate) fn get<'a, T: FromValueRef<'a>>(&'a self, column: usize) -> DbResult<T> {
        T::from_value_ref(self.0.get(column).unwrap_or(&Value::Null)).ok_or(DbError::Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let number = i64::from(u16::MAX) + 1;
        Row::new(vec![number.into(), "one".into(), Value::Bytes(vec![1].into()), Value::Null])
    }

    #[test]
    fn row_value_is_taken_once() {
        let mut row = Row::new(vec![
            Value::Number(7),
            Value::Text("one".into()),
            Value::Bytes(vec![1].into()),
            Value::Null,
        ]);
        assert_eq!(row.get::<&str>(1).unwrap(), "one");
        assert_eq!(row.get::<Option<i64>>(0).unwrap(), Some(7));
        assert_eq!(row.take::<u16>(0).unwrap(), 7);
        assert_eq!(row.take::<String>(1).unwrap(), "one");
        assert_eq!(row.get::<&[u8]>(2).unwrap(), [1]);
        assert_eq!(row.take::<Vec<u8>>(2).unwrap(), [1]);
        assert_eq!(row.take::<Option<i64>>(3).unwrap(), None);
        assert_eq!(row.take::<Option<String>>(1).unwrap(), None);
        assert_eq!(row.take::<Option<i64>>(9).unwrap(), None);
    }

    #[test]
    fn row_value_of_other_type_is_error() {
        for column in [0, 2, 3, 9] {
            row().take::<String>(column).unwrap_err();
            row().get::<&str>(column).unwrap_err();
        }
        row().take::<i64>(1).unwrap_err();
        row().take::<u16>(0).unwrap_err();
        assert_eq!(row().take::<u32>(0).unwrap(), 65_536);
    }
}
