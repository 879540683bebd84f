//! Responses of the v1 API in the form that replays store.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use transcript_core::{
    accounts::{StoredHeader, StoredResponse},
    wire::v1::ErrorBody,
};

use super::json_bytes;

/// Stored response with a JSON body.
pub(crate) fn reply(status: StatusCode, body: &impl Serialize) -> StoredResponse {
    match json_bytes(serde_json::to_vec(body)) {
        Ok(json) => StoredResponse::json(status.as_u16(), json),
        Err(fault) => {
            let error = ErrorBody::new(fault.detail(), fault.status().as_u16());
            // Serialization of a text and a number cannot fail.
            StoredResponse::json(error.code, serde_json::to_vec(&error).unwrap_or_default())
        }
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
