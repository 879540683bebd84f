//! Lists of videos, and the texts that name one.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    LinkError, Platform, VideoLink,
    hosts::HostKind,
    link::first_target,
    link_finder::{self, LinkCandidate, UrlScheme},
    platform_url::{Parsed, ParsedLink, PlatformUrl},
    tiktok, youtube, youtube_list,
};
use crate::names::names;

/// Characters that a path keeps; the others of a name are percent-encoded.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'@');

/// A tab of a channel with videos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChannelTab {
    /// Its videos, without shorts and streams.
    #[default]
    Videos,
    /// Its shorts. Their lists name neither dates nor durations.
    Shorts,
    /// Its live streams: running, past and scheduled.
    Streams,
}

names!(ChannelTab, from_name {
    Videos = "videos",
    Shorts = "shorts",
    Streams = "streams",
});

/// A list of videos: on YouTube a playlist, a tab of a channel, or a search; on TikTok a profile.
///
/// ```
/// use transcript_core::video::{ChannelTab, LinkErrorKind, VideoList};
///
/// let list = VideoList::parse("https://www.youtube.com/@name/streams")?;
/// assert_eq!(list.tab(), Some(ChannelTab::Streams));
/// assert_eq!(VideoList::parse(&list.address())?, list);
///
/// let error = VideoList::parse("https://www.youtube.com/playlist?list=WL").unwrap_err();
/// assert_eq!(error.problem(), LinkErrorKind::PersonalList);
/// # Ok::<(), transcript_core::video::LinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VideoList(ListName);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ListName {
    /// The id of a playlist.
    Playlist(String),
    /// The path of a channel's page, decoded: `channel/UC…`, `@handle`, `c/NAME`, `user/NAME` or `NAME`.
    Channel(String, ChannelTab),
    /// The words of a search, with one space between them.
    Search(String),
    /// The name of a profile on TikTok, without its `@`.
    Profile(String),
}

impl fmt::Display for VideoList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

impl VideoList {
    pub(super) fn new(name: ListName) -> Self {
        Self(name)
    }

    /// Longest text of a search, in characters.
    pub const QUERY_CHARS_MAX: usize = 200;

    /// The search for these words in the videos of YouTube.
    ///
    /// # Errors
    /// There are no words, or they are longer than [`VideoList::QUERY_CHARS_MAX`].
    pub fn search(words: &str) -> Result<Self, LinkError> {
        // No word is read of a text that is surely too long.
        let too_long = || LinkError::query_too_long(Self::QUERY_CHARS_MAX);
        if words.len() > VideoLink::LENGTH_MAX {
            return Err(too_long());
        }
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        match words.chars().count() {
            0 => Err(LinkError::empty_query()),
            count if count > Self::QUERY_CHARS_MAX => Err(too_long()),
            _ => Ok(Self(ListName::Search(words))),
        }
    }

