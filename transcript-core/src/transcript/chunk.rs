//! Chunks: consecutive segments as one text, by time or by tokens.

use std::ops::Range;

use super::{Chapter, Segment, append, tokens};
use crate::error::{Error, Result};

/// Run of segments that is read as one text: a paragraph, or a part of a certain size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Start of its first segment, in milliseconds from the beginning of the video.
    pub start_ms: u64,
    /// Latest end of its segments, in milliseconds from the beginning of the video.
    pub end_ms: u64,
    /// Its words, on one line.
    pub text: String,
    /// Indexes of its segments in the transcript.
    pub segments: Range<usize>,
}

impl Chunk {
    /// A chunk of one segment.
    pub(super) fn new(index: usize, segment: &Segment) -> Self {
        let mut text = String::new();
        append(&mut text, &segment.text);
        Self { start_ms: segment.start_ms, end_ms: segment.end_ms(), text, segments: index..index + 1 }
    }

    /// Adds a later segment.
    pub(super) fn push(&mut self, index: usize, segment: &Segment) {
        append(&mut self.text, &segment.text);
        self.end_ms = self.end_ms.max(segment.end_ms());
        self.segments.end = index + 1;
    }
}

/// Unit of the size of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkUnit {
    /// Milliseconds from the start of the first segment to the start of the last one.
    Milliseconds,
    /// Estimated tokens of a language model; the estimate is rather too high.
    Tokens,
}

/// Size of chunks, and how much of each is repeated at the beginning of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkOptions {
    /// Unit of both sizes.
    pub unit: ChunkUnit,
    /// Maximum size of a chunk; a longer segment is a whole chunk.
    pub size: u64,
    /// Maximum size of the repeated part; at most half the size.
    pub overlap: u64,
}

/// Shortest pause at which a chunk rather ends, in milliseconds.
const PAUSE_MS: u64 = 500;

/// Splits segments into chunks of at most this size, in order. Segments are never split, and blank ones are left out.
///
/// No chunk reaches into another chapter. A full chunk ends at the longest pause of its second half, if there is one.
///
/// ```
/// use transcript_core::transcript::{ChunkOptions, ChunkUnit, Segment, chunks};
///
/// let segments: Vec<_> = (0..4).map(|n| Segment::new(format!("{n}"), n * 20_000, 20_000)).collect();
/// let options = ChunkOptions { unit: ChunkUnit::Milliseconds, size: 60_000, overlap: 20_000 };
/// let texts: Vec<_> = chunks(&segments, &[], options)?.into_iter().map(|chunk| chunk.text).collect();
/// assert_eq!(texts, ["0 1 2", "2 3"]);
/// # Ok::<(), transcript_core::Error>(())
/// ```
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] if the size is 0, or the overlap more than half of it.
pub fn chunks(segments: &[Segment], chapters: &[Chapter], options: ChunkOptions) -> Result<Vec<Chunk>> {
    let ChunkOptions { size, overlap, .. } = options;
    if size == 0 || overlap > size / 2 {
        // More overlap would multiply the text.
        return Err(Error::invalid(
            "the size of a chunk must be more than 0, and its overlap at most half of it",
        ));
    }
    let spoken: Vec<_> =
        segments.iter().enumerate().filter(|(_, segment)| !segment.text.trim().is_empty()).collect();
    let (mut found, mut rest) = (Vec::new(), &spoken[..]);
    let next_chapters = chapters.iter().map(|chapter| chapter.start_ms).chain([u64::MAX]);
    for end_ms in next_chapters {
        let (chapter, later) =
            rest.split_at(rest.iter().take_while(|(_, segment)| segment.start_ms < end_ms).count());
        split(chapter, options, &mut found);
        rest = later;
    }
    Ok(found)
}

