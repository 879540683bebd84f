//! Links to playlists, channels and searches of YouTube.

use std::borrow::Cow;

use super::{
    LinkError,
    link_finder::is_id_byte,
    list::{ChannelTab, ListName, ParsedList, VideoList},
    platform_url::{ParsedLink, PlatformUrl},
};

const BASE: &str = "https://www.youtube.com";
/// Beginnings of the ids of playlists, as in links without a parameter's name.
///
/// Users' lists, old courses, favourites, albums, popular uploads, the uploads of a channel (all, videos, shorts,
/// streams, for members), uploads around a video, and finite lists of the music service.
const PREFIXES: [&str; 9] = ["PL", "EC", "FL", "OLAK5uy_", "PU", "UU", "UL", "TL", "RDCLAK5uy_"];
/// Lengths of the ids of playlists.
const PLAYLIST_MIN: usize = 12;
const PLAYLIST_MAX: usize = 80;
/// Length of the id of a channel: `UC` and 22 characters.
const CHANNEL_LENGTH: usize = 24;
/// Longest name of a channel, in characters.
const NAME_MAX: usize = 100;
/// First segments of YouTube's own pages, which are not names of channels.
const RESERVED: [&str; 47] = [
    "about",
    "account",
    "ads",
    "attribution_link",
    "browse",
    "channel",
    "clip",
    "c",
    "creators",
    "e",
    "embed",
    "feed",
    "feeds",
    "gaming",
    "hashtag",
    "howyoutubeworks",
    "jobs",
    "kids",
    "live",
    "live_chat",
    "logout",
    "movie",
    "movies",
    "music",
    "new",
    "oembed",
    "p",
    "playlist",
    "post",
    "premium",
    "press",
    "redirect",
    "results",
    "search",
    "shared",
    "shorts",
    "signin",
    "t",
    "trending",
    "upload",
    "user",
    "v",
    "vi",
    "view_play_list",
    "w",
    "watch",
    "watch_popup",
];

/// Reads a bare word: the id of a playlist, or the id or handle of a channel, also with a tab. `None` for another word.
pub(super) fn read_word(word: &str) -> Option<Result<VideoList, LinkError>> {
    let (page, tab) = match word.rsplit_once('/') {
        Some((page, tab)) => (page, ChannelTab::from_name(&tab.to_ascii_lowercase())?),
        None => (word, ChannelTab::default()),
    };
    if is_channel_id(page) {
        return Some(Ok(channel(format!("channel/{page}"), tab)));
    }
    if let Some(name) = page.strip_prefix('@') {
        return is_name(name).then(|| Ok(channel(page.to_owned(), tab)));
    }
    let is_known = PREFIXES.iter().chain(&["RD"]).any(|prefix| word.starts_with(prefix));
    let is_id = is_known && is_playlist_id(word);
    // "WL" alone may be any word, but the ids of personal lists occur as words in no other list.
    (is_id || matches!(word, "WL" | "LL" | "LM" | "RDMM")).then(|| playlist(word))
}

/// Parses a link to a page of YouTube.
pub(super) fn read_page(url: &PlatformUrl) -> Result<ParsedList, LinkError> {
    let segments = url.segments();
    let segments: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    let first = segments.first().map(|segment| segment.to_ascii_lowercase()).unwrap_or_default();
    let wrapped = match first.as_str() {
        "attribution_link" => Some(url.parameter(&["u"])),
        "redirect" => Some(url.parameter(&["q"])),
        "oembed" => Some(url.parameter(&["url"])),
        "signin" | "supported_browsers" => Some(url.parameter(&["next", "next_url"])),
        _ => None,
    };
    if let Some(inner) = wrapped {
        let inner = inner.ok_or_else(|| LinkError::not_a_list("a page without a list"))?;
        return Ok(match ParsedLink::wrapped(&inner, BASE) {
            ParsedLink::Wrapped(inner) => ParsedList::Wrapped(inner),
            ParsedLink::Target(_) => return Err(LinkError::not_a_list("a video")),
        });
    }
    if first == "results" {
        // Filters of the link are left out: a search is one for videos.
        let words = url.parameter(&["search_query", "q"]);
        return VideoList::search(&words.unwrap_or_default()).map(ParsedList::Target);
    }
    let parameter = match first.as_str() {
        "view_play_list" => url.parameter(&["list", "p"]),
        "feed" => None,
        _ => url.parameter(&["list"]),
    };
    let list = match parameter {
        Some(id) => playlist(without_mail_code(id.trim())),
        None => read_path(&first, &segments),
    };
    list.map(ParsedList::Target)
}

