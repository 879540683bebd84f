//! The failure of a call of the service.

use std::{error::Error as StdError, time::Duration};

use super::{ResponseMeta, ServiceReply};
use crate::{
    accounts::V1Error,
    error::{Error, ErrorCause, ErrorKind},
    lookup::FailureReason,
    time::parse_wait,
    transcript::TrackInfo,
};

/// The result of a call of the service.
pub type ServiceResult<T> = Result<ServiceReply<T>, ServiceError>;

/// Why a call failed. It contains neither the key nor a URL with a query; a server's own message may be in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// The kind, for decisions of a program.
    pub kind: ServiceErrorKind,
    /// The HTTP status of a rejection, which is the `code` in errors of the v1 API (specification 7.2).
    pub status: Option<u16>,
    /// The lookup's failure reason, if the rejection has one.
    pub reason: Option<FailureReason>,
    /// One sentence for people.
    pub message: String,
    /// The watch page of the video, if the call names a video without a transcript. `None` from a server, whose errors
    /// have no page.
    pub watch_url: Option<String>,
    /// The tracks of a video without a transcript in the requested language; empty if unknown.
    pub languages: Vec<TrackInfo>,
    /// The idempotency key of a charged call whose outcome is unknown, such as after a timeout.
    ///
    /// That includes a call whose last attempt was rejected after the response to an earlier one was lost. A call that
    /// is repeated with the key gets the result and is charged once. `None` in all other cases.
    pub idempotency_key: Option<Box<str>>,
    /// Metadata: `retry_after` on 429, `credits_remaining` on 402, and the others.
    ///
    /// The service in the process also has the `retry_after` of a video without a transcript. A server names that wait
    /// in the message of some v1 errors, rounded up, and in no header.
    pub meta: Box<ResponseMeta>,
    /// The error behind this one; `None` if it is the first, and from a server.
    pub cause: Option<ErrorCause>,
}

crate::display::display!(ServiceError, |this| this.message);

impl StdError for ServiceError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(ErrorCause::error)
    }
}

/// Kind of a failed call (specification 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceErrorKind {
    /// No rejection: an invalid argument, an unsupported call, or a failed store of the process.
    Core(ErrorKind),
    /// The server did not respond in time.
    Timeout,
    /// The connection failed.
    Unreachable,
    /// The response ended early.
    CutOff,
    /// The response is not that of a Verbatim server, or too large.
    Unreadable,
    /// 400: missing or invalid parameters.
    BadRequest,
    /// 401: the key is missing, unknown or of the other API.
    Unauthorized,
    /// 402: no credits left.
    PaymentRequired,
    /// 404: no transcript is available, or there is no such job.
    NotFound,
    /// 404 that is no error of the API: no Verbatim server responds at the base URL.
    NoServer,
    /// 405: the URL does not support this method.
    WrongMethod,
    /// 409: a request with the same `Idempotency-Key` is running.
    ///
    /// On verify: an active key would be revoked, or a page requested the link.
    Conflict,
    /// 413: the request body is too large.
    TooLarge,
    /// 415: the request body has another content type.
    WrongType,
    /// 429: rate limit of the caller.
    RateLimited,
    /// 508: the request would pass through a third server.
    Loop,
    /// 5xx: an error of the service, or of a proxy before it.
    ///
    /// Nothing was charged unless the error of a charged call has an [idempotency key](ServiceError::idempotency_key).
    /// A fetch that goes on is charged when it is ready, and the next request gets its transcript.
    ServerError,
    /// 3xx: the server is elsewhere. Redirects are not followed with a key.
    Redirected,
    /// Any other status.
    Other,
}

impl ServiceErrorKind {
    /// The kind of a rejection with this HTTP status.
    pub fn from_status(status: u16) -> Self {
        match status {
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            402 => Self::PaymentRequired,
            404 => Self::NotFound,
            405 => Self::WrongMethod,
            409 => Self::Conflict,
            413 => Self::TooLarge,
            415 => Self::WrongType,
            429 => Self::RateLimited,
            508 => Self::Loop,
            500..=599 => Self::ServerError,
            300..=399 => Self::Redirected,
            _ => Self::Other,
        }
    }
}

impl ServiceError {
    /// A failure that is no rejection.
    pub fn new(kind: ServiceErrorKind, message: impl Into<String>) -> Self {
        let (message, meta) = (message.into(), Box::default());
        Self {
            kind,
            status: None,
            reason: None,
            message,
            watch_url: None,
            languages: Vec::new(),
            idempotency_key: None,
            meta,
            cause: None,
        }
    }