/// Adds the chunks of segments that have text, with their indexes.
fn split(spoken: &[(usize, &Segment)], options: ChunkOptions, found: &mut Vec<Chunk>) {
    let ChunkOptions { unit, size, overlap } = options;
    let measure = |from: usize, to: usize| {
        let starts = spoken.get(to).zip(spoken.get(from));
        starts.map_or(0, |((_, to), (_, from))| to.start_ms.saturating_sub(from.start_ms))
    };
    let weights: Vec<u64> = match unit {
        ChunkUnit::Milliseconds => Vec::new(),
        // One more for the space between two segments.
        ChunkUnit::Tokens => {
            spoken.iter().map(|(_, one)| tokens::estimate(&one.text).saturating_add(1)).collect()
        }
    };
    let tokens_of = |range: Range<usize>| {
        weights.get(range).map_or(0, |weights| weights.iter().copied().fold(0, u64::saturating_add))
    };
    // Whether a chunk that begins at `from` has room for the segment `to`.
    let has_room = |from: usize, to: usize, used: u64| match unit {
        ChunkUnit::Milliseconds => measure(from, to) < size,
        ChunkUnit::Tokens => used.saturating_add(tokens_of(to..to + 1)) <= size,
    };
    let is_overlap = |from: usize, to: usize| match unit {
        ChunkUnit::Milliseconds => measure(from, to) <= overlap,
        ChunkUnit::Tokens => tokens_of(from..to) <= overlap && tokens_of(from..to + 1) <= size,
    };
    let (mut from, mut done) = (0, 0);
    while from < spoken.len() {
        let (mut to, mut used) = (from + 1, tokens_of(from..from + 1));
        while to < spoken.len() && (to <= done || has_room(from, to, used)) {
            used = used.saturating_add(tokens_of(to..to + 1));
            to += 1;
        }
        if to < spoken.len() {
            to = longest_pause(spoken, (done + 1).max(from + (to - from).div_ceil(2)), to);
        }
        found.extend(join(spoken.get(from..to).unwrap_or_default()));
        if to >= spoken.len() {
            break;
        }
        // The next chunk has at least the segment after this one.
        done = to;
        while to > from + 1 && is_overlap(to - 1, done) {
            to -= 1;
        }
        from = to;
    }
}

/// Where the longest pause is: before which segment from `first` to `last`. Without pauses it is `last`.
fn longest_pause(spoken: &[(usize, &Segment)], first: usize, last: usize) -> usize {
    let pause = |at: usize| {
        let (_, before) = spoken.get(at.checked_sub(1)?)?;
        let (_, after) = spoken.get(at)?;
        let pause = after.start_ms.saturating_sub(before.end_ms());
        (pause >= PAUSE_MS).then_some((pause, at))
    };
    (first..=last).filter_map(pause).max().map_or(last, |(_, at)| at)
}

