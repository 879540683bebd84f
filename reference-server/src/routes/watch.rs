//! `GET /watch/{platform}/{id}`: the watch page of a video.
//!
//! The page works without scripts and shows archived transcripts only: it never fetches. The button's route does
//! ([`transcribe`]).

mod answer_stream;
#[cfg(feature = "documents")]
pub(super) mod download;
mod missing;
mod progress;
pub(super) mod question;
pub(super) mod transcribe;

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    extract::{Extension, Path, State},
    response::Response,
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{LOCATION, REFERRER_POLICY, VARY},
};
use http_body_util::Full;
use maud::Markup;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use transcript_core::{
    lookup::{AttributionTag, Availability, LookupRequest, LookupResponse, VideoReference},
    supplier::ResolveOutcome,
    transcript::LanguageTag,
    video::{Platform, ShortLink, VideoId, VideoLink},
};

use super::{
    document::{self, DocumentOptions, parameters},
    html::{CacheMode, HTML, SAME_ORIGIN, confine},
};
use crate::{
    api::{
        ClientAddress, ContentEncoding, PathName, ProblemResponse, ResponseFormat, counted, flag, language,
        parameter, watch_names,
    },
    page::{self, PageContext, PagePolicy, moment::parse_moment, transcript::own_address},
    response_cache::{CachedBody, CachedRoute, RenderedBody, ResponseVariant},
    state::AppState,
};

/// The request headers that a page depends on.
const PAGE_VARIES_BY: HeaderValue =
    HeaderValue::from_static("accept-encoding, accept-language, authorization");

type VideoPath = PathName<(String, String)>;

/// Request of a watch page.
#[derive(Clone, Debug)]
struct WatchRequest {
    context: PageContext,
    options: PageOptions,
    method: Method,
    headers: HeaderMap,
    client: Option<IpAddr>,
}

/// Shows the archived transcript, or why there is none.
pub(crate) async fn page(
    State(app): State<AppState>,
    context: PageContext,
    client: Option<Extension<ClientAddress>>,
    path: VideoPath,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let client = client.map(|Extension(client)| client.0);
    let request = WatchRequest { context, options: PageOptions::parse(&uri), method, headers, client };
    match parse_path(path) {
        None => missing::unknown(&request),
        Some(VideoLink::Video(video)) => video_page(&app, &video, &request).await,
        Some(VideoLink::Short(link)) => match app.lookup.transcripts().resolve(&link, false).await {
            Ok(Some(ResolveOutcome::Video(video))) => video_page(&app, &video, &request).await,
            // The page never fetches: only a lookup or the button resolves short links.
            Ok(found) => missing::short_link(&app, &link, found.is_none(), &request).await,
            Err(_) => missing::short_link_unavailable(&link, &request),
        },
    }
}

/// Parameters of the page's address. Invalid ones are dropped: an address that people share should show a page.
#[derive(Clone, Debug, Default)]
pub(super) struct PageOptions {
    /// Attribution tag.
    pub(super) src: Option<AttributionTag>,
    /// Language; `None`: English if there is English, else the spoken language.
    pub(super) language: Option<LanguageTag>,
    /// Whether a machine translation into the language is accepted. Only what is archived is shown.
    translated: bool,
    /// Moment to show, in milliseconds.
    moment_ms: Option<u64>,
    /// Words that the page's script searches.
    search: Option<String>,
}

impl PageOptions {
    pub(super) fn parse(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let src = parameter(query, "src").ok().flatten();
        let language = language(query).ok().flatten();
        Self {
            src: src.and_then(|src| AttributionTag::from_wire(&src)),
            translated: language.is_some() && flag(query, "translated").unwrap_or_default(),
            language,
            moment_ms: parameter(query, "t").ok().flatten().and_then(|text| parse_moment(&text)),
            search: parameter(query, "q").ok().flatten().map(Into::into),
        }
    }

    /// The parameters that select the content of the page, and the attribution tag.
    fn parameters(&self) -> String {
        let language = self.language.as_ref().map(|tag| page::transcript::track_query(tag, self.translated));
        let src = self.src.map(|src| format!("src={}", src.as_str()));
        language.into_iter().chain(src).collect::<Vec<_>>().join("&")
    }

    /// The query of an address with these parameters: empty, or with `?` in front.
    fn query(&self) -> String {
        page::transcript::optional_query(&self.parameters())
    }

    /// As [`Self::query`], with the moment and the words of the search.
    fn whole_query(&self) -> String {
        page::transcript::optional_query(&self.whole_parameters())
    }

