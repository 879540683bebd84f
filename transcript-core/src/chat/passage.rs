//! Passages: runs of whole segments, numbered, of a size that can be read, ranked and cited.

use std::ops::Range;

use super::tokens;
use crate::transcript::{PAUSE_MS, Segment, append, ends_sentence, is_unspaced};

/// A passage of this many letters ends with the next sentence that ends with a segment.
const LETTERS_ENOUGH: usize = 160;
/// A passage never grows beyond this many letters by another segment.
const LETTERS_MAX: usize = 320;

/// A run of whole segments of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its number, by which a model cites it: from 1, in the order of the transcript.
    pub number: u32,
    /// When its first segment starts, in milliseconds from the video's beginning.
    pub start_ms: u64,
    /// When its last segment ends, in milliseconds from the video's beginning.
    pub end_ms: u64,
    /// Its words, on one line.
    pub text: String,
    /// Its segments, by their places in the transcript.
    pub(super) segments: Range<usize>,
}

/// The words of some segments on one line, and where each segment begins in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// Where a segment's words begin in the text, and which segment that is; by place.
    joints: Vec<(usize, usize)>,
}

impl Line {
    /// The words of the segments at these places.
    pub(super) fn of(segments: &[Segment], places: Range<usize>) -> Self {
        let mut line = Self::default();
        for place in places {
            let Some(segment) = segments.get(place) else { break };
            let before = line.text.len();
            append(&mut line.text, &segment.text);
            if line.text.len() > before {
                line.joints.push((before, place));
            }
        }
        line
    }

    /// The segments that have a part of these bytes of the text.
    pub(super) fn segments(&self, bytes: &Range<usize>) -> Option<Range<usize>> {
        let first = self.joints.iter().rev().find(|(at, _)| *at <= bytes.start)?.1;
        let last = self.joints.iter().rev().find(|(at, _)| *at < bytes.end)?.1;
        Some(first..last + 1)
    }
}

/// The transcript as passages. No segment is split; segments without a word are in none.
///
/// A passage ends before a long pause, where it is long enough with a sentence, and before the segment that would
/// make it too long.
///
/// ```
/// use transcript_core::{chat::passages, transcript::Segment};
///
/// let segments = [Segment::new("First,", 0, 900), Segment::new("this.", 900, 900), Segment::new("Later.", 9_000, 900)];
/// let passages = passages(&segments);
/// assert_eq!(passages[0].text, "First, this.");
/// assert_eq!((passages[1].number, passages[1].start_ms), (2, 9_000));
/// ```
pub fn passages(segments: &[Segment]) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let mut letters = 0;
    let mut end_ms: Option<u64> = None;
    for (place, segment) in segments.iter().enumerate() {
        if segment.text.trim().is_empty() {
            continue;
        }
        let more = weight(&segment.text);
        let is_after_pause = end_ms.is_some_and(|end| segment.start_ms >= end.saturating_add(PAUSE_MS));
        match found.last_mut() {
            Some(last) if !is_after_pause && !is_full(&last.text, letters, more) => {
                append(&mut last.text, &segment.text);
                last.end_ms = last.end_ms.max(segment.end_ms());
                last.segments.end = place + 1;
                letters += more;
            }
            _ => {
                let number = u32::try_from(found.len()).unwrap_or(u32::MAX).saturating_add(1);
                let mut text = String::new();
                append(&mut text, &segment.text);
                let (start_ms, end_ms) = (segment.start_ms, segment.end_ms());
                found.push(Passage { number, start_ms, end_ms, text, segments: place..place + 1 });
                letters = more;
            }
        }
        // A duration of zero is one that nobody knows, and so is the silence behind it.
        end_ms = (segment.duration_ms > 0).then(|| end_ms.unwrap_or(0).max(segment.end_ms()));
    }
    found
}

fn is_full(text: &str, letters: usize, more: usize) -> bool {
    letters + more > LETTERS_MAX || (letters >= LETTERS_ENOUGH && ends_sentence(text))
}

/// A text's length for people: a letter of a script that needs few of them counts twice.
fn weight(text: &str) -> usize {
    text.chars().map(|c| if is_unspaced(c) { 2 } else { 1 }).sum()
}

impl Passage {
    /// About how many tokens it is with its number, never far too few.
    pub(super) fn tokens(&self) -> u64 {
        tokens::of(&self.text).saturating_add(tokens::OF_A_NUMBER)
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
    fn a_passage_ends_at_a_pause_a_sentence_or_its_limit() {
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
    fn bytes_of_a_line_lead_to_their_segments() {
        let segments = [("one two", 0), ("", 1), ("three", 2), ("four", 3)]
            .map(|(text, start)| Segment::new(text, start, 1));
        let line = Line::of(&segments, 0..4);
        assert_eq!(line.text, "one two three four");
        for (words, expect) in
            [("two", 0..1), ("two three", 0..3), ("three", 2..3), ("four", 3..4), ("e f", 2..4)]
        {
            let start = line.text.find(words).unwrap();
            assert_eq!(line.segments(&(start..start + words.len())), Some(expect), "{words}");
        }
        assert_eq!(Line::default().segments(&(0..1)), None);
    }

    proptest! {
        #[test]
        fn every_segment_with_words_is_in_one_passage(lengths in proptest::collection::vec((0..200_usize, 0..4_000_u64), 0..60)) {
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
            for (place, passage) in found.iter().enumerate() {
                prop_assert_eq!(passage.number as usize, place + 1);
                prop_assert_eq!(&Line::of(&segments, passage.segments.clone()).text, &passage.text);
                prop_assert!(passage.segments.len() == 1 || passage.text.len() <= 2 * LETTERS_MAX);
                covered.extend(passage.segments.clone().filter(|at| !segments[*at].text.is_empty()));
            }
            let spoken: Vec<usize> = (0..segments.len()).filter(|at| !segments[*at].text.is_empty()).collect();
            prop_assert_eq!(covered, spoken);
        }
    }
}
