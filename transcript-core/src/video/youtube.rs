//! The long-form site's links.

use std::borrow::Cow;

use super::{
    LinkError, Platform, VideoId, VideoLink,
    address::{self, Address, Finding},
    text,
};

const SITE: Platform = Platform::VideoSite;
const BASE: &str = "https://www.youtube.com";
const ID_LENGTH: usize = 11;

/// The parameters that carry an id: the watch page's, an old one of it, and the embedding interface's.
const ID_PARAMETERS: [&str; 3] = ["v", "vi", "video_id"];

/// A page of the site.
pub(super) fn read_page(address: &Address) -> Result<Finding, LinkError> {
    let segments = address.segments();
    let first = segments.first().map(|segment| segment.to_ascii_lowercase()).unwrap_or_default();
    match first.as_str() {
        "attribution_link" => read_attribution(address),
        "oembed" => wrapped(address.parameter(&["url"]), "the embedding interface"),
        "redirect" => wrapped(address.parameter(&["q"]), "a redirect"),
        "signin" | "verify_age" | "verify_controversy" => {
            wrapped(address.parameter(&["next", "next_url"]), "a sign-in page")
        }
        "v" | "vi" | "e" | "w" | "embed" | "shorts" | "live" | "watch" | "video" => {
            read_player(address, &first, segments.get(1..).unwrap_or_default())
        }
        _ => read_other(address, &first, segments.first().map(Cow::as_ref)),
    }
}

/// A shared page, with the path of the real one in a parameter.
fn read_attribution(address: &Address) -> Result<Finding, LinkError> {
    let query = address.query();
    // Some copies lost the parameter's name: "attribution_link?/watch?v=…".
    let nameless = query.starts_with('/').then_some(Cow::Borrowed(query));
    let inner = address.parameter(&["u"]).or(nameless);
    // A path that was not encoded leaves its later parameters outside: "u=/watch?feature=x&v=…".
    let is_cut = |inner: &str| {
        !inner.contains("v=") && ["/watch", "/user/"].iter().any(|start| inner.starts_with(start))
    };
    let is_cut = inner.as_deref().is_some_and(is_cut);
    match address.parameter(&ID_PARAMETERS) {
        Some(value) if is_cut => leading_id(&value).map(found),
        _ => wrapped(inner, "a shared page"),
    }
}

