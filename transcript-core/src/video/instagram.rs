//! The reels site's links.

use std::borrow::Cow;

use super::{
    LinkError, Platform, ShortLink, VideoId, VideoLink,
    address::{self, Address, Finding},
    text,
};

const SITE: Platform = Platform::Reels;

/// What a link to a private account's post has after the post's code: a key for the people who were sent it.
const PRIVATE_KEY_LENGTH: usize = 28;

/// The digits of a code, the least first.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A page of the site.
pub(super) fn read_page(address: &Address) -> Result<Finding, LinkError> {
    let segments = address.segments();
    let path: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    match path.as_slice() {
        ["share", kind @ ("p" | "reel" | "reels" | "tv"), code, ..] => {
            let kind = if *kind == "reels" { "reel" } else { kind };
            short(&format!("https://www.instagram.com/share/{kind}/"), code)
        }
        // Among the site's own pages, so that the next rule does not take their names for people's.
        ["share", "p" | "reel" | "reels" | "tv"] => {
            Err(LinkError::not_a_video(SITE, "a page without a code"))
        }
        ["share", code] => short("https://www.instagram.com/share/", code),
        ["reel" | "reels", "audio", ..] => Err(LinkError::not_a_video(SITE, "a piece of music")),
        ["p" | "reel" | "reels" | "tv", code, ..] => post(code),
        ["stories" | "explore" | "accounts" | "s" | "direct" | "share", ..] => {
            Err(LinkError::not_a_video(SITE, other_page(&path)))
        }
        [_, "reel" | "reels", "audio", ..] => Err(LinkError::not_a_video(SITE, "a piece of music")),
        [_, "p" | "reel" | "reels" | "tv", code, ..] => post(code),
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

/// The passage to other sites: only a link back to a platform is of use.
pub(super) fn read_passage(address: &Address) -> Result<Finding, LinkError> {
    let inner = address.parameter(&["u"]);
    let inner = inner.ok_or_else(|| LinkError::not_a_video(SITE, "a passage to another site"))?;
    Ok(Finding::wrapped(&inner, "https://www.instagram.com"))
}

/// A link into the app: `media?id=NUMBER`, sometimes with the author's number after `_`.
pub(super) fn read_app(rest: &str) -> Result<Finding, LinkError> {
    let (page, query) = rest.split_once('?').unwrap_or((rest, ""));
    if page.trim_end_matches('/') != "media" {
        return Err(LinkError::not_a_video(SITE, "another part of the app"));
    }
    let id = address::parameter_of(query, &["id"]).unwrap_or_default();
    let digits = id.split('_').next().unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|&number| is_number && number > 0);
    let number = number.ok_or_else(|| LinkError::malformed_id(SITE, digits))?;
    found(VideoId::new(SITE, &code_of(number))?)
}

/// The code that the site writes for a post's number: digits of 6 bits, the most significant first.
fn code_of(mut number: u64) -> String {
    let mut code = Vec::with_capacity(11);
    while number > 0 {
        let digit = usize::try_from(number % 64).unwrap_or_default();
        code.push(char::from(ALPHABET.get(digit).copied().unwrap_or_default()));
        number /= 64;
    }
    code.iter().rev().collect()
}

/// The post whose code a path segment begins with.
///
/// A private account's post has its key after the code; the code alone is the post's identity, so that the
/// same post is archived once, whoever was sent which key.
fn post(segment: &str) -> Result<Finding, LinkError> {
    let length = segment.bytes().take_while(|&c| text::is_id_byte(c)).count();
    let length = if length > PRIVATE_KEY_LENGTH { length - PRIVATE_KEY_LENGTH } else { length };
    match segment.get(..length) {
        Some(code) => found(VideoId::new(SITE, code)?),
        None => Err(LinkError::malformed_id(SITE, segment)),
    }
}

fn found(video: VideoId) -> Result<Finding, LinkError> {
    Ok(Finding::Link(VideoLink::Video(video)))
}

fn short(prefix: &str, code: &str) -> Result<Finding, LinkError> {
    ShortLink::read(SITE, prefix, code, "/").map(|link| Finding::Link(VideoLink::Short(link)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(number: u64, expect: &str) {
        assert_eq!(code_of(number), expect);
    }

    #[test]
    fn numbers_are_written_as_the_site_does() {
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