/// The id without the `3D` of `list=3DPL…`: the source of a mail has `=3D` in place of `=`.
fn without_mail_code(id: &str) -> &str {
    let is_known = |id: &&str| PREFIXES.iter().any(|prefix| id.starts_with(prefix));
    id.strip_prefix("3D").filter(is_known).unwrap_or(id)
}

/// Parses a link on the short domain, whose path is the id of a video or a path of the long domain.
pub(super) fn read_short(url: &PlatformUrl) -> Result<ParsedList, LinkError> {
    let segments = url.segments();
    let first = segments.first().map(Cow::as_ref).unwrap_or_default();
    let is_page =
        matches!(first, "playlist" | "channel" | "c" | "user" | "redirect") || first.starts_with('@');
    if is_page || url.parameter(&["list"]).is_some() {
        read_page(url)
    } else {
        Err(LinkError::not_a_list("a video"))
    }
}

/// Parses the path of a page.
fn read_path(first: &str, segments: &[&str]) -> Result<VideoList, LinkError> {
    match (first, segments.get(1)) {
        ("channel", Some(id)) if is_channel_id(id) => read_tab(format!("channel/{id}"), segments.get(2..)),
        ("channel", _) => Err(LinkError::malformed_list("a channel's id has UC and 22 more characters")),
        ("c" | "user", Some(name)) if is_name(name) => read_tab(format!("{first}/{name}"), segments.get(2..)),
        ("browse", Some(id)) if is_channel_id(id) => read_tab(format!("channel/{id}"), None),
        ("browse", Some(id)) if id.starts_with("VL") => playlist(id),
        ("browse", Some(id)) if id.starts_with("MPRE") => {
            Err(LinkError::not_a_list("the page of an album, whose link does not name its playlist"))
        }
        ("p", Some(id)) => playlist(&format!("PL{}", id.strip_prefix("PL").unwrap_or(id))),
        ("feed", _) => Err(LinkError::personal_list()),
        ("search", _) => Err(LinkError::not_a_list("a search")),
        ("hashtag", _) => Err(LinkError::not_a_list("a topic")),
        ("", _) => Err(LinkError::not_a_list("the start page")),
        ("watch" | "shorts" | "live" | "embed" | "v" | "vi" | "e" | "w" | "clip", _) => {
            Err(LinkError::not_a_list("a video"))
        }
        ("playlist" | "view_play_list", _) => Err(LinkError::malformed_list("the part list=… is missing")),
        _ if RESERVED.contains(&first) => Err(LinkError::not_a_list("another page")),
        _ => {
            let name = segments.first().copied().unwrap_or_default();
            if is_name(name.strip_prefix('@').unwrap_or(name)) {
                read_tab(name.to_owned(), segments.get(1..))
            } else {
                Err(LinkError::not_a_list("another page"))
            }
        }
    }
}

/// The channel at a path, with the tab that the rest of the link names.
fn read_tab(path: String, rest: Option<&[&str]>) -> Result<VideoList, LinkError> {
    let tab = rest.and_then(<[&str]>::first).map(|tab| tab.to_ascii_lowercase()).unwrap_or_default();
    let other = |what| Err(LinkError::not_a_list(what));
    match tab.as_str() {
        "" | "featured" => Ok(channel(path, ChannelTab::default())),
        "live" => other("the current stream of a channel"),
        "playlists" | "releases" | "podcasts" | "courses" => {
            other("the lists of a channel, not to one of them")
        }
        "posts" | "community" | "about" | "search" | "store" | "membership" | "channels" => {
            other("a tab of a channel that has no list of videos")
        }
        // An old page of a channel ends in other words, such as a view.
        tab => Ok(channel(path, ChannelTab::from_name(tab).unwrap_or_default())),
    }
}