    /// As [`Self::parameters`], with the moment and the words of the search.
    fn whole_parameters(&self) -> String {
        let moment = self.moment_ms.map(|moment_ms| format!("t={}", moment_ms / 1000));
        let encode = |words: &String| format!("q={}", utf8_percent_encode(words, NON_ALPHANUMERIC));
        let rest = moment.into_iter().chain(self.search.as_ref().map(encode));
        let parameters = std::iter::once(self.parameters()).filter(|parameters| !parameters.is_empty());
        parameters.chain(rest).collect::<Vec<_>>().join("&")
    }
}

/// Video or short link of a path.
fn parse_path(path: VideoPath) -> Option<VideoLink> {
    let Path((platform, id)) = path.ok()?;
    let platform = Platform::from_wire(&platform)?;
    let video = VideoId::new(platform, &id).ok().map(VideoLink::Video);
    video.or_else(|| ShortLink::from_name(platform, &id).map(VideoLink::Short))
}

/// Returns the page of a video if it is cached. It never waits.
pub(super) fn cached_page<B>(
    app: &AppState,
    request: &Request<B>,
    now: Instant,
) -> Option<http::Response<Full<Bytes>>> {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let (platform, id) = watch_names(uri.path())?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    // The router decodes encoded names.
    let video = VideoId::new(Platform::from_wire(platform)?, id).ok()?;
    let options = PageOptions::parse(uri);
    if options.moment_ms.is_some() {
        return None;
    }
    let context = PageContext::new(Arc::clone(&app.site), method, uri, headers);
    let name = cache_name(&video, &options, &context);
    let ready = app.bodies.get((CachedRoute::Page, &name), headers, method, now)?;
    Some(with_page_headers(&video, ready))
}

fn cache_name(video: &VideoId, options: &PageOptions, context: &PageContext) -> String {
    format!("{video}\0{}\0{}", options.query(), context.language())
}

async fn video_page(app: &AppState, video: &VideoId, request: &WatchRequest) -> Response {
    let WatchRequest { context, options, method, headers, .. } = request;
    if let Some(moment_ms) = options.moment_ms {
        match moment_redirect(app, video, request, moment_ms).await {
            Ok(Some(response)) => return response,
            Ok(None) => {}
            Err(refusal) => return refused(context, &refusal),
        }
    }
    let name = cache_name(video, options, context);
    let query = (CachedRoute::Page, name.as_str());
    // Read before the archive, so that a concurrent change invalidates the cached body.
    let changes = app.bodies.changes().await;
    if let Some(ready) = app.bodies.get(query, headers, method, Instant::now()) {
        return with_page_headers(video, counted(ready));
    }
    let place = match app.read_place().await {
        Ok(place) => place,
        Err(refusal) => return refused(context, &refusal),
    };
    match app.lookup.look_up_archived(lookup_request(video, options)).await {
        Ok(answer) => match transcript_body(app, &answer, &place, request).await {
            Some(Ok((body, form))) => {
                if let (Availability::Available { stored, .. }, Some(changes)) =
                    (&answer.availability, changes)
                {
                    app.bodies.insert_query(query, stored, &answer, form, changes);
                }
                with_page_headers(video, counted(body.response(headers, method)))
            }
            Some(Err(refusal)) => refused(context, &refusal),
            None => missing::video(app, video, &answer, request).await,
        },
        // A video's own address is always a valid reference.
        Err(_) => missing::unknown(request),
    }
}

fn lookup_request(video: &VideoId, options: &PageOptions) -> LookupRequest {
    LookupRequest {
        language: options.language.clone(),
        translated: options.translated,
        src: options.src,
        ..LookupRequest::new(VideoReference::Url(video.address()))
    }
}

/// Redirect to the paragraph of a moment: without scripts, only a fragment scrolls. `None` without a transcript.
///
/// # Errors
/// 503 if there is no memory for the paragraphs, or no place for the read.
async fn moment_redirect(
    app: &AppState,
    video: &VideoId,
    request: &WatchRequest,
    moment_ms: u64,
) -> Result<Option<Response>, ProblemResponse> {
    let options = &request.options;
    let place = app.read_place().await?;
    // The page reports a failure.
    let Ok(Some(stored)) = question::archived(app, video, options).await else { return Ok(None) };
    let bytes = stored.transcript.text_bytes();
    let find = move || {
        let _place = place;
        page::transcript::paragraph_at(&stored, moment_ms)
    };
    let (Some(paragraph), _) = app.body_budget.build(bytes, find).await? else { return Ok(None) };
    let shown = PageOptions { moment_ms: None, ..options.clone() };
    let query = request.context.with_language(&shown.whole_query());
    let location = format!("{}{query}#{paragraph}", own_address(video.id()));
    let Ok(location) = HeaderValue::try_from(location) else { return Ok(None) };
    let mut response = html(StatusCode::SEE_OTHER, Markup::default(), PagePolicy::Static);
    response.headers_mut().insert(LOCATION, location);
    Ok(Some(response))
}

