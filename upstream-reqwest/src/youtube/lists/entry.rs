//! Reads one entry of a list, in each of YouTube's layouts. No I/O, and total.
//!
//! Responses mix layouts, so every entry is read by its own kind. Parts of a lockup are found by their content, because
//! their order varies.

use serde_json::Value;
use transcript_core::{
    Timestamp,
    supplier::{ListedVideo, TimeRange},
    transcript::LiveStatus,
    video::{Platform, VideoId},
};

use super::age;
use crate::{
    json::{field, items},
    youtube::player::text,
};

/// Maximum length of a title or name, in characters.
pub(super) const NAME_MAX: usize = 500;
/// Maximum number of rows, parts or badges of an entry that are read.
const PARTS_MAX: usize = 32;

/// An item of the array of a list.
#[derive(Debug)]
pub(super) enum ListItem {
    /// A video.
    Video(Box<ListedVideo>),
    /// The token of the next page.
    Token(String),
    /// A message in place of entries: the list is empty.
    Message,
    /// Known, and no video: a list, an advertisement.
    Other,
    /// An item of an unknown kind.
    Unknown,
}

pub(super) fn read_item(item: &Value, now: Timestamp) -> ListItem {
    let content = field(field(item, "richItemRenderer"), "content");
    let item = if content.is_null() { item } else { content };
    let Some((kind, body)) = item.as_object().and_then(|item| item.iter().find(|(_, body)| body.is_object()))
    else {
        return ListItem::Unknown;
    };
    let video = match kind.as_str() {
        "lockupViewModel" => match field(body, "contentType").as_str() {
            Some("LOCKUP_CONTENT_TYPE_VIDEO") => lockup(body, now),
            // A type of another name may be that of videos.
            Some(
                "LOCKUP_CONTENT_TYPE_PLAYLIST" | "LOCKUP_CONTENT_TYPE_PODCAST" | "LOCKUP_CONTENT_TYPE_ALBUM",
            ) => return ListItem::Other,
            _ => None,
        },
        "playlistVideoRenderer" | "videoRenderer" | "gridVideoRenderer" | "compactVideoRenderer" => {
            renderer(body, now)
        }
        "shortsLockupViewModel" => shorts_lockup(body),
        "reelItemRenderer" => video_of(field(body, "videoId"))
            .map(|video| ListedVideo { title: name(field(body, "headline")), ..new(video) }),
        "continuationItemRenderer" | "continuationItemViewModel" => {
            return token(body).map_or(ListItem::Unknown, ListItem::Token);
        }
        "messageRenderer" => return ListItem::Message,
        "playlistRenderer" | "gridPlaylistRenderer" | "adSlotRenderer" | "channelRenderer" => {
            return ListItem::Other;
        }
        _ => None,
    };
    video.map_or(ListItem::Unknown, |video| ListItem::Video(Box::new(video)))
}

fn new(video: VideoId) -> ListedVideo {
    ListedVideo {
        video,
        title: None,
        author: None,
        duration_s: None,
        published: None,
        live: None,
        members_only: false,
        is_unavailable: false,
    }
}

fn video_of(id: &Value) -> Option<VideoId> {
    VideoId::new(Platform::YouTube, id.as_str()?).ok()
}

fn name(value: &Value) -> Option<String> {
    text(value, NAME_MAX)
}

/// The text of a view model.
fn content(value: &Value) -> Option<String> {
    text(field(value, "content"), NAME_MAX)
}

/// The layout since 2026.
fn lockup(body: &Value, now: Timestamp) -> Option<ListedVideo> {
    let video = video_of(field(body, "contentId"))?;
    let metadata = field(field(body, "metadata"), "lockupMetadataViewModel");
    let mut listed = ListedVideo { title: content(field(metadata, "title")), ..new(video) };
    let overlays = items(field(field(body, "contentImage"), "thumbnailViewModel"), "overlays", PARTS_MAX);
    let badges = overlays.flat_map(|overlay| {
        let bottom = items(field(overlay, "thumbnailBottomOverlayViewModel"), "badges", PARTS_MAX);
        let top = field(overlay, "thumbnailOverlayBadgeViewModel");
        bottom.chain(items(top, "thumbnailBadges", PARTS_MAX))
    });
    for badge in badges.take(PARTS_MAX) {
        let badge = field(badge, "thumbnailBadgeViewModel");
        let label = field(badge, "text").as_str().unwrap_or("");
        listed.duration_s = listed.duration_s.or_else(|| age::clock_seconds(label));
        let style = field(badge, "badgeStyle").as_str().unwrap_or("");
        listed.live = listed.live.or_else(|| live_badge(label, style));
    }
    let rows = field(field(metadata, "metadata"), "contentMetadataViewModel");
    for row in items(rows, "metadataRows", PARTS_MAX) {
        let styles = items(row, "badges", PARTS_MAX);
        let mut styles = styles.map(|badge| field(field(badge, "badgeViewModel"), "badgeStyle"));
        listed.members_only |= styles.any(is_members_badge);
        for part in items(row, "metadataParts", PARTS_MAX) {
            row_part(&mut listed, field(part, "text"), now);
        }
    }
    // The name of several channels together has no link; their avatars are in a stack.
    let has_several = !field(field(metadata, "image"), "avatarStackViewModel").is_null();
    if listed.author.is_none() && has_several {
        let first =
            items(rows, "metadataRows", 1).next().and_then(|row| items(row, "metadataParts", 1).next());
        listed.author = first.and_then(|part| content(field(part, "text")));
    }
    mark_unavailable(&mut listed, false);
    Some(listed)
}

