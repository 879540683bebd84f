//! A spend that nobody else waits beside: one text that begins, makes and commits it, with one hop.
//!
//! It knows a wallet's allowance that has room. Whatever else may be the case it leaves to the statements of groups, and has
//! stored nothing then. So it does where another process's lock was waited for: who left meanwhile need not pay, and they
//! look. What it could not answer it is not asked next time either: an allowance that is used up stays so for a while, and
//! a lock that was waited for and given up must be waited for again.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::TryStreamExt;
use serde::Deserialize;
use sqlx::{Either, Executor, Row, SqliteConnection, sqlite::SqliteRow};
use transcript_core::ledger::{Balance, HoldOutcome, HoldRequest, PoolBalance};

use super::statements::Values;
use crate::{
    books::{LegRow, Plain, ShareRow, bucket_name},
    codec::{self, column},
    error::{Work, corrupt},
    sqlite::writer::{Attempt, Failed},
};

/// How long the lock may have been waited for.
const PROMPT: Duration = Duration::from_millis(5);

/// Each statement is made only where the one before it has stored its row.
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
/// How many statements that is, and how many parameters they have.
const STATEMENTS: u32 = 5;
const PARAMETERS: usize = 21;

/// What must not grow with what is stored, for the test of the plans.
#[cfg(test)]
pub(in crate::sqlite) fn hot() -> &'static str {
    SPEND.trim_start_matches("BEGIN IMMEDIATE;").trim_end_matches(";\n    COMMIT")
}

/// Whether the text is asked.
#[derive(Debug, Default)]
pub(super) struct Turns(AtomicU32);

impl Turns {
    /// How many spends go by without it, once it could not answer one.
    const PASSED: u32 = 16;

    /// Whether it is asked this time.
    pub(super) fn next(&self) -> bool {
        let pass = |left: u32| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pass).is_err()
    }

    /// It could not answer.
    pub(super) fn pass(&self) {
        self.0.store(Self::PASSED, Ordering::Relaxed);
    }
}

/// A spend that the text may answer.
pub(super) struct Lone<'a>(Plain<'a>);

/// A pool: spent, held, granted.
#[derive(Deserialize)]
struct Figures(u64, u64, u64);

impl<'a> Lone<'a> {
    pub(super) fn of(ask: &'a HoldRequest) -> Option<Self> {
        Plain::of(ask).map(Self)
    }

    /// Spends; none where it has stored nothing. `is_stored` is set while nobody but the commit knows what became of it.
    pub(super) async fn make(
        &self,
        db: &mut SqliteConnection,
        is_stored: &AtomicBool,
    ) -> Attempt<Option<HoldOutcome>> {
        // Groups tell what is wrong with them.
        let Ok(values) = self.values() else { return Ok(None) };
        // The connection's thread makes all of them, whether somebody still waits for what it tells or not.
        is_stored.store(true, Ordering::Relaxed);
        let mut results = db.fetch_many(sqlx::query_with(SPEND, values.into_arguments()));
        let (mut made, mut row) = (0, None);
        while made < STATEMENTS {
            // They come in order, and it makes no statement before it has told of the last one.
            match results.try_next().await.and_then(|result| result.ok_or(sqlx::Error::WorkerCrashed)) {
                Ok(Either::Left(_)) => made += 1,
                Ok(Either::Right(found)) => row = Some(found),
                Err(error) if made + 1 == STATEMENTS => return Err(Failed::to_commit(error)),
                Err(error) => {
                    is_stored.store(false, Ordering::Relaxed);
                    return Err(if made == 0 { Failed::at_first(error.into()) } else { Failed::of(error) });
                }
            }
        }
        drop(results);
        is_stored.store(row.is_some(), Ordering::Relaxed);
        row.map(|row| self.outcome(&row)).transpose().map_err(Failed::to_commit)
    }

    fn values(&self) -> Work<Values<'a>> {
        let Plain { ask, leg, bucket, cap } = self.0;
        let (wallet, id, now) = (leg.wallet.as_str(), ask.id.as_str(), ask.now.as_millis());
        let (cap, amount) = (column(cap)?, column(leg.amount)?);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut values = Values::of(PARAMETERS);
        values.text(wallet)?;
        values.text(bucket)?;
        values.add(cap)?;
        values.add(amount)?;
        values.add(i64::try_from((clock + PROMPT).as_millis()).unwrap_or(i64::MAX))?;
        values.text(id)?;
        values.text(wallet)?;
        values.add(now)?;
        values.text(wallet)?;
        values.perhaps(leg.terms.pools.get(1).map(bucket_name))?;
        values.text(id)?;
        values.add(ask.expires_at.as_millis())?;
        values.text(&ask.memo)?;
        values.add(codec::json(&[self.row()])?)?;
        values.add(now)?;
        values.text(wallet)?;
        values.text(bucket)?;
        values.add(cap)?;
        values.add(amount)?;
        values.text(id)?;
        values.text(&ask.memo)?;
        Ok(values)
    }

    /// What the hold says of its leg.
    fn row(&self) -> LegRow {
        let Plain { leg, bucket, cap, .. } = self.0;
        let amount = leg.amount;
        let share = ShareRow { bucket: bucket.to_owned(), cap, amount };
        LegRow { wallet: leg.wallet.as_str().to_owned(), amount, spent: amount, shares: vec![share] }
    }

    /// It is committed: what cannot be read of it is not undone.
    fn outcome(&self, row: &SqliteRow) -> Work<HoldOutcome> {
        let Plain { leg, .. } = self.0;
        let mut pools = Vec::with_capacity(leg.terms.pools.len());
        for (place, pool) in leg.terms.pools.iter().enumerate() {
            pools.push(match row.try_get::<Option<&str>, _>(place)? {
                None => PoolBalance::fresh(pool.clone()),
                Some(figures) => {
                    let read = serde_json::from_str(figures);
                    let Figures(spent, held, granted) =
                        read.map_err(|_| corrupt("a pool of the ledger is damaged"))?;
                    PoolBalance { pool: pool.clone(), spent, held, granted }
                }
            });
        }
        Ok(HoldOutcome::Held { balances: vec![Balance { wallet: leg.wallet.clone(), pools }] })
    }
}
