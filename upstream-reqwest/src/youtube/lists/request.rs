//! The requests for lists: a page of a list, and the channel behind an address.

use transcript_core::video::ChannelTab;

use crate::{
    http::HttpRequest,
    youtube::{clients::ClientIdentity, request::post},
};

const BROWSE: &str = "https://www.youtube.com/youtubei/v1/browse?prettyPrint=false";
const SEARCH: &str = "https://www.youtube.com/youtubei/v1/search?prettyPrint=false";
const RESOLVE: &str = "https://www.youtube.com/youtubei/v1/navigation/resolve_url?prettyPrint=false";
/// Includes private and deleted videos: their transcripts may be archived.
const WITH_UNAVAILABLE: &str = "wgYCCAA=";
/// Only videos, without channels and playlists.
const ONLY_VIDEOS: &str = "EgIQAfABAQ==";

/// The first page of a playlist.
pub(super) fn playlist(client: &ClientIdentity, id: &str) -> HttpRequest {
    let fields = [("browseId", format!("VL{id}").into()), ("params", WITH_UNAVAILABLE.into())];
    post(client, BROWSE, None, fields)
}

/// The first page of a tab of a channel.
pub(super) fn tab(client: &ClientIdentity, channel: &str, tab: ChannelTab) -> HttpRequest {
    let params = match tab {
        ChannelTab::Videos => "EgZ2aWRlb3PyBgQKAjoA",
        ChannelTab::Shorts => "EgZzaG9ydHPyBgUKA5oBAA%3D%3D",
        ChannelTab::Streams => "EgdzdHJlYW1z8gYECgJ6AA%3D%3D",
    };
    post(client, BROWSE, None, [("browseId", channel.into()), ("params", params.into())])
}

/// The first page of a search.
pub(super) fn search(client: &ClientIdentity, words: &str) -> HttpRequest {
    post(client, SEARCH, None, [("query", words.into()), ("params", ONLY_VIDEOS.into())])
}

/// A further page. Without the visitor id of the first one some lists repeat.
pub(super) fn further(
    client: &ClientIdentity,
    is_search: bool,
    token: &str,
    visitor: Option<&str>,
) -> HttpRequest {
    let endpoint = if is_search { SEARCH } else { BROWSE };
    post(client, endpoint, visitor, [("continuation", token.into())])
}

/// The channel behind an address.
pub(super) fn resolve(client: &ClientIdentity, address: &str) -> HttpRequest {
    post(client, RESOLVE, None, [("url", address.into())])
}
