//! A row that was read, without its connection.

use rusqlite::types::{FromSqlError, Type, Value};
use sqlx::{Row as _, TypeInfo as _, ValueRef as _, sqlite::SqliteRow};

use crate::error::DbResult;

/// The values of a row. Each can be taken once; a value of another type is an error.
#[derive(Debug)]
pub(crate) struct PointRow(Vec<Value>);

/// Conversion from a SQLite value.
pub(crate) trait FromValue: Sized {
    fn from_value(value: Value) -> Result<Self, Value>;
}

impl FromValue for i64 {
    fn from_value(value: Value) -> Result<Self, Value> {
        if let Value::Integer(number) = value { Ok(number) } else { Err(value) }
    }
}

impl FromValue for String {
    fn from_value(value: Value) -> Result<Self, Value> {
        if let Value::Text(text) = value { Ok(text) } else { Err(value) }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value) -> Result<Self, Value> {
        if let Value::Blob(bytes) = value { Ok(bytes) } else { Err(value) }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, Value> {
        if let Value::Null = value { Ok(None) } else { T::from_value(value).map(Some) }
    }
}

impl PointRow {
    /// Copies a row with this many columns.
    pub(super) fn copy_from(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Self> {
        let value = |column| {
            // Text that is not UTF-8 is the only value that fails.
            Value::try_from(row.get_ref(column)?).map_err(|_| conversion_error(column, Type::Text))
        };
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(value(column)?);
        }
        Ok(Self(values))
    }

    /// Copies a row that sqlx has read.
    pub(crate) fn from_sqlx(row: &SqliteRow) -> DbResult<Self> {
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
        (0..row.len()).map(value).collect::<DbResult<_>>().map(Self)
    }

    /// Takes the value of a column. A taken or missing value is null.
    pub(crate) fn take<T: FromValue>(&mut self, column: usize) -> DbResult<T> {
        let value = self.0.get_mut(column).map_or(Value::Null, |value| std::mem::replace(value, Value::Null));
        T::from_value(value).map_err(|value| conversion_error(column, value.data_type()).into())
    }
}

fn conversion_error(column: usize, actual: Type) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, actual, Box::new(FromSqlError::InvalidType))
}
