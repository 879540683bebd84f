//! Database errors and their mapping to errors of the ports.

#[cfg(feature = "sqlite")]
use std::path::Path;

use transcript_core::{Error, ErrorKind, Retry};

#[cfg(feature = "sqlite")]
use crate::monitor::StoreErrorKind;

/// An error that ends a transaction early: a rejection by this crate, or an error of the database.
#[derive(Debug)]
pub(crate) enum DbError {
    /// An error of the port, found while the transaction ran; the connection is intact.
    Rejected(Error),
    /// A statement or the database failed.
    #[cfg(feature = "postgres")]
    Sql(sqlx::Error),
    /// A statement or the file failed.
    #[cfg(feature = "sqlite")]
    Sqlite(rusqlite::Error),
    /// A stored value has another type than its column.
    Unreadable,
    /// The work panicked; its connection is not reused.
    #[cfg(feature = "sqlite")]
    Panicked,
    /// The database file or its log was deleted or replaced: writes would be lost.
    #[cfg(feature = "sqlite")]
    Replaced,
    /// The server rejected a new connection, for a reason that may pass.
    #[cfg(feature = "postgres")]
    NotConnected(sqlx::Error),
    /// The server did not respond in time.
    #[cfg(feature = "postgres")]
    TimedOut,
}

impl From<Error> for DbError {
    fn from(error: Error) -> Self {
        Self::Rejected(error)
    }
}

#[cfg(feature = "postgres")]
impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// The result of work inside the database.
pub(crate) type DbResult<T> = Result<T, DbError>;

impl DbError {
    /// Whether a row cannot be decoded. Others may be readable.
    pub(crate) fn is_damaged(&self) -> bool {
        match self {
            Self::Rejected(error) => error.kind() == ErrorKind::Corrupt,
            error => matches!(error, Self::Unreadable),
        }
    }
}

#[cfg(feature = "sqlite")]
impl DbError {
    /// Whether another connection holds a needed lock: a retry can succeed.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.code().map(primary), Some(5 | 6))
    }

    /// Whether the disk failed to sync (`SQLITE_IOERR_FSYNC`): earlier writes may be lost as well.
    pub(crate) fn is_sync_failure(&self) -> bool {
        self.code() == Some(1034)
    }

    /// Whether the disk is full: a commit with this error is not stored, because its last page is not complete.
    pub(crate) fn is_full(&self) -> bool {
        self.store_error_kind() == Some(StoreErrorKind::Full)
    }

    /// The kind of a failure of SQLite; `None` for a rejection by this crate.
    pub(crate) fn store_error_kind(&self) -> Option<StoreErrorKind> {
        use StoreErrorKind::{Busy, Corrupt, Full, Io, Other, ReadOnly};
        match self {
            Self::Rejected(_) => return None,
            Self::Unreadable => return Some(Corrupt),
            Self::Replaced => return Some(Io),
            _ => {}
        }
        Some(match self.code().map(primary) {
            Some(5 | 6) => Busy,
            Some(3 | 8 | 23) => ReadOnly,
            Some(10 | 14) => Io,
            Some(11 | 26) => Corrupt,
            Some(13) => Full,
            _ => Other,
        })
    }

    /// Whether it is enough to undo one write: the transaction and its connection are intact.
    ///
    /// The numbers are SQLite's result codes for a wrong statement, a value that is too big, a violated
    /// constraint, a value of the wrong type, and a wrong parameter. After other errors SQLite may have rolled
    /// the transaction back.
    pub(crate) fn is_limited_to_write(&self) -> bool {
        match self {
            Self::Rejected(_) | Self::Unreadable => true,
            // Without a code the error is not one of the database.
            Self::Sqlite(_) => self.code().is_none_or(|code| matches!(primary(code), 1 | 18 | 19 | 20 | 25)),
            #[cfg(feature = "postgres")]
            Self::Sql(_) | Self::NotConnected(_) | Self::TimedOut => false,
            Self::Panicked | Self::Replaced => false,
        }
    }

    /// SQLite's extended result code.
    fn code(&self) -> Option<i32> {
        match self {
            Self::Sqlite(error) => Some(error.sqlite_error()?.extended_code),
            _ => None,
        }
    }

    /// The error that a port returns; its message names the file.
    #[cold]
    pub(crate) fn into_error(self, file: &Path) -> Error {
        match (self.code(), self) {
            (_, Self::Rejected(error)) => error,
            (_, Self::Unreadable) => {
                corrupt(format!("a row of the database {} cannot be read back", file.display()))
            }
            (_, Self::Panicked) => Error::unexpected(format!(
                "an internal error ended a write to the database {}",
                file.display()
            )),
            (_, Self::Replaced) => replaced(file),
            (code, error) => {
                tracing::debug!(?error, "database call failed");
                let failure = code.map_or_else(|| invalid_query(file), |code| from_code(code, file));
                match error {
                    Self::Sqlite(cause) => failure.with_cause(Some(transcript_core::ErrorCause::new(cause))),
                    _ => failure,
                }
            }
        }
    }
}

