//! What can go wrong with a database server, and what the ports say about it.

use transcript_core::{Error, ErrorKind, Retry};

use crate::error::Fault;

/// What is to be done about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Others were in the way: the same again, on the state that they have left.
    Again,
    /// The connection is lost, or its server is about to end it.
    Lost,
    /// The same again would fail again; the connection is sound.
    Final,
}

/// What is to be done about a fault.
///
/// The codes are SQLSTATEs, which all engines that speak the protocol share. A broken uniqueness is a race: statements look
/// first, and store nothing that their own snapshot has already, but for those that leave it to others
/// ([`is_contradicted`]). So is a division by zero, with which a statement of ours ends that finds, in its middle, that
/// the rows it was computed of have changed.
pub(super) fn verdict(fault: &Fault) -> Verdict {
    let Fault::Sql(error) = fault else { return Verdict::Final };
    let Some(code) = code(error) else {
        return match error {
            sqlx::Error::Decode(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::RowNotFound
            | sqlx::Error::Encode(_) => Verdict::Final,
            _ => Verdict::Lost,
        };
    };
    verdict_of(&code)
}

fn verdict_of(code: &str) -> Verdict {
    match code {
        "40001" | "40P01" | "23505" | "22012" => Verdict::Again,
        // Shutting down, and what a server says that is no longer the one that takes writes.
        "57P01" | "57P02" | "57P03" | "57P05" | "25006" | "25P03" => Verdict::Lost,
        // It does not know itself whether a statement was completed.
        "40003" => Verdict::Lost,
        code if code.starts_with("08") || code.starts_with("53") => Verdict::Lost,
        _ => Verdict::Final,
    }
}

/// Whether rows that are stored contradict the statement: by their uniqueness, or by what it finds in its middle.
pub(super) fn is_contradicted(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error) if matches!(code(error).as_deref(), Some("23505" | "22012")))
}

/// The SQLSTATE of what the server said.
fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// Whether no encrypted connection came about: a certificate that is not believed is told as bytes that make no sense.
fn is_of_encryption(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Tls(_) => true,
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// Whether a table was asked for that is not there.
pub(super) fn is_missing_table(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error) if code(error).as_deref() == Some("42P01"))
}

/// Whether somebody else has just made what was to be made.
pub(super) fn is_made_already(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error)
        if matches!(code(error).as_deref(), Some("42P07" | "23505" | "42710" | "40001" | "40P01" | "XX000")))
}

/// The error that a port returns; its sentence names the database.
///
/// The server's own messages are left out: they may quote what was stored.
#[cold]
pub(crate) fn into_error(fault: Fault, database: &str) -> Error {
    use ErrorKind::{Corrupt, Unavailable, Unexpected, Unsupported};
    let error = match fault {
        Fault::Refused(error) => return error,
        Fault::Sql(error) => error,
        #[cfg(feature = "sqlite")]
        Fault::LookUp(_) | Fault::Panicked => return defect(database),
    };
    tracing::debug!(%error, "a database fault");
    let (kind, retry, message) = match (code(&error).as_deref(), &error) {
        (Some(code), _) if verdict_of(code) == Verdict::Again => (
            Unavailable,
            Retry::Backoff,
            format!("too many change the same in the database {database}: try again in a moment"),
        ),
        (Some("57014"), _) => {
            (Unavailable, Retry::Backoff, format!("the database {database} took too long to answer"))
        }
        (Some(code), _) if code.starts_with("28") => (
            Unsupported,
            Retry::Never,
            format!("the database {database} refuses this user: check name, password and pg_hba.conf"),
        ),
        (Some("3D000"), _) => {
            (Unsupported, Retry::Never, format!("there is no database {database}: make it with createdb"))
        }
        (Some("42501"), _) => (
            Unsupported,
            Retry::Never,
            format!("the user may not do all that is needed in the database {database}: make them its owner"),
        ),
        (Some(code), _) if code.starts_with("53") => (
            Unavailable,
            Retry::Backoff,
            format!(
                "the database {database} has no room for more (code {code}): connections, memory or disk"
            ),
        ),
        // What a pooler says of settings that it does not know.
        (Some("08P01" | "42704"), _) => (
            Unavailable,
            Retry::Backoff,
            format!(
                "the database {database} refuses how it is spoken to: where a pooler stands before it, set \
                 storage.pooler = true"
            ),
        ),
        (Some(code), _) if verdict_of(code) == Verdict::Lost => {
            (Unavailable, Retry::Backoff, format!("the database {database} is going away or coming up"))
        }
        (Some(code), _) => {
            (Unexpected, Retry::Never, format!("the database {database} refused a statement (code {code})"))
        }
        (None, error) if is_of_encryption(error) => (
            Unsupported,
            Retry::Never,
            format!("no encrypted connection to the database {database}: check sslmode and its certificates"),
        ),
        (None, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
            (Corrupt, Retry::Never, format!("a row of the database {database} cannot be read back"))
        }
        (None, _) => match verdict(&Fault::Sql(error)) {
            Verdict::Final => {
                (Unexpected, Retry::Never, format!("the database {database} was asked in a wrong way"))
            }
            _ => (Unavailable, Retry::Backoff, format!("the database {database} cannot be reached")),
        },
    };
    Error::new(kind, retry, message)
}

#[cold]
pub(super) fn defect(database: &str) -> Error {
    Error::unexpected(format!("a defect ended work on the database {database}"))
}

#[cold]
pub(super) fn late(database: &str) -> Error {
    Error::unavailable(format!("the database {database} did not answer in time: try again in a moment"))
}

#[cold]
pub(super) fn closed() -> Error {
    Error::unavailable("the store is closed")
}
