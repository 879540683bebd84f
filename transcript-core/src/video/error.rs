//! Errors of links.

use super::{Platform, hosts};
use crate::error::{Error, ErrorCause};

/// Maximum length of foreign text repeated in a message, in characters.
const HOST_CHARS_MAX: usize = 40;

/// Kind of a link error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkErrorKind {
    /// No text, or only white space.
    Empty,
    /// Longer than [`super::VideoLink::LENGTH_MAX`] bytes.
    TooLong,
    /// Not a link.
    NotALink,
    /// A link to a host that belongs to no platform.
    UnknownHost,
    /// A link with a user name, a password, a non-default port, or a backslash that hides its host.
    UnsafeAuthority,
    /// A link of a platform that names no video: a channel, a playlist, a profile.
    NotAVideo,
    /// An id that does not have the platform's form.
    MalformedId,
    /// A link that names no list of videos, where a list is expected.
    NotAList,
    /// A list of the logged-in viewer: watch later, liked videos, history.
    PersonalList,
    /// A mix: YouTube makes it for each viewer, and it never ends.
    EndlessList,
    /// A list of Instagram or X, which cannot be read.
    UnlistedPlatform,
}

/// Error of a text that names no video; the message says what is wrong and what to use instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    problem: LinkErrorKind,
    message: String,
}

crate::display::display!(LinkError, |this| this.message);

impl std::error::Error for LinkError {}

impl From<LinkError> for Error {
    /// An invalid argument whose cause is the error of the link.
    fn from(error: LinkError) -> Self {
        Self::invalid(error.message.as_str()).with_cause(Some(ErrorCause::new(error)))
    }
}

impl LinkError {
    /// Creates an error with this kind and message.
    pub fn new(problem: LinkErrorKind, message: impl Into<String>) -> Self {
        Self { problem, message: message.into() }
    }

    pub(super) fn empty() -> Self {
        Self::new(
            LinkErrorKind::Empty,
            "no link given: enter the link of a YouTube, TikTok, Instagram or X video",
        )
    }

    pub(super) fn too_long(length: usize, length_max: usize) -> Self {
        Self::new(
            LinkErrorKind::TooLong,
            format!(
                "the text has {length} bytes, a link at most {length_max}: enter only the link of the video"
            ),
        )
    }

    pub(super) fn not_a_link() -> Self {
        Self::new(
            LinkErrorKind::NotALink,
            "this is not a link: enter the link of a YouTube, TikTok, Instagram or X video, \
             such as https://www.youtube.com/watch?v=… or a YouTube id of 11 characters",
        )
    }

    pub(super) fn unknown_scheme() -> Self {
        Self::new(LinkErrorKind::NotALink, "this is not a web link: it must begin with https://")
    }

    /// A single word of about the length of a YouTube id.
    pub(super) fn similar_to_id(length: usize) -> Self {
        Self::new(
            LinkErrorKind::MalformedId,
            format!(
                "this is not a link, and a YouTube id has 11 characters, not {length}: enter the whole link"
            ),
        )
    }

    /// A host that belongs to no platform; the message for a known front end names the link to use instead.
    pub(super) fn unknown_host(host: &str) -> Self {
        let name = printable_host(host);
        let message = match hosts::front_end_of(host) {
            Some(platform) => format!(
                "{name} is a third-party front end of {0}: use the {0} link itself, such as {1}",
                platform.name(),
                example_url(platform)
            ),
            None if host == "douyin.com" || host.ends_with(".douyin.com") => {
                "Douyin is not TikTok and is not supported".to_owned()
            }
            None => format!(
                "{name} is not a host of YouTube, TikTok, Instagram or X: enter a link to one of them"
            ),
        };
        Self::new(LinkErrorKind::UnknownHost, message)
    }

    /// A host with characters that no platform's host has.
    pub(super) fn disguised_host() -> Self {
        Self::new(
            LinkErrorKind::UnknownHost,
            "the host of this link has characters other than letters, digits, dots and hyphens: \
             enter a link to YouTube, TikTok, Instagram or X",
        )
    }

    /// A link whose host is ambiguous for a reader; `what` names the part to remove.
    pub(super) fn unsafe_authority(what: &str) -> Self {
        Self::new(
            LinkErrorKind::UnsafeAuthority,
            format!("this link has {what} in its host part: remove it, or copy the link from the platform"),
        )
    }

