//! Answers as JSON.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

/// An answer with this body as JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Every body here is a structure of texts, numbers and lists, which always becomes JSON.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    (status, [(CONTENT_TYPE, kind)], bytes).into_response()
}
