//! The error of all calls: a kind for programs, a message for people, and details.

use std::time::Duration;

use transcript_core::{
    Error, ErrorKind, Retry, engine::FailureReason, transcript::TrackInfo, video::Platform,
};
use verbatim::UnavailableTranscript;
#[cfg(any(feature = "local-service", feature = "service"))]
use verbatim::service::{ServiceError, ServiceErrorKind};

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, uniffi::Enum)]
pub enum FailureKind {
    /// A link, language, option or other argument is invalid. Nothing was done.
    InvalidInput,
    /// The video has no transcript: no captions, private, removed, withdrawn and the like.
    NoCaptions,
    /// The platform throttles or blocks requests, after retries and other suppliers.
    RateLimited,
    /// Transient failure of the platform or the network.
    FetchFailed,
    /// No supplier covers the platform, or its settings are wrong or outdated.
    NotConfigured,
    /// A store cannot be reached or is too slow; the call may or may not have taken effect.
    Unavailable,
    /// The named object does not exist.
    NotFound,
    /// The call contradicts stored data; nothing was done.
    Conflict,
    /// Stored data cannot be decoded.
    Corrupt,
    /// A store or this build of the library does not support the call.
    Unsupported,
    /// A defect of the library or of a component of the app.
    Unexpected,
    /// The call was cancelled.
    Cancelled,
    /// The call exceeded its timeout.
    TimedOut,
    /// The object was shut down before.
    Closed,
    /// The server exceeded the timeout.
    ServerTimeout,
    /// The server could not be reached, or its response was cut off.
    ServerUnreachable,
    /// The response is not one of a Verbatim server.
    ServerUnreadable,
    /// 401: the key is missing, unknown or of the other API.
    Unauthorized,
    /// 402: the credits or the allowance are spent.
    PaymentRequired,
    /// 404: there is no transcript, or no resource at this address.
    ServiceNotFound,
    /// 429: the caller's own limit.
    TooManyRequests,
    /// Any other rejection; `status` has the HTTP status.
    Refused,
}

/// A failure. Only `kind` and `message` are always set.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct Failure {
    /// Kind, for decisions of a program.
    pub kind: FailureKind,
    /// One sentence for people.
    pub message: String,
    /// Why there is no transcript: the detail of the failure reason, such as `private` or `live`, or a reason without
    /// detail, such as `rate_limited`. A rejected lookup has the reason alone: `no_captions` of a private video.
    #[uniffi(default = None)]
    pub reason: Option<String>,
    /// The platform of the video.
    #[uniffi(default = None)]
    pub platform: Option<Platform>,
    /// The video's id on its platform.
    #[uniffi(default = None)]
    pub video_id: Option<String>,
    /// The watch page, where a person can read the transcript once it is available.
    #[uniffi(default = None)]
    pub watch_url: Option<String>,
    /// The tracks of a video without a transcript in the requested language; empty if unknown.
    #[uniffi(default = [])]
    pub languages: Vec<TrackInfo>,
    /// HTTP status of a rejection.
    #[uniffi(default = None)]
    pub status: Option<u16>,
    /// Time after which a retry may succeed.
    #[uniffi(default = None)]
    pub retry_after: Option<Duration>,
    /// Credits left.
    #[uniffi(default = None)]
    pub credits_remaining: Option<i64>,
    /// The server's id of the request.
    #[uniffi(default = None)]
    pub request_id: Option<String>,
    /// The idempotency key of a charged call whose outcome is unknown, such as after a timeout of the server.
    ///
    /// The call, repeated with it, returns the result and is charged once.
    #[uniffi(default = None)]
    pub idempotency_key: Option<String>,
}

/// The error of all calls, and of all interfaces that an app implements except [`crate::Supplier`].
#[derive(Clone, Debug, PartialEq, uniffi::Error, derive_more::Display, derive_more::Error)]
#[display("{}", self.failure().message)]
pub enum VerbatimError {
    /// The call failed.
    Failed {
        /// Details.
        failure: Failure,
    },
}

/// A count as the records have it: signed, because unsigned numbers are awkward in Kotlin.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Failure {
    /// A failure without details.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            reason: None,
            platform: None,
            video_id: None,
            watch_url: None,
            languages: Vec::new(),
            status: None,
            retry_after: None,
            credits_remaining: None,
            request_id: None,
            idempotency_key: None,
        }
    }

    /// An error without details.
    pub(crate) fn error(kind: FailureKind, message: impl Into<String>) -> VerbatimError {
        Self::new(kind, message).into()
    }

    /// An error for an invalid argument.
    pub(crate) fn invalid_input(message: impl Into<String>) -> VerbatimError {
        Self::error(FailureKind::InvalidInput, message)
    }
}

