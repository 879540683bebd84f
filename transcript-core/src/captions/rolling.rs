//! Rolling captions: files in which each cue repeats the last line of the previous one.
//!
//! YouTube's WebVTT shows automatic captions in two lines that move up, so every line occurs two or three
//! times. Files derived from it have the same repetitions. Speakers also repeat themselves, so a repetition is
//! removed only between neighbours without a gap, only at a word boundary, and only in a file that clearly has
//! rolling captions.

use super::{cue_file::Cue, time_marks};

/// Maximum duration of a cue that only repeats text to move the lines up, in milliseconds.
const FILLER_MS_MAX: i64 = 50;

/// Maximum number of last lines that are compared with the beginning of the next cue; usual are two.
const LINES_MAX: usize = 4;

/// Parts of a cue that rolling captions of a format repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatUnit {
    /// Lines, or the first words of a line.
    Words,
    /// Whole lines only. TTML also has lyrics, whose words repeat within a line.
    Lines,
}

/// Length in bytes of the part of `next` that repeats the last lines of `previous`, if any.
fn repeated(previous: &str, next: &str) -> Option<usize> {
    let lines = || previous.lines().filter(|line| !line.trim().is_empty());
    let count = lines().count();
    (count.saturating_sub(LINES_MAX)..count).find_map(|first| {
        let mut rest = next;
        for word in lines().skip(first).flat_map(str::split_whitespace) {
            rest = rest.trim_start().strip_prefix(word)?;
            if rest.starts_with(|c: char| !c.is_whitespace()) {
                return None;
            }
        }
        Some(next.len() - rest.len())
    })
}

/// Whether the text of a cue begins with the last line of the previous one.
pub(crate) fn repeats(previous: &str, next: &str) -> bool {
    repeated(previous, next).is_some()
}

/// Repetition of the previous cue in a cue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repetition {
    /// There is a gap between the cues.
    NotTouching,
    /// There is no gap, and no sign of rolling captions.
    Nothing,
    /// This many leading bytes are a repetition, and more text follows.
    Prefix(usize),
    /// The whole cue only moves the lines up.
    Whole,
}

fn repetition(previous: &Cue, next: &Cue, unit: RepeatUnit) -> Repetition {
    if next.start_ms <= previous.start_ms || next.start_ms > previous.end_ms {
        return Repetition::NotTouching;
    }
    let Some(length) = repeated(&previous.text, &next.text) else { return Repetition::Nothing };
    let rest = next.text.get(length..).unwrap_or("");
    if !rest.trim().is_empty() {
        let ends_line =
            || rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n').starts_with('\n');
        let is_part = unit == RepeatUnit::Words || ends_line();
        return if is_part { Repetition::Prefix(length) } else { Repetition::Nothing };
    }
    // "No." and again "No." is speech. A filler is too short to be read, or lacks the times that its words had in the
    // previous cue. Where these come from highlighted copies, the line was said again. In TTML no duration is an
    // unknown end.
    let has_end = unit == RepeatUnit::Words || next.end_ms > next.start_ms;
    let is_short = has_end && next.end_ms - next.start_ms <= FILLER_MS_MAX;
    let lacks_times = previous.highlight.is_none() && !previous.marks.is_empty() && next.marks.is_empty();
    if is_short || lacks_times { Repetition::Whole } else { Repetition::Nothing }
}

