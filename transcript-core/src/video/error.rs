//! What can be wrong with a link.

use std::fmt;

use super::{Platform, hosts};

/// The longest part of a foreign text that a message repeats, in characters.
const SHOWN_MAX: usize = 40;

/// What was wrong with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkProblem {
    /// Nothing was given, or only white space.
    Empty,
    /// Longer than [`super::VideoLink::LENGTH_MAX`] bytes.
    TooLong,
    /// Not a link at all.
    NotALink,
    /// A link to a host that is none of the platforms' own.
    UnknownHost,
    /// A link with a user name, a password, a port of its own, or a backslash that hides its host.
    UnsafeAuthority,
    /// A platform's link that names no video: a channel, a playlist, a profile.
    NotAVideo,
    /// An identifier that does not have the platform's form.
    MalformedId,
}

/// Why a text names no video; its message says what was wrong and what to give instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    problem: LinkProblem,
    message: String,
}

impl LinkError {
    /// An error with this problem and message.
    pub fn new(problem: LinkProblem, message: impl Into<String>) -> Self {
        Self { problem, message: message.into() }
    }

    pub(super) fn empty() -> Self {
        Self::new(
            LinkProblem::Empty,
            "no link was given: give the link of a YouTube, TikTok, Instagram or X video",
        )
    }

    pub(super) fn too_long(length: usize, length_max: usize) -> Self {
        Self::new(
            LinkProblem::TooLong,
            format!(
                "this text has {length} bytes, and a link at most {length_max}: give only the video's link"
            ),
        )
    }

    pub(super) fn not_a_link() -> Self {
        Self::new(
            LinkProblem::NotALink,
            "this is not a link: give the link of a YouTube, TikTok, Instagram or X video, \
             such as https://www.youtube.com/watch?v=… or a YouTube id of 11 characters",
        )
    }

    pub(super) fn unknown_scheme() -> Self {
        Self::new(LinkProblem::NotALink, "this is not a link of the web: it must begin with https://")
    }

    /// A single word of about a bare identifier's length.
    pub(super) fn near_id(length: usize) -> Self {
        Self::new(
            LinkProblem::MalformedId,
            format!(
                "this is no link, and a YouTube id has 11 characters, not {length}: give the video's whole link"
            ),
        )
    }

    /// A host that is none of the platforms' own; a known front end is told which link to give instead.
    pub(super) fn unknown_host(host: &str) -> Self {
        let name = shown(host);
        let message = match hosts::front_end_of(host) {
            Some(platform) => format!(
                "{name} is a third-party front end of {0}: give the {0} link itself, such as {1}",
                platform.name(),
                example(platform)
            ),
            None if host == "douyin.com" || host.ends_with(".douyin.com") => {
                "Douyin is another service than TikTok and is not supported".to_owned()
            }
            None => format!(
                "{name} is not a host of YouTube, TikTok, Instagram or X: give the video's link there"
            ),
        };
        Self::new(LinkProblem::UnknownHost, message)
    }

    /// A host that is written with other characters than the platforms' hosts are.
    pub(super) fn disguised_host() -> Self {
        Self::new(
            LinkProblem::UnknownHost,
            "this link's host has other characters than letters, digits, dots and hyphens: \
             give a link of YouTube, TikTok, Instagram or X",
        )
    }

    /// A link whose host is hard to tell for a reader; `what` is the thing to leave out.
    pub(super) fn unsafe_authority(what: &str) -> Self {
        Self::new(
            LinkProblem::UnsafeAuthority,
            format!("this link has {what} where its host is: give it without, as the platform shows it"),
        )
    }

    /// A platform's page that is no video; `what` names it with its article.
    pub(super) fn not_a_video(platform: Platform, what: &str) -> Self {
        Self::new(
            LinkProblem::NotAVideo,
            format!(
                "this {} link leads to {what}, not to one video: give a link such as {}",
                platform.name(),
                example(platform)
            ),
        )
    }