impl VerbatimError {
    /// Details of the failure.
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

impl From<FailureReason> for FailureKind {
    fn from(reason: FailureReason) -> Self {
        match reason {
            FailureReason::NoCaptions => Self::NoCaptions,
            FailureReason::RateLimited => Self::RateLimited,
            FailureReason::ConfigError => Self::NotConfigured,
            FailureReason::FetchError => Self::FetchFailed,
            _ => Self::Refused,
        }
    }
}

impl From<UnavailableTranscript> for VerbatimError {
    fn from(missing: UnavailableTranscript) -> Self {
        let kind = missing.reason.into();
        Failure {
            reason: missing.detail.or_else(|| Some(missing.reason.as_str().to_owned())),
            platform: Some(missing.platform),
            video_id: Some(missing.video_id),
            languages: missing.languages,
            retry_after: missing.retry_after,
            #[cfg(feature = "local-service")]
            watch_url: Some(missing.watch_url),
            ..Failure::new(kind, missing.message)
        }
        .into()
    }
}

impl From<Error> for VerbatimError {
    fn from(error: Error) -> Self {
        Failure { retry_after: error.retry_after(), ..Failure::new(error.kind().into(), error.message()) }
            .into()
    }
}

impl From<ErrorKind> for FailureKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::Invalid => Self::InvalidInput,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::Corrupt => Self::Corrupt,
            ErrorKind::Unsupported => Self::Unsupported,
            _ => Self::Unexpected,
        }
    }
}

#[cfg(any(feature = "local-service", feature = "service"))]
impl From<ServiceError> for VerbatimError {
    fn from(error: ServiceError) -> Self {
        use ServiceErrorKind as Kind;

        let kind = match error.kind {
            Kind::Core(kind) => kind.into(),
            Kind::Conflict => FailureKind::Conflict,
            Kind::Timeout => FailureKind::ServerTimeout,
            Kind::Unreachable | Kind::CutOff => FailureKind::ServerUnreachable,
            Kind::Unreadable => FailureKind::ServerUnreadable,
            Kind::Unauthorized => FailureKind::Unauthorized,
            Kind::PaymentRequired => FailureKind::PaymentRequired,
            Kind::NotFound | Kind::NoServer => FailureKind::ServiceNotFound,
            Kind::RateLimited => FailureKind::TooManyRequests,
            _ => FailureKind::Refused,
        };
        let meta = *error.meta;
        Failure {
            reason: error.reason.map(|reason| reason.as_str().to_owned()).or(meta.failure_detail),
            watch_url: error.watch_url,
            languages: error.languages,
            status: error.status,
            retry_after: meta.retry_after,
            credits_remaining: meta.credits_remaining.map(count),
            request_id: meta.request_id,
            idempotency_key: error.idempotency_key.map(String::from),
            ..Failure::new(kind, error.message)
        }
        .into()
    }
}

/// The core's error for an error of a store or model of the app.
pub(crate) fn to_core(error: VerbatimError) -> Error {
    let VerbatimError::Failed { failure } = error;
    let (kind, retry) = match failure.kind {
        FailureKind::InvalidInput => (ErrorKind::Invalid, Retry::Never),
        FailureKind::NotFound => (ErrorKind::NotFound, Retry::Never),
        FailureKind::Conflict => (ErrorKind::Conflict, Retry::Never),
        FailureKind::Corrupt => (ErrorKind::Corrupt, Retry::Never),
        FailureKind::Unsupported => (ErrorKind::Unsupported, Retry::Never),
        FailureKind::NotConfigured => (ErrorKind::Unavailable, Retry::Never),
        FailureKind::Unavailable
        | FailureKind::TimedOut
        | FailureKind::RateLimited
        | FailureKind::FetchFailed => {
            (ErrorKind::Unavailable, failure.retry_after.map_or(Retry::Backoff, Retry::After))
        }
        _ => (ErrorKind::Unexpected, Retry::Never),
    };
    Error::new(kind, retry, failure.message)
}

impl From<uniffi::UnexpectedUniFFICallbackError> for VerbatimError {
    /// An undeclared exception of Kotlin or Swift code, or an invalid value that it returned.
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Failure::error(FailureKind::Unexpected, format!("the app's own code failed: {}", error.reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_error_keeps_watch_url() {
        let address = Some("https://verbatim.example/watch/video_site/aaaaaaaaaaa".to_owned());
        let error = ServiceError { watch_url: address.clone(), ..ServiceError::rejected(404, "None.") };
        assert_eq!(VerbatimError::from(error).failure().watch_url, address);
        assert_eq!(VerbatimError::from(ServiceError::rejected(404, "None.")).failure().watch_url, None);
    }

    #[test]
    fn service_error_keeps_reason_and_idempotency_key() {
        let mut error = ServiceError::rejected(404, "This video is private.");
        error.meta.failure_detail = Some("private".to_owned());
        error.idempotency_key = Some("order-1".into());
        let failure = VerbatimError::from(error.clone()).failure().clone();
        assert_eq!(
            (failure.reason.as_deref(), failure.idempotency_key.as_deref()),
            (Some("private"), Some("order-1"))
        );
        // The body of a lookup names the reason itself.
        error.reason = Some(FailureReason::NoCaptions);
        assert_eq!(VerbatimError::from(error).failure().reason.as_deref(), Some("no_captions"));
    }
}
