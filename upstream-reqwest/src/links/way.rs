//! How each platform is asked where a short link leads.

use http::{HeaderMap, HeaderValue, header};
use transcript_core::video::Platform;

/// How one platform is asked.
#[derive(Debug)]
pub(super) struct Way {
    /// The hosts that its short links have in their canonical form: no others are asked.
    pub(super) hosts: &'static [&'static str],
    user_agent: &'static str,
}

/// Ends a user agent with our own name, so that whoever reads it knows who asks.
macro_rules! named {
    ($like:literal) => {
        concat!($like, " verbatim/", env!("CARGO_PKG_VERSION"))
    };
}

/// TikTok answers a plain redirect to programs that make previews of links, and a page with a puzzle to what
/// looks like half a browser.
const TIKTOK: Way = Way {
    hosts: &["vm.tiktok.com", "vt.tiktok.com", "www.tiktok.com"],
    user_agent: named!("facebookexternalhit/1.1"),
};

/// Instagram answers a redirect to programs, and to browsers a page that redirects by script.
const INSTAGRAM: Way = Way { hosts: &["www.instagram.com"], user_agent: named!("curl/7.88.1") };

/// X answers a redirect to programs, and to browsers a page that redirects by markup.
const X: Way = Way { hosts: &["t.co"], user_agent: named!("curl") };

impl Way {
    /// How this platform is asked; none where short links need not be followed.
    pub(super) fn of(platform: Platform) -> Option<&'static Self> {
        match platform {
            Platform::VideoSite => None,
            Platform::ShortVideo => Some(&TIKTOK),
            Platform::Reels => Some(&INSTAGRAM),
            Platform::Microblog => Some(&X),
        }
    }

    /// The headers of every request: nothing that only a browser sends.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(self.user_agent));
        headers
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::{ShortLink, VideoLink};
    use url::Url;

    use super::*;

    fn check(link: &str, expect_host: &str) {
        let Ok(VideoLink::Short(link)) = VideoLink::parse(link) else { panic!("{link} is no short link") };
        let host_of = |link: &ShortLink| Url::parse(link.address()).unwrap().host_str().unwrap().to_owned();
        assert_eq!(host_of(&link), expect_host);
        assert!(Way::of(link.platform()).unwrap().hosts.contains(&expect_host), "{expect_host}");
    }

    #[test]
    fn every_short_links_host_is_asked() {
        check("http://vm.tiktok.com/ZTR45GpSF", "vm.tiktok.com");
        check("https://vt.tiktok.com/ZTR45GpSF//", "vt.tiktok.com");
        check("https://m.tiktok.com/t/ZTR45GpSF/", "www.tiktok.com");
        check("https://vm.tiktok.com/t/ZTR45GpSF/", "www.tiktok.com");
        check("https://instagr.am/share/BARSSL4rTu", "www.instagram.com");
        check("https://m.instagram.com/share/reel/BARSSL4rTu?igsh=1", "www.instagram.com");
        check("https://www.t.co/AbCdEf1234", "t.co");
        check("pic.twitter.com/AbCdEf1234", "t.co");
    }

    #[test]
    fn nobody_is_asked_as_a_browser() {
        for platform in Platform::ALL {
            let Some(way) = Way::of(platform) else { continue };
            let headers = way.headers();
            let agent = headers[header::USER_AGENT].to_str().unwrap();
            assert!(!agent.contains("Mozilla") && agent.contains(" verbatim/"), "{agent}");
        }
    }
}
