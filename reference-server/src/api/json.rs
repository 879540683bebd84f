//! JSON in responses and requests.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;

/// Media type of a JSON response.
pub(crate) const JSON: &str = "application/json; charset=utf-8";

/// Returns a response with this JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Serialization of texts, numbers and lists cannot fail.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    (status, [(CONTENT_TYPE, HeaderValue::from_static(JSON))], bytes).into_response()
}

/// Returns the media type of a request body, without parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<&[u8]> {
    let kind = headers.get(CONTENT_TYPE)?.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    Some(kind.trim_ascii())
}
