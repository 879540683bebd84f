//! The general form of ledger operations: load, compute, store.
//!
//! The needed rows are loaded, the operation runs with the arithmetic shared by all databases ([`LedgerRows`]), and its
//! changes are stored, in one serializable transaction. Operations of every request are single statements instead
//! ([`super::allowance`], [`super::hold`], [`super::settle`]), and use this form only in unusual cases: an existing id,
//! a wallet with overdue holds.

use sqlx::PgConnection;
use transcript_core::ledger::rules::{
    EntryRow, HoldRow, HoldRowState, LedgerRows, LedgerStep, LegRow, PoolRow, RowKeys, ShareRow, TransferRow,
    kind_name,
};

use super::rows;
use crate::{
    codec::column,
    error::DbResult,
    postgres::{
        database::{PgDatabase, WriteTx},
        text::encode,
    },
};

/// Entries are stored before the pools, which then record the newest number.
///
/// Those of a wallet are numbered after its existing entries.
const ADD_ENTRIES: &str = "INSERT INTO ledger_entries
        (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
    SELECT e.wallet,
        greatest($1, coalesce((SELECT max(p.last_entry) + 1 FROM ledger_pools p WHERE p.wallet = e.wallet), 0))
            + e.place,
        e.at, e.bucket, e.cap, e.kind, e.amount, e.shortfall, e.cause, e.memo
    FROM unnest($2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[], $8::BIGINT[],
        $9::TEXT[], $10::TEXT[]) WITH ORDINALITY
        e (wallet, at, bucket, cap, kind, amount, shortfall, cause, memo, place)";
const PUT_POOLS: &str = "INSERT INTO ledger_pools
        (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
    SELECT n.wallet, n.bucket, $1 + n.place, 1,
        greatest($1, coalesce((SELECT max(p.last_entry) + 1 FROM ledger_pools p WHERE p.wallet = n.wallet), 0))
            + $2,
        n.cap, n.spent, n.held, n.granted
    FROM unnest($3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
        $9::BIGINT[]) n (wallet, bucket, cap, spent, held, granted, place)
    ON CONFLICT (wallet, bucket) DO UPDATE SET version = ledger_pools.version + 1,
        last_entry = excluded.last_entry, cap = excluded.cap, spent = excluded.spent, held = excluded.held,
        granted = excluded.granted";
const PUT_HOLD: &str =
    "INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs,
        share_buckets, share_caps, share_amounts)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at,
        spent = excluded.spent";
const DELETE_OPEN_HOLDS: &str = "DELETE FROM ledger_open WHERE hold = ANY ($1)";
const PUT_OPEN_HOLDS: &str = "INSERT INTO ledger_open (hold, wallet, expires_at)
    SELECT $1, wallet, $3 FROM unnest($2::TEXT[]) wallet";
const PUT_TRANSFERS: &str = "INSERT INTO ledger_transfers (id, kind, wallet, of_grant, amount, taken, shortfall)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    ON CONFLICT (id) DO UPDATE SET taken = excluded.taken, shortfall = excluded.shortfall";

/// Loads the rows of an operation.
async fn load(db: &mut PgConnection, keys: &RowKeys<'_>) -> DbResult<LedgerRows> {
    let holds = if keys.hold.is_none() && keys.wallets.is_empty() && keys.limit == 0 {
        Vec::new()
    } else {
        rows::holds(db, keys.hold, &keys.wallets, keys.now, keys.limit).await?
    };
    let transfers = match keys.transfers.as_slice() {
        [] => Vec::new(),
        ids => rows::transfers(db, ids).await?,
    };
    let pools = rows::pools(db, &keys.pools_with(&holds, &transfers)).await?;
    Ok(LedgerRows::new(pools, holds, transfers))
}

/// Stores the changes of an operation: holds first, then their pools, in the lock order of settlements.
async fn store(db: &mut PgConnection, ledger: &LedgerRows, numbers: &PgDatabase, now: i64) -> DbResult<()> {
    let Some(changes) = ledger.changes() else { return Ok(()) };
    let base = numbers.numbers(now, 2 * changes.entries.len() + changes.pools.len());
    store_holds(db, &changes.holds).await?;
    store_entries(db, base, changes.entries).await?;
    store_pools(db, base, changes.entries.len(), &changes.pools).await?;
    store_transfers(db, &changes.transfers).await
}

async fn store_entries(db: &mut PgConnection, base: i64, entries: &[EntryRow]) -> DbResult<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let texts = |of: fn(&EntryRow) -> &str| -> Vec<String> {
        entries.iter().map(|entry| encode(of(entry))).collect()
    };
    let column_values = |of: fn(&EntryRow) -> u64| -> DbResult<Vec<i64>> {
        Ok(entries.iter().map(|entry| column(of(entry))).collect::<transcript_core::Result<_>>()?)
    };
    let store = sqlx::query(ADD_ENTRIES)
        .bind(base)
        .bind(texts(|entry| &entry.wallet))
        .bind(entries.iter().map(|entry| entry.at).collect::<Vec<_>>())
        .bind(texts(|entry| &entry.bucket))
        .bind(column_values(|entry| entry.cap)?)
        .bind(texts(|entry| kind_name(entry.kind)))
        .bind(column_values(|entry| entry.amount)?)
        .bind(column_values(|entry| entry.shortfall)?)
        .bind(texts(|entry| &entry.cause))
        .bind(texts(|entry| &entry.memo));
    store.execute(db).await?;
    Ok(())
}

