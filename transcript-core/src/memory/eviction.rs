//! Size limit of the in-memory archive: evicts the video whose last write is oldest.

use std::collections::{BTreeMap, VecDeque};

use crate::video::{ShortLink, VideoId};

/// Size of a video without its records and text.
const VIDEO_BYTES: u64 = 1_024;
/// Size of a track or an absence.
pub(super) const RECORD_BYTES: u64 = 256;
/// Size of a short link.
const LINK_BYTES: u64 = 512;

/// A capacity, and the entries under it, oldest first.
#[derive(Debug)]
pub(super) struct EvictionQueue {
    bytes_max: u64,
    bytes: u64,
    /// The videos by the number of their last write.
    videos: BTreeMap<u64, VideoId>,
    links: VecDeque<ShortLink>,
    next: u64,
}

/// A video's entry in the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EvictionSlot {
    /// Number of its last write; 0 if it is not in the queue.
    number: u64,
    bytes: u64,
}

impl EvictionQueue {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, videos: BTreeMap::new(), links: VecDeque::new(), next: 1 }
    }

    /// Records a write of a video, which now has this size in addition to [`VIDEO_BYTES`].
    pub(super) fn record_write(&mut self, video: &VideoId, slot: &mut EvictionSlot, size: u64) {
        self.remove(*slot);
        *slot = EvictionSlot { number: self.next, bytes: size.saturating_add(VIDEO_BYTES) };
        self.next += 1;
        self.videos.insert(slot.number, video.clone());
        self.bytes = self.bytes.saturating_add(slot.bytes);
    }

    /// Removes a video.
    pub(super) fn remove(&mut self, slot: EvictionSlot) {
        self.videos.remove(&slot.number);
        self.bytes = self.bytes.saturating_sub(slot.bytes);
    }

    pub(super) fn put_link(&mut self, link: &ShortLink) {
        self.links.push_back(link.clone());
        self.bytes = self.bytes.saturating_add(LINK_BYTES);
    }

    /// The next link to evict. Links are evicted only if they alone take more than half of the capacity.
    pub(super) fn pop_link_to_evict(&mut self) -> Option<ShortLink> {
        let bytes = LINK_BYTES.saturating_mul(self.links.len() as u64);
        if bytes <= self.bytes_max / 2 {
            return None;
        }
        self.bytes = self.bytes.saturating_sub(LINK_BYTES);
        self.links.pop_front()
    }

    /// The next video to evict. The newest one stays, whatever its size.
    pub(super) fn next_video_to_evict(&self) -> Option<&VideoId> {
        if self.bytes <= self.bytes_max || self.videos.len() <= 1 {
            return None;
        }
        self.videos.values().next()
    }
}
