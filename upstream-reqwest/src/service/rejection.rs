//! Errors of a call to another Verbatim server.

use std::{fmt, time::Duration};

use http::StatusCode;
use serde_json::Value;
use transcript_core::{lookup::FailureReason, wire::Problem, wire::v1::ErrorBody};

use super::ResponseMeta;
use crate::http::HttpError;

/// Maximum length of a server's message in characters; a longer one is cut.
const MESSAGE_MAX: usize = 500;

/// Why a call failed. It contains neither the key nor a URL; a server's own message may be in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceError {
    /// The call is invalid; nothing was sent.
    Invalid(&'static str),
    /// The server rejected the call.
    Rejected(Box<ServiceRejection>),
    /// The server did not respond in time.
    Timeout,
    /// The connection failed; the text says at which step.
    Unreachable(&'static str),
    /// The response ended early.
    CutOff,
    /// The response is not that of a Verbatim server, or too large; the text says what is wrong.
    Unreadable(&'static str),
}

/// A rejection by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRejection {
    /// The kind of rejection.
    pub kind: RejectionKind,
    /// The HTTP status, which is the `code` in errors of the v1 API (specification 7.2).
    pub status: u16,
    /// The server's message on one line; without one, the status in words.
    pub message: String,
    /// The lookup's failure reason, if the response contains one.
    pub failure_reason: Option<FailureReason>,
    /// Metadata of the headers: `retry_after` on 429, `credits_remaining` on 402, and the others.
    pub meta: ResponseMeta,
}

/// Kind of a rejection (specification 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectionKind {
    /// 400: missing or invalid parameters.
    BadRequest,
    /// 401: the key is missing, unknown or of the other API.
    Unauthorized,
    /// 402: no credits left.
    PaymentRequired,
    /// 404: no transcript is available, or nothing is at this URL.
    NotFound,
    /// 405: the URL does not support this method.
    WrongMethod,
    /// 409: a request with the same `Idempotency-Key` is running.
    ///
    /// On verify: an active key would be revoked.
    Conflict,
    /// 413: the request body is too large.
    TooLarge,
    /// 415: the request body has another content type.
    WrongType,
    /// 429: rate limit of the caller.
    RateLimited,
    /// 508: the request would pass through a third server.
    Loop,
    /// 5xx: an error of the server; nothing was charged.
    ServerError,
    /// 3xx: the server is elsewhere. Redirects are not followed with a key.
    Redirected,
    /// Any other status.
    Other,
}

