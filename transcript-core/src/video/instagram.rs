//! Instagram links.

use std::borrow::Cow;

use super::{
    LinkError, Platform, ShortLink, VideoId, VideoLink, link_finder,
    platform_url::{self, ParsedLink, PlatformUrl},
};

const SITE: Platform = Platform::Instagram;
const BASE: &str = "https://www.instagram.com";

/// Length of the key after the code in links to posts of private accounts, in characters.
const PRIVATE_KEY_LENGTH: usize = 28;

/// Digits of a code, the least first.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) fn read_page(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let segments = url.segments();
    let path: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    match path.as_slice() {
        ["share", kind @ ("p" | "reel" | "reels" | "tv"), code, ..] => {
            let kind = if *kind == "reels" { "reel" } else { kind };
            short_link(&format!("https://www.instagram.com/share/{kind}/"), code)
        }
        // Pages of Instagram itself: the next rule would take their names for codes.
        ["share", "p" | "reel" | "reels" | "tv"] => {
            Err(LinkError::not_a_video(SITE, "a page without a code"))
        }
        ["share", code, after @ ..] if platform_url::is_text_after_code(after) => {
            short_link("https://www.instagram.com/share/", code)
        }
        ["reel" | "reels", "audio", ..] => Err(LinkError::not_a_video(SITE, "a piece of music")),
        ["p" | "reel" | "reels" | "tv", code, ..] => parse_post(code),
        ["accounts", "login", ..] => {
            let inner = url.parameter(&["next"]);
            let inner = inner.ok_or_else(|| LinkError::not_a_video(SITE, other_page(&path)))?;
            Ok(ParsedLink::wrapped(&inner, BASE))
        }
        ["stories" | "explore" | "accounts" | "s" | "direct" | "share", ..] => {
            Err(LinkError::not_a_video(SITE, other_page(&path)))
        }
        [_, "reel" | "reels", "audio", ..] => Err(LinkError::not_a_video(SITE, "a piece of music")),
        [_, "p" | "reel" | "reels" | "tv", code, ..] => parse_post(code),
        _ => Err(LinkError::not_a_video(SITE, other_page(&path))),
    }
}

fn other_page(path: &[&str]) -> &'static str {
    match path {
        [] => "a page without a code",
        ["stories", ..] | ["s", ..] => "a story",
        ["explore", ..] => "a topic or a place",
        ["accounts", ..] => "a sign-in page",
        ["p" | "reel" | "reels" | "tv"] => "a page without a code",
        [_] | [_, "reels" | "tagged"] => "a profile",
        _ => "another page",
    }
}

/// Parses a redirect to another site: only a link back to a platform is useful.
pub(super) fn read_redirect(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let inner = url.parameter(&["u"]);
    let inner = inner.ok_or_else(|| LinkError::not_a_video(SITE, "a redirect to another site"))?;
    Ok(ParsedLink::wrapped(&inner, BASE))
}

/// Parses an app link: `media?id=NUMBER`, sometimes with the author's number after `_`.
pub(super) fn read_app(rest: &str) -> Result<ParsedLink, LinkError> {
    let (page, query) = rest.split_once('?').unwrap_or((rest, ""));
    if page.trim_end_matches('/') != "media" {
        return Err(LinkError::not_a_video(SITE, "another part of the app"));
    }
    let id = platform_url::parameter_of(query, &["id"]).unwrap_or_default();
    let digits = id.split('_').next().unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|&number| is_number && number > 0);
    let number = number.ok_or_else(|| LinkError::malformed_id(SITE, digits))?;
    video_link(VideoId::new(SITE, &code_of(number))?)
}

/// Returns Instagram's code of a post's number: digits of 6 bits, the most significant first.
fn code_of(mut number: u64) -> String {
    let mut code = Vec::with_capacity(11);
    while number > 0 {
        let digit = usize::try_from(number % 64).unwrap_or_default();
        code.push(char::from(ALPHABET.get(digit).copied().unwrap_or_default()));
        number /= 64;
    }
    code.iter().rev().collect()
}

/// Parses the post whose code begins a path segment.
///
/// A post of a private account has a key after the code. The code alone identifies the post, so that the same
/// post is archived once, whichever key the link has.
fn parse_post(segment: &str) -> Result<ParsedLink, LinkError> {
    let length = link_finder::id_length(segment);
    let length = if length > PRIVATE_KEY_LENGTH { length - PRIVATE_KEY_LENGTH } else { length };
    match segment.get(..length) {
        Some(code) => video_link(VideoId::new(SITE, code)?),
        None => Err(LinkError::malformed_id(SITE, segment)),
    }
}

fn video_link(video: VideoId) -> Result<ParsedLink, LinkError> {
    Ok(ParsedLink::Target(VideoLink::Video(video)))
}

fn short_link(prefix: &str, code: &str) -> Result<ParsedLink, LinkError> {
    ShortLink::read(SITE, prefix, code, "/").map(|link| ParsedLink::Target(VideoLink::Short(link)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: u64, expect: &str) {
        assert_eq!(code_of(number), expect);
    }

    #[test]
    fn instagram_number_converts_to_code() {
        check(3_983_118_388_705_688_735, "DdG4RIxIPyf");
        check(3_947_535_193_527_528_320, "DbIdlf0j6uA");
        check(3_565_077_699_422_862_188, "DF5s0duxDts");
        check(482_584_233_761_418_119, "aye83DjauH");
        check(3_350_400_310_592_207_576, "C5_A1TQNPrY");
        check(1, "B");
        check(64, "BA");
        check(u64::MAX, "P__________");
    }
}