    /// A page of a platform that is not a video; `what` names it with its article.
    pub(super) fn not_a_video(platform: Platform, what: &str) -> Self {
        Self::new(
            LinkErrorKind::NotAVideo,
            format!(
                "this {} link leads to {what}, not to one video: use a link such as {}",
                platform.name(),
                example_url(platform)
            ),
        )
    }

    /// A link to the watch page without the parameter that has the id.
    pub(super) fn watch_without_id() -> Self {
        Self::new(
            LinkErrorKind::NotAVideo,
            "this YouTube link has no video id (the part v=…): \
             an unquoted & in a shell may have cut it off; put the link in quotes",
        )
    }

    /// A link inside links, nested deeper than people share them.
    pub(super) fn nested_too_deep() -> Self {
        Self::new(
            LinkErrorKind::NotAVideo,
            "this link wraps too many other links: use the link of the video itself",
        )
    }

    /// A YouTube id with too few characters.
    pub(super) fn truncated_id(length: usize) -> Self {
        Self::new(
            LinkErrorKind::MalformedId,
            format!("this YouTube id looks cut off: {length} characters instead of 11; copy the whole link"),
        )
    }

    /// An id that does not have the platform's form.
    pub(super) fn malformed_id(platform: Platform, id: &str) -> Self {
        let form = match platform {
            Platform::YouTube => "11 characters of A-Z, a-z, 0-9, - and _",
            Platform::TikTok => "1 to 21 digits, the first not 0",
            Platform::Instagram => "1 to 11 characters of A-Z, a-z, 0-9, - and _",
            Platform::X => "1 to 20 digits, the first not 0, for a number below 2^64",
        };
        let length = id.chars().count();
        Self::new(
            LinkErrorKind::MalformedId,
            format!("this {} id of {length} characters is malformed: it must have {form}", platform.name()),
        )
    }

    /// A short link whose code is too long or has other characters.
    pub(super) fn malformed_code(platform: Platform) -> Self {
        Self::new(
            LinkErrorKind::MalformedId,
            format!("the code of this {} short link is malformed: copy the whole link", platform.name()),
        )
    }

    /// A text that names no list of videos.
    pub(super) fn no_list() -> Self {
        Self::new(
            LinkErrorKind::NotAList,
            "this is no list of videos: enter the link of a YouTube playlist, channel or search, such as \
             https://www.youtube.com/playlist?list=… or https://www.youtube.com/@name, or of a TikTok profile, \
             such as https://www.tiktok.com/@name",
        )
    }

    /// A page of YouTube that is not a list of videos; `what` names it with its article.
    pub(super) fn not_a_list(what: &str) -> Self {
        Self::new(
            LinkErrorKind::NotAList,
            format!(
                "this YouTube link leads to {what}, not to a list of videos: use a link such as \
                 https://www.youtube.com/playlist?list=… or https://www.youtube.com/@name"
            ),
        )
    }

    /// A link to a list with a malformed id.
    pub(super) fn malformed_list(what: &str) -> Self {
        Self::new(
            LinkErrorKind::NotAList,
            format!("this YouTube link names no list of videos: {what}; copy the whole link"),
        )
    }

    /// A search without words.
    pub(super) fn empty_query() -> Self {
        Self::new(LinkErrorKind::NotAList, "a search needs words: enter what to search for")
    }

    /// Words of a search with more characters than these.
    pub(super) fn query_too_long(chars_max: usize) -> Self {
        let message = format!("the words of a search have at most {chars_max} characters: shorten them");
        Self::new(LinkErrorKind::TooLong, message)
    }

    /// A page of TikTok that is not a profile; `what` names it with its article.
    pub(super) fn not_a_profile(what: &str) -> Self {
        Self::new(
            LinkErrorKind::NotAList,
            format!(
                "this TikTok link leads to {what}, not to the videos of a profile: use a link such as \
                 https://www.tiktok.com/@name"
            ),
        )
    }

    /// A link to a platform whose lists cannot be read.
    pub(super) fn unlisted(platform: Platform) -> Self {
        let reason = match platform {
            Platform::Instagram => "is marked as broken",
            Platform::YouTube | Platform::TikTok | Platform::X => "does not exist",
        };
        let name = platform.name();
        Self::new(
            LinkErrorKind::UnlistedPlatform,
            format!(
                "profiles and other lists of {name} cannot be read, because yt-dlp's reader of them {reason}: enter \
                 the links of the videos one by one"
            ),
        )
    }

