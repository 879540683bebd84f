//! A PostgreSQL connection as a session: every statement is a round trip.

use sqlx::{
    Decode, Encode, PgConnection, Postgres, Row as _, SqlSafeStr, Type, TypeInfo, ValueRef,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo, types::Oid},
    query::Query,
};
use transcript_core::Timestamp;

use super::{
    database::PgDatabase,
    text::{decode, text},
};
use crate::{
    error::{DbError, DbResult},
    sql::{Row, Session, Statement, Value},
};

/// A borrowed connection.
#[derive(Debug)]
pub(super) struct PgSession<'a> {
    pub(super) connection: &'a mut PgConnection,
    pub(super) database: &'a PgDatabase,
}

impl Session for PgSession<'_> {
    const IS_REMOTE: bool = true;

    fn next_number(&self, now: Timestamp) -> Option<i64> {
        Some(self.database.numbers(now.as_millis(), 1))
    }

    async fn rows(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> DbResult<Vec<Row>> {
        let rows = bind(statement.into().postgres, values).fetch_all(&mut *self.connection).await?;
        rows.iter().map(read_row).collect()
    }

    async fn row(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> DbResult<Option<Row>> {
        let row = bind(statement.into().postgres, values).fetch_optional(&mut *self.connection).await?;
        row.as_ref().map(read_row).transpose()
    }

    async fn execute(
        &mut self,
        statement: impl Into<Statement> + Send,
        values: &[Value<'_>],
    ) -> DbResult<u64> {
        let result = bind(statement.into().postgres, values).execute(&mut *self.connection).await?;
        Ok(result.rows_affected())
    }
}

/// A null of the type that its column or operator expects.
struct UntypedNull;

impl Type<Postgres> for UntypedNull {
    fn type_info() -> PgTypeInfo {
        // The protocol's number for an unspecified type.
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for UntypedNull {
    fn encode_by_ref(&self, _buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }
}

/// A statement with its values. Texts are encoded for their columns.
pub(crate) fn bind<'q>(
    statement: impl SqlSafeStr,
    values: &'q [Value<'_>],
) -> Query<'q, Postgres, PgArguments> {
    values.iter().fold(sqlx::query(statement), |query, value| match value {
        Value::Null => query.bind(UntypedNull),
        Value::Number(number) => query.bind(number),
        Value::Flag(flag) => query.bind(flag),
        Value::Text(value) => query.bind(text(value)),
        Value::Bytes(bytes) => query.bind(&**bytes),
        Value::Texts(texts) => query.bind(texts.iter().map(|value| text(value)).collect::<Vec<_>>()),
        Value::Numbers(numbers) => query.bind(numbers),
    })
}

/// The values of a row. Texts are decoded.
pub(crate) fn read_row(row: &PgRow) -> DbResult<Row> {
    Ok(Row::new((0..row.len()).map(|column| read_value(row, column)).collect::<DbResult<_>>()?))
}

fn read_value(row: &PgRow, column: usize) -> DbResult<Value<'static>> {
    let value = row.try_get_raw(column)?;
    if value.is_null() {
        return Ok(Value::Null);
    }
    let kind = value.type_info().into_owned();
    let decoded = match kind.name() {
        "INT8" => Decode::decode(value).map(Value::Number),
        // A number that a statement itself contains.
        "INT4" => i32::decode(value).map(|number| Value::Number(number.into())),
        "BOOL" => Decode::decode(value).map(Value::Flag),
        "TEXT" => String::decode(value).map(|text| Value::Text(decode(text).into())),
        "TEXT[]" => Vec::<String>::decode(value)
            .map(|texts| Value::Texts(texts.into_iter().map(|text| decode(text).into()).collect())),
        "BYTEA" => Vec::decode(value).map(|bytes| Value::Bytes(bytes.into())),
        _ => return Err(DbError::Unreadable),
    };
    decoded.map_err(|_| DbError::Unreadable)
}
