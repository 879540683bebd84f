//! Lists of videos: the port that reads them page by page.

use std::fmt;

use async_trait::async_trait;
use serde::{Serialize, Serializer};

use super::SupplyError;
use crate::{
    names::names,
    time::Timestamp,
    transcript::LiveStatus,
    video::{Platform, VideoId, VideoList},
};

/// When something happened, known to lie between two times.
///
/// Lists name most dates relatively: "2 weeks ago" is a time 14 to 21 days ago.
///
/// In JSON the times are RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeRange {
    /// The earliest possible time.
    #[serde(serialize_with = "serialize_time")]
    pub earliest: Timestamp,
    /// The latest possible time; that of an exactly known time is also the earliest.
    #[serde(serialize_with = "serialize_time")]
    pub latest: Timestamp,
}

/// A video, as a list describes it. `None` is unknown.
///
/// The JSON has the names of the lookup API: `platform` and `videoId` for the video, `durationSeconds`, and the other
/// fields in `camelCase`. It lacks what is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedVideo {
    /// The video.
    #[serde(flatten, serialize_with = "serialize_video")]
    pub video: VideoId,
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The name of the channel that published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The duration in seconds.
    #[serde(rename = "durationSeconds", skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<u64>,
    /// When it was published. A scheduled video has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<TimeRange>,
    /// Whether it is or was live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveStatus>,
    /// Whether it is only for members of its channel.
    pub members_only: bool,
    /// Whether the list shows it as private or deleted.
    pub is_unavailable: bool,
}

fn serialize_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

fn serialize_video<S: Serializer>(video: &VideoId, serializer: S) -> Result<S::Ok, S::Error> {
    /// The fields of a video in the lookup API.
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct VideoFields<'a> {
        platform: Platform,
        video_id: &'a str,
    }

    VideoFields { platform: video.platform(), video_id: video.id() }.serialize(serializer)
}

/// Position of the next page of a list. Its content belongs to the lister, which reads it from an earlier process too.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ListPosition(String);

impl ListPosition {
    /// Maximum length in bytes.
    pub const LENGTH_MAX: usize = 16 * 1024;

    /// Creates a position; `None` if it is longer than [`ListPosition::LENGTH_MAX`].
    pub fn new(position: impl Into<String>) -> Option<Self> {
        let position = position.into();
        (position.len() <= Self::LENGTH_MAX).then_some(Self(position))
    }

    /// The position as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// A position has thousands of characters that say nothing.
impl fmt::Debug for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListPosition({} bytes)", self.0.len())
    }
}

/// A page of a list.
///
/// The JSON has its fields in `camelCase`, the position of the next page as `nextCursor`, and lacks what is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VideoListPage {
    /// The title of the list: that of a playlist, or the name of a channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The number of videos that the list states, hidden ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_count: Option<u64>,
    /// The videos in the order of the list. A video may occur more than once; a page may have none.
    pub videos: Vec<ListedVideo>,
    /// Position of the next page; `None` at the end.
    #[serde(rename = "nextCursor", skip_serializing_if = "Option::is_none")]
    pub next: Option<ListPosition>,
    /// On the last page: how many stated videos the list has not shown, such as private ones.
    pub hidden_count: u64,
}

impl VideoListPage {
    /// The page without videos that were surely published before a time.
    ///
    /// In a list that is newest first, nothing follows a page that ends with an older video. A video without a date,
    /// such as a scheduled one, stays.
    #[must_use]
    pub fn published_since(mut self, since: Timestamp, is_newest_first: bool) -> Self {
        let is_older = |listed: &ListedVideo| listed.published.is_some_and(|at| at.latest < since);
        if is_newest_first && self.videos.last().is_some_and(is_older) {
            (self.next, self.hidden_count) = (None, 0);
        }
        self.videos.retain(|listed| !is_older(listed));
        self
    }
}

/// Why there is no such list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListAbsenceReason {
    /// The playlist is private.
    Private,
    /// It does not exist, or was removed with its channel.
    Removed,
    /// The channel has no videos of the requested tab.
    NoTab,
    /// YouTube does not show lists of this kind, such as mixes.
    Unviewable,
}

