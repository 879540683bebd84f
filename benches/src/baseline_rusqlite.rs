//! A credit spent in plain rusqlite: one transaction for each credit, one after the other.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use anyhow::{Result, ensure};
use rusqlite::{Connection, TransactionBehavior};
use transcript_core::time::{Clock as _, Timestamp};
use verbatim::SystemClock;

use crate::{
    commits::{BUCKET, BenchPayer, MEMO, hold_id, payer},
    v1_transcripts::TIME,
};

/// Spends from the pool, if it has enough left.
const TAKE: &str = "UPDATE ledger_pools SET spent = spent + 1
    WHERE wallet = ?1 AND bucket = ?2 AND spent + held + 1 <= cap";
const HOLD: &str =
    "INSERT INTO ledger_holds (id, state, expires_at, memo, legs) VALUES (?1, 'closed', ?2, ?3, ?4)";
const ENTRY: &str =
    "INSERT INTO ledger_entries (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
    VALUES (?1, ?2, ?3, 1, 'charged', 1, 0, ?4, ?5)";

/// A separate connection to the file of a store.
pub(crate) struct BaselineRusqlite {
    connection: Connection,
}

impl BaselineRusqlite {
    /// Opens a connection that waits for the disk at each commit.
    pub(crate) fn open(file: &Path) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
        Ok(Self { connection })
    }

    /// Spends credits of these payers one after the other; returns the credits a second.
    pub(crate) fn load(&mut self, payers: &[BenchPayer], count: &AtomicU64) -> Result<f64> {
        let (started, before, clock) = (Instant::now(), count.load(Relaxed), SystemClock::default());
        while started.elapsed() < TIME {
            let number = count.fetch_add(1, Relaxed);
            self.take(payer(payers, number).account.wallet.as_str(), clock.now(), number)?;
        }
        Ok((count.load(Relaxed) - before) as f64 / started.elapsed().as_secs_f64())
    }

    fn take(&mut self, wallet: &str, now: Timestamp, number: u64) -> Result<()> {
        let (id, now) = (hold_id(now, number), now.as_millis());
        let legs = format!(
            r#"[{{"wallet":"{wallet}","amount":1,"spent":1,"shares":[{{"bucket":"{BUCKET}","cap":1,"amount":1}}]}}]"#
        );
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let taken = transaction.prepare_cached(TAKE)?.execute((wallet, BUCKET))?;
        ensure!(taken == 1, "a pool is empty");
        transaction.prepare_cached(HOLD)?.execute((&id, now, MEMO, legs))?;
        transaction.prepare_cached(ENTRY)?.execute((now, wallet, BUCKET, &id, MEMO))?;
        Ok(transaction.commit()?)
    }
}
