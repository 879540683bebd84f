//! Reads a response with a page of a list. No I/O, and total: every byte sequence has a result.
//!
//! Entries and the token of the next page come from the array of the list alone: other parts of a response have
//! videos of other channels, and tokens of comments, recommendations and sort orders.

use serde_json::Value;
use transcript_core::{Timestamp, supplier::ListedVideo, video::ChannelTab};

use super::entry::{ListItem, NAME_MAX, read_item};
use crate::{
    json::{field, items},
    youtube::player::text,
};

/// Maximum number of items of a page; YouTube sends at most 100.
pub(super) const ITEMS_MAX: usize = 1_000;
/// Maximum nesting of arrays: sections, a section, a grid.
const DEPTH_MAX: u32 = 4;
/// Maximum length of a token. Those seen have at most 3 KB.
const TOKEN_MAX: usize = 8 * 1024;
/// Maximum length of a visitor id.
const VISITOR_MAX: usize = 1_024;

/// The list that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListPart {
    /// The first page of a playlist.
    Playlist,
    /// The first page of a tab of a channel.
    Tab(ChannelTab),
    /// A further page.
    Further,
}

/// What a response says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BrowseOutcome {
    /// A page.
    Entries(ListEntries),
    /// The channel is only for adults; the playlists of its uploads are not.
    AgeGate,
    /// The channel has this other id.
    Moved(String),
    /// The channel has no such tab: YouTube shows another one.
    NoTab,
    /// An error, in YouTube's words.
    Alert(String),
    /// An unknown format.
    Unknown,
}

/// The entries of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListEntries {
    pub(super) title: Option<String>,
    /// The channel of a tab, or the owner of a playlist.
    pub(super) owner: Option<String>,
    pub(super) stated_count: Option<u64>,
    pub(super) videos: Vec<ListedVideo>,
    pub(super) token: Option<String>,
}

/// Items of a page beside videos and the token.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ItemKinds {
    pub(super) has_message: bool,
    pub(super) has_other: bool,
    pub(super) has_unknown: bool,
}

impl ListEntries {
    /// Adds the items of a page.
    pub(super) fn add<'a>(&mut self, items: impl Iterator<Item = &'a Value>, now: Timestamp) -> ItemKinds {
        let mut kinds = ItemKinds::default();
        for item in items.take(ITEMS_MAX) {
            match read_item(item, now) {
                ListItem::Video(video) => self.videos.push(*video),
                ListItem::Token(token) if token.len() <= TOKEN_MAX => self.token = Some(token),
                ListItem::Message => kinds.has_message = true,
                ListItem::Other => kinds.has_other = true,
                ListItem::Token(_) | ListItem::Unknown => kinds.has_unknown = true,
            }
        }
        kinds
    }
}

/// The visitor id that YouTube assigned.
pub(super) fn visitor(response: &Value) -> Option<String> {
    let visitor = field(field(response, "responseContext"), "visitorData").as_str()?;
    (visitor.len() <= VISITOR_MAX).then(|| visitor.to_owned())
}

/// Reads a response to a request for a part of a list.
pub(super) fn read_page(response: &Value, part: ListPart, now: Timestamp) -> BrowseOutcome {
    let further = further_items(response);
    let arrays: Vec<&Value> = if further.is_empty() {
        match first_arrays(response, part) {
            Ok(arrays) => arrays,
            Err(outcome) => return outcome,
        }
    } else {
        further
    };
    let mut entries = ListEntries {
        title: title(response),
        owner: owner(response),
        stated_count: stated_count(response),
        ..ListEntries::default()
    };
    let items = arrays.iter().flat_map(|array| array.as_array().into_iter().flatten());
    let ItemKinds { has_unknown, has_other, has_message } = entries.add(items, now);
    let is_first = part != ListPart::Further;
    let is_proven_empty = has_message || has_other || entries.stated_count == Some(0);
    if entries.videos.is_empty() {
        // Of an empty first page YouTube must say that it is empty; a later one may just end.
        let is_unproven = is_first && entries.token.is_none() && !is_proven_empty;
        if has_unknown
            || is_unproven
            || (is_first && entries.token.is_none() && entries.stated_count > Some(0))
        {
            return BrowseOutcome::Unknown;
        }
    }
    BrowseOutcome::Entries(entries)
}

/// The arrays of a further page, or of a first one that came as such.
fn further_items(response: &Value) -> Vec<&Value> {
    let actions = ["onResponseReceivedActions", "onResponseReceivedEndpoints"].into_iter();
    let commands = ["appendContinuationItemsAction", "reloadContinuationItemsCommand"];
    let of = |action| commands.iter().map(move |command| field(field(action, command), "continuationItems"));
    actions
        .flat_map(|name| items(response, name, ITEMS_MAX))
        .flat_map(of)
        .filter(|array| array.is_array())
        .collect()
}

