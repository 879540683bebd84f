//! `GET /api/search` and `GET /search` (specification 17).

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};
use transcript_core::{
    Error, ErrorKind, log_failure,
    lookup::SearchAdmission,
    search::{LIMIT_MAX, QUERY_CHARS_MAX, SearchPage, SearchParams, SearchSort},
    time::ceil_seconds,
    video::{Platform, VideoLink},
    wire::search::{SearchHitObject, SearchMomentObject, SearchResponse, SearchTotalObject},
};

use super::{
    document::{self, DocumentOptions, parameters},
    html::{CacheMode, html},
};
use crate::{
    api::{
        ClientAddress, INVALID_TOKEN, NO_STORE, ProblemResponse, TOKEN_NEEDED, bearer, json, search_params,
        search_words,
    },
    config::SearchAccess,
    page::{
        PageContext,
        search::{self as search_page, SearchView},
    },
    state::{AppState, wait_for_place},
};

/// Searches the archive.
pub(crate) async fn search(
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Response> {
    let params = parsed(&app, &uri).map_err(IntoResponse::into_response)?;
    let missing = || ProblemResponse::bad("q", "it is missing: give the words to search for").into_response();
    let params = params.ok_or_else(missing)?;
    admit(&app, client, bearer(&headers)).await?;
    let page = find(&app, &params).await.map_err(IntoResponse::into_response)?;
    let options = app.lookup.options();
    let body = SearchResponse::new(&params.query, &page, |hit| {
        options.watch_url(&VideoLink::Video(hit.stored.transcript.video.clone()), None)
    });
    Ok(([NO_STORE], json(StatusCode::OK, &body)).into_response())
}

/// Search page. It works without scripts.
pub(crate) async fn page(
    context: PageContext,
    State(app): State<AppState>,
    Extension(client): Extension<ClientAddress>,
    uri: Uri,
) -> Result<Response, ProblemResponse> {
    let show = |status, params: &SearchParams, state: SearchView<'_>| {
        let page = search_page::search(&context, params, state);
        Ok(html(status, page, CacheMode::Never, search_page::POLICY))
    };
    let params = match parsed(&app, &uri) {
        Ok(params) => params.unwrap_or_default(),
        Err(refusal) if refusal.status() == StatusCode::NOT_FOUND => return Err(refusal),
        Err(refusal) => {
            let why = refusal_text(&context, refusal.status(), None, invalid_parameter(&refusal));
            let query = search_words(uri.query().unwrap_or_default());
            let params = SearchParams { query, ..SearchParams::default() };
            return show(refusal.status(), &params, SearchView::Failed(&why));
        }
    };
    if params.query.trim().is_empty() {
        let params = SearchParams { query: String::new(), ..params };
        return show(StatusCode::OK, &params, SearchView::Empty);
    }
    if let Err(refusal) = admit(&app, client, None).await {
        let why = refusal_text(&context, refusal.status(), refusal.headers().get(RETRY_AFTER), None);
        let mut response = show(refusal.status(), &params, SearchView::Failed(&why))?;
        for name in [RETRY_AFTER, WWW_AUTHENTICATE] {
            if let Some(value) = refusal.headers().get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        return Ok(response);
    }
    let params = SearchParams { with_unfiltered: true, ..params };
    match find(&app, &params).await {
        Ok(found) => show(StatusCode::OK, &params, SearchView::Found(&found)),
        Err(refusal) => {
            let why = refusal_text(&context, refusal.status(), None, invalid_parameter(&refusal));
            show(refusal.status(), &params, SearchView::Failed(&why))
        }
    }
}

/// Why there are no results, in the words of the pages. Those of the API name parameters.
fn refusal_text(
    context: &PageContext,
    status: StatusCode,
    retry_after: Option<&HeaderValue>,
    invalid: Option<&str>,
) -> String {
    let seconds = retry_after.and_then(|seconds| seconds.to_str().ok());
    match (status, seconds) {
        (StatusCode::UNAUTHORIZED, _) => context.text("search.key").to_owned(),
        (StatusCode::SERVICE_UNAVAILABLE, _) => context.text("problem.busy_why").to_owned(),
        (_, Some(seconds)) => context.fill("search.limit", &[("seconds", seconds)]),
        (status, None) if status.is_server_error() => context.text("problem.fault_why").to_owned(),
        _ => match invalid {
            Some(name) => context.fill("search.invalid_parameter", &[("name", name)]),
            None => context.fill("search.invalid", &[("count", &context.number(QUERY_CHARS_MAX as u64))]),
        },
    }
}

/// The name of an invalid parameter other than the words.
fn invalid_parameter(refusal: &ProblemResponse) -> Option<&str> {
    refusal.parameter().filter(|name| *name != "q")
}

/// The parameters of a search, if the server has one.
///
/// # Errors
/// 404 if there is no search, 400 for an invalid parameter.
pub(super) fn parsed(app: &AppState, uri: &Uri) -> Result<Option<SearchParams>, ProblemResponse> {
    if app.search_access == SearchAccess::Off {
        return Err(ProblemResponse::new(StatusCode::NOT_FOUND, "This server has no search."));
    }
    search_params(uri.query().unwrap_or_default())
}

/// Counts a search for the caller.
///
/// # Errors
/// 401 without a key if one is needed, 429 beyond the rate limit.
pub(super) async fn admit(
    app: &AppState,
    client: ClientAddress,
    key: Option<String>,
) -> Result<(), Response> {
    let needs_key = app.search_access == SearchAccess::Keys;
    let admission = app.lookup.admit_search(key, Some(client.0), needs_key).await;
    match admission.map_err(|error| failed(&error).into_response())? {
        SearchAdmission::Admitted => Ok(()),
        SearchAdmission::KeyNeeded { is_unknown } => {
            let (challenge, detail) = match is_unknown {
                false => (TOKEN_NEEDED, "Search needs an API key: send it as Authorization: Bearer <key>."),
                true => (
                    INVALID_TOKEN,
                    "The API key in the Authorization header is unknown here, expired, or was revoked.",
                ),
            };
            let refusal = ProblemResponse::new(StatusCode::UNAUTHORIZED, detail);
            Err(([(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))], refusal).into_response())
        }
        SearchAdmission::Limited { retry_after_ms } => {
            let wait = Duration::from_millis(retry_after_ms);
            let detail = format!("Too many searches. Retry in {} seconds.", ceil_seconds(wait));
            let refusal = ProblemResponse::new(StatusCode::TOO_MANY_REQUESTS, detail);
            Err(refusal.with_retry_after(wait).into_response())
        }
    }
}

