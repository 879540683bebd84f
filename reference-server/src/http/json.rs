//! JSON responses.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

/// Returns a response with this JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Serialization of texts, numbers and lists cannot fail.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    (status, [(CONTENT_TYPE, kind)], bytes).into_response()
}
