//! YouTube links.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::{
    LinkError, Platform, VideoId, VideoLink, link_finder,
    platform_url::{self, ParsedLink, PlatformUrl},
};

const SITE: Platform = Platform::YouTube;
const BASE: &str = "https://www.youtube.com";
const ID_LENGTH: usize = VideoId::YOUTUBE_LENGTH;

/// Parameters with an id: of the watch page, of its old form, and of the embedding interface.
const ID_PARAMETERS: [&str; 3] = ["v", "vi", "video_id"];

pub(super) fn read_page(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let segments = url.segments();
    let first = segments.first().map(|segment| segment.to_ascii_lowercase()).unwrap_or_default();
    match first.as_str() {
        "attribution_link" => read_attribution(url),
        "oembed" => wrapped_link(url.parameter(&["url"]), "the embedding interface"),
        "redirect" => wrapped_link(url.parameter(&["q"]), "a redirect"),
        "signin" | "supported_browsers" | "verify_age" | "verify_controversy" => {
            wrapped_link(url.parameter(&["next", "next_url"]), "a page that names no target")
        }
        // "podcast" is the page of an episode in YouTube Music.
        "v" | "vi" | "e" | "w" | "embed" | "shorts" | "live" | "watch" | "video" | "podcast" => {
            read_player(url, &first, segments.get(1..).unwrap_or_default())
        }
        _ => read_other(url, &first, segments.first().map(Cow::as_ref)),
    }
}

/// Parses a shared page, which has the path of the real one in a parameter.
fn read_attribution(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let query = url.query();
    // Some copies lack the parameter's name: "attribution_link?/watch?v=…".
    let nameless = query.starts_with('/').then_some(Cow::Borrowed(query));
    let inner = url.parameter(&["u"]).or(nameless);
    // A path that is not encoded leaves its later parameters outside: "u=/watch?feature=x&v=…".
    let is_cut = |inner: &str| {
        !inner.contains("v=") && ["/watch", "/user/"].iter().any(|start| inner.starts_with(start))
    };
    let is_cut = inner.as_deref().is_some_and(is_cut);
    match url.parameter(&ID_PARAMETERS) {
        Some(value) if is_cut => parameter_id(&value).map(video_link),
        _ => wrapped_link(inner, "a shared page"),
    }
}

