//! Chat answers as Server-Sent Events: each sentence is sent as soon as it is verified.
//!
//! `sentence` events carry one sentence each, then `answer` carries the whole JSON answer. An `error` event carries an
//! error body; sentences sent before it remain valid. The stream begins with the first sentence: earlier failures are
//! plain responses with their own status.
//!
//! A caller that disconnects after the first sentence is charged; see [`ChatStream`].

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Serialize;
use tokio::time::timeout;
use transcript_core::{
    accounts::{ChatStream, ChatStreamEvent, RateLimitStatus, StoredResponse, V1Error},
    chat::Sentence,
    wire::v1::{ChatCitation, ErrorBody},
};

use super::{V1ErrorResponse, admission::finish, rate, verify::weight};

/// Interval of comments while no event is sent.
/// The server and proxies close silent connections as idle, and a model may need long for a sentence that passes
/// verification.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Comment, which event parsers skip.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// Disables response buffering in nginx: delivered sentences are charged.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Media type of the stream.
const EVENTS: &str = "text/event-stream";

/// Whether the caller accepts events by name.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let (kind, rest) = range.split_once(';').unwrap_or((range, ""));
        kind.trim().eq_ignore_ascii_case(EVENTS) && weight(rest) > 0
    })
}

/// Streams an answer, once the first sentence or the whole answer is ready.
pub(super) async fn stream_response(mut stream: ChatStream, rate: RateLimitStatus) -> Response {
    let first = match stream.next().await {
        ChatStreamEvent::Finished(Err(error)) => return finish(rate, Err(V1ErrorResponse::from(error))),
        first => first,
    };
    let body = futures_util::stream::unfold(Some((stream, Some(first))), |state| async {
        let (mut stream, first) = state?;
        let event_or_end = match first {
            Some(first) => first,
            None => match timeout(KEEPALIVE_INTERVAL, stream.next()).await {
                Ok(event_or_end) => event_or_end,
                Err(_) => return Some((Ok(COMMENT), Some((stream, None)))),
            },
        };
        Some(match event_or_end {
            ChatStreamEvent::Sentence(sentence) => {
                stream.mark_delivered();
                (Ok::<_, Infallible>(event("sentence", &sentence_event(&sentence))), Some((stream, None)))
            }
            ChatStreamEvent::Finished(outcome) => (Ok(last_event(outcome)), None),
        })
    });
    let mut response = Body::from_stream(body).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response.headers_mut().extend(rate::fields(&rate));
    response
}

/// Last event: the whole answer, as stored for replays, or the error.
fn last_event(outcome: Result<StoredResponse, V1Error>) -> Bytes {
    match outcome {
        Ok(reply) => format_event("answer", &String::from_utf8_lossy(&reply.body)),
        Err(refused) => {
            let denial = V1ErrorResponse::from(refused);
            let (error, code) = (denial.message().to_owned(), denial.status().as_u16());
            event("error", &ErrorBody { error, code })
        }
    }
}

/// Payload of a `sentence` event.
#[derive(Debug, Serialize)]
struct SentenceEvent<'a> {
    text: &'a str,
    citations: Vec<ChatCitation>,
}

fn sentence_event(sentence: &Sentence) -> SentenceEvent<'_> {
    SentenceEvent {
        text: &sentence.text,
        citations: sentence.citations.iter().map(ChatCitation::from).collect(),
    }
}

/// Formats an event. JSON output contains no line feed.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    // The wire types always serialize.
    format_event(name, &serde_json::to_string(data).unwrap_or_default())
}

fn format_event(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_events_named_media_type_is_true() {
        for (accept, expect) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.5", true),
            ("text/event-stream; q=0", false),
            ("*/*", false),
            ("text/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(wants_events(&headers), expect, "{accept}");
        }
        assert!(!wants_events(&HeaderMap::new()));
    }
}
