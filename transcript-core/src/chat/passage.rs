//! Passages: numbered runs of whole segments, sized for reading, ranking and citation.

use std::ops::Range;

use super::tokens;
use crate::transcript::{PAUSE_MS, Segment, append, ends_sentence, is_unspaced};

/// From this many letters on, a passage ends with the next segment that ends a sentence.
const LETTERS_ENOUGH: usize = 160;
/// A segment that would make a passage longer than this many letters starts the next one.
const LETTERS_MAX: usize = 320;

/// A numbered run of whole segments of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Number by which a model cites the passage: from 1, in transcript order.
    pub number: u32,
    /// Start of its first segment, in milliseconds from the start of the video.
    pub start_ms: u64,
    /// End of its last segment, in milliseconds from the start of the video.
    pub end_ms: u64,
    /// Its text, without line breaks.
    pub text: String,
    /// Indices of its segments in the transcript.
    pub(super) segments: Range<usize>,
}

/// Text of a run of segments without line breaks, with the position of each segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PassageLine {
    pub(super) text: String,
    /// Byte offset and index of each segment.
    offsets: Vec<(usize, usize)>,
}

impl PassageLine {
    /// Joins the text of the segments with these indices.
    pub(super) fn new(segments: &[Segment], indices: Range<usize>) -> Self {
        let mut line = Self::default();
        for index in indices {
            let Some(segment) = segments.get(index) else { break };
            let before = line.text.len();
            append(&mut line.text, &segment.text);
            if line.text.len() > before {
                line.offsets.push((before, index));
            }
        }
        line
    }

    /// Returns the indices of the segments that overlap this byte range of the text.
    pub(super) fn segments(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        let first = self.offsets.iter().rev().find(|(at, _)| *at <= bytes.start)?.1;
        let last = self.offsets.iter().rev().find(|(at, _)| *at < bytes.end)?.1;
        Some(first..last + 1)
    }

    /// Returns the byte range of the segments that overlap this byte range of the text.
    pub(super) fn segment_bytes(&self, bytes: &Range<usize>) -> Range<usize> {
        let starts = || self.offsets.iter().map(|(at, _)| *at);
        let first = starts().rev().find(|at| *at <= bytes.start).unwrap_or(0);
        first..starts().find(|at| *at >= bytes.end).unwrap_or(self.text.len())
    }
}

/// Splits a transcript into passages. No segment is split; segments without text are in no passage.
///
/// A passage ends before a long pause, at a sentence end once it is long enough, and before the segment that would
/// make it too long.
///
/// ```
/// use transcript_core::{chat::passages, transcript::Segment};
///
/// let spoken = [("First,", 0), ("this.", 900), ("Later.", 9_000)];
/// let segments = spoken.map(|(text, start)| Segment::new(text, start, 900));
/// let passages = passages(&segments);
/// assert_eq!(passages[0].text, "First, this.");
/// assert_eq!((passages[1].number, passages[1].start_ms), (2, 9_000));
/// ```
pub fn passages(segments: &[Segment]) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let mut letters = 0;
    let mut end_ms: Option<u64> = None;
    for (index, segment) in segments.iter().enumerate() {
        if segment.text.trim().is_empty() {
            continue;
        }
        let more = letter_count(&segment.text);
        let is_after_pause = end_ms.is_some_and(|end| segment.start_ms >= end.saturating_add(PAUSE_MS));
        match found.last_mut() {
            Some(last) if !is_after_pause && !is_full(&last.text, letters, more) => {
                append(&mut last.text, &segment.text);
                last.end_ms = last.end_ms.max(segment.end_ms());
                last.segments.end = index + 1;
                letters += more;
            }
            _ => {
                let number = u32::try_from(found.len()).unwrap_or(u32::MAX).saturating_add(1);
                let mut text = String::new();
                append(&mut text, &segment.text);
                let (start_ms, end_ms) = (segment.start_ms, segment.end_ms());
                found.push(Passage { number, start_ms, end_ms, text, segments: index..index + 1 });
                letters = more;
            }
        }
        // A duration of 0 is an unknown duration, so the pause after it is unknown too.
        end_ms = (segment.duration_ms > 0).then(|| end_ms.unwrap_or(0).max(segment.end_ms()));
    }
    found
}

fn is_full(text: &str, letters: usize, more: usize) -> bool {
    letters + more > LETTERS_MAX || (letters >= LETTERS_ENOUGH && ends_sentence(text))
}

/// Length for a human reader: a letter of an unspaced script counts twice.
fn letter_count(text: &str) -> usize {
    text.chars().map(|c| if is_unspaced(c) { 2 } else { 1 }).sum()
}

impl Passage {
    /// Estimates the tokens of the passage and its number; never far too few.
    pub(super) fn tokens(&self) -> u64 {
        tokens::estimate(&self.text).saturating_add(tokens::PASSAGE_OVERHEAD)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(segments: &[Segment]) -> Vec<String> {
        passages(segments).into_iter().map(|passage| passage.text).collect()
    }

    #[test]
    fn passage_ends_at_pause_sentence_or_limit() {
        let spoken = |text: &str, count: u64| -> Vec<usize> {
            let segments: Vec<_> = (0..count).map(|n| Segment::new(text, n * 10, 10)).collect();
            texts(&segments).iter().map(|text| text.matches("word").count()).collect()
        };
        assert_eq!(spoken("a word is.", 40), [16, 16, 8]);
        assert_eq!(spoken("a word is ", 70), [32, 32, 6]);
        assert_eq!(spoken(&"word ".repeat(500), 2), [500, 500]);
        let pause = [Segment::new("a", 0, 1_000), Segment::new("b", 4_000, 10), Segment::new("c", 4_010, 0)];
        assert_eq!(texts(&pause), ["a", "b c"]);
        assert!(passages(&[Segment::new(" \n", 0, 1)]).is_empty());
    }

    #[test]
    fn passage_line_maps_bytes_to_segments() {
        let segments = [("one two", 0), ("", 1), ("three", 2), ("four", 3)]
            .map(|(text, start)| Segment::new(text, start, 1));
        let line = PassageLine::new(&segments, 0..4);
        assert_eq!(line.text, "one two three four");
        for (words, expect) in
            [("two", 0..1), ("two three", 0..3), ("three", 2..3), ("four", 3..4), ("e f", 2..4)]
        {
            let start = line.text.find(words).unwrap();
            assert_eq!(line.segments(&(start..start + words.len())), Some(expect), "{words}");
        }
        assert_eq!(PassageLine::default().segments(&(0..1)), None);
    }

    proptest! {
        #[test]
        fn passage_contains_every_segment_with_text_once(lengths in proptest::collection::vec((0..200_usize, 0..4_000_u64), 0..60)) {
            let mut at = 0;
            let segments: Vec<_> = lengths
                .into_iter()
                .map(|(letters, gap)| {
                    at += gap;
                    Segment::new("x".repeat(letters), at, 500)
                })
                .collect();
            let found = passages(&segments);
            let mut covered: Vec<usize> = Vec::new();
            for (index, passage) in found.iter().enumerate() {
                prop_assert_eq!(passage.number as usize, index + 1);
                prop_assert_eq!(&PassageLine::new(&segments, passage.segments.clone()).text, &passage.text);
                prop_assert!(passage.segments.len() == 1 || passage.text.len() <= 2 * LETTERS_MAX);
                covered.extend(passage.segments.clone().filter(|at| !segments[*at].text.is_empty()));
            }
            let spoken: Vec<usize> = (0..segments.len()).filter(|at| !segments[*at].text.is_empty()).collect();
            prop_assert_eq!(covered, spoken);
        }
    }
}
