//! What went wrong, in one form for everything: a kind to decide by, a sentence for people, and what is known beside.

use std::{fmt, time::Duration};

use transcript_core::{
    Error, ErrorKind, Retry,
    accounts::Refused,
    lookup::{BadReference, FailureReason},
    video::Platform,
};
use verbatim::Missing;
#[cfg(feature = "service")]
use verbatim::service::ServiceError;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, uniffi::Enum)]
pub enum FailureKind {
    /// A link, a language, an option or another argument is none. Nothing was done.
    InvalidInput,
    /// The video has no transcript: no captions, private, removed, withdrawn and the like. The sentence says which.
    NoCaptions,
    /// The platform throttles or distrusts us, after retries and other suppliers.
    RateLimited,
    /// A passing failure of the platform or of the way to it.
    FetchFailed,
    /// No supplier is there for the platform, or its settings are wrong or stale.
    NotConfigured,
    /// A store cannot be reached or is too slow; the call may or may not have taken effect.
    Unavailable,
    /// What was named does not exist.
    NotFound,
    /// It contradicts what is stored; nothing was done.
    Conflict,
    /// Stored data cannot be read back.
    Corrupt,
    /// A store or this build of the library cannot do it.
    Unsupported,
    /// A defect, of ours or of what the app brought along.
    Unexpected,
    /// The call was cancelled.
    Cancelled,
    /// The call took longer than it was given.
    TimedOut,
    /// It was shut down before.
    Closed,
    /// The server took too long.
    ServerTimeout,
    /// The server could not be reached, or its answer broke off.
    ServerUnreachable,
    /// What came is no answer of a Verbatim server.
    ServerUnreadable,
    /// 401: the key is missing, unknown or of the other surface.
    Unauthorized,
    /// 402: the credits or the allowance are spent.
    PaymentRequired,
    /// 404: there is no transcript, or nothing is at this address.
    NotOffered,
    /// 429: the caller's own limit.
    TooManyRequests,
    /// Any other refusal; `status` says which.
    Refused,
}

/// A failure. Only `kind` and `sentence` are always there.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Failure {
    /// What to decide by.
    pub kind: FailureKind,
    /// One sentence for people.
    pub sentence: String,
    /// The look-up's failure reason on the wire, such as `no_captions`.
    #[uniffi(default = None)]
    pub reason: Option<String>,
    /// The platform of the video.
    #[uniffi(default = None)]
    pub platform: Option<Platform>,
    /// The video's id on its platform.
    #[uniffi(default = None)]
    pub video_id: Option<String>,
    /// Where a person can read the transcript once there is one.
    #[uniffi(default = None)]
    pub watch_url: Option<String>,
    /// The HTTP status of a refusal.
    #[uniffi(default = None)]
    pub status: Option<u16>,
    /// After how long asking again may help.
    #[uniffi(default = None)]
    pub retry_after: Option<Duration>,
    /// The credits that are left.
    #[uniffi(default = None)]
    pub credits_remaining: Option<i64>,
    /// The server's name for the request.
    #[uniffi(default = None)]
    pub request_id: Option<String>,
}

/// The one error of every call, and of every interface that an app implements but [`crate::Supplier`].
#[derive(Clone, Debug, PartialEq, uniffi::Error)]
pub enum VerbatimError {
    /// It failed.
    Failed {
        /// How.
        failure: Failure,
    },
}

impl fmt::Display for VerbatimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.failure().sentence)
    }
}

impl std::error::Error for VerbatimError {}

/// A count as the records have it: signed, since unsigned numbers are awkward in Kotlin.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Failure {
    /// A failure of which no more is known.
    pub(crate) fn plain(kind: FailureKind, sentence: impl Into<String>) -> Self {
        Self {
            kind,
            sentence: sentence.into(),
            reason: None,
            platform: None,
            video_id: None,
            watch_url: None,
            status: None,
            retry_after: None,
            credits_remaining: None,
            request_id: None,
        }
    }

    /// The same, as an error.
    pub(crate) fn of(kind: FailureKind, sentence: impl Into<String>) -> VerbatimError {
        Self::plain(kind, sentence).into()
    }

    /// A wrong argument.
    pub(crate) fn invalid(sentence: impl Into<String>) -> VerbatimError {
        Self::of(FailureKind::InvalidInput, sentence)
    }
}

impl VerbatimError {
    /// How it failed.
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Failed { failure } => failure,
        }
    }
}

impl From<Failure> for VerbatimError {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure }
    }
}

