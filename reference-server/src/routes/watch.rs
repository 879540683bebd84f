//! `GET /watch/{platform}/{id}`: the watch page of a video.
//!
//! The page works without scripts and shows archived transcripts only: it never fetches. The button's route does
//! ([`transcribe`]).

mod progress;
pub(super) mod transcribe;

use std::{sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header::LOCATION};
use maud::Markup;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use transcript_core::{
    engine::NoTranscript,
    lookup::{AttributionTag, Availability, FailureReason, LookupRequest, LookupResponse, VideoReference},
    supplier::ResolveOutcome,
    transcript::LanguageTag,
    video::{Platform, ShortLink, VideoId, VideoLink},
};

use super::{
    document::{self, DocumentOptions, parameters},
    html::{CacheMode, HTML, confine},
};
use crate::{
    api::{ContentEncoding, ProblemResponse, ResponseFormat, language, parameter},
    page::{self, PagePolicy, moment::parse_moment, no_transcript::TranscribeOffer},
    response_cache::{CachedBody, CachedRoute, RenderedBody, ResponseVariant},
    state::AppState,
};

/// Characters that are not escaped in the last path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

type VideoPath = Result<Path<(String, String)>, PathRejection>;

/// Shows the archived transcript, or why there is none.
pub(crate) async fn page(
    State(app): State<AppState>,
    path: VideoPath,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let options = PageOptions::parse(&uri);
    match parse_path(path) {
        None => html(
            StatusCode::NOT_FOUND,
            page::no_transcript::unknown(&page::root_of(uri.path())),
            PagePolicy::Static,
        ),
        Some(VideoLink::Video(video)) => video_page(&app, &video, &options, &method, &headers).await,
        Some(VideoLink::Short(link)) => match app.lookup.transcripts().resolve(&link, false).await {
            Ok(Some(ResolveOutcome::Video(video))) => {
                video_page(&app, &video, &options, &method, &headers).await
            }
            // The page never fetches: only a lookup or the button resolves short links.
            Ok(found) => {
                let offer =
                    found.is_none().then(|| offer(&app, &VideoLink::Short(link.clone()), &options)).flatten();
                let page = page::no_transcript::short_link(&link, offer.as_ref());
                html(StatusCode::OK, page, page::no_transcript::policy(offer.as_ref()))
            }
            Err(_) => html(
                StatusCode::SERVICE_UNAVAILABLE,
                page::no_transcript::short_link_unavailable(&link),
                PagePolicy::Static,
            ),
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
    /// Moment to show, in milliseconds.
    moment_ms: Option<u64>,
}

impl PageOptions {
    pub(super) fn parse(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let src = parameter(query, "src").ok().flatten();
        Self {
            src: src.and_then(|src| AttributionTag::from_wire(&src)),
            language: language(query).ok().flatten(),
            moment_ms: parameter(query, "t").ok().flatten().and_then(|text| parse_moment(&text)),
        }
    }

    /// The query of an address with the same parameters: empty, or with `?` in front.
    fn query(&self) -> String {
        let language = self.language.as_ref().map(|tag| format!("lang={tag}"));
        let src = self.src.map(|src| format!("src={}", src.as_str()));
        let parameters: Vec<_> = language.into_iter().chain(src).collect();
        if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) }
    }
}

/// Video or short link of a path.
fn parse_path(path: VideoPath) -> Option<VideoLink> {
    let Path((platform, id)) = path.ok()?;
    let platform = Platform::from_wire(&platform)?;
    let video = VideoId::new(platform, &id).ok().map(VideoLink::Video);
    video.or_else(|| ShortLink::from_name(platform, &id).map(VideoLink::Short))
}

/// Offer to transcribe; `None` if no supplier supports the platform or visitors are not served.
fn offer(app: &AppState, link: &VideoLink, options: &PageOptions) -> Option<TranscribeOffer> {
    let (platform, name) = match link {
        VideoLink::Video(video) => (video.platform(), video.id().to_owned()),
        VideoLink::Short(link) => (link.platform(), link.name()),
    };
    let is_offered = app.visitors.can_fetch() && app.lookup.transcripts().has_supplier(platform);
    is_offered.then(|| TranscribeOffer {
        base: own_address(&name),
        query: options.query(),
        per_day: app.lookup.options().visitor_per_day,
    })
}

/// Watch page of a video.
async fn video_page(
    app: &AppState,
    video: &VideoId,
    options: &PageOptions,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    if let Some(moment_ms) = options.moment_ms
        && let Some(response) = moment_redirect(app, video, options, moment_ms).await
    {
        return response;
    }
    let name = format!("{video}\0{}", options.query());
    let query = (CachedRoute::Page, name.as_str());
    // Read before the archive, so that a concurrent change invalidates the cached body.
    let changes = app.bodies.changes().await;
    if let Some(ready) = app.bodies.get(query, headers, method, Instant::now()) {
        return with_page_headers(ready.map(Body::new));
    }
    match app.lookup.look_up_archived(lookup_request(video, options)).await {
        Ok(answer) => match transcript_body(app, &answer, options.src, headers).await {
            Some(Ok((body, form))) => {
                if let (Availability::Available { stored, .. }, Some(changes)) =
                    (&answer.availability, changes)
                {
                    app.bodies.insert_query(query, stored, &answer, form, changes);
                }
                with_page_headers(body.response(headers, method).map(Body::new))
            }
            Some(Err(refusal)) => {
                let page = page::problem::problem(refusal.status(), refusal.detail(), "../../");
                html(refusal.status(), page, PagePolicy::Static)
            }
            None => no_transcript_page(app, video, options, &answer),
        },
        // A video's own address is always a valid reference.
        Err(_) => html(StatusCode::NOT_FOUND, page::no_transcript::unknown("../../"), PagePolicy::Static),
    }
}

