//! An answer about a video as Server-Sent Events: sentences leave as soon as they are verified.
//!
//! `sentence` events carry the answer piece by piece, then `answer` carries all of it, as the JSON answer has it;
//! `error` carries an error body, after sentences that were true all the same. Until the first sentence there is
//! no stream: whatever fails before is told with its own status.
//!
//! The last sentence leaves with `answer`, once the credit is spent: nobody has the whole answer unpaid.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use serde::Serialize;
use tokio::sync::mpsc;
use transcript_core::{
    accounts::{ChatAsk, ChatReady, RateState, Refused, Visit},
    chat::{Sentence, Sentences},
    wire::v1::{ChatAnswer, ChatCitation, ErrorBody},
};

use super::{Denial, chat::answer, door::out, rate, verify::weight};
use crate::routes::App;

/// The type of such an answer.
const EVENTS: &str = "text/event-stream";

/// Whether a caller asks for events.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    ranges.flat_map(|value| value.split(',')).any(|range| {
        let (kind, rest) = range.split_once(';').unwrap_or((range, ""));
        kind.trim().eq_ignore_ascii_case(EVENTS) && weight(rest) > 0
    })
}

/// Hears sentences, for whoever sends them on.
#[derive(Debug)]
struct Ear(mpsc::UnboundedSender<Sentence>);

impl Sentences for Ear {
    fn push(&self, sentence: Sentence) -> bool {
        self.0.send(sentence).is_ok()
    }
}

type Work = Pin<Box<dyn Future<Output = Result<ChatReady, Refused>> + Send>>;

/// An answer that is being made.
struct Speaking {
    work: Work,
    heard: mpsc::UnboundedReceiver<Sentence>,
    outcome: Option<Box<Result<ChatReady, Refused>>>,
    /// The sentence that was heard last: it leaves when another follows, or with the answer.
    last: Option<Sentence>,
    is_over: bool,
}

/// What comes next of an answer.
enum Next {
    Heard(Sentence),
    Ended(Box<Result<ChatReady, Refused>>),
}

impl Speaking {
    async fn next(&mut self) -> Next {
        if self.outcome.is_none() {
            tokio::select! {
                biased;
                Some(sentence) = self.heard.recv() => return Next::Heard(sentence),
                outcome = &mut self.work => self.outcome = Some(Box::new(outcome)),
            }
        }
        // What was said before the end is heard first.
        match (self.heard.try_recv(), self.outcome.take()) {
            (Ok(sentence), outcome) => {
                self.outcome = outcome;
                Next::Heard(sentence)
            }
            (Err(_), Some(outcome)) => Next::Ended(outcome),
            (Err(_), None) => Next::Ended(Box::new(Err(Refused::Internal(String::new())))),
        }
    }

    /// The next bytes of the stream; none when it is over.
    async fn bytes(&mut self) -> Option<Bytes> {
        while !self.is_over {
            match self.next().await {
                Next::Heard(sentence) => {
                    if let Some(before) = self.last.replace(sentence) {
                        return Some(event("sentence", &said(&before)));
                    }
                }
                Next::Ended(outcome) => {
                    self.is_over = true;
                    return Some(self.end(*outcome).await);
                }
            }
        }
        None
    }

    async fn end(&mut self, outcome: Result<ChatReady, Refused>) -> Bytes {
        let delivered = match outcome {
            Ok(ready) => {
                let (reply, body) = (answer(&ready), ChatAnswer::from(&ready));
                ready.deliver(reply).await.map(|_| body)
            }
            Err(refused) => Err(refused),
        };
        match delivered {
            Ok(body) => {
                let mut bytes = self.last.take().map(|last| event("sentence", &said(&last)).to_vec());
                bytes.get_or_insert_default().extend_from_slice(&event("answer", &body));
                Bytes::from(bytes.unwrap_or_default())
            }
            Err(refused) => {
                let denial = Denial::from(refused);
                event(
                    "error",
                    &ErrorBody { error: denial.message().to_owned(), code: denial.status().as_u16() },
                )
            }
        }
    }
}

/// Answers with events. A caller who leaves takes the stream along, and what was held is returned.
pub(super) async fn speak(app: &App, visit: Visit, rate: RateState, ask: ChatAsk) -> Response {
    let (says, heard) = mpsc::unbounded_channel();
    let (accounts, chat) = (app.accounts.clone(), app.chat.clone());
    let work = async move { accounts.chat(visit, &chat, ask, Some(Arc::new(Ear(says)))).await };
    let mut speaking = Speaking { work: Box::pin(work), heard, outcome: None, last: None, is_over: false };
    let first = match speaking.next().await {
        Next::Heard(sentence) => {
            speaking.last = Some(sentence);
            None
        }
        Next::Ended(outcome) => match *outcome {
            Err(refused) => return out(rate, Err(Denial::from(refused))),
            Ok(ready) => {
                speaking.is_over = true;
                Some(speaking.end(Ok(ready)).await)
            }
        },
    };
    let body = stream::unfold((first, speaking), |(first, mut speaking)| async move {
        let bytes = match first {
            Some(bytes) => bytes,
            None => speaking.bytes().await?,
        };
        Some((Ok::<_, Infallible>(bytes), (None, speaking)))
    });
    let mut response = Body::from_stream(body).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().extend(rate::fields(&rate));
    response
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
    let data = serde_json::to_string(data).unwrap_or_default();
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
