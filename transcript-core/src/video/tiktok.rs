//! TikTok links.

use std::borrow::Cow;

use super::{
    LinkError, Platform, ShortLink, VideoLink, VideoList,
    list::{ListName, ParsedList},
    platform_url::{self, ParsedLink, PlatformUrl, is_text_after_code, leading_number},
};

const SITE: Platform = Platform::TikTok;
/// Longest name of a profile; an id in its place has 76 characters.
const NAME_MAX: usize = 100;

pub(super) fn read_page(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let segments = url.segments();
    let path: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    match path.as_slice() {
        ["t", code, ..] => ShortLink::read(SITE, "https://www.tiktok.com/t/", code, "/").map(short_link),
        ["oembed", ..] => {
            let inner = url.parameter(&["url"]);
            let inner = inner.ok_or_else(|| LinkError::not_a_video(SITE, "the embedding interface"))?;
            Ok(ParsedLink::wrapped(&inner, "https://www.tiktok.com"))
        }
        [] | ["foryou" | "index.html", ..] => {
            // Old pages named the video only in the fragment: "#/@name/video/…".
            let inside = platform_url::segments_of(url.fragment());
            let inside: Vec<&str> = inside.iter().map(Cow::as_ref).collect();
            match url.parameter(&["item_id"]) {
                Some(id) if inside.is_empty() => parse_post(&id),
                _ => read_path(&inside),
            }
        }
        _ => read_path(&path),
    }
}

fn read_path(path: &[&str]) -> Result<ParsedLink, LinkError> {
    let id = match path {
        // A slide show has the same number under "video", which is its sound.
        ["video" | "photo", id, ..] => id,
        [name, "video" | "photo", id, ..] if name.starts_with('@') => id,
        ["share", "video" | "photo" | "item", id, ..] => id,
        ["i18n" | "h5", "share", "video" | "photo" | "item" | "v", id, ..] => id,
        ["embed" | "player", version, id, ..] if is_version(version) => id,
        ["embed", id, ..] if !id.starts_with('@') => id,
        // "/v/123.html" of the old mobile site.
        ["v", id, ..] => id.strip_suffix(".html").unwrap_or(id),
        _ => return Err(LinkError::not_a_video(SITE, other_page(path))),
    };
    parse_post(id)
}

fn parse_post(id: &str) -> Result<ParsedLink, LinkError> {
    leading_number(SITE, id).map(|video| ParsedLink::Target(VideoLink::Video(video)))
}

/// Parses a link to a profile, whose videos are a list.
pub(super) fn read_profile(url: &PlatformUrl) -> Result<ParsedList, LinkError> {
    let segments = url.segments();
    let path: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    let name = match path.as_slice() {
        [name] | ["embed", name] => name.strip_prefix('@'),
        _ => None,
    };
    if let Some(name) = name {
        return match is_name(name) {
            true => Ok(ParsedList::Target(VideoList::new(ListName::Profile(name.to_owned())))),
            false => Err(LinkError::not_a_profile("a profile with a malformed name")),
        };
    }
    match read_page(url) {
        Ok(ParsedLink::Wrapped(inner)) => Ok(ParsedList::Wrapped(inner)),
        Ok(ParsedLink::Target(_)) => Err(LinkError::not_a_profile("a video")),
        Err(_) => Err(LinkError::not_a_profile(other_page(&path))),
    }
}

/// Whether a text has the form of a profile's name, or of the id that links have in its place.
fn is_name(name: &str) -> bool {
    let is_part = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    // TikTok permits no dot at the end; at the end of a link it is the dot of a sentence.
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_part) && !name.ends_with('.')
}

fn is_version(segment: &str) -> bool {
    matches!(segment, "v1" | "v2" | "v3")
}

fn other_page(path: &[&str]) -> &'static str {
    match path {
        [.., "live"] | ["live", ..] | ["share", "live", ..] => "a live stream",
        [_, "collection" | "playlist", ..] => "a collection",
        [name] if name.starts_with('@') => "a profile",
        ["embed", ..] => "a profile",
        ["music", ..] => "a piece of music",
        ["tag" | "sticker" | "discover", ..] => "a topic",
        ["search", ..] => "a search",
        _ => "another page",
    }
}

/// Parses a link on a short-link host: the path is the code.
pub(super) fn read_short(url: &PlatformUrl, host: &'static str) -> Result<ParsedLink, LinkError> {
    match url.segments().as_slice() {
        [t, code, ..] if t == "t" => {
            ShortLink::read(SITE, "https://www.tiktok.com/t/", code, "/").map(short_link)
        }
        [code, after @ ..] if is_text_after_code(after) => {
            ShortLink::read(SITE, &format!("https://{host}/"), code, "/").map(short_link)
        }
        _ => Err(LinkError::not_a_video(SITE, "a page that is not a short link")),
    }
}

/// Parses an app link: `aweme/detail/ID`.
pub(super) fn read_app(rest: &str) -> Result<ParsedLink, LinkError> {
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    match path.strip_prefix("aweme/detail/") {
        Some(id) => parse_post(id),
        None => Err(LinkError::not_a_video(SITE, "another part of the app")),
    }
}

fn short_link(link: ShortLink) -> ParsedLink {
    ParsedLink::Target(VideoLink::Short(link))
}
