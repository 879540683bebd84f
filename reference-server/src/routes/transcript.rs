//! `GET /api/transcript` (specification 4; failures as text: design 3).

use std::time::Instant;

use axum::{
    Extension,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, RETRY_AFTER, VARY},
};
use transcript_core::{
    lookup::{Availability, BadReference, FailureReason, LookupAnswer, LookupAsk},
    transcript::{TrackInfo, markdown, prose, srt, webvtt},
    wire::lookup::TranscriptResult,
};
use verbatim::service::HOP;

use super::{
    App,
    bearer::{bearer, proof},
    query::{Format, LookupQuery},
};
use crate::{
    bodies::{Encoding, Form, Rendered, VARIES_BY},
    http::{ClientAddress, Refusal},
    metrics::CameFrom,
};

/// The media type of an answer in JSON.
pub(crate) const JSON: &str = "application/json; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const SRT: &str = "application/x-subrip; charset=utf-8";
const WEBVTT: &str = "text/vtt; charset=utf-8";

/// Looks a transcript up, and has it made when the key allows.
///
/// HEAD answers from the archive only: it never fetches, holds or charges.
pub(crate) async fn look_up(
    State(app): State<App>,
    Extension(client): Extension<ClientAddress>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let (ask, format) = ask(&uri, &headers, client)?;
    let (keyed, form) = (ask.key.is_some(), Form { format, src: ask.src });
    let query = uri.query().unwrap_or_default();
    // Read before the archive is, so that a change in between shows.
    let changes = if keyed { None } else { app.bodies.changes().await };
    if changes.is_some()
        && let Some(ready) = app.bodies.found(query, &headers, &method, Instant::now())
    {
        let mut response = ready.map(Body::new);
        response.extensions_mut().insert(CameFrom::Ready);
        return Ok(response);
    }
    let answer = match method {
        Method::HEAD => app.lookup.peek(ask).await,
        _ => app.lookup.look_up(ask).await,
    };
    let answer = answer.map_err(bad)?;
    let mut response = match &answer.availability {
        // The figures of a key are its caller's alone, so such a body is nobody else's.
        Availability::Available { stored, .. } if !(keyed && format == Format::Json) => {
            let encoding = Encoding::chosen(&headers).ok_or_else(not_acceptable)?;
            let body = app.bodies.of(stored, &answer, form, encoding, render).await?;
            if let Some(changes) = changes {
                app.bodies.means(query, stored, form, changes);
            }
            body.response(&headers, &method).map(Body::new)
        }
        _ => reply(&answer, format),
    };
    if let Availability::Unavailable { retry_after: Some(wait), .. } = &answer.availability {
        // Whole seconds that suffice.
        let seconds = u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response.extensions_mut().insert(match &answer.availability {
        Availability::Available { from_cache: true, .. } => CameFrom::Archive,
        Availability::Available { from_cache: false, .. } => CameFrom::Fetched,
        Availability::Unavailable { .. } => CameFrom::Nothing,
    });
    let cached = !keyed && matches!(answer.availability, Availability::Available { .. });
    let cache = if cached { "no-cache" } else { "no-store" };
    match &answer.availability {
        Availability::Available { stored, .. } if keyed => {
            describe(&stored.transcript.track, response.headers_mut());
        }
        Availability::Unavailable { detail: Some(detail), .. } if keyed => {
            // A name is letters and underscores.
            if let Ok(detail) = HeaderValue::from_str(detail) {
                response.headers_mut().insert(X_FAILURE_DETAIL, detail);
            }
        }
        _ => {}
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    response.headers_mut().insert(VARY, VARIES_BY);
    Ok(response)
}

/// Whether a machine made the words: what the interface's JSON has no field for, another server must know.
pub(crate) const X_IS_GENERATED: HeaderName = HeaderName::from_static("x-is-generated");

/// What the failure's reason leaves open: what another server must know to remember it for as long as this one does,
/// and to wait for work that goes on.
pub(crate) const X_FAILURE_DETAIL: HeaderName = HeaderName::from_static("x-failure-detail");

/// Says what the words are, for programs that keep them.
fn describe(track: &TrackInfo, headers: &mut HeaderMap) {
    // A language tag is letters, digits and hyphens.
    if let Ok(language) = HeaderValue::from_str(track.language.as_str()) {
        headers.insert(CONTENT_LANGUAGE, language);
    }
    let is_generated = if track.is_generated() { "true" } else { "false" };
    headers.insert(X_IS_GENERATED, HeaderValue::from_static(is_generated));
}

fn ask(uri: &Uri, headers: &HeaderMap, client: ClientAddress) -> Result<(LookupAsk, Format), Refusal> {
    let query = LookupQuery::read(uri.query().unwrap_or_default())?;
    let ask = LookupAsk {
        reference: query.reference,
        src: query.src,
        key: bearer(headers),
        proof: proof(headers),
        client: Some(client.0),
        default_only: headers.contains_key(HOP),
    };
    Ok((ask, query.format))
}

fn bad(reference: BadReference) -> Refusal {
    Refusal::bad(reference.parameter, reference.message)
}

fn not_acceptable() -> Refusal {
    let detail = "Accept-Encoding: it refuses all that there is: zstd, br, gzip, identity.";
    Refusal::new(StatusCode::NOT_ACCEPTABLE, detail)
}

/// The body of an answer in its format. Without a transcript there is one in JSON only.
fn render(answer: &LookupAnswer, format: Format) -> Rendered {
    match (format, &answer.availability) {
        (Format::Text, Availability::Available { stored, .. }) => {
            Rendered { kind: PLAIN, bytes: prose(&stored.transcript.segments).into_bytes() }
        }
        (Format::Markdown, Availability::Available { stored, .. }) => {
            Rendered { kind: MARKDOWN, bytes: markdown(&stored.transcript).into_bytes() }
        }
        (Format::Srt, Availability::Available { stored, .. }) => {
            Rendered { kind: SRT, bytes: srt(&stored.transcript.segments).into_bytes() }
        }
        (Format::WebVtt, Availability::Available { stored, .. }) => {
            Rendered { kind: WEBVTT, bytes: webvtt(&stored.transcript.segments).into_bytes() }
        }
        (Format::Json | Format::Page, _) | (_, Availability::Unavailable { .. }) => {
            // A structure of texts, numbers and lists always becomes JSON.
            Rendered { kind: JSON, bytes: TranscriptResult::json(answer).unwrap_or_default() }
        }
    }
}

/// An answer that is nobody else's: without a transcript, or with the figures of a key.
fn reply(answer: &LookupAnswer, format: Format) -> Response {
    let (status, body) = match (format, &answer.availability) {
        (Format::Json, _) | (_, Availability::Available { .. }) => (StatusCode::OK, render(answer, format)),
        (_, Availability::Unavailable { reason, message, .. }) => {
            let status = match reason {
                FailureReason::KeyAllowance => StatusCode::PAYMENT_REQUIRED,
                _ => StatusCode::NOT_FOUND,
            };
            // The message comes from platforms too: it stays one line, so that the last is the address.
            let sentence = message.split_whitespace().collect::<Vec<_>>().join(" ");
            let text = format!("{sentence}\n{}\n", answer.watch_url);
            (status, Rendered { kind: PLAIN, bytes: text.into_bytes() })
        }
    };
    (status, [(CONTENT_TYPE, HeaderValue::from_static(body.kind))], body.bytes).into_response()
}
