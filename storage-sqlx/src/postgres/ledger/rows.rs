//! The ledger's rows in PostgreSQL.

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::ledger::{
    Pool, PoolBalance,
    rules::{HoldRow, HoldRowState, LegRow, PoolRow, ShareRow, TransferKind, TransferRow},
};

use crate::{
    codec::number,
    error::{DbResult, corrupt},
    postgres::text::{decode, encode, read},
};

/// The columns of [`pool`].
macro_rules! pool_columns {
    () => {
        "p.wallet, p.bucket, p.cap, p.spent, p.held, p.granted"
    };
}

/// The columns of [`hold`], from a table with the alias `h`.
macro_rules! hold_columns {
    () => {
        "h.id, h.state, h.expires_at, h.memo, h.wallets, h.amounts, h.spent, h.share_legs, h.share_buckets,
            h.share_caps, h.share_amounts"
    };
}

/// The columns of a hold, from a table with the alias `h`.
#[cfg(feature = "sqlite")]
pub(crate) const HOLD_COLUMNS: &str = hold_columns!();

/// The hold with this id, and overdue holds.
///
/// Those are all overdue holds of these wallets, and at most `$4` of any wallet, the longest overdue first.
const HOLDS: &str = concat!(
    "SELECT ",
    hold_columns!(),
    " FROM ledger_holds h WHERE h.id IN (
        SELECT $1::TEXT
        UNION ALL SELECT o.hold FROM ledger_open o WHERE o.wallet = ANY ($2) AND o.expires_at <= $3
        UNION ALL SELECT id FROM (
            SELECT id FROM ledger_holds WHERE state = 'open' AND expires_at <= $3
            ORDER BY expires_at, id LIMIT $4
        ) overdue
    )"
);
const POOLS: &str = concat!(
    "SELECT ",
    pool_columns!(),
    " FROM unnest($1::TEXT[], $2::TEXT[]) w (wallet, bucket)
    JOIN ledger_pools p ON p.wallet = w.wallet AND p.bucket = w.bucket"
);
const TRANSFERS: &str = "SELECT id, kind, wallet, of_grant, amount, taken, shortfall FROM ledger_transfers
    WHERE id = ANY ($1)";

/// Loads a hold, with the overdue holds of these wallets or of any.
pub(super) async fn holds(
    db: &mut PgConnection,
    id: Option<&str>,
    wallets: &[&str],
    now: i64,
    limit: u32,
) -> DbResult<Vec<HoldRow>> {
    let wallets: Vec<String> = wallets.iter().map(|wallet| encode(wallet)).collect();
    let query = sqlx::query(HOLDS).bind(id.map(encode)).bind(wallets).bind(now).bind(i64::from(limit));
    query.fetch_all(db).await?.iter().map(hold).collect()
}

/// Loads the pools of these wallets and buckets.
pub(super) async fn pools(db: &mut PgConnection, wanted: &[(&str, &str)]) -> DbResult<Vec<PoolRow>> {
    let (wallets, buckets): (Vec<String>, Vec<String>) =
        wanted.iter().map(|(wallet, bucket)| (encode(wallet), encode(bucket))).unzip();
    let rows = sqlx::query(POOLS).bind(wallets).bind(buckets).fetch_all(db).await?;
    rows.iter().map(|row| pool(row, 0)).collect()
}

/// Loads the transfers with these ids.
pub(super) async fn transfers(db: &mut PgConnection, ids: &[&str]) -> DbResult<Vec<TransferRow>> {
    let ids: Vec<String> = ids.iter().map(|id| encode(id)).collect();
    sqlx::query(TRANSFERS).bind(ids).fetch_all(db).await?.iter().map(transfer).collect()
}

/// Decodes the pool in a row, from this column on.
pub(super) fn pool(row: &PgRow, first: usize) -> DbResult<PoolRow> {
    Ok(PoolRow {
        wallet: read(row, first)?,
        bucket: read(row, first + 1)?,
        cap: number(row.try_get(first + 2)?)?,
        spent: number(row.try_get(first + 3)?)?,
        held: number(row.try_get(first + 4)?)?,
        granted: number(row.try_get(first + 5)?)?,
        touched: false,
    })
}

/// Decodes a pool's balance from its three numbers in a row, from this column on.
pub(super) fn balance(row: &PgRow, first: usize, pool: Pool) -> DbResult<PoolBalance> {
    Ok(PoolBalance {
        pool,
        spent: number(row.try_get(first)?)?,
        held: number(row.try_get(first + 1)?)?,
        granted: number(row.try_get(first + 2)?)?,
    })
}

/// Decodes the hold in a row of [`HOLD_COLUMNS`].
pub(crate) fn hold(row: &PgRow) -> DbResult<HoldRow> {
    let unknown = || corrupt("a ledger hold has an unknown state");
    let wallets: Vec<String> = row.try_get(4)?;
    let (amounts, spent) = (numbers(row, 5)?, numbers(row, 6)?);
    let mut legs: Vec<LegRow> = wallets
        .into_iter()
        .zip(amounts.into_iter().zip(spent))
        .map(|(wallet, (amount, spent))| LegRow { wallet: decode(wallet), amount, spent, shares: Vec::new() })
        .collect();
    let buckets: Vec<String> = row.try_get(8)?;
    let (caps, amounts) = (numbers(row, 9)?, numbers(row, 10)?);
    let shares = buckets.into_iter().zip(caps.into_iter().zip(amounts));
    for (leg, (bucket, (cap, amount))) in numbers(row, 7)?.into_iter().zip(shares) {
        let index = usize::try_from(leg).ok().and_then(|leg| leg.checked_sub(1));
        let leg = index.and_then(|index| legs.get_mut(index));
        let leg = leg.ok_or_else(|| corrupt("a ledger hold has a share without a leg"))?;
        leg.shares.push(ShareRow { bucket: decode(bucket), cap, amount });
    }
    Ok(HoldRow {
        id: read(row, 0)?,
        state: HoldRowState::from_name(row.try_get(1)?).ok_or_else(unknown)?,
        expires_at: row.try_get(2)?,
        memo: read(row, 3)?,
        legs,
        touched: false,
    })
}

fn transfer(row: &PgRow) -> DbResult<TransferRow> {
    let kind = match row.try_get::<&str, _>(1)? {
        "grant" => TransferKind::Grant,
        _ => TransferKind::Revocation,
    };
    Ok(TransferRow {
        id: read(row, 0)?,
        kind,
        wallet: read(row, 2)?,
        of_grant: read(row, 3)?,
        amount: number(row.try_get(4)?)?,
        taken: number(row.try_get(5)?)?,
        shortfall: number(row.try_get(6)?)?,
        touched: false,
    })
}

/// Decodes an array column without negative numbers.
pub(super) fn numbers(row: &PgRow, column: usize) -> DbResult<Vec<u64>> {
    let list: Vec<i64> = row.try_get(column)?;
    Ok(list.into_iter().map(number).collect::<transcript_core::Result<_>>()?)
}
