//! Chat answers as Server-Sent Events: each sentence is sent as soon as it is verified.
//!
//! `sentence` events carry one sentence each, then `answer` carries the whole JSON answer. An `error` event carries an
//! error body; sentences sent before it remain valid. The stream begins with the first sentence: earlier failures are
//! plain responses with their own status.
//!
//! A caller that disconnects after the first sentence is charged; see [`ChatStream`].

use std::convert::Infallible;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use serde::Serialize;
use tokio::time::timeout;
use transcript_core::{
    accounts::{ChatStream, ChatStreamEvent, RateLimitStatus, StoredResponse, V1Error},
    chat::Sentence,
    wire::v1::ChatCitation,
};

use super::admission::finish;
use crate::api::{
    COMMENT, KEEPALIVE_INTERVAL, V1ErrorResponse, event, event_of_json, event_stream, rate_limit_headers,
};

/// Streams an answer, once the first sentence or the whole answer is ready.
pub(super) async fn stream_response(mut stream: ChatStream, rate: RateLimitStatus) -> Response {
    let first = match stream.next().await {
        ChatStreamEvent::Finished(Err(error)) => return finish(rate, Err(error)),
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
    let mut response = event_stream(Body::from_stream(body));
    response.headers_mut().extend(rate_limit_headers(&rate));
    response
}

/// Last event: the whole answer, as stored for replays, or the error.
fn last_event(outcome: Result<StoredResponse, V1Error>) -> Bytes {
    match outcome {
        Ok(reply) => event_of_json("answer", &reply.body),
        Err(refused) => event("error", &V1ErrorResponse::from(refused).body()),
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