/// The error for a query that SQLite did not receive.
#[cfg(feature = "sqlite")]
#[cold]
fn invalid_query(file: &Path) -> Error {
    Error::unexpected(format!(
        "invalid query on the database {}: this is a defect, please report it",
        file.display()
    ))
}

/// The error for a file that is no longer at its path.
#[cfg(feature = "sqlite")]
#[cold]
fn replaced(file: &Path) -> Error {
    let message = format!(
        "the database {} was deleted or replaced while it was open: put the file back, or restore a backup and restart",
        file.display()
    );
    Error::new(ErrorKind::Unavailable, Retry::Never, message)
}

/// The error for stored data that cannot be decoded.
#[cold]
pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::corrupt(message)
}

/// The schema version while rows are being copied.
///
/// It is larger than any real version, so every version of the program rejects it.
pub(crate) const INCOMPLETE_COPY: u32 = 1_000_000_000;

/// The error for a database whose copy is incomplete.
#[cold]
pub(crate) fn incomplete_copy(name: impl std::fmt::Display) -> Error {
    Error::unsupported(format!(
        "the copy to {name} is incomplete: run the same `verbatim storage copy` again to continue it, or delete \
             the copied data and start over"
    ))
}

/// The error for the target of a copy with the tables of an earlier version.
///
/// It is not migrated: the servers that use it could not start again.
#[cfg(all(feature = "sqlite", feature = "postgres"))]
#[cold]
pub(crate) fn older_target(name: impl std::fmt::Display) -> Error {
    Error::conflict(format!(
        "{name} already has the tables of an earlier version of this program: choose another target, or delete this one \
         if it is not needed"
    ))
}

/// `SQLITE_IOERR_SHMSIZE`: the index of the log cannot grow, because the disk is full.
#[cfg(feature = "sqlite")]
const SHM_FULL: i32 = 4874;

/// A result code without its extension: the low byte. A full disk has one code (13), whatever could not grow.
#[cfg(feature = "sqlite")]
fn primary(code: i32) -> i32 {
    if code == SHM_FULL { 13 } else { code & 0xff }
}

/// Whether this process or the system has too many open files: SQLite reports no cause if it cannot open a file.
#[cfg(all(feature = "sqlite", unix))]
fn is_out_of_files() -> bool {
    use rustix::io::Errno;
    /// More files than a connection needs. Those of the one that failed may be closed again.
    const FILES: usize = 8;
    // Not the database itself: closing it would end the locks of other connections of this process.
    let opened: std::io::Result<Vec<_>> = (0..FILES).map(|_| std::fs::File::open("/")).collect();
    let cause = opened.err().and_then(|error| Errno::from_io_error(&error));
    cause.is_some_and(|cause| [Errno::MFILE, Errno::NFILE].contains(&cause))
}

#[cfg(all(feature = "sqlite", not(unix)))]
fn is_out_of_files() -> bool {
    false
}