/// Reads a part of a lockup's rows: the channel, the age, or the state of a stream.
fn row_part(listed: &mut ListedVideo, part: &Value, now: Timestamp) {
    let Some(words) = content(part) else { return };
    let is_channel = items(part, "commandRuns", PARTS_MAX).any(|run| {
        let endpoint = field(field(field(run, "onTap"), "innertubeCommand"), "browseEndpoint");
        field(endpoint, "browseId").as_str().is_some_and(|id| id.starts_with("UC"))
    });
    if is_channel {
        listed.author = Some(words);
        return;
    }
    listed.published = listed.published.or_else(|| age::published(&words, now));
    listed.live = listed.live.or_else(|| live_text(&words));
}

fn live_badge(label: &str, style: &str) -> Option<LiveStatus> {
    match label.to_ascii_uppercase().as_str() {
        "LIVE" => Some(LiveStatus::Live),
        "UPCOMING" => Some(LiveStatus::Upcoming),
        _ if style.ends_with("_LIVE") || style.ends_with("LIVE_NOW") || style == "LIVE" => {
            Some(LiveStatus::Live)
        }
        _ if style.ends_with("UPCOMING") => Some(LiveStatus::Upcoming),
        _ => None,
    }
}

fn live_text(words: &str) -> Option<LiveStatus> {
    let begins = |start: &str| words.starts_with(start);
    if begins("Streamed ") {
        Some(LiveStatus::WasLive)
    } else if begins("Scheduled for ") || begins("Premieres ") {
        Some(LiveStatus::Upcoming)
    } else if words.ends_with(" watching") {
        Some(LiveStatus::Live)
    } else {
        None
    }
}

fn is_members_badge(style: &Value) -> bool {
    style.as_str().is_some_and(|style| style.ends_with("MEMBERS_ONLY"))
}

/// The layouts until 2026, which differ little.
fn renderer(body: &Value, now: Timestamp) -> Option<ListedVideo> {
    let video = video_of(field(body, "videoId"))?;
    let overlays = || {
        let overlays = items(body, "thumbnailOverlays", PARTS_MAX);
        overlays.map(|overlay| field(overlay, "thumbnailOverlayTimeStatusRenderer"))
    };
    let overlay_clock = || overlays().find_map(|status| age::clock_seconds(&name(field(status, "text"))?));
    let duration_s = number(field(body, "lengthSeconds"))
        .or_else(|| age::clock_seconds(&name(field(body, "lengthText"))?))
        .or_else(overlay_clock);
    let published_text = name(field(body, "publishedTimeText"));
    let infos = items(field(body, "videoInfo"), "runs", PARTS_MAX).filter_map(|run| name(field(run, "text")));
    let texts: Vec<String> = published_text.into_iter().chain(infos).collect();
    let badge_styles = || {
        let badges = items(body, "badges", PARTS_MAX);
        badges.map(|badge| field(field(badge, "metadataBadgeRenderer"), "style"))
    };
    let is_upcoming = !field(body, "upcomingEventData").is_null();
    let live = is_upcoming
        .then_some(LiveStatus::Upcoming)
        .or_else(|| overlays().find_map(|status| live_badge("", field(status, "style").as_str()?)))
        .or_else(|| badge_styles().find_map(|style| live_badge("", style.as_str()?)))
        .or_else(|| texts.iter().find_map(|words| live_text(words)));
    let bylines = ["shortBylineText", "longBylineText", "ownerText"];
    let mut listed = ListedVideo {
        title: name(field(body, "title")),
        author: bylines.iter().find_map(|byline| name(field(body, byline))),
        duration_s,
        published: texts.iter().find_map(|words| age::published(words, now)),
        live,
        members_only: badge_styles().any(is_members_badge),
        ..new(video)
    };
    mark_unavailable(&mut listed, field(body, "isPlayable") == false);
    Some(listed)
}

/// Marks a video that is private or deleted: YouTube shows neither its channel nor its duration.
fn mark_unavailable(listed: &mut ListedVideo, is_unplayable: bool) {
    let is_placeholder = matches!(listed.title.as_deref(), Some("[Deleted video]" | "[Private video]"));
    let has_details = listed.author.is_some() || listed.duration_s.is_some();
    listed.is_unavailable = !has_details && (is_placeholder || is_unplayable);
    if listed.is_unavailable && is_placeholder {
        listed.title = None;
    }
    // A scheduled time in the rows is no time of publication.
    if listed.live == Some(LiveStatus::Upcoming) {
        listed.published = None::<TimeRange>;
    }
}

fn shorts_lockup(body: &Value) -> Option<ListedVideo> {
    let endpoint = field(field(field(body, "onTap"), "innertubeCommand"), "reelWatchEndpoint");
    let video = video_of(field(endpoint, "videoId")).or_else(|| {
        // It ends with the id of the video.
        let entity = field(body, "entityId").as_str()?;
        VideoId::new(Platform::YouTube, entity.get(entity.len().checked_sub(VideoId::YOUTUBE_LENGTH)?..)?)
            .ok()
    })?;
    Some(ListedVideo { title: content(field(field(body, "overlayMetadata"), "primaryText")), ..new(video) })
}

/// A number, also as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The token of a continuation item, in one of its four forms.
fn token(body: &Value) -> Option<String> {
    let of =
        |command: &Value| field(field(command, "continuationCommand"), "token").as_str().map(str::to_owned);
    let endpoint = field(body, "continuationEndpoint");
    let button = field(field(field(body, "button"), "buttonRenderer"), "command");
    let model = field(field(body, "continuationCommand"), "innertubeCommand");
    let commands = items(field(endpoint, "commandExecutorCommand"), "commands", PARTS_MAX);
    of(endpoint).or_else(|| commands.into_iter().find_map(of)).or_else(|| of(button)).or_else(|| of(model))
}
