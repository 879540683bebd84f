//! The error type of every port.
//!
//! A port's implementation may live in another crate or another language, so the error carries no backend
//! type: only a kind, a retry hint and a message. Expected business results (a rejected hold, a stale
//! version) are values of the methods, never errors.

use std::time::Duration;

/// The result of a port's method, or of any other function that fails with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The category of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The backend cannot be reached or is too slow; the call may or may not have taken effect.
    Unavailable,
    /// The caller's request breaks the method's contract; nothing was changed.
    Invalid,
    /// The named item does not exist, where that is an error.
    NotFound,
    /// The request contradicts what is stored; nothing was changed.
    Conflict,
    /// Stored data cannot be read back.
    Corrupt,
    /// The backend does not support the operation, for example on a read-only file or a newer schema.
    Unsupported,
    /// Anything else: a defect.
    Unexpected,
}

impl ErrorKind {
    /// All kinds, so that a binding can prove that its mapping is total.
    pub const ALL: [Self; 7] = [
        Self::Unavailable,
        Self::Invalid,
        Self::NotFound,
        Self::Conflict,
        Self::Corrupt,
        Self::Unsupported,
        Self::Unexpected,
    ];
}

/// Whether the same call may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Repeating the call fails in the same way.
    Never,
    /// Repeat it with growing pauses.
    Backoff,
    /// Repeat it no earlier than after this duration.
    After(Duration),
}

/// A port's error: kind, retry hint and message.
///
/// The message contains no key, token, transcript text or URL with a query.
///
/// ```
/// use transcript_core::{Error, ErrorKind, Retry};
///
/// let error = Error::new(ErrorKind::Unavailable, Retry::Backoff, "the database is locked");
/// assert_eq!(error.kind(), ErrorKind::Unavailable);
/// assert_eq!(error.to_string(), "the database is locked");
/// ```
#[derive(Clone, Debug, derive_more::Display, derive_more::Error)]
#[display("{message}")]
pub struct Error {
    kind: ErrorKind,
    retry: Retry,
    message: String,
}

impl Error {
    /// Creates an error of the given kind.
    #[cold]
    pub fn new(kind: ErrorKind, retry: Retry, message: impl Into<String>) -> Self {
        Self { kind, retry, message: message.into() }
    }

    /// Creates an error for a request that breaks a contract: [`ErrorKind::Invalid`], never retried.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, Retry::Never, message)
    }

    /// Creates an error for a request that contradicts stored data: [`ErrorKind::Conflict`], never retried.
    #[cold]
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, Retry::Never, message)
    }

    /// Creates an error for what this build or system cannot do: [`ErrorKind::Unsupported`], never retried.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, Retry::Never, message)
    }

    /// Creates an error for an unreachable backend: [`ErrorKind::Unavailable`], retried with backoff.
    #[cold]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, Retry::Backoff, message)
    }

    /// Creates an error for a defect: [`ErrorKind::Unexpected`], never retried.
    #[cold]
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unexpected, Retry::Never, message)
    }

    /// The category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether stored data cannot be read: it is damaged, or of a newer version.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.kind, ErrorKind::Corrupt | ErrorKind::Unsupported)
    }

    /// Whether the same call may succeed later.
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// The message, as [`Display`](std::fmt::Display) prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}
