//! Hosts and headers of short-link requests per platform.

use http::{HeaderMap, HeaderValue, header};
use transcript_core::video::Platform;

/// Hosts and user agent for one platform.
#[derive(Debug)]
pub(super) struct RequestProfile {
    /// Hosts of canonical short links. No other hosts are requested.
    pub(super) hosts: &'static [&'static str],
    user_agent: &'static str,
}

/// Appends this program's name to a user agent, so that operators can identify the client.
macro_rules! named {
    ($like:literal) => {
        concat!($like, " verbatim/", env!("CARGO_PKG_VERSION"))
    };
}

/// TikTok returns a plain redirect to link preview clients, and a challenge page to incomplete browser
/// imitations.
const TIKTOK: RequestProfile = RequestProfile {
    hosts: &["vm.tiktok.com", "vt.tiktok.com", "www.tiktok.com"],
    user_agent: named!("facebookexternalhit/1.1"),
};

/// Instagram returns a redirect to programs, and a page with a script redirect to browsers.
const INSTAGRAM: RequestProfile =
    RequestProfile { hosts: &["www.instagram.com"], user_agent: named!("curl/7.88.1") };

/// X returns a redirect to programs, and a page with a markup redirect to browsers.
const X: RequestProfile = RequestProfile { hosts: &["t.co"], user_agent: named!("curl") };

impl RequestProfile {
    /// The profile of a platform; `None` if its short links need not be followed.
    pub(super) fn for_platform(platform: Platform) -> Option<&'static Self> {
        match platform {
            Platform::YouTube => None,
            Platform::TikTok => Some(&TIKTOK),
            Platform::Instagram => Some(&INSTAGRAM),
            Platform::X => Some(&X),
        }
    }

    /// The headers of every request: none that only a browser sends.
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
        let Ok(VideoLink::Short(link)) = VideoLink::parse(link) else { panic!("{link} is not a short link") };
        let host_of = |link: &ShortLink| Url::parse(link.address()).unwrap().host_str().unwrap().to_owned();
        assert_eq!(host_of(&link), expect_host);
        assert!(
            RequestProfile::for_platform(link.platform()).unwrap().hosts.contains(&expect_host),
            "{expect_host}"
        );
    }

    #[test]
    fn profile_hosts_include_canonical_short_links() {
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
    fn profile_user_agent_is_not_a_browser() {
        for platform in Platform::ALL {
            let Some(profile) = RequestProfile::for_platform(platform) else { continue };
            let headers = profile.headers();
            let agent = headers[header::USER_AGENT].to_str().unwrap();
            assert!(!agent.contains("Mozilla") && agent.contains(" verbatim/"), "{agent}");
        }
    }
}
