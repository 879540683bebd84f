//! `GET /watch/{platform}/{id}`: the page on which a person reads a transcript.
//!
//! The page is whole without scripts, and shows only what is archived: it never fetches anything. Its button does, below
//! it ([`transcribe`]).

mod progress;
pub(super) mod transcribe;

use std::{sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::{HeaderMap, Method, StatusCode, Uri};
use maud::Markup;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use transcript_core::{
    lookup::{Availability, FailureReason, LookupAnswer, LookupAsk, Reference, SourceTag},
    supplier::Resolved,
    video::{Platform, ShortLink, VideoId, VideoLink},
};

use super::{
    App,
    html::{HTML, Keep, confine},
    query::{Format, parameter},
};
use crate::{
    bodies::{Encoding, Form, ReadyBody, Rendered},
    http::Refusal,
    page::{self, May, unwritten::Offer},
};

/// What may stand in the last part of a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

type VideoPath = Result<Path<(String, String)>, PathRejection>;

/// Shows the archived transcript, or says that there is none.
pub(crate) async fn page(
    State(app): State<App>,
    path: VideoPath,
    method: Method,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let src = tag(&uri);
    match named(path) {
        None => html(StatusCode::NOT_FOUND, page::unwritten::unknown(&page::root_of(uri.path())), May::Show),
        Some(VideoLink::Video(video)) => page_of(&app, &video, src, &method, &headers).await,
        Some(VideoLink::Short(link)) => match app.lookup.transcripts().resolve(&link, false).await {
            Ok(Some(Resolved::Video(video))) => page_of(&app, &video, src, &method, &headers).await,
            // A page never asks; only a look-up follows short links, or the button.
            Ok(found) => {
                let offer =
                    found.is_none().then(|| offer(&app, &VideoLink::Short(link.clone()), src)).flatten();
                let page = page::unwritten::short(&link, offer.as_ref());
                html(StatusCode::OK, page, page::unwritten::may(offer.as_ref()))
            }
            Err(_) => html(StatusCode::SERVICE_UNAVAILABLE, page::unwritten::short_away(&link), May::Show),
        },
    }
}

/// The attribution tag of a page's address. What is none is not kept.
fn tag(uri: &Uri) -> Option<SourceTag> {
    let src = parameter(uri.query().unwrap_or_default(), "src").ok().flatten()?;
    SourceTag::from_wire(&src)
}

/// The video or short link of an address.
fn named(path: VideoPath) -> Option<VideoLink> {
    let Path((platform, id)) = path.ok()?;
    let platform = Platform::from_wire(&platform)?;
    let video = VideoId::new(platform, &id).ok().map(VideoLink::Video);
    video.or_else(|| ShortLink::from_name(platform, &id).map(VideoLink::Short))
}

/// What a visitor can have where there is no transcript; none where there is nobody to ask, or visitors are not served.
fn offer(app: &App, link: &VideoLink, src: Option<SourceTag>) -> Option<Offer> {
    let (platform, name) = match link {
        VideoLink::Video(video) => (video.platform(), video.id().to_owned()),
        VideoLink::Short(link) => (link.platform(), link.name()),
    };
    let served = app.lookup.serves_visitors() && app.lookup.transcripts().covers(platform);
    served.then(|| Offer {
        // The dot keeps a name with a colon from being taken for the scheme of an address.
        here: format!("./{}", utf8_percent_encode(&name, SEGMENT)),
        query: src.map_or(String::new(), |tag| format!("?src={}", tag.as_str())),
        per_day: app.lookup.options().visitor_per_day,
    })
}

/// The page of a video.
async fn page_of(
    app: &App,
    video: &VideoId,
    src: Option<SourceTag>,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    // No query of the API begins with this, so no page is ever taken for an answer of it.
    let name = format!("\0{video}\0{}", src.map_or("", SourceTag::as_str));
    // Read before the archive is, so that a change in between shows.
    let changes = app.bodies.changes().await;
    if changes.is_some()
        && let Some(ready) = app.bodies.found(&name, headers, method, Instant::now())
    {
        return dressed(ready.map(Body::new));
    }
    let ask = LookupAsk {
        reference: Reference::Url(video.address()),
        src,
        key: None,
        proof: None,
        client: None,
        default_only: false,
    };
    match app.lookup.peek(ask).await {
        Ok(answer) => match written(app, &answer, src, headers).await {
            Some(Ok((body, form))) => {
                if let (Availability::Available { stored, .. }, Some(changes)) =
                    (&answer.availability, changes)
                {
                    app.bodies.means(&name, stored, form, changes);
                }
                dressed(body.response(headers, method).map(Body::new))
            }
            Some(Err(refusal)) => {
                let page = page::problem::problem(refusal.status(), refusal.detail(), "../../");
                html(refusal.status(), page, May::Show)
            }
            None => unwritten(app, video, src, &answer),
        },
        // The address of a video is always a reference to it.
        Err(_) => html(StatusCode::NOT_FOUND, page::unwritten::unknown("../../"), May::Show),
    }
}

/// The body of the page of a transcript; none where there is no transcript.
async fn written(
    app: &App,
    answer: &LookupAnswer,
    src: Option<SourceTag>,
    headers: &HeaderMap,
) -> Option<Result<(Arc<ReadyBody>, Form), Refusal>> {
    let Availability::Available { stored, .. } = &answer.availability else { return None };
    let form = Form { format: Format::Page, src };
    // Browsers always take a body as it is; who refuses even that is told so by the API.
    let encoding = Encoding::chosen(headers).unwrap_or(Encoding::Identity);
    let body = app.bodies.of(stored, answer, form, encoding, |answer, _| rendered(answer)).await;
    Some(body.map(|body| (body, form)))
}

/// The page of an answer that has a transcript.
fn rendered(answer: &LookupAnswer) -> Rendered {
    let page = match &answer.availability {
        Availability::Available { stored, .. } => {
            page::transcript::transcript(&stored.transcript, &answer.watch_url).into_string()
        }
        Availability::Unavailable { .. } => String::new(),
    };
    Rendered { kind: HTML, bytes: page.into_bytes() }
}

/// The page of a video without a transcript.
fn unwritten(app: &App, video: &VideoId, src: Option<SourceTag>, answer: &LookupAnswer) -> Response {
    let Availability::Unavailable { reason, message, detail, .. } = &answer.availability else {
        return html(StatusCode::OK, page::unwritten::away(video), May::Show);
    };
    if detail.as_deref() == Some("withdrawn") {
        return html(StatusCode::OK, page::unwritten::closed(video, "Withdrawn", message), May::Show);
    }
    if *reason != FailureReason::NeedsVerification {
        return html(StatusCode::SERVICE_UNAVAILABLE, page::unwritten::away(video), May::Show);
    }
    let offer = offer(app, &VideoLink::Video(video.clone()), src);
    let why = match (&offer, app.lookup.transcripts().covers(video.platform())) {
        (Some(_), _) => {
            "Nobody has asked for this video here so far, so its words are not archived yet.".to_owned()
        }
        (None, true) => {
            "This video has not been transcribed here yet. New transcripts are made for callers with an \
                         API key."
                .to_owned()
        }
        (None, false) => format!(
            "This video has not been transcribed here yet, and this service has no source of new transcripts for {}.",
            video.platform().name()
        ),
    };
    html(
        StatusCode::OK,
        page::unwritten::video(video, &why, offer.as_ref()),
        page::unwritten::may(offer.as_ref()),
    )
}

fn html(status: StatusCode, page: Markup, may: May) -> Response {
    super::html::html(status, page, Keep::WhileTrue, may)
}

fn dressed(mut response: Response) -> Response {
    confine(response.headers_mut(), page::transcript::MAY);
    response
}
