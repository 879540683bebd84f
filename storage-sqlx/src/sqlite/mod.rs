//! The storage ports on SQLite: two files, each with one connection that writes and a few that read; for what every
//! look-up in the archive needs, a few more without threads of their own.
//!
//! `verbatim.db` holds money and people, `archive.db` the transcripts: their pages, their privacy and
//! their growth differ, and no transaction ever spans both.

mod archive;
mod charges;
mod directory;
mod keeper;
mod ledger;
mod limits;
mod lookups;
mod options;
mod orders;
mod outbox;
mod place;
#[cfg(test)]
mod plans;
mod readers;
mod replies;
pub(crate) mod schema;
mod secrets;
mod writer;

use std::{path::PathBuf, sync::Arc};

use rusqlite::types::Value;
use sqlx::sqlite::SqliteRow;
use tokio::runtime::Handle;
use transcript_core::{Error, Result};

pub use options::SqliteOptions;

use charges::Counter;
use lookups::{Lookups, Row};
pub(crate) use options::FileKind;
use readers::{Ask, Readers};
use schema::Migration;
use writer::{Change, Queue};

use crate::error::Work;

macro_rules! migration {
    ($version:literal, $folder:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../migrations/", $folder, "/", $name, ".sql")),
        }
    };
}

/// The file of money and people.
const MAIN: FileKind = FileKind {
    name: "accounts and credits",
    application_id: 0x5662_4D31, // "VbM1"
    page_size: 4_096,
    private: true,
    migrations: &[
        migration!(1, "main", "0001_create_ledger"),
        migration!(2, "main", "0002_create_directory"),
        migration!(3, "main", "0003_create_requests"),
        migration!(4, "main", "0004_index_what_ends"),
        migration!(5, "main", "0005_keep_paid_periods"),
        migration!(6, "main", "0006_index_purchases_spent"),
        migration!(7, "main", "0007_follow_payments"),
        migration!(8, "main", "0008_keep_the_anchor_before"),
        migration!(9, "main", "0009_index_orders_of_accounts"),
        migration!(10, "main", "0010_tell_charges_in_one_entry"),
    ],
};

/// The file of transcripts. Its pages are large, because a body of some 20 KB spans many small ones and a
/// cold read pays for each.
const ARCHIVE: FileKind = FileKind {
    name: "transcripts",
    application_id: 0x5662_4131, // "VbA1"
    page_size: 16_384,
    private: false,
    migrations: &[
        migration!(1, "archive", "0001_create_archive"),
        migration!(2, "archive", "0002_index_transcripts_by_track"),
        migration!(3, "archive", "0003_count_changes"),
        migration!(4, "archive", "0004_store_as_sent"),
        migration!(5, "archive", "0005_keep_cold_rows"),
    ],
};

#[cfg(feature = "postgres")]
pub(crate) use archive::cold::put as put_cold;

/// The kind of file that a part is in, for whoever copies it.
#[cfg(feature = "postgres")]
pub(crate) fn kind_of_file(part: &str) -> &'static FileKind {
    if part == "archive" { &ARCHIVE } else { &MAIN }
}

/// Makes a file ready to be opened, for whoever copies; its full path.
#[cfg(feature = "postgres")]
pub(crate) async fn prepare_file(kind: &'static FileKind, path: &std::path::Path) -> Result<PathBuf> {
    let path = path.to_owned();
    let prepared = tokio::task::spawn_blocking(move || place::prepare(&path, kind.private)).await;
    let prepared =
        prepared.map_err(|error| Error::unexpected(format!("looking at a file failed: {error}")))?;
    prepared.map(|(file, _)| file)
}

/// Ledger, directory, secrets, rate limits, replies, outbox and orders, in one SQLite file.
///
/// It implements [`transcript_core::ledger::Ledger`], [`transcript_core::directory::Directory`],
/// [`transcript_core::directory::Secrets`], [`transcript_core::limits::RateLimiter`],
/// [`transcript_core::accounts::Charges`], [`transcript_core::accounts::Replies`],
/// [`transcript_core::accounts::Outbox`] and [`transcript_core::accounts::Orders`].
///
/// Several processes may have the same file open. Nothing of it is kept in memory, so each sees at once
/// what the others have done. Dropping it closes the file; [`SqliteStore::close`] waits until it is.
///
/// # Cancellation
/// A change whose future is dropped is made whole or not at all: it runs in a task of the store.
#[derive(Debug)]
pub struct SqliteStore {
    database: Database,
    counter: Counter,
}