fn channel(path: String, tab: ChannelTab) -> VideoList {
    VideoList::new(ListName::Channel(path, tab))
}

fn playlist(id: &str) -> Result<VideoList, LinkError> {
    // Every prefix: the address of the list must be read as the same list.
    let id = id.trim_start_matches("VL");
    let is_finite_mix = id.starts_with("RDCLAK5uy_");
    match id {
        "WL" | "LL" | "LM" | "HL" | "RDMM" => Err(LinkError::personal_list()),
        _ if id.starts_with("LL") && is_channel_id(&id.replacen("LL", "UC", 1)) => {
            Err(LinkError::personal_list())
        }
        _ if id.starts_with("RD") && !is_finite_mix => Err(LinkError::endless_list()),
        _ if is_playlist_id(id) => Ok(VideoList::new(ListName::Playlist(id.to_owned()))),
        _ => Err(LinkError::malformed_list(
            "a playlist's id has 12 to 80 characters of A-Z, a-z, 0-9, - and _",
        )),
    }
}

fn is_playlist_id(id: &str) -> bool {
    (PLAYLIST_MIN..=PLAYLIST_MAX).contains(&id.len()) && id.bytes().all(is_id_byte)
}

fn is_channel_id(id: &str) -> bool {
    id.len() == CHANNEL_LENGTH && id.starts_with("UC") && id.bytes().all(is_id_byte)
}

/// Whether a channel may have this name or handle, in any script.
fn is_name(name: &str) -> bool {
    let is_part =
        |c: char| c.is_alphanumeric() || is_mark(c) || matches!(c, '-' | '_' | '.' | '·' | '\'' | '~');
    let dots_only = name.chars().all(|c| c == '.');
    !dots_only && name.chars().count() <= NAME_MAX && name.chars().all(is_part)
}

/// Whether a character belongs to the letter before it, as vowel signs of many scripts do.
fn is_mark(c: char) -> bool {
    !c.is_ascii()
        && !c.is_whitespace()
        && !c.is_control()
        && !matches!(c, '\u{2000}'..='\u{2BFF}' | '\u{3000}'..='\u{303F}' | '\u{E000}'..='\u{FFFF}')
}

#[cfg(test)]
mod tests {
    use super::super::LinkErrorKind;
    use super::*;

    const CHANNEL: &str = "UC0123456789abcdefghij-_";

    fn outcome(text: &str) -> String {
        match VideoList::parse(text) {
            Ok(list) => {
                assert_eq!(VideoList::parse(&list.address()).as_ref(), Ok(&list), "{text}");
                let prefix = VideoList::address_prefix(list.platform()).unwrap();
                assert!(list.address().starts_with(prefix), "{text}");
                list.address()
                    .trim_start_matches("https://www.")
                    .trim_start_matches("youtube.com/")
                    .to_owned()
            }
            Err(error) => format!("{:?}", error.problem()),
        }
    }

