//! Shared code of TikTok, Instagram and X: platform sessions with cookies, caption tracks and failures.
//!
//! yt-dlp and YouTube use its failures, its checks of captions and its media files, too.

mod failure;
mod media;
mod platform_session;
mod title;
mod tracks;

pub(crate) use failure::{BLOCKED_PAUSE, SocialFailure, no_language};
pub(crate) use media::is_shorter;
pub use media::{Media, MediaAddress, MediaSource};
pub(crate) use platform_session::{PlatformSession, Retries, attempt_over_routes, stops};
pub(crate) use title::title;
pub(crate) use tracks::{
    SocialTrack, SocialTracks, TrackDetails, TrackFetcher, missing_part, read, supplied,
};

use http::{HeaderMap, HeaderName, HeaderValue};

/// Builds a header map from names and values; invalid values are skipped.
pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?))
    };
    pairs.iter().filter_map(pair).collect()
}

/// User agent of a desktop browser. The platforms return no useful response to any other.
pub(crate) const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                                  Chrome/142.0.0.0 Safari/537.36";
/// Client hints that match [`BROWSER`].
const BROWSER_BRANDS: &str = "\"Chromium\";v=\"142\", \"Google Chrome\";v=\"142\", \"Not_A Brand\";v=\"99\"";

/// The headers of a desktop browser that opens a typed URL and accepts these media types.
pub(crate) fn navigation_headers(accept: &str) -> HeaderMap {
    headers(&[
        ("user-agent", BROWSER),
        ("accept", accept),
        ("accept-language", "en-US,en;q=0.9"),
        ("sec-ch-ua", BROWSER_BRANDS),
        ("sec-ch-ua-mobile", "?0"),
        ("sec-ch-ua-platform", "\"Windows\""),
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "none"),
        ("sec-fetch-user", "?1"),
        ("upgrade-insecure-requests", "1"),
    ])
}