/// Removes the repetitions from a file of rolling captions; leaves any other file unchanged.
///
/// The cues are ordered by start. A file has rolling captions if at least half of the neighbours without a gap repeat
/// text, and of all neighbours more than half, or a quarter where some cues only move the lines up: few cues of a film
/// touch, and those may be an answer that begins with the words of the question.
pub(super) fn remove_rolling_repeats(cues: &mut Vec<Cue>, unit: RepeatUnit) {
    let neighbours = cues.iter().zip(cues.iter().skip(1));
    let repetitions: Vec<_> = neighbours.map(|(previous, next)| repetition(previous, next, unit)).collect();
    let touching = repetitions.iter().filter(|&&found| found != Repetition::NotTouching).count();
    let repeating = touching - repetitions.iter().filter(|&&found| found == Repetition::Nothing).count();
    let is_rolling = if repetitions.contains(&Repetition::Whole) {
        repeating * 2 >= touching && repeating * 4 >= repetitions.len()
    } else {
        repeating >= 2 && repeating * 2 > repetitions.len()
    };
    if !is_rolling {
        return;
    }
    for (cue, found) in cues.iter_mut().skip(1).zip(repetitions) {
        match found {
            Repetition::NotTouching | Repetition::Nothing => {}
            Repetition::Prefix(length) => {
                let rest = cue.text.get(length..).unwrap_or("").trim_start();
                time_marks::remove_front(&mut cue.marks, cue.text.len() - rest.len());
                cue.text = rest.to_owned();
            }
            Repetition::Whole => cue.text.clear(),
        }
    }
    cues.retain(|cue| !cue.text.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::time_marks::TimeMark;

    fn check(cues: &[(i64, i64, &str)], expect: &[&str]) {
        let mut cues: Vec<_> = cues
            .iter()
            .map(|&(start_ms, end_ms, text)| Cue {
                start_ms,
                end_ms,
                marks: text
                    .find('*')
                    .map(|offset| TimeMark { offset, time_ms: start_ms })
                    .into_iter()
                    .collect(),
                text: text.replace('*', ""),
                highlight: None,
                part: 0,
            })
            .collect();
        remove_rolling_repeats(&mut cues, RepeatUnit::Words);
        let texts: Vec<_> = cues.iter().map(|cue| cue.text.as_str()).collect();
        assert_eq!(texts, expect);
    }

    #[test]
    fn rolling_lines_appear_once() {
        check(
            &[
                (0, 2_990, "late *trains"),
                (2_990, 3_000, "late trains"),
                (3_000, 5_000, "late trains\nare *warm"),
                (5_000, 5_010, "are warm"),
                (5_010, 7_000, "are warm\ntoday"),
            ],
            &["late trains", "are warm", "today"],
        );
        check(
            &[(0, 1_000, "a b"), (1_000, 2_000, "a b c d"), (2_000, 3_000, "a b c d e")],
            &["a b", "c d", "e"],
        );
        check(
            &[(0, 1_000, "x\na  b"), (900, 2_000, "x a\nb\nc"), (2_000, 3_000, "c\nd")],
            &["x\na  b", "c", "d"],
        );
        check(&[(0, 1_000, "now *then"), (1_000, 1_331, "now then")], &["now then"]);
    }

    #[test]
    fn rolling_repeated_speech_is_kept() {
        check(&[(0, 1_000, "No."), (1_000, 2_000, "No.")], &["No.", "No."]);
        check(&[(0, 1_000, "No."), (1_001, 2_000, "No. Never.")], &["No.", "No. Never."]);
        check(&[(0, 1_000, "No."), (0, 1_000, "No. Never.")], &["No.", "No. Never."]);
        check(&[(0, 1_000, "No"), (1_000, 2_000, "Nothing came")], &["No", "Nothing came"]);
        check(&[(0, 1_000, "No."), (1_000, 2_000, "No.\nNever.")], &["No.", "No.\nNever."]);
        // One chance repetition among many neighbours is not rolling.
        check(
            &[(0, 1, "a"), (1, 200, "b"), (200, 300, "c"), (300, 400, "c d"), (400, 500, "e")],
            &["a", "b", "c", "c d", "e"],
        );
        check(
            &[
                (0, 1_000, "Wait."),
                (1_000, 2_000, "Wait. Where to?"),
                (2_000, 3_000, "No."),
                (3_000, 4_000, "No. I said no."),
                (4_000, 5_000, "Go."),
            ],
            &["Wait.", "Wait. Where to?", "No.", "No. I said no.", "Go."],
        );
    }

    #[test]
    fn rolling_few_touching_cues_of_film_are_kept() {
        let mut cues: Vec<_> =
            (0..40_i64).map(|n| (n * 2_000, n * 2_000 + 1_900, "A line of the film.")).collect();
        cues[10] = (20_000, 22_000, "Wait.");
        cues[11] = (22_000, 23_900, "Wait. Where are you going?");
        cues[30] = (60_000, 62_000, "No.");
        cues[31] = (62_000, 63_900, "No. I said no.");
        let texts: Vec<_> = cues.iter().map(|&(.., text)| text).collect();
        check(&cues, &texts);
        // A short cue that repeats is no filler in such a file.
        cues[31] = (62_000, 62_040, "No.");
        let texts: Vec<_> = cues.iter().map(|&(.., text)| text).collect();
        check(&cues, &texts);
    }

    #[test]
    fn rolling_lines_with_pauses_appear_once() {
        check(
            &[
                (0, 1_990, "late trains"),
                (1_990, 2_000, "late trains"),
                (5_000, 6_990, "are warm"),
                (6_990, 7_000, "are warm"),
                (9_000, 10_990, "today"),
            ],
            &["late trains", "are warm", "today"],
        );
    }
}