/// Runs a search.
///
/// # Errors
/// 400 for a cursor of another search, 500 if archive or index cannot be read, 503 beside too many other searches.
pub(super) async fn find(app: &AppState, params: &SearchParams) -> Result<SearchPage, ProblemResponse> {
    let Some(service) = &app.search else {
        return Err(ProblemResponse::new(StatusCode::NOT_FOUND, "This server has no search."));
    };
    let busy = || {
        let detail = "The server is working on other searches. Retry in a few seconds.";
        ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    };
    let _place = wait_for_place(&app.search_places).await.ok_or_else(busy)?;
    service.search(params).await.map_err(|error| match error.kind() {
        ErrorKind::Invalid => {
            ProblemResponse::bad("cursor", "it is none of this search: use nextCursor unchanged")
        }
        _ => failed(&error),
    })
}

fn failed(error: &Error) -> ProblemResponse {
    log_failure!(error, [%error], "search failed");
    ProblemResponse::fault()
}

/// Operation in the `OpenAPI` document.
pub(crate) fn operation(options: &DocumentOptions<'_>) -> Value {
    json!({
        "operationId": "searchArchive",
        "tags": ["transcripts"],
        "summary": "Search all archived transcripts",
        "description": "Finds the videos of the archive whose transcripts, titles or channels match. All words must \
                        occur, in any order and form. `\"exact phrase\"`, `-not`, `OR` and `prefix*` work as in other \
                        search engines; `lang:`, `platform:`, `channel:`, `before:` and `after:` (a year, month or \
                        day) filter. Anything malformed is searched as words. Free of charge, with a rate limit for \
                        each key, or each network without a key. Servers may require a key.",
        "security": document::optional_key(),
        "parameters": search_parameters(),
        "responses": {
            "200": document::answer(
                "The matching videos.",
                document::json_body::<SearchResponse>(json!({ "found": document::example(
                    "One of two videos",
                    example(options),
                ) })),
                [document::cache_control(&["no-store"]), document::vary("origin")],
            ),
            "400": document::refusal(
                (400, "Bad Request"),
                "A parameter is missing or invalid.",
                &[("missing", "q: it is missing: give the words to search for.")],
                [document::vary("origin")],
            ),
            "401": document::refusal(
                (401, "Unauthorized"),
                "The server requires a key for searches, and there is none, or an unknown one.",
                &[("missing", "Search needs an API key: send it as Authorization: Bearer <key>.")],
                [document::www_authenticate(), document::vary("origin")],
            ),
            "404": document::refusal(
                (404, "Not Found"),
                "The server has no search.",
                &[("off", "This server has no search.")],
                [document::vary("origin")],
            ),
            "429": document::refusal(
                (429, "Too Many Requests"),
                "Too many searches within a minute.",
                &[("limited", "Too many searches. Retry in 12 seconds.")],
                [document::retry_after(), document::vary("origin")],
            ),
            "500": document::fault()
        }
    })
}

