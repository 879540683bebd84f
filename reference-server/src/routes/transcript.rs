//! `GET /api/transcript` (specification 4.1; failures as text: 7.1).

pub(super) mod document;

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_LANGUAGE, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE},
};
use tokio::sync::OwnedSemaphorePermit;
use transcript_core::{
    archive::view::{SegmentCursor, SegmentPage, TranscriptView, write_text},
    captions::TextFormat,
    engine::NoTranscript,
    headers,
    lookup::{Availability, FailureReason, LookupRequest, LookupResponse, ReferenceError, ResolvedRequest},
    text::one_line,
    time::ceil_seconds,
    transcript::TrackInfo,
    wire::lookup::TranscriptResult,
};

use crate::{
    api::{
        ClientAddress, ContentEncoding, INVALID_TOKEN, JSON, LookupQuery, ProblemResponse, ResponseFormat,
        ResultOrigin, UnansweredReason, X_FAILURE_DETAIL, bearer, counted, header_name, proof,
    },
    response_cache::{CachedRoute, RenderedBody, ResponseVariant, VARIES_BY},
    state::AppState,
};

/// Detail of the 406.
const NOT_ACCEPTABLE: &str =
    "Accept-Encoding accepts none of the available encodings: zstd, br, gzip, identity.";

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
    let (request, form) = lookup_request(&uri, &headers, client)?;
    let (keyed, format) = (request.key.is_some(), form.format);
    let query = uri.query().unwrap_or_default();
    // Read before the archive, so that a concurrent change invalidates the cached body. A body that is rendered here
    // for another server has a different tag than the stored body that other callers get, so it is not cached for them.
    let changes = if keyed || request.default_only { None } else { app.bodies.changes().await };
    // A cursor belongs to an archived transcript: nothing is fetched for it.
    let has_cursor = form.view.page.is_some_and(|page| page.cursor.is_some());
    let (answer, place) = read(&app, request, method != Method::HEAD && !has_cursor).await?;
    let next_cursor = next_cursor(&answer, form.view)?;
    if let Some(refusal) = key_refusal(&answer.availability) {
        return Ok(refusal);
    }
    let mut response = match &answer.availability {
        // JSON for a caller with a key contains the key's usage, so it is not cached.
        Availability::Available { stored, .. } if !(keyed && format == ResponseFormat::Json) => {
            let Some(encoding) = ContentEncoding::negotiate(&headers) else { return Ok(not_acceptable()) };
            let its_place = place.clone();
            let render = move |answer: &LookupResponse, form| {
                let _place = its_place;
                render(answer, form)
            };
            let body = app.bodies.get_or_render(stored, &answer, form, encoding, render).await?;
            // The cached response would lack the cursor of the next page.
            if let Some(changes) = changes.filter(|_| next_cursor.is_none()) {
                app.bodies.insert_query((CachedRoute::Lookup, query), stored, &answer, form, changes);
            }
            counted(body.response(&headers, &method))
        }
        _ => reply(&answer, form),
    };
    if let Some(next) = next_cursor.and_then(|next| HeaderValue::try_from(next.to_string()).ok()) {
        response.headers_mut().insert(X_NEXT_CURSOR, next);
    }
    if let Availability::Unavailable(NoTranscript { retry_after: Some(wait), .. }) = &answer.availability {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(ceil_seconds(*wait)));
    }
    response.extensions_mut().insert(match &answer.availability {
        Availability::Available { from_cache: true, .. } => ResultOrigin::Archive,
        Availability::Available { from_cache: false, .. } => ResultOrigin::Fetched,
        Availability::Unavailable(_) => ResultOrigin::Nothing,
    });
    if let Availability::Unavailable(none) = &answer.availability {
        response.extensions_mut().insert(UnansweredReason::new(none));
    }
    let cached = !keyed && matches!(answer.availability, Availability::Available { .. });
    if keyed {
        describe(&answer.availability, format, response.headers_mut());
    }
    if !cached {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response.headers_mut().insert(VARY, VARIES_BY);
    Ok(response)
}

/// Start of the next page, for formats other than JSON.
pub(crate) const X_NEXT_CURSOR: HeaderName = header_name!(headers::X_NEXT_CURSOR);

/// The answer, with the place of its reader if it has no key: a lookup with a key may fetch, which takes long.
///
/// Without a key only a short link may wait for a platform. It has no place until its video is known.
async fn read(
    app: &AppState,
    request: LookupRequest,
    may_fetch: bool,
) -> Result<(LookupResponse, Option<Arc<OwnedSemaphorePermit>>), ProblemResponse> {
    let is_free = request.key.is_none();
    let (request, counted) = match is_free && may_fetch {
        true => match app.lookup.resolve(request).await.map_err(invalid_reference)? {
            ResolvedRequest::Video { request, counted } => (request, counted),
            ResolvedRequest::Unresolved(answer) => return Ok((answer, None)),
        },
        false => (request, false),
    };
    let place = if is_free { Some(app.read_place().await?) } else { None };
    let answer = match may_fetch && !counted {
        true => app.lookup.look_up(request).await,
        false => app.lookup.look_up_archived(request).await,
    };
    Ok((answer.map_err(invalid_reference)?, place))
}

