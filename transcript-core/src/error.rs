//! The one error of every port.
//!
//! A port's implementation may live in another crate or another language, so the error carries no
//! type of a backend: a kind to decide by, a verdict on retrying, and a sentence. Expected business
//! answers (a refused hold, a stale version) are values of the methods, never errors.

use std::{fmt, time::Duration};

/// The result of a port's method, or of anything else that fails with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of fault it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The backend cannot be reached or is too slow; the call may or may not have taken effect.
    Unavailable,
    /// The caller's request breaks the method's contract; nothing was done.
    Invalid,
    /// What was named does not exist, where its absence is a fault.
    NotFound,
    /// The request contradicts what is stored; nothing was done.
    Conflict,
    /// Stored data cannot be read back.
    Corrupt,
    /// The backend cannot do what was asked, for example a read-only file or a newer schema.
    Unsupported,
    /// Anything else: a defect.
    Unexpected,
}

impl ErrorKind {
    /// Every kind, so that a binding can prove that its mapping is total.
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
    /// Repeating the call gives the same fault.
    Never,
    /// Repeat it, waiting a little longer each time.
    Backoff,
    /// Repeat it not earlier than this.
    After(Duration),
}

/// A fault of a port: kind, verdict on retrying, and one sentence.
///
/// The sentence names no key, no token, no transcript text and no URL with a query.
///
/// ```
/// use transcript_core::{Error, ErrorKind, Retry};
///
/// let error = Error::new(ErrorKind::Unavailable, Retry::Backoff, "the database is locked");
/// assert_eq!(error.kind(), ErrorKind::Unavailable);
/// assert_eq!(error.to_string(), "the database is locked");
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    retry: Retry,
    message: String,
}

impl Error {
    /// An error of the given kind.
    #[cold]
    pub fn new(kind: ErrorKind, retry: Retry, message: impl Into<String>) -> Self {
        Self { kind, retry, message: message.into() }
    }

    /// A request that breaks a contract: [`ErrorKind::Invalid`], never retried.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, Retry::Never, message)
    }

    /// A backend that is away for now: [`ErrorKind::Unavailable`], retried with back-off.
    #[cold]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, Retry::Backoff, message)
    }

    /// A defect: [`ErrorKind::Unexpected`], never retried.
    #[cold]
    pub fn unexpected(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unexpected, Retry::Never, message)
    }

    /// What kind of fault it was.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later.
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// The sentence, as [`fmt::Display`] prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
