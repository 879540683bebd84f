//! The storage ports on SQLite, in two files.
//!
//! Each file has one connection that writes, on its own thread, and a few that read, on the callers' threads.
//! `verbatim.db` holds keys, accounts and the ledger, `archive.db` the transcripts. Their page
//! sizes, privacy and growth differ, and no transaction spans both.

mod charges;
mod database_file;
mod file_setup;
mod ledger;
mod options;
#[cfg(test)]
mod query_plan_tests;
mod read_pool;
pub(crate) mod schema;
pub(crate) mod session;
mod wal_sync;
mod writer;

use std::sync::Arc;

use tokio::runtime::Handle;
use transcript_core::{Error, Result};

pub use options::SqliteOptions;

pub(crate) use options::{FileKind, FileLocking};

use database_file::DatabaseFile;
use read_pool::ReadPool;
use writer::WriteQueue;

use crate::{
    error::{DbError, DbResult},
    migration::migrations,
    monitor::{StoreMonitor, StoreOperation},
    sql::{Database, Row, Statement, Value, WriteTx},
    store::{SqlArchive, Store},
};

/// The file of keys, accounts and the ledger.
const MAIN: FileKind = FileKind {
    name: "accounts and credits",
    store: "main",
    application_id: 0x5662_4D31, // "VbM1"
    page_size: 4_096,
    private: true,
    migrations: migrations!("main":
        1 "0001_create_ledger",
        2 "0002_create_directory",
        3 "0003_create_requests",
        4 "0004_index_what_ends",
        5 "0005_keep_paid_periods",
        6 "0006_index_purchases_spent",
        7 "0007_follow_payments",
        8 "0008_keep_the_anchor_before",
        9 "0009_index_orders_of_accounts",
        10 "0010_tell_charges_in_one_entry",
        11 "0011_mark_prepaid_accounts",
        12 "0012_limit_and_count_keys",
        13 "0013_log_operators",
        14 "0014_create_sessions",
        15 "0015_create_jobs",
        16 "0016_create_webhooks",
        17 "0017_create_job_lists",
        18 "0018_store_mail_languages",
        19 "0019_store_paid_amounts",
        20 "0020_count_interruptions",
        21 "0021_index_due_work",
    ),
};

/// The file of transcripts.
///
/// Its pages are large, because a body of some 20 KB spans many small ones, and an uncached read pays for each.
const ARCHIVE: FileKind = FileKind {
    name: "transcripts",
    store: "archive",
    application_id: 0x5662_4131, // "VbA1"
    page_size: 16_384,
    private: false,
    migrations: migrations!("archive":
        1 "0001_create_archive",
        2 "0002_index_transcripts_by_track",
        3 "0003_count_changes",
        4 "0004_store_as_sent",
        5 "0005_keep_cold_rows",
        6 "0006_record_changed_videos",
        7 "0007_store_words_and_details",
        8 "0008_record_unindexed_videos",
        9 "0009_store_vectors",
        10 "0010_list_tracks_in_details",
        11 "0011_number_changed_videos",
    ),
};

/// The file of the search index.
#[cfg(feature = "search")]
pub(crate) const SEARCH: FileKind = FileKind {
    name: "the search index",
    store: "search",
    application_id: schema::SEARCH_APPLICATION_ID,
    page_size: 4_096,
    private: false,
    migrations: migrations!("search":
        1 "0001_create_index",
        2 "0002_shrink_index",
        3 "0003_shrink_tables",
    ),
};

/// The kind of the file that holds a part of the storage copy.
#[cfg(feature = "postgres")]
pub(crate) fn kind_of_file(part: &str) -> &'static FileKind {
    if part == "archive" { &ARCHIVE } else { &MAIN }
}

/// Prepares a file for the storage copy; returns its full path.
#[cfg(feature = "postgres")]
pub(crate) fn prepare_file(kind: &FileKind, path: &std::path::Path) -> Result<std::path::PathBuf> {
    file_setup::prepare(path, kind.private).map(|(file, _)| file)
}

/// Keys, accounts and the ledger, in one SQLite file. It implements the ports of [`Store`].
///
/// Several processes can open the same file. The store caches no rows, so each process sees the others' changes
/// at once. Drop closes the file in the background; [`SqliteStore::close`] waits until it is closed.
///
/// # Cancellation
/// A write whose future is dropped is still done completely or not at all: it runs on a thread of the store.
pub type SqliteStore = Store<SqliteDatabase>;

