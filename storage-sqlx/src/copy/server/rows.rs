//! Rows in statements for PostgreSQL.

use sqlx::{Postgres, QueryBuilder, Row as _, postgres::PgRow, query_builder::Separated};
use transcript_core::{Error, Result, ledger::rules::LegRow};

use super::super::{
    row::{ColumnKind, CopyColumn, CopyRow, CopyValue},
    side::column_index,
    table::{self, CopyTable},
};
use crate::{
    codec::{column, json},
    error::{DbResult, corrupt},
    postgres::{self, decode, encode},
};

/// A statement that stores rows.
pub(super) fn insert(
    table: &'static CopyTable,
    columns: &[CopyColumn],
    rows: &[CopyRow],
) -> Result<QueryBuilder<Postgres>> {
    if table.name == table::CHANGES {
        // The only row exists from the start.
        let mut set = QueryBuilder::new("UPDATE changes SET count = ");
        let count = column_index(columns, "count")?;
        set.push_bind(rows.first().and_then(|row| row.get(count)).map_or(0, CopyValue::number));
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

/// A statement that stores holds, whose legs are parallel arrays here.
fn holds(columns: &[CopyColumn], rows: &[CopyRow]) -> Result<QueryBuilder<Postgres>> {
    let legs_at = column_index(columns, "legs")?;
    let carried: Vec<(usize, &CopyColumn)> =
        columns.iter().enumerate().filter(|(index, _)| *index != legs_at).collect();
    let mut names: Vec<String> = carried.iter().map(|(_, column)| format!("\"{}\"", column.name)).collect();
    names.extend(table_lists().map(str::to_owned));
    let mut unfolded = Vec::with_capacity(rows.len());
    for row in rows {
        let legs = row.get(legs_at).map(CopyValue::text).unwrap_or_default();
        let legs: Vec<LegRow> =
            serde_json::from_str(legs).map_err(|_| corrupt("a hold of the ledger is damaged"))?;
        unfolded.push((row, ColumnArrays::from_legs(&legs)?));
    }
    let mut insert =
        QueryBuilder::new(format!("INSERT INTO {} ({}) ", table::LEDGER_HOLDS, names.join(", ")));
    insert.push_values(unfolded, |mut tuple, (row, lists)| {
        for (index, column) in &carried {
            bind(&mut tuple, column.kind, row.get(*index).unwrap_or(&CopyValue::None));
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

/// The legs of a hold as parallel arrays.
struct ColumnArrays {
    wallets: Vec<String>,
    amounts: Vec<i64>,
    spent: Vec<i64>,
    share_legs: Vec<i64>,
    share_buckets: Vec<String>,
    share_caps: Vec<i64>,
    share_amounts: Vec<i64>,
}

impl ColumnArrays {
    fn from_legs(legs: &[LegRow]) -> Result<Self> {
        let shares = || {
            (1_i64..).zip(legs).flat_map(|(index, leg)| leg.shares.iter().map(move |share| (index, share)))
        };
        Ok(Self {
            wallets: legs.iter().map(|leg| encode(&leg.wallet)).collect(),
            amounts: legs.iter().map(|leg| column(leg.amount)).collect::<Result<_>>()?,
            spent: legs.iter().map(|leg| column(leg.spent)).collect::<Result<_>>()?,
            share_legs: shares().map(|(index, _)| index).collect(),
            share_buckets: shares().map(|(_, share)| encode(&share.bucket)).collect(),
            share_caps: shares().map(|(_, share)| column(share.cap)).collect::<Result<_>>()?,
            share_amounts: shares().map(|(_, share)| column(share.amount)).collect::<Result<_>>()?,
        })
    }
}

fn bind(tuple: &mut Separated<'_, Postgres, &'static str>, kind: ColumnKind, value: &CopyValue) {
    match (kind, value) {
        (ColumnKind::Number, CopyValue::Number(number)) => tuple.push_bind(*number),
        (ColumnKind::Number, _) => tuple.push_bind(None::<i64>),
        (ColumnKind::Flag, CopyValue::Number(number)) => tuple.push_bind(*number != 0),
        (ColumnKind::Flag, _) => tuple.push_bind(None::<bool>),
        (ColumnKind::Text, CopyValue::Text(text)) => tuple.push_bind(encode(text)),
        (ColumnKind::Text, _) => tuple.push_bind(None::<String>),
        (ColumnKind::Bytes, CopyValue::Bytes(bytes)) => tuple.push_bind(bytes.clone()),
        (ColumnKind::Bytes, _) => tuple.push_bind(None::<Vec<u8>>),
    };
}

pub(super) fn bind_key(query: &mut QueryBuilder<Postgres>, value: &CopyValue) {
    match value {
        CopyValue::None => query.push_bind(None::<i64>),
        CopyValue::Number(number) => query.push_bind(*number),
        CopyValue::Text(text) => query.push_bind(encode(text)),
        CopyValue::Bytes(bytes) => query.push_bind(bytes.clone()),
    };
}

/// Column names for a statement in which the table has the alias `h`.
pub(super) fn names(table: &CopyTable, columns: &[CopyColumn]) -> String {
    match table.name {
        table::LEDGER_HOLDS => postgres::HOLD_COLUMNS.to_owned(),
        _ => columns.iter().map(|column| format!("h.\"{}\"", column.name)).collect::<Vec<_>>().join(", "),
    }
}

/// Decodes the columns of a row.
pub(super) fn read(table: &CopyTable, row: &PgRow, columns: &[CopyColumn]) -> DbResult<CopyRow> {
    if table.name == table::LEDGER_HOLDS {
        let hold = postgres::hold(row)?;
        let value = |column: &CopyColumn| {
            Ok(match column.name.as_str() {
                "id" => CopyValue::Text(hold.id.clone()),
                "state" => CopyValue::Text(hold.state.name().to_owned()),
                "expires_at" => CopyValue::Number(hold.expires_at),
                "memo" => CopyValue::Text(hold.memo.clone()),
                "legs" => CopyValue::Text(json(&hold.legs)?),
                other => return Err(Error::unexpected(format!("a hold has no column {other}")).into()),
            })
        };
        return columns.iter().map(value).collect();
    }
    let value = |(index, column): (usize, &CopyColumn)| -> DbResult<CopyValue> {
        Ok(match column.kind {
            ColumnKind::Number => row.try_get::<Option<i64>, _>(index)?.map(CopyValue::Number),
            ColumnKind::Flag => {
                row.try_get::<Option<bool>, _>(index)?.map(|flag| CopyValue::Number(flag.into()))
            }
            ColumnKind::Text => {
                row.try_get::<Option<String>, _>(index)?.map(|text| CopyValue::Text(decode(text)))
            }
            ColumnKind::Bytes => row.try_get::<Option<Vec<u8>>, _>(index)?.map(CopyValue::Bytes),
        }
        .unwrap_or(CopyValue::None))
    };
    columns.iter().enumerate().map(value).collect()
}
