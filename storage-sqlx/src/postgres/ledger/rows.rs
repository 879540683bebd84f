//! The ledger's rows in PostgreSQL.

use sqlx::{Row, postgres::PgRow};
use transcript_core::ledger::{
    Pool, PoolBalance,
    rules::{HoldRow, HoldRowState, LegRow, PoolRow, ShareRow},
};

use crate::{
    codec::number,
    error::{DbResult, corrupt},
    postgres::text::{decode, read},
};

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

/// Decodes an array column without negative numbers.
pub(super) fn numbers(row: &PgRow, column: usize) -> DbResult<Vec<u64>> {
    let list: Vec<i64> = row.try_get(column)?;
    Ok(list.into_iter().map(number).collect::<transcript_core::Result<_>>()?)
}
