//! JSON in responses and requests.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ProblemResponse;

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

/// Returns whether the media type of a request body is JSON; `None` without a media type.
pub(crate) fn is_json(headers: &HeaderMap) -> Option<bool> {
    Some(content_type(headers)?.eq_ignore_ascii_case(b"application/json"))
}

/// Parses a request body as a JSON object. `other` is the message for other JSON.
///
/// # Errors
/// 400.
pub(crate) fn json_object(
    body: &[u8],
    other: impl FnOnce() -> String,
) -> Result<Map<String, Value>, ProblemResponse> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(ProblemResponse::bad("body", other())),
        Err(error) => {
            let place = format!("line {}, column {}", error.line(), error.column());
            Err(ProblemResponse::bad("body", format!("it is no valid JSON ({place})")))
        }
    }
}
