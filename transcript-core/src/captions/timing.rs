//! Timing lines of cues in WebVTT, SRT and SBV.

use std::borrow::Cow;

use super::decimal::{HUGE, parse_scaled};

/// Arrow between the start and the end of a cue.
pub(crate) const ARROW: &str = "-->";
/// Wrong arrows found in files; accepted only between two complete times.
const WRONG_ARROWS: [&str; 4] = ["->", "-- >", "—>", "–>"];
/// Characters between the numbers of a time.
const SEPARATORS: [char; 3] = [':', '.', ','];

/// Timing content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingLine {
    /// Not a timing line: text, a number, a header.
    NotTiming,
    /// A timing line with unreadable times: its cue is dropped.
    Invalid,
    /// Start and end of a cue in milliseconds.
    ///
    /// An end before the start is set to the start: players never show such a cue, but its text is kept.
    Times(i64, i64),
}

impl TimingLine {
    /// Parses a line.
    ///
    /// Text after the end time is the cue's settings, which define its position on the screen.
    pub(crate) fn parse(line: &str) -> Self {
        let Some((start, rest)) = line.split_once(ARROW) else {
            return Self::parse_wrong_arrow(line)
                .or_else(|| Self::parse_sbv(line))
                .unwrap_or(Self::NotTiming);
        };
        let (start, rest) = (start.trim(), rest.trim());
        let is_spaced = start.contains(char::is_whitespace);
        if (is_spaced || rest.is_empty()) && !is_spaced_time(start) {
            return Self::NotTiming;
        }
        if rest.is_empty() {
            return Self::Invalid;
        }
        let start = if is_spaced { Cow::Owned(join_spaced(start)) } else { Cow::Borrowed(start) };
        let joined =
            if is_spaced || end_time(rest).ends_with(SEPARATORS) { join_spaced(rest) } else { String::new() };
        let end = Some(end_time(&joined)).filter(|end| parse_timestamp(end).is_some());
        let end = end.unwrap_or_else(|| end_time(rest));
        // "Ten --> eleven" is speech, and so is a line with words around clock times.
        let looks_like_time =
            |part: &str| part.contains(':') && part.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if !looks_like_time(&start) || !looks_like_time(end) || is_spaced && !is_whole(end) {
            return Self::NotTiming;
        }
        match (parse_timestamp(&start), parse_timestamp(end)) {
            (Some(start), Some(end)) => Self::Times(start, end.max(start)),
            _ => Self::Invalid,
        }
    }
}

impl TimingLine {
    /// Parses a line with a wrong arrow between two complete times.
    fn parse_wrong_arrow(line: &str) -> Option<Self> {
        WRONG_ARROWS.iter().find_map(|arrow| {
            let (start, end) = line.split_once(arrow)?;
            let (start, end) = (start.trim(), end_time(end.trim_start()));
            let times = (parse_timestamp(start)?, parse_timestamp(end)?);
            (is_whole(start) && is_whole(end)).then_some(Self::Times(times.0, times.1.max(times.0)))
        })
    }

    /// Parses the timing line of YouTube's SBV: `0:00:01.000,0:00:03.000` and nothing else.
    fn parse_sbv(line: &str) -> Option<Self> {
        let (start, end) = line.trim().split_once(',')?;
        let is_time = |time: &str| is_webvtt_time(time) && time.matches(':').count() == 2;
        if !is_time(start) || !is_time(end) {
            return None;
        }
        let times = (parse_timestamp(start)?, parse_timestamp(end)?);
        Some(Self::Times(times.0, times.1.max(times.0)))
    }
}

/// Whether a part of a line is a time with a fraction.
fn is_whole(time: &str) -> bool {
    time.starts_with(|c: char| c.is_ascii_digit()) && time.contains(':') && time.contains(['.', ','])
}

/// Whether a part of a line is nothing but a time with a fraction, possibly with white space in it.
fn is_spaced_time(part: &str) -> bool {
    is_whole(part) && part.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || SEPARATORS.contains(&c))
}

