//! Subtitle cues: display times and text, shared by SRT and WebVTT output.

use std::{borrow::Cow, ops::Range};

use crate::{
    captions::{
        cue_file::{BLANK_LINE_MARK, is_marked_blank},
        is_blank,
        rolling::repeats,
        timing::ARROW,
    },
    transcript::{Segment, TIME_MAX_MS, Word},
};

/// Longest time that a cue of unknown duration is shown, in milliseconds.
const UNKNOWN_DURATION_MS: u64 = 5_000;

/// Segment as a subtitle file shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SubtitleCue<'a> {
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    /// The text, with `\n` line ends.
    pub(super) text: Cow<'a, str>,
    /// The words of the segment.
    pub(super) words: &'a [Word],
}

/// Converts the segments with text to cues that end when the next one starts.
///
/// Automatic captions overlap, because a player shows two lines of them at once; subtitle files mean one at a
/// time. Segments that start together stay on the screen together. A duration of 0 is unknown, and players do not
/// show such a cue: it ends when the next one starts, at the latest after [`UNKNOWN_DURATION_MS`]. If a segment
/// begins with the last line of the previous one, the previous cue ends a millisecond early. Otherwise readers take
/// the pair for rolling captions and remove words that were spoken twice.
pub(super) fn subtitle_cues(segments: &[Segment]) -> Vec<SubtitleCue<'_>> {
    let mut cues: Vec<_> = segments.iter().filter(|segment| !is_blank(&segment.text)).map(cue).collect();
    let mut next: Option<(u64, usize)> = None;
    for index in (0..cues.len()).rev() {
        let later = cues.get(index + 1).map(|cue| cue.start_ms);
        let Some(start) = cues.get(index).map(|cue| cue.start_ms) else { continue };
        if let Some(later) = later
            && later > start
        {
            next = Some((later, index + 1));
        }
        let Some((limit, follower)) = next.filter(|&(limit, _)| limit > start) else { continue };
        let pair = cues.get(index).zip(cues.get(follower));
        let is_repeated =
            follower == index + 1 && pair.is_some_and(|(cue, next)| repeats(&cue.text, &next.text));
        if let Some(cue) = cues.get_mut(index) {
            cue.end_ms = cue.end_ms.min(if is_repeated { limit - 1 } else { limit });
        }
    }
    cues
}

/// The cues of a page of segments, which end as in the whole file, and the number of cues before them.
pub(super) fn page_cues(segments: &[Segment], page: Range<usize>) -> (usize, Vec<SubtitleCue<'_>>) {
    let count = |segments: &[Segment]| segments.iter().filter(|segment| !is_blank(&segment.text)).count();
    let (before, rest) = segments.split_at_checked(page.start).unwrap_or((segments, &[]));
    let mut cues = subtitle_cues(rest);
    cues.truncate(count(rest.get(..page.len()).unwrap_or(rest)));
    (count(before), cues)
}

fn cue(segment: &Segment) -> SubtitleCue<'_> {
    let text = if segment.text.contains(['\r', '\0']) {
        Cow::Owned(segment.text.replace("\r\n", "\n").replace('\r', "\n").replace('\0', "\u{FFFD}"))
    } else {
        Cow::Borrowed(segment.text.as_str())
    };
    let start_ms = segment.start_ms;
    let end_ms = match segment.duration_ms {
        // Parsers end a cue at the largest time.
        0 => start_ms.max(start_ms.saturating_add(UNKNOWN_DURATION_MS).min(TIME_MAX_MS)),
        _ => segment.end_ms(),
    };
    SubtitleCue { start_ms, end_ms, text, words: &segment.words }
}

/// Appends a time in the notation of both formats, with a comma or a point before the milliseconds.
pub(super) fn push_clock(file: &mut String, ms: u64, point: char) {
    let digit = |number: u64| char::from(b'0' + (number % 10) as u8);
    let hours = ms / 3_600_000;
    if hours < 100 {
        file.extend([digit(hours / 10), digit(hours)]);
    } else {
        file.push_str(&hours.to_string());
    }
    let (minutes, seconds) = (ms / 60_000 % 60, ms / 1_000 % 60);
    file.extend([':', digit(minutes / 10), digit(minutes), ':', digit(seconds / 10), digit(seconds), point]);
    file.extend([digit(ms / 100), digit(ms / 10), digit(ms)]);
}

/// Appends the timing line of a cue, with its line end.
pub(super) fn push_times(file: &mut String, cue: &SubtitleCue<'_>, point: char) {
    push_clock(file, cue.start_ms, point);
    file.extend([" ", ARROW, " "]);
    push_clock(file, cue.end_ms, point);
    file.push('\n');
}

/// Appends a cue's text, with a mark before each blank line because a blank line ends the cue.
///
/// The mark is invisible, and our own parsers remove it. A line that already looks like a marked one is written
/// with a character reference.
pub(super) fn push_with_marked_blank_lines(file: &mut String, text: &str) {
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            file.push('\n');
        }
        if line.trim().is_empty() {
            file.push(BLANK_LINE_MARK);
            file.push_str(line);
        } else if is_marked_blank(line) {
            file.push_str("&#8203;");
            file.extend(line.chars().skip(1));
        } else {
            file.push_str(line);
        }
    }
}