/// A page whose path may name the video in its second segment, or after another page's name.
fn read_player(address: &Address, first: &str, segments: &[Cow<'_, str>]) -> Result<Finding, LinkError> {
    let by_path = match segments.iter().map(Cow::as_ref).find(|segment| !matches!(*segment, "v" | "watch")) {
        // Both words could be ids by their form, and name other things in an embedded player.
        Some("videoseries" | "playlist") => Err(LinkError::not_a_video(SITE, "a playlist")),
        Some("live_stream") => Err(LinkError::not_a_video(SITE, "whatever a channel is streaming")),
        Some(segment) => leading_id(segment.strip_prefix("v=").unwrap_or(segment)),
        None if first == "watch" => Err(LinkError::watch_without_id()),
        None => Err(LinkError::not_a_video(SITE, "a page without an id")),
    };
    match by_path {
        Ok(video) => Ok(found(video)),
        // The parameter may be there all the same: "/embed/?v=…".
        Err(error) => by_parameter(address).unwrap_or(Err(error)),
    }
}

/// A page whose path names no video: only a parameter or the fragment may.
fn read_other(address: &Address, first: &str, segment: Option<&str>) -> Result<Finding, LinkError> {
    if let Some(video) = by_uploads(address.fragment()) {
        return Ok(found(video));
    }
    let refused = |what| Err(LinkError::not_a_video(SITE, what));
    let by_parameter = by_parameter(address);
    let is_channel = matches!(first, "channel" | "c" | "user") || first.starts_with('@');
    match first {
        // An old page of a channel played the video that a parameter named: "user/NAME/watch?v=…".
        _ if is_channel => return by_parameter.and_then(Result::ok).map_or_else(|| refused("a channel"), Ok),
        "results" => return refused("a search"),
        "feed" => return refused("a feed"),
        "hashtag" => return refused("a topic"),
        "post" => return refused("a post"),
        "clip" => return refused("a clip, whose link does not name the video that it was cut from"),
        _ => {}
    }
    if let Some(result) = by_parameter {
        return result;
    }
    // "watch%3Fv%3D…": the question mark was encoded on the way.
    if let Some((_, query)) = segment.and_then(|segment| segment.split_once('?'))
        && let Some(value) = address::parameter_of(query, &ID_PARAMETERS)
    {
        return leading_id(&value).map(found);
    }
    match first {
        "playlist" | "view_play_list" | "p" => refused("a playlist"),
        "watch_popup" | "watch.php" | "movie" | "ytscreeningroom" => Err(LinkError::watch_without_id()),
        "" => refused("a page without an id"),
        _ => refused("a channel or another page"),
    }
}

/// The short domain: its path is the id, or a path of the long domain.
pub(super) fn read_short(address: &Address) -> Result<Finding, LinkError> {
    let segments = address.segments();
    let first = segments.first().map(Cow::as_ref).unwrap_or_default();
    let is_page = matches!(
        first,
        "" | "watch"
            | "embed"
            | "shorts"
            | "live"
            | "v"
            | "e"
            | "playlist"
            | "channel"
            | "c"
            | "user"
            | "redirect"
    );
    if is_page || first.starts_with('@') { read_page(address) } else { leading_id(first).map(found) }
}

/// A thumbnail: `/vi/ID/…`, with variants for image formats and languages.
pub(super) fn read_image(address: &Address) -> Result<Finding, LinkError> {
    match address.segments().as_slice() {
        [kind, id, ..] if matches!(kind.as_ref(), "vi" | "vi_webp" | "vi_lc" | "an" | "an_webp") => {
            leading_id(id).map(found)
        }
        _ => Err(LinkError::not_a_video(SITE, "an image that is no video's thumbnail")),
    }
}

/// Google's consent, sign-in and search result pages, which carry the link that they lead to.
pub(super) fn read_passage(address: &Address) -> Result<Finding, LinkError> {
    let host = address.host();
    let inner = if host.starts_with("consent.") || host.starts_with("accounts.") {
        address.parameter(&["continue"])
    } else if address.segments().first().is_some_and(|segment| segment == "url") {
        address.parameter(&["url", "q"])
    } else {
        None
    };
    let inner = inner.ok_or_else(|| LinkError::unknown_host(host))?;
    let base = if host.ends_with(".youtube.com") { BASE } else { "" };
    Ok(Finding::wrapped(&inner, base))
}

/// A link into the app: an id, or a page's address without its scheme or without its host.
pub(super) fn read_app(rest: &str) -> Finding {
    let has_host = rest.split(['/', '?', '#']).next().is_some_and(|start| start.contains('.'));
    Finding::Wrapped(if has_host { format!("https://{rest}") } else { format!("https://youtu.be/{rest}") })
}

fn wrapped(inner: Option<Cow<'_, str>>, what: &str) -> Result<Finding, LinkError> {
    let inner = inner.ok_or_else(|| LinkError::not_a_video(SITE, what))?;
    Ok(Finding::wrapped(&inner, BASE))
}

fn found(video: VideoId) -> Finding {
    Finding::Link(VideoLink::Video(video))
}

/// The id in the query, or in the query inside the fragment that the site's scripts once read.
fn by_parameter(address: &Address) -> Option<Result<Finding, LinkError>> {
    let value = address.parameter(&ID_PARAMETERS).or_else(|| {
        let fragment = address.fragment();
        let query = fragment.split_once('?').map_or(fragment, |(_, query)| query);
        address::parameter_of(query, &ID_PARAMETERS)
    })?;
    Some(leading_id(value.trim_start()).map(found))
}

/// The id in the fragment of an old channel page: `#p/u/1/ID`, `#play/uploads/1/ID`.
fn by_uploads(fragment: &str) -> Option<VideoId> {
    let path = fragment.split(['?', '&']).next()?;
    let is_uploads = ["p/", "play/", "grid/"].iter().any(|start| path.starts_with(start));
    let last = path.rsplit('/').next().filter(|_| is_uploads)?;
    leading_id(last).ok()
}

/// The id that a text begins with. An id never goes on after 11 characters, so the rest was glued to it.
fn leading_id(text: &str) -> Result<VideoId, LinkError> {
    let length = text.bytes().take_while(|&c| text::is_id_byte(c)).count();
    match text.get(..ID_LENGTH) {
        Some(id) if length >= ID_LENGTH => VideoId::new(SITE, id),
        _ if length == 0 => Err(LinkError::malformed_id(SITE, text)),
        _ => Err(LinkError::truncated_id(length)),
    }
}