    #[test]
    fn list_forms_are_parsed() {
        for (text, expect) in [
            ("PL0123456789abcdef", "playlist?list=PL0123456789abcdef"),
            (
                "https://www.youtube.com/playlist?list=PL0123456789abcdef&si=x",
                "playlist?list=PL0123456789abcdef",
            ),
            ("See https://youtube.com/playlist?list=PL0123456789abcdef.", "playlist?list=PL0123456789abcdef"),
            ("https://youtube.com/playlist?list=3DPL0123456789abcdef", "playlist?list=PL0123456789abcdef"),
            ("m.youtube.com/watch?v=dQw4w9WgXcQ&list=PL0123456789abcdef", "playlist?list=PL0123456789abcdef"),
            ("https://youtu.be/dQw4w9WgXcQ?list=PL0123456789abcdef", "playlist?list=PL0123456789abcdef"),
            (
                "https://www.youtube.com/embed/videoseries?list=OLAK5uy_0123456789",
                "playlist?list=OLAK5uy_0123456789",
            ),
            (
                "https://www.youtube.com/view_play_list?p=PL0123456789abcdef",
                "playlist?list=PL0123456789abcdef",
            ),
            ("https://www.youtube.com/p/0123456789abcdef", "playlist?list=PL0123456789abcdef"),
            ("https://music.youtube.com/browse/VLPL0123456789abcdef", "playlist?list=PL0123456789abcdef"),
            ("youtube.com/playlist?list=VLVLPL0123456789abcdef", "playlist?list=PL0123456789abcdef"),
            (
                "https://www.youtube.com/playlist?list=RDCLAK5uy_0123456789",
                "playlist?list=RDCLAK5uy_0123456789",
            ),
            (
                "vnd.youtube://www.youtube.com/playlist?list=PL0123456789abcdef",
                "playlist?list=PL0123456789abcdef",
            ),
            (
                "https://consent.youtube.com/m?continue=https%3A%2F%2Fwww.youtube.com%2F%40name%2Fshorts",
                "@name/shorts",
            ),
            (
                "https://www.youtube.com/channel/UC0123456789abcdefghij-_",
                "channel/UC0123456789abcdefghij-_/videos",
            ),
            (
                "https://music.youtube.com/channel/UC0123456789abcdefghij-_",
                "channel/UC0123456789abcdefghij-_/videos",
            ),
            (
                "https://music.youtube.com/browse/UC0123456789abcdefghij-_",
                "channel/UC0123456789abcdefghij-_/videos",
            ),
            ("https://www.youtube.com/@name/streams?x=y", "@name/streams"),
            ("https://www.youtube.com/@name/featured", "@name/videos"),
            ("youtube.com/c/Name/shorts", "c/Name/shorts"),
            ("youtube.com/user/Name", "user/Name/videos"),
            ("https://www.youtube.com/gronkh", "gronkh/videos"),
            ("https://www.youtube.com/results?search_query=a+b%26c", "results?search_query=a+b%26c"),
            (
                "m.youtube.com/results?sp=EgIQAw%3D%3D&search_query=%20Wind%20%20m%C3%BChle+&list=PL0123456789abcdef",
                "results?search_query=Wind+m%C3%BChle",
            ),
            ("https://www.youtube.com/@%D8%B9%D9%84%D9%8A", "@%D8%B9%D9%84%D9%8A/videos"),
            (
                "https://www.youtube.com/@हिन्दी",
                "@%E0%A4%B9%E0%A4%BF%E0%A4%A8%E0%A5%8D%E0%A4%A6%E0%A5%80/videos",
            ),
            ("https://www.tiktok.com/@rope.walk_1?lang=en", "tiktok.com/@rope.walk_1"),
            ("See tiktok.com/@rope-walk/ for more", "tiktok.com/@rope-walk"),
            ("https://m.tiktok.com/embed/@rope", "tiktok.com/@rope"),
            ("https://www.tiktok.com/oembed?url=https%3A%2F%2Fwww.tiktok.com%2F%40rope", "tiktok.com/@rope"),
        ] {
            assert_eq!(outcome(text), expect, "{text}");
        }
    }

    #[test]
    fn words_of_channels_are_parsed() {
        for (text, expect) in [
            (CHANNEL, "channel/UC0123456789abcdefghij-_/videos"),
            ("@name", "@name/videos"),
            ("@name/videos", "@name/videos"),
            ("'@name/Streams'", "@name/streams"),
            ("@name/shorts", "@name/shorts"),
            ("UC0123456789abcdefghij-_/streams", "channel/UC0123456789abcdefghij-_/streams"),
        ] {
            assert_eq!(outcome(text), expect, "{text}");
        }
    }

