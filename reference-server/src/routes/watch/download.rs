//! `GET /watch/{platform}/{id}/docx` and `…/pdf`: the archived transcript as a document.

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::Semaphore;
use transcript_core::{archive::StoredTranscript, transcript::Transcript, video::VideoLink};

use super::{PageOptions, VideoPath, parse_path, question::archived, transcribe::no_video};
use crate::{
    api::{ProblemResponse, budgeted},
    page::{
        PageContext,
        pdf::{PDF, PdfError, pdf_document},
        transcript::file_name,
        word::{DOCX, word_document},
    },
    state::AppState,
};

/// Documents that are written at the same time. More would only take CPU time from other work.
static WRITERS: Semaphore = Semaphore::const_new(2);
/// Bytes of a document in memory for each byte of the words, at most.
const BYTES_PER_BYTE: usize = 16;

/// Sends the document for word processors. It reads the archive only.
pub(crate) async fn docx(
    State(app): State<AppState>,
    context: PageContext,
    path: VideoPath,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    let stored = find(&app, path, &uri).await?;
    send(&app, stored, DOCX, move |stored| word_document(&context, stored).map_err(|error| failed(&error)))
        .await
}

/// Sends the PDF file. It reads the archive only.
///
/// Its link has no attribute `download`, with which browsers do not show the page of an error.
pub(crate) async fn pdf(
    State(app): State<AppState>,
    context: PageContext,
    path: VideoPath,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    let stored = find(&app, path, &uri).await?;
    let name = attachment(&stored.transcript);
    let write =
        move |stored: &_| pdf_document(&context, stored).map_err(|error| without_pdf(&context, &error));
    let mut response = send(&app, stored, PDF, write).await?;
    if let Ok(name) = HeaderValue::try_from(name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

async fn find(app: &AppState, path: VideoPath, uri: &Uri) -> Result<StoredTranscript, ProblemResponse> {
    let Some(VideoLink::Video(video)) = parse_path(path) else { return Err(no_video()) };
    archived(app, &video, &PageOptions::parse(uri)).await.ok_or_else(no_video)
}

/// Writes a document on a blocking thread, within the memory budget of large bodies, and sends it.
async fn send(
    app: &AppState,
    stored: StoredTranscript,
    kind: &'static str,
    write: impl FnOnce(&StoredTranscript) -> Result<Vec<u8>, ProblemResponse> + Send + 'static,
) -> Result<Response, ProblemResponse> {
    let words: usize = stored.transcript.segments.iter().map(|segment| segment.text.len()).sum();
    let reserved = app.body_budget.reserve(words.saturating_mul(BYTES_PER_BYTE)).await?;
    let permit = WRITERS.acquire().await.map_err(|_| ProblemResponse::fault())?;
    let written = tokio::task::spawn_blocking(move || write(&stored)).await;
    drop(permit);
    let bytes = written.map_err(|error| failed(&error))??;
    let mut response = budgeted(Body::from(bytes), reserved).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// `Content-Disposition` with the title as the name of the file.
fn attachment(transcript: &Transcript) -> String {
    let name = file_name(transcript.title.as_deref().unwrap_or_default(), &transcript.video);
    format!("attachment; filename*=UTF-8''{}.pdf", utf8_percent_encode(&name, NON_ALPHANUMERIC))
}

/// Why there is no PDF, and which downloads there are.
fn without_pdf(context: &PageContext, error: &PdfError) -> ProblemResponse {
    let detail = match error {
        PdfError::NoFont { letters } => context.fill("transcript.pdf_no_font", &[("letters", letters)]),
        PdfError::TooLong => {
            context.fill("transcript.pdf_too_long", &[("pages", &PdfError::PAGES_MAX.to_string())])
        }
        PdfError::Writer(_) => return failed(error),
    };
    ProblemResponse::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

fn failed(error: &dyn std::error::Error) -> ProblemResponse {
    tracing::error!(%error, "document of a transcript failed");
    ProblemResponse::fault()
}
