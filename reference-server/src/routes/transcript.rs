//! `GET /api/transcript` (specification 4.1; failures as text: 7.1).

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
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use transcript_core::{
    archive::view::{SegmentCursor, SegmentPage, TranscriptView, write_text},
    captions::TextFormat,
    engine::NoTranscript,
    headers,
    lookup::{
        Availability, FailureReason, LookupOptions, LookupRequest, LookupResponse, ReferenceError,
        ResolvedRequest,
    },
    text::one_line,
    time::ceil_seconds,
    transcript::TrackInfo,
    wire::lookup::TranscriptResult,
};

use super::{
    document::{self, DocumentOptions, examples, parameters},
    v1::document::VIDEO_STATES,
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

/// Operation of GET in the `OpenAPI` document.
pub(crate) fn operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.lookup;
    json!({
        "operationId": "getTranscript",
        "tags": ["transcripts"],
        "summary": "Look up the transcript of a video",
        "description": "An archived transcript is returned to every caller, free of charge. With a key, a video \
                        that is not archived is transcribed at once and charged to the key. If the work takes \
                        longer than the request may wait, it continues: the response is `fetch_error`, and \
                        `Retry-After` says when to retry; the retry joins the same work. \
                        Without a key, the response for such a video has `available: false`, the reason \
                        `needs_verification`, and `watchUrl`. In the JSON form every failure is a 200 with a \
                        `failureReason`; in the other forms it is a 402 or 404.",
        "security": document::optional_key(),
        "parameters": transcript_parameters(),
        "responses": {
            "200": found(options),
            "304": not_modified(),
            "400": bad_reference(),
            "401": expired_key(),
            "402": without_transcript(
                options,
                "In every form but JSON: the key's allowance is spent. The body is a sentence, then the address of the \
                 watch page on the last line.",
                "The key has spent its allowance of new transcripts for this month.",
            ),
            "404": without_transcript(
                options,
                "In every form but JSON: there is no transcript. The body is a sentence, then the address of the watch \
                 page on the last line.",
                "This video has no captions.",
            ),
            "406": not_acceptable_response(),
            "429": exhausted_quota(),
            "500": document::fault()
        }
    })
}

/// Operation of HEAD in the `OpenAPI` document.
pub(crate) fn head_operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.lookup;
    let bodiless = |mut response: Value| {
        if let Some(fields) = response.as_object_mut() {
            fields.remove("content");
            fields.remove("links");
        }
        response
    };
    json!({
        "operationId": "headTranscript",
        "tags": ["transcripts"],
        "summary": "Look up a transcript, headers only",
        "description": "As getTranscript, but from the archive only and without a body: it never transcribes, holds \
                        or charges anything.",
        "security": document::optional_key(),
        "parameters": transcript_parameters(),
        "responses": {
            "200": bodiless(found(options)),
            "304": not_modified(),
            "400": bodiless(bad_reference()),
            "401": bodiless(expired_key()),
            "404": bodiless(without_transcript(options, "In every form but JSON: there is no transcript.", "")),
            "406": bodiless(not_acceptable_response()),
            "500": bodiless(document::fault())
        }
    })
}

fn transcript_parameters() -> Value {
    json!([
        parameters::url(),
        parameters::v(),
        parameters::format(),
        parameters::src(),
        parameters::lang(),
        parameters::translated(),
        parameters::words(),
        parameters::description(),
        parameters::chunk(),
        parameters::cursor(),
        parameters::max_chars("maxChars"),
        parameters::frontmatter(),
        parameters::renewal()
    ])
}

fn found(options: &LookupOptions) -> Value {
    let mut content = document::json_body::<TranscriptResult>(json!({
        "archived": document::example("An archived transcript", examples::archived(options)),
        "fetched": document::example("A transcript fetched for this request", examples::fetched(options)),
        "needsVerification": document::example("Not archived, and no key", examples::needs_verification(options)),
        "keyAllowance": document::example("The key's allowance is spent", examples::key_allowance(options))
    }));
    let forms = [
        ("text/plain", examples::prose()),
        ("text/markdown", examples::markdown()),
        ("application/x-subrip", examples::srt()),
        ("text/vtt", examples::webvtt()),
    ];
    for (kind, text) in forms {
        content[kind] =
            document::text_body(&json!({ "archived": document::example("An archived transcript", text) }));
    }
    let mut response = document::answer(
        "The lookup finished. In the JSON form `available` says whether there is a transcript.",
        content,
        [
            document::cache_control(&["no-cache", "no-store"]),
            document::vary("accept-encoding, authorization"),
            entity_tag(),
            content_encoding(),
            next_page(),
            content_language(),
            is_generated(),
            document::retry_after_failure(),
            failure_detail(),
        ],
    );
    response["links"] = json!({
        "watchPage": {
            "operationId": "getWatchPage",
            "description": "The watch page of the video; `watchUrl` is its address.",
            "parameters": { "platform": "$response.body#/platform", "id": "$response.body#/videoId" }
        }
    });
    document::shareable(response)
}

