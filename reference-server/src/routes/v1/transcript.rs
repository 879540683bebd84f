//! `GET /api/v1/transcript`: a transcript for credits.

use std::borrow::Cow;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Uri};
use serde_json::{Value, json};
use transcript_core::{
    accounts::{PreparedTranscript, StoredResponse, TranscriptParams, V1Endpoint, V1Error},
    archive::{TrackSelector, view::TranscriptView},
    transcript::LanguageTag,
    wire::v1::VideoTranscript,
};

use super::{
    admission::{EarlyResponse, admit, finish, reject},
    document::{self, DocumentOptions, examples, parameters},
};
use crate::{
    api::{V1ErrorResponse, check_spelling, flag, json_bytes, parameter, view},
    routes::document::parameters as lookup,
    state::AppState,
};

/// Returns the transcript of a video.
/// Credits are charged on delivery. A disconnect drops this future: the guard of the request then releases its hold, or
/// leaves it to the running fetch. Cached responses are sent earlier ([`super::cached`]).
pub(crate) async fn transcript(
    State(app): State<AppState>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, EarlyResponse> {
    let query = uri.query().unwrap_or_default();
    // Before the charge: afterwards the response is sent whatever the memory.
    if let Err(exhausted) = app.account_budget.reserve(1).await {
        return Err(V1ErrorResponse::from(exhausted).into_response().into());
    }
    // Read before the archive, so that a concurrent change invalidates the cached body.
    let changes = app.bodies.changes().await;
    let guard = admit(&app, V1Endpoint::Transcript, &headers, query.as_bytes().to_vec()).await?;
    let rate = guard.rate();
    let params = match transcript_params(query) {
        Ok(params) => params,
        Err(denial) => return Err(reject(guard, denial).await),
    };
    let (view, requested) = (params.view, requested_track(&params));
    let outcome = async {
        let ready = app.accounts.delivery.transcript(guard, params).await?;
        let reply = answer(&ready, requested.language(), view)?;
        if let Some(changes) = changes.filter(|_| view == TranscriptView::default()) {
            app.bodies.insert_v1(query, &requested, &ready, changes);
        }
        ready.deliver(reply).await
    };
    Ok(finish(rate, outcome.await))
}

/// Parameters of the endpoint.
const NAMES: [&str; 9] =
    ["video_id", "url", "lang", "translated", "words", "description", "chunk", "cursor", "max_chars"];

/// Parses the query; unknown parameters are ignored, unless they are spelled almost as a known one.
fn transcript_params(query: &str) -> Result<TranscriptParams, V1ErrorResponse> {
    check_spelling(query, &NAMES)?;
    Ok(TranscriptParams {
        video_id: parameter(query, "video_id")?.map(Cow::into_owned),
        url: parameter(query, "url")?.map(Cow::into_owned),
        lang: parameter(query, "lang")?.map(Cow::into_owned),
        any_language: false,
        translated: flag(query, "translated")?,
        view: view(query, "max_chars")?,
    })
}

/// The track that valid parameters request: the default one without a language.
fn requested_track(params: &TranscriptParams) -> TrackSelector {
    let tag = params.lang.as_deref().and_then(|lang| LanguageTag::parse(lang).ok());
    tag.map_or(TrackSelector::Default, |tag| TrackSelector::in_language(tag, params.translated))
}

fn answer(
    ready: &PreparedTranscript,
    requested: Option<&LanguageTag>,
    view: TranscriptView,
) -> Result<StoredResponse, V1Error> {
    // The cursor was checked, so an error is a defect: nothing is charged.
    let body = json_bytes(VideoTranscript::json(&ready.stored, requested, view));
    let body = body.map_err(|fault| V1Error::Internal(fault.detail().to_owned()))?;
    let reply = StoredResponse::json(200, body);
    Ok(reply.with_origin(ready.from_cache, ready.credits_remaining))
}

fn cached_response_headers() -> [document::ResponseHeader; 2] {
    let encoding = "Extension: the encoding of a response from the cache of the server, if it is compressed.";
    let vary = json!({ "type": "string", "const": "accept-encoding" });
    let what = "Extension: the request headers that a response from the cache of the server depends on.";
    [document::content_encoding(encoding), ("Vary", document::optional_header(what, vary))]
}

/// Operation in the `OpenAPI` document.
pub(crate) fn operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.accounts;
    let cost = options.credits_per_transcript;
    let mut headers = vec![
        document::X_CACHE.header("Whether the transcript is from the archive."),
        document::X_CREDITS_REMAINING.header("The remaining credits, if known."),
        document::replayed(),
    ];
    headers.extend(cached_response_headers());
    headers.extend(document::rate_limit());
    json!({
        "operationId": "getVideoTranscript",
        "tags": ["accounts"],
        "summary": "Get the transcript of a video for credits",
        "description": format!(
            "Costs {cost}, archived or not. A failure is free. A transcript that is fetched for a caller who \
             disconnects is charged, and the next delivery within 24 hours is free. Send either `video_id` or `url`; \
             `lang` is a language tag, English by default. Order of the checks: key, replay, rate limit, parameters, \
             credits, work."
        ),
        "security": document::key(),
        "parameters": [
            parameters::video_id(), parameters::url(), parameters::lang(), lookup::translated(), lookup::words(), lookup::description(),
            lookup::chunk(), lookup::cursor(), lookup::max_chars("max_chars"), parameters::idempotency_key()
        ],
        "responses": {
            "200": document::answer(
                "The transcript.",
                document::json_body::<VideoTranscript>(
                    json!({ "english": document::example("English captions", examples::transcript()) }),
                ),
                headers,
            ),
            "400": document::denial(
                400,
                "A parameter is missing or invalid, or the Idempotency-Key was used for another request.",
                &[("missing", "video_id: give the video's 11-character id, or its full link as url")],
                document::rate_limit(),
            ),
            "401": document::no_key(),
            "402": document::no_credits(),
            "404": document::no_transcript(
                "There is no transcript: no captions, not in this language, or the video is private or removed.",
                &[(
                    "language",
                    "This video has no English transcript. It has: fr, de; name one of them as lang.",
                )],
            ),
            "409": document::busy(),
            "429": document::too_fast_or_busy(),
            "500": document::failed_fetch()
        }
    })
}
