//! Every way in which a call of another server fails.

use std::{fmt, time::Duration};

use http::StatusCode;
use serde_json::Value;
use transcript_core::{lookup::FailureReason, wire::Problem, wire::v1::ErrorBody};

use super::Facts;
use crate::http::HttpFault;

/// The longest sentence of a server that is passed on, in characters.
const MESSAGE_MAX: usize = 500;

/// Why a call has no answer. Neither the key nor an address is in it; a server's own sentence may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceError {
    /// The call cannot be made as it is; nothing was sent.
    Invalid(&'static str),
    /// The server said no.
    Refused(Box<Refusal>),
    /// The server took too long.
    Timeout,
    /// No connection came about; how far it got.
    Unreachable(&'static str),
    /// The answer broke off.
    CutOff,
    /// What came is no answer of a Verbatim server, or is larger than any that is read; which.
    Unreadable(&'static str),
}

/// What a server said no with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which no it is.
    pub kind: RefusalKind,
    /// The HTTP status, which is the `code` of Surface B's errors (specification 7).
    pub status: u16,
    /// The server's sentence on one line; where it says none, the status in words.
    pub message: String,
    /// The look-up's failure reason, where one is told beside a status.
    pub failure_reason: Option<FailureReason>,
    /// What the headers say: `retry_after` on 429, `credits_remaining` on 402, and the rest.
    pub facts: Facts,
}

/// Which no it is (specification 7, and the documented extensions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// 400: missing or invalid parameters.
    BadRequest,
    /// 401: the key is missing, unknown or of the other surface.
    Unauthorized,
    /// 402: the credits are spent.
    PaymentRequired,
    /// 404: no transcript is available, or nothing is at this address.
    NotFound,
    /// 405: the address has no such method.
    WrongMethod,
    /// 409: a request with the same `Idempotency-Key` is under way; on verify: a living key would be ended.
    Conflict,
    /// 413: the body is too large.
    TooLarge,
    /// 415: the body is of another type.
    WrongType,
    /// 429: the caller's own limit.
    RateLimited,
    /// 508: a server would have been asked through a server that it asks.
    Loop,
    /// 5xx: a failure of the server's; nothing was charged.
    Fault,
    /// 3xx: the server is elsewhere. Nobody is followed with a key.
    Redirected,
    /// Any other status.
    Other,
}

impl RefusalKind {
    fn of(status: StatusCode) -> Self {
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
            500..=599 => Self::Fault,
            300..=399 => Self::Redirected,
            _ => Self::Other,
        }
    }
}

impl Refusal {
    /// The refusal that an answer is, in whichever form its body has.
    pub(super) fn of(status: StatusCode, facts: Facts, body: &[u8]) -> Self {
        let (said, reason) = match serde_json::from_slice::<Value>(body) {
            Ok(json) => said(json),
            Err(_) => (None, None),
        };
        let message = said.as_deref().and_then(line).unwrap_or_else(|| {
            let words = status.canonical_reason().unwrap_or("no answer that is known");
            format!("The server answered with HTTP {}: {words}.", status.as_u16())
        });
        Self {
            kind: RefusalKind::of(status),
            status: status.as_u16(),
            message,
            failure_reason: reason.as_deref().and_then(FailureReason::from_wire),
            facts,
        }
    }
}

/// The sentence in a body of either surface, and the failure reason beside it.
fn said(json: Value) -> (Option<String>, Option<String>) {
    match serde_json::from_value::<Problem>(json.clone()) {
        Ok(problem) => (Some(problem.detail), problem.failure_reason),
        Err(_) => (serde_json::from_value::<ErrorBody>(json).ok().map(|body| body.error), None),
    }
}

/// What a server says to people, on one line and of bounded length; none when it says nothing.
pub(super) fn line(text: &str) -> Option<String> {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    // Its own bound comes first, so that the rest of a long text is not even looked at.
    let text: String = text.chars().take(4 * MESSAGE_MAX).map(plain).collect();
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = joined.chars().take(MESSAGE_MAX).collect();
    (!cut.is_empty()).then_some(cut)
}

impl ServiceError {
    /// The refusal, where the server said no.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Which no it is, where the server said no.
    pub fn kind(&self) -> Option<RefusalKind> {
        self.refusal().map(|refusal| refusal.kind)
    }

    /// After which time asking again may help, where the server says so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.refusal()?.facts.retry_after
    }

    pub(super) fn of_fault(fault: &HttpFault) -> Self {
        match fault {
            HttpFault::Timeout => Self::Timeout,
            HttpFault::Unreachable(how) => Self::Unreachable(how),
            HttpFault::TooLarge => Self::Unreadable("it is larger than any that is read"),
            HttpFault::Encoded => Self::Unreadable("it is compressed in a way that was not asked for"),
            _ => Self::CutOff,
        }
    }

    /// Whether the same request may be answered otherwise in a moment.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Timeout | Self::Unreachable(_) | Self::CutOff => true,
            Self::Refused(no) => {
                matches!(no.kind, RefusalKind::Fault | RefusalKind::RateLimited) || no.status == 408
            }
            Self::Invalid(_) | Self::Unreadable(_) => false,
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) => write!(f, "The server was not asked: {what}."),
            Self::Refused(refusal) => f.write_str(&refusal.message),
            Self::Timeout => f.write_str("The server took too long to answer."),
            Self::Unreachable(how) => write!(f, "The server could not be reached: {how}."),
            Self::CutOff => f.write_str("The server's answer broke off."),
            Self::Unreadable(what) => write!(f, "The server's answer is of no use: {what}."),
        }
    }
}

impl std::error::Error for ServiceError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> Refusal {
        Refusal::of(StatusCode::from_u16(status).unwrap(), Facts::default(), body.as_bytes())
    }

    #[test]
    fn refusals_are_told_apart_in_the_forms_of_both_surfaces() {
        use RefusalKind as Kind;
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
            (500, Kind::Fault),
            (503, Kind::Fault),
            (508, Kind::Loop),
            (302, Kind::Redirected),
            (418, Kind::Other),
        ] {
            assert_eq!(refusal(status, "").kind, kind, "{status}");
        }
        assert_eq!(
            refusal(402, r#"{"error":"No credits are left.","code":402}"#).message,
            "No credits are left."
        );
        let problem = r#"{"type":"about:blank","title":"x","status":429,"detail":"Too\n many.","failureReason":"fair_use"}"#;
        let read = refusal(429, problem);
        assert_eq!((read.message.as_str(), read.failure_reason), ("Too many.", Some(FailureReason::FairUse)));
        let told = "The server answered with HTTP 502: Bad Gateway.";
        for body in ["<html>", "", "[]", "7", r#"{"error":7}"#, r#"{"error":" \u0000 ","code":502}"#] {
            assert_eq!(refusal(502, body).message, told, "{body}");
        }
        let long = format!(r#"{{"error":"{}","code":500}}"#, "word ".repeat(10_000));
        assert!(refusal(500, &long).message.chars().count() <= MESSAGE_MAX);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let refused = |status| ServiceError::Refused(Box::new(refusal(status, "")));
        for passing in [ServiceError::Timeout, refused(500), refused(503), refused(429), refused(408)] {
            assert!(passing.is_passing(), "{passing}");
        }
        for lasting in [refused(400), refused(401), refused(404), refused(302), refused(508), refused(409)] {
            assert!(!lasting.is_passing(), "{lasting}");
        }
        assert!(!ServiceError::of_fault(&HttpFault::TooLarge).is_passing());
        assert!(ServiceError::of_fault(&HttpFault::CutOff).is_passing());
    }
}
