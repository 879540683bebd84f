//! Errors of one call, with the parts of their sentences.

use std::{fmt, time::Duration};

use http::StatusCode;
use serde_json::Value;
use transcript_core::{
    ErrorKind,
    lookup::FailureReason,
    service::{ResponseMeta, ServiceError, ServiceErrorKind},
    text::one_line,
    time::parse_wait,
    transcript::TrackInfo,
    wire::{Problem, v1::ErrorBody},
};

use crate::{http::HttpError, json};

/// Maximum length of a server's message in characters; a longer one is cut.
const MESSAGE_MAX: usize = 500;

/// Why a response that is larger than the call allows is invalid.
pub(super) const TOO_LARGE: &str = "it is too large";

/// Why a call failed. The supplier and [`ServiceError`] word it differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// The call is invalid; nothing was sent.
    Invalid(&'static str),
    /// The server rejected the call.
    Rejected(Box<ServiceError>),
    /// The server did not respond in time.
    Timeout,
    /// The connection failed; the text says at which step.
    Unreachable(&'static str),
    /// The response ended early.
    CutOff,
    /// The response is larger than the call allows.
    TooLarge,
    /// The response is not that of a Verbatim server; the text says what is wrong.
    Unreadable(&'static str),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) => write!(f, "The request was not sent: {what}."),
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Timeout => f.write_str("The server took too long to respond."),
            Self::Unreachable(step) => write!(f, "The server could not be reached: {step}."),
            Self::CutOff => f.write_str("The server's response ended early."),
            Self::TooLarge => write!(f, "The server's response is invalid: {TOO_LARGE}."),
            Self::Unreadable(what) => write!(f, "The server's response is invalid: {what}."),
        }
    }
}

/// Parses a rejected response, in the error format of either API.
pub(super) fn rejection(status: StatusCode, meta: ResponseMeta, body: &[u8]) -> ServiceError {
    let json = json::parse::<Value>(body).unwrap_or_default();
    // Of the calls, only those of the v1 API have a 404 with an error.
    if status == StatusCode::NOT_FOUND && serde_json::from_value::<ErrorBody>(json.clone()).is_err() {
        let message = "No Verbatim server responds at this address (HTTP 404). Correct the base URL.";
        return ServiceError {
            kind: ServiceErrorKind::NoServer,
            meta: Box::new(meta),
            ..ServiceError::rejected(status.as_u16(), message)
        };
    }
    let (message, reason, languages) = error_details(json);
    let message = message.as_deref().and_then(single_line).unwrap_or_else(|| {
        let words = status.canonical_reason().unwrap_or("unknown status");
        format!("The server returned HTTP {}: {words}.", status.as_u16())
    });
    let retry_after = meta.retry_after.or_else(|| parse_wait(&message));
    let meta = ResponseMeta { retry_after, ..meta };
    ServiceError {
        reason: reason.as_deref().and_then(FailureReason::from_wire),
        languages,
        meta: Box::new(meta),
        ..ServiceError::rejected(status.as_u16(), message)
    }
}

/// The message in an error body of either API, and the failure reason or the languages next to it.
fn error_details(json: Value) -> (Option<String>, Option<String>, Vec<TrackInfo>) {
    if let Ok(problem) = serde_json::from_value::<Problem>(json.clone()) {
        return (Some(problem.detail), problem.failure_reason, Vec::new());
    }
    match serde_json::from_value::<ErrorBody>(json) {
        Ok(body) => {
            let languages = body.tracks();
            (Some(body.error), None, languages)
        }
        Err(_) => (None, None, Vec::new()),
    }
}

/// A server's message on one line and of bounded length; `None` if empty.
pub(super) fn single_line(text: &str) -> Option<String> {
    // The first bound limits the work for a long text.
    let text: String = text.chars().take(4 * MESSAGE_MAX).collect();
    let cut: String = one_line(&text).chars().take(MESSAGE_MAX).collect();
    (!cut.is_empty()).then_some(cut)
}

