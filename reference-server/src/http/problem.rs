//! Errors of Surface A as problem details (RFC 9457).

use axum::response::{IntoResponse, Response};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use transcript_core::wire::Problem;

/// A request that is not answered as asked: a status and a sentence about this very request.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    detail: String,
}

impl Refusal {
    /// A refusal with this status and sentence.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// A parameter, header or field of the request is wrong: 400, with its name first.
    pub(crate) fn bad(name: &str, what: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("{name}: {}", what.as_ref()))
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The sentence.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// A fault of ours: 500. What it was is for the log, not for the caller.
    pub(crate) fn fault() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Something went wrong on our side: please try again in a moment.",
        )
    }
}

/// The sentence of a [`Refusal`] beside its response, for whoever shows it otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Said(pub(crate) String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let said = Said(self.detail.clone());
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            failure_reason: None,
        };
        // A structure of texts and a number always becomes JSON.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        let mut response = (self.status, headers, body).into_response();
        response.extensions_mut().insert(said);
        response
    }
}