/// The text without white space beside separators.
///
/// Translation programs and character recognition write it: `00: 00: 05, 500`.
fn join_spaced(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !joined.is_empty() && !joined.ends_with(SEPARATORS) && !word.starts_with(SEPARATORS) {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

/// End time at the beginning of the text after the arrow.
///
/// It ends at white space, or at settings that directly follow a time in WebVTT's own form.
fn end_time(rest: &str) -> &str {
    let word = rest.split_whitespace().next().unwrap_or("");
    let digits = word.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.')).unwrap_or(word.len());
    match word.split_at_checked(digits) {
        Some((time, settings)) if !settings.is_empty() && is_webvtt_time(time) => time,
        _ => word,
    }
}

/// Whether a time is in WebVTT's own form: `(hours:)mm:ss.mmm`.
fn is_webvtt_time(time: &str) -> bool {
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

/// Parses a clock time of WebVTT, SRT or TTML, `(hours:)minutes:seconds(.fraction)`, as milliseconds.
///
/// More lenient than players, because a dropped cue is lost text: every part may have any number of digits,
/// minutes and seconds may be 60 or more, the fraction may be absent, and a comma may replace the point.
pub(crate) fn parse_timestamp(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (rest, seconds) = text.rsplit_once(':')?;
    let (hours, minutes) = rest.rsplit_once(':').unwrap_or(("0", rest));
    let whole = |part: &str, unit_ms: i64| {
        let is_number = !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        if is_number { Some(parse_scaled(part, 0)?.saturating_mul(unit_ms).min(HUGE)) } else { None }
    };
    if !seconds.starts_with(|c: char| c.is_ascii_digit()) || seconds.contains(['e', 'E']) {
        return None;
    }
    let seconds = match seconds.split_once(',') {
        Some((whole, fraction)) => parse_scaled(&format!("{whole}.{fraction}"), 3)?,
        None => parse_scaled(seconds, 3)?,
    };
    let value =
        whole(hours, 3_600_000)?.saturating_add(whole(minutes, 60_000)?).saturating_add(seconds).min(HUGE);
    Some(if negative { -value } else { value })
}

/// Splits a text into lines at any of the three line ends.
///
/// `\r\r\n` is one line end: programs on Windows write it by converting line ends twice.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line).split('\r')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_all_notations_are_read() {
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
            assert_eq!(parse_timestamp(text), expect, "{text:?}");
        }
    }

    #[test]
    fn timing_line_is_distinguished_from_text() {
        use TimingLine::{Invalid, NotTiming, Times};
        for (line, expect) in [
            ("00:01.000 --> 00:02.000", Times(1_000, 2_000)),
            ("00:01.000-->00:02.000", Times(1_000, 2_000)),
            (" 00:01.000\t-->  00:02.000 align:start position:0%", Times(1_000, 2_000)),
            ("00:00:01,000 --> 00:00:02,000  X1:1 X2:2", Times(1_000, 2_000)),
            ("00:01.000 --> 00:01.000", Times(1_000, 1_000)),
            ("00:02.000 --> 00:01.000", Times(2_000, 2_000)),
            ("00:01.000 --> 00:02.000line:0", Times(1_000, 2_000)),
            ("00:01.000 --> 100:00:02.000\u{FFFD}align:end", Times(1_000, 360_002_000)),
            ("00:01.000 --> 00:02.00line:0", Invalid),
            ("00:01.000 --> 0:02.000line:0", Invalid),
            ("00:01.000 --> 1:2:00:02.000line:0", Invalid),
            ("\u{b}00:01.000\u{3000}-->\u{b}00:02.000", Times(1_000, 2_000)),
            ("00:xx.000 --> 00:01.000", Invalid),
            ("00:01.000 --> 00:0b", Invalid),
            ("00:00:05, 500 --> 00:00:07, 000", Times(5_500, 7_000)),
            ("00: 00: 05,500 --> 00: 00: 07,900 X1:10", Times(5_500, 7_900)),
            ("00:00:05,500 --> 00:00:07, 900", Times(5_500, 7_900)),
            ("00:05.500 --> 00:07. on", Times(5_500, 7_000)),
            ("00:00:05 500, 1 --> 00:00:07,900", Invalid),
            ("00:00:05,000 -->", Invalid),
            ("10:30 -->", NotTiming),
            ("10:30, 11:00 --> 12:00", NotTiming),
            ("0:00:01.000,0:00:03.000", Times(1_000, 3_000)),
            ("0:00:01.000,0:00:03.000 and on", NotTiming),
            ("00:01.000,00:03.000", NotTiming),
            ("10:30,11:00", NotTiming),
            ("00:01.000", NotTiming),
            ("00:00:03,000 -> 00:00:04,000", Times(3_000, 4_000)),
            ("00:03.000 -- > 00:04.000", Times(3_000, 4_000)),
            ("00:03.000 –> 00:04.000 align:start", Times(3_000, 4_000)),
            ("10:30 -> 11:00", NotTiming),
            ("3.5 -> 4.5", NotTiming),
            ("from 00:01 --> 00:02", NotTiming),
            ("10:30 train --> 11:00", NotTiming),
            ("a --> b", NotTiming),
            ("-->", NotTiming),
        ] {
            assert_eq!(TimingLine::parse(line), expect, "{line:?}");
        }
    }

    #[test]
    fn lines_split_at_all_line_ends() {
        let split: Vec<_> = lines("a\nb\r\nc\rd\n\ne\r\r\nf\r\r\n\r\r\ng").collect();
        assert_eq!(split, ["a", "b", "c", "d", "", "e", "f", "", "g"]);
    }
}
