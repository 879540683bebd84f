//! Errors of the lookup API as problem details (RFC 9457).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use transcript_core::{time::ceil_seconds, wire::Problem};

/// Error response: a status and a sentence about this request.
#[derive(Debug)]
pub(crate) struct ProblemResponse {
    status: StatusCode,
    detail: String,
    parameter: Option<String>,
    retry_after: Option<Duration>,
    links: Vec<(String, &'static str)>,
}

impl ProblemResponse {
    /// Creates an error with this status and sentence.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), parameter: None, retry_after: None, links: Vec::new() }
    }

    /// 400 for a wrong parameter, header or field, whose name comes first.
    pub(crate) fn bad(name: &str, what: impl AsRef<str>) -> Self {
        let problem = Self::new(StatusCode::BAD_REQUEST, format!("{name}: {}", what.as_ref()));
        Self { parameter: Some(name.to_owned()), ..problem }
    }

    /// Adds the time to wait before a retry.
    pub(crate) fn with_retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    /// Adds links to the page of the error: relative addresses, each with the message of its text.
    #[cfg(feature = "documents")]
    pub(crate) fn with_links(self, links: Vec<(String, &'static str)>) -> Self {
        Self { links, ..self }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the sentence.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the name of the wrong parameter, header or field, if that is the error.
    pub(crate) fn parameter(&self) -> Option<&str> {
        self.parameter.as_deref()
    }

    /// Returns the value of `Retry-After`; `None` if the response has none.
    pub(crate) fn retry_after(&self) -> Option<HeaderValue> {
        match (self.retry_after, self.status) {
            (Some(wait), _) => Some(HeaderValue::from(ceil_seconds(wait))),
            (None, StatusCode::SERVICE_UNAVAILABLE) => Some(RETRY_AFTER_BUSY),
            (None, _) => None,
        }
    }

    /// 500 for an internal error. The cause is only logged.
    pub(crate) fn fault() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The server could not process the request. Retry in a moment.",
        )
    }
}

/// Header of a response that no cache stores.
pub(crate) const NO_STORE: (HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
/// `Retry-After` of a response that was refused because the server is busy.
pub(crate) const RETRY_AFTER_BUSY: HeaderValue = HeaderValue::from_static("5");

/// The sentence and the links of a [`ProblemResponse`], attached to its response for other renderings.
#[derive(Clone, Debug)]
pub(crate) struct ProblemDetail(pub(crate) String, pub(crate) Vec<(String, &'static str)>);

impl IntoResponse for ProblemResponse {
    fn into_response(self) -> Response {
        let retry_after = self.retry_after();
        let detail = ProblemDetail(self.detail.clone(), self.links);
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            failure_reason: None,
        };
        // Serialization of texts and a number cannot fail.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/problem+json")), NO_STORE];
        let mut response = (self.status, headers, body).into_response();
        if let Some(retry_after) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, retry_after);
        }
        response.extensions_mut().insert(detail);
        response
    }
}
