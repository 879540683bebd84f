//! The lines that say when a cue of WebVTT or SRT is shown.

use super::decimal::{HUGE, scaled};

/// The arrow between a cue's start and its end.
pub(crate) const ARROW: &str = "-->";
/// Arrows that stand there by mistake; they count between two whole times only.
const MISTAKEN: [&str; 4] = ["->", "-- >", "—>", "–>"];

/// What a line is, as far as times are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingLine {
    /// No timing line: text, a number, a header.
    None,
    /// Meant as one, but the times cannot be read: its cue is dropped.
    Broken,
    /// The start and the end of a cue in milliseconds. An end before the start is read as the start: such a
    /// cue is never shown, but its words are there.
    Times(i64, i64),
}

impl TimingLine {
    /// Reads a line. What follows the end time are a cue's settings, which say where it is shown.
    pub(crate) fn read(line: &str) -> Self {
        let Some((start, rest)) = line.split_once(ARROW) else {
            return Self::mistaken(line);
        };
        let (start, end) = (start.trim(), end_time(rest.trim_start()));
        // "Ten --> eleven" is speech; so are clock times with words around them.
        let is_meant =
            |part: &str| part.contains(':') && part.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if !is_meant(start) || !is_meant(end) || start.contains(char::is_whitespace) {
            return Self::None;
        }
        match (timestamp(start), timestamp(end)) {
            (Some(start), Some(end)) => Self::Times(start, end.max(start)),
            _ => Self::Broken,
        }
    }
}

impl TimingLine {
    /// A line with an arrow that is none, between two times with all their parts.
    fn mistaken(line: &str) -> Self {
        let is_whole = |time: &str| {
            time.starts_with(|c: char| c.is_ascii_digit()) && time.contains(':') && time.contains(['.', ','])
        };
        MISTAKEN
            .iter()
            .find_map(|arrow| {
                let (start, end) = line.split_once(arrow)?;
                let (start, end) = (start.trim(), end_time(end.trim_start()));
                let times = (timestamp(start)?, timestamp(end)?);
                (is_whole(start) && is_whole(end)).then_some(Self::Times(times.0, times.1.max(times.0)))
            })
            .unwrap_or(Self::None)
    }
}

/// The end time at the beginning of what follows the arrow: all up to white space, but no settings that
/// follow a time in WebVTT's own form without any.
fn end_time(rest: &str) -> &str {
    let word = rest.split_whitespace().next().unwrap_or("");
    let digits = word.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.')).unwrap_or(word.len());
    match word.split_at_checked(digits) {
        Some((time, settings)) if !settings.is_empty() && is_plain(time) => time,
        _ => word,
    }
}

/// Whether a time is in WebVTT's own form: `(hours:)mm:ss.mmm`.
fn is_plain(time: &str) -> bool {
    let is_number =
        |part: &str, digits: usize| part.len() == digits && part.bytes().all(|c| c.is_ascii_digit());
    let Some((rest, fraction)) = time.split_once('.') else { return false };
    let mut parts = rest.rsplit(':');
    is_number(fraction, 3)
        && parts.next().is_some_and(|seconds| is_number(seconds, 2))
        && parts.next().is_some_and(|minutes| is_number(minutes, 2))
        && parts.next().is_none_or(|hours| !hours.is_empty())
        && parts.next().is_none()
}

/// A time as WebVTT, SRT and TTML's clock write it, in milliseconds: `(hours:)minutes:seconds(.fraction)`.
///
/// Read more leniently than players do, since who drops a cue drops words: every part may have any number of
/// digits, minutes and seconds may be 60 or more, the fraction may be absent, and a comma does for the point.
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
            ("00:00:60.000", Some(60_000)),
            ("00:75:00.000", Some(4_500_000)),
            ("0:1:2.3", Some(62_300)),
            ("0:000:001.5000", Some(1_500)),
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
            ("00:02.000 --> 00:01.000", Times(2_000, 2_000)),
            ("00:01.000 --> 00:02.000line:0", Times(1_000, 2_000)),
            ("00:01.000 --> 100:00:02.000\u{FFFD}align:end", Times(1_000, 360_002_000)),
            ("00:01.000 --> 00:02.00line:0", Broken),
            ("00:01.000 --> 0:02.000line:0", Broken),
            ("00:01.000 --> 1:2:00:02.000line:0", Broken),
            ("\u{b}00:01.000\u{3000}-->\u{b}00:02.000", Times(1_000, 2_000)),
            ("00:xx.000 --> 00:01.000", Broken),
            ("00:01.000 --> 00:0b", Broken),
            ("00:01.000", None),
            ("00:00:03,000 -> 00:00:04,000", Times(3_000, 4_000)),
            ("00:03.000 -- > 00:04.000", Times(3_000, 4_000)),
            ("00:03.000 –> 00:04.000 align:start", Times(3_000, 4_000)),
            ("10:30 -> 11:00", None),
            ("3.5 -> 4.5", None),
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
