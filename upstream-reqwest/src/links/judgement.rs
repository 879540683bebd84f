//! What an answer says of a short link. Pure: no address is asked before it was judged here.

use http::StatusCode;
use transcript_core::video::{LinkProblem, Platform, ShortLink, VideoId, VideoLink};
use url::Url;

use super::refusal::Refusal;

/// The longest host that a message repeats, in characters.
const HOST_SHOWN_MAX: usize = 60;

/// What one answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The link means this video.
    Video(VideoId),
    /// The platform must be asked again: the link leads to this other one.
    Onward(ShortLink),
    /// The link means no video; the sentence says what else.
    Nowhere(String),
}

/// Judges an answer to a question for a short link: its status, and where it redirects to.
pub(super) fn judge(platform: Platform, status: StatusCode, location: Option<&Url>) -> Result<Step, Refusal> {
    match status {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => target(platform, location.ok_or(Refusal::NoAddress)?),
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(Step::Nowhere(expired(platform))),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Refusal::Forbidden(status.as_u16())),
        status if status.is_success() => Err(Refusal::Page),
        status => Err(Refusal::BadRequest(status.as_u16())),
    }
}

/// Judges the address of a redirect.
///
/// An address that names a video is the answer and need not be asked, so it may be of any form that people's
/// links have; what would have to be asked must be safe to ask.
fn target(platform: Platform, location: &Url) -> Result<Step, Refusal> {
    if location.as_str().len() > VideoLink::LENGTH_MAX {
        return Err(Refusal::NoAddress);
    }
    let behind = behind_warning(platform, location);
    let url = behind.as_ref().unwrap_or(location);
    if !matches!(url.scheme(), "http" | "https") {
        // The grammar reads texts that people paste, and would find a link inside such an address.
        return Ok(Step::Nowhere(unsafe_address(platform)));
    }
    let name = platform.name();
    match VideoLink::parse(url.as_str()) {
        Ok(VideoLink::Video(video)) if video.platform() == platform => Ok(Step::Video(video)),
        Ok(VideoLink::Video(video)) => Ok(Step::Nowhere(format!(
            "this {name} short link leads to a video of {}: give that video's own link, {}",
            video.platform().name(),
            video.address()
        ))),
        Ok(VideoLink::Short(link)) if link.platform() != platform => Ok(Step::Nowhere(format!(
            "this {name} short link leads to a short link of {}: give that one, {}",
            link.platform().name(),
            link.address()
        ))),
        Ok(VideoLink::Short(link)) if url.scheme() == "https" => Ok(Step::Onward(link)),
        Ok(VideoLink::Short(_)) => Ok(Step::Nowhere(unsafe_address(platform))),
        Err(error) => match error.problem() {
            LinkProblem::UnsafeAuthority => Ok(Step::Nowhere(unsafe_address(platform))),
            LinkProblem::NotAVideo => other_page(platform, url, error.message().to_owned()),
            LinkProblem::MalformedId => {
                other_page(platform, url, format!("this {name} short link leads to no video: {error}"))
            }
            _ => Ok(Step::Nowhere(elsewhere(platform, url))),
        },
    }
}

/// The address that X's page of warnings would lead to. What it warns of is no matter here: only an address
/// of X itself is of use, and it is judged as any other.
fn behind_warning(platform: Platform, url: &Url) -> Option<Url> {
    let own = matches!(url.host_str(), Some("x.com" | "twitter.com"));
    if platform != Platform::Microblog || !own || url.path() != "/safety/unsafe_link_warning" {
        return None;
    }
    let (_, inner) = url.query_pairs().find(|(name, _)| name == "unsafe_link")?;
    Url::parse(&inner).ok()
}

/// Judges a page that is no video's: a wall, where expired links end, or another thing, which `what` says.
fn other_page(platform: Platform, url: &Url, what: String) -> Result<Step, Refusal> {
    if url.host_str().and_then(site) != Some(platform) {
        return Ok(Step::Nowhere(what));
    }
    let path: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    match (platform, path.as_slice()) {
        (Platform::ShortVideo, []) => Ok(Step::Nowhere(expired(platform))),
        (Platform::ShortVideo, ["login", ..]) => Err(Refusal::Login),
        (Platform::ShortVideo, path) if path.iter().any(|part| part.contains("captcha")) => {
            Err(Refusal::Captcha)
        }
        // The first page is where people without an account are sent who asked too often.
        (Platform::Reels, [] | ["accounts", ..]) => Err(Refusal::Login),
        (Platform::Reels, ["challenge", ..]) => Err(Refusal::Captcha),
        _ => Ok(Step::Nowhere(what)),
    }
}

/// The platform whose walls stand at this host. X's short links lead anywhere on X because people say so,
/// and never to a wall.
fn site(host: &str) -> Option<Platform> {
    match host {
        "tiktok.com" | "www.tiktok.com" | "m.tiktok.com" => Some(Platform::ShortVideo),
        "instagram.com" | "www.instagram.com" | "m.instagram.com" => Some(Platform::Reels),
        _ => None,
    }
}

fn expired(platform: Platform) -> String {
    format!(
        "this {} short link leads to nothing: it has expired or its video is gone; give the link of the \
         video itself",
        platform.name()
    )
}

/// What to say of a link that leads in a circle, or on and on.
pub(super) fn astray(platform: Platform) -> String {
    format!(
        "this {} short link leads only to other short links or back to itself: it has probably expired; give \
         the link of the video itself",
        platform.name()
    )
}

fn unsafe_address(platform: Platform) -> String {
    format!(
        "this {} short link leads to an address that is not safe to follow: give the link of the video itself",
        platform.name()
    )
}

fn elsewhere(platform: Platform, url: &Url) -> String {
    let name = platform.name();
    let plain = |host: &&str| {
        host.len() <= HOST_SHOWN_MAX
            && host.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-'))
    };
    match url.host_str().filter(plain) {
        Some(host) if !host.is_empty() => format!(
            "this {name} short link leads to {host}, not to a video of {name}: give the link of the video itself"
        ),
        _ => format!("this {name} short link leads away from {name}: give the link of the video itself"),
    }
}