    /// A list that only its logged-in owner sees.
    pub(super) fn personal_list() -> Self {
        Self::new(
            LinkErrorKind::PersonalList,
            "this list belongs to the logged-in viewer, and YouTube does not show it to others: use a public or \
             unlisted playlist, or a channel",
        )
    }

    /// A mix.
    pub(super) fn endless_list() -> Self {
        Self::new(
            LinkErrorKind::EndlessList,
            "this is a mix, which YouTube makes for each viewer and which never ends: use a playlist or a channel",
        )
    }

    /// Kind of the error.
    pub fn problem(&self) -> LinkErrorKind {
        self.problem
    }

    /// The message, as [`Display`](std::fmt::Display) prints it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Rank of the error: of several errors, the one with the highest rank is reported.
    ///
    /// It is higher the closer the text is to a link of a video.
    pub(super) fn closeness(&self) -> u8 {
        match self.problem {
            LinkErrorKind::Empty | LinkErrorKind::TooLong | LinkErrorKind::NotALink => 0,
            LinkErrorKind::UnknownHost => 1,
            LinkErrorKind::UnsafeAuthority
            | LinkErrorKind::NotAVideo
            | LinkErrorKind::MalformedId
            | LinkErrorKind::NotAList
            | LinkErrorKind::PersonalList
            | LinkErrorKind::EndlessList
            | LinkErrorKind::UnlistedPlatform => 2,
        }
    }
}

/// Example of a link to one video of the platform.
fn example_url(platform: Platform) -> &'static str {
    match platform {
        Platform::YouTube => "https://www.youtube.com/watch?v=…",
        Platform::TikTok => "https://www.tiktok.com/@name/video/…",
        Platform::Instagram => "https://www.instagram.com/reel/…/",
        Platform::X => "https://x.com/name/status/…",
    }
}

/// Short part of a foreign host that is safe to print anywhere.
fn printable_host(host: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let mut printable_host: String =
        host.chars().take(HOST_CHARS_MAX).map(|c| if is_safe(c) { c } else { '?' }).collect();
    if host.chars().nth(HOST_CHARS_MAX).is_some() {
        printable_host.push('…');
    }
    printable_host
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::{VideoLink, VideoList};

    #[test]
    fn link_error_is_cause_of_core_error() {
        let link = VideoLink::parse("https://youtube.com.evil.example/watch?v=dQw4w9WgXcQ").unwrap_err();
        let error = Error::from(link.clone());
        assert_eq!(error.message(), link.message());
        let cause = error.cause().and_then(|cause| cause.error().downcast_ref::<LinkError>());
        assert_eq!(cause.map(LinkError::problem), Some(LinkErrorKind::UnknownHost));
    }

    #[test]
    fn links_lists_and_platforms_parse_from_text() {
        let (link, list) = ("https://youtu.be/dQw4w9WgXcQ", "https://www.youtube.com/@name");
        assert_eq!(link.parse::<VideoLink>(), VideoLink::parse(link));
        assert_eq!(list.parse::<VideoList>(), VideoList::parse(list));
        assert_eq!(list.parse::<VideoLink>(), VideoLink::parse(list));
        assert_eq!("tiktok".parse::<Platform>().ok(), Some(Platform::TikTok));
        assert!("vimeo".parse::<Platform>().is_err());
    }

    #[test]
    fn link_error_truncates_and_sanitizes_host() {
        let host = format!("<script>.{}", "a".repeat(500));
        let message = LinkError::unknown_host(&host).to_string();
        assert!(!message.contains('<'), "{message}");
        assert!(message.chars().count() < 160, "{message}");
    }

    #[test]
    fn link_error_front_end_suggests_platform_link() {
        let message = LinkError::unknown_host("xcancel.com").to_string();
        assert!(message.contains("https://x.com/name/status/"), "{message}");
    }

    #[test]
    fn link_error_foreign_host_lists_platforms() {
        let message = LinkError::unknown_host("vimeo.com").to_string();
        for platform in Platform::ALL {
            assert!(message.contains(platform.name()), "{message}");
        }
    }
}