impl CallError {
    fn rejection(&self) -> Option<&ServiceError> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            _ => None,
        }
    }

    /// The kind of rejection, if the server rejected the call.
    pub(super) fn kind(&self) -> Option<ServiceErrorKind> {
        self.rejection().map(|rejection| rejection.kind)
    }

    /// Time after which a retry may succeed, if the server names one.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.rejection()?.retry_after()
    }

    pub(super) fn from_http_error(fault: &HttpError) -> Self {
        match fault {
            HttpError::Timeout => Self::Timeout,
            HttpError::Unreachable(how) => Self::Unreachable(how),
            HttpError::TooLarge => Self::TooLarge,
            HttpError::Encoded => Self::Unreadable("it is compressed in an unsupported way"),
            _ => Self::CutOff,
        }
    }

    /// Whether a retry of the same request may succeed soon.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Timeout | Self::Unreachable(_) | Self::CutOff => true,
            Self::Rejected(no) => {
                matches!(no.kind, ServiceErrorKind::ServerError | ServiceErrorKind::RateLimited)
                    || no.status == Some(408)
            }
            Self::Invalid(_) | Self::TooLarge | Self::Unreadable(_) => false,
        }
    }

    /// Whether the request may have taken effect, or may still take effect.
    pub(super) fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Timeout | Self::Unreachable(_) | Self::CutOff | Self::TooLarge | Self::Unreadable(_) => {
                true
            }
            // A server that names the reason has ended the request. A proxy names none.
            Self::Rejected(no) => {
                (no.kind == ServiceErrorKind::ServerError && no.meta.failure_detail.is_none())
                    || no.status == Some(408)
            }
            Self::Invalid(_) => false,
        }
    }
}

impl From<CallError> for ServiceError {
    fn from(error: CallError) -> Self {
        let kind = match &error {
            CallError::Rejected(_) => ServiceErrorKind::Other,
            CallError::Invalid(_) => ServiceErrorKind::Core(ErrorKind::Invalid),
            CallError::Timeout => ServiceErrorKind::Timeout,
            CallError::Unreachable(_) => ServiceErrorKind::Unreachable,
            CallError::CutOff => ServiceErrorKind::CutOff,
            CallError::TooLarge | CallError::Unreadable(_) => ServiceErrorKind::Unreadable,
        };
        match error {
            CallError::Rejected(rejection) => *rejection,
            error => Self::new(kind, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(status: u16, body: &str) -> ServiceError {
        rejection(StatusCode::from_u16(status).unwrap(), ResponseMeta::default(), body.as_bytes())
    }

    #[test]
    fn rejection_error_of_either_api_is_parsed() {
        let plain = rejected(402, r#"{"error":"No credits are left.","code":402}"#);
        assert_eq!(
            (plain.kind, plain.message.as_str()),
            (ServiceErrorKind::PaymentRequired, "No credits are left.")
        );
        let named = r#"{"error":"No.","code":404,"languages":[
            {"tag":"de","name":"German","kind":"auto","original":true},
            {"tag":"de","name":"German","kind":"robot","original":true}]}"#;
        let absent = rejected(404, named);
        assert_eq!(absent.kind, ServiceErrorKind::NotFound);
        let languages = absent.languages;
        assert!(languages.len() == 1 && languages[0].language.as_str() == "de" && languages[0].original);
        let problem = r#"{"type":"about:blank","title":"x","status":429,"detail":"Too\n many.","failureReason":"fair_use"}"#;
        let read = rejected(429, problem);
        assert_eq!((read.message.as_str(), read.reason), ("Too many.", Some(FailureReason::FairUse)));
        let expected = "The server returned HTTP 502: Bad Gateway.";
        for body in ["<html>", "", "[]", "7", r#"{"error":7}"#, r#"{"error":" \u0000 ","code":502}"#] {
            assert_eq!(rejected(502, body).message, expected, "{body}");
        }
        let long = format!(r#"{{"error":"{}","code":500}}"#, "word ".repeat(10_000));
        assert!(rejected(500, &long).message.chars().count() <= MESSAGE_MAX);
    }

    #[test]
    fn rejection_404_without_v1_error_names_no_server() {
        let problem =
            r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"There is nothing."}"#;
        for body in [problem, "<html>", "", "[]", r#"{"error":"No."}"#] {
            let error = rejected(404, body);
            assert_eq!((error.kind, error.status), (ServiceErrorKind::NoServer, Some(404)), "{body}");
            assert!(error.message.starts_with("No Verbatim server responds"), "{body}: {error}");
        }
    }

    #[test]
    fn call_error_only_transient_kinds_are_retried() {
        let refused = |status| CallError::Rejected(Box::new(rejected(status, "")));
        for passing in [CallError::Timeout, refused(500), refused(503), refused(429), refused(408)] {
            assert!(passing.is_transient(), "{passing}");
        }
        for lasting in [refused(400), refused(401), refused(404), refused(302), refused(508), refused(409)] {
            assert!(!lasting.is_transient(), "{lasting}");
        }
        assert!(!CallError::from_http_error(&HttpError::TooLarge).is_transient());
        assert!(CallError::from_http_error(&HttpError::CutOff).is_transient());
    }
}