/// Whether a line has two times in it, such as `1:02.5` and `1:03,5`.
///
/// Some readers take any such line for the times of a cue, whatever else it has.
pub(super) fn has_two_times(line: &str) -> bool {
    let bytes = line.as_bytes();
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let is_time = |&(colon, _): &(usize, &str)| {
        let point = if digit(colon + 2) { colon + 3 } else { colon + 2 };
        let is_point = matches!(bytes.get(point), Some(b'.' | b','));
        colon > 0 && digit(colon - 1) && digit(colon + 1) && is_point && digit(point + 1)
    };
    line.match_indices(':').filter(is_time).nth(1).is_some()
}

/// The line with its colons as character references, so that no reader finds times in it.
pub(super) fn escape_times(line: &str) -> String {
    line.replace(':', "&#58;")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The segments that are read back from a subtitle file of these segments.
    ///
    /// None if no segment has a readable character: parsers reject such a file.
    pub(in crate::captions::write) fn read_back_segments(segments: &[Segment]) -> Vec<Segment> {
        let is_readable = |c: char| !c.is_whitespace() && !matches!(c, char::REPLACEMENT_CHARACTER | '\0');
        let cues = subtitle_cues(segments);
        if !cues.iter().any(|cue| cue.text.chars().any(is_readable)) {
            return Vec::new();
        }
        let segment = |cue: SubtitleCue<'_>| Segment::new(cue.text, cue.start_ms, cue.end_ms - cue.start_ms);
        cues.into_iter().map(segment).collect()
    }

    fn check(segments: &[(&str, u64, u64)], expect: &[(&str, u64, u64)]) {
        let segments: Vec<_> =
            segments.iter().map(|&(text, start, end)| Segment::new(text, start, end - start)).collect();
        let found = subtitle_cues(&segments);
        let found: Vec<_> = found.iter().map(|cue| (&*cue.text, cue.start_ms, cue.end_ms)).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn subtitle_cue_ends_at_next_start() {
        check(&[("a", 0, 50), ("b", 30, 70), ("c", 90, 95)], &[("a", 0, 30), ("b", 30, 70), ("c", 90, 95)]);
        check(&[("a", 0, 50), ("b", 0, 60), ("c", 40, 60)], &[("a", 0, 40), ("b", 0, 40), ("c", 40, 60)]);
        check(&[("a", 0, 0), (" ", 5, 6), ("b\r\nc\rd", 7, 8)], &[("a", 0, 7), ("b\nc\nd", 7, 8)]);
        // Out of order: no cue ends before it starts.
        check(&[("a", 50, 90), ("b", 10, 20)], &[("a", 50, 90), ("b", 10, 20)]);
    }

    #[test]
    fn subtitle_cue_of_unknown_duration_is_shown() {
        check(&[("a", 0, 0), ("b", 2_000, 2_000)], &[("a", 0, 2_000), ("b", 2_000, 7_000)]);
        check(
            &[("a", 0, 0), ("b", 0, 0), ("c", 9_000, 9_001)],
            &[("a", 0, 5_000), ("b", 0, 5_000), ("c", 9_000, 9_001)],
        );
        check(&[("No.", 0, 0), ("No.", 50, 50)], &[("No.", 0, 49), ("No.", 50, 5_050)]);
        let late = TIME_MAX_MS - 1;
        check(&[("a", late, late)], &[("a", late, TIME_MAX_MS)]);
    }

    #[test]
    fn subtitle_repeated_speech_is_separated() {
        check(&[("No.", 0, 50), ("No. Never.", 50, 90)], &[("No.", 0, 49), ("No. Never.", 50, 90)]);
    }

    #[test]
    fn subtitle_cues_of_pages_equal_those_of_file() {
        let list =
            [("a", 0, 50), ("b", 0, 60), (" ", 30, 40), ("c", 40, 40), ("No.", 90, 95), ("No.", 95, 99)];
        let segments: Vec<_> =
            list.iter().map(|&(text, start, end)| Segment::new(text, start, end - start)).collect();
        let all = subtitle_cues(&segments);
        for size in 1..=segments.len() {
            let starts = (0..segments.len()).step_by(size);
            let pages = starts.map(|start| page_cues(&segments, start..(start + size).min(segments.len())));
            let mut found = Vec::new();
            for (before, cues) in pages {
                assert_eq!(before, found.len(), "{size}");
                found.extend(cues);
            }
            assert_eq!(found, all, "{size}");
        }
        assert_eq!(page_cues(&segments, 9..12), (5, Vec::new()));
    }

    #[test]
    fn subtitle_two_times_in_line_are_detected() {
        for line in ["00:00:01,000 --> 00:00:02,000", "from 1:02.5 to 1:2,5", "1:02.503:04.5"] {
            assert!(has_two_times(line), "{line:?}");
        }
        for line in ["00:01 to 00:02", "1:02.5 and 3:04", ":01.5 :02.5", "1:02. 1:03.", "é:00.0", ""] {
            assert!(!has_two_times(line), "{line:?}");
        }
    }

    #[test]
    fn subtitle_clock_has_at_least_two_digits() {
        let clock = |ms, point| {
            let mut file = String::new();
            push_clock(&mut file, ms, point);
            file
        };
        assert_eq!(clock(3_723_004, ','), "01:02:03,004");
        assert_eq!(clock(359_999_999, '.'), "99:59:59.999");
        assert_eq!(clock(360_000_000, '.'), "100:00:00.000");
    }
}
