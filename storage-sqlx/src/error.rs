//! What can go wrong in a database, and what the ports say about it.

#[cfg(feature = "sqlite")]
use std::path::Path;

use transcript_core::{Error, ErrorKind, Retry};

/// What ends a transaction early: a refusal of our own, or a fault of the database.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The port's own answer, found while the transaction ran; its connection is sound.
    Refused(Error),
    /// A statement or the database failed.
    Sql(sqlx::Error),
    /// The same, on a connection that is read on the caller's own thread.
    #[cfg(feature = "sqlite")]
    LookUp(rusqlite::Error),
    /// A defect of our own ended the work in its middle; the connection is not used again.
    #[cfg(feature = "sqlite")]
    Panicked,
}

/// The result of work inside the database.
pub(crate) type Work<T> = Result<T, Fault>;

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::LookUp(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

#[cfg(feature = "sqlite")]
impl Fault {
    /// Whether another connection holds the lock that was needed: waiting may help.
    pub(crate) fn is_busy(&self) -> bool {
        let code = match self {
            Self::Sql(error) => code(error),
            Self::LookUp(error) => code_of_look_up(error),
            Self::Refused(_) | Self::Panicked => None,
        };
        matches!(code.map(primary), Some(5 | 6))
    }

    /// Whether the disk has refused to keep what was written (`SQLITE_IOERR_FSYNC`): what came before it may be lost as well.
    pub(crate) fn is_of_the_disk(&self) -> bool {
        matches!(self, Self::Sql(error) if code(error) == Some(1034))
    }

    /// Whether undoing the one change is enough: the transaction and its connection are sound.
    ///
    /// The numbers are SQLite's result codes for a wrong statement, a value that is too big, a broken
    /// constraint, a value of the wrong type, and a wrong parameter. After others SQLite may have rolled the
    /// transaction back by itself.
    pub(crate) fn is_of_one_change(&self) -> bool {
        match self {
            Self::Refused(_) => true,
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
            // Nothing is changed there.
            Self::LookUp(_) | Self::Panicked => false,
        }
    }

    /// The error that a port returns; its sentence names the file.
    #[cold]
    pub(crate) fn into_error(self, file: &Path) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Sql(error) => from_sql(&error, file),
            Self::LookUp(error) => from_look_up(&error, file),
            Self::Panicked => {
                Error::unexpected(format!("a defect ended a change to the database {}", file.display()))
            }
        }
    }
}

/// A request that contradicts what is stored.
#[cold]
pub(crate) fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, message)
}

/// Stored data that cannot be read back.
#[cold]
pub(crate) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, Retry::Never, message)
}

/// The version of a schema whose rows are still being copied. It is larger than any that there will be, so programs of
/// every version refuse it.
pub(crate) const HALF_COPIED: u32 = 1_000_000_000;

/// What is said of a database whose copy has not ended.
#[cold]
pub(crate) fn half_copied(name: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        Retry::Never,
        format!(
            "{name} is half copied: run the same `verbatim storage copy` again, which goes on where it stopped, or \
             remove what is there and begin anew"
        ),
    )
}

/// SQLite's result code, with its extension.
#[cfg(feature = "sqlite")]
fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

#[cfg(feature = "sqlite")]
fn code_of_look_up(error: &rusqlite::Error) -> Option<i32> {
    Some(error.sqlite_error()?.extended_code)
}

/// A result code without its extension: the low byte.
#[cfg(feature = "sqlite")]
fn primary(code: i32) -> i32 {
    code & 0xff
}

/// The one place where SQLite's result codes become errors of the ports.
///
/// Its own messages are left out where they add nothing: they may quote what was stored.
#[cfg(feature = "sqlite")]
fn from_code(code: i32, file: &Path) -> Error {
    use ErrorKind::{Corrupt, Unavailable, Unexpected, Unsupported};
    let file = file.display();
    let (kind, retry, message) = match primary(code) {
        5 | 6 => (
            Unavailable,
            Retry::Backoff,
            format!("the database {file} is locked by another process: try again in a moment"),
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
        7 => (Unavailable, Retry::Backoff, format!("no memory was left to work on {file}")),
        10 => (
            Unavailable,
            Retry::Backoff,
            format!("the disk failed to read or write the database {file}: check the disk and its space"),
        ),
        _ => (Unexpected, Retry::Never, format!("the database {file} refused a statement (code {code})")),
    };
    Error::new(kind, retry, message)
}

/// What is said where no result code tells more.
#[cfg(feature = "sqlite")]
fn from_sql(error: &sqlx::Error, file: &Path) -> Error {
    tracing::debug!(%error, "a database fault");
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
        (None, _) => asked_wrongly(file),
    }
}

/// The same for a look-up.
#[cfg(feature = "sqlite")]
fn from_look_up(error: &rusqlite::Error, file: &Path) -> Error {
    tracing::debug!(%error, "a database fault");
    match (code_of_look_up(error), error) {
        (Some(code), _) => from_code(code, file),
        (None, rusqlite::Error::FromSqlConversionFailure(..)) => unreadable(file),
        (None, _) => asked_wrongly(file),
    }
}

#[cfg(feature = "sqlite")]
fn unreadable(file: &Path) -> Error {
    corrupt(format!("a row of the database {} cannot be read back", file.display()))
}

#[cfg(feature = "sqlite")]
fn asked_wrongly(file: &Path) -> Error {
    let message = format!("the database {} was asked in a wrong way", file.display());
    Error::new(ErrorKind::Unexpected, Retry::Never, message)
}

#[cfg(test)]
#[cfg(feature = "sqlite")]
mod tests {
    use std::time::Duration;

    use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};

    use super::*;

    /// What a statement fails with, on a connection of its own to a small file.
    async fn fails(
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
        let fault = Fault::from(error);
        assert_eq!(fault.is_busy(), statements == "BEGIN IMMEDIATE");
        fault.into_error(&file)
    }

    fn check(error: &Error, kind: ErrorKind, retry: Retry, says: &str) {
        assert_eq!((error.kind(), error.retry()), (kind, retry), "{error}");
        assert!(error.message().contains(says), "{error}");
        assert!(error.message().contains("small.db"), "{error}");
    }

    #[tokio::test]
    async fn faults_of_sqlite_become_sentences_that_help() {
        use ErrorKind::{Unavailable, Unexpected, Unsupported};
        let same = |options| options;
        check(&fails(same, "").await, Unavailable, Retry::Backoff, "locked by another process");
        let read_only = |options: SqliteConnectOptions| options.read_only(true);
        let error = fails(read_only, "INSERT INTO small VALUES (x'00')").await;
        check(&error, Unsupported, Retry::Never, "read-only");
        let full = "PRAGMA max_page_count = 3; INSERT INTO small VALUES (zeroblob(100000))";
        check(&fails(same, full).await, Unavailable, Retry::Backoff, "the disk is full");
        let twice = "INSERT INTO small VALUES (x'5E'), (x'5E')";
        check(&fails(same, twice).await, Unexpected, Retry::Never, "code 2067");
    }

    #[test]
    fn faults_of_sqlx_are_told_apart() {
        let file = Path::new("small.db");
        let error = |fault: sqlx::Error| Fault::from(fault).into_error(file);
        check(&error(sqlx::Error::WorkerCrashed), ErrorKind::Unavailable, Retry::Backoff, "was lost");
        check(
            &error(sqlx::Error::Decode("x".into())),
            ErrorKind::Corrupt,
            Retry::Never,
            "cannot be read back",
        );
        check(&error(sqlx::Error::RowNotFound), ErrorKind::Unexpected, Retry::Never, "in a wrong way");
    }
}