impl SqliteStore {
    /// Opens the file, making it and bringing its schema up to date where that is needed.
    ///
    /// It must be called inside a tokio runtime with time, whose tasks then do the writing. The futures of
    /// the ports' methods may be polled by any executor.
    ///
    /// # Errors
    /// - [`transcript_core::ErrorKind::Invalid`]: the path is a folder, or a database of something else.
    /// - [`transcript_core::ErrorKind::Unsupported`]: the file or its folder is read-only, or the file is
    ///   of a newer version; it is left as it is.
    /// - [`transcript_core::ErrorKind::Corrupt`]: the file is damaged or no database.
    /// - [`transcript_core::ErrorKind::Unavailable`]: it is locked by another process for longer than
    ///   [`SqliteOptions::busy_timeout`], or cannot be opened.
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        let database = Database::open(&MAIN, options).await?;
        let counter = Counter::new(&database);
        Ok(Self { database, counter })
    }

    /// Finishes what is under way and closes the file. Calls that come later fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// The archive, in one SQLite file. It implements [`transcript_core::archive::Archive`].
///
/// Several processes may have the same file open; see [`SqliteStore`] for closing and cancellation.
#[derive(Debug)]
pub struct SqliteArchive {
    /// Before the rest: the last connection to a file that is dropped has the log to copy, and that is not one of these.
    lookups: Lookups,
    database: Database,
}

impl SqliteArchive {
    /// Opens the file, making it and bringing its schema up to date where that is needed.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        let options = options.bounded();
        let (readers, busy_timeout) = (options.readers, options.busy_timeout);
        let database = Database::open(&ARCHIVE, options).await?;
        let lookups = Lookups::new(&database.file, readers, busy_timeout);
        Ok(Self { lookups, database })
    }

    /// Finishes what is under way and closes the file. Calls that come later fail.
    pub async fn close(&self) {
        self.lookups.close().await;
        self.database.close().await;
    }

    /// The row that a statement finds by its keys, brought into its form.
    async fn look_up<T>(
        &self,
        statement: &'static str,
        keys: &[Value],
        form: impl FnOnce(Row) -> Work<T>,
    ) -> Result<Option<T>> {
        let found = self.lookups.row(statement, keys).await.and_then(|row| row.map(form).transpose());
        found.map_err(|fault| fault.into_error(&self.database.file))
    }
}

/// One open file.
#[derive(Debug)]
struct Database {
    file: PathBuf,
    queue: Arc<Queue>,
    readers: Arc<Readers>,
    /// Where work and timers run, so that any executor may poll what the ports return.
    runtime: Handle,
}

impl Database {
    async fn open(kind: &'static FileKind, options: SqliteOptions) -> Result<Self> {
        let options = options.bounded();
        let patience = options.busy_timeout;
        let (file, connection) = schema::prepare_and_open(kind, &options.path, patience).await?;
        let queue = Queue::start(connection, kind.writer(&file, patience), file.clone(), patience)?;
        let readers = Arc::new(Readers::new(kind.reader(&file, patience), options.readers, patience));
        Ok(Self { file, queue: Arc::new(queue), readers, runtime: Handle::current() })
    }

    /// Makes a change, in one transaction of its own or shared with others.
    async fn make<C: Change>(&self, change: C) -> Result<C::Outcome> {
        self.queue.make(change).await
    }

    /// What one statement finds, each row brought into its form.
    async fn find<T>(
        &self,
        ask: impl Fn() -> Ask + Send + Sync,
        form: impl Fn(&SqliteRow) -> Work<T>,
    ) -> Result<Vec<T>> {
        let rows = self.readers.rows(ask).await.map_err(|fault| fault.into_error(&self.file))?;
        rows.iter().map(form).collect::<Work<_>>().map_err(|fault| fault.into_error(&self.file))
    }

    /// The first row that one statement finds, brought into its form.
    async fn find_first<T>(
        &self,
        ask: impl Fn() -> Ask + Send + Sync,
        form: impl Fn(&SqliteRow) -> Work<T>,
    ) -> Result<Option<T>> {
        let row = self.readers.row(ask).await.map_err(|fault| fault.into_error(&self.file))?;
        row.as_ref().map(form).transpose().map_err(|fault| fault.into_error(&self.file))
    }

    async fn close(&self) {
        self.queue.close().await;
        self.readers.close().await;
    }
}

#[cold]
fn closed() -> Error {
    Error::unavailable("the store is closed")
}