    /// Parses a text into the list that it names.
    ///
    /// The text is one of these:
    /// - a link of YouTube in any form, also to the results of a search; that of a video in a playlist names the
    ///   playlist
    /// - the id of a playlist or channel, or a handle with its `@`; those of a channel also with a tab
    ///   (`@name/streams`)
    /// - a link to a profile on TikTok
    /// - a sentence with such a link
    ///
    /// Other words name no list: [`VideoList::search`] searches them.
    ///
    /// # Errors
    /// The text names no list, a list of the logged-in viewer, a mix, which never ends, or a list of Instagram or X.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        if text.len() > VideoLink::LENGTH_MAX {
            return Err(LinkError::too_long(text.len(), VideoLink::LENGTH_MAX));
        }
        let text = link_finder::trimmed(text);
        if text.is_empty() {
            return Err(LinkError::no_list());
        }
        if let Some(list) = youtube_list::read_word(link_finder::bare_word(text)) {
            return list;
        }
        let text = link_finder::decoded(text);
        first_target(&text, parse_candidate, LinkError::no_list)
            .map_err(|closest| closest.unwrap_or_else(LinkError::no_list))
    }

    /// The platform.
    pub fn platform(&self) -> Platform {
        match &self.0 {
            ListName::Playlist(_) | ListName::Channel(..) | ListName::Search(_) => Platform::YouTube,
            ListName::Profile(_) => Platform::TikTok,
        }
    }

    /// Whether the newest video comes first, as in the tab of a channel and in a profile.
    pub fn is_newest_first(&self) -> bool {
        matches!(self.0, ListName::Channel(..) | ListName::Profile(_))
    }

    /// The id of a playlist; `None` for another list.
    pub fn playlist_id(&self) -> Option<&str> {
        match &self.0 {
            ListName::Playlist(id) => Some(id),
            ListName::Channel(..) | ListName::Search(_) | ListName::Profile(_) => None,
        }
    }

    /// The id of a channel; `None` for another list, and for a channel that is named otherwise.
    pub fn channel_id(&self) -> Option<&str> {
        match &self.0 {
            ListName::Channel(path, _) => path.strip_prefix("channel/"),
            ListName::Playlist(_) | ListName::Search(_) | ListName::Profile(_) => None,
        }
    }

    /// The tab of a channel; `None` for another list.
    pub fn tab(&self) -> Option<ChannelTab> {
        match &self.0 {
            ListName::Channel(_, tab) => Some(*tab),
            ListName::Playlist(_) | ListName::Search(_) | ListName::Profile(_) => None,
        }
    }

    /// The words of a search; `None` for another list.
    pub fn query(&self) -> Option<&str> {
        match &self.0 {
            ListName::Search(words) => Some(words),
            ListName::Playlist(_) | ListName::Channel(..) | ListName::Profile(_) => None,
        }
    }

    /// The same channel with another tab. Another list has none and stays as it is.
    #[must_use]
    pub fn with_tab(self, tab: ChannelTab) -> Self {
        match self.0 {
            ListName::Channel(path, _) => Self(ListName::Channel(path, tab)),
            other @ (ListName::Playlist(_) | ListName::Search(_) | ListName::Profile(_)) => Self(other),
        }
    }

    /// Canonical address, from which [`VideoList::parse`] reads the same list.
    pub fn address(&self) -> String {
        match &self.0 {
            ListName::Playlist(id) => format!("https://www.youtube.com/playlist?list={id}"),
            ListName::Channel(path, tab) => format!("{}/{}", channel_address(path), tab.as_str()),
            ListName::Search(words) => {
                let words = utf8_percent_encode(words, NON_ALPHANUMERIC).to_string();
                format!("https://www.youtube.com/results?search_query={}", words.replace("%20", "+"))
            }
            ListName::Profile(name) => format!("https://www.tiktok.com/@{name}"),
        }
    }

    /// The beginning of the addresses of a platform's lists; `None` for a platform without lists.
    pub fn address_prefix(platform: Platform) -> Option<&'static str> {
        match platform {
            Platform::YouTube => Some("https://www.youtube.com/"),
            Platform::TikTok => Some("https://www.tiktok.com/"),
            Platform::Instagram | Platform::X => None,
        }
    }

    /// Address of the page of a channel, without its tab; `None` for another list.
    pub fn channel_address(&self) -> Option<String> {
        match &self.0 {
            ListName::Channel(path, _) => Some(channel_address(path)),
            ListName::Playlist(_) | ListName::Search(_) | ListName::Profile(_) => None,
        }
    }
}

fn channel_address(path: &str) -> String {
    let segments = path.split('/').map(|segment| utf8_percent_encode(segment, PATH).to_string());
    format!("https://www.youtube.com/{}", segments.collect::<Vec<_>>().join("/"))
}

/// As [`VideoList::parse`].
impl FromStr for VideoList {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        Self::parse(text)
    }
}

/// A link parsed as that of a list.
pub(super) type ParsedList = Parsed<VideoList>;

fn parse_candidate(candidate: &LinkCandidate<'_>) -> Result<ParsedList, LinkError> {
    let wrapped = |parsed| match parsed {
        ParsedLink::Wrapped(inner) => Ok(ParsedList::Wrapped(inner)),
        ParsedLink::Target(_) => Err(LinkError::not_a_list("a video")),
    };
    match candidate.scheme {
        UrlScheme::YouTubeApp => wrapped(youtube::read_app(&candidate.rest)),
        UrlScheme::TikTokApp => Err(LinkError::not_a_profile("a part of the app")),
        UrlScheme::InstagramApp => Err(LinkError::unlisted(Platform::Instagram)),
        UrlScheme::XApp => Err(LinkError::unlisted(Platform::X)),
        UrlScheme::Other => Err(LinkError::unknown_scheme()),
        UrlScheme::Http | UrlScheme::Https => {
            let url = PlatformUrl::parse(candidate)?;
            match url.host_kind() {
                HostKind::YouTube => youtube_list::read_page(&url),
                HostKind::YouTubeShort => youtube_list::read_short(&url),
                HostKind::GoogleRedirect => wrapped(youtube::read_redirect(&url)?),
                HostKind::YouTubeImage => Err(LinkError::not_a_list("an image")),
                HostKind::TikTok => tiktok::read_profile(&url),
                HostKind::TikTokShort(_) => Err(LinkError::not_a_profile("a video, by a short link")),
                HostKind::Instagram | HostKind::InstagramRedirect => {
                    Err(LinkError::unlisted(Platform::Instagram))
                }
                HostKind::X | HostKind::XEmbed | HostKind::XShort => Err(LinkError::unlisted(Platform::X)),
            }
        }
    }
}
