//! The work on a visitor's video as Server-Sent Events.
//!
//! `progress` events say in a sentence how far the work is, with a percentage where there is one; `result` is the last
//! one, a `TranscriptResult`; `error` is a problem (RFC 9457's `detail`) in its place, where a short link leads nowhere.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, header::CONTENT_TYPE};
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};
use transcript_core::{
    engine::Progress,
    lookup::{Admitted, BadReference, Lookup, LookupAnswer, Patience},
    video::VideoId,
    wire::lookup::TranscriptResult,
};

/// How often it is looked how far the work is.
const LOOK: Duration = Duration::from_millis(250);
/// How long nothing is sent at most: proxies take a silent connection for an idle one.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// What is sent then: a comment, which readers of events pass over.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// Tells proxies of nginx's kind to pass events on as they come.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How far the work is, as an event carries it.
#[derive(Debug, PartialEq, Serialize)]
struct Told {
    /// The sentence for people.
    message: String,
    /// How much of the present stage is done; none where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u8>,
}

impl From<&Progress> for Told {
    fn from(progress: &Progress) -> Self {
        let percent = match progress {
            Progress::AtWork { percent, .. } => *percent,
            Progress::InLine => None,
        };
        Self { message: progress.sentence(), percent }
    }
}

type Work = Pin<Box<dyn Future<Output = Result<LookupAnswer, BadReference>> + Send>>;

/// A visitor who waits.
struct Waiting {
    lookup: Lookup,
    video: Option<VideoId>,
    work: Work,
    told: Option<Progress>,
    spoke: Instant,
}

impl Waiting {
    /// The next event; with the last one, nobody.
    async fn next(mut self) -> (Bytes, Option<Self>) {
        loop {
            let look = Instant::now() + LOOK;
            if let Ok(outcome) = timeout_at(look, &mut self.work).await {
                return (last(outcome), None);
            }
            let progress = self.video.as_ref().and_then(|video| self.lookup.progress(video));
            if progress.is_some() && progress != self.told {
                let event =
                    progress.as_ref().map_or(COMMENT, |progress| event("progress", &Told::from(progress)));
                (self.told, self.spoke) = (progress, Instant::now());
                return (event, Some(self));
            }
            if self.spoke.elapsed() >= SILENCE_MAX {
                self.spoke = Instant::now();
                return (COMMENT, Some(self));
            }
        }
    }
}

/// Does the work, and tells how far it is.
///
/// A visitor who leaves ends the telling, not the work.
pub(super) fn told(lookup: Lookup, admitted: Admitted) -> Response {
    let video = admitted.video().cloned();
    let work = Box::pin(admitted.transcribe(Patience::ToTheEnd));
    let waiting = Waiting { lookup, video, work, told: None, spoke: Instant::now() };
    // At once, so that the page knows that it was let in.
    let first =
        event("progress", &Told { message: "Your browser has passed the check.".to_owned(), percent: None });
    let body = stream::unfold((Some(waiting), Some(first)), |(waiting, first)| async {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(first), (waiting, None)));
        }
        let (event, waiting) = waiting?.next().await;
        Some((Ok(event), (waiting, None)))
    });
    streamed(Body::from_stream(body))
}

/// An answer that is there already.
pub(super) fn answered(answer: &LookupAnswer) -> Response {
    streamed(Body::from(of_answer(answer)))
}

fn streamed(body: Body) -> Response {
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

fn last(outcome: Result<LookupAnswer, BadReference>) -> Bytes {
    match outcome {
        Ok(answer) => of_answer(&answer),
        Err(bad) => event("error", &json!({ "detail": bad.message })),
    }
}

fn of_answer(answer: &LookupAnswer) -> Bytes {
    // JSON has no line's end in it.
    named("result", &TranscriptResult::json(answer).unwrap_or_default())
}

fn event(name: &str, data: &impl Serialize) -> Bytes {
    named(name, &serde_json::to_vec(data).unwrap_or_default())
}

fn named(name: &str, data: &[u8]) -> Bytes {
    [b"event: ", name.as_bytes(), b"\ndata: ", data, b"\n\n"].concat().into()
}
