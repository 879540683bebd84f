//! Paths, timeouts and connection settings of SQLite files.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig, types::ToSql};
use transcript_core::{Error, Result};

use super::session::SqliteSession;
use crate::{error::DbResult, migration::Migration};

/// Options of one SQLite file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file. It and its folder are created if missing.
    pub path: PathBuf,
    /// Number of connections that read in parallel: 1 to 64.
    ///
    /// This many read lists, and as many again single rows. They are opened on first use and stay open; one more
    /// connection writes.
    pub readers: u32,
    /// How long a call waits in the queue and for a lock of another process: 100 ms to one hour.
    pub busy_timeout: Duration,
}

impl SqliteOptions {
    /// A file with this path, 4 readers and a timeout of 5 seconds.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), readers: 4, busy_timeout: Duration::from_secs(5) }
    }
}

impl FromStr for SqliteOptions {
    type Err = Error;

    /// Parses `sqlite://PATH`, the form of the settings `storage.url` and `storage.archive_url`.
    ///
    /// The path is taken literally: it has no escapes and no options.
    fn from_str(url: &str) -> Result<Self> {
        let path =
            url.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest)).ok_or_else(
                || Error::invalid("a SQLite database URL must be sqlite:// and the path of its file"),
            )?;
        match path {
            "" => Err(Error::invalid("a SQLite database URL needs the path of its file after sqlite://")),
            ":memory:" => Err(Error::invalid(
                "SQLite needs a file: for a store in memory, use the memory stores of transcript-core",
            )),
            path => Ok(Self::new(path)),
        }
    }
}

/// The longest timeout: SQLite counts milliseconds in 31 bits.
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// The shortest timeout: time for one attempt.
const TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The longest single wait of the writing connection for a lock.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(100);
/// Log size at which the main file is checkpointed.
///
/// It is below `journal_size_limit`: a truncated log must grow again, which costs every commit more than
/// overwriting existing pages.
const LOG_BYTES: u32 = 48 << 20;
/// Page cache of the main file's writing connection.
const CACHE_BYTES: u32 = 16 << 20;
/// Each reader has a cache of pages.
const READERS_MAX: u32 = 64;
/// The bounds of [`reader_cache_kib`].
const READER_CACHE_BYTES_MIN: u64 = 512 << 10;
const READER_CACHE_BYTES_MAX: u64 = 16 << 20;

impl SqliteOptions {
    /// The options, clamped to their bounds.
    pub(crate) fn bounded(self) -> Self {
        Self {
            readers: self.readers.clamp(1, READERS_MAX),
            busy_timeout: self.busy_timeout.clamp(TIMEOUT_MIN, TIMEOUT_MAX),
            ..self
        }
    }
}

/// Pragmas of every connection.
///
/// Memory mapping is off: it gains nothing for bodies of some 20 KB, and it made reads with a cold page cache ten
/// times slower.
const SETTINGS: [(&str, &str); 6] = [
    // On Apple systems only this waits for the disk itself; elsewhere it has no effect.
    ("fullfsync", "ON"),
    ("checkpoint_fullfsync", "ON"),
    ("mmap_size", "0"),
    ("trusted_schema", "OFF"),
    ("temp_store", "MEMORY"),
    // A burst of writes must not leave a large log file behind.
    ("journal_size_limit", "67108864"),
];

/// How a connection locks its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLocking {
    /// Only during each transaction.
    Normal,
    /// From the first transaction until the connection is closed.
    #[cfg(feature = "postgres")]
    Exclusive,
}

/// One kind of file: its application id, format and migrations.
#[derive(Debug)]
pub(crate) struct FileKind {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// Name of the store in logs and metrics.
    pub(crate) store: &'static str,
    /// SQLite's `application_id`, which identifies the files of this program.
    pub(crate) application_id: i32,
    /// Page size in bytes, fixed when the file is created.
    pub(crate) page_size: u32,
    /// Whether only the owner can read it.
    pub(crate) private: bool,
    /// The migrations in order; the number of the last is the schema version.
    pub(crate) migrations: &'static [Migration],
}

