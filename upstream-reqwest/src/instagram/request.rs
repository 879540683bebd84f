//! What Instagram is asked: for a post's page, and for the file of its video.

use bytes::Bytes;
use http::{HeaderMap, Method};
use transcript_core::video::VideoId;
use url::Url;

use crate::{
    http::Request,
    social::{BROWSER, BROWSER_BRANDS, headers},
};

/// The platform, as the transport tells platforms apart.
pub(crate) const PLATFORM: &str = "www.instagram.com";
const PAGES: &[&str] = &[PLATFORM];
/// The hosts of files: its delivery networks have one in every town.
pub(crate) const FILES: &[&str] = &["cdninstagram.com", ".cdninstagram.com", ".fbcdn.net"];

/// The longest page that is read. Pages have 0.7 to 1 MB.
const PAGE_MAX: usize = 8 << 20;

/// The question for a post's page. Without all that a browser says when somebody types an address, Instagram
/// answers with an empty shell.
pub(super) fn page(video: &VideoId) -> Option<Request> {
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
    Some(Request {
        method: Method::GET,
        url: Url::parse(&video.address()).ok()?,
        hosts: PAGES,
        headers,
        body: Bytes::new(),
        answer_max: PAGE_MAX,
        throttled_apart: false,
    })
}

/// What a request for a file says of who asks.
pub(super) fn file_headers() -> HeaderMap {
    headers(&[("user-agent", BROWSER), ("accept", "*/*"), ("referer", "https://www.instagram.com/")])
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    #[test]
    fn a_page_is_asked_for_as_a_browser_would() {
        let request = page(&VideoId::new(Platform::Reels, "DdG4RIxIPyf").unwrap()).unwrap();
        assert_eq!(request.url.as_str(), "https://www.instagram.com/reel/DdG4RIxIPyf/");
        assert_eq!(request.headers["sec-fetch-site"], "none");
        assert!(!request.headers.contains_key("cookie") && !request.headers.contains_key("referer"));
    }
}