impl From<Missing> for VerbatimError {
    fn from(missing: Missing) -> Self {
        let kind = match missing.reason {
            FailureReason::NoCaptions => FailureKind::NoCaptions,
            FailureReason::RateLimited => FailureKind::RateLimited,
            FailureReason::ConfigError => FailureKind::NotConfigured,
            FailureReason::FetchError => FailureKind::FetchFailed,
            _ => FailureKind::Refused,
        };
        Failure {
            reason: Some(missing.reason.as_str().to_owned()),
            platform: Some(missing.platform),
            video_id: Some(missing.video_id),
            watch_url: Some(missing.watch_url),
            ..Failure::plain(kind, missing.message)
        }
        .into()
    }
}

impl From<Error> for VerbatimError {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Unavailable => FailureKind::Unavailable,
            ErrorKind::Invalid => FailureKind::InvalidInput,
            ErrorKind::NotFound => FailureKind::NotFound,
            ErrorKind::Conflict => FailureKind::Conflict,
            ErrorKind::Corrupt => FailureKind::Corrupt,
            ErrorKind::Unsupported => FailureKind::Unsupported,
            _ => FailureKind::Unexpected,
        };
        let retry_after = match error.retry() {
            Retry::After(wait) => Some(wait),
            _ => None,
        };
        Failure { retry_after, ..Failure::plain(kind, error.message()) }.into()
    }
}

/// What a store or a model of the app's failed with, for the core.
pub(crate) fn to_core(error: VerbatimError) -> Error {
    let VerbatimError::Failed { failure } = error;
    let (kind, retry) = match failure.kind {
        FailureKind::InvalidInput => (ErrorKind::Invalid, Retry::Never),
        FailureKind::NotFound => (ErrorKind::NotFound, Retry::Never),
        FailureKind::Conflict => (ErrorKind::Conflict, Retry::Never),
        FailureKind::Corrupt => (ErrorKind::Corrupt, Retry::Never),
        FailureKind::Unsupported => (ErrorKind::Unsupported, Retry::Never),
        FailureKind::Unavailable | FailureKind::TimedOut => {
            (ErrorKind::Unavailable, failure.retry_after.map_or(Retry::Backoff, Retry::After))
        }
        _ => (ErrorKind::Unexpected, Retry::Never),
    };
    Error::new(kind, retry, failure.sentence)
}

impl From<uniffi::UnexpectedUniFFICallbackError> for VerbatimError {
    /// What Kotlin or Swift code threw that it had not declared, and what it returned that is no answer.
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Failure::of(FailureKind::Unexpected, format!("the app's own code failed: {}", error.reason))
    }
}

/// The kind of a refusal with this status.
fn of_status(status: u16) -> FailureKind {
    match status {
        401 => FailureKind::Unauthorized,
        402 => FailureKind::PaymentRequired,
        404 => FailureKind::NotOffered,
        409 => FailureKind::Conflict,
        429 => FailureKind::TooManyRequests,
        _ => FailureKind::Refused,
    }
}

#[cfg(feature = "service")]
impl From<ServiceError> for VerbatimError {
    fn from(error: ServiceError) -> Self {
        let sentence = error.to_string();
        let Some(refusal) = error.refusal() else {
            let kind = match error {
                ServiceError::Invalid(_) => FailureKind::InvalidInput,
                ServiceError::Timeout => FailureKind::ServerTimeout,
                ServiceError::Unreachable(_) | ServiceError::CutOff => FailureKind::ServerUnreachable,
                _ => FailureKind::ServerUnreadable,
            };
            return Failure::of(kind, sentence);
        };
        let facts = &refusal.facts;
        Failure {
            reason: refusal.failure_reason.map(|reason| reason.as_str().to_owned()),
            status: Some(refusal.status),
            retry_after: facts.retry_after,
            credits_remaining: facts.credits_remaining.map(count),
            request_id: facts.request_id.clone(),
            ..Failure::plain(of_status(refusal.status), sentence)
        }
        .into()
    }
}

impl From<Refused> for VerbatimError {
    fn from(refused: Refused) -> Self {
        let (after, left) = match &refused {
            Refused::RateLimited { retry_after_s, .. } => (Some(Duration::from_secs(*retry_after_s)), None),
            Refused::PaymentRequired { credits_remaining, .. } => (None, Some(count(*credits_remaining))),
            _ => (None, None),
        };
        let status = refused.code();
        let plain = Failure::plain(of_status(status), refused.message());
        Failure { status: Some(status), retry_after: after, credits_remaining: left, ..plain }.into()
    }
}

impl From<BadReference> for VerbatimError {
    fn from(bad: BadReference) -> Self {
        Failure::invalid(bad.message)
    }
}
