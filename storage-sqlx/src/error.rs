//! Database errors and their mapping to errors of the ports.

#[cfg(feature = "sqlite")]
use std::path::Path;

use transcript_core::{Error, ErrorKind, Retry};

/// An error that ends a transaction early: a rejection by this crate, or an error of the database.
#[derive(Debug)]
pub(crate) enum DbError {
    /// An error of the port, found while the transaction ran; the connection is intact.
    Rejected(Error),
    /// A statement or the database failed.
    Sql(sqlx::Error),
    /// A point read on the caller's thread failed.
    #[cfg(feature = "sqlite")]
    PointRead(rusqlite::Error),
    /// A stored value has another type than its column.
    #[cfg(feature = "sqlite")]
    Unreadable,
    /// The work panicked; its connection is not reused.
    #[cfg(feature = "sqlite")]
    Panicked,
}

/// The result of work inside the database.
pub(crate) type DbResult<T> = Result<T, DbError>;

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        Self::PointRead(error)
    }
}

impl From<Error> for DbError {
    fn from(error: Error) -> Self {
        Self::Rejected(error)
    }
}

#[cfg(feature = "sqlite")]
impl DbError {
    /// Whether another connection holds a needed lock: a retry can succeed.
    pub(crate) fn is_busy(&self) -> bool {
        let code = match self {
            Self::Sql(error) => code(error),
            Self::PointRead(error) => point_read_code(error),
            Self::Rejected(_) | Self::Unreadable | Self::Panicked => None,
        };
        matches!(code.map(primary), Some(5 | 6))
    }

    /// Whether the disk failed to sync (`SQLITE_IOERR_FSYNC`): earlier writes may be lost as well.
    pub(crate) fn is_sync_failure(&self) -> bool {
        matches!(self, Self::Sql(error) if code(error) == Some(1034))
    }

    /// Whether it is enough to undo one write: the transaction and its connection are intact.
    ///
    /// The numbers are SQLite's result codes for a wrong statement, a value that is too big, a violated
    /// constraint, a value of the wrong type, and a wrong parameter. After other errors SQLite may have rolled
    /// the transaction back.
    pub(crate) fn is_limited_to_write(&self) -> bool {
        match self {
            Self::Rejected(_) | Self::Unreadable => true,
            Self::Sql(error) => match code(error).map(primary) {
                Some(code) => matches!(code, 1 | 18 | 19 | 20 | 25),
                None => matches!(
                    error,
                    sqlx::Error::RowNotFound
                        | sqlx::Error::ColumnIndexOutOfBounds { .. }
                        | sqlx::Error::ColumnNotFound(_)
                        | sqlx::Error::ColumnDecode { .. }
                        | sqlx::Error::Decode(_)
                        | sqlx::Error::Encode(_)
                ),
            },
            // A point read changes nothing.
            Self::PointRead(_) | Self::Panicked => false,
        }
    }

    /// The error that a port returns; its message names the file.
    #[cold]
    pub(crate) fn into_error(self, file: &Path) -> Error {
        match self {
            Self::Rejected(error) => error,
            Self::Sql(error) => from_sql(&error, file),
            Self::PointRead(error) => from_point_read(&error, file),
            Self::Unreadable => unreadable(file),
            Self::Panicked => Error::unexpected(format!(
                "an internal error ended a write to the database {}",
                file.display()
            )),
        }
    }
}

/// The error for a request that contradicts stored data.
#[cold]
pub(crate) fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, message)
}

/// The error for stored data that cannot be decoded.
#[cold]
pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, Retry::Never, message)
}

/// The schema version while rows are being copied.
///
/// It is larger than any real version, so every version of the program rejects it.
pub(crate) const INCOMPLETE_COPY: u32 = 1_000_000_000;

/// The error for a database whose copy is incomplete.
#[cold]
pub(crate) fn incomplete_copy(name: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Retry::Never,
        format!(
            "the copy to {name} is incomplete: run the same `verbatim storage copy` again to continue it, or delete \
             the copied data and start over"
        ),
    )
}

/// SQLite's extended result code.
#[cfg(feature = "sqlite")]
fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

#[cfg(feature = "sqlite")]
fn point_read_code(error: &rusqlite::Error) -> Option<i32> {
    Some(error.sqlite_error()?.extended_code)
}

/// A result code without its extension: the low byte.
#[cfg(feature = "sqlite")]
fn primary(code: i32) -> i32 {
    code & 0xff
}

