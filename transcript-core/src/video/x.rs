//! The microblog site's links.

use std::borrow::Cow;

use super::{
    LinkError, Platform, ShortLink, VideoLink,
    address::{self, Address, Finding, leading_number},
};

const SITE: Platform = Platform::Microblog;
const BASE: &str = "https://x.com";

/// Lists of people and of other posts, under a post's own path.
const LISTS: [&str; 6] = ["quotes", "retweets", "reposts", "likes", "hidden", "analytics"];

/// A page of the site.
pub(super) fn read_page(address: &Address) -> Result<Finding, LinkError> {
    let segments = address.segments();
    let path: Vec<&str> = segments.iter().map(Cow::as_ref).collect();
    if path.is_empty() {
        // Until 2012 pages were named by the fragment: "#!/name/status/…".
        let inside = address::segments_of(address.fragment().split('?').next().unwrap_or_default());
        let inside: Vec<&str> = inside.iter().map(Cow::as_ref).collect();
        return read_path(&inside);
    }
    let parameter = match path.as_slice() {
        ["i", "bookmarks", ..] => address.parameter(&["post_id"]),
        [_, "mediaviewer" | "mediaViewer", ..] => address.parameter(&["currentTweet"]),
        ["login", ..] | ["i", "flow", "login", ..] => {
            let inner = address.parameter(&["redirect_after_login"]);
            return match inner {
                Some(inner) => Ok(Finding::wrapped(&inner, BASE)),
                None => Err(LinkError::not_a_video(SITE, "a sign-in page")),
            };
        }
        _ => None,
    };
    match parameter {
        Some(id) => post(&id),
        None => read_path(&path),
    }
}

fn read_path(path: &[&str]) -> Result<Finding, LinkError> {
    let (id, after) = match path {
        ["i", "web", "status", id, after @ ..] => (id, after),
        ["i", "videos", "tweet", id, after @ ..] => (id, after),
        ["i", "videos", id, after @ ..] => (id, after),
        ["i", "cards", "tfw", "v1", id, after @ ..] => (id, after),
        // The name before it leads to the same post whatever it is: "i", "web", "anyuser".
        [_, "status" | "statuses", id, after @ ..] => (id, after),
        ["status" | "statuses", id, after @ ..] => (id, after),
        _ => return Err(LinkError::not_a_video(SITE, other_page(path))),
    };
    match after.first() {
        Some(list) if LISTS.contains(list) => {
            Err(LinkError::not_a_video(SITE, "a list that belongs to a post"))
        }
        _ => post(id),
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

/// The embedding service: a parameter names the post, or carries its link.
pub(super) fn read_embed(address: &Address) -> Result<Finding, LinkError> {
    if let Some(inner) = address.parameter(&["url", "query"]) {
        return Ok(Finding::wrapped(&inner, BASE));
    }
    match address.parameter(&["id"]) {
        Some(id) => post(&id),
        None => Err(LinkError::not_a_video(SITE, "the embedding service")),
    }
}

/// The short domain: the path is the code.
pub(super) fn read_short(address: &Address) -> Result<Finding, LinkError> {
    match address.segments().as_slice() {
        [code] => {
            ShortLink::read(SITE, "https://t.co/", code, "").map(|link| Finding::Link(VideoLink::Short(link)))
        }
        _ => Err(LinkError::not_a_video(SITE, "a page that is no short link's")),
    }
}

/// A link into the app: `status?id=ID`.
pub(super) fn read_app(rest: &str) -> Result<Finding, LinkError> {
    let (page, query) = rest.split_once('?').unwrap_or((rest, ""));
    match address::parameter_of(query, &["id", "status_id"]) {
        Some(id) if matches!(page.trim_end_matches('/'), "status" | "tweet") => post(&id),
        _ => Err(LinkError::not_a_video(SITE, "another part of the app")),
    }
}

fn post(id: &str) -> Result<Finding, LinkError> {
    leading_number(SITE, id).map(|video| Finding::Link(VideoLink::Video(video)))
}
