//! A credit spent in plain sqlx: one transaction for each credit, one after the other.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use anyhow::{Result, ensure};
use sqlx::{
    Connection as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
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
pub(crate) struct BaselineSqlx {
    connection: SqliteConnection,
}

impl BaselineSqlx {
    /// Opens a connection that waits for the disk at each commit.
    pub(crate) async fn open(file: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        Ok(Self { connection: SqliteConnection::connect_with(&options).await? })
    }

    /// Spends credits of these payers one after the other; returns the credits a second.
    pub(crate) async fn load(&mut self, payers: &[BenchPayer], count: &AtomicU64) -> Result<f64> {
        let (started, before, clock) = (Instant::now(), count.load(Relaxed), SystemClock::default());
        while started.elapsed() < TIME {
            let number = count.fetch_add(1, Relaxed);
            self.take(payer(payers, number).account.wallet.as_str(), clock.now(), number).await?;
        }
        Ok((count.load(Relaxed) - before) as f64 / started.elapsed().as_secs_f64())
    }

    async fn take(&mut self, wallet: &str, now: Timestamp, number: u64) -> Result<()> {
        let id = hold_id(now, number);
        let legs = format!(
            r#"[{{"wallet":"{wallet}","amount":1,"spent":1,"shares":[{{"bucket":"{BUCKET}","cap":1,"amount":1}}]}}]"#
        );
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        let taken = sqlx::query(TAKE).bind(wallet).bind(BUCKET).execute(&mut *transaction).await?;
        ensure!(taken.rows_affected() == 1, "a pool is empty");
        let hold = sqlx::query(HOLD).bind(&id).bind(now.as_millis()).bind(MEMO).bind(legs);
        hold.execute(&mut *transaction).await?;
        let entry = sqlx::query(ENTRY).bind(now.as_millis()).bind(wallet).bind(BUCKET).bind(&id).bind(MEMO);
        entry.execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Closes the connection.
    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.connection.close().await?)
    }
}