fn lookup_request(video: &VideoId, options: &PageOptions) -> LookupRequest {
    LookupRequest {
        language: options.language.clone(),
        src: options.src,
        ..LookupRequest::new(VideoReference::Url(video.address()))
    }
}

/// Redirect to the paragraph of a moment: without scripts, only a fragment scrolls. `None` without a transcript.
async fn moment_redirect(
    app: &AppState,
    video: &VideoId,
    options: &PageOptions,
    moment_ms: u64,
) -> Option<Response> {
    let answer = app.lookup.look_up_archived(lookup_request(video, options)).await.ok()?;
    let Availability::Available { stored, .. } = &answer.availability else { return None };
    let paragraph = page::transcript::paragraph_at(&stored.transcript, moment_ms)?;
    let location = format!("{}{}#{paragraph}", own_address(video.id()), options.query());
    let mut response = html(StatusCode::SEE_OTHER, Markup::default(), PagePolicy::Static);
    response.headers_mut().insert(LOCATION, HeaderValue::try_from(location).ok()?);
    Some(response)
}

/// The relative address of a watch page on itself. The leading `./` keeps a name with a colon from being parsed as a
/// URL scheme.
fn own_address(name: &str) -> String {
    format!("./{}", utf8_percent_encode(name, SEGMENT))
}

/// Cached body of a transcript's page; `None` without a transcript.
async fn transcript_body(
    app: &AppState,
    answer: &LookupResponse,
    src: Option<AttributionTag>,
    headers: &HeaderMap,
) -> Option<Result<(Arc<CachedBody>, ResponseVariant), ProblemResponse>> {
    let Availability::Available { stored, .. } = &answer.availability else { return None };
    let form = ResponseVariant::plain(ResponseFormat::Page, src);
    // Browsers accept an unencoded body; only the API returns 406.
    let encoding = ContentEncoding::negotiate(headers).unwrap_or(ContentEncoding::Identity);
    let body =
        app.bodies.get_or_render(stored, answer, form, encoding, |answer, _| render_page(answer)).await;
    Some(body.map(|body| (body, form)))
}

/// Renders the page of a transcript.
fn render_page(answer: &LookupResponse) -> RenderedBody {
    let page = match &answer.availability {
        Availability::Available { stored, .. } => {
            let requested = answer.requested_language.as_ref();
            page::transcript::transcript(stored, requested, &answer.watch_url).into_string()
        }
        Availability::Unavailable(_) => String::new(),
    };
    RenderedBody { kind: HTML, bytes: page.into_bytes() }
}

/// Page of a video without a transcript.
fn no_transcript_page(
    app: &AppState,
    video: &VideoId,
    options: &PageOptions,
    answer: &LookupResponse,
) -> Response {
    let Availability::Unavailable(NoTranscript { reason, message, detail, .. }) = &answer.availability else {
        return html(StatusCode::OK, page::no_transcript::unavailable(video), PagePolicy::Static);
    };
    if detail.as_deref() == Some("withdrawn") {
        return html(
            StatusCode::OK,
            page::no_transcript::closed(video, "Withdrawn", message),
            PagePolicy::Static,
        );
    }
    if detail.as_deref() == Some("no_language") {
        return html(
            StatusCode::OK,
            page::no_transcript::other_languages(video, message, &answer.languages),
            PagePolicy::Static,
        );
    }
    if *reason != FailureReason::NeedsVerification {
        return html(
            StatusCode::SERVICE_UNAVAILABLE,
            page::no_transcript::unavailable(video),
            PagePolicy::Static,
        );
    }
    let offer = offer(app, &VideoLink::Video(video.clone()), options);
    let why = match (&offer, app.lookup.transcripts().has_supplier(video.platform())) {
        (Some(_), _) => match &options.language {
            Some(tag) => format!("This video is not transcribed in {} yet.", tag.english_name()),
            None => "This video is not transcribed yet.".to_owned(),
        },
        (None, true) => "This video is not transcribed yet. New transcripts need an API key.".to_owned(),
        (None, false) => format!(
            "This video is not transcribed yet, and this service has no source of new transcripts for {}.",
            video.platform().name()
        ),
    };
    html(
        StatusCode::OK,
        page::no_transcript::video(video, &why, offer.as_ref()),
        page::no_transcript::policy(offer.as_ref()),
    )
}

fn html(status: StatusCode, page: Markup, policy: PagePolicy) -> Response {
    super::html::html(status, page, CacheMode::WhileTrue, policy)
}

fn with_page_headers(mut response: Response) -> Response {
    confine(response.headers_mut(), page::transcript::POLICY);
    response
}

/// Operation of the page in the `OpenAPI` document.
pub(crate) fn operation(_: &DocumentOptions<'_>) -> Value {
    let page = |description, title: &str| {
        let body = document::page_body(title);
        document::answer(description, json!({ "text/html": body }), [document::cache_control(&["no-cache"])])
    };
    json!({
        "operationId": "getWatchPage",
        "tags": ["transcripts"],
        "summary": "Read a transcript in the browser",
        "description": "The page shows an archived transcript. It never transcribes. The page of an unresolved short \
                        link links to the platform. `lang` selects a language and `t` a moment, such as `61` or `1m1s`: the \
                        answer is then a redirect to its paragraph. Invalid values are ignored.",
        "security": [],
        "parameters": [parameters::platform(), parameters::id()],
        "responses": {
            "200": document::shareable(page("The transcript, or the reason why there is none.", "A talk – transcript")),
            "404": page("The address names no video.", "No such video"),
            "500": document::fault(),
            "503": page("The archive is unavailable.", "No transcript")
        }
    })
}