/// Parses a page whose path may name the video in its second segment, or after another page's name.
fn read_player(url: &PlatformUrl, first: &str, segments: &[Cow<'_, str>]) -> Result<ParsedLink, LinkError> {
    let by_path = match segments.iter().map(Cow::as_ref).find(|segment| !matches!(*segment, "v" | "watch")) {
        // Both words have the form of an id, but name other things in an embedded player.
        Some("videoseries" | "playlist") => Err(LinkError::not_a_video(SITE, "a playlist")),
        Some("live_stream") => Err(LinkError::not_a_video(SITE, "the current stream of a channel")),
        Some(segment) => leading_id(segment.strip_prefix("v=").unwrap_or(segment)),
        None if first == "watch" => Err(LinkError::watch_without_id()),
        None => Err(LinkError::not_a_video(SITE, "a page without an id")),
    };
    match by_path {
        Ok(video) => Ok(video_link(video)),
        // The parameter may be present nevertheless: "/embed/?v=…".
        Err(error) => by_parameter(url).unwrap_or(Err(error)),
    }
}

/// Parses a page whose path names no video: only a parameter or the fragment may name one.
fn read_other(url: &PlatformUrl, first: &str, segment: Option<&str>) -> Result<ParsedLink, LinkError> {
    if let Some(video) = by_uploads(url.fragment()) {
        return Ok(video_link(video));
    }
    let not_a_video = |what| Err(LinkError::not_a_video(SITE, what));
    let by_parameter = by_parameter(url);
    let is_channel = matches!(first, "channel" | "c" | "user") || first.starts_with('@');
    match first {
        // An old page of a channel played the video in a parameter: "user/NAME/watch?v=…".
        _ if is_channel => {
            return by_parameter.and_then(Result::ok).map_or_else(|| not_a_video("a channel"), Ok);
        }
        "results" => return not_a_video("a search"),
        "feed" => return not_a_video("a feed"),
        "hashtag" => return not_a_video("a topic"),
        "post" => return not_a_video("a post"),
        "clip" => return not_a_video("a clip, whose link does not name its source video"),
        _ => {}
    }
    if let Some(result) = by_parameter {
        return result;
    }
    // "watch%3Fv%3D…": the question mark is encoded.
    if let Some((_, query)) = segment.and_then(|segment| segment.split_once('?'))
        && let Some(value) = platform_url::parameter_of(query, &ID_PARAMETERS)
    {
        return parameter_id(&value).map(video_link);
    }
    match first {
        "playlist" | "view_play_list" | "p" => not_a_video("a playlist"),
        "watch_popup" | "watch.php" | "movie" | "ytscreeningroom" => Err(LinkError::watch_without_id()),
        "" => not_a_video("a page without an id"),
        _ => not_a_video("a channel or another page"),
    }
}

/// Parses a link on the short domain: its path is the id, or a path of the long domain.
pub(super) fn read_short(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let segments = url.segments();
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
    if is_page || first.starts_with('@') { read_page(url) } else { leading_id(first).map(video_link) }
}

/// Parses a link to a thumbnail: `/vi/ID/…`, with variants for image formats and languages.
pub(super) fn read_image(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    match url.segments().as_slice() {
        [kind, id, ..] if matches!(kind.as_ref(), "vi" | "vi_webp" | "vi_lc" | "an" | "an_webp") => {
            leading_id(id).map(video_link)
        }
        _ => Err(LinkError::not_a_video(SITE, "an image that is no video's thumbnail")),
    }
}

/// Parses a page of Google that carries the link to its target: consent, sign-in, a search result, or a check for bots.
///
/// The link is read from its text; the page is never requested.
pub(super) fn read_redirect(url: &PlatformUrl) -> Result<ParsedLink, LinkError> {
    let host = url.host();
    if let Some(video) = search_viewer(url) {
        return Ok(video_link(video));
    }
    let inner = if host.starts_with("consent.") || host.starts_with("accounts.") {
        url.parameter(&["continue"])
    } else if url.segments().first().is_some_and(|segment| segment == "url") {
        url.parameter(&["url", "q"])
    } else if url.segments().first().is_some_and(|segment| segment == "sorry") {
        url.parameter(&["continue"])
    } else {
        None
    };
    let inner = inner.ok_or_else(|| LinkError::unknown_host(host))?;
    let base = if host.ends_with(".youtube.com") { BASE } else { "" };
    Ok(ParsedLink::wrapped(&inner, base))
}

/// The video that Google's page of search results plays: `#fpstate=ive&vld=cid:1a2b,vid:ID,st:0`.
fn search_viewer(url: &PlatformUrl) -> Option<VideoId> {
    let viewer = platform_url::parameter_of(url.fragment(), &["vld"])?;
    let video = viewer.split(',').find_map(|part| part.strip_prefix("vid:"))?;
    VideoId::new(SITE, video).ok()
}

/// Parses an app link: an id, or a page's address without its scheme or without its host.
pub(super) fn read_app(rest: &str) -> ParsedLink {
    let has_host = rest.split(['/', '?', '#']).next().is_some_and(|start| start.contains('.'));
    ParsedLink::Wrapped(if has_host { format!("https://{rest}") } else { format!("https://youtu.be/{rest}") })
}

fn wrapped_link(inner: Option<Cow<'_, str>>, what: &str) -> Result<ParsedLink, LinkError> {
    let inner = inner.ok_or_else(|| LinkError::not_a_video(SITE, what))?;
    Ok(ParsedLink::wrapped(&inner, BASE))
}

fn video_link(video: VideoId) -> ParsedLink {
    ParsedLink::Target(VideoLink::Video(video))
}

/// Id in the query, or in the query inside the fragment that the site's scripts once read.
fn by_parameter(url: &PlatformUrl) -> Option<Result<ParsedLink, LinkError>> {
    let value = url.parameter(&ID_PARAMETERS).or_else(|| {
        let fragment = url.fragment();
        let query = fragment.split_once('?').map_or(fragment, |(_, query)| query);
        platform_url::parameter_of(query, &ID_PARAMETERS)
    });
    let value = value.or_else(|| encoded_parameter(url.query()))?;
    Some(parameter_id(&value).map(video_link))
}

/// Value of a parameter whose equals sign is encoded: "watch?v%3D…".
fn encoded_parameter(query: &str) -> Option<Cow<'_, str>> {
    let mut pairs = query.split(['&', ';']).filter(|pair| !pair.contains('='));
    pairs.find_map(|pair| {
        let pair = percent_decode_str(pair).decode_utf8_lossy();
        pair.strip_prefix("v=").map(|value| Cow::Owned(value.to_owned()))
    })
}

/// Id at the beginning of a parameter's value.
///
/// The source of a mail has `=3D` in place of `=`, so that the id has two characters in front of it.
fn parameter_id(value: &str) -> Result<VideoId, LinkError> {
    let value = value.trim_start();
    let length = link_finder::id_length(value);
    match value.strip_prefix("3D") {
        Some(id) if length == ID_LENGTH + 2 => leading_id(id),
        _ => leading_id(value),
    }
}

/// Id in the fragment of an old channel page: `#p/u/1/ID`, `#play/uploads/1/ID`.
fn by_uploads(fragment: &str) -> Option<VideoId> {
    let path = fragment.split(['?', '&']).next()?;
    let is_uploads = ["p/", "play/", "grid/"].iter().any(|start| path.starts_with(start));
    let last = path.rsplit('/').next().filter(|_| is_uploads)?;
    leading_id(last).ok()
}

/// Id at the beginning of a text. An id has 11 characters; anything directly after them is ignored.
fn leading_id(text: &str) -> Result<VideoId, LinkError> {
    let length = link_finder::id_length(text);
    match text.get(..ID_LENGTH) {
        Some(id) if length >= ID_LENGTH => VideoId::new(SITE, id),
        _ if length == 0 => Err(LinkError::malformed_id(SITE, text)),
        _ => Err(LinkError::truncated_id(length)),
    }
}
