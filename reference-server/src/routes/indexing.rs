//! `GET /robots.txt` and `GET /sitemap.xml`: what search engines may list (`pages.index`).

use std::collections::HashSet;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use maud::{Markup, PreEscaped, html};
use tokio::time::{Duration, Instant};
use transcript_core::{Result, archive::ArchivedTrack, ids::Cursor, page::PageRequest, video::VideoId};

use crate::{api::ProblemResponse, config::PageIndex, state::AppState};

/// How long a sitemap is sent before it is made again.
const SITEMAP_AGE_MAX: Duration = Duration::from_secs(3_600);
/// Maximum number of transcripts in the sitemap. Its format allows 50,000 addresses.
const TRANSCRIPTS_MAX: usize = 49_000;
/// Pages of every server that search engines may list.
const SITE_PAGES: [&str; 3] = ["", "pricing", "docs"];
/// Paths that no search engine needs.
const DISALLOWED: [&str; 3] = ["/api/", "/checkout/", "/account"];

/// Rules for crawlers.
pub(super) async fn robots(State(app): State<AppState>) -> Response {
    let base_url = &app.lookup.options().base_url;
    let rules = match app.site.index {
        PageIndex::None => "Disallow: /\n".to_owned(),
        index => {
            let mut rules: String = DISALLOWED.map(|path| format!("Disallow: {path}\n")).concat();
            if index == PageIndex::Site {
                rules += "Disallow: /watch/\n";
            }
            format!("{rules}\nSitemap: {base_url}/sitemap.xml\n")
        }
    };
    text("text/plain; charset=utf-8", format!("User-agent: *\n{rules}"))
}

/// The addresses that search engines may list.
pub(super) async fn sitemap(State(app): State<AppState>) -> Response {
    if app.site.index == PageIndex::None {
        return ProblemResponse::new(StatusCode::NOT_FOUND, "This site is not listed in search engines.")
            .into_response();
    }
    let mut cached = app.sitemap.0.lock().await;
    if let Some((made_at, text_of)) = cached.as_ref()
        && made_at.elapsed() < SITEMAP_AGE_MAX
    {
        return text("application/xml; charset=utf-8", text_of.to_string());
    }
    match render(&app).await {
        Ok(sitemap) => {
            *cached = Some((Instant::now(), sitemap.as_str().into()));
            text("application/xml; charset=utf-8", sitemap)
        }
        Err(error) => {
            tracing::error!(%error, "sitemap failed");
            ProblemResponse::fault().into_response()
        }
    }
}

fn text(kind: &'static str, body: String) -> Response {
    let headers: [(HeaderName, HeaderValue); 2] = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, body).into_response()
}

async fn render(app: &AppState) -> Result<String> {
    let base_url = &app.lookup.options().base_url;
    let transcripts = match app.site.index {
        PageIndex::Transcripts => archived(app).await?,
        PageIndex::None | PageIndex::Site => Vec::new(),
    };
    let sitemap: Markup = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" {
            @for page in SITE_PAGES { url { loc { (base_url) "/" (page) } } }
            @for track in &transcripts {
                url {
                    loc { (base_url) "/watch/" (track.video.to_string()) }
                    @if let Some(stored_at) = track.stored_at { lastmod { (stored_at.to_string()) } }
                }
            }
        }
    };
    Ok(sitemap.into_string())
}

/// The archived transcripts, one per video, at most [`TRANSCRIPTS_MAX`].
async fn archived(app: &AppState) -> Result<Vec<ArchivedTrack>> {
    let withdrawn = withdrawn(app).await?;
    let mut found: Vec<ArchivedTrack> = Vec::new();
    let mut request = Some(PageRequest::first());
    while let Some(next) = request.take().filter(|_| found.len() < TRANSCRIPTS_MAX) {
        let page = app.lookup.transcripts().list_tracks(next).await?;
        for track in page.items {
            // The tracks of a video are neighbours.
            let is_new = found.last().is_none_or(|last| last.video != track.video);
            if is_new && !withdrawn.contains(&track.video) {
                found.push(track);
            }
        }
        request = page.next.map(after);
    }
    found.truncate(TRANSCRIPTS_MAX);
    Ok(found)
}

/// All withdrawn videos.
async fn withdrawn(app: &AppState) -> Result<HashSet<VideoId>> {
    let mut found = HashSet::new();
    let mut request = Some(PageRequest::first());
    while let Some(next) = request.take() {
        let page = app.lookup.transcripts().list_withdrawn(next).await?;
        found.extend(page.items);
        request = page.next.map(after);
    }
    Ok(found)
}

fn after(cursor: Cursor) -> PageRequest {
    PageRequest { after: Some(cursor), ..PageRequest::first() }
}
