//! Progress of a visitor's transcription as Server-Sent Events.
//!
//! `progress` events have a message and, if known, a percentage. The last event is `result` with a `TranscriptResult`,
//! or `error` with the `detail` of a problem (RFC 9457), if a short link leads to no video.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, timeout_at};
use transcript_core::{
    archive::{TrackSelector, view::TranscriptView},
    engine::FetchProgress,
    lookup::{AdmittedVisitor, LookupResponse, ReferenceError, Visitors, WaitMode},
    video::VideoId,
    wire::lookup::TranscriptResult,
};

use super::transcribe::localized;
use crate::{
    api::{COMMENT, KEEPALIVE_INTERVAL, event, event_of_json, event_stream, json_bytes},
    page::PageContext,
};

/// Interval at which the progress is read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Payload of a `progress` event.
#[derive(Debug, PartialEq, Serialize)]
struct ProgressEvent {
    /// Message for the visitor.
    message: String,
    /// Completed share of the current stage; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u8>,
}

impl ProgressEvent {
    /// The progress in the language of the page.
    fn new(context: &PageContext, progress: &FetchProgress) -> Self {
        let (stage, percent) = match progress {
            FetchProgress::Running { stage, percent, .. } => (stage.as_str(), *percent),
            FetchProgress::Queued => {
                return Self { message: context.text("progress.queued").to_owned(), percent: None };
            }
        };
        let (key, with_percent) = match stage {
            "tracks" | "looking" => ("progress.looking", None),
            "captions" => ("progress.captions", None),
            "audio" | "media" => ("progress.audio", Some("progress.audio_percent")),
            "decoding" => ("progress.decoding", None),
            "transcribing" => ("progress.transcribing", Some("progress.transcribing_percent")),
            _ => ("progress.requesting", None),
        };
        let message = match (with_percent, percent) {
            (Some(key), Some(percent)) => context.fill(key, &[("percent", &percent.to_string())]),
            _ => context.text(key).to_owned(),
        };
        Self { message, percent }
    }
}

type TranscribeWork = Pin<Box<dyn Future<Output = Result<LookupResponse, ReferenceError>> + Send>>;

/// Event stream of a waiting visitor.
struct ProgressStream {
    context: PageContext,
    visitors: Visitors,
    track: Option<(VideoId, TrackSelector)>,
    work: TranscribeWork,
    last_progress: Option<FetchProgress>,
    last_sent_at: Instant,
}

impl ProgressStream {
    /// Waits for the next event. After the last event the stream is `None`.
    async fn next(mut self) -> (Bytes, Option<Self>) {
        loop {
            let next_poll = Instant::now() + POLL_INTERVAL;
            if let Ok(outcome) = timeout_at(next_poll, &mut self.work).await {
                return (last_event(&self.context, outcome), None);
            }
            let progress =
                self.track.as_ref().and_then(|(video, selector)| self.visitors.progress(video, selector));
            if progress.is_some() && progress != self.last_progress {
                let event = progress.as_ref().map_or(COMMENT, |progress| {
                    event("progress", &ProgressEvent::new(&self.context, progress))
                });
                (self.last_progress, self.last_sent_at) = (progress, Instant::now());
                return (event, Some(self));
            }
            if self.last_sent_at.elapsed() >= KEEPALIVE_INTERVAL {
                self.last_sent_at = Instant::now();
                return (COMMENT, Some(self));
            }
        }
    }
}

/// Transcribes the video and streams the progress.
///
/// A disconnect ends the stream, not the work.
pub(super) fn stream_progress(
    context: PageContext,
    visitors: Visitors,
    admitted: AdmittedVisitor,
) -> Response {
    let track = admitted.track();
    let work = Box::pin(admitted.transcribe(WaitMode::Unbounded));
    let message = context.text("progress.passed").to_owned();
    let progress_stream =
        ProgressStream { context, visitors, track, work, last_progress: None, last_sent_at: Instant::now() };
    // Sent at once, so that the page knows that it was admitted.
    let first = event("progress", &ProgressEvent { message, percent: None });
    let body = stream::unfold((Some(progress_stream), Some(first)), |(progress_stream, first)| async {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(first), (progress_stream, None)));
        }
        let (event, progress_stream) = progress_stream?.next().await;
        Some((Ok(event), (progress_stream, None)))
    });
    event_stream(Body::from_stream(body))
}

/// Event stream of a result that exists already.
pub(super) fn result_response(answer: &LookupResponse) -> Response {
    event_stream(Body::from(result_event(answer)))
}

fn last_event(context: &PageContext, outcome: Result<LookupResponse, ReferenceError>) -> Bytes {
    match outcome {
        Ok(answer) => result_event(&localized(context, answer)),
        Err(_) => event("error", &json!({ "detail": context.text("failure.no_video") })),
    }
}

fn result_event(answer: &LookupResponse) -> Bytes {
    match json_bytes(TranscriptResult::json(answer, TranscriptView::default())) {
        Ok(json) => event_of_json("result", &json),
        Err(fault) => event("error", &json!({ "detail": fault.detail() })),
    }
}
