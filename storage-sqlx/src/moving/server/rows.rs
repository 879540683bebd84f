//! Rows in the statements of a PostgreSQL database.

use sqlx::{Postgres, QueryBuilder, Row as _, postgres::PgRow, query_builder::Separated};
use transcript_core::{Error, Result};

use super::super::{
    row::{Column, Kind, Row, Value},
    side::place,
    table::{self, Table},
};
use crate::{
    books::LegRow,
    codec::{column, json},
    error::{Work, corrupt},
    postgres::{self, own, plain},
};

/// A statement that stores rows.
pub(super) fn insert(
    table: &'static Table,
    columns: &[Column],
    rows: &[Row],
) -> Result<QueryBuilder<Postgres>> {
    if table.name == table::CHANGES {
        // The one row is there from the beginning.
        let mut set = QueryBuilder::new("UPDATE changes SET count = ");
        let count = place(columns, "count")?;
        set.push_bind(rows.first().and_then(|row| row.get(count)).map_or(0, Value::number));
        return Ok(set);
    }
    if table.name == table::LEDGER_HOLDS {
        return holds(columns, rows);
    }
    let more: &[(&str, i64)] = match table.name {
        table::LIMITS => &[("version", 1)],
        table::LEDGER_POOLS => &[("version", 1), ("last_entry", 0)],
        _ => &[],
    };
    let mut names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    names.extend(more.iter().map(|(name, _)| format!("\"{name}\"")));
    let mut insert = QueryBuilder::new(format!("INSERT INTO {} ({}) ", table.name, names.join(", ")));
    insert.push_values(rows, |mut tuple, row| {
        for (column, value) in columns.iter().zip(row) {
            bind(&mut tuple, column.kind, value);
        }
        for (_, value) in more {
            tuple.push_bind(*value);
        }
    });
    Ok(insert)
}

/// A statement that stores holds, whose legs are lists side by side here.
fn holds(columns: &[Column], rows: &[Row]) -> Result<QueryBuilder<Postgres>> {
    let legs_at = place(columns, "legs")?;
    let carried: Vec<(usize, &Column)> =
        columns.iter().enumerate().filter(|(place, _)| *place != legs_at).collect();
    let mut names: Vec<String> = carried.iter().map(|(_, column)| format!("\"{}\"", column.name)).collect();
    names.extend(table_lists().map(str::to_owned));
    let mut unfolded = Vec::with_capacity(rows.len());
    for row in rows {
        let legs = row.get(legs_at).map(Value::text).unwrap_or_default();
        let legs: Vec<LegRow> =
            serde_json::from_str(legs).map_err(|_| corrupt("a hold of the ledger is damaged"))?;
        unfolded.push((row, Lists::of(&legs)?));
    }
    let mut insert =
        QueryBuilder::new(format!("INSERT INTO {} ({}) ", table::LEDGER_HOLDS, names.join(", ")));
    insert.push_values(unfolded, |mut tuple, (row, lists)| {
        for (place, column) in &carried {
            bind(&mut tuple, column.kind, row.get(*place).unwrap_or(&Value::None));
        }
        tuple.push_bind(lists.wallets).push_bind(lists.amounts).push_bind(lists.spent);
        tuple.push_bind(lists.share_legs).push_bind(lists.share_buckets);
        tuple.push_bind(lists.share_caps).push_bind(lists.share_amounts);
    });
    Ok(insert)
}

fn table_lists() -> impl Iterator<Item = &'static str> {
    let holds = table::MAIN.tables.iter().find(|table| table.name == table::LEDGER_HOLDS);
    holds.into_iter().flat_map(|holds| holds.only_server.iter().copied())
}

/// The legs of a hold as columns have them.
struct Lists {
    wallets: Vec<String>,
    amounts: Vec<i64>,
    spent: Vec<i64>,
    share_legs: Vec<i64>,
    share_buckets: Vec<String>,
    share_caps: Vec<i64>,
    share_amounts: Vec<i64>,
}

