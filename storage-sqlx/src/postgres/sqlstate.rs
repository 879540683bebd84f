//! Maps errors of a database server to retries and to errors of the ports.

use sqlx::postgres::PgDatabaseError;
use transcript_core::{Error, ErrorCause, ErrorKind, Retry};

use crate::{
    error::{DbError, corrupt},
    monitor::StoreErrorKind,
};

/// How to continue after a database error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retryability {
    /// A conflict with other transactions: run again, on the new state.
    Retry,
    /// The connection is lost, or the server is about to close it.
    Reconnect,
    /// A repetition would fail again; the connection is intact.
    Fatal,
}

/// How to continue after a database error.
///
/// The codes are SQLSTATEs, which all engines with this protocol share. A violated unique constraint is a race:
/// statements first check what their snapshot contains, except those with a fallback ([`is_contradicted`]). A division
/// by zero is also a race: statements here use it to fail when the rows from which they were computed have changed.
pub(super) fn retryability(fault: &DbError) -> Retryability {
    let error = match fault {
        DbError::Sql(error) => error,
        DbError::NotConnected(_) => return Retryability::Reconnect,
        _ => return Retryability::Fatal,
    };
    let Some(code) = code(error) else {
        return match error {
            sqlx::Error::Decode(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::RowNotFound
            | sqlx::Error::Encode(_) => Retryability::Fatal,
            _ => Retryability::Reconnect,
        };
    };
    retryability_of_code(&code)
}

/// The server, or the session, accepts no writes: a standby after a failover.
const READ_ONLY: &str = "25006";
const DISK_FULL: &str = "53100";
/// A violation of the protocol, and all errors of `PgBouncer`.
const POOLER: &str = "08P01";

fn retryability_of_code(code: &str) -> Retryability {
    match code {
        "40001" | "40P01" | "23505" | "22012" => Retryability::Retry,
        // Shutdown, and the errors of a server that no longer accepts writes.
        "57P01" | "57P02" | "57P03" | "57P05" | READ_ONLY | "25P03" => Retryability::Reconnect,
        // An earlier transaction is still open: the connection is not intact.
        "25P02" => Retryability::Reconnect,
        // The server does not know whether a statement was completed.
        "40003" => Retryability::Reconnect,
        // The connection still reads. A new one may not: on a full disk the server cannot always open it.
        DISK_FULL => Retryability::Fatal,
        code if code.starts_with("08") || code.starts_with("53") => Retryability::Reconnect,
        _ => Retryability::Fatal,
    }
}

/// The error of a connection that could not be opened.
///
/// The server may reject a connection with any code, for a reason that passes: nothing was sent over it. Excepted are
/// the codes of a missing user, permission or database, and those of a pooler, which have their own messages.
pub(super) fn connect_error(error: sqlx::Error) -> DbError {
    let Some(code) = code(&error) else { return DbError::Sql(error) };
    let is_permanent = code.starts_with("28") || matches!(&*code, "3D000" | "42501" | "42704");
    if is_permanent || retryability_of_code(&code) == Retryability::Reconnect {
        return DbError::Sql(error);
    }
    DbError::NotConnected(error)
}

/// Whether a failed statement is certainly not stored: it was not sent, or the server rejected it.
pub(super) fn is_not_stored(fault: &DbError) -> bool {
    retryability(fault) != Retryability::Reconnect || is_refused(fault)
}

/// Whether the server rejected a statement without storing anything, whether or not the connection is given up.
///
/// It is read-only, or out of disk space, memory or connections.
pub(super) fn is_refused(fault: &DbError) -> bool {
    let DbError::Sql(error) = fault else { return false };
    code(error).is_some_and(|code| code == READ_ONLY || code.starts_with("53"))
}

/// The kind of a failure of the server; `None` for a rejection by this crate.
pub(super) fn store_error_kind(fault: &DbError) -> Option<StoreErrorKind> {
    use StoreErrorKind::{Busy, Corrupt, Full, Io, Other, ReadOnly, Unreachable};
    let error = match fault {
        DbError::Rejected(_) => return None,
        DbError::Unreadable => return Some(Corrupt),
        DbError::TimedOut => return Some(Unreachable),
        DbError::NotConnected(error) if code(error).as_deref() != Some(DISK_FULL) => {
            return Some(Unreachable);
        }
        DbError::Sql(error) | DbError::NotConnected(error) => error,
        #[cfg(feature = "sqlite")]
        DbError::Sqlite(_) | DbError::Panicked | DbError::Replaced => return Some(Other),
    };
    Some(match code(error).as_deref() {
        Some(DISK_FULL) => Full,
        Some(READ_ONLY) => ReadOnly,
        Some("58030") => Io,
        Some("XX001" | "XX002") => Corrupt,
        Some("57014") => Busy,
        Some(code) if retryability_of_code(code) == Retryability::Retry => Busy,
        Some(code) if retryability_of_code(code) == Retryability::Reconnect => Unreachable,
        None if retryability(fault) == Retryability::Reconnect => Unreachable,
        _ => Other,
    })
}

/// Whether the server or its pooler has no connection left for this client: nothing was sent to it yet.
pub(super) fn has_no_connection_left(fault: &DbError) -> bool {
    let DbError::Sql(error) = fault else { return false };
    code(error).as_deref() == Some("53300") || is_of_pooler(error, "no more connections")
}

/// Whether it is an error of `PgBouncer` with this text. `PgBouncer` has one code for all of its errors.
fn is_of_pooler(error: &sqlx::Error, text: &str) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| error.code().as_deref() == Some(POOLER) && error.message().contains(text))
}

