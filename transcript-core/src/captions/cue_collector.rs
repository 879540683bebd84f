//! Collector for the cues of every parser: limits, order and final checks in one place.

use icu_properties::{CodePointMapData, props::GeneralCategory};

use super::{
    CaptionError, CaptionErrorKind, SEGMENTS_MAX, TIME_MAX_MS,
    parsed::{Occurrences, ParsedCaptions, is_unreadable},
    styling,
    time_marks::{self, TimeMark, TimedLine, UNKNOWN_DURATION},
};
use crate::{
    text::is_blank_sign,
    transcript::{LanguageTag, Segment, WORDS_MAX, Word},
};

/// Whether a text shows nothing: it has only white space, invisible characters, and accents without a letter.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(is_blank_char)
}

fn is_blank_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_whitespace() || c == '\0';
    }
    c.is_whitespace()
        || is_blank_sign(c)
        || matches!(
            CodePointMapData::<GeneralCategory>::new().get(c),
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
        )
}

/// Cues of a body, collected one after the other.
#[derive(Debug, Default)]
pub(super) struct CueCollector {
    segments: Vec<Segment>,
    /// Number of words in the segments.
    words: usize,
    /// Indices of the segments that are a single word, whose time is that of its segment.
    single_words: Vec<usize>,
    /// The place on the screen that the last segment's line names.
    place: Option<i64>,
    /// Indices of the segments whose line names its place, as in styled captions.
    placed: Vec<usize>,
    left_out: Occurrences,
    /// Language named by the body.
    pub(super) language: Option<LanguageTag>,
    /// Kind of text named by the body.
    pub(super) kind: Option<String>,
}

impl CueCollector {
    /// Adds a cue with a duration; an absent start or duration counts as zero.
    ///
    /// A cue without text is dropped, and so is one that starts after [`TIME_MAX_MS`].
    pub(super) fn add_with_duration(
        &mut self,
        text: String,
        start: i64,
        duration: i64,
    ) -> Result<(), CaptionError> {
        self.add_between(text, start, start.saturating_add(duration.max(0)))
    }

    /// Adds a cue with a start and an end; times before zero count as zero.
    pub(super) fn add_between(&mut self, text: String, start: i64, end: i64) -> Result<(), CaptionError> {
        self.add_timed(text, start, end, &[])
    }

    /// Adds a line with a start and a duration, like [`Self::add_with_duration`], and the times of its parts.
    ///
    /// A line that equals the one before it, at the same `place` and time, is a copy in another style and is dropped.
    pub(super) fn add_line(
        &mut self,
        mut line: TimedLine<'_>,
        start: i64,
        duration: i64,
        place: Option<i64>,
    ) -> Result<(), CaptionError> {
        let (is_word, index) = (line.is_word(), self.segments.len());
        for mark in &mut line.marks {
            mark.time_ms = mark.time_ms.saturating_add(start);
        }
        let end = start.saturating_add(duration.max(0));
        self.add_timed(line.text.into_owned(), start, end, &line.marks)?;
        if self.segments.len() == index {
            return Ok(());
        }
        let is_at_same_place = place.is_some() && place == self.place;
        self.place = place;
        if is_at_same_place && matches!(self.segments.as_slice(), [.., before, last] if before == last) {
            let copy = self.segments.pop();
            self.words -= copy.map_or(0, |copy| copy.words.len());
            return Ok(());
        }
        self.placed.extend(place.map(|_| index));
        if is_word {
            self.single_words.push(index);
        }
        Ok(())
    }