    /// A watch page's link that lost the parameter with the id.
    pub(super) fn watch_without_id() -> Self {
        Self::new(
            LinkProblem::NotAVideo,
            "this YouTube link has lost its video id (the part v=…): \
             perhaps an unquoted & in a shell cut it off; put the link in quotes",
        )
    }

    /// A link inside a link inside a link: more than people share.
    pub(super) fn nested_too_deep() -> Self {
        Self::new(
            LinkProblem::NotAVideo,
            "this link wraps another one too many times: give the video's own link",
        )
    }

    /// An identifier of the long-form site with fewer characters than it must have.
    pub(super) fn truncated_id(length: usize) -> Self {
        Self::new(
            LinkProblem::MalformedId,
            format!("this YouTube id looks cut off: {length} characters instead of 11; copy the whole link"),
        )
    }

    /// An identifier that does not have the platform's form.
    pub(super) fn malformed_id(platform: Platform, id: &str) -> Self {
        let form = match platform {
            Platform::VideoSite => "11 characters of A-Z, a-z, 0-9, - and _",
            Platform::ShortVideo => "1 to 21 digits, the first not 0",
            Platform::Reels => "1 to 11 characters of A-Z, a-z, 0-9, - and _",
            Platform::Microblog => "1 to 20 digits, the first not 0, and less than 2^64",
        };
        let length = id.chars().count();
        Self::new(
            LinkProblem::MalformedId,
            format!(
                "this {} id of {length} characters does not have the form of one: it must be {form}",
                platform.name()
            ),
        )
    }

    /// A short link whose code is longer than any, or has other characters.
    pub(super) fn malformed_code(platform: Platform) -> Self {
        Self::new(
            LinkProblem::MalformedId,
            format!(
                "this {} short link's code does not have the form of one: copy the whole link",
                platform.name()
            ),
        )
    }

    /// What was wrong.
    pub fn problem(&self) -> LinkProblem {
        self.problem
    }

    /// The sentence, as [`fmt::Display`] prints it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How near the text came to naming a video: of several errors, the nearest is the one worth telling.
    pub(super) fn nearness(&self) -> u8 {
        match self.problem {
            LinkProblem::Empty | LinkProblem::TooLong | LinkProblem::NotALink => 0,
            LinkProblem::UnknownHost => 1,
            LinkProblem::UnsafeAuthority | LinkProblem::NotAVideo | LinkProblem::MalformedId => 2,
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LinkError {}

/// What a link to one video of the platform looks like.
fn example(platform: Platform) -> &'static str {
    match platform {
        Platform::VideoSite => "https://www.youtube.com/watch?v=…",
        Platform::ShortVideo => "https://www.tiktok.com/@name/video/…",
        Platform::Reels => "https://www.instagram.com/reel/…/",
        Platform::Microblog => "https://x.com/name/status/…",
    }
}

/// A short part of a foreign host that is safe to print anywhere.
fn shown(host: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let mut shown: String = host.chars().take(SHOWN_MAX).map(|c| if is_safe(c) { c } else { '?' }).collect();
    if host.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_repeats_little_and_nothing_dangerous() {
        let host = format!("<script>.{}", "a".repeat(500));
        let message = LinkError::unknown_host(&host).to_string();
        assert!(!message.contains('<'), "{message}");
        assert!(message.chars().count() < 160, "{message}");
    }

    #[test]
    fn a_front_end_is_told_what_to_give_instead() {
        let message = LinkError::unknown_host("vxtwitter.com").to_string();
        assert!(message.contains("https://x.com/name/status/"), "{message}");
    }

    #[test]
    fn a_foreign_host_is_told_the_four_platforms() {
        let message = LinkError::unknown_host("vimeo.com").to_string();
        for platform in Platform::ALL {
            assert!(message.contains(platform.name()), "{message}");
        }
    }
}
