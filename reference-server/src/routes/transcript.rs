//! `GET /api/transcript` (specification 4.1; failures as text: 7.1).

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
    captions::{write_srt, write_webvtt},
    lookup::{Availability, FailureReason, LookupRequest, LookupResponse, ReferenceError},
    transcript::{TrackInfo, markdown, prose},
    wire::lookup::TranscriptResult,
};
use verbatim::service::HOP;

use super::{
    AppState,
    bearer::{bearer, proof},
    query::{LookupQuery, ResponseFormat},
};
use crate::{
    http::{ClientAddress, ProblemResponse},
    metrics::ResultOrigin,
    response_cache::{ContentEncoding, RenderedBody, ResponseVariant, VARIES_BY},
};

/// Media type of a JSON response.
pub(crate) const JSON: &str = "application/json; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const SRT: &str = "application/x-subrip; charset=utf-8";
const WEBVTT: &str = "text/vtt; charset=utf-8";

/// Looks up a transcript and fetches a missing one if the caller's key pays for it.
///
/// HEAD reads the archive only: it never fetches, holds or charges.
pub(crate) async fn look_up(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    let (request, format) = lookup_request(&uri, &headers, client)?;
    let (keyed, form) = (request.key.is_some(), ResponseVariant { format, src: request.src });
    let query = uri.query().unwrap_or_default();
    // Read before the archive, so that a concurrent change invalidates the cached body.
    let changes = if keyed { None } else { app.bodies.changes().await };
    if changes.is_some()
        && let Some(ready) = app.bodies.get_for_query(query, &headers, &method, Instant::now())
    {
        let mut response = ready.map(Body::new);
        response.extensions_mut().insert(ResultOrigin::Ready);
        return Ok(response);
    }
    let answer = match method {
        Method::HEAD => app.lookup.look_up_archived(request).await,
        _ => app.lookup.look_up(request).await,
    };
    let answer = answer.map_err(invalid_reference)?;
    let mut response = match &answer.availability {
        // JSON for a caller with a key contains the key's usage, so it is not cached.
        Availability::Available { stored, .. } if !(keyed && format == ResponseFormat::Json) => {
            let encoding = ContentEncoding::negotiate(&headers).ok_or_else(not_acceptable)?;
            let body = app.bodies.get_or_render(stored, &answer, form, encoding, render).await?;
            if let Some(changes) = changes {
                app.bodies.insert_query(query, stored, form, changes);
            }
            body.response(&headers, &method).map(Body::new)
        }
        _ => reply(&answer, format),
    };
    if let Availability::Unavailable { retry_after: Some(wait), .. } = &answer.availability {
        // Rounded up.
        let seconds = u64::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX).max(1);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response.extensions_mut().insert(match &answer.availability {
        Availability::Available { from_cache: true, .. } => ResultOrigin::Archive,
        Availability::Available { from_cache: false, .. } => ResultOrigin::Fetched,
        Availability::Unavailable { .. } => ResultOrigin::Nothing,
    });
    let cached = !keyed && matches!(answer.availability, Availability::Available { .. });
    let cache = if cached { "no-cache" } else { "no-store" };
    match &answer.availability {
        Availability::Available { stored, .. } if keyed => {
            describe(&stored.transcript.track, response.headers_mut());
        }
        Availability::Unavailable { detail: Some(detail), .. } if keyed => {
            // Details are letters and underscores.
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

/// Whether the captions are machine-generated.
/// The JSON body has no field for it, but other servers need it.
pub(crate) const X_IS_GENERATED: HeaderName = HeaderName::from_static("x-is-generated");

/// Detail of the failure reason.
/// Other servers need it to store the absence for the right time and to wait for running work.
pub(crate) const X_FAILURE_DETAIL: HeaderName = HeaderName::from_static("x-failure-detail");

/// Adds language and caption kind, for clients that store the transcript.
fn describe(track: &TrackInfo, headers: &mut HeaderMap) {
    // Language tags are letters, digits and hyphens.
    if let Ok(language) = HeaderValue::from_str(track.language.as_str()) {
        headers.insert(CONTENT_LANGUAGE, language);
    }
    let is_generated = if track.is_generated() { "true" } else { "false" };
    headers.insert(X_IS_GENERATED, HeaderValue::from_static(is_generated));
}

fn lookup_request(
    uri: &Uri,
    headers: &HeaderMap,
    client: ClientAddress,
) -> Result<(LookupRequest, ResponseFormat), ProblemResponse> {
    let query = LookupQuery::parse(uri.query().unwrap_or_default())?;
    let request = LookupRequest {
        reference: query.reference,
        src: query.src,
        key: bearer(headers),
        proof: proof(headers),
        client: Some(client.0),
        default_only: headers.contains_key(HOP),
    };
    Ok((request, query.format))
}

fn invalid_reference(reference: ReferenceError) -> ProblemResponse {
    ProblemResponse::bad(reference.parameter, reference.message)
}

fn not_acceptable() -> ProblemResponse {
    let detail = "Accept-Encoding accepts none of the available encodings: zstd, br, gzip, identity.";
    ProblemResponse::new(StatusCode::NOT_ACCEPTABLE, detail)
}

/// Body in the requested format. A response without a transcript is rendered as JSON.
fn render(answer: &LookupResponse, format: ResponseFormat) -> RenderedBody {
    match (format, &answer.availability) {
        (ResponseFormat::Text, Availability::Available { stored, .. }) => {
            RenderedBody { kind: PLAIN, bytes: prose(&stored.transcript.segments).into_bytes() }
        }
        (ResponseFormat::Markdown, Availability::Available { stored, .. }) => {
            RenderedBody { kind: MARKDOWN, bytes: markdown(&stored.transcript).into_bytes() }
        }
        (ResponseFormat::Srt, Availability::Available { stored, .. }) => {
            RenderedBody { kind: SRT, bytes: write_srt(&stored.transcript.segments).into_bytes() }
        }
        (ResponseFormat::WebVtt, Availability::Available { stored, .. }) => {
            RenderedBody { kind: WEBVTT, bytes: write_webvtt(&stored.transcript.segments).into_bytes() }
        }
        (ResponseFormat::Json | ResponseFormat::Page, _) | (_, Availability::Unavailable { .. }) => {
            // The wire types always serialize.
            RenderedBody { kind: JSON, bytes: TranscriptResult::json(answer).unwrap_or_default() }
        }
    }
}

/// Response that is not cached: without a transcript, or with a key's usage.
fn reply(answer: &LookupResponse, format: ResponseFormat) -> Response {
    let (status, body) = match (format, &answer.availability) {
        (ResponseFormat::Json, _) | (_, Availability::Available { .. }) => {
            (StatusCode::OK, render(answer, format))
        }
        (_, Availability::Unavailable { reason, message, .. }) => {
            let status = match reason {
                FailureReason::KeyAllowance => StatusCode::PAYMENT_REQUIRED,
                _ => StatusCode::NOT_FOUND,
            };
            // The message may come from a platform. It is kept on one line, so that the last line is the address.
            let sentence = message.split_whitespace().collect::<Vec<_>>().join(" ");
            let text = format!("{sentence}\n{}\n", answer.watch_url);
            (status, RenderedBody { kind: PLAIN, bytes: text.into_bytes() })
        }
    };
    (status, [(CONTENT_TYPE, HeaderValue::from_static(body.kind))], body.bytes).into_response()
}
