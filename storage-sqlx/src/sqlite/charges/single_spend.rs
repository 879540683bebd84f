//! A spend with a transaction to itself: one text begins, writes and commits, in one round trip.
//!
//! It handles a wallet's allowance with room. In every other case it stores nothing and leaves the spend to the
//! statements of groups. It does the same after waiting for another process's lock, because groups skip callers
//! that have disconnected. After a miss the next spends skip it: a used-up allowance stays so for a while, and
//! after a lock timeout the lock is probably still held.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::TryStreamExt;
use serde::Deserialize;
use sqlx::{Either, Executor, Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::ledger::{
    Balance, HoldOutcome, HoldRequest, PoolBalance,
    rules::{LegRow, ShareRow, bucket_name},
};

use super::statements::StatementValues;
use crate::{
    allowance_spend::AllowanceSpend,
    codec::{self, column},
    error::{DbResult, corrupt},
    sqlite::writer::{TxError, TxResult},
};

/// The longest wait for the lock with which the text still stores.
const PROMPT: Duration = Duration::from_millis(5);

/// Each statement runs only if the one before it stored its row.
const SPEND: &str = "BEGIN IMMEDIATE;
    INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted)
        SELECT ?, ?, ?, ?, 0, 0
        WHERE CAST(unixepoch('subsec') * 1000 AS INTEGER) < ?
            AND NOT EXISTS (SELECT 1 FROM ledger_holds WHERE id = ?)
            AND NOT EXISTS (SELECT 1 FROM ledger_open WHERE wallet = ? AND expires_at <= ?)
        ON CONFLICT (wallet, bucket) DO UPDATE SET cap = excluded.cap, spent = ledger_pools.spent + excluded.spent
        WHERE ledger_pools.spent + ledger_pools.held + excluded.spent <= excluded.cap
        RETURNING json_array(spent, held, granted), (
            SELECT json_array(spent, held, granted) FROM ledger_pools q WHERE q.wallet = ? AND q.bucket = ?
        );
    INSERT INTO ledger_holds (id, state, expires_at, memo, legs)
        SELECT ?, 'closed', ?, ?, ? WHERE changes() = 1;
    INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT ?, ?, ?, ?, 'charged', ?, 0, ?, ? WHERE changes() = 1;
    COMMIT";
/// Number of statements in the text, and of their parameters.
const STATEMENTS: u32 = 5;
const PARAMETERS: usize = 21;

/// A statement that must not scan tables, for the test of the query plans.
#[cfg(test)]
pub(in crate::sqlite) fn hot() -> &'static str {
    SPEND.trim_start_matches("BEGIN IMMEDIATE;").trim_end_matches(";\n    COMMIT")
}

/// Decides whether a spend uses the text.
#[derive(Debug, Default)]
pub(super) struct FastPathGate(AtomicU32);

impl FastPathGate {
    /// Number of spends that skip the text after a miss.
    const PASSED: u32 = 16;

    /// Whether the next spend uses the text.
    pub(super) fn next(&self) -> bool {
        let pass = |left: u32| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pass).is_err()
    }

    /// Records a miss.
    pub(super) fn pass(&self) {
        self.0.store(Self::PASSED, Ordering::Relaxed);
    }
}

/// A spend that the text can handle.
pub(super) struct SingleSpend<'a>(AllowanceSpend<'a>);

/// A pool: spent, held, granted.
#[derive(Deserialize)]
struct SpendFigures(u64, u64, u64);

impl<'a> SingleSpend<'a> {
    pub(super) fn for_request(request: &'a HoldRequest) -> Option<Self> {
        AllowanceSpend::for_request(request).map(Self)
    }

    /// Spends. `None` if it stored nothing. `is_stored` is set while only the commit decides the outcome.
    pub(super) async fn run(
        &self,
        db: &mut SqliteConnection,
        is_stored: &AtomicBool,
    ) -> TxResult<Option<HoldOutcome>> {
        // The statements of groups report invalid values.
        let Ok(values) = self.values() else { return Ok(None) };
        // The connection's thread runs all statements, even if the caller stops reading the results.
        is_stored.store(true, Ordering::Relaxed);
        let mut results = db.fetch_many(sqlx::query_with(SPEND, values.into_arguments()));
        let (mut made, mut row) = (0, None);
        while made < STATEMENTS {
            // Results come in order, and no statement runs before the previous result was sent.
            match results.try_next().await.and_then(|result| result.ok_or(sqlx::Error::WorkerCrashed)) {
                Ok(Either::Left(_)) => made += 1,
                Ok(Either::Right(found)) => row = Some(found),
                Err(error) if made + 1 == STATEMENTS => return Err(TxError::to_commit(error)),
                Err(error) => {
                    is_stored.store(false, Ordering::Relaxed);
                    return Err(if made == 0 {
                        TxError::at_first(error.into())
                    } else {
                        TxError::from_write(error)
                    });
                }
            }
        }
        drop(results);
        is_stored.store(row.is_some(), Ordering::Relaxed);
        row.map(|row| self.outcome(&row)).transpose().map_err(TxError::to_commit)
    }

    fn values(&self) -> DbResult<StatementValues<'a>> {
        let AllowanceSpend { request, leg, bucket, cap } = self.0;
        let (wallet, id, now) = (leg.wallet.as_str(), request.id.as_str(), request.now.as_millis());
        let (cap, amount) = (column(cap)?, column(leg.amount)?);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut values = StatementValues::with_capacity(PARAMETERS);
        values.text(wallet)?;
        values.text(bucket)?;
        values.add(cap)?;
        values.add(amount)?;
        values.add(i64::try_from((clock + PROMPT).as_millis()).unwrap_or(i64::MAX))?;
        values.text(id)?;
        values.text(wallet)?;
        values.add(now)?;
        values.text(wallet)?;
        values.optional_text(leg.terms.pools.get(1).map(bucket_name))?;
        values.text(id)?;
        values.add(request.expires_at.as_millis())?;
        values.text(&request.memo)?;
        values.add(codec::json(&[self.row()])?)?;
        values.add(now)?;
        values.text(wallet)?;
        values.text(bucket)?;
        values.add(cap)?;
        values.add(amount)?;
        values.text(id)?;
        values.text(&request.memo)?;
        Ok(values)
    }

    /// The leg in the hold's row.
    fn row(&self) -> LegRow {
        let AllowanceSpend { leg, bucket, cap, .. } = self.0;
        let amount = leg.amount;
        let share = ShareRow { bucket: bucket.to_owned(), cap, amount };
        LegRow { wallet: leg.wallet.as_str().to_owned(), amount, spent: amount, shares: vec![share] }
    }

    /// The outcome of a committed spend: a decoding error does not undo it.
    fn outcome(&self, row: &SqliteRow) -> DbResult<HoldOutcome> {
        let AllowanceSpend { leg, .. } = self.0;
        let mut pools = Vec::with_capacity(leg.terms.pools.len());
        for (index, pool) in leg.terms.pools.iter().enumerate() {
            pools.push(match row.try_get::<Option<&str>, _>(index)? {
                None => PoolBalance::unused(pool.clone()),
                Some(figures) => {
                    let read = serde_json::from_str(figures);
                    let SpendFigures(spent, held, granted) =
                        read.map_err(|_| corrupt("a pool of the ledger is damaged"))?;
                    PoolBalance { pool: pool.clone(), spent, held, granted }
                }
            });
        }
        Ok(HoldOutcome::Held { balances: vec![Balance { wallet: leg.wallet.clone(), pools }] })
    }
}
