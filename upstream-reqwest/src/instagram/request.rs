//! The requests to Instagram: a post's page, and its video file.

use bytes::Bytes;
use http::{HeaderMap, Method};
use transcript_core::video::VideoId;
use url::Url;

use crate::{
    http::HttpRequest,
    social::{BROWSER, BROWSER_BRANDS, headers},
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
    let headers = headers(&[
        ("user-agent", BROWSER),
        ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
        ("accept-language", "en-US,en;q=0.9"),
        ("sec-ch-ua", BROWSER_BRANDS),
        ("sec-ch-ua-mobile", "?0"),
        ("sec-ch-ua-platform", "\"Windows\""),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "none"),
        ("sec-fetch-user", "?1"),
        ("upgrade-insecure-requests", "1"),
    ]);
    Some(HttpRequest {
        method: Method::GET,
        url: Url::parse(&video.address()).ok()?,
        hosts: PAGES,
        headers,
        body: Bytes::new(),
        response_max: PAGE_MAX,
        has_own_rate_limit: false,
    })
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