/// `ETag` of a transcript, except JSON for callers with a key.
fn entity_tag() -> document::ResponseHeader {
    document::entity_tag("Strong tag of the bytes of a transcript. JSON for callers with a key has none.")
}

/// `Content-Encoding` of a compressed transcript.
fn content_encoding() -> document::ResponseHeader {
    let what = "The encoding of a compressed transcript. JSON for callers with a key is not compressed.";
    document::content_encoding(what)
}

/// `X-Next-Cursor` of a page.
fn next_page() -> document::ResponseHeader {
    let schema = json!({ "type": "string", "pattern": parameters::CURSOR_PATTERN });
    let what = "Extension: the `cursor` of the next page, if the response is a page and not the last one.";
    (headers::X_NEXT_CURSOR, document::optional_header(what, schema))
}

/// `Content-Language`, for callers with a key.
fn content_language() -> document::ResponseHeader {
    let schema = json!({ "type": "string", "examples": ["en"] });
    let what = "The language of the transcript (BCP 47), for callers with a key; `und` if unknown.";
    ("Content-Language", document::optional_header(what, schema))
}

/// `X-Is-Generated`, for callers with a key.
fn is_generated() -> document::ResponseHeader {
    let what = "Whether a machine generated the transcript, for callers with a key.";
    (headers::X_IS_GENERATED, document::optional_header(what, json!({ "type": "boolean" })))
}

/// `X-Failure-Detail`, for callers with a key.
fn failure_detail() -> document::ResponseHeader {
    let schema = json!({ "type": "string", "pattern": "^[a-z_]{1,32}$", "examples": ["private", "still_working", "busy"] });
    let what = format!(
        "Detail of the failure reason, for callers with a key. With `no_captions`: the state of the video \
         ({VIDEO_STATES}). With `fetch_error`: the work continues (`still_working`), or too many fetches wait and \
         nothing was charged (`busy`). In the other forms than JSON: the failure reason, if it has no detail."
    );
    (headers::X_FAILURE_DETAIL, document::optional_header(&what, schema))
}

fn not_modified() -> Value {
    document::shareable(document::answer(
        "The caller's copy is current: its `ETag` is in the request's `If-None-Match`.",
        Value::Null,
        [
            document::cache_control(&["no-cache", "no-store"]),
            document::vary("accept-encoding, authorization"),
            entity_tag(),
            next_page(),
            content_language(),
            is_generated(),
        ],
    ))
}

fn not_acceptable_response() -> Value {
    document::refusal(
        (406, "Not Acceptable"),
        "Accept-Encoding rejects every available encoding.",
        &[("encodings", NOT_ACCEPTABLE)],
        [document::vary("accept-encoding, authorization")],
    )
}

/// 401 for a key whose expiry the operator has set.
fn expired_key() -> Value {
    document::refusal(
        (401, "Unauthorized"),
        "The key has expired. Only the operator gives a key an expiry; an unknown key is no error.",
        &[(
            "expired",
            "This API key expired at 2026-12-01T00:00:00Z. The operator of the service issues a new one.",
        )],
        [document::www_authenticate(), document::vary("accept-encoding, authorization")],
    )
}

/// 429 for a key whose quota the operator has set.
fn exhausted_quota() -> Value {
    document::refusal(
        (429, "Too Many Requests"),
        "The key has used its requests of the day or month. Only the operator gives a key such a quota.",
        &[("quota", "This API key has used its 1000 requests of the day. Try again in 5 hours.")],
        [document::retry_after(), document::vary("accept-encoding, authorization")],
    )
}

fn bad_reference() -> Value {
    document::refusal(
        (400, "Bad Request"),
        "The video is missing or not recognized, or another parameter is invalid; `detail` begins with the \
         parameter's name.",
        &[
            (
                "missing",
                "url: it is missing: give the link of a video as url, or the id of a YouTube video as v",
            ),
            ("format", "format: it must be one of json, text, md, srt, vtt; without it the answer is JSON"),
        ],
        [],
    )
}

fn without_transcript(options: &LookupOptions, description: &str, sentence: &str) -> Value {
    let text = examples::failure_text(options, sentence);
    let body = document::text_body(&json!({ "failure": { "value": text } }));
    document::answer(
        description,
        json!({ "text/plain": body }),
        [
            document::cache_control(&["no-store"]),
            document::vary("accept-encoding, authorization"),
            document::retry_after_failure(),
            failure_detail(),
        ],
    )
}