/// Whether the database refuses this client until the operator has changed a setting, a permission or a certificate.
fn refuses_client(error: &sqlx::Error) -> bool {
    match code(error) {
        Some(code) => code.starts_with("28") || matches!(&*code, "3D000" | "42501"),
        None => is_tls_failure(error),
    }
}

/// The error of opening a database: if the database refuses this client, a setting is wrong, and no caller should wait.
///
/// Later the same error is an outage: it says nothing about the stored data.
#[cold]
pub(crate) fn opening_error(error: Error) -> Error {
    let cause = error.cause().and_then(|cause| cause.error().downcast_ref::<sqlx::Error>());
    if !cause.is_some_and(refuses_client) {
        return error;
    }
    Error::unsupported(error.message()).with_cause(error.cause().cloned())
}

/// Whether a unique constraint, or the statement's own check for changed rows, ended the statement.
pub(super) fn is_contradicted(fault: &DbError) -> bool {
    matches!(fault, DbError::Sql(error) if matches!(code(error).as_deref(), Some("23505" | "22012")))
}

/// The SQLSTATE of the server's error; for a rejected isolation level that of a read-only server.
///
/// A standby rejects serializable transactions with 0A000, which other errors have too. Unlike the message, the name of
/// the server's routine is not translated.
fn code(error: &sqlx::Error) -> Option<String> {
    let error = error.as_database_error()?;
    let code = error.code()?.into_owned();
    let routine = error.try_downcast_ref::<PgDatabaseError>().and_then(PgDatabaseError::routine);
    let is_standby = code == "0A000" && routine == Some("call_enum_check_hook");
    Some(if is_standby { READ_ONLY.to_owned() } else { code })
}

