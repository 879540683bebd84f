//! Server-Sent Events.

use std::time::Duration;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header::CONTENT_TYPE};
use serde::Serialize;

/// Media type of the stream.
pub(super) const EVENTS: &str = "text/event-stream";
/// Interval of comments while no event is sent: the server and proxies close silent connections as idle.
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Comment, which event parsers skip.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// Disables response buffering in nginx.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) fn event_stream(body: Body) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Event with this data as JSON.
pub(crate) fn event(name: &str, data: &impl Serialize) -> Bytes {
    // Serialization of texts, numbers and lists cannot fail.
    event_of_json(name, &serde_json::to_vec(data).unwrap_or_default())
}

/// Event with this JSON, which contains no line feed.
pub(crate) fn event_of_json(name: &str, json: &[u8]) -> Bytes {
    [b"event: ", name.as_bytes(), b"\ndata: ", json, b"\n\n"].concat().into()
}
