//! The writing connection, and whether its commits sync the log themselves.
//!
//! For a single writer a commit that syncs itself is fastest, because no other thread has to wake up. While other
//! writes are queued, such a commit would delay them, so [`super::super::wal_sync`] syncs the log instead.

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};

/// Number of uncontended transactions in a row before commits sync themselves.
///
/// A change of mode costs a round trip.
const UNCONTENDED_MIN: u32 = 8;

/// Number of transactions in a row for which no other write waited.
#[derive(Debug, Default)]
pub(super) struct UncontendedCount(u32);

impl UncontendedCount {
    /// Records whether another write waited for the last transaction.
    pub(super) fn record(&mut self, was_uncontended: bool) {
        self.0 = if was_uncontended { self.0.saturating_add(1) } else { 0 };
    }

    /// Whether the next transaction will probably be uncontended, too.
    pub(super) fn is_likely(&self) -> bool {
        self.0 >= UNCONTENDED_MIN
    }
}

/// A connection to the file.
#[derive(Debug)]
pub(super) struct WriterConnection {
    pub(super) connection: SqliteConnection,
    syncs: bool,
}

impl WriterConnection {
    /// Wraps a connection with `synchronous=NORMAL`.
    pub(super) fn new(connection: SqliteConnection) -> Self {
        Self { connection, syncs: false }
    }

    pub(super) async fn open(options: &SqliteConnectOptions) -> sqlx::Result<Self> {
        Ok(Self::new(options.connect().await?))
    }

    /// Whether its commits are on disk when they return.
    pub(super) fn syncs_on_commit(&self) -> bool {
        self.syncs
    }

    /// Sets whether commits sync the log themselves. Must be called between two transactions.
    pub(super) async fn set_sync(&mut self, syncs: bool) -> sqlx::Result<()> {
        if syncs != self.syncs {
            // EXTRA is FULL that also syncs the folder, for a file with a journal instead of a log.
            // A cached statement would have no effect the second time: the pragma acts while it is prepared.
            let level = if syncs { "PRAGMA synchronous = EXTRA" } else { "PRAGMA synchronous = NORMAL" };
            sqlx::raw_sql(level).execute(&mut self.connection).await?;
            self.syncs = syncs;
        }
        Ok(())
    }
}
