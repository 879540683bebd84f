//! Size limits of a transcript. The size of external input is never trusted.

use super::{Segment, Transcript, word::check_words};
use crate::error::{Error, Result};

/// Maximum number of segments.
pub const SEGMENTS_MAX: usize = 100_000;
/// Latest start and longest duration, in milliseconds: 1,000 hours.
///
/// A caption parser drops a segment that starts later, and shortens one that ends later.
pub const TIME_MAX_MS: u64 = 1_000 * 60 * 60 * 1_000;
/// Maximum number of bytes of text in all segments together.
pub const TEXT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum number of bytes of a title, an author's name or a track's name.
pub const NAME_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of a supplier's name.
pub const SOURCE_BYTES_MAX: usize = 256;

impl Transcript {
    /// Checks the limits of a transcript. Code that stores or fetches one calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: no segment or more than 100,000, more than 32 MiB of text, a title or name
    /// above 64 KiB, a supplier's name that is empty or above 256 bytes, a time beyond 1,000 hours, segments
    /// that are not ordered by start, or words that do not occur in the text of their segment in order.
    pub fn check(&self) -> Result<()> {
        if self.segments.is_empty() {
            return Err(Error::invalid("the transcript has no segments"));
        }
        if self.segments.len() > SEGMENTS_MAX {
            return Err(Error::invalid("the transcript has more than 100,000 segments"));
        }
        let bytes = self.segments.iter().map(|segment| segment.text.len()).fold(0, usize::saturating_add);
        if bytes > TEXT_BYTES_MAX {
            return Err(Error::invalid("the transcript has more than 32 MiB of text"));
        }
        let names = [&self.title, &self.author, &self.track.name];
        if names.into_iter().flatten().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(Error::invalid("a title or name in the transcript is longer than 64 KiB"));
        }
        if self.source.is_empty() || self.source.len() > SOURCE_BYTES_MAX {
            return Err(Error::invalid("the supplier's name must have 1 to 256 bytes"));
        }
        let is_late = |segment: &Segment| segment.start_ms > TIME_MAX_MS || segment.duration_ms > TIME_MAX_MS;
        if self.segments.iter().any(is_late) || self.duration_ms.is_some_and(|ms| ms > TIME_MAX_MS) {
            return Err(Error::invalid("a time in the transcript is beyond 1,000 hours"));
        }
        if !self.segments.is_sorted_by_key(|segment| segment.start_ms) {
            return Err(Error::invalid("the segments of the transcript are not ordered by start"));
        }
        check_words(&self.segments)
    }
}
