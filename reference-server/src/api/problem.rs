//! Errors of the lookup API as problem details (RFC 9457).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use transcript_core::wire::Problem;

/// Error response: a status and a sentence about this request.
#[derive(Debug)]
pub(crate) struct ProblemResponse {
    status: StatusCode,
    detail: String,
}

impl ProblemResponse {
    /// Creates an error with this status and sentence.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// 400 for a wrong parameter, header or field, whose name comes first.
    pub(crate) fn bad(name: &str, what: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("{name}: {}", what.as_ref()))
    }

    /// Returns the status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the sentence.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// 500 for an internal error. The cause is only logged.
    pub(crate) fn fault() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The server could not process the request. Retry in a moment.",
        )
    }
}

/// Returns a time to wait as `Retry-After`: whole seconds, rounded up, at least 1.
pub(crate) fn retry_after_seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1)
}

/// `Retry-After` of a response that was refused because the server is busy.
pub(crate) const RETRY_AFTER_BUSY: HeaderValue = HeaderValue::from_static("5");

/// The sentence of a [`ProblemResponse`], attached to its response for other renderings.
#[derive(Clone, Debug)]
pub(crate) struct ProblemDetail(pub(crate) String);

impl IntoResponse for ProblemResponse {
    fn into_response(self) -> Response {
        let detail = ProblemDetail(self.detail.clone());
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            failure_reason: None,
        };
        // Serialization of texts and a number cannot fail.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        let mut response = (self.status, headers, body).into_response();
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_BUSY);
        }
        response.extensions_mut().insert(detail);
        response
    }
}