/// Maps SQLite's result codes to errors of the ports.
///
/// SQLite's messages are omitted where they add nothing: they may quote stored data.
#[cfg(feature = "sqlite")]
fn from_code(code: i32, file: &Path) -> Error {
    use ErrorKind::{Corrupt, Unavailable, Unexpected, Unsupported};
    let file = file.display();
    let (kind, retry, message) = match primary(code) {
        5 | 6 => (
            Unavailable,
            Retry::Backoff,
            format!("the database {file} is locked by another process: retry in a few seconds"),
        ),
        3 | 8 | 23 => (
            Unsupported,
            Retry::Never,
            format!("the database {file} is read-only: allow this user to write the file and its folder"),
        ),
        11 | 26 => (
            Corrupt,
            Retry::Never,
            format!("{file} is damaged or is no SQLite database: restore it from a backup, or move it away"),
        ),
        13 => (
            Unavailable,
            Retry::Backoff,
            format!("the disk is full: the database {file} cannot grow, so nothing was stored"),
        ),
        14 => (
            Unavailable,
            Retry::Never,
            format!(
                "the database {file} cannot be opened: check that the file and its folder are this user's"
            ),
        ),
        7 => (Unavailable, Retry::Backoff, format!("out of memory while using the database {file}")),
        10 => (
            Unavailable,
            Retry::Backoff,
            format!("the disk failed to read or write the database {file}: check the disk and its space"),
        ),
        _ => (Unexpected, Retry::Never, format!("the database {file} rejected a statement (code {code})")),
    };
    Error::new(kind, retry, message)
}

/// Maps an error of sqlx.
#[cfg(feature = "sqlite")]
fn from_sql(error: &sqlx::Error, file: &Path) -> Error {
    tracing::debug!(%error, "database call failed");
    match (code(error), error) {
        (Some(code), _) => from_code(code, file),
        (None, sqlx::Error::Io(_)) => Error::new(
            ErrorKind::Unavailable,
            Retry::Backoff,
            format!("the database {} cannot be reached", file.display()),
        ),
        (None, sqlx::Error::WorkerCrashed) => Error::new(
            ErrorKind::Unavailable,
            Retry::Backoff,
            format!("the connection to the database {} was lost", file.display()),
        ),
        (None, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => unreadable(file),
        (None, _) => invalid_query(file),
    }
}

/// Maps an error of a point read.
#[cfg(feature = "sqlite")]
fn from_point_read(error: &rusqlite::Error, file: &Path) -> Error {
    tracing::debug!(%error, "database call failed");
    match (point_read_code(error), error) {
        (Some(code), _) => from_code(code, file),
        (None, rusqlite::Error::FromSqlConversionFailure(..)) => unreadable(file),
        (None, _) => invalid_query(file),
    }
}

#[cfg(feature = "sqlite")]
fn unreadable(file: &Path) -> Error {
    corrupt(format!("a row of the database {} cannot be read back", file.display()))
}

#[cfg(feature = "sqlite")]
fn invalid_query(file: &Path) -> Error {
    let message =
        format!("invalid query on the database {}: this is a defect, please report it", file.display());
    Error::new(ErrorKind::Unexpected, Retry::Never, message)
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use std::time::Duration;

    use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};

    use super::*;

    /// The error of a statement, on a new connection to a small file.
    async fn failure(
        options: impl FnOnce(SqliteConnectOptions) -> SqliteConnectOptions,
        statements: &'static str,
    ) -> Error {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("small.db");
        let known = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let known = known.busy_timeout(Duration::ZERO);
        let mut first = known.connect().await.unwrap();
        sqlx::raw_sql("CREATE TABLE small (x BLOB UNIQUE) STRICT").execute(&mut first).await.unwrap();
        let mut connection = options(known.clone()).connect().await.unwrap();
        if statements.is_empty() {
            sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut first).await.unwrap();
        }
        let statements = if statements.is_empty() { "BEGIN IMMEDIATE" } else { statements };
        let error = sqlx::raw_sql(statements).execute(&mut connection).await.unwrap_err();
        let fault = DbError::from(error);
        assert_eq!(fault.is_busy(), statements == "BEGIN IMMEDIATE");
        fault.into_error(&file)
    }

    fn check(error: &Error, kind: ErrorKind, retry: Retry, expected: &str) {
        assert_eq!((error.kind(), error.retry()), (kind, retry), "{error}");
        assert!(error.message().contains(expected), "{error}");
        assert!(error.message().contains("small.db"), "{error}");
    }

    #[tokio::test]
    async fn sqlite_error_message_names_cause() {
        use ErrorKind::{Unavailable, Unexpected, Unsupported};
        let same = |options| options;
        check(&failure(same, "").await, Unavailable, Retry::Backoff, "locked by another process");
        let read_only = |options: SqliteConnectOptions| options.read_only(true);
        let error = failure(read_only, "INSERT INTO small VALUES (x'00')").await;
        check(&error, Unsupported, Retry::Never, "read-only");
        let full = "PRAGMA max_page_count = 3; INSERT INTO small VALUES (zeroblob(100000))";
        check(&failure(same, full).await, Unavailable, Retry::Backoff, "the disk is full");
        let twice = "INSERT INTO small VALUES (x'5E'), (x'5E')";
        check(&failure(same, twice).await, Unexpected, Retry::Never, "code 2067");
    }

    #[test]
    fn sqlx_error_kind_is_mapped() {
        let file = Path::new("small.db");
        let error = |fault: sqlx::Error| DbError::from(fault).into_error(file);
        check(&error(sqlx::Error::WorkerCrashed), ErrorKind::Unavailable, Retry::Backoff, "was lost");
        check(
            &error(sqlx::Error::Decode("x".into())),
            ErrorKind::Corrupt,
            Retry::Never,
            "cannot be read back",
        );
        check(&error(sqlx::Error::RowNotFound), ErrorKind::Unexpected, Retry::Never, "invalid query");
    }
}
