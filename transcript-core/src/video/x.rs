//! X links.

use std::borrow::Cow;

use super::{
    LinkError, Platform, ShortLink, VideoLink,
    platform_url::{self, ParsedLink, PlatformUrl, leading_number},
};

const SITE: Platform = Platform::X;
const BASE: &str = "https://x.com";

/// Lists of people and of other posts under the path of a post.
const LISTS: [&str; 6] = ["quotes", "retweets", "reposts", "likes", "hidden", "analytics"];

pub(super) fn read_page(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let segments = url.segments();
    let path: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    if path.is_empty() {
        // Until 2012 the fragment named the page: "#!/name/status/…".
        let inside = platform_url::segments_of(url.fragment().split('?').next().unwrap_or_default());
        let inside: Vec<&str> = inside.iter().map(Cow::as_ref).collect();
        return read_path(&inside);
    }
    let parameter = match path.as_slice() {
        ["i", "bookmarks", ..] => url.parameter(&["post_id"]),
        ["intent", ..] => url.parameter(&["tweet_id", "in_reply_to"]),
        [_, "mediaviewer" | "mediaViewer", ..] => url.parameter(&["currentTweet"]),
        ["login", ..] | ["i", "flow", "login", ..] => {
            let inner = url.parameter(&["redirect_after_login"]);
            return match inner {
                Some(inner) => Ok(ParsedLink::wrapped(&inner, BASE)),
                None => Err(LinkError::not_a_video(SITE, "a sign-in page")),
            };
        }
        _ => None,
    };
    match parameter {
        Some(id) => parse_post(&id),
        None => read_path(&path),
    }
}

fn read_path(path: &[&str]) -> Result<ParsedLink, LinkError> {
    let (id, after) = match path {
        ["i", "web", "status", id, after @ ..] => (id, after),
        ["i", "videos", "tweet", id, after @ ..] => (id, after),
        ["i", "videos", id, after @ ..] => (id, after),
        ["i", "cards", "tfw", "v1", id, after @ ..] => (id, after),
        // Any name before it leads to the same post: "i", "web", "anyuser".
        [_, "status" | "statuses", id, after @ ..] => (id, after),
        ["status" | "statuses", id, after @ ..] => (id, after),
        _ => return Err(LinkError::not_a_video(SITE, other_page(path))),
    };
    match after.first() {
        Some(list) if LISTS.contains(list) => {
            Err(LinkError::not_a_video(SITE, "a list that belongs to a post"))
        }
        _ => parse_post(id),
    }
}

fn other_page(path: &[&str]) -> &'static str {
    match path {
        [] | ["home" | "explore" | "notifications" | "messages", ..] => "a page of many posts",
        ["hashtag" | "search", ..] => "a search",
        ["i", "spaces", ..] => "a space",
        ["i", "broadcasts", ..] => "a broadcast",
        ["i", "events" | "lists" | "communities" | "topics" | "moments", ..] => "a page of many posts",
        ["intent", ..] => "a form for a new post",
        [_] | [_, "media" | "with_replies" | "likes" | "following" | "followers"] => "a profile",
        _ => "another page",
    }
}

/// Parses a link of the embedding service: a parameter names the post or carries its link.
pub(super) fn read_embed(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    if let Some(inner) = url.parameter(&["url", "query"]) {
        return Ok(ParsedLink::wrapped(&inner, BASE));
    }
    match url.parameter(&["id"]) {
        Some(id) => parse_post(&id),
        None => Err(LinkError::not_a_video(SITE, "the embedding service")),
    }
}

/// Parses a link on the short domain: the path is the code.
pub(super) fn read_short(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    match url.segments().as_slice() {
        [code, after @ ..] if platform_url::is_text_after_code(after) => {
            ShortLink::read(SITE, "https://t.co/", code, "")
                .map(|link| ParsedLink::Target(VideoLink::Short(link)))
        }
        _ => Err(LinkError::not_a_video(SITE, "a page that is not a short link")),
    }
}

/// Parses an app link: `status?id=ID`.
pub(super) fn read_app(rest: &str) -> Result<ParsedLink, LinkError> {
    let (page, query) = rest.split_once('?').unwrap_or((rest, ""));
    match platform_url::parameter_of(query, &["id", "status_id"]) {
        Some(id) if matches!(page.trim_end_matches('/'), "status" | "tweet") => parse_post(&id),
        _ => Err(LinkError::not_a_video(SITE, "another part of the app")),
    }
}

fn parse_post(id: &str) -> Result<ParsedLink, LinkError> {
    leading_number(SITE, id).map(|video| ParsedLink::Target(VideoLink::Video(video)))
}
