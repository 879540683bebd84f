//! The error type of every port.
//!
//! A port's implementation may live in another crate or another language, so the error carries no backend
//! type: only a kind, a retry hint and a message. Expected business results (a rejected hold, a stale
//! version) are values of the methods, never errors.

use std::{error::Error as StdError, sync::Arc, time::Duration};

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
    /// The backend does not support the operation, for example on a read-only file or a newer schema. Of a chat model:
    /// it refuses the text of the request.
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

/// The error of a backend or of a caller's component behind an error. Copies share it.
///
/// Two causes are equal if they are the same object.
#[derive(Clone)]
pub struct ErrorCause(Arc<dyn StdError + Send + Sync>);

// The formatting of a foreign error may lock its interpreter.
crate::debug_fields!(ErrorCause {});

impl ErrorCause {
    /// Wraps an error.
    pub fn new(error: impl StdError + Send + Sync + 'static) -> Self {
        Self(Arc::new(error))
    }

    /// The wrapped error.
    pub fn error(&self) -> &(dyn StdError + 'static) {
        self.0.as_ref()
    }
}

impl PartialEq for ErrorCause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ErrorCause {}

/// A port's error: kind, retry hint, message and cause.
///
/// The message contains no key, token, transcript text or URL with a query. The cause, which
/// [`source`](StdError::source) returns, is the error of a library below: it may contain them, and its type may change
/// in any version.
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
    cause: Option<ErrorCause>,
    has_no_effect: bool,
}

crate::display::display!(Error, |this| this.message);

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(ErrorCause::error)
    }
}

impl Error {
    /// Creates an error of the given kind.
    #[cold]
    pub fn new(kind: ErrorKind, retry: Retry, message: impl Into<String>) -> Self {
        let has_no_effect = kind == ErrorKind::Invalid;
        Self { kind, retry, message: message.into(), cause: None, has_no_effect }
    }

    /// This error with another message.
    #[must_use]
    pub fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Sets the error behind this one.
    #[must_use]
    pub fn with_cause(self, cause: Option<ErrorCause>) -> Self {
        Self { cause, ..self }
    }

    /// This error of a call that certainly had no effect.
    #[must_use]
    pub fn without_effect(self) -> Self {
        Self { has_no_effect: true, ..self }
    }

    /// Whether the call certainly had no effect. Otherwise it may have one, now or later.
    ///
    /// True for [`ErrorKind::Invalid`], and where a store has certainly stored nothing.
    pub fn has_no_effect(&self) -> bool {
        self.has_no_effect
    }

    /// The error behind this one; `None` if it is the first.
    pub fn cause(&self) -> Option<&ErrorCause> {
        self.cause.as_ref()
    }

    /// Creates an error for a request that breaks a contract: [`ErrorKind::Invalid`], never retried.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, Retry::Never, message)
    }

    /// Creates an error for a named item that does not exist: [`ErrorKind::NotFound`], never retried.
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, Retry::Never, message)
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

    /// Creates an error for stored data that cannot be read back: [`ErrorKind::Corrupt`], never retried.
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, Retry::Never, message)
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

    /// After what time the same call may succeed, if the component that failed states it.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.retry {
            Retry::After(wait) => Some(wait),
            Retry::Never | Retry::Backoff => None,
        }
    }

    /// The message, as [`Display`](std::fmt::Display) prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}