fn search_parameters() -> Value {
    let wire_names = Platform::ALL.map(|platform| platform.as_str().to_owned());
    let platforms: Vec<_> = Platform::input_names().into_iter().chain(wire_names).collect();
    json!([
        {
            "name": "q",
            "in": "query",
            "required": true,
            "description": "The query.",
            "schema": { "type": "string", "maxLength": QUERY_CHARS_MAX },
            "examples": {
                "words": { "value": "tide tables" },
                "phrase": { "value": "\"tide tables\" -moon lang:en after:2024" }
            }
        },
        {
            "name": "lang",
            "in": "query",
            "description": "Only transcripts in this language (BCP 47), matched by language and likely script.",
            "schema": parameters::language_tag(),
            "examples": { "french": { "value": "fr" } }
        },
        {
            "name": "platform",
            "in": "query",
            "description": "Only videos of this platform.",
            "schema": { "type": "string", "enum": platforms },
            "examples": { "youtube": { "value": "youtube" } }
        },
        {
            "name": "sort",
            "in": "query",
            "description": "The order: best first, or newest video first.",
            "schema": {
                "type": "string",
                "enum": SearchSort::ALL.map(SearchSort::as_str),
                "default": SearchSort::Relevance.as_str()
            },
            "examples": { "newest": { "value": "date" } }
        },
        {
            "name": "limit",
            "in": "query",
            "description": "The most hits of a page.",
            "schema": { "type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": SearchParams::default().limit },
            "examples": { "few": { "value": 5 } }
        },
        parameters::search_cursor()
    ])
}

fn example(options: &DocumentOptions<'_>) -> Value {
    let video = document::examples::VIDEO;
    let response = SearchResponse {
        query: "tide tables".to_owned(),
        total: SearchTotalObject { value: 2, relation: "eq".to_owned() },
        next_cursor: Some("s1f2e3d4c1".to_owned()),
        did_you_mean: None,
        hits: vec![SearchHitObject {
            platform: Platform::YouTube.as_str().to_owned(),
            video_id: video.to_owned(),
            title: Some("A talk".to_owned()),
            author: Some("Ann".to_owned()),
            language: "en".to_owned(),
            watch_url: format!("{}/watch/video_site/{video}", options.lookup.base_url),
            score: 12.3,
            moments: vec![SearchMomentObject {
                start: 61.2,
                end: 66.0,
                text: "The tide tables are on the wall.".to_owned(),
                matches: vec![(4, 8), (9, 15)],
                url: format!("https://www.youtube.com/watch?v={video}&t=61s"),
            }],
        }],
    };
    serde_json::to_value(response).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt as _;
    use verbatim::{Options, Verbatim};

    use super::*;
    use crate::{state::SEARCH_PLACES, testing::ServiceFixture};

    #[tokio::test(start_paused = true)]
    async fn search_without_place_is_busy() {
        let verbatim = Verbatim::open(Options::default()).await.unwrap();
        let service = ServiceFixture::start().await;
        let app = service.app.clone().with_search(verbatim.search().clone(), SearchAccess::Everyone);
        let params = SearchParams { query: "tide".to_owned(), ..SearchParams::default() };
        let places = Arc::clone(&app.search_places).acquire_many_owned(SEARCH_PLACES as u32).await.unwrap();
        let refused = find(&app, &params).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let client = Extension(ClientAddress("192.0.2.1".parse().unwrap()));
        let uri = Uri::from_static("/search?q=tide");
        let refused = page(PageContext::for_test("/search"), State(app.clone()), client, uri).await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()[RETRY_AFTER], "5");
        let text = refused.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&text).contains("The server is busy."), "{text:?}");
        drop(places);
        assert!(find(&app, &params).await.unwrap().hits.is_empty());
    }
}
