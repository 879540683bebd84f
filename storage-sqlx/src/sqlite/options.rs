//! Where a database lies and how it is opened.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use transcript_core::{Error, Result};

/// How one SQLite file is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file. It and its folder are made where they are missing.
    pub path: PathBuf,
    /// How many connections read at the same time, at least 1. They are opened when they are first
    /// needed and then held open; one more connection writes. More than 64 are not opened. In an archive as many again
    /// look single transcripts up, on the threads of those who ask.
    pub readers: u32,
    /// How long a call waits for its turn and for a lock that another process holds: at least a tenth of a
    /// second, at most an hour. Who spends or is charged together with others shares the patience of the first of them.
    pub busy_timeout: Duration,
}

impl SqliteOptions {
    /// A file with this path, 4 readers, and 5 seconds of patience.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), readers: 4, busy_timeout: Duration::from_secs(5) }
    }
}

impl FromStr for SqliteOptions {
    type Err = Error;

    /// Reads `sqlite://PATH`, as the settings `storage.url` and `storage.archive_url` have it. The path
    /// is taken letter by letter: nothing in it is an escape or an option.
    fn from_str(url: &str) -> Result<Self> {
        let path =
            url.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest)).ok_or_else(
                || Error::invalid("a SQLite database is given as sqlite:// and the path of its file"),
            )?;
        match path {
            "" => Err(Error::invalid("a SQLite database needs the path of its file after sqlite://")),
            ":memory:" => Err(Error::invalid(
                "a SQLite database is a file here: for a store in memory take the core's own memory stores",
            )),
            path => Ok(Self::new(path)),
        }
    }
}

/// The longest wait for a lock: SQLite counts milliseconds in 31 bits.
const PATIENCE_MAX: Duration = Duration::from_secs(3_600);
/// The shortest wait: a call must have the time to be tried once.
const PATIENCE_MIN: Duration = Duration::from_millis(100);
/// How long the writing connection waits for a lock in one turn.
const LOCK_WAIT_MAX: Duration = Duration::from_millis(100);
/// How long the log of the file of money and people grows before it is copied into the file. It stays below what
/// `journal_size_limit` leaves of it: a log that is cut off must grow again, which costs every commit more than to
/// write over what is there.
const LOG_BYTES: u32 = 48 << 20;
/// How much of that file the connection that writes keeps in memory.
const CACHE_BYTES: u32 = 16 << 20;
/// Each reader has a thread and a cache of pages.
const READERS_MAX: u32 = 64;

impl SqliteOptions {
    /// The options, within their bounds.
    pub(crate) fn bounded(self) -> Self {
        Self {
            readers: self.readers.clamp(1, READERS_MAX),
            busy_timeout: self.busy_timeout.clamp(PATIENCE_MIN, PATIENCE_MAX),
            ..self
        }
    }
}

/// What every connection is told.
pub(super) const SETTINGS: [(&str, &str); 6] = [
    // On Apple's systems only this waits for the disk itself; elsewhere it says nothing.
    ("fullfsync", "ON"),
    ("checkpoint_fullfsync", "ON"),
    ("mmap_size", "0"),
    ("trusted_schema", "OFF"),
    ("temp_store", "MEMORY"),
    // A burst of writes must not leave a large file behind for ever.
    ("journal_size_limit", "67108864"),
];
/// What a connection that reads is told, too.
pub(super) const READS_ONLY: (&str, &str) = ("query_only", "ON");

/// What makes one kind of file: its mark, its form and its migrations.
#[derive(Debug)]
pub(crate) struct FileKind {
    /// What people call it.
    pub(crate) name: &'static str,
    /// SQLite's `application_id`, by which a file of ours is told from others.
    pub(crate) application_id: i32,
    /// The size of a page in bytes, fixed when the file is made.
    pub(crate) page_size: u32,
    /// Whether only the owner may read it.
    pub(crate) private: bool,
    /// The steps that make its tables, in order; the number of the last is the schema's version.
    pub(crate) migrations: &'static [super::schema::Migration],
}

impl FileKind {
    /// How a connection to such a file is opened.
    ///
    /// Commits reach the disk before they are acknowledged (`synchronous=FULL`, but for the connection of
    /// [`Self::writer`]). Memory mapping is off: for bodies of some 20 KB it gains nothing, and with a cold page cache it made reads ten times
    /// slower.
    fn connection(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .page_size(self.page_size)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(busy_timeout)
            .foreign_keys(true)
            // What is erased of a person must not linger in free pages.
            .pragma("secure_delete", if self.private { "ON" } else { "OFF" })
            .statement_cache_capacity(128);
        SETTINGS.into_iter().fold(options, |options, (name, value)| options.pragma(name, value))
    }

    /// The connection that writes. What it commits is waited for by [`super::keeper`]. It waits for a lock in short turns, between which the queue looks whose
    /// patience is over.
    ///
    /// It copies the log into the file only every 48 MiB: the pages of limits, balances and the entries' index are
    /// written again and again, and of each only the last copy is copied.
    pub(crate) fn writer(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        let options = self.connection(file, busy_timeout.min(LOCK_WAIT_MAX));
        let options = options.synchronous(SqliteSynchronous::Normal);
        if !self.private {
            return quiet(options);
        }
        let pages = LOG_BYTES / self.page_size;
        let cache = format!("-{}", CACHE_BYTES / 1_024);
        quiet(options.pragma("wal_autocheckpoint", pages.to_string()).pragma("cache_size", cache))
    }

    /// A connection that reads, and cannot do anything else.
    pub(crate) fn reader(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        let options = self.connection(file, busy_timeout);
        quiet(options.pragma(READS_ONLY.0, READS_ONLY.1))
    }

    /// A connection that only looks: it changes nothing in the file, not even its journal mode.
    pub(crate) fn probe(&self, file: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
        quiet(SqliteConnectOptions::new().filename(file).read_only(true).busy_timeout(busy_timeout))
    }
}

/// Statements are not logged one by one: what happens is logged where it has a meaning.
fn quiet(options: SqliteConnectOptions) -> SqliteConnectOptions {
    use sqlx::ConnectOptions;
    options.disable_statement_logging()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_path_letter_by_letter() {
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