fn join(segments: &[(usize, &Segment)]) -> Option<Chunk> {
    let ((index, first), others) = segments.split_first()?;
    let mut chunk = Chunk::new(*index, first);
    for (index, segment) in others {
        chunk.push(*index, segment);
    }
    Some(chunk)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transcript::paragraph::tests::any_segments;

    fn texts(segments: &[Segment], unit: ChunkUnit, size: u64, overlap: u64) -> Vec<String> {
        let found = chunks(segments, &[], ChunkOptions { unit, size, overlap }).unwrap();
        found.into_iter().map(|chunk| chunk.text).collect()
    }

    fn numbered(count: u64) -> Vec<Segment> {
        (0..count).map(|n| Segment::new(format!("{n}"), n * 10_000, 10_000)).collect()
    }

    #[test]
    fn chunks_by_time_keep_size_and_overlap() {
        let segments = numbered(7);
        let by_time = |size, overlap| texts(&segments, ChunkUnit::Milliseconds, size, overlap);
        assert_eq!(by_time(30_000, 0), ["0 1 2", "3 4 5", "6"]);
        assert_eq!(by_time(30_000, 10_000), ["0 1 2", "2 3 4", "4 5 6"]);
        assert_eq!(by_time(5_000, 0), ["0", "1", "2", "3", "4", "5", "6"]);
        assert_eq!(by_time(70_000, 35_000), ["0 1 2 3 4 5 6"]);
    }

    #[test]
    fn chunks_end_at_chapters_and_pauses() {
        let mut segments = numbered(7);
        let options = ChunkOptions { unit: ChunkUnit::Milliseconds, size: 40_000, overlap: 20_000 };
        let texts = |segments: &[Segment], chapters: &[u64]| {
            let chapter = |start_ms: &u64| Chapter { title: "a".to_owned(), start_ms: *start_ms };
            let chapters: Vec<_> = chapters.iter().map(chapter).collect();
            let found = chunks(segments, &chapters, options).unwrap();
            found.into_iter().map(|chunk| chunk.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&segments, &[]), ["0 1 2 3", "2 3 4 5", "4 5 6"]);
        assert_eq!(texts(&segments, &[0, 30_000, 35_000]), ["0 1 2", "3", "4 5 6"]);
        segments[2].duration_ms = 9_000;
        assert_eq!(texts(&segments, &[]), ["0 1 2", "1 2 3 4", "3 4 5 6"]);
        segments[0].duration_ms = 5_000;
        assert_eq!(texts(&segments, &[])[0], "0 1 2", "the pause is in the first half");
    }

    #[test]
    fn chunks_by_tokens_keep_size_and_overlap() {
        let segments = numbered(7);
        // Two tokens each.
        let by_tokens = |size, overlap| texts(&segments, ChunkUnit::Tokens, size, overlap);
        assert_eq!(by_tokens(6, 0), ["0 1 2", "3 4 5", "6"]);
        assert_eq!(by_tokens(6, 3), ["0 1 2", "2 3 4", "4 5 6"]);
        assert_eq!(by_tokens(1, 0), ["0", "1", "2", "3", "4", "5", "6"]);
        let long = [Segment::new("a".repeat(100), 0, 1), Segment::new("b", 1, 1)];
        assert_eq!(texts(&long, ChunkUnit::Tokens, 4, 2).len(), 2);
    }

    #[test]
    fn chunks_invalid_sizes_are_rejected() {
        for (size, overlap) in [(0, 0), (10, 6), (1, 1), (1, u64::MAX)] {
            let options = ChunkOptions { unit: ChunkUnit::Tokens, size, overlap };
            assert!(chunks(&numbered(2), &[], options).is_err(), "{size} {overlap}");
        }
        assert!(texts(&[], ChunkUnit::Tokens, u64::MAX, 0).is_empty());
    }

    proptest! {
        #[test]
        fn chunks_cover_all_words_in_order(
            segments in any_segments(),
            by_time in any::<bool>(),
            size in 1_u64..20_000,
            overlap in 0_u64..10_000,
            chapters in prop::collection::btree_set(0_u64..60_000, 0..4),
        ) {
            let (unit, size) =
                if by_time { (ChunkUnit::Milliseconds, size) } else { (ChunkUnit::Tokens, size / 200 + 1) };
            let options = ChunkOptions { unit, size, overlap: overlap % (size / 2 + 1) };
            let chapters: Vec<_> = chapters.into_iter().map(|start_ms| Chapter { title: String::new(), start_ms }).collect();
            let found = chunks(&segments, &chapters, options).unwrap();
            let mut next = 0;
            for chunk in &found {
                // Each chunk has at least one segment that the chunks before do not have, and leaves no words out.
                prop_assert!(chunk.segments.end > next && !chunk.text.is_empty());
                let skipped = segments.iter().take(chunk.segments.start).skip(next);
                prop_assert!(skipped.clone().all(|segment| segment.text.trim().is_empty()));
                prop_assert_eq!(segments[chunk.segments.start].start_ms, chunk.start_ms);
                prop_assert!(chunk.end_ms >= chunk.start_ms);
                let starts = segments[chunk.segments.clone()].iter().map(|segment| segment.start_ms);
                let (first, last) = (chunk.start_ms, starts.max().unwrap());
                prop_assert!(chapters.iter().all(|one| one.start_ms <= first || one.start_ms > last));
                next = chunk.segments.end;
            }
            prop_assert!(segments.iter().skip(next).all(|segment| segment.text.trim().is_empty()));
            let all: usize = segments.iter().map(|segment| segment.text.len() + 1).sum();
            prop_assert!(found.iter().map(|chunk| chunk.text.len()).sum::<usize>() <= 5 * all);
        }
    }
}
