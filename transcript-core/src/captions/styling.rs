//! Padding and copies that styling tools add to a line.
//!
//! YouTube displays one shadow for a text, no fades, and dark text on a dark ground in its Android app. The usual tool,
//! `YTSubConverter`, therefore writes a line again for each shadow, at the same place and time, and for each frame of a
//! fade or a movement. The line is spoken once. Copies are recognized only among lines that name their place, as those
//! of such tools do.

use std::{borrow::Cow, collections::HashMap};

use crate::transcript::Segment;

const ZERO_WIDTH_SPACE: char = '\u{200B}';
const PADDING: &str = "\u{200B} \u{200B}";

/// Maximum duration of a frame in milliseconds: three pictures of 29.97 a second, with both times rounded.
///
/// `YTSubConverter` writes a frame for two pictures, and for three at the end of a fade.
const FRAME_MS_MAX: u64 = 101;

/// Fewest parts of a line with frames. Two lines that touch may be speech.
const PARTS_MIN: usize = 3;

/// Removes the padding from a span.
///
/// Styling tools pad each line with a zero width space, a space and another zero width space, and put zero width spaces
/// and byte order marks around every span. Both are removed, the padding as a unit; between two words its space stays.
/// A zero width space within a text stays, because Thai and Khmer are written with it.
pub(super) fn remove_padding(span: Cow<'_, str>) -> Cow<'_, str> {
    if !span.contains([ZERO_WIDTH_SPACE, '\u{FEFF}']) {
        return span;
    }
    let is_text = |c: char| c != ZERO_WIDTH_SPACE && !c.is_whitespace();
    let mut unpadded = String::with_capacity(span.len());
    let mut is_after_text = false;
    for part in span.replace('\u{FEFF}', "").split(PADDING) {
        let part = part.trim_matches(ZERO_WIDTH_SPACE);
        if is_after_text && part.starts_with(is_text) {
            unpadded.push(' ');
        }
        unpadded += part;
        is_after_text = part.chars().next_back().map_or(is_after_text, is_text);
    }
    let mut text = String::with_capacity(unpadded.len());
    let mut before = None;
    let mut after = unpadded.chars().skip(1);
    for c in unpadded.chars() {
        let next = after.next();
        let is_inside = before.is_some_and(is_text) && next.is_some_and(is_text);
        if c != ZERO_WIDTH_SPACE || is_inside {
            text.push(c);
        }
        before = Some(c);
    }
    Cow::Owned(text)
}

/// Parts of a line that follow each other: its frames and at most one longer part.
struct LineParts {
    indices: Vec<usize>,
    end_ms: u64,
    has_long: bool,
}

impl LineParts {
    /// Adds the next part of the line; returns whether it is one.
    ///
    /// A second long part is the line spoken again: the last frame of one may touch the first of the other.
    fn add(&mut self, index: usize, next: &Segment) -> bool {
        // Times are rounded to a millisecond.
        let touches = next.start_ms.abs_diff(self.end_ms) <= 1 && next.end_ms() > self.end_ms;
        let is_part = touches && !(self.has_long && is_long(next));
        if is_part {
            self.indices.push(index);
            self.end_ms = next.end_ms();
            self.has_long |= is_long(next);
        }
        is_part
    }
}

fn is_long(segment: &Segment) -> bool {
    segment.duration_ms > FRAME_MS_MAX
}

/// Merges the frames of each line into one segment with the time of all.
///
/// Only segments at the indices `placed` are merged: those whose lines name their place. Frames have the same text,
/// touch, and are too short to be read: "No." and again "No." is speech. Of lines with the same text at the same time,
/// some frames may remain. A line with times for several words stays as it is.
pub(super) fn merge_frames(segments: &mut Vec<Segment>, placed: &[usize]) {
    let parts = placed.iter().filter_map(|&index| Some((index, segments.get(index)?)));
    let mut parts: Vec<_> = parts.filter(|(_, part)| part.duration_ms > 0 && part.words.len() <= 1).collect();
    parts.sort_by_key(|(_, part)| part.start_ms);
    let mut lines: Vec<LineParts> = Vec::new();
    let mut latest: HashMap<&str, usize> = HashMap::new();
    for (index, part) in parts {
        let line = latest.get(part.text.as_str()).and_then(|line| lines.get_mut(*line));
        if !line.is_some_and(|line| line.add(index, part)) {
            latest.insert(&part.text, lines.len());
            lines.push(LineParts { indices: vec![index], end_ms: part.end_ms(), has_long: is_long(part) });
        }
    }
    let mut is_copy = vec![false; segments.len()];
    for line in lines.iter().filter(|line| line.indices.len() >= PARTS_MIN) {
        for (number, index) in line.indices.iter().enumerate() {
            if let (Some(segment), Some(is_copy)) = (segments.get_mut(*index), is_copy.get_mut(*index)) {
                *is_copy = number > 0;
                segment.duration_ms = line.end_ms.saturating_sub(segment.start_ms);
            }
        }
    }
    let mut is_copy = is_copy.into_iter();
    segments.retain(|_| is_copy.next() != Some(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Word;

    #[test]
    fn padding_of_span_is_removed() {
        for (span, expect) in [
            ("plain", "plain"),
            ("\u{200B} \u{200B}one\u{200B} \u{200B}", "one"),
            ("\u{200B}\n\u{200B}", "\n"),
            ("\u{200B}\u{200B} \u{200B}one", "one"),
            ("x\u{FEFF}y", "xy"),
            ("two \u{200B}words", "two words"),
            ("a\u{200B} \u{200B}b", "a b"),
            ("a\u{200B} \u{200B}\u{200B} \u{200B}b\u{200B} \u{200B}\nc", "a b\nc"),
            // A tone mark is no letter.
            ("แม่\u{200B}น้ำ", "แม่\u{200B}น้ำ"),
            ("\u{200B}", ""),
        ] {
            assert_eq!(remove_padding(Cow::Borrowed(span)), expect, "{span:?}");
        }
    }

    fn check(lines: &[(&str, u64, u64)], placed: &[usize], expect: &[(&str, u64, u64)]) {
        let mut segments: Vec<_> =
            lines.iter().map(|&(text, start, duration)| Segment::new(text, start, duration)).collect();
        merge_frames(&mut segments, placed);
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.duration_ms)).collect();
        assert_eq!(found, expect, "{lines:?}");
    }

    const ALL: [usize; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

    #[test]
    fn frames_of_line_become_one_segment() {
        check(
            &[
                ("slow", 3_184, 100),
                ("slow", 1, 49),
                ("late", 1, 1_017),
                ("slow", 50, 67),
                ("slow", 117, 66),
                ("slow", 184, 3_000),
                ("late", 1_018, 101),
                ("late", 1_119, 67),
            ],
            &ALL,
            &[("slow", 1, 3_283), ("late", 1, 1_185)],
        );
    }

    #[test]
    fn repeated_line_with_fades_stays_repeated() {
        check(
            &[
                ("Hallelujah", 0, 67),
                ("Hallelujah", 67, 67),
                ("Hallelujah", 134, 900),
                ("Hallelujah", 1_034, 67),
                // The first frame of the next line touches the last one of this.
                ("Hallelujah", 1_101, 67),
                ("Hallelujah", 1_168, 900),
                ("Hallelujah", 2_068, 67),
                ("Hallelujah", 2_135, 67),
                ("Hallelujah", 2_202, 900),
            ],
            &ALL,
            &[("Hallelujah", 0, 1_168), ("Hallelujah", 1_168, 1_034), ("Hallelujah", 2_202, 900)],
        );
    }

    #[test]
    fn frames_of_speech_stay() {
        for lines in [
            // Long enough to be read.
            &[("No.", 0, 400), ("No.", 400, 400)][..],
            &[("No.", 0, 102), ("No.", 102, 102), ("No.", 204, 102)],
            // Two parts.
            &[("that", 0, 300), ("that", 300, 80)],
            // A pause.
            &[("No.", 0, 67), ("No.", 69, 67), ("No.", 138, 67)],
            // Another line between them.
            &[("No.", 0, 67), ("Yes.", 67, 67), ("No.", 134, 67), ("No.", 201, 67)],
            // At the same time, and without a duration.
            &[("No.", 5, 67), ("No.", 5, 67), ("No.", 5, 67)],
            &[("No.", 0, 67), ("No.", 67, 400), ("No.", 467, 0)],
        ] {
            check(lines, &ALL, lines);
        }
        // Only the title names a place.
        let lines = [("Title", 0, 67), ("that", 0, 67), ("that", 67, 67), ("that", 134, 67)];
        check(&lines, &[0], &lines);
        let timed = |start| Segment {
            words: vec![Word::new("oh", start, 30), Word::new("no", start + 30, 37)],
            ..Segment::new("oh no", start, 67)
        };
        let mut segments = vec![timed(0), timed(67), timed(134)];
        merge_frames(&mut segments, &ALL);
        assert_eq!(segments, [timed(0), timed(67), timed(134)]);
    }
}