/// The arrays of a first page; the outcome if it has none.
fn first_arrays(response: &Value, part: ListPart) -> Result<Vec<&Value>, BrowseOutcome> {
    if let Some(id) = moved_channel(response) {
        return Err(BrowseOutcome::Moved(id));
    }
    let tabs = field(field(response, "contents"), "twoColumnBrowseResultsRenderer");
    let tabs = items(tabs, "tabs", ITEMS_MAX).flat_map(|tab| {
        ["tabRenderer", "expandableTabRenderer"].into_iter().map(move |kind| field(tab, kind))
    });
    let selected = tabs.into_iter().find(|tab| field(tab, "selected") == true);
    let Some(selected) = selected else {
        return Err(match (alert(response), part) {
            (Some(alert), _) => BrowseOutcome::Alert(alert),
            // A further page without an action is the end.
            (None, ListPart::Further) if field(response, "responseContext").is_object() => {
                BrowseOutcome::Entries(ListEntries::default())
            }
            (None, _) => BrowseOutcome::Unknown,
        });
    };
    let content = field(selected, "content");
    let sections = field(field(content, "sectionListRenderer"), "contents");
    let mut sections = sections.as_array().into_iter().flatten();
    if sections.any(|section| !field(section, "channelAgeGateRenderer").is_null()) {
        return Err(BrowseOutcome::AgeGate);
    }
    if let ListPart::Tab(tab) = part
        && !is_tab(selected, tab)
    {
        return Err(alert(response).map_or(BrowseOutcome::NoTab, BrowseOutcome::Alert));
    }
    let mut arrays = Vec::new();
    collect_arrays(content, DEPTH_MAX, &mut arrays);
    match alert(response).filter(|_| arrays.is_empty()) {
        Some(alert) => Err(BrowseOutcome::Alert(alert)),
        None => Ok(arrays),
    }
}

/// Collects the arrays of entries in a tab or section.
fn collect_arrays<'a>(content: &'a Value, depth: u32, arrays: &mut Vec<&'a Value>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for (kind, name) in [
        ("richGridRenderer", "contents"),
        ("gridRenderer", "items"),
        ("playlistVideoListRenderer", "contents"),
    ] {
        let array = field(field(content, kind), name);
        if array.is_array() {
            arrays.push(array);
        }
    }
    for section in items(field(content, "sectionListRenderer"), "contents", ITEMS_MAX) {
        collect_arrays(section, depth, arrays);
    }
    let section = field(field(content, "itemSectionRenderer"), "contents");
    let before = arrays.len();
    for item in section.as_array().into_iter().flatten().take(ITEMS_MAX) {
        collect_arrays(item, depth, arrays);
    }
    if section.is_array() && arrays.len() == before {
        arrays.push(section);
    }
}

/// Whether a selected tab is the requested one. YouTube selects another one if a channel does not have it.
fn is_tab(selected: &Value, tab: ChannelTab) -> bool {
    let metadata = field(field(field(selected, "endpoint"), "commandMetadata"), "webCommandMetadata");
    if let Some(url) = field(metadata, "url").as_str() {
        return url.trim_end_matches('/').rsplit('/').next() == Some(tab.as_str());
    }
    let title = match tab {
        ChannelTab::Videos => "Videos",
        ChannelTab::Shorts => "Shorts",
        ChannelTab::Streams => "Live",
    };
    field(selected, "title") == title
}

/// The id of the channel to which a channel has moved.
fn moved_channel(response: &Value) -> Option<String> {
    let actions = items(response, "onResponseReceivedActions", ITEMS_MAX);
    let ids = actions.map(|action| {
        let endpoint = field(field(field(action, "navigateAction"), "endpoint"), "browseEndpoint");
        field(endpoint, "browseId")
    });
    ids.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// The first error among the alerts, whatever the name of its kind.
pub(super) fn alert(response: &Value) -> Option<String> {
    let alerts = items(response, "alerts", ITEMS_MAX);
    let alerts = alerts.filter_map(Value::as_object).flat_map(serde_json::Map::values);
    let mut errors = alerts.filter(|alert| field(alert, "type") == "ERROR");
    errors.find_map(|alert| text(field(alert, "text"), NAME_MAX))
}

fn title(response: &Value) -> Option<String> {
    let metadata = field(response, "metadata");
    let header = field(field(response, "header"), "pageHeaderRenderer");
    [
        field(field(metadata, "playlistMetadataRenderer"), "title"),
        field(field(metadata, "channelMetadataRenderer"), "title"),
        field(header, "pageTitle"),
    ]
    .into_iter()
    .find_map(|title| text(title, NAME_MAX))
}

fn sidebar(response: &Value) -> impl Iterator<Item = &Value> {
    items(field(field(response, "sidebar"), "playlistSidebarRenderer"), "items", ITEMS_MAX)
}

fn owner(response: &Value) -> Option<String> {
    let channel = field(field(field(response, "metadata"), "channelMetadataRenderer"), "title");
    let header = field(field(field(response, "header"), "playlistHeaderRenderer"), "ownerText");
    let owners = sidebar(response).map(|item| {
        let owner = field(field(item, "playlistSidebarSecondaryInfoRenderer"), "videoOwner");
        field(field(owner, "videoOwnerRenderer"), "title")
    });
    [channel, header].into_iter().chain(owners).find_map(|owner| text(owner, NAME_MAX))
}

/// The number of videos that a playlist states.
fn stated_count(response: &Value) -> Option<u64> {
    let header = field(field(field(response, "header"), "playlistHeaderRenderer"), "numVideosText");
    let primary = |item| field(item, "playlistSidebarPrimaryInfoRenderer");
    let stats = sidebar(response).flat_map(|item| items(primary(item), "stats", ITEMS_MAX));
    stats.chain([header]).filter_map(|stat| text(stat, NAME_MAX)).find_map(|stat| count_of(&stat))
}

/// The number in a text such as "4,999 videos", "447 episodes" or "No videos".
fn count_of(stat: &str) -> Option<u64> {
    let (count, what) = stat.trim().split_once(' ')?;
    let is_videos = ["video", "episode", "lesson", "song", "track"]
        .iter()
        .any(|noun| what.strip_prefix(noun).is_some_and(|rest| matches!(rest, "" | "s")));
    if !is_videos {
        return None;
    }
    if count == "No" {
        return Some(0);
    }
    let digits: String = count.chars().filter(|c| !matches!(c, ',' | '.')).collect();
    digits.parse().ok()
}
