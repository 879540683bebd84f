//! Paths, timeouts and connection settings of SQLite files.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use transcript_core::{Error, Result};

/// Options of one SQLite file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file. It and its folder are created if missing.
    pub path: PathBuf,
    /// Number of connections that read in parallel: 1 to 64.
    ///
    /// They are opened on first use and stay open; one more connection writes. An archive opens as many again for
    /// point reads on the callers' threads.
    pub readers: u32,
    /// How long a call waits in the queue and for a lock of another process: 100 ms to one hour.
    ///
    /// Spends and charges that run as one group share the timeout of the first of them.
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
/// Each reader has a thread and a cache of pages.
const READERS_MAX: u32 = 64;

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
pub(super) const SETTINGS: [(&str, &str); 6] = [
    // On Apple systems only this waits for the disk itself; elsewhere it has no effect.
    ("fullfsync", "ON"),
    ("checkpoint_fullfsync", "ON"),
    ("mmap_size", "0"),
    ("trusted_schema", "OFF"),
    ("temp_store", "MEMORY"),
    // A burst of writes must not leave a large log file behind.
    ("journal_size_limit", "67108864"),
];
/// An additional pragma of reading connections.
pub(super) const READS_ONLY: (&str, &str) = ("query_only", "ON");

/// One kind of file: its application id, format and migrations.
#[derive(Debug)]
pub(crate) struct FileKind {
    /// Name in messages.
    pub(crate) name: &'static str,
    /// SQLite's `application_id`, which identifies the files of this program.
    pub(crate) application_id: i32,
    /// Page size in bytes, fixed when the file is created.
    pub(crate) page_size: u32,
    /// Whether only the owner can read it.
    pub(crate) private: bool,
    /// The migrations in order; the number of the last is the schema version.
    pub(crate) migrations: &'static [super::schema::Migration],
}

impl FileKind {
    /// Connect options of such a file.
    ///
    /// Commits are synced before they are acknowledged (`synchronous=FULL`, except on the connection of
    /// [`Self::writer`]). Memory mapping is off: it gains nothing for bodies of some 20 KB, and it made reads with
    /// a cold page cache ten times slower.
    fn connection(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .page_size(self.page_size)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(busy_timeout)
            .foreign_keys(true)
            // Erased personal data must not remain in free pages.
            .pragma("secure_delete", if self.private { "ON" } else { "OFF" })
            .statement_cache_capacity(128);
        SETTINGS.into_iter().fold(options, |options, (name, value)| options.pragma(name, value))
    }

    /// Options of the writing connection; [`super::wal_sync`] syncs its commits.
    ///
    /// It waits for a lock in short steps, so that the write queue can check deadlines in between. It checkpoints
    /// the log only every 48 MiB: the pages of limits, balances and the entries' index are written many times, and
    /// a checkpoint copies only the last version of each.
    pub(crate) fn writer(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        let options = self.connection(file, busy_timeout.min(LOCK_WAIT_MAX));
        let options = options.synchronous(SqliteSynchronous::Normal);
        if !self.private {
            return without_statement_log(options);
        }
        let pages = LOG_BYTES / self.page_size;
        let cache = format!("-{}", CACHE_BYTES / 1_024);
        without_statement_log(
            options.pragma("wal_autocheckpoint", pages.to_string()).pragma("cache_size", cache),
        )
    }

    /// Options of a connection that can only read.
    pub(crate) fn reader(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        let options = self.connection(file, busy_timeout);
        without_statement_log(options.pragma(READS_ONLY.0, READS_ONLY.1))
    }

    /// Options of a connection that changes nothing in the file, not even its journal mode.
    pub(crate) fn probe(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        without_statement_log(
            SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(busy_timeout),
        )
    }
}

/// Disables the logging of single statements: operations log their events themselves.
fn without_statement_log(options: SqliteConnectOptions) -> SqliteConnectOptions {
    use sqlx::ConnectOptions;
    options.disable_statement_logging()
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