impl SqliteStore {
    /// Opens the file; creates it or migrates its schema if needed.
    ///
    /// Call it inside a tokio runtime with time enabled; lists are read on its blocking threads. Any executor can
    /// poll the futures of the ports' methods.
    ///
    /// # Errors
    /// - [`transcript_core::ErrorKind::Invalid`]: the path is a folder, or a database of another program.
    /// - [`transcript_core::ErrorKind::Unsupported`]: the file or its folder is read-only, or the file is of a
    ///   newer version and stays unchanged.
    /// - [`transcript_core::ErrorKind::Corrupt`]: the file is damaged or not a database.
    /// - [`transcript_core::ErrorKind::Unavailable`]: another process locks it for longer than
    ///   [`SqliteOptions::busy_timeout`], or it cannot be opened.
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        Ok(Self { database: SqliteDatabase::open(&MAIN, options).await?, queues: () })
    }

    /// The failures since the file was opened.
    pub fn monitor(&self) -> &StoreMonitor {
        self.database.file.monitor()
    }

    /// Free space of the file's disk, in bytes; `None` if the system does not report it.
    pub fn free_bytes(&self) -> Option<u64> {
        self.database.file.free_bytes()
    }

    /// Completes running calls and closes the file. Later calls fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// The archive, in one SQLite file. It implements [`transcript_core::archive::Archive`].
///
/// Several processes can open the same file; see [`SqliteStore`] for closing and cancellation.
pub type SqliteArchive = SqlArchive<SqliteDatabase>;

impl SqliteArchive {
    /// Opens the file; creates it or migrates its schema if needed.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        Ok(Self { database: SqliteDatabase::open(&ARCHIVE, options).await? })
    }

    /// The failures since the file was opened.
    pub fn monitor(&self) -> &StoreMonitor {
        self.database.file.monitor()
    }

    /// Free space of the file's disk, in bytes; `None` if the system does not report it.
    pub fn free_bytes(&self) -> Option<u64> {
        self.database.file.free_bytes()
    }

    /// Completes running calls and closes the file. Later calls fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// The search index, in a separate SQLite file. It implements [`transcript_core::search::ArchiveIndex`].
///
/// Several processes can open the same file. It holds nothing that the archive does not have: a damaged file is deleted
/// and built again.
#[cfg(feature = "search")]
pub type SqliteSearchIndex = crate::search::SqlSearchIndex<SqliteDatabase>;

#[cfg(feature = "search")]
impl SqliteSearchIndex {
    /// Opens the file; creates it if needed.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        Ok(Self::new(SqliteDatabase::open(&SEARCH, options).await?))
    }

    /// Completes running calls and closes the file. Later calls fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// One open file.
#[derive(Debug)]
pub struct SqliteDatabase {
    file: Arc<DatabaseFile>,
    /// Dropped first: the last connection to close must checkpoint the log, and a reader must not.
    readers: ReadPool,
    queue: WriteQueue,
    runtime: Handle,
}

impl SqliteDatabase {
    async fn open(kind: &'static FileKind, options: SqliteOptions) -> Result<Self> {
        let runtime = Handle::current();
        let opening = runtime.spawn_blocking(move || Self::open_blocking(kind, options.bounded())).await;
        opening.map_err(|error| Error::unexpected(format!("opening a database file failed: {error}")))?
    }

    fn open_blocking(kind: &'static FileKind, options: SqliteOptions) -> Result<Self> {
        let timeout = options.busy_timeout;
        let (file, session) = schema::prepare_and_open(kind, &options.path, timeout)?;
        let missing =
            |error| Error::unavailable(format!("cannot read the database {}: {error}", file.display()));
        let file = Arc::new(DatabaseFile::new(&file, kind.store).map_err(missing)?);
        let path = file.path().to_owned();
        let reopen = move || kind.open_writer(&path, timeout, FileLocking::Normal);
        let queue = WriteQueue::start(session, Box::new(reopen), Arc::clone(&file), timeout)?;
        let readers = ReadPool::new(&file, options.readers, timeout);
        Ok(Self { file, readers, queue, runtime: Handle::current() })
    }

    /// Counts a read. A value of the wrong type is counted where the row is decoded.
    fn count_read<T>(&self, result: DbResult<T>) -> DbResult<T> {
        if result.is_ok() {
            self.file.monitor().succeeded(StoreOperation::Read);
        }
        result
    }

    async fn close(&self) {
        self.readers.close().await;
        self.queue.close().await;
    }
}

impl Database for SqliteDatabase {
    const IS_REMOTE: bool = false;

    async fn run<C: WriteTx>(&self, write: C) -> Result<C::Outcome> {
        self.queue.run(write).await
    }

    /// Reads on another thread.
    async fn rows(&self, statement: Statement, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        self.count_read(self.readers.rows(statement.sqlite, values).await)
    }

    async fn row(&self, statement: Statement, values: &[Value<'_>]) -> DbResult<Option<Row>> {
        self.count_read(self.readers.row(statement.sqlite, values).await)
    }

    fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn error(&self, fault: DbError) -> Error {
        self.file.error(StoreOperation::Read, fault)
    }
}

#[cold]
fn closed() -> Error {
    Error::unavailable("the store is closed")
}