impl Lists {
    fn of(legs: &[LegRow]) -> Result<Self> {
        let shares = || {
            (1_i64..).zip(legs).flat_map(|(place, leg)| leg.shares.iter().map(move |share| (place, share)))
        };
        Ok(Self {
            wallets: legs.iter().map(|leg| own(&leg.wallet)).collect(),
            amounts: legs.iter().map(|leg| column(leg.amount)).collect::<Result<_>>()?,
            spent: legs.iter().map(|leg| column(leg.spent)).collect::<Result<_>>()?,
            share_legs: shares().map(|(place, _)| place).collect(),
            share_buckets: shares().map(|(_, share)| own(&share.bucket)).collect(),
            share_caps: shares().map(|(_, share)| column(share.cap)).collect::<Result<_>>()?,
            share_amounts: shares().map(|(_, share)| column(share.amount)).collect::<Result<_>>()?,
        })
    }
}

fn bind(tuple: &mut Separated<'_, Postgres, &'static str>, kind: Kind, value: &Value) {
    match (kind, value) {
        (Kind::Number, Value::Number(number)) => tuple.push_bind(*number),
        (Kind::Number, _) => tuple.push_bind(None::<i64>),
        (Kind::Flag, Value::Number(number)) => tuple.push_bind(*number != 0),
        (Kind::Flag, _) => tuple.push_bind(None::<bool>),
        (Kind::Text, Value::Text(text)) => tuple.push_bind(own(text)),
        (Kind::Text, _) => tuple.push_bind(None::<String>),
        (Kind::Bytes, Value::Bytes(bytes)) => tuple.push_bind(bytes.clone()),
        (Kind::Bytes, _) => tuple.push_bind(None::<Vec<u8>>),
    };
}

pub(super) fn bind_key(ask: &mut QueryBuilder<Postgres>, value: &Value) {
    match value {
        Value::None => ask.push_bind(None::<i64>),
        Value::Number(number) => ask.push_bind(*number),
        Value::Text(text) => ask.push_bind(own(text)),
        Value::Bytes(bytes) => ask.push_bind(bytes.clone()),
    };
}

/// The names of columns in a statement.
pub(super) fn names(table: &Table, columns: &[Column]) -> String {
    match table.name {
        table::LEDGER_HOLDS => postgres::HOLD_COLUMNS.to_owned(),
        _ => columns.iter().map(|column| format!("h.\"{}\"", column.name)).collect::<Vec<_>>().join(", "),
    }
}

/// The columns of a row.
pub(super) fn read(table: &Table, row: &PgRow, columns: &[Column]) -> Work<Row> {
    if table.name == table::LEDGER_HOLDS {
        let hold = postgres::hold(row)?;
        let value = |column: &Column| {
            Ok(match column.name.as_str() {
                "id" => Value::Text(hold.id.clone()),
                "state" => Value::Text(hold.state.name().to_owned()),
                "expires_at" => Value::Number(hold.expires_at),
                "memo" => Value::Text(hold.memo.clone()),
                "legs" => Value::Text(json(&hold.legs)?),
                other => return Err(Error::unexpected(format!("a hold has no {other}")).into()),
            })
        };
        return columns.iter().map(value).collect();
    }
    let value = |(place, column): (usize, &Column)| -> Work<Value> {
        Ok(match column.kind {
            Kind::Number => row.try_get::<Option<i64>, _>(place)?.map(Value::Number),
            Kind::Flag => row.try_get::<Option<bool>, _>(place)?.map(|flag| Value::Number(flag.into())),
            Kind::Text => row.try_get::<Option<String>, _>(place)?.map(|text| Value::Text(plain(text))),
            Kind::Bytes => row.try_get::<Option<Vec<u8>>, _>(place)?.map(Value::Bytes),
        }
        .unwrap_or(Value::None))
    };
    columns.iter().enumerate().map(value).collect()
}