names!(ListAbsenceReason {
    Private = "private",
    Removed = "removed",
    NoTab = "no_tab",
    Unviewable = "unviewable",
});

/// Why there is no such list, for decisions and for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListAbsence {
    /// The reason.
    pub reason: ListAbsenceReason,
    /// The message: it begins with a capital and ends with a full stop.
    pub message: String,
}

/// Outcome of [`VideoLister::list_page`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOutcome {
    /// The page.
    Page(VideoListPage),
    /// There is no such list.
    Absent(ListAbsence),
}

/// The message where no lister covers a platform, and what to do.
pub(crate) fn missing_lister(platform: Platform) -> &'static str {
    match platform {
        Platform::YouTube => {
            "Lists of videos are not read here: no source of captions requests YouTube itself."
        }
        Platform::TikTok => {
            "Profiles of TikTok are not listed here: yt-dlp lists them, which is not configured as a source. \
             The operator can set ytdlp.program; without it, use the links of the videos one by one."
        }
        Platform::Instagram | Platform::X => "Lists of this platform cannot be read.",
    }
}

/// Reads lists of videos of a platform.
#[async_trait]
pub trait VideoLister: fmt::Debug + Send + Sync + 'static {
    /// Reads a page of a list: the first one, or that at a position of the page before.
    ///
    /// **Behaviour**
    /// - An empty list is a page without videos and without a next one, and only if the platform says so: a response in
    ///   an unknown format is a failure.
    /// - Lists end: a lister bounds the number of pages, and detects pages that repeat.
    /// - Transient faults are retried inside, within the deadline. Pauses between pages are the lister's.
    ///
    /// # Errors
    /// [`SupplyError`] if the platform cannot be reached, throttles or requires a bot check, or responds in an unknown
    /// format ([`super::SupplyReason::Unreadable`]).
    async fn list_page(
        &self,
        list: &VideoList,
        position: Option<&ListPosition>,
        deadline: Timestamp,
    ) -> Result<ListOutcome, SupplyError>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn listed_video_json_has_names_of_lookup_api() {
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        let known = ListedVideo {
            video: video.clone(),
            title: Some("A title".to_owned()),
            author: Some("Ann".to_owned()),
            duration_s: Some(212),
            published: Some(TimeRange {
                earliest: Timestamp::from_millis(0),
                latest: Timestamp::from_millis(86_400_000),
            }),
            live: Some(LiveStatus::WasLive),
            members_only: true,
            is_unavailable: false,
        };
        assert_eq!(
            serde_json::to_string(&known).unwrap(),
            concat!(
                r#"{"platform":"video_site","videoId":"dQw4w9WgXcQ","title":"A title","author":"Ann","#,
                r#""durationSeconds":212,"#,
                r#""published":{"earliest":"1970-01-01T00:00:00Z","latest":"1970-01-02T00:00:00Z"},"#,
                r#""live":"was_live","membersOnly":true,"isUnavailable":false}"#
            )
        );
        let unknown = ListedVideo {
            video,
            title: None,
            author: None,
            duration_s: None,
            published: None,
            live: None,
            members_only: false,
            is_unavailable: true,
        };
        assert_eq!(
            serde_json::to_string(&unknown).unwrap(),
            r#"{"platform":"video_site","videoId":"dQw4w9WgXcQ","membersOnly":false,"isUnavailable":true}"#
        );
    }

    #[test]
    fn list_page_and_absence_json_is_exact() {
        let page = VideoListPage {
            title: Some("A list".to_owned()),
            stated_count: Some(3),
            videos: Vec::new(),
            next: ListPosition::new("page 2"),
            hidden_count: 1,
        };
        assert_eq!(
            serde_json::to_value(page).unwrap(),
            json!({ "title": "A list", "statedCount": 3, "videos": [], "nextCursor": "page 2", "hiddenCount": 1 })
        );
        assert_eq!(
            serde_json::to_value(VideoListPage::default()).unwrap(),
            json!({ "videos": [], "hiddenCount": 0 })
        );
        for reason in ListAbsenceReason::ALL {
            let absence = ListAbsence { reason, message: "It is private.".to_owned() };
            let json = json!({ "reason": reason.as_str(), "message": "It is private." });
            assert_eq!(serde_json::to_value(absence).unwrap(), json);
        }
    }
}
