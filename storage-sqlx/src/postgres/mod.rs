//! The storage ports on PostgreSQL 15 and newer, for any number of servers.
//!
//! Only features that compatible engines also have are used; decision 0024 lists them. No operation depends on session
//! state, so a pooler can sit between.

mod batch_queue;
mod charges;
mod connection_limit;
mod database;
mod leader_lease;
mod ledger;
mod options;
mod schema;
mod session;
mod sqlstate;
mod text;

use transcript_core::Result;

pub use connection_limit::{ConnectionLimit, DatabaseReport, inspect_database};
pub use options::PostgresOptions;

use database::PgDatabase;
use schema::SchemaPart;

use crate::{
    migration::migrations,
    monitor::StoreMonitor,
    store::{SqlArchive, Store},
};

/// Keys, accounts and the ledger.
const MAIN: SchemaPart = SchemaPart {
    name: "main",
    migrations: migrations!("postgres-main":
        1 "0001_create_main",
        2 "0002_tell_charges_in_one_entry",
        3 "0003_mark_prepaid_accounts",
        4 "0004_limit_and_count_keys",
        5 "0005_log_operators",
        6 "0006_create_sessions",
        7 "0007_create_jobs",
        8 "0008_create_webhooks",
        9 "0009_create_job_lists",
        10 "0010_store_mail_languages",
        11 "0011_store_paid_amounts",
        12 "0012_count_interruptions",
        13 "0013_index_due_work",
    ),
};

/// Transcripts.
const ARCHIVE: SchemaPart = SchemaPart {
    name: "archive",
    migrations: migrations!("postgres-archive":
        1 "0001_create_archive",
        2 "0002_keep_cold_rows",
        3 "0003_record_changed_videos",
        4 "0004_store_words_and_details",
        5 "0005_index_for_search",
        6 "0006_store_vectors",
        7 "0007_drop_generation_index",
    ),
};

/// Recounts the statistics of an archive after a copy: all in part 0, and zeros in the others.
#[cfg(feature = "sqlite")]
pub(crate) const COUNT_ARCHIVE: &str = "UPDATE figures SET
    videos = CASE part WHEN 0 THEN (SELECT count(DISTINCT video) FROM transcripts) ELSE 0 END,
    transcripts = CASE part WHEN 0 THEN (SELECT count(*) FROM transcripts) ELSE 0 END,
    bytes = CASE part WHEN 0 THEN (SELECT coalesce(sum(body_bytes), 0)::BIGINT FROM transcripts) ELSE 0 END,
    compact = CASE part WHEN 0 THEN (SELECT count(*) FROM cold) ELSE 0 END,
    links = CASE part WHEN 0 THEN (SELECT count(*) FROM links) ELSE 0 END";

/// Items of the stores that the storage copy uses.
#[cfg(feature = "sqlite")]
pub(crate) use {
    ledger::rows::{HOLD_COLUMNS, hold},
    session::{bind, read_row},
    sqlstate::{opening_error, to_error as fault_to_error},
};

#[cfg(feature = "sqlite")]
fn part(name: &str) -> &'static SchemaPart {
    if name == ARCHIVE.name { &ARCHIVE } else { &MAIN }
}

/// The newest version of a part that this program knows.
#[cfg(feature = "sqlite")]
pub(crate) fn newest_version(name: &str) -> i64 {
    part(name).newest()
}

/// Migrates a part of a database to its newest version, then closes it.
#[cfg(feature = "sqlite")]
pub(crate) async fn migrate_part(options: PostgresOptions, name: &str) -> Result<()> {
    let database = PgDatabase::new(options, part(name).name)?;
    let migrated = schema::migrate(&database, part(name)).await;
    database.close().await;
    migrated
}

/// A random number, unique with high probability.
pub(crate) fn random_number() -> i64 {
    i64::try_from(database::random_below(1 << 62)).unwrap_or_default()
}

/// Keys, accounts and the ledger, in a PostgreSQL database. It implements the ports of [`Store`].
///
/// Any number of servers can use the same database. The store caches no rows, so each server sees the others' changes
/// at once.
///
/// # Cancellation
/// A write whose future is dropped is still done completely or not at all: it runs in a task of the store.
pub type PostgresStore = Store<PgDatabase, PgQueues>;

/// The batch queues of a store.
#[derive(Debug)]
pub struct PgQueues {
    charges: charges::ChargeBatchers,
    spends: ledger::SpendBatcher,
}

impl PostgresStore {
    /// Connects, and creates or migrates the tables if needed.
    ///
    /// Of several servers that start at the same time, one migrates and the others wait.
    ///
    /// Call it inside a tokio runtime with time and I/O enabled; the work runs in its tasks. Any executor can poll the
    /// futures of the ports' methods.
    ///
    /// # Errors
    /// - [`transcript_core::ErrorKind::Invalid`]: the URL is malformed.
    /// - [`transcript_core::ErrorKind::Unsupported`]: the server rejects the user, the database does not exist, or it
    ///   is of a newer version of this program and stays unchanged.
    /// - [`transcript_core::ErrorKind::Unavailable`]: the server cannot be reached.
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        let batch_threshold = options.batch_threshold;
        let database = PgDatabase::new(options, MAIN.name)?;
        schema::migrate(&database, &MAIN).await?;
        database.monitor().start();
        let queues = PgQueues {
            charges: charges::ChargeBatchers::new(&database),
            spends: ledger::SpendBatcher::new(&database, batch_threshold),
        };
        Ok(Self { database, queues })
    }

    /// The failures since the database was opened.
    pub fn monitor(&self) -> &StoreMonitor {
        self.database.monitor()
    }

    /// Completes running calls and closes the connections. Later calls fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// The archive, in a PostgreSQL database: the store's or another one.
///
/// It implements [`transcript_core::archive::Archive`].
///
/// Any number of servers can use the same database; see [`PostgresStore`] for cancellation.
pub type PostgresArchive = SqlArchive<PgDatabase>;

impl PostgresArchive {
    /// Connects, and creates or migrates the tables if needed.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        Self::migrate(PgDatabase::new(options, ARCHIVE.name)?).await
    }

    /// Opens the archive in the database of `store`, over the same connections. Closing one closes both.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_beside(store: &PostgresStore) -> Result<Self> {
        Self::migrate(store.database.other_part(ARCHIVE.name)).await
    }

    async fn migrate(database: PgDatabase) -> Result<Self> {
        schema::migrate(&database, &ARCHIVE).await?;
        database.monitor().start();
        Ok(Self { database })
    }

    /// The failures since the database was opened.
    pub fn monitor(&self) -> &StoreMonitor {
        self.database.monitor()
    }

    /// Completes running calls and closes the connections. Later calls fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// The search index, in the database of the archive. It implements [`transcript_core::search::ArchiveIndex`].
#[cfg(feature = "search")]
pub type PostgresSearchIndex = crate::search::SqlSearchIndex<PgDatabase>;

#[cfg(feature = "search")]
impl PostgresSearchIndex {
    /// The index in the database of `archive`, over the same connections. Closing the archive closes both.
    pub fn of_archive(archive: &PostgresArchive) -> Self {
        Self::new(archive.database.other_part(ARCHIVE.name))
    }
}
