//! What the button of a watch page does: `GET …/challenge`, and `POST …/transcribe` with the solution.
//!
//! The answer is a `TranscriptResult`, as the look-up has it; with `Accept: text/event-stream` it comes as the last of the
//! events that tell how far the work is.

use axum::{
    Extension,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, COOKIE, RETRY_AFTER, SET_COOKIE},
};
use serde::Deserialize;
use transcript_core::{
    lookup::{Admission, Admitted, Availability, BadReference, LookupAnswer, Patience, VisitorAsk},
    wire::lookup::TranscriptResult,
};

use super::{VideoPath, named, progress, tag};
use crate::{
    http::{ClientAddress, Refusal, read_body},
    routes::{App, transcript::JSON, v1::wants_events},
};

/// The largest body: a solution has about one kilobyte.
const BODY_MAX: usize = 8 * 1024;
/// The visitor's cookie.
const COOKIE_NAME: &str = "verbatim_visitor";
/// What a browser says of who made it ask.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What the script sends.
#[derive(Deserialize)]
struct Sent {
    /// The solution, as the widget gives it.
    altcha: String,
}

/// A challenge for the page's button. It is made for this page, ends, and is good once.
pub(crate) async fn challenge(State(app): State<App>, path: VideoPath) -> Result<Response, Refusal> {
    let link = named(path).ok_or_else(no_video)?;
    match app.lookup.challenge(&link) {
        Ok(Some(challenge)) => Ok(unkept(([(CONTENT_TYPE, JSON)], challenge).into_response())),
        Ok(None) => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "Videos are transcribed here for callers with an API key only.",
        )),
        Err(error) => {
            tracing::error!(%error, "a challenge could not be made");
            Err(Refusal::fault())
        }
    }
}

/// The button: looks at the solution, then has the video transcribed.
pub(crate) async fn transcribe(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    path: VideoPath,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let link = named(path).ok_or_else(no_video)?;
    let headers = &parts.headers;
    from_our_page(headers)?;
    let body = read_body(body, BODY_MAX).await?;
    let sent: Sent = serde_json::from_slice(&body).map_err(|_| {
        Refusal::bad("body", "it must be JSON like {\"altcha\": \"…\"}, with the solved challenge")
    })?;
    let ask = VisitorAsk {
        link,
        src: tag(&parts.uri),
        solution: sent.altcha,
        cookie: cookie(headers),
        client: Some(client.0),
    };
    let streams = wants_events(headers);
    let admitted = match app.lookup.admit(ask).await {
        Admission::Answered(answer) if streams => return Ok(unkept(progress::answered(&answer))),
        Admission::Answered(answer) => {
            return Ok(result(Ok(*answer)).map_or_else(Refusal::into_response, unkept));
        }
        Admission::Admitted(admitted) => admitted,
    };
    let kept = set_cookie(&admitted, &app.lookup.options().base_url);
    let mut response = match streams {
        true => progress::told(app.lookup.clone(), *admitted),
        false => result(admitted.transcribe(Patience::Usual).await)?,
    };
    if let Ok(kept) = HeaderValue::try_from(kept) {
        response.headers_mut().insert(SET_COOKIE, kept);
    }
    Ok(unkept(response))
}

/// The answer as JSON.
fn result(answer: Result<LookupAnswer, BadReference>) -> Result<Response, Refusal> {
    let answer = answer.map_err(|bad| Refusal::bad(bad.parameter, bad.message))?;
    // A structure of texts, numbers and lists always becomes JSON.
    let json = TranscriptResult::json(&answer).unwrap_or_default();
    let mut response = ([(CONTENT_TYPE, JSON)], json).into_response();
    if let Availability::Unavailable { retry_after: Some(wait), .. } = &answer.availability {
        // Whole seconds that suffice.
        let seconds = u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

/// Only the page's own script may press the button: another site's page could spend the allowance of its visitors.
fn from_our_page(headers: &HeaderMap) -> Result<(), Refusal> {
    let site = headers.get(SEC_FETCH_SITE).and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        let detail = "Only the page of the video itself may ask for this.";
        return Err(Refusal::new(StatusCode::FORBIDDEN, detail));
    }
    // A form of another site's page cannot send this type.
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must be application/json."));
    }
    Ok(())
}

/// The visitor's cookie. Of several the first one counts.
fn cookie(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned())
}

/// The cookie as it is set: for watch pages alone, no script reads it, and at the day's end it is gone.
fn set_cookie(admitted: &Admitted, base_url: &str) -> String {
    let rest = base_url.split_once("://").map_or("", |(_, rest)| rest);
    let prefix = rest.find('/').and_then(|slash| rest.get(slash..)).unwrap_or_default();
    let secure = if base_url.starts_with("https://") { "; Secure" } else { "" };
    format!(
        "{COOKIE_NAME}={}; Path={}/watch/; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
        admitted.cookie(),
        prefix.trim_end_matches('/'),
        admitted.cookie_lives().as_secs().max(1),
    )
}

fn unkept(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn no_video() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "This address names no video.")
}
