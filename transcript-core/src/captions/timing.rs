//! The lines that say when a cue of WebVTT or SRT is shown.

use super::decimal::{HUGE, scaled};

/// The arrow between a cue's start and its end.
pub(crate) const ARROW: &str = "-->";

/// What a line is, as far as times are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingLine {
    /// No timing line: text, a number, a header.
    None,
    /// Meant as one, but the times cannot be read or run backwards: its cue is dropped.
    Broken,
    /// The start and the end of a cue in milliseconds.
    Times(i64, i64),
}

impl TimingLine {
    /// Reads a line. What follows the end time are a cue's settings, which say where it is shown.
    pub(crate) fn read(line: &str) -> Self {
        let Some((start, rest)) = line.split_once(ARROW) else {
            return Self::None;
        };
        let (start, end) = (start.trim(), rest.split_whitespace().next().unwrap_or(""));
        // "Ten --> eleven" is speech; so are clock times with words around them.
        let is_meant =
            |part: &str| part.contains(':') && part.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if !is_meant(start) || !is_meant(end) || start.contains(char::is_whitespace) {
            return Self::None;
        }
        match (timestamp(start), timestamp(end)) {
            (Some(start), Some(end)) if start <= end => Self::Times(start, end),
            _ => Self::Broken,
        }
    }
}

/// A time as WebVTT, SRT and TTML's clock write it, in milliseconds: `(hours:)minutes:seconds(.fraction)`.
///
/// Hours may have any number of digits, the fraction too or be absent, and a comma does for the point.
pub(crate) fn timestamp(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (rest, seconds) = text.rsplit_once(':')?;
    let (hours, minutes) = rest.rsplit_once(':').unwrap_or(("0", rest));
    let whole = |part: &str, unit_ms: i64| {
        let is_number = !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        if is_number { Some(scaled(part, 0)?.saturating_mul(unit_ms).min(HUGE)) } else { None }
    };
    if !seconds.starts_with(|c: char| c.is_ascii_digit()) || seconds.contains(['e', 'E']) {
        return None;
    }
    let seconds = match seconds.split_once(',') {
        Some((whole, fraction)) => scaled(&format!("{whole}.{fraction}"), 3)?,
        None => scaled(seconds, 3)?,
    };
    let value =
        whole(hours, 3_600_000)?.saturating_add(whole(minutes, 60_000)?).saturating_add(seconds).min(HUGE);
    Some(if negative { -value } else { value })
}

/// A text's lines, whichever of the three line ends it uses.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_every_habit_are_read() {
        for (text, expect) in [
            ("00:00:01.500", Some(1_500)),
            ("00:01.500", Some(1_500)),
            ("1:02:03,004", Some(3_723_004)),
            ("100:00:00.000", Some(360_000_000)),
            ("00:12.20", Some(12_200)),
            ("00:12", Some(12_000)),
            ("00:12.", Some(12_000)),
            ("00:00:00.0005", Some(1)),
            ("-00:01.000", Some(-1_000)),
            ("99999999999999999999999:00:00", Some(HUGE)),
            ("12.5", None),
            ("1:2:3:4", None),
            ("00::01", None),
            ("a:01", None),
            ("00:1e3", None),
            ("00:-1", None),
            ("00:+1", None),
            (":01", None),
            ("00:", None),
            ("", None),
        ] {
            assert_eq!(timestamp(text), expect, "{text:?}");
        }
    }

    #[test]
    fn timing_lines_are_told_from_text() {
        use TimingLine::{Broken, None, Times};
        for (line, expect) in [
            ("00:01.000 --> 00:02.000", Times(1_000, 2_000)),
            ("00:01.000-->00:02.000", Times(1_000, 2_000)),
            (" 00:01.000\t-->  00:02.000 align:start position:0%", Times(1_000, 2_000)),
            ("00:00:01,000 --> 00:00:02,000  X1:1 X2:2", Times(1_000, 2_000)),
            ("00:01.000 --> 00:01.000", Times(1_000, 1_000)),
            ("00:02.000 --> 00:01.000", Broken),
            ("00:xx.000 --> 00:01.000", Broken),
            ("00:01.000 --> 00:0b", Broken),
            ("00:01.000", None),
            ("from 00:01 --> 00:02", None),
            ("10:30 train --> 11:00", None),
            ("a --> b", None),
            ("-->", None),
        ] {
            assert_eq!(TimingLine::read(line), expect, "{line:?}");
        }
    }

    #[test]
    fn all_line_ends_end_lines() {
        let split: Vec<_> = lines("a\nb\r\nc\rd\n\ne").collect();
        assert_eq!(split, ["a", "b", "c", "d", "", "e"]);
    }
}
