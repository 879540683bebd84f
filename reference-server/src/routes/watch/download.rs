//! `GET /watch/{platform}/{id}/docx` and `…/pdf`: the archived transcript as a document.

use std::{sync::Arc, time::Duration};

use axum::{Extension, extract::State, response::Response};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE},
};
use http_body_util::Full;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use transcript_core::{
    archive::StoredTranscript, time::ceil_seconds, transcript::Transcript, video::VideoLink,
};

use super::{PageOptions, VideoPath, parse_path, question::archived, transcribe::no_video};
use crate::{
    api::{ClientAddress, ProblemResponse, counted},
    page::{
        PageContext,
        pdf::{PDF, PdfError, pdf_document},
        transcript::{file_name, page_segment},
        word::{DOCX, word_document},
    },
    state::{AppState, write_document},
};

/// Longest wait for a place among the documents that are being written.
const WRITER_WAIT_MAX: Duration = Duration::from_secs(3);

/// Sends the document for word processors. It reads the archive only.
pub(crate) async fn docx(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    context: PageContext,
    path: VideoPath,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    let stored = find(&app, client, &context, (path, &uri)).await?;
    let links = links(&context, &stored, &uri, false);
    let write = move |stored: &_| word_document(&context, stored).map_err(|error| failed(&error));
    send(&app, stored, (DOCX, "docx"), write).await.map_err(|problem| problem.with_links(links))
}

/// Sends the PDF file. It reads the archive only.
pub(crate) async fn pdf(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    context: PageContext,
    path: VideoPath,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    let stored = find(&app, client, &context, (path, &uri)).await?;
    let links = links(&context, &stored, &uri, true);
    let write =
        move |stored: &_| pdf_document(&context, stored).map_err(|error| without_pdf(&context, &error));
    send(&app, stored, (PDF, "pdf"), write).await.map_err(|problem| problem.with_links(links))
}

/// Links of a page that is shown in place of a document: to the transcript and, unless it is that, the Word document.
fn links(
    context: &PageContext,
    stored: &StoredTranscript,
    uri: &Uri,
    has_word: bool,
) -> Vec<(String, &'static str)> {
    let query = context.with_language(&PageOptions::parse(uri).query());
    let page = format!("../{}{query}", page_segment(stored.transcript.video.id()));
    let word = has_word.then(|| (format!("docx{query}"), "problem.word"));
    [(page, "problem.transcript")].into_iter().chain(word).collect()
}

/// The transcript, if the network of the caller may have a document of it.
async fn find(
    app: &AppState,
    client: ClientAddress,
    context: &PageContext,
    (path, uri): (VideoPath, &Uri),
) -> Result<StoredTranscript, ProblemResponse> {
    let Some(VideoLink::Video(video)) = parse_path(path) else { return Err(no_video()) };
    let stored = archived(app, &video, &PageOptions::parse(uri)).await?.ok_or_else(no_transcript)?;
    let admitted = app.lookup.admit_document(stored.transcript.text_bytes(), Some(client.0)).await;
    match admitted.map_err(|error| failed(&error))? {
        None => Ok(stored),
        Some(wait_ms) => {
            let wait = Duration::from_millis(wait_ms);
            let seconds = ceil_seconds(wait).to_string();
            let detail = context.fill("transcript.too_many_documents", &[("seconds", &seconds)]);
            let problem = ProblemResponse::new(StatusCode::TOO_MANY_REQUESTS, detail).with_retry_after(wait);
            Err(problem.with_links(links(context, &stored, uri, false)))
        }
    }
}

fn no_transcript() -> ProblemResponse {
    ProblemResponse::new(StatusCode::NOT_FOUND, "This video has no archived transcript.")
}

/// Writes a document on a blocking thread, within the memory budget of large bodies, and sends it.
///
/// Its name is in the response. A link with the attribute `download` would not show the page of an error.
async fn send(
    app: &AppState,
    stored: StoredTranscript,
    (kind, extension): (&'static str, &str),
    write: impl FnOnce(&StoredTranscript) -> Result<Vec<u8>, ProblemResponse> + Send + 'static,
) -> Result<Response, ProblemResponse> {
    let name = attachment(&stored.transcript, extension);
    // A request that waits for a place holds no memory that paid requests need.
    let place = Arc::clone(&app.document_writers).acquire_owned();
    let permit = tokio::time::timeout(WRITER_WAIT_MAX, place).await.map_err(|_| busy())?;
    let permit = permit.map_err(|_| ProblemResponse::fault())?;
    let (file, reserved) = write_document(permit, &app.body_budget, stored, write).await?;
    // The file is much smaller than what writing it takes.
    let bytes = app.body_budget.sent_bytes(file?, reserved);
    let mut response = counted(http::Response::new(Full::new(bytes)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(name) = HeaderValue::try_from(name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// `Content-Disposition` with the title as the name of the file.
fn attachment(transcript: &Transcript, extension: &str) -> String {
    let name = file_name(transcript.title.as_deref().unwrap_or_default(), &transcript.video);
    format!("attachment; filename*=UTF-8''{}.{extension}", utf8_percent_encode(&name, NON_ALPHANUMERIC))
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

fn busy() -> ProblemResponse {
    let detail = "The server is making other documents. Retry in a few seconds.";
    ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

fn failed(error: &dyn std::error::Error) -> ProblemResponse {
    tracing::error!(%error, "document of a transcript failed");
    ProblemResponse::fault()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;
    use transcript_core::{
        transcript::{Segment, Transcript},
        video::{Platform, VideoId},
    };

    use crate::{
        state::DOCUMENT_WRITERS,
        testing::{LONG, ServiceFixture, request, transcript},
    };

    #[tokio::test(start_paused = true)]
    async fn document_without_place_holds_no_memory() {
        let service = ServiceFixture::start().await;
        // A short document takes no memory.
        let long = Transcript {
            segments: (0..2_000).map(|n| Segment::new("a long talk", n * 401, 400)).collect(),
            ..transcript(&VideoId::new(Platform::YouTube, LONG).unwrap())
        };
        service.keep(long).await;
        let path = format!("/watch/video_site/{LONG}/docx");
        assert_eq!(service.get(&path).await.status, StatusCode::OK);
        let writers = std::sync::Arc::clone(&service.app.document_writers);
        let places = writers.acquire_many(DOCUMENT_WRITERS as u32).await.unwrap();
        let used = service.app.body_budget.usage().0;
        let refused = async {
            let browser = request("GET", &path, &[("accept", "text/html")], "");
            let refused = service.send(browser).await;
            assert_eq!(
                (refused.status, refused.header("retry-after")),
                (StatusCode::SERVICE_UNAVAILABLE, Some("5"))
            );
            let link = format!("<a href=\"../{LONG}\">Read the transcript</a>");
            assert!(refused.text.contains(&link) && !refused.text.contains("href=\"docx"), "{refused:?}");
        };
        let during = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(service.app.body_budget.usage().0, used);
        };
        tokio::join!(refused, during);
        drop(places);
        assert_eq!(service.get(&path).await.status, StatusCode::OK);
    }
}