/// Maps SQLite's result codes to errors of the ports.
///
/// SQLite's messages are omitted where they add nothing: they may quote stored data.
#[cfg(feature = "sqlite")]
fn from_code(code: i32, file: &Path) -> Error {
    use ErrorKind::{Corrupt, Unavailable, Unexpected, Unsupported};
    let (code, extended, file) = (primary(code), code, file.display());
    let (kind, retry) = match code {
        5..=7 => (Unavailable, Retry::Backoff),
        10 | 13 | 14 => (Unavailable, Retry::Never),
        3 | 8 | 23 => (Unsupported, Retry::Never),
        11 | 26 => (Corrupt, Retry::Never),
        _ => (Unexpected, Retry::Never),
    };
    let message = match code {
        5 | 6 => format!("the database {file} is locked by another process: retry in a few seconds"),
        3 | 8 | 23 => {
            format!("the database {file} is read-only: allow this user to write the file and its folder")
        }
        11 | 26 => {
            format!("{file} is damaged or is no SQLite database: restore it from a backup, or move it away")
        }
        13 => format!("the disk is full: the database {file} cannot grow, so nothing was stored"),
        14 if is_out_of_files() => format!(
            "the database {file} cannot be opened: too many files are open; raise the limit (ulimit -n or LimitNOFILE)"
        ),
        14 => format!(
            "the database {file} cannot be opened: check that the file and its folder are this user's"
        ),
        7 => format!("out of memory while using the database {file}"),
        10 => format!("the disk failed to read or write the database {file}: check the disk and its space"),
        _ => format!("the database {file} rejected a statement (code {extended})"),
    };
    Error::new(kind, retry, message)
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use std::time::Duration;

    use rusqlite::{Connection, OpenFlags};

    use super::*;

    /// The error of a statement, on a new connection to a small file.
    fn failure(flags: OpenFlags, statements: &str) -> Error {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("small.db");
        let first = Connection::open(&file).unwrap();
        first.execute_batch("CREATE TABLE small (x BLOB UNIQUE) STRICT").unwrap();
        let connection = Connection::open_with_flags(&file, flags).unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        if statements == "BEGIN IMMEDIATE" {
            first.execute_batch(statements).unwrap();
        }
        let fault = DbError::from(connection.execute_batch(statements).unwrap_err());
        assert_eq!(fault.is_busy(), statements == "BEGIN IMMEDIATE");
        fault.into_error(&file)
    }

    fn check(error: &Error, kind: ErrorKind, retry: Retry, expected: &str) {
        assert_eq!((error.kind(), error.retry()), (kind, retry), "{error}");
        assert!(error.message().contains(expected), "{error}");
        assert!(error.message().contains("small.db"), "{error}");
    }

    #[test]
    fn sqlite_error_message_names_cause() {
        use ErrorKind::{Unavailable, Unexpected, Unsupported};
        let writable = OpenFlags::default();
        check(
            &failure(writable, "BEGIN IMMEDIATE"),
            Unavailable,
            Retry::Backoff,
            "locked by another process",
        );
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let error = failure(read_only, "INSERT INTO small VALUES (x'00')");
        check(&error, Unsupported, Retry::Never, "read-only");
        let full = "PRAGMA max_page_count = 3; INSERT INTO small VALUES (zeroblob(100000))";
        check(&failure(writable, full), Unavailable, Retry::Never, "the disk is full");
        let shm_full = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(SHM_FULL), None);
        let error = DbError::from(shm_full).into_error(Path::new("small.db"));
        check(&error, Unavailable, Retry::Never, "the disk is full");
        let twice = "INSERT INTO small VALUES (x'5E'), (x'5E')";
        check(&failure(writable, twice), Unexpected, Retry::Never, "code 2067");
    }

    #[test]
    fn sqlite_error_without_code_is_mapped() {
        let file = Path::new("small.db");
        check(&DbError::Unreadable.into_error(file), ErrorKind::Corrupt, Retry::Never, "cannot be read back");
        let missing = DbError::from(rusqlite::Error::QueryReturnedNoRows);
        assert!(missing.is_limited_to_write());
        let missing = missing.into_error(file);
        check(&missing, ErrorKind::Unexpected, Retry::Never, "invalid query");
        assert!(std::error::Error::source(&missing).is_some_and(|cause| cause.is::<rusqlite::Error>()));
    }
}
