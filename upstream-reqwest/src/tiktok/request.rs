//! The two requests: a post's page, and a file in its state.

use http::HeaderMap;
use transcript_core::video::VideoId;
use url::Url;

use crate::{
    http::HttpRequest,
    social::{BROWSER, headers, navigation_headers},
};

/// The platform's name in the transport.
pub(crate) const PLATFORM: &str = "www.tiktok.com";
/// The hosts of pages.
const PAGES: &[&str] = &[PLATFORM, "m.tiktok.com"];
/// The hosts of captions: TikTok's own and its delivery networks.
pub(crate) const FILES: &[&str] = &[
    PLATFORM,
    ".tiktok.com",
    ".tiktokv.com",
    ".tiktokv.us",
    ".tiktokv.eu",
    ".tiktokcdn.com",
    ".tiktokcdn-us.com",
    ".tiktokcdn-eu.com",
    ".ttwstatic.com",
];
const ORIGIN: &str = "https://www.tiktok.com/";

/// Maximum lengths of responses. Pages have 0.2 to 1 MB, captions a few KB per minute.
const PAGE_MAX: usize = 8 << 20;
const CAPTIONS_MAX: usize = 10 << 20;

/// The request for a post's page, like a browser's for a typed URL.
///
/// A slide show's page has no state at its own URL, but has one at that of a video. The account in the URL is ignored.
pub(super) fn page(video: &VideoId) -> Option<HttpRequest> {
    let url = Url::parse(&video.address()).ok()?;
    let headers = navigation_headers("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    Some(HttpRequest::get(url, PAGES, headers, PAGE_MAX))
}

/// The request for captions at a URL in the page's state; `None` if the URL is invalid.
pub(super) fn captions(address: &str) -> Option<HttpRequest> {
    // Some URLs have no scheme.
    let url = Url::parse(ORIGIN).and_then(|base| base.join(address)).ok()?;
    Some(HttpRequest::get(url, FILES, file_headers(), CAPTIONS_MAX))
}

/// The headers of a file request.
pub(super) fn file_headers() -> HeaderMap {
    headers(&[
        ("user-agent", BROWSER),
        ("accept", "*/*"),
        ("accept-language", "en-US,en;q=0.9"),
        ("referer", ORIGIN),
    ])
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    #[test]
    fn page_request_has_browser_headers() {
        let video = VideoId::new(Platform::TikTok, "7524919459643919624").unwrap();
        let request = page(&video).unwrap();
        assert_eq!(request.url.as_str(), "https://www.tiktok.com/@_/video/7524919459643919624");
        assert_eq!(request.headers["sec-fetch-mode"], "navigate");
        assert!(!request.headers.contains_key("cookie") && !request.headers.contains_key("referer"));
    }

    #[test]
    fn caption_request_resolves_relative_url() {
        let url_of = |address| captions(address).map(|request| request.url.to_string());
        let full = "https://v16-webapp.tiktok.com/a/?b=c";
        assert_eq!(url_of(full).as_deref(), Some(full));
        assert_eq!(url_of("//v16-webapp.tiktok.com/a/?b=c").as_deref(), Some(full));
        assert_eq!(
            url_of("/aweme/v1/play/?x=1").as_deref(),
            Some("https://www.tiktok.com/aweme/v1/play/?x=1")
        );
        assert_eq!(url_of("https://["), None);
        assert_eq!(captions(full).unwrap().headers["referer"], ORIGIN);
    }
}
