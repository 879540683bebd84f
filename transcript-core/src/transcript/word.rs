//! Words of a segment, each with its time.

use serde::{Deserialize, Serialize};

use super::{Segment, TIME_MAX_MS};
use crate::error::{Error, Result};

/// Maximum number of words with times in a transcript.
pub const WORDS_MAX: usize = 2_000_000;

/// A word of a segment with the time in which it is spoken.
///
/// Its text is a part of the segment's text; the words of a segment occur there in order and do not overlap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Word {
    /// The text, without white space around it.
    pub text: String,
    /// Start in milliseconds from the beginning of the video.
    pub start_ms: u64,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

impl Word {
    /// Creates a word with this text and these times in milliseconds.
    pub fn new(text: impl Into<String>, start_ms: u64, duration_ms: u64) -> Self {
        Self { text: text.into(), start_ms, duration_ms }
    }

    /// End in milliseconds from the beginning of the video.
    pub fn end_ms(&self) -> u64 {
        self.start_ms.saturating_add(self.duration_ms)
    }
}

/// Sets the durations of words whose source names only their starts.
///
/// A word lasts until the next one starts, at most until its segment ends. The last word of a segment also ends when
/// the next segment starts: captions that scroll show each line for the time of two.
pub fn set_word_durations(segments: &mut [Segment]) {
    for index in 0..segments.len() {
        let Some(last) = segments.get(index).and_then(|segment| segment.words.last()) else { continue };
        let limit = default_words_end(segments, index, last.start_ms);
        let Some(segment) = segments.get_mut(index) else { return };
        let starts: Vec<u64> =
            segment.words.iter().skip(1).map(|word| word.start_ms).chain([limit]).collect();
        for (word, end) in segment.words.iter_mut().zip(starts) {
            word.duration_ms = end.min(limit).saturating_sub(word.start_ms);
        }
    }
}

/// When the last word of a segment ends, which starts at `last_ms`, if its source does not say: see
/// [`set_word_durations`].
pub(crate) fn default_words_end(segments: &[Segment], index: usize, last_ms: u64) -> u64 {
    let Some(segment) = segments.get(index) else { return 0 };
    let next = segments.get(index + 1).map(|next| next.start_ms).filter(|next| *next > last_ms);
    next.map_or(segment.end_ms(), |next| next.min(segment.end_ms()))
}

/// Finds words in a text: the byte offset of each. `None` if they do not occur in order.
pub(crate) fn find_words(text: &str, words: &[Word]) -> Option<Vec<usize>> {
    let mut end = 0;
    let offset = |word: &Word| {
        let at = end + text.get(end..)?.find(&word.text)?;
        end = at + word.text.len();
        Some(at)
    };
    words.iter().map(offset).collect()
}

/// Removes the words of each segment whose words are invalid; the segment stays.
pub fn remove_unfit_words(segments: &mut [Segment]) {
    for segment in segments {
        if check_words(std::slice::from_ref(segment)).is_err() {
            segment.words.clear();
        }
    }
}

/// Checks the words of all segments.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`]: too many words, an empty word, one that does not occur in its segment's text in
/// order, words that are not ordered by start, or a time beyond 1,000 hours.
pub(super) fn check_words(segments: &[Segment]) -> Result<()> {
    if segments.iter().map(|segment| segment.words.len()).fold(0, usize::saturating_add) > WORDS_MAX {
        return Err(Error::invalid("the transcript has more than 2,000,000 words with times"));
    }
    for segment in segments.iter().filter(|segment| !segment.words.is_empty()) {
        let words = &segment.words;
        if words.iter().any(|word| word.text.is_empty()) || find_words(&segment.text, words).is_none() {
            return Err(Error::invalid("the words of a segment do not occur in its text in this order"));
        }
        if words.iter().any(|word| word.start_ms > TIME_MAX_MS || word.duration_ms > TIME_MAX_MS) {
            return Err(Error::invalid("a time of a word is beyond 1,000 hours"));
        }
        if !words.is_sorted_by_key(|word| word.start_ms) {
            return Err(Error::invalid("the words of a segment are not ordered by start"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(text: &str, start_ms: u64, duration_ms: u64, words: &[(&str, u64)]) -> Segment {
        let words = words.iter().map(|(text, start)| Word::new(*text, *start, 0)).collect();
        Segment { words, ..Segment::new(text, start_ms, duration_ms) }
    }

    #[test]
    fn word_durations_end_at_next_word_and_line() {
        let mut segments = [
            segment("so we", 0, 4_000, &[("so", 0), ("we", 500)]),
            segment("go", 2_000, 4_000, &[("go", 2_100)]),
            segment("", 6_000, 10, &[]),
        ];
        set_word_durations(&mut segments);
        let durations: Vec<u64> =
            segments.iter().flat_map(|segment| &segment.words).map(|word| word.duration_ms).collect();
        assert_eq!(durations, [500, 1_500, 3_900]);
    }

    #[test]
    fn words_outside_text_are_invalid() {
        assert!(check_words(&[segment("a b a", 0, 9, &[("a", 1), ("b", 2), ("a", 3)])]).is_ok());
        for words in [&[("b", 1), ("b", 2)][..], &[("c", 1)], &[("", 1)], &[("a", 2), ("b", 1)]] {
            assert!(check_words(&[segment("a b a", 0, 9, words)]).is_err(), "{words:?}");
        }
        assert!(check_words(&[segment("a", 0, 9, &[("a", TIME_MAX_MS + 1)])]).is_err());
    }
}
