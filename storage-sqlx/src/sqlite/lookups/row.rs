//! A row that was read, without its connection.

use rusqlite::types::{FromSqlError, Type, Value};
use sqlx::{Row as _, TypeInfo as _, ValueRef as _, sqlite::SqliteRow};

use crate::error::Work;

/// The values of a row. Each can be taken out once; what is asked for in another type cannot be read back.
#[derive(Debug)]
pub(crate) struct Row(Vec<Value>);

/// What a type of ours is made of.
pub(crate) trait OfValue: Sized {
    fn of(value: Value) -> Result<Self, Value>;
}

impl OfValue for i64 {
    fn of(value: Value) -> Result<Self, Value> {
        if let Value::Integer(number) = value { Ok(number) } else { Err(value) }
    }
}

impl OfValue for String {
    fn of(value: Value) -> Result<Self, Value> {
        if let Value::Text(text) = value { Ok(text) } else { Err(value) }
    }
}

impl OfValue for Vec<u8> {
    fn of(value: Value) -> Result<Self, Value> {
        if let Value::Blob(bytes) = value { Ok(bytes) } else { Err(value) }
    }
}

impl<T: OfValue> OfValue for Option<T> {
    fn of(value: Value) -> Result<Self, Value> {
        if let Value::Null = value { Ok(None) } else { T::of(value).map(Some) }
    }
}

impl Row {
    /// Copies a row of this many columns.
    pub(super) fn of(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Self> {
        let value = |column| {
            // Text that is no text is the one value that fails.
            Value::try_from(row.get_ref(column)?).map_err(|_| unreadable(column, Type::Text))
        };
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(value(column)?);
        }
        Ok(Self(values))
    }

    /// The same of a row that sqlx has read.
    pub(crate) fn of_sqlx(row: &SqliteRow) -> Work<Self> {
        let value = |column| {
            let raw = row.try_get_raw(column)?;
            Ok(match raw.type_info().name() {
                _ if raw.is_null() => Value::Null,
                "INTEGER" => Value::Integer(row.try_get(column)?),
                "TEXT" => Value::Text(row.try_get(column)?),
                "REAL" => Value::Real(row.try_get(column)?),
                _ => Value::Blob(row.try_get(column)?),
            })
        };
        (0..row.len()).map(value).collect::<Work<_>>().map(Self)
    }

    /// Takes the value of a column; what was taken, or is not there, is null.
    pub(crate) fn take<T: OfValue>(&mut self, column: usize) -> Work<T> {
        let value = self.0.get_mut(column).map_or(Value::Null, |value| std::mem::replace(value, Value::Null));
        T::of(value).map_err(|value| unreadable(column, value.data_type()).into())
    }
}

fn unreadable(column: usize, is: Type) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, is, Box::new(FromSqlError::InvalidType))
}