impl RejectionKind {
    fn from_status(status: StatusCode) -> Self {
        match status.as_u16() {
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

impl ServiceRejection {
    /// Parses a rejected response, in the error format of either API.
    pub(super) fn new(status: StatusCode, meta: ResponseMeta, body: &[u8]) -> Self {
        let (error_message, reason) = match serde_json::from_slice::<Value>(body) {
            Ok(json) => error_message(json),
            Err(_) => (None, None),
        };
        let message = error_message.as_deref().and_then(single_line).unwrap_or_else(|| {
            let words = status.canonical_reason().unwrap_or("unknown status");
            format!("The server returned HTTP {}: {words}.", status.as_u16())
        });
        Self {
            kind: RejectionKind::from_status(status),
            status: status.as_u16(),
            message,
            failure_reason: reason.as_deref().and_then(FailureReason::from_wire),
            meta,
        }
    }
}

/// The message in an error body of either API, and the failure reason next to it.
fn error_message(json: Value) -> (Option<String>, Option<String>) {
    match serde_json::from_value::<Problem>(json.clone()) {
        Ok(problem) => (Some(problem.detail), problem.failure_reason),
        Err(_) => (serde_json::from_value::<ErrorBody>(json).ok().map(|body| body.error), None),
    }
}

/// A server's message on one line and of bounded length; `None` if empty.
pub(super) fn single_line(text: &str) -> Option<String> {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    // The first bound limits the work for a long text.
    let text: String = text.chars().take(4 * MESSAGE_MAX).map(plain).collect();
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = joined.chars().take(MESSAGE_MAX).collect();
    (!cut.is_empty()).then_some(cut)
}

impl ServiceError {
    /// The rejection, if the server rejected the call.
    pub fn rejection(&self) -> Option<&ServiceRejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            _ => None,
        }
    }

    /// The kind of rejection, if the server rejected the call.
    pub fn kind(&self) -> Option<RejectionKind> {
        self.rejection().map(|rejection| rejection.kind)
    }

    /// Time after which a retry may succeed, if the server names one.
    pub fn retry_after(&self) -> Option<Duration> {
        self.rejection()?.meta.retry_after
    }

    pub(super) fn from_http_error(fault: &HttpError) -> Self {
        match fault {
            HttpError::Timeout => Self::Timeout,
            HttpError::Unreachable(how) => Self::Unreachable(how),
            HttpError::TooLarge => Self::Unreadable("it is too large"),
            HttpError::Encoded => Self::Unreadable("it is compressed in an unsupported way"),
            _ => Self::CutOff,
        }
    }

    /// Whether a retry of the same request may succeed soon.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Timeout | Self::Unreachable(_) | Self::CutOff => true,
            Self::Rejected(no) => {
                matches!(no.kind, RejectionKind::ServerError | RejectionKind::RateLimited) || no.status == 408
            }
            Self::Invalid(_) | Self::Unreadable(_) => false,
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) => write!(f, "The request was not sent: {what}."),
            Self::Rejected(rejection) => f.write_str(&rejection.message),
            Self::Timeout => f.write_str("The server took too long to respond."),
            Self::Unreachable(how) => write!(f, "The server could not be reached: {how}."),
            Self::CutOff => f.write_str("The server's response ended early."),
            Self::Unreadable(what) => write!(f, "The server's response is invalid: {what}."),
        }
    }
}

impl std::error::Error for ServiceError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(status: u16, body: &str) -> ServiceRejection {
        ServiceRejection::new(StatusCode::from_u16(status).unwrap(), ResponseMeta::default(), body.as_bytes())
    }

    #[test]
    fn rejection_error_of_either_api_is_parsed() {
        use RejectionKind as Kind;
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
            assert_eq!(rejection(status, "").kind, kind, "{status}");
        }
        assert_eq!(
            rejection(402, r#"{"error":"No credits are left.","code":402}"#).message,
            "No credits are left."
        );
        let problem = r#"{"type":"about:blank","title":"x","status":429,"detail":"Too\n many.","failureReason":"fair_use"}"#;
        let read = rejection(429, problem);
        assert_eq!((read.message.as_str(), read.failure_reason), ("Too many.", Some(FailureReason::FairUse)));
        let expected = "The server returned HTTP 502: Bad Gateway.";
        for body in ["<html>", "", "[]", "7", r#"{"error":7}"#, r#"{"error":" \u0000 ","code":502}"#] {
            assert_eq!(rejection(502, body).message, expected, "{body}");
        }
        let long = format!(r#"{{"error":"{}","code":500}}"#, "word ".repeat(10_000));
        assert!(rejection(500, &long).message.chars().count() <= MESSAGE_MAX);
    }

    #[test]
    fn service_error_only_transient_kinds_are_retried() {
        let refused = |status| ServiceError::Rejected(Box::new(rejection(status, "")));
        for passing in [ServiceError::Timeout, refused(500), refused(503), refused(429), refused(408)] {
            assert!(passing.is_transient(), "{passing}");
        }
        for lasting in [refused(400), refused(401), refused(404), refused(302), refused(508), refused(409)] {
            assert!(!lasting.is_transient(), "{lasting}");
        }
        assert!(!ServiceError::from_http_error(&HttpError::TooLarge).is_transient());
        assert!(ServiceError::from_http_error(&HttpError::CutOff).is_transient());
    }
}
