//! The two requests: for a post's page, and for what its state names.

use bytes::Bytes;
use http::{HeaderMap, Method};
use transcript_core::video::VideoId;
use url::Url;

use crate::{
    http::Request,
    social::{BROWSER, BROWSER_BRANDS, headers},
};

/// The platform that these hosts belong to, as the transport tells platforms apart.
pub(crate) const PLATFORM: &str = "www.tiktok.com";
/// The hosts of pages.
const PAGES: &[&str] = &[PLATFORM, "m.tiktok.com"];
/// The hosts of captions: TikTok's own, and those of its delivery networks.
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

/// The longest answers that are read. Pages have 0.2 to 1 MB, captions some KB for each minute.
const PAGE_MAX: usize = 8 << 20;
const CAPTIONS_MAX: usize = 10 << 20;

/// The question for a post's page, as a browser asks when somebody types the address. A slide show's page has
/// no state under its own address, but has one under that of a video; whose post it is does not matter.
pub(super) fn page(video: &VideoId) -> Option<Request> {
    let url = Url::parse(&video.address()).ok()?;
    let headers = headers(&[
        ("user-agent", BROWSER),
        ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
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
    Some(request(url, PAGES, headers, PAGE_MAX))
}

/// The question for captions at an address of the page's state; none when the address is none.
pub(super) fn captions(address: &str) -> Option<Request> {
    // Some addresses leave the scheme out.
    let url = Url::parse(ORIGIN).and_then(|base| base.join(address)).ok()?;
    Some(request(url, FILES, file_headers(), CAPTIONS_MAX))
}

/// What a request for a file says of who asks.
pub(super) fn file_headers() -> HeaderMap {
    headers(&[
        ("user-agent", BROWSER),
        ("accept", "*/*"),
        ("accept-language", "en-US,en;q=0.9"),
        ("referer", ORIGIN),
    ])
}

fn request(url: Url, hosts: &'static [&'static str], headers: HeaderMap, answer_max: usize) -> Request {
    Request {
        method: Method::GET,
        url,
        hosts,
        headers,
        body: Bytes::new(),
        answer_max,
        throttled_apart: false,
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::Platform;

    use super::*;

    #[test]
    fn a_page_is_asked_for_as_a_browser_would() {
        let video = VideoId::new(Platform::ShortVideo, "7524919459643919624").unwrap();
        let request = page(&video).unwrap();
        assert_eq!(request.url.as_str(), "https://www.tiktok.com/@_/video/7524919459643919624");
        assert_eq!(request.headers["sec-fetch-mode"], "navigate");
        assert!(!request.headers.contains_key("cookie") && !request.headers.contains_key("referer"));
    }

    #[test]
    fn captions_are_asked_for_at_their_address() {
        let ask = |address| captions(address).map(|request| request.url.to_string());
        let full = "https://v16-webapp.tiktok.com/a/?b=c";
        assert_eq!(ask(full).as_deref(), Some(full));
        assert_eq!(ask("//v16-webapp.tiktok.com/a/?b=c").as_deref(), Some(full));
        assert_eq!(ask("/aweme/v1/play/?x=1").as_deref(), Some("https://www.tiktok.com/aweme/v1/play/?x=1"));
        assert_eq!(ask("https://["), None);
        assert_eq!(captions(full).unwrap().headers["referer"], ORIGIN);
    }
}