    #[test]
    fn text_without_list_is_rejected() {
        use LinkErrorKind::{EndlessList, NotAList, PersonalList, TooLong, UnknownHost, UnlistedPlatform};
        for (text, expect) in [
            ("", NotAList),
            ("dQw4w9WgXcQ", NotAList),
            ("some words", NotAList),
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ", NotAList),
            ("https://youtu.be/dQw4w9WgXcQ", NotAList),
            ("https://www.youtube.com/@name/live", NotAList),
            ("@name/live", NotAList),
            ("@name/streams/shorts", NotAList),
            ("PL0123456789abcdef/streams", NotAList),
            ("https://www.youtube.com/@name/playlists", NotAList),
            ("https://www.youtube.com/@name/community", NotAList),
            ("https://www.youtube.com/channel/UC123", NotAList),
            ("https://www.youtube.com/playlist", NotAList),
            ("https://www.youtube.com/playlist?list=PL1", NotAList),
            ("https://www.youtube.com/playlist?list=VLVL0123456789", NotAList),
            ("https://music.youtube.com/browse/VLVLVL0123456789", NotAList),
            ("https://www.youtube.com/results?list=PL0123456789abcdef", NotAList),
            ("https://www.youtube.com/results?search_query=+", NotAList),
            (&format!("https://www.youtube.com/results?search_query={}", "a".repeat(201)), TooLong),
            ("https://music.youtube.com/search?q=a", NotAList),
            ("https://www.youtube.com/hashtag/a", NotAList),
            ("https://www.youtube.com/premium", NotAList),
            ("https://www.youtube.com/a%20b", NotAList),
            ("https://www.youtube.com/", NotAList),
            ("https://music.youtube.com/browse/MPREb_0123456789", NotAList),
            ("https://www.tiktok.com/@name/video/7600000000000000001", NotAList),
            ("https://www.tiktok.com/@name/live", NotAList),
            ("https://www.tiktok.com/@name/collection/knots-7600000000000000001", NotAList),
            ("https://www.tiktok.com/@a%20b", NotAList),
            ("https://www.tiktok.com/@", NotAList),
            ("https://www.tiktok.com/@n./", NotAList),
            (&format!("https://www.tiktok.com/@{}", "a".repeat(101)), NotAList),
            ("https://www.tiktok.com/tag/knots", NotAList),
            ("https://vm.tiktok.com/ZMabcdef/", NotAList),
            ("https://tiktok.com.evil.example/@name", UnknownHost),
            ("https://x.com/name", UnlistedPlatform),
            ("https://www.instagram.com/name/", UnlistedPlatform),
            ("https://www.youtube.com/playlist?list=WL", PersonalList),
            ("https://www.youtube.com/playlist?list=LL0123456789abcdefghij-_", PersonalList),
            ("https://www.youtube.com/playlist?list=VLVLLL0123456789abcdefghij-_", PersonalList),
            ("LL", PersonalList),
            ("https://www.youtube.com/feed/history", PersonalList),
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=RDMM", PersonalList),
            ("https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=RDdQw4w9WgXcQ", EndlessList),
            ("https://www.youtube.com/playlist?list=RDCMUC0123456789abcdefghij-_", EndlessList),
            ("https://www.youtube.com/playlist?list=VLVLRD0123456789", EndlessList),
            ("https://youtube.com.evil.example/playlist?list=PL0123456789abcdef", UnknownHost),
            (&"a".repeat(5_000), TooLong),
        ] {
            assert_eq!(outcome(text), format!("{expect:?}"), "{text}");
        }
    }

    #[test]
    fn tab_of_channel_is_replaced() {
        let list = VideoList::parse("@name").unwrap().with_tab(ChannelTab::Shorts);
        assert_eq!(list.address(), "https://www.youtube.com/@name/shorts");
        assert_eq!((list.channel_id(), list.playlist_id()), (None, None));
        let playlist = VideoList::parse("PL0123456789abcdef").unwrap();
        assert_eq!(playlist.clone().with_tab(ChannelTab::Shorts), playlist);
        assert_eq!(VideoList::parse(CHANNEL).unwrap().channel_id(), Some(CHANNEL));
        let profile = VideoList::parse("https://www.tiktok.com/@name").unwrap();
        assert_eq!(profile.clone().with_tab(ChannelTab::Shorts), profile);
        assert!(profile.is_newest_first() && profile.channel_address().is_none());
    }

    #[test]
    fn search_of_longest_words_is_parsed_back() {
        let words = "\u{1F600}".repeat(VideoList::QUERY_CHARS_MAX);
        let list = VideoList::search(&words).unwrap();
        assert_eq!(list.query(), Some(words.as_str()));
        assert_eq!((list.playlist_id(), list.tab(), list.channel_address()), (None, None, None));
        assert_eq!(VideoList::parse(&list.address()), Ok(list));
    }
}