/// Whether encryption failed: sqlx reports an untrusted certificate as invalid data.
fn is_tls_failure(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Tls(_) => true,
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// Whether a table does not exist.
pub(super) fn is_missing_table(fault: &DbError) -> bool {
    matches!(fault, DbError::Sql(error) if code(error).as_deref() == Some("42P01"))
}

/// Whether another server has just created the object.
pub(super) fn already_exists(fault: &DbError) -> bool {
    matches!(fault, DbError::Sql(error)
        if matches!(code(error).as_deref(), Some("42P07" | "23505" | "42710" | "40001" | "40P01" | "XX000")))
}

/// The error that a port returns; its message names the database, and its source is the error of the driver.
#[cold]
pub(crate) fn to_error(fault: DbError, database: &str) -> Error {
    let failure = describe(&fault, database);
    match fault {
        DbError::Sql(cause) | DbError::NotConnected(cause) => {
            failure.with_cause(Some(ErrorCause::new(cause)))
        }
        _ => failure,
    }
}

/// The error of the port without its source, for the log.
///
/// The server's messages are omitted: they may quote stored data.
#[cold]
pub(super) fn describe(fault: &DbError, database: &str) -> Error {
    use ErrorKind::{Unavailable, Unexpected};
    let error = match fault {
        DbError::Rejected(error) => return error.clone(),
        DbError::Sql(error) => error,
        DbError::NotConnected(error) => return not_connected(error, database),
        DbError::Unreadable => return unreadable(database),
        DbError::TimedOut => return timed_out(database),
        #[cfg(feature = "sqlite")]
        DbError::Sqlite(_) | DbError::Panicked | DbError::Replaced => return defect(database),
    };
    tracing::debug!(%error, "database call failed");
    let code = code(error);
    if let Some(message) = code.as_deref().and_then(|code| refusal(code, database)) {
        return Error::new(Unavailable, Retry::Never, message);
    }
    let (kind, retry, message) = match (code.as_deref(), error) {
        (Some(code), _) if retryability_of_code(code) == Retryability::Retry => (
            Unavailable,
            Retry::Backoff,
            format!("too many conflicting writes in the database {database}: retry in a few seconds"),
        ),
        (Some("57014"), _) => {
            (Unavailable, Retry::Backoff, format!("a statement on the database {database} timed out"))
        }
        (Some(code), _) if code.starts_with("53") || has_no_connection_left(fault) => (
            Unavailable,
            Retry::Backoff,
            format!("the database {database} is out of connections or memory (code {code})"),
        ),
        (Some(code @ (POOLER | "42704")), error) => {
            (Unavailable, Retry::Backoff, pooler_message(code, error, database))
        }
        (Some(code), _) if retryability_of_code(code) == Retryability::Reconnect => {
            (Unavailable, Retry::Backoff, format!("the database {database} is shutting down or starting up"))
        }
        (Some(code), _) => {
            (Unexpected, Retry::Never, format!("the database {database} rejected a statement (code {code})"))
        }
        (None, error) if is_tls_failure(error) => (
            Unavailable,
            Retry::Never,
            format!("no encrypted connection to the database {database}: check sslmode and its certificates"),
        ),
        (None, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => return unreadable(database),
        (None, _) => match retryability(fault) {
            Retryability::Fatal => {
                let message =
                    format!("invalid query on the database {database}: this is a defect, please report it");
                (Unexpected, Retry::Never, message)
            }
            _ => (Unavailable, Retry::Backoff, format!("the database {database} cannot be reached")),
        },
    };
    Error::new(kind, retry, message)
}

/// The message for an error of a pooler: refused connections, or else session settings that it does not keep.
fn pooler_message(code: &str, error: &sqlx::Error, database: &str) -> String {
    let is_refusal =
        ["server", "connections", "timeout", "pgbouncer"].iter().any(|word| is_of_pooler(error, word));
    if code != POOLER || !is_refusal {
        return format!(
            "the database {database} rejects the session settings: behind a pooler, set storage.pooler = true"
        );
    }
    format!("the database {database} or its pooler refuses connections (code {code}): its log has the cause")
}

/// The message for a code after which no call succeeds until the operator has changed something.
fn refusal(code: &str, database: &str) -> Option<String> {
    Some(match code {
        _ if code.starts_with("28") => {
            format!("the database {database} rejects this user: check name, password and pg_hba.conf")
        }
        "3D000" => format!("the database {database} does not exist: create it with createdb"),
        "42501" => format!("the user lacks permissions in the database {database}: make the user its owner"),
        READ_ONLY => {
            format!("the database {database} is read-only: connect to the server that accepts writes")
        }
        DISK_FULL => format!("the disk of the database {database} is full, so nothing was stored"),
        _ => return None,
    })
}

#[cold]
fn not_connected(error: &sqlx::Error, database: &str) -> Error {
    tracing::debug!(%error, "database connection rejected");
    let code = code(error).unwrap_or_default();
    Error::unavailable(format!(
        "no connection can be opened to the database {database} (code {code}): the log of its server has the cause"
    ))
}

#[cold]
fn unreadable(database: &str) -> Error {
    corrupt(format!("a row of the database {database} cannot be read back"))
}

#[cold]
pub(super) fn defect(database: &str) -> Error {
    Error::unexpected(format!("an internal error ended work on the database {database}"))
}

#[cold]
pub(super) fn timed_out(database: &str) -> Error {
    Error::unavailable(format!("the database {database} did not respond in time: retry in a few seconds"))
}

#[cold]
pub(super) fn closed() -> Error {
    Error::unavailable("the store is closed")
}
