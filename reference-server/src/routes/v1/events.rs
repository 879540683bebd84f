//! An answer about a video as Server-Sent Events: sentences leave as soon as they are verified.
//!
//! `sentence` events carry the answer piece by piece, then `answer` carries all of it, as the JSON answer has it;
//! `error` carries an error body, after sentences that were true all the same. Until the first sentence there is
//! no stream: whatever fails before is told with its own status.
//!
//! A caller who leaves after a sentence has been served, and pays; see [`Telling`].

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Serialize;
use tokio::time::timeout;
use transcript_core::{
    accounts::{RateState, Refused, Reply, Telling, Told},
    chat::Sentence,
    wire::v1::{ChatCitation, ErrorBody},
};

use super::{Denial, door::out, rate, verify::weight};

/// How long nothing is sent at most. A connection on which nothing goes out is taken to be idle, by us and by
/// proxies, and a model may take long for a sentence that holds.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// What is sent then: a comment, which readers of events pass over.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// Tells proxies of nginx's kind to pass events on as they come: what was handed over is paid.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The type of such an answer.
const EVENTS: &str = "text/event-stream";

/// Whether a caller asks for events.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let (kind, rest) = range.split_once(';').unwrap_or((range, ""));
        kind.trim().eq_ignore_ascii_case(EVENTS) && weight(rest) > 0
    })
}

/// Answers with events, once it is known that there is something to tell.
pub(super) async fn speak(mut telling: Telling, rate: RateState) -> Response {
    let first = match telling.next().await {
        Told::Ended(Err(refused)) => return out(rate, Err(Denial::from(refused))),
        first => first,
    };
    let body = stream::unfold(Some((telling, Some(first))), |speaking| async {
        let (mut telling, first) = speaking?;
        let told = match first {
            Some(first) => first,
            None => match timeout(SILENCE_MAX, telling.next()).await {
                Ok(told) => told,
                Err(_) => return Some((Ok(COMMENT), Some((telling, None)))),
            },
        };
        Some(match told {
            Told::Sentence(sentence) => {
                telling.handed_over();
                (Ok::<_, Infallible>(event("sentence", &said(&sentence))), Some((telling, None)))
            }
            Told::Ended(outcome) => (Ok(last(outcome)), None),
        })
    });
    let mut response = Body::from_stream(body).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response.headers_mut().extend(rate::fields(&rate));
    response
}

/// The last event: the whole answer, as it is stored for repeats, or why there is none.
fn last(outcome: Result<Reply, Refused>) -> Bytes {
    match outcome {
        Ok(reply) => named("answer", &String::from_utf8_lossy(&reply.body)),
        Err(refused) => {
            let denial = Denial::from(refused);
            let (error, code) = (denial.message().to_owned(), denial.status().as_u16());
            event("error", &ErrorBody { error, code })
        }
    }
}

/// A sentence as an event carries it.
#[derive(Debug, Serialize)]
struct Said<'a> {
    text: &'a str,
    citations: Vec<ChatCitation>,
}

fn said(sentence: &Sentence) -> Said<'_> {
    Said { text: &sentence.text, citations: sentence.citations.iter().map(ChatCitation::from).collect() }
}

/// One event. JSON has no line's end in it.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    // Every value here is a structure of texts, numbers and lists, which always becomes JSON.
    named(name, &serde_json::to_string(data).unwrap_or_default())
}

fn named(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sent_to_whoever_asks_for_them() {
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