    /// Adds a cue like [`Self::add_between`], with the times inside its text.
    pub(super) fn add_timed(
        &mut self,
        text: String,
        start: i64,
        end: i64,
        marks: &[TimeMark],
    ) -> Result<(), CaptionError> {
        let start_ms = start;
        let start = u64::try_from(start).unwrap_or(0);
        let end = u64::try_from(end).unwrap_or(0).min(TIME_MAX_MS);
        if is_blank(&text) {
            return Ok(());
        }
        if start > TIME_MAX_MS {
            self.left_out.add(None);
            return Ok(());
        }
        if self.segments.len() >= SEGMENTS_MAX {
            return Err(too_many());
        }
        let mut segment = Segment::new(text, start, end.saturating_sub(start));
        if self.words.saturating_add(marks.len()) < WORDS_MAX {
            segment.words = time_marks::words(&segment.text, start_ms, marks);
            self.words += segment.words.len();
        }
        // A zero byte is not a character of XML, WebVTT or PostgreSQL's text: all of them would reject it.
        if segment.text.contains('\0') {
            let texts = segment.words.iter_mut().map(|word| &mut word.text).chain([&mut segment.text]);
            texts.for_each(|text| *text = text.replace('\0', "\u{FFFD}"));
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Gives the lines of a single word their time, if the other lines have words.
    ///
    /// The line of another source may be a whole sentence in a script without spaces.
    fn add_single_words(&mut self) {
        let count = if self.words == 0 { 0 } else { WORDS_MAX - self.words };
        for index in self.single_words.drain(..).take(count) {
            if let Some(segment) = self.segments.get_mut(index) {
                segment.words = vec![Word::new(segment.text.trim(), segment.start_ms, UNKNOWN_DURATION)];
            }
        }
    }

    /// Counts a cue with unreadable times, if it has text.
    pub(super) fn count_left_out(&mut self, text: &str) {
        if !is_blank(text) {
            self.left_out.add(None);
        }
    }

    /// Sets the counts of cues that a parser has left out so far.
    pub(super) fn set_left_out(&mut self, left_out: Occurrences) {
        self.left_out = left_out;
    }

    /// Returns the result, with the segments ordered by start.
    pub(super) fn into_parsed(mut self) -> Result<ParsedCaptions, CaptionError> {
        if self.segments.is_empty() {
            return Err(if self.left_out.count > 0 {
                CaptionError::malformed(
                    "The captions have cues, but no cue's times and text can be read, or all are beyond 1,000 hours.",
                )
            } else {
                CaptionError::new(CaptionErrorKind::NoCues, "The captions are well formed but have no text.")
            });
        }
        let is_lost = |segment: &Segment| segment.text.chars().all(|c| c.is_whitespace() || is_unreadable(c));
        if self.segments.iter().all(is_lost) {
            return Err(CaptionError::malformed("No character of the captions' text can be read."));
        }
        self.add_single_words();
        styling::merge_frames(&mut self.segments, &self.placed);
        self.segments.sort_by_key(|segment| segment.start_ms);
        time_marks::complete_words(&mut self.segments);
        Ok(ParsedCaptions {
            segments: self.segments,
            unreadable: Occurrences::default(),
            left_out: self.left_out,
            language: self.language,
            kind: self.kind,
        })
    }
}

/// Error of a body with too many cues.
pub(super) fn too_many() -> CaptionError {
    CaptionError::new(
        CaptionErrorKind::TooLarge,
        format!("The captions have more than {SEGMENTS_MAX} segments."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cues: &[(&str, i64, i64)], expect: &[(&str, u64, u64)]) {
        let mut collector = CueCollector::default();
        for &(text, start, duration) in cues {
            collector.add_with_duration(text.to_owned(), start, duration).unwrap();
        }
        let segments = collector.into_parsed().unwrap().segments;
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.duration_ms)).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn collector_times_are_clamped_to_limits() {
        let max = i64::try_from(TIME_MAX_MS).unwrap();
        check(&[("a", -500, 2_000)], &[("a", 0, 1_500)]);
        check(&[("a", -500, 100)], &[("a", 0, 0)]);
        check(&[("a", 10, -5)], &[("a", 10, 0)]);
        check(&[("a", 10, i64::MAX)], &[("a", 10, TIME_MAX_MS - 10)]);
        check(
            &[("a", i64::MIN, i64::MAX), ("b", max, 5), ("c", max + 1, 5)],
            &[("a", 0, 0), ("b", TIME_MAX_MS, 0)],
        );
    }

    #[test]
    fn collector_drops_blank_cues_and_orders_by_start() {
        check(
            &[("b", 20, 1), (" \u{200B}\n", 0, 1), ("a", 10, 1), ("c", 10, 2)],
            &[("a", 10, 1), ("c", 10, 2), ("b", 20, 1)],
        );
        check(&[("x\0y", 0, 1)], &[("x\u{FFFD}y", 0, 1)]);
    }

    #[test]
    fn text_without_visible_characters_is_blank() {
        for text in [
            "",
            " \t\u{A0}\u{3000}\n\0",
            "\u{200B}\u{200D}\u{2060}\u{FEFF}",
            "\u{AD}\u{34F}\u{61C}\u{3164}\u{2800}",
            "\u{202A}\u{202C}\u{2066}\u{2069}",
            "\u{301} \u{FE0F}\u{20DD}",
            "\u{E0061}",
            "\u{FFF9}\u{FFFA}\u{FFFB}",
        ] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in
            ["a", "♪", "[Music]", "-", "\u{FFFD}", "é", "e\u{301}", "ー", "\u{903}", "👍\u{FE0F}", "…"]
        {
            assert!(!is_blank(text), "{text:?}");
        }
    }

    #[test]
    fn collector_limits_number_of_cues() {
        let mut cues = CueCollector::default();
        for _ in 0..SEGMENTS_MAX {
            cues.add_with_duration("a".to_owned(), 0, 1).unwrap();
        }
        cues.add_with_duration(" ".to_owned(), 0, 1).unwrap();
        assert_eq!(
            cues.add_with_duration("a".to_owned(), 0, 1).unwrap_err().kind(),
            CaptionErrorKind::TooLarge
        );
        assert_eq!(CueCollector::default().into_parsed().unwrap_err().kind(), CaptionErrorKind::NoCues);
    }
}
