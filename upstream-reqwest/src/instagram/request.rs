//! The requests to Instagram: a post's page, and its video file.

use http::HeaderMap;
use transcript_core::video::VideoId;
use url::Url;

use crate::{
    http::HttpRequest,
    social::{BROWSER, headers, navigation_headers},
};

/// The platform's name in the transport.
pub(crate) const PLATFORM: &str = "www.instagram.com";
const PAGES: &[&str] = &[PLATFORM];
/// The hosts of files: its delivery networks have many local hosts.
pub(crate) const FILES: &[&str] = &["cdninstagram.com", ".cdninstagram.com", ".fbcdn.net"];

/// Maximum length of a page. Pages have 0.7 to 1 MB.
const PAGE_MAX: usize = 8 << 20;

/// The request for a post's page.
///
/// Without all headers of a browser navigation Instagram returns an empty shell.
pub(super) fn page(video: &VideoId) -> Option<HttpRequest> {
    let headers = navigation_headers(
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    );
    Some(HttpRequest::get(Url::parse(&video.address()).ok()?, PAGES, headers, PAGE_MAX))
}

/// The headers of a file request.
pub(super) fn file_headers() -> HeaderMap {
    headers(&[("user-agent", BROWSER), ("accept", "*/*"), ("referer", "https://www.instagram.com/")])
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    #[test]
    fn page_request_has_browser_headers() {
        let request = page(&VideoId::new(Platform::Instagram, "DdG4RIxIPyf").unwrap()).unwrap();
        assert_eq!(request.url.as_str(), "https://www.instagram.com/reel/DdG4RIxIPyf/");
        assert_eq!(request.headers["sec-fetch-site"], "none");
        assert!(!request.headers.contains_key("cookie") && !request.headers.contains_key("referer"));
    }
}
