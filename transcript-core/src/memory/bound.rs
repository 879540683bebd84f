//! How much an archive in memory holds: the video of which nothing was kept for longest goes first.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    transcript::{Segment, Transcript},
    video::{ShortLink, VideoId},
};

/// What a video takes beside all else.
const VIDEO_BYTES: u64 = 1_024;
/// What a track or an absence takes.
pub(super) const RECORD_BYTES: u64 = 256;
/// What a short link takes.
const LINK_BYTES: u64 = 512;

/// A bound, and what is kept under it, oldest first.
#[derive(Debug)]
pub(super) struct Bound {
    bytes_max: u64,
    bytes: u64,
    /// By when something of each was kept last.
    videos: BTreeMap<u64, VideoId>,
    links: VecDeque<ShortLink>,
    next: u64,
}

/// A video's place under the bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// When something of it was kept last; 0 for what is not kept.
    number: u64,
    bytes: u64,
}

impl Bound {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, videos: BTreeMap::new(), links: VecDeque::new(), next: 1 }
    }

    /// Something of a video was kept, which takes this much now beside what every video takes.
    pub(super) fn put(&mut self, video: &VideoId, place: &mut Place, words: u64) {
        self.take(*place);
        *place = Place { number: self.next, bytes: words.saturating_add(VIDEO_BYTES) };
        self.next += 1;
        self.videos.insert(place.number, video.clone());
        self.bytes = self.bytes.saturating_add(place.bytes);
    }

    /// A video is not kept any more.
    pub(super) fn take(&mut self, place: Place) {
        self.videos.remove(&place.number);
        self.bytes = self.bytes.saturating_sub(place.bytes);
    }

    pub(super) fn put_link(&mut self, link: &ShortLink) {
        self.links.push_back(link.clone());
        self.bytes = self.bytes.saturating_add(LINK_BYTES);
    }

    /// The next link that must go. Links go only where they alone take half of the room.
    pub(super) fn surplus_link(&mut self) -> Option<ShortLink> {
        let bytes = LINK_BYTES.saturating_mul(self.links.len() as u64);
        if bytes <= self.bytes_max / 2 {
            return None;
        }
        self.bytes = self.bytes.saturating_sub(LINK_BYTES);
        self.links.pop_front()
    }

    /// The next video that must go. The newest one stays, however large it is.
    pub(super) fn surplus(&self) -> Option<&VideoId> {
        if self.bytes <= self.bytes_max || self.videos.len() <= 1 {
            return None;
        }
        self.videos.values().next()
    }
}

/// How much room the words of a transcript take.
pub(super) fn room(transcript: &Transcript) -> u64 {
    // A text is a block of its own, with a little of the allocator's beside it.
    let each = (size_of::<Segment>() + 16) as u64;
    transcript.segments.iter().map(|segment| segment.text.len() as u64 + each).sum()
}