    /// A rejection with this HTTP status.
    pub fn rejected(status: u16, message: impl Into<String>) -> Self {
        Self { status: Some(status), ..Self::new(ServiceErrorKind::from_status(status), message) }
    }

    /// The service does not offer the call.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ServiceErrorKind::Core(ErrorKind::Unsupported), message)
    }

    /// Time after which a retry may succeed, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.meta.retry_after
    }

    /// Sets the time after which a retry may succeed.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.meta.retry_after = wait;
        self
    }
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        let cause = error.cause().cloned();
        let kind = ServiceErrorKind::Core(error.kind());
        Self { cause, ..Self::new(kind, error.message()).with_retry_after(error.retry_after()) }
    }
}

impl From<V1Error> for ServiceError {
    fn from(error: V1Error) -> Self {
        let mut rejection = Self::rejected(error.code(), error.message());
        match error {
            V1Error::RateLimited { retry_after_s, .. } => {
                rejection.meta.retry_after = Some(Duration::from_secs(retry_after_s));
            }
            V1Error::PaymentRequired { credits_remaining, .. } => {
                rejection.meta.credits_remaining = Some(credits_remaining);
            }
            V1Error::BadRequest(_)
            | V1Error::Unauthorized(_)
            | V1Error::NotFound(_)
            | V1Error::Conflict(_)
            | V1Error::Damaged => {}
            V1Error::Unavailable(none) => {
                rejection.meta.failure_detail = Some(none.detail_or_reason().to_owned());
                rejection.meta.retry_after = none.retry_after.or_else(|| parse_wait(&none.message));
                rejection.languages = none.languages;
            }
            V1Error::Internal(message) => rejection.meta.retry_after = parse_wait(&message),
        }
        rejection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{engine::NoTranscript, error::Retry};

    #[test]
    fn service_error_status_selects_kind() {
        use ServiceErrorKind as Kind;
        for (status, kind) in [
            (400, Kind::BadRequest),
            (401, Kind::Unauthorized),
            (402, Kind::PaymentRequired),
            (404, Kind::NotFound),
            (405, Kind::WrongMethod),
            (409, Kind::Conflict),
            (413, Kind::TooLarge),
            (415, Kind::WrongType),
            (429, Kind::RateLimited),
            (500, Kind::ServerError),
            (503, Kind::ServerError),
            (508, Kind::Loop),
            (302, Kind::Redirected),
            (418, Kind::Other),
        ] {
            assert_eq!(ServiceError::rejected(status, "").kind, kind, "{status}");
        }
    }

    #[test]
    fn service_error_keeps_data_of_core_and_v1_errors() {
        let wait = Duration::from_secs(7);
        let core = ServiceError::from(Error::new(ErrorKind::Unavailable, Retry::After(wait), "later"));
        assert_eq!(
            (core.kind, core.status, core.retry_after(), core.to_string()),
            (ServiceErrorKind::Core(ErrorKind::Unavailable), None, Some(wait), "later".to_owned())
        );
        let limited = V1Error::RateLimited { message: "slow".to_owned(), retry_after_s: 7, rate: None };
        let limited = ServiceError::from(limited);
        assert_eq!((limited.status, limited.retry_after()), (Some(429), Some(wait)));
        let busy = ServiceError::from(V1Error::Internal("Busy. Try again in 7 seconds.".to_owned()));
        assert_eq!((busy.status, busy.retry_after()), (Some(500), Some(wait)));
        let throttled = NoTranscript::new(FailureReason::RateLimited, "Throttled. Try again in 7 seconds.");
        let private = NoTranscript::new(FailureReason::NoCaptions, "Private.").with_detail("private");
        for (none, status, detail) in
            [(throttled, 500, "rate_limited"), (private.with_retry_after(wait), 404, "private")]
        {
            let error = ServiceError::from(V1Error::from(none));
            assert_eq!((error.status, error.retry_after()), (Some(status), Some(wait)));
            assert_eq!(error.meta.failure_detail.as_deref(), Some(detail));
        }
        let spent = V1Error::PaymentRequired { message: "spent".to_owned(), credits_remaining: 3 };
        assert_eq!(ServiceError::from(spent).meta.credits_remaining, Some(3));
    }
}