/// Page of a request that the server has no memory for.
fn refused(context: &PageContext, refusal: &ProblemResponse) -> Response {
    let page = page::problem::problem(context, refusal.status(), refusal.detail(), &[]);
    html(refusal.status(), page, PagePolicy::Static)
}

/// Cached body of a transcript's page; `None` without a transcript.
async fn transcript_body(
    app: &AppState,
    answer: &LookupResponse,
    place: &Arc<OwnedSemaphorePermit>,
    request: &WatchRequest,
) -> Option<Result<(Arc<CachedBody>, ResponseVariant), ProblemResponse>> {
    let (context, src, headers) = (&request.context, request.options.src, &request.headers);
    let Availability::Available { stored, .. } = &answer.availability else { return None };
    let plain = ResponseVariant::plain(ResponseFormat::Page, src);
    let form = ResponseVariant { language: context.language(), ..plain };
    // Browsers accept an unencoded body; only the API returns 406.
    let encoding = ContentEncoding::negotiate(headers).unwrap_or(ContentEncoding::Identity);
    let (context, place) = (context.clone(), Arc::clone(place));
    let render = move |answer: &LookupResponse, _| {
        let _place = place;
        render_page(&context, answer)
    };
    let body = app.bodies.get_or_render(stored, answer, form, encoding, render).await;
    Some(body.map(|body| (body, form)))
}

/// Renders the page of a transcript.
fn render_page(context: &PageContext, answer: &LookupResponse) -> RenderedBody {
    let page = match &answer.availability {
        Availability::Available { stored, .. } => {
            let requested = answer.requested_language.as_ref();
            page::transcript::transcript(context, stored, requested, &answer.watch_url, None).into_string()
        }
        Availability::Unavailable(_) => String::new(),
    };
    RenderedBody { kind: HTML, bytes: page.into_bytes() }
}

fn html(status: StatusCode, page: Markup, policy: PagePolicy) -> Response {
    super::html::html(status, page, CacheMode::WhileTrue, policy)
}

fn with_page_headers<B>(video: &VideoId, mut response: http::Response<B>) -> http::Response<B> {
    let headers = response.headers_mut();
    confine(headers, page::transcript::policy(video));
    headers.insert(REFERRER_POLICY, SAME_ORIGIN);
    headers.insert(VARY, PAGE_VARIES_BY);
    response
}

fn entity_tag() -> document::ResponseHeader {
    document::entity_tag("Strong tag of the bytes of a page with a transcript.")
}

/// `Vary` of a page: that of a transcript is compressed, and has no response for callers with a key.
fn varies() -> document::ResponseHeader {
    let values = ["accept-language", "accept-encoding, accept-language, authorization"];
    let schema = json!({ "type": "string", "enum": values });
    ("Vary", document::header("Request headers that the response depends on.", schema))
}

/// Operation of the page in the `OpenAPI` document.
pub(crate) fn operation(_: &DocumentOptions<'_>) -> Value {
    let page = |description, title: &str| {
        let body = document::page_body(title);
        document::answer(description, json!({ "text/html": body }), [document::cache_control(&["no-cache"])])
    };
    let mut shown = page("The transcript, or the reason why there is none.", "A talk – transcript");
    let encoding = document::content_encoding("The encoding of a compressed transcript.");
    for (name, header) in [entity_tag(), encoding, varies()] {
        shown["headers"][name] = header;
    }
    let location =
        document::header("Address of the page.", json!({ "type": "string", "format": "uri-reference" }));
    let not_modified = document::answer(
        "The caller's copy is current: its `ETag` is in the request's `If-None-Match`.",
        Value::Null,
        [document::cache_control(&["no-cache"]), entity_tag(), varies()],
    );
    json!({
        "operationId": "getWatchPage",
        "tags": ["transcripts"],
        "summary": "Read a transcript in the browser",
        "description": "The page shows an archived transcript. It never transcribes. The page of an unresolved short \
                        link links to the platform. `lang` selects a language and `t` a moment, such as `61` or `1m1s`: the \
                        answer is then a redirect to its paragraph. Invalid values are ignored.",
        "security": [],
        "parameters": [
            parameters::platform(),
            parameters::id(),
            parameters::src(),
            parameters::lang(),
            parameters::translated(),
            parameters::moment()
        ],
        "responses": {
            "200": document::shareable(shown),
            "303": document::answer(
                "The paragraph of the moment, if there is a transcript. The body is empty.",
                json!({ "text/html": document::text_body(&json!({ "empty": { "value": "" } })) }),
                [document::cache_control(&["no-cache"]), document::vary("accept-language"), ("Location", location)],
            ),
            "304": document::shareable(not_modified),
            "404": page("The address names no video.", "No such video"),
            "500": document::fault(),
            "503": page("The archive is unavailable.", "No transcript")
        }
    })
}
