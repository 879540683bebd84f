//! The position of the next page, which outlives the process.

use serde::{Deserialize, Serialize};
use transcript_core::supplier::{ListPosition, ListedVideo};

/// Maximum number of pages of a list: 100,000 videos of a playlist.
const PAGES_MAX: u32 = 1_000;
/// Maximum number of pages of a search: 1,000 videos. Later results have little to do with its words.
const SEARCH_PAGES_MAX: u32 = 50;
/// Maximum number of pages without a video, one after the other.
const EMPTY_PAGES_MAX: u32 = 5;

/// Where a list continues, and what its first page said.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PagePosition {
    /// The token, as YouTube sent it.
    pub(super) token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) visitor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stated_count: Option<u64>,
    /// Whether every video is the owner's.
    #[serde(default)]
    pub(super) is_channel: bool,
    /// Whether the list is the results of a search.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_search: bool,
    /// Pages and videos so far, and empty pages since the last video.
    pub(super) pages: u32,
    pub(super) videos: u64,
    #[serde(default)]
    pub(super) empty_pages: u32,
    /// Private and deleted videos among them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) unavailable: u64,
    /// An earlier page with videos, by [`page_mark`]: the last one whose number is a power of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What distinguishes a page of a list from its other pages; `None` for a page without two different videos.
pub(super) fn page_mark(videos: &[ListedVideo]) -> Option<String> {
    let (first, last) = (videos.first()?.video.id(), videos.last()?.video.id());
    (first != last).then(|| format!("{first} {last} {}", videos.len()))
}

impl PagePosition {
    /// Reads a position; `None` if it is not one of this lister.
    pub(super) fn read(position: &ListPosition) -> Option<Self> {
        serde_json::from_str(position.as_str()).ok()
    }

    /// Whether the list has more pages than are read.
    pub(super) fn is_exhausted(&self) -> bool {
        self.pages >= if self.is_search { SEARCH_PAGES_MAX } else { PAGES_MAX }
    }

    /// Whether too many pages had no video.
    pub(super) fn is_idle(&self) -> bool {
        self.empty_pages >= EMPTY_PAGES_MAX
    }

    /// Whether as many videos were listed as the list states. One that contains a video twice may repeat a page before.
    pub(super) fn is_complete(&self) -> bool {
        self.stated_count.is_none_or(|count| self.videos >= count)
    }

    /// Whether a page with this mark was read before. The results of a search may repeat.
    pub(super) fn is_repeated(&self, mark: Option<&String>) -> bool {
        !self.is_search && mark.is_some() && self.mark.as_ref() == mark
    }

    /// The position for a caller; `None` if it is too long.
    pub(super) fn write(&self) -> Option<ListPosition> {
        ListPosition::new(serde_json::to_string(self).ok()?)
    }
}
