//! A SQLite connection as a session: every statement runs on the calling thread.

use std::future::{self, Future};

use rusqlite::{
    Connection,
    types::{ToSql, ToSqlOutput, Value as SqliteValue, ValueRef},
};
use transcript_core::Timestamp;

use crate::{
    codec,
    error::{DbError, DbResult},
    sql::{Row, Session, Statement, Value},
};

/// Prepared statements that a connection keeps.
const STATEMENTS_MAX: usize = 128;

/// A connection to a file.
#[derive(Debug)]
pub(crate) struct SqliteSession(Connection);

impl SqliteSession {
    pub(crate) fn new(connection: Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Self(connection)
    }

    /// Runs statements without parameters, one after the other.
    pub(crate) fn batch(&self, statements: &str) -> DbResult<()> {
        Ok(self.0.execute_batch(statements)?)
    }

    /// The rows of a statement, which stays prepared.
    pub(crate) fn query(&self, statement: &str, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        read_rows(&mut *self.0.prepare_cached(statement)?, values)
    }

    /// The first row of a statement, which stays prepared.
    pub(crate) fn query_row(&self, statement: &str, values: &[Value<'_>]) -> DbResult<Option<Row>> {
        let mut statement = self.0.prepare_cached(statement)?;
        let (columns, changes_rows) = (statement.column_count(), !statement.readonly());
        bind(&mut statement, values)?;
        let mut rows = statement.raw_query();
        let first = rows.next()?.map(|row| copy_row(row, columns)).transpose()?;
        // SQLite checks foreign keys at the end of a statement.
        while changes_rows && rows.next()?.is_some() {}
        Ok(first)
    }

    /// Runs a statement, which stays prepared; returns the number of changed rows.
    pub(crate) fn change(&self, statement: &str, values: &[Value<'_>]) -> DbResult<u64> {
        let mut statement = self.0.prepare_cached(statement)?;
        bind(&mut statement, values)?;
        Ok(statement.raw_execute()? as u64)
    }

    /// The rows of a statement that runs once.
    #[cfg(feature = "postgres")]
    pub(crate) fn query_once(&self, statement: &str, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        read_rows(&mut self.0.prepare(statement)?, values)
    }

    /// Closes the connection.
    pub(crate) fn close(self) -> DbResult<()> {
        self.0.close().map_err(|(_, error)| error.into())
    }
}

impl Session for SqliteSession {
    const IS_REMOTE: bool = false;

    fn next_number(&self, _now: Timestamp) -> Option<i64> {
        None
    }

    fn rows(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Vec<Row>>> + Send {
        future::ready(self.query(statement.into().sqlite, values))
    }

    fn row(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<Option<Row>>> + Send {
        future::ready(self.query_row(statement.into().sqlite, values))
    }

    fn execute(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> impl Future<Output = DbResult<u64>> + Send {
        future::ready(self.change(statement.into().sqlite, values))
    }
}

/// Binds each value by the number in its parameter: SQLite itself numbers `$2` in the order of appearance.
fn bind(statement: &mut rusqlite::Statement<'_>, values: &[Value<'_>]) -> DbResult<()> {
    for index in 1..=statement.parameter_count() {
        let named = statement.parameter_name(index).and_then(|name| name.get(1..)?.parse().ok());
        let number: usize = named.unwrap_or(index);
        let missing = || rusqlite::Error::InvalidParameterCount(values.len(), number);
        statement.raw_bind_parameter(index, values.get(number.wrapping_sub(1)).ok_or_else(missing)?)?;
    }
    Ok(())
}

fn read_rows(statement: &mut rusqlite::Statement<'_>, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
    let columns = statement.column_count();
    bind(statement, values)?;
    let mut rows = statement.raw_query();
    let mut copied = Vec::new();
    while let Some(row) = rows.next()? {
        copied.push(copy_row(row, columns)?);
    }
    Ok(copied)
}

fn copy_row(row: &rusqlite::Row<'_>, columns: usize) -> DbResult<Row> {
    let mut values = Vec::with_capacity(columns);
    for column in 0..columns {
        values.push(match row.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Number(number),
            // Damaged text is of another type than its column, so that the rest of the row can be read.
            ValueRef::Text(text) => match str::from_utf8(text) {
                Ok(text) => Value::Text(text.to_owned().into()),
                Err(_) => Value::Bytes(text.to_owned().into()),
            },
            ValueRef::Blob(bytes) => Value::Bytes(bytes.to_owned().into()),
            // No column of these files is a floating-point number.
            ValueRef::Real(_) => return Err(DbError::Unreadable),
        });
    }
    Ok(Row::new(values))
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let list = |json: transcript_core::Result<String>| {
            let json = json.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            Ok(ToSqlOutput::Owned(SqliteValue::Text(json)))
        };
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Flag(flag) => ValueRef::Integer((*flag).into()),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Texts(texts) => return list(codec::json(texts)),
            Self::Numbers(numbers) => return list(codec::json(numbers)),
        }))
    }
}
