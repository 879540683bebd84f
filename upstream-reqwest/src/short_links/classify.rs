//! Classifies responses to short-link requests. No I/O: every URL is checked here before a request.

use http::StatusCode;
use transcript_core::video::{LinkErrorKind, Platform, ShortLink, VideoId, VideoLink};
use url::Url;

use super::failure::ShortLinkFailure;

/// Maximum length of a host in a message, in characters.
const HOST_SHOWN_MAX: usize = 60;

/// The next step after a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RedirectStep {
    /// The link's target is this video.
    Video(VideoId),
    /// The link's target is another short link, which must be requested.
    ShortLink(ShortLink),
    /// The link's target is not a video; the message describes it.
    NotAVideo(String),
}

/// Classifies a response by its status and redirect target.
pub(super) fn classify_response(
    platform: Platform,
    status: StatusCode,
    location: Option<&Url>,
) -> Result<RedirectStep, ShortLinkFailure> {
    match status {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => target(platform, location.ok_or(ShortLinkFailure::NoAddress)?),
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(RedirectStep::NotAVideo(expired_message(platform))),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(ShortLinkFailure::Forbidden(status.as_u16())),
        status if status.is_success() => Err(ShortLinkFailure::Page),
        status => Err(ShortLinkFailure::BadRequest(status.as_u16())),
    }
}

/// Classifies a redirect target.
///
/// The URL of a video is the result and is not requested, so every link format is accepted. A URL that must be
/// requested must be safe.
fn target(platform: Platform, location: &Url) -> Result<RedirectStep, ShortLinkFailure> {
    if location.as_str().len() > VideoLink::LENGTH_MAX {
        return Err(ShortLinkFailure::NoAddress);
    }
    let behind = behind_warning(platform, location);
    let url = behind.as_ref().unwrap_or(location);
    if !matches!(url.scheme(), "http" | "https") {
        // The link grammar accepts pasted text, and would find a link inside such a URL.
        return Ok(RedirectStep::NotAVideo(unsafe_url_message(platform)));
    }
    let name = platform.name();
    match VideoLink::parse(url.as_str()) {
        Ok(VideoLink::Video(video)) if video.platform() == platform => Ok(RedirectStep::Video(video)),
        Ok(VideoLink::Video(video)) => Ok(RedirectStep::NotAVideo(format!(
            "this {name} short link leads to a video of {}: use that video's own link, {}",
            video.platform().name(),
            video.address()
        ))),
        Ok(VideoLink::Short(link)) if link.platform() != platform => Ok(RedirectStep::NotAVideo(format!(
            "this {name} short link leads to a short link of {}: use that one, {}",
            link.platform().name(),
            link.address()
        ))),
        // The login wall names the short link that led to it.
        Ok(VideoLink::Short(_)) if url.path().starts_with("/accounts/") => Err(ShortLinkFailure::Login),
        Ok(VideoLink::Short(link)) if url.scheme() == "https" => Ok(RedirectStep::ShortLink(link)),
        Ok(VideoLink::Short(_)) => Ok(RedirectStep::NotAVideo(unsafe_url_message(platform))),
        Err(error) => match error.problem() {
            LinkErrorKind::UnsafeAuthority => Ok(RedirectStep::NotAVideo(unsafe_url_message(platform))),
            LinkErrorKind::NotAVideo => other_page(platform, url, error.message().to_owned()),
            LinkErrorKind::MalformedId => {
                other_page(platform, url, format!("this {name} short link does not lead to a video: {error}"))
            }
            // A login wall may name a page of another site.
            _ => other_page(platform, url, other_site_message(platform, url)),
        },
    }
}

/// The URL behind X's warning page, which is classified like any other.
///
/// The warning is irrelevant, since only a URL on X itself is used.
fn behind_warning(platform: Platform, url: &Url) -> Option<Url> {
    let own = matches!(url.host_str(), Some("x.com" | "twitter.com"));
    if platform != Platform::X || !own || url.path() != "/safety/unsafe_link_warning" {
        return None;
    }
    let (_, inner) = url.query_pairs().find(|(name, _)| name == "unsafe_link")?;
    Url::parse(&inner).ok()
}

/// Classifies a page that is not a video, with this description.
///
/// It is a wall, the target of expired links, or another page.
fn other_page(platform: Platform, url: &Url, description: String) -> Result<RedirectStep, ShortLinkFailure> {
    if url.host_str().and_then(login_wall_platform) != Some(platform) {
        return Ok(RedirectStep::NotAVideo(description));
    }
    let path: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    match (platform, path.as_slice()) {
        (Platform::TikTok, []) => Ok(RedirectStep::NotAVideo(expired_message(platform))),
        (Platform::TikTok, ["login", ..]) => Err(ShortLinkFailure::Login),
        (Platform::TikTok, path) if path.iter().any(|part| part.contains("captcha")) => {
            Err(ShortLinkFailure::Captcha)
        }
        // Instagram redirects clients without an account to its front page after too many requests.
        (Platform::Instagram, [] | ["accounts", ..]) => Err(ShortLinkFailure::Login),
        (Platform::Instagram, ["challenge", ..]) => Err(ShortLinkFailure::Captcha),
        _ => Ok(RedirectStep::NotAVideo(description)),
    }
}

/// The platform whose login walls are on this host.
///
/// X has none: its short links may lead to any page of X.
fn login_wall_platform(host: &str) -> Option<Platform> {
    match host {
        "tiktok.com" | "www.tiktok.com" | "m.tiktok.com" => Some(Platform::TikTok),
        "instagram.com" | "www.instagram.com" | "m.instagram.com" => Some(Platform::Instagram),
        _ => None,
    }
}

fn expired_message(platform: Platform) -> String {
    format!(
        "this {} short link has no target: it has expired or its video is gone; use the link of the \
         video itself",
        platform.name()
    )
}

/// The message for a redirect loop or too many redirects.
pub(super) fn redirect_loop_message(platform: Platform) -> String {
    format!(
        "this {} short link leads only to other short links or back to itself: it has probably expired; use \
         the link of the video itself",
        platform.name()
    )
}

fn unsafe_url_message(platform: Platform) -> String {
    format!(
        "this {} short link leads to a URL that is not safe to follow: use the link of the video itself",
        platform.name()
    )
}

fn other_site_message(platform: Platform, url: &Url) -> String {
    let name = platform.name();
    let plain = |host: &&str| {
        host.len() <= HOST_SHOWN_MAX
            && host.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-'))
    };
    match url.host_str().filter(plain) {
        Some(host) if !host.is_empty() => format!(
            "this {name} short link leads to {host}, not to a video of {name}: use the link of the video itself"
        ),
        _ => format!("this {name} short link leads away from {name}: use the link of the video itself"),
    }
}
