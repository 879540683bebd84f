//! `GET /robots.txt`, `/sitemap.xml` and `/sitemaps/{file}`: what search engines may list (`pages.index`).
//!
//! `/sitemap.xml` is an index. Its first file has the pages of the site, the others have transcripts.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use maud::{Markup, PreEscaped, html};
use tokio::sync::Mutex;
use transcript_core::{Error, archive::ArchivedTrack, engine::Transcripts};

use super::docs::CachedDocument;
use crate::{
    api::{PathName, ProblemResponse, path_name},
    config::PageIndex,
    docs::page_paths,
    page::sitemap::Sitemap,
    response_cache::RenderedBody,
    state::AppState,
};

/// Namespace of sitemaps and of their index.
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
/// The file with the pages of the site.
pub(super) const SITE_FILE: &str = "/sitemaps/site.xml";
/// Pages of every server that search engines may list, besides the guides and operations.
const SITE_PAGES: [&str; 3] = ["", "pricing", "docs"];
/// Paths that no search engine needs.
const DISALLOWED: [&str; 3] = ["/api/", "/checkout/", "/account"];

/// Rules for crawlers.
pub(super) async fn robots(
    State(document): State<Arc<CachedDocument>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let render = || {
        let rules = rules(document.app.site.index, &document.app.lookup.options().base_url);
        Some(RenderedBody { kind: "text/plain; charset=utf-8", bytes: rules.into_bytes() })
    };
    document.file("robots.txt", (&method, &headers), render)
}

fn rules(index: PageIndex, base_url: &str) -> String {
    let mut rules = "User-agent: *\n".to_owned();
    if index == PageIndex::None {
        return rules + "Disallow: /\n";
    }
    rules.extend(DISALLOWED.map(|path| format!("Disallow: {path}\n")));
    if index == PageIndex::Site {
        rules += "Disallow: /watch/\n";
    }
    format!("{rules}\nSitemap: {base_url}/sitemap.xml\n")
}

/// Index of the files of the sitemap.
pub(super) async fn sitemap(State(app): State<AppState>) -> Response {
    let base_url = &app.lookup.options().base_url;
    let files = match app.site.index {
        PageIndex::None => return unlisted(),
        PageIndex::Site => Ok(0),
        PageIndex::Transcripts => app.sitemap.lock().await.file_count(app.lookup.transcripts()).await,
    };
    let files = match files {
        Ok(files) => files,
        Err(error) => return failed(&error),
    };
    xml(with_declaration(html! {
        sitemapindex xmlns=(NAMESPACE) {
            sitemap { loc { (base_url) (SITE_FILE) } }
            @for number in 1..=files { sitemap { loc { (base_url) "/sitemaps/" (number) ".xml" } } }
        }
    }))
}

/// The file of the sitemap with the pages of the site.
pub(super) async fn site_file(
    State(document): State<Arc<CachedDocument>>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let app = &document.app;
    if app.site.index == PageIndex::None {
        return unlisted();
    }
    let render = || {
        let pages = SITE_PAGES.map(str::to_owned).into_iter().chain(page_paths(document.value()));
        let text = with_declaration(html! {
            urlset xmlns=(NAMESPACE) {
                @for page in pages { url { loc { (app.lookup.options().base_url) "/" (page) } } }
            }
        });
        Some(RenderedBody { kind: XML, bytes: text.into_bytes() })
    };
    document.file(SITE_FILE, (&method, &headers), render)
}

/// A file of the sitemap with transcripts.
pub(super) async fn sitemap_file(State(app): State<AppState>, path: PathName) -> Response {
    match app.site.index {
        PageIndex::Transcripts => {
            let base_url = &app.lookup.options().base_url;
            transcripts_file(app.lookup.transcripts(), &app.sitemap, base_url, &path_name(path)).await
        }
        PageIndex::None | PageIndex::Site => unlisted(),
    }
}

/// A file with transcripts. One is made at a time.
pub(super) async fn transcripts_file(
    transcripts: &Transcripts,
    sitemap: &Mutex<Sitemap>,
    base_url: &str,
    file: &str,
) -> Response {
    // The index names them from 1.
    let number = file.strip_suffix(".xml").and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
    let Some(number) = number else { return unlisted() };
    let mut sitemap = sitemap.lock().await;
    // First the step of the plan that is due: the next plan replaces the files that are kept.
    let planned = sitemap.file_count(transcripts).await;
    // It is sent while the archive is unavailable, too.
    if let Some(kept) = sitemap.kept(number) {
        return xml(kept.to_string());
    }
    if let Err(error) = planned {
        return failed(&error);
    }
    match sitemap.videos(transcripts, number).await {
        Ok(Some(videos)) => {
            let text_of: Arc<str> = render(base_url, &videos).into();
            sitemap.keep(number, &text_of);
            xml(text_of.to_string())
        }
        // A new server has not read that far yet.
        Ok(None) if sitemap.is_incomplete() => ProblemResponse::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The sitemap is being made; retry in a minute.",
        )
        .into_response(),
        Ok(None) => unlisted(),
        Err(error) => failed(&error),
    }
}

fn render(base_url: &str, videos: &[ArchivedTrack]) -> String {
    with_declaration(html! {
        urlset xmlns=(NAMESPACE) {
            @for track in videos {
                url {
                    loc { (base_url) "/watch/" (track.video.to_string()) }
                    @if let Some(stored_at) = track.stored_at { lastmod { (stored_at.to_string()) } }
                }
            }
        }
    })
}

fn with_declaration(document: Markup) -> String {
    let declaration = PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    html! { (declaration) (document) }.into_string()
}

const XML: &str = "application/xml; charset=utf-8";

fn xml(text: String) -> Response {
    ([(CONTENT_TYPE, XML), (CACHE_CONTROL, "no-cache")], text).into_response()
}

fn unlisted() -> Response {
    ProblemResponse::new(StatusCode::NOT_FOUND, "Search engines may list nothing at this address.")
        .into_response()
}

fn failed(error: &Error) -> Response {
    tracing::error!(%error, "sitemap failed");
    ProblemResponse::fault().into_response()
}
