//! The connection that writes, and whether its commits wait for the disk themselves.
//!
//! Who writes alone is answered soonest when the commit itself waits: no other thread has to be woken for it. Where
//! somebody else wants to write meanwhile it would wait as well, so then the keeper waits instead.

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

/// How many transactions in a row must have been alone before commits wait: changing it is a hop, too.
const ALONE_MIN: u32 = 8;

/// How many transactions in a row nobody else waited for.
#[derive(Debug, Default)]
pub(super) struct Alone(u32);

impl Alone {
    pub(super) fn count(&mut self, was_alone: bool) {
        self.0 = if was_alone { self.0.saturating_add(1) } else { 0 };
    }

    /// Whether the next one will probably be alone, too.
    pub(super) fn is_likely(&self) -> bool {
        self.0 >= ALONE_MIN
    }
}

/// A connection to the file.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: SqliteConnection,
    /// Whether what it committed is on the disk already.
    keeps: bool,
}

impl Link {
    /// Of a connection with `synchronous=NORMAL`.
    pub(super) fn of(connection: SqliteConnection) -> Self {
        Self { connection, keeps: false }
    }

    pub(super) async fn open(options: &SqliteConnectOptions) -> sqlx::Result<Self> {
        Ok(Self::of(options.connect().await?))
    }

    /// Whether what it committed is on the disk already.
    pub(super) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Has its commits wait for the disk, or not. To be called between two transactions.
    pub(super) async fn keep(&mut self, keeps: bool) -> sqlx::Result<()> {
        if keeps != self.keeps {
            // EXTRA is FULL that also waits for the folder, where the file has a journal instead of a log.
            // As a statement that is kept for later it would do nothing the second time: it acts while it is prepared.
            let level = if keeps { "PRAGMA synchronous = EXTRA" } else { "PRAGMA synchronous = NORMAL" };
            sqlx::raw_sql(level).execute(&mut self.connection).await?;
            self.keeps = keeps;
        }
        Ok(())
    }
}
