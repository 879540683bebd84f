//! Responses of the v1 API in the form that replays store.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE};
use serde::Serialize;
use transcript_core::accounts::{StoredHeader, StoredResponse};

use super::JSON;

/// Stored response with a JSON body.
pub(crate) fn reply(status: StatusCode, body: &impl Serialize) -> StoredResponse {
    StoredResponse {
        status: status.as_u16(),
        headers: vec![StoredHeader { name: CONTENT_TYPE.to_string(), value: JSON.to_owned() }],
        // The wire types always serialize.
        body: serde_json::to_vec(body).unwrap_or_default(),
    }
}

/// HTTP response of a stored response.
pub(crate) fn into_response(reply: StoredResponse) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers: HeaderMap = reply
        .headers
        .into_iter()
        .filter_map(|StoredHeader { name, value }| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        })
        .collect();
    (status, headers, reply.body).into_response()
}