/// Start of the next page of a view.
///
/// # Errors
/// 400 for a cursor of another transcript or revision.
fn next_cursor(
    answer: &LookupResponse,
    view: TranscriptView,
) -> Result<Option<SegmentCursor>, ProblemResponse> {
    let Availability::Available { stored, .. } = &answer.availability else { return Ok(None) };
    if view.page.is_none() {
        return Ok(None);
    }
    let page = SegmentPage::select(stored, view);
    page.map(|page| page.next).map_err(|error| ProblemResponse::bad("cursor", error.to_string()))
}

/// Whether the captions are machine-generated.
/// The JSON body has no field for it, but other servers need it.
pub(crate) const X_IS_GENERATED: HeaderName = header_name!(headers::X_IS_GENERATED);

/// Adds what a caller with a key learns: language and caption kind, to store the transcript, or why there is none.
fn describe(availability: &Availability, format: ResponseFormat, headers: &mut HeaderMap) {
    match availability {
        Availability::Available { stored, .. } => describe_track(&stored.transcript.track, headers),
        Availability::Unavailable(none) => {
            let detail = match format {
                ResponseFormat::Json | ResponseFormat::Page => none.detail.as_deref(),
                // The body does not name the reason.
                ResponseFormat::Text(_) => Some(none.detail_or_reason()),
            };
            // Details are letters and underscores.
            if let Some(Ok(detail)) = detail.map(HeaderValue::from_str) {
                headers.insert(X_FAILURE_DETAIL, detail);
            }
        }
    }
}

fn describe_track(track: &TrackInfo, headers: &mut HeaderMap) {
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
) -> Result<(LookupRequest, ResponseVariant), ProblemResponse> {
    let LookupQuery { reference, format, src, language, translated, view, frontmatter } =
        LookupQuery::parse(uri.query().unwrap_or_default())?;
    let request = LookupRequest {
        language,
        translated,
        src,
        key: bearer(headers),
        proof: proof(headers),
        client: Some(client.0),
        default_only: headers.contains_key(headers::X_VERBATIM_HOP),
        ..LookupRequest::new(reference)
    };
    Ok((request, ResponseVariant { view, frontmatter, ..ResponseVariant::plain(format, src) }))
}

/// The refusal of a key that has expired or whose quota is used up.
fn key_refusal(availability: &Availability) -> Option<Response> {
    let Availability::Unavailable(none) = availability else { return None };
    let refusal = |status| ProblemResponse::new(status, none.message.clone());
    let response = match (none.is_expired_key(), none.is_over_quota()) {
        (true, _) => {
            let challenge = [(WWW_AUTHENTICATE, HeaderValue::from_static(INVALID_TOKEN))];
            (challenge, refusal(StatusCode::UNAUTHORIZED)).into_response()
        }
        (_, true) => {
            let wait = none.retry_after.unwrap_or_default();
            refusal(StatusCode::TOO_MANY_REQUESTS).with_retry_after(wait).into_response()
        }
        _ => return None,
    };
    Some(([(VARY, VARIES_BY)], response).into_response())
}

fn invalid_reference(reference: ReferenceError) -> ProblemResponse {
    ProblemResponse::bad(reference.parameter, reference.message)
}

fn not_acceptable() -> Response {
    let refusal = ProblemResponse::new(StatusCode::NOT_ACCEPTABLE, NOT_ACCEPTABLE);
    ([(VARY, VARIES_BY)], refusal).into_response()
}

/// Body in the requested format. A response without a transcript is rendered as JSON.
fn render(answer: &LookupResponse, form: ResponseVariant) -> RenderedBody {
    match (form.format, &answer.availability) {
        (ResponseFormat::Text(format), Availability::Available { stored, .. }) => RenderedBody {
            kind: format.media_type(),
            bytes: write_text(stored, format, form.view, form.frontmatter).into_bytes(),
        },
        (ResponseFormat::Json | ResponseFormat::Page, _) | (_, Availability::Unavailable(_)) => {
            // The wire types always serialize.
            RenderedBody { kind: JSON, bytes: TranscriptResult::json(answer, form.view).unwrap_or_default() }
        }
    }
}

/// Response that is not cached: without a transcript, or with a key's usage.
fn reply(answer: &LookupResponse, form: ResponseVariant) -> Response {
    let (status, body) = match (form.format, &answer.availability) {
        (ResponseFormat::Json, _) | (_, Availability::Available { .. }) => {
            (StatusCode::OK, render(answer, form))
        }
        (_, Availability::Unavailable(NoTranscript { reason, message, .. })) => {
            let status = match reason {
                FailureReason::KeyAllowance => StatusCode::PAYMENT_REQUIRED,
                _ => StatusCode::NOT_FOUND,
            };
            // The message may come from a platform. It is kept on one line, so that the last line is the address.
            let sentence = one_line(message);
            let text = format!("{sentence}\n{}\n", answer.watch_url);
            (status, RenderedBody { kind: TextFormat::Text.media_type(), bytes: text.into_bytes() })
        }
    };
    (status, [(CONTENT_TYPE, HeaderValue::from_static(body.kind))], body.bytes).into_response()
}
