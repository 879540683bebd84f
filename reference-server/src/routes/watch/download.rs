//! `GET /watch/{platform}/{id}/docx`: the archived transcript for word processors.

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, Uri,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use tokio::sync::Semaphore;
use transcript_core::video::VideoLink;

use super::{PageOptions, VideoPath, parse_path, question::archived, transcribe::no_video};
use crate::{
    api::{ProblemResponse, budgeted},
    page::{
        PageContext,
        word::{DOCX, word_document},
    },
    state::AppState,
};

/// Documents that are written at the same time. More would only take CPU time from other work.
static WRITERS: Semaphore = Semaphore::const_new(2);
/// Bytes of a document in memory for each byte of the words, at most.
const BYTES_PER_BYTE: usize = 16;

/// Sends the document. It reads the archive only.
pub(crate) async fn docx(
    State(app): State<AppState>,
    context: PageContext,
    path: VideoPath,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    let Some(VideoLink::Video(video)) = parse_path(path) else { return Err(no_video()) };
    let stored = archived(&app, &video, &PageOptions::parse(&uri)).await.ok_or_else(no_video)?;
    let words: usize = stored.transcript.segments.iter().map(|segment| segment.text.len()).sum();
    let reserved = app.body_budget.reserve(words.saturating_mul(BYTES_PER_BYTE)).await?;
    let permit = WRITERS.acquire().await.map_err(|_| ProblemResponse::fault())?;
    let written = tokio::task::spawn_blocking(move || word_document(&context, &stored)).await;
    drop(permit);
    let bytes = match written {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Err(failed(&error)),
        Err(error) => return Err(failed(&error)),
    };
    let mut response = budgeted(Body::from(bytes), reserved).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(DOCX));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn failed(error: &dyn std::error::Error) -> ProblemResponse {
    tracing::error!(%error, "document of a transcript failed");
    ProblemResponse::fault()
}
