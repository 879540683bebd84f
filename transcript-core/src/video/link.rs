//! Parsing of a text into the video that it names.

use std::str::FromStr;

use super::{
    LinkError, Platform, ShortLink, VideoId,
    hosts::HostKind,
    instagram,
    link_finder::{self, LinkCandidate, UrlScheme},
    platform_url::{Parsed, ParsedLink, PlatformUrl},
    tiktok, x, youtube,
};

/// Maximum depth of links inside links: consent pages wrap search results that wrap shared links.
const UNWRAPPED_MAX: usize = 4;

/// Target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VideoLink {
    /// A video.
    Video(VideoId),
    /// A short link: only its platform knows the video.
    Short(ShortLink),
}

impl VideoLink {
    /// Maximum length of a text, in bytes.
    pub const LENGTH_MAX: usize = 4_096;

    /// Parses a text into the video or short link that it names.
    ///
    /// The text may be a link in any form of the platforms, a bare YouTube id, or a sentence or markup with a link
    /// inside. Of several links, the first one that names a video counts.
    ///
    /// ```
    /// use transcript_core::video::{LinkErrorKind, VideoLink};
    ///
    /// let VideoLink::Video(video) = VideoLink::parse("See (https://youtu.be/dQw4w9WgXcQ?t=43).")? else {
    ///     panic!("a short link is not expected");
    /// };
    /// assert_eq!(video.to_string(), "video_site/dQw4w9WgXcQ");
    ///
    /// let error = VideoLink::parse("https://youtube.com.evil.example/watch?v=dQw4w9WgXcQ").unwrap_err();
    /// assert_eq!(error.problem(), LinkErrorKind::UnknownHost);
    /// # Ok::<(), transcript_core::video::LinkError>(())
    /// ```
    ///
    /// # Errors
    /// The text names no video; the error says what is wrong and what to use instead.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        if text.len() > Self::LENGTH_MAX {
            return Err(LinkError::too_long(text.len(), Self::LENGTH_MAX));
        }
        let text = link_finder::trimmed(text);
        if text.is_empty() {
            return Err(LinkError::empty());
        }
        if let Ok(video) = VideoId::new(Platform::YouTube, link_finder::bare_word(text)) {
            return Ok(Self::Video(video));
        }
        let text = link_finder::decoded(text);
        first_target(&text, parse_candidate, LinkError::not_a_link)
            .map_err(|closest| closest.unwrap_or_else(|| without_link(&text)))
    }
}

/// As [`VideoLink::parse`].
impl FromStr for VideoLink {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        Self::parse(text)
    }
}

fn without_link(text: &str) -> LinkError {
    let word = link_finder::bare_word(text);
    match word.len() {
        length @ (10 | 12) if word.bytes().all(link_finder::is_id_byte) => LinkError::similar_to_id(length),
        _ => LinkError::not_a_link(),
    }
}

/// Parses one link.
type CandidateParser<T> = fn(&LinkCandidate<'_>) -> Result<Parsed<T>, LinkError>;

/// The target of the first link in a text that has one, as `parse` reads it.
///
/// `no_target` is the error of a link that leads to a text without a link.
///
/// # Errors
/// The error of the link that comes closest; `None` if the text has no link.
pub(super) fn first_target<T>(
    text: &str,
    parse: CandidateParser<T>,
    no_target: fn() -> LinkError,
) -> Result<T, Option<LinkError>> {
    let mut closest: Option<LinkError> = None;
    for candidate in link_finder::links(text) {
        match unwrap_links(&candidate, parse, no_target) {
            Ok(target) => return Ok(target),
            Err(error) if closest.as_ref().is_none_or(|known| known.closeness() < error.closeness()) => {
                closest = Some(error);
            }
            Err(_) => {}
        }
    }
    Err(closest)
}

/// Parses a link, and the links inside it, down to the target.
fn unwrap_links<T>(
    candidate: &LinkCandidate<'_>,
    parse: CandidateParser<T>,
    no_target: fn() -> LinkError,
) -> Result<T, LinkError> {
    let mut parsed = parse(candidate)?;
    for _ in 0..UNWRAPPED_MAX {
        match parsed {
            Parsed::Target(target) => return Ok(target),
            Parsed::Wrapped(inner) => {
                parsed = parse(&LinkCandidate::parse_start(&inner).ok_or_else(no_target)?)?;
            }
        }
    }
    match parsed {
        Parsed::Target(target) => Ok(target),
        Parsed::Wrapped(_) => Err(LinkError::nested_too_deep()),
    }
}

fn parse_candidate(candidate: &LinkCandidate<'_>) -> Result<ParsedLink, LinkError> {
    match candidate.scheme {
        UrlScheme::YouTubeApp => Ok(youtube::read_app(&candidate.rest)),
        UrlScheme::TikTokApp => tiktok::read_app(&candidate.rest),
        UrlScheme::InstagramApp => instagram::read_app(&candidate.rest),
        UrlScheme::XApp => x::read_app(&candidate.rest),
        UrlScheme::Other => Err(LinkError::unknown_scheme()),
        UrlScheme::Http | UrlScheme::Https => {
            let url = PlatformUrl::parse(candidate)?;
            match url.host_kind() {
                HostKind::YouTube => youtube::read_page(&url),
                HostKind::YouTubeShort => youtube::read_short(&url),
                HostKind::YouTubeImage => youtube::read_image(&url),
                HostKind::GoogleRedirect => youtube::read_redirect(&url),
                HostKind::TikTok => tiktok::read_page(&url),
                HostKind::TikTokShort(host) => tiktok::read_short(&url, host),
                HostKind::Instagram => instagram::read_page(&url),
                HostKind::InstagramRedirect => instagram::read_redirect(&url),
                HostKind::X => x::read_page(&url),
                HostKind::XEmbed => x::read_embed(&url),
                HostKind::XShort => x::read_short(&url),
            }
        }
    }
}
