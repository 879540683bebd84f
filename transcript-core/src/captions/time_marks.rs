//! Times inside the text of a cue, and the words between them.

use std::borrow::Cow;

use super::is_blank;
use crate::transcript::{Segment, Word, remove_unfit_words, set_word_durations};

/// Duration of a word whose source names only its start.
pub(super) const UNKNOWN_DURATION: u64 = u64::MAX;

/// Time at a place in a text: what follows, up to the next mark, is spoken from that time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeMark {
    /// Byte offset in the text.
    pub(crate) offset: usize,
    /// The time in milliseconds.
    pub(crate) time_ms: i64,
}

/// Line of a format that writes a line in parts, with the times of the parts.
#[derive(Debug, Default)]
pub(super) struct TimedLine<'a> {
    /// The text of all parts.
    pub(super) text: Cow<'a, str>,
    /// The times of the parts, in milliseconds from the start of the line.
    pub(super) marks: Vec<TimeMark>,
    /// Number of parts with text.
    pub(super) parts: usize,
}

impl TimedLine<'_> {
    /// Whether the line is a single word.
    ///
    /// Its time is the start of the line, so the platform writes no time for it.
    pub(super) fn is_word(&self) -> bool {
        self.marks.is_empty() && self.parts <= 1 && !self.text.trim().contains(char::is_whitespace)
    }
}

/// The words of a cue: the parts between the marks, without the white space around them.
///
/// What precedes the first mark is spoken from the start of the cue. A mark before white space, or at the end, is the
/// end of the previous word.
pub(super) fn words(text: &str, start_ms: i64, marks: &[TimeMark]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    if marks.is_empty() {
        return words;
    }
    let start = TimeMark { offset: 0, time_ms: start_ms };
    let ends = marks.iter().map(|mark| mark.offset).chain([text.len()]);
    for (mark, end) in [start].iter().chain(marks).zip(ends) {
        let time_ms = u64::try_from(mark.time_ms).unwrap_or(0);
        let part = text.get(mark.offset..end).unwrap_or("");
        if !is_blank(part) {
            words.push(Word::new(part.trim(), time_ms, UNKNOWN_DURATION));
        } else if let Some(last) = words.last_mut()
            && last.duration_ms == UNKNOWN_DURATION
        {
            last.duration_ms = time_ms.saturating_sub(last.start_ms);
        }
    }
    words
}

/// Removes the marks of the first `length` bytes of a text, which are removed from it.
pub(super) fn remove_front(marks: &mut Vec<TimeMark>, length: usize) {
    let before = marks.partition_point(|mark| mark.offset <= length);
    // The last of them is the time of what follows.
    marks.drain(..before.saturating_sub(1));
    for mark in marks {
        mark.offset = mark.offset.saturating_sub(length);
    }
}

/// Sets the unknown durations, and removes the words of segments in which they do not fit.
///
/// The segments are ordered by start.
pub(super) fn complete_words(segments: &mut [Segment]) {
    let known: Vec<u64> =
        segments.iter().flat_map(|segment| &segment.words).map(|word| word.duration_ms).collect();
    if known.is_empty() {
        return;
    }
    set_word_durations(segments);
    let words = segments.iter_mut().flat_map(|segment| &mut segment.words);
    for (word, known) in words.zip(known).filter(|(_, known)| *known != UNKNOWN_DURATION) {
        word.duration_ms = known;
    }
    remove_unfit_words(segments);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(list: &[(usize, i64)]) -> Vec<TimeMark> {
        list.iter().map(|&(offset, time_ms)| TimeMark { offset, time_ms }).collect()
    }

    fn check(text: &str, list: &[(usize, i64)], expect: &[(&str, u64, u64)]) {
        let found = words(text, 100, &marks(list));
        let found: Vec<_> = found.iter().map(|w| (w.text.as_str(), w.start_ms, w.duration_ms)).collect();
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn words_are_parts_between_marks() {
        let open = UNKNOWN_DURATION;
        check("so we", &[], &[]);
        check(
            "so we met",
            &[(2, 150), (5, 190)],
            &[("so", 100, open), ("we", 150, open), ("met", 190, open)],
        );
        check(" so we", &[(0, 120), (3, 150)], &[("so", 120, open), ("we", 150, open)]);
        check("so  we", &[(2, 130), (3, 150), (6, 170)], &[("so", 100, 30), ("we", 150, 20)]);
        check("日本", &[(3, 150), (3, 160)], &[("日", 100, 50), ("本", 160, open)]);
        // Impossible marks: a time before zero, and a place inside a character.
        check("so we", &[(2, -5)], &[("so", 100, open), ("we", 0, open)]);
        check("é", &[(1, 150)], &[]);
    }

    #[test]
    fn marks_of_removed_front_are_removed() {
        for (list, length, expect) in [
            (&[(2, 1), (5, 2), (9, 3)][..], 6, &[(0, 2), (3, 3)][..]),
            (&[(5, 2)], 5, &[(0, 2)]),
            (&[(9, 3)], 6, &[(3, 3)]),
            (&[], 6, &[]),
        ] {
            let mut found = marks(list);
            remove_front(&mut found, length);
            assert_eq!(found, marks(expect));
        }
    }

    #[test]
    fn words_out_of_order_are_removed() {
        let word = |text: &str, start| Word::new(text, start, UNKNOWN_DURATION);
        let mut segments = [
            Segment { words: vec![word("a", 0), word("b", 40)], ..Segment::new("a b", 0, 90) },
            Segment { words: vec![word("c", 60), word("d", 50)], ..Segment::new("c d", 50, 90) },
        ];
        segments[0].words[0].duration_ms = 30;
        complete_words(&mut segments);
        assert_eq!(segments[0].words, [Word::new("a", 0, 30), Word::new("b", 40, 10)]);
        assert_eq!(segments[1].words, []);
    }
}
