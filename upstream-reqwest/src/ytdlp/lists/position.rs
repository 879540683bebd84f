//! The position of the next page, which outlives the process.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use transcript_core::{
    supplier::ListPosition,
    video::{Platform, VideoList},
};

/// Number of videos of the first page: four requests to TikTok.
const PAGE_MIN: u64 = 60;
/// Maximum number of videos of a list of YouTube: as many as a job may have.
const LISTED_MAX: u64 = 5_000;
/// Maximum number of videos of a search, and of a profile, which has 15 on a page: more take longer than a page may.
const PART_MAX: u64 = 1_000;

/// Where a list continues.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryPosition {
    /// Number of videos before.
    #[serde(rename = "ytdlp")]
    pub(super) listed: u64,
    /// Id of the first video of the page before, which no other page begins with; empty if yt-dlp did not read it.
    pub(super) first: String,
    /// Number of videos that the list states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stated: Option<u64>,
}

impl EntryPosition {
    /// Reads a position; `None` if it is not one of yt-dlp.
    pub(super) fn read(position: &ListPosition) -> Option<Self> {
        serde_json::from_str(position.as_str()).ok()
    }

    /// The position for a caller; `None` if it is too long.
    pub(super) fn write(&self) -> Option<ListPosition> {
        ListPosition::new(serde_json::to_string(self).ok()?)
    }

    /// Whether yt-dlp has read the page before.
    pub(super) fn is_after_run(&self) -> bool {
        !self.first.is_empty()
    }

    /// The numbers of the videos of the page, from 1: as many as before, since those are listed again.
    pub(super) fn range(&self, list: &VideoList) -> RangeInclusive<u64> {
        let from = self.listed.saturating_add(1);
        let to = self.listed.saturating_add(self.listed.max(PAGE_MIN));
        from..=to.min(max(list)).max(from)
    }

    /// Whether the list has more videos than are read.
    pub(super) fn is_exhausted(&self, list: &VideoList) -> bool {
        self.listed >= max(list)
    }
}

fn max(list: &VideoList) -> u64 {
    match (list.platform(), list.query()) {
        (Platform::YouTube, None) => LISTED_MAX,
        _ => PART_MAX,
    }
}