impl FileKind {
    /// Opens a writing connection; [`super::wal_sync`] syncs its commits.
    ///
    /// It waits for a lock in short steps, so that the write queue can check deadlines in between. On the main file
    /// it checkpoints the log only every 48 MiB: the pages of limits, balances and the entries' index are written
    /// many times, and a checkpoint copies only the last version of each.
    pub(crate) fn open_writer(
        &self,
        file: &Path,
        busy_timeout: Duration,
        locking: FileLocking,
    ) -> DbResult<SqliteSession> {
        let connection = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE, busy_timeout.min(LOCK_WAIT_MAX))?;
        let set = |name, value: &dyn ToSql| connection.pragma_update(None, name, value);
        // Page size and locking mode have no effect after the journal mode.
        set("page_size", &self.page_size)?;
        if locking != FileLocking::Normal {
            set("locking_mode", &"EXCLUSIVE")?;
        }
        set("journal_mode", &"WAL")?;
        set("synchronous", &"NORMAL")?;
        set("foreign_keys", &"ON")?;
        // Erased personal data must not remain in free pages.
        set("secure_delete", &if self.private { "ON" } else { "OFF" })?;
        if self.private {
            set("wal_autocheckpoint", &(LOG_BYTES / self.page_size))?;
            set("cache_size", &-i64::from(CACHE_BYTES / 1_024))?;
        }
        for (name, value) in SETTINGS {
            set(name, &value)?;
        }
        Ok(SqliteSession::new(connection))
    }

    /// Opens a connection that changes nothing in the file, not even its journal mode.
    pub(crate) fn open_probe(file: &Path, busy_timeout: Duration) -> DbResult<SqliteSession> {
        Ok(SqliteSession::new(open(file, OpenFlags::SQLITE_OPEN_READ_ONLY, busy_timeout)?))
    }
}

/// Opens a connection that can only read. It never waits for a lock, because that would block a thread.
pub(super) fn open_reader(file: &Path) -> DbResult<SqliteSession> {
    let connection = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE, Duration::ZERO)?;
    for (name, value) in SETTINGS.into_iter().chain([("query_only", "ON")]) {
        connection.pragma_update(None, name, value)?;
    }
    let length = std::fs::metadata(file).map_or(0, |file| file.len());
    connection.pragma_update(None, "cache_size", -reader_cache_kib(length))?;
    Ok(SqliteSession::new(connection))
}

fn open(file: &Path, access: OpenFlags, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(file, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(busy_timeout)?;
    // Without it, a prepared statement that compares a parameter with a range is planned again for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Page cache of a reading connection in KiB, for the inner index pages: about a thousandth of the file.
///
/// A row itself is seldom read twice, and is read faster through a small cache.
fn reader_cache_kib(length: u64) -> i64 {
    let bytes = (READER_CACHE_BYTES_MIN + length / 1_024).min(READER_CACHE_BYTES_MAX);
    i64::try_from(bytes / 1_024).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_url_path_is_literal() {
        for (url, path) in [
            ("sqlite:///var/lib/verbatim/verbatim.db", "/var/lib/verbatim/verbatim.db"),
            ("sqlite://verbatim.db", "verbatim.db"),
            ("sqlite:verbatim.db", "verbatim.db"),
            ("sqlite:///srv/50%20?mode=x/a.db", "/srv/50%20?mode=x/a.db"),
        ] {
            assert_eq!(url.parse::<SqliteOptions>().unwrap().path, Path::new(path), "{url}");
        }
        for url in ["", "sqlite:", "sqlite://", "sqlite://:memory:", "postgres://localhost/x", "verbatim.db"]
        {
            assert!(url.parse::<SqliteOptions>().is_err(), "{url}");
        }
    }
}
