//! Routes of the watch page's button: `GET …/challenge`, and `POST …/transcribe` with the solution.
//!
//! The response is a `TranscriptResult`, as in the lookup API. With `Accept: text/event-stream` it is the last event
//! after the progress events.

use std::time::Duration;

use axum::{
    Extension,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use serde::Deserialize;
use transcript_core::{
    archive::view::TranscriptView,
    engine::NoTranscript,
    lookup::{Availability, LookupResponse, ReferenceError, VisitorOutcome, VisitorRequest, WaitMode},
    time::ceil_seconds,
    wire::lookup::TranscriptResult,
};

use super::{PageOptions, VideoPath, parse_path, progress};
use crate::{
    api::{
        ClientAddress, JSON, ProblemResponse, add_cookie, cookie, is_json, json_bytes, read_body,
        wants_events,
    },
    page::{PageContext, failure_text::failure_text},
    routes::account::session::SEC_FETCH_SITE,
    state::AppState,
};

/// Limit of the body, in bytes; a solution has about one kilobyte.
const BODY_MAX: usize = 8 * 1024;
/// Name of the visitor's cookie.
pub(super) const VISITOR_COOKIE: &str = "verbatim_visitor";

/// Body sent by the script.
#[derive(Deserialize)]
struct TranscribeForm {
    /// Solution of the challenge.
    altcha: String,
}

/// Creates a challenge for the page's button. It is bound to this page, expires, and is valid once.
pub(crate) async fn challenge(
    State(app): State<AppState>,
    path: VideoPath,
) -> Result<Response, ProblemResponse> {
    let link = parse_path(path).ok_or_else(no_video)?;
    match app.visitors.challenge(&link) {
        Ok(Some(challenge)) => Ok(no_store(([(CONTENT_TYPE, JSON)], challenge).into_response())),
        Ok(None) => Err(ProblemResponse::new(
            StatusCode::NOT_FOUND,
            "Videos are transcribed here for callers with an API key only.",
        )),
        Err(error) => {
            tracing::error!(%error, "challenge creation failed");
            Err(ProblemResponse::fault())
        }
    }
}

/// Verifies the solution, then transcribes the video.
pub(crate) async fn transcribe(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    context: PageContext,
    path: VideoPath,
    request: Request,
) -> Result<Response, ProblemResponse> {
    let (parts, body) = request.into_parts();
    let link = parse_path(path).ok_or_else(no_video)?;
    let headers = &parts.headers;
    check_same_origin(headers)?;
    let body = read_body(headers, body, BODY_MAX, &app.body_budget).await?;
    let form: TranscribeForm = serde_json::from_slice(&body).map_err(|_| {
        ProblemResponse::bad("body", "it must be JSON like {\"altcha\": \"…\"}, with the solved challenge")
    })?;
    let options = PageOptions::parse(&parts.uri);
    let visitor = VisitorRequest {
        link,
        language: options.language,
        src: options.src,
        solution: form.altcha,
        cookie: cookie(headers, VISITOR_COOKIE),
        client: Some(client.0),
    };
    let streams = wants_events(headers);
    let admitted = match app.visitors.admit(visitor).await {
        VisitorOutcome::Answered(answer) if streams => {
            let answer = localized(&context, *answer);
            return Ok(no_store(progress::result_response(&answer)));
        }
        VisitorOutcome::Answered(answer) => {
            return Ok(result(Ok(*answer)).map_or_else(ProblemResponse::into_response, no_store));
        }
        VisitorOutcome::Admitted(admitted) => admitted,
    };
    let (value, lifetime) = (admitted.cookie(), admitted.cookie_lifetime());
    let mut response = match streams {
        true => progress::stream_progress(context, app.visitors, *admitted),
        false => result(admitted.transcribe(WaitMode::Bounded).await)?,
    };
    set_visitor_cookie(&mut response, &value, lifetime, &app.lookup.options().base_url);
    Ok(no_store(response))
}

/// The response with a failure message in the language and the words of the page. Those of the API name keys.
pub(super) fn localized(context: &PageContext, mut answer: LookupResponse) -> LookupResponse {
    if let Availability::Unavailable(none) = &mut answer.availability
        && let Some(text) = failure_text(context, none)
    {
        text.clone_into(&mut none.message);
    }
    answer
}

/// Result as JSON.
fn result(answer: Result<LookupResponse, ReferenceError>) -> Result<Response, ProblemResponse> {
    let answer = answer.map_err(|bad| ProblemResponse::bad(bad.parameter, bad.message))?;
    let json = json_bytes(TranscriptResult::json(&answer, TranscriptView::default()))?;
    let mut response = ([(CONTENT_TYPE, JSON)], json).into_response();
    if let Availability::Unavailable(NoTranscript { retry_after: Some(wait), .. }) = &answer.availability {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ceil_seconds(*wait)));
    }
    Ok(response)
}

/// Accepts requests from the page's own script only.
///
/// Otherwise a page of another site could spend its visitors' allowance.
pub(super) fn check_same_origin(headers: &HeaderMap) -> Result<(), ProblemResponse> {
    let site = headers.get(SEC_FETCH_SITE).and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        let detail = "Only the watch page of the video may send this request.";
        return Err(ProblemResponse::new(StatusCode::FORBIDDEN, detail));
    }
    // A form of another site cannot send this content type.
    if is_json(headers) != Some(true) {
        return Err(ProblemResponse::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The body must be application/json.",
        ));
    }
    Ok(())
}

/// Sets the visitor's cookie: for watch pages only, hidden from scripts, valid until the end of the day.
pub(super) fn set_visitor_cookie(response: &mut Response, value: &str, lifetime: Duration, base_url: &str) {
    let rest = base_url.split_once("://").map_or("", |(_, rest)| rest);
    let prefix = rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or_default();
    let path = format!("{}/watch/", prefix.trim_end_matches('/'));
    let max_age_s = lifetime.as_secs().max(1);
    add_cookie(response, base_url, (VISITOR_COOKIE, value), &path, max_age_s, "Strict");
}

pub(super) fn no_store(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) fn no_video() -> ProblemResponse {
    ProblemResponse::new(StatusCode::NOT_FOUND, "This address names no video.")
}