async fn store_pools(db: &mut PgConnection, base: i64, entries: usize, pools: &[&PoolRow]) -> DbResult<()> {
    if pools.is_empty() {
        return Ok(());
    }
    // New pools are numbered in the order of their creation, and all are locked in one global order.
    let mut pools: Vec<(i64, &PoolRow)> = (1..).zip(pools.iter().copied()).collect();
    pools.sort_unstable_by_key(|(_, pool)| (&pool.wallet, &pool.bucket));
    let column_values = |of: fn(&PoolRow) -> u64| -> DbResult<Vec<i64>> {
        Ok(pools.iter().map(|(_, pool)| column(of(pool))).collect::<transcript_core::Result<_>>()?)
    };
    let store = sqlx::query(PUT_POOLS)
        .bind(base)
        .bind(i64::try_from(entries).unwrap_or(i64::MAX))
        .bind(pools.iter().map(|(_, pool)| encode(&pool.wallet)).collect::<Vec<_>>())
        .bind(pools.iter().map(|(_, pool)| encode(&pool.bucket)).collect::<Vec<_>>())
        .bind(column_values(|pool| pool.cap)?)
        .bind(column_values(|pool| pool.spent)?)
        .bind(column_values(|pool| pool.held)?)
        .bind(column_values(|pool| pool.granted)?)
        .bind(pools.iter().map(|(index, _)| *index).collect::<Vec<_>>());
    store.execute(db).await?;
    Ok(())
}

async fn store_holds(db: &mut PgConnection, holds: &[&HoldRow]) -> DbResult<()> {
    if holds.is_empty() {
        return Ok(());
    }
    let wallets =
        |hold: &HoldRow| -> Vec<String> { hold.legs.iter().map(|leg| encode(&leg.wallet)).collect() };
    let mut holds = holds.to_vec();
    holds.sort_unstable_by_key(|hold| &hold.id);
    for hold in &holds {
        let list = |of: fn(&LegRow) -> u64| -> DbResult<Vec<i64>> {
            Ok(hold.legs.iter().map(|leg| column(of(leg))).collect::<transcript_core::Result<_>>()?)
        };
        let shares = || {
            (1_i64..)
                .zip(&hold.legs)
                .flat_map(|(index, leg)| leg.shares.iter().map(move |share| (index, share)))
        };
        let column_values = |of: fn(&ShareRow) -> u64| -> DbResult<Vec<i64>> {
            Ok(shares().map(|(_, share)| column(of(share))).collect::<transcript_core::Result<_>>()?)
        };
        let store = sqlx::query(PUT_HOLD)
            .bind(encode(&hold.id))
            .bind(hold.state.name())
            .bind(hold.expires_at)
            .bind(encode(&hold.memo))
            .bind(wallets(hold))
            .bind(list(|leg| leg.amount)?)
            .bind(list(|leg| leg.spent)?)
            .bind(shares().map(|(index, _)| index).collect::<Vec<_>>())
            .bind(shares().map(|(_, share)| encode(&share.bucket)).collect::<Vec<_>>())
            .bind(column_values(|share| share.cap)?)
            .bind(column_values(|share| share.amount)?);
        store.execute(&mut *db).await?;
    }
    let ids: Vec<String> = holds.iter().map(|hold| encode(&hold.id)).collect();
    sqlx::query(DELETE_OPEN_HOLDS).bind(ids).execute(&mut *db).await?;
    for hold in holds.iter().filter(|hold| hold.state == HoldRowState::Open) {
        let open =
            sqlx::query(PUT_OPEN_HOLDS).bind(encode(&hold.id)).bind(wallets(hold)).bind(hold.expires_at);
        open.execute(&mut *db).await?;
    }
    Ok(())
}

async fn store_transfers(db: &mut PgConnection, transfers: &[&TransferRow]) -> DbResult<()> {
    if transfers.is_empty() {
        return Ok(());
    }
    let column_values = |of: fn(&TransferRow) -> u64| -> DbResult<Vec<i64>> {
        Ok(transfers.iter().map(|transfer| column(of(transfer))).collect::<transcript_core::Result<_>>()?)
    };
    let store = sqlx::query(PUT_TRANSFERS)
        .bind(transfers.iter().map(|transfer| encode(&transfer.id)).collect::<Vec<_>>())
        .bind(transfers.iter().map(|transfer| transfer.kind.name().to_owned()).collect::<Vec<_>>())
        .bind(transfers.iter().map(|transfer| encode(&transfer.wallet)).collect::<Vec<_>>())
        .bind(transfers.iter().map(|transfer| encode(&transfer.of_grant)).collect::<Vec<_>>())
        .bind(column_values(|transfer| transfer.amount)?)
        .bind(column_values(|transfer| transfer.taken)?)
        .bind(column_values(|transfer| transfer.shortfall)?);
    store.execute(db).await?;
    Ok(())
}

/// A step of the ledger on loaded rows.
pub(super) struct GenericTx<S> {
    pub(super) step: S,
    pub(super) numbers: PgDatabase,
}

impl<S: LedgerStep> WriteTx for GenericTx<S> {
    type Outcome = S::Outcome;

    async fn run(&self, db: &mut PgConnection) -> DbResult<S::Outcome> {
        let keys = self.step.keys();
        let mut ledger = load(db, &keys).await?;
        let outcome = self.step.apply(&mut ledger)?;
        // A rejected hold is stored too: it may have expired overdue holds of its wallets.
        store(db, &ledger, &self.numbers, keys.now).await?;
        Ok(outcome)
    }
}
