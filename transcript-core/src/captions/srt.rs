//! SRT, as leniently as players read it.
//!
//! Removed are the cue numbers, the text after the times, the formatting tags of [`super::markup`] and ASS
//! overrides. Entities are decoded. A blank line ends a cue only if another cue follows: text after a blank
//! line is still text.

use super::{
    CaptionError,
    cue_collector::CueCollector,
    cue_file::CueFile,
    timing::{TimingLine, lines},
};

pub(super) fn parse(text: &str) -> Result<CueCollector, CaptionError> {
    let mut file = CueFile::default();
    for (line, number) in lines(text).zip(1..) {
        let times = match TimingLine::parse(line) {
            TimingLine::NotTiming => {
                if file.is_open() {
                    file.push_line(line);
                } else if line.chars().any(char::is_alphabetic) {
                    // Text before the first cue has no times.
                    file.count_left_out(number);
                }
                continue;
            }
            TimingLine::Invalid => None,
            TimingLine::Times(start, end) => Some((start, end)),
        };
        remove_number(&mut file);
        file.end()?;
        file.begin(times, number);
    }
    if !file.has_timing() {
        return Err(CaptionError::not_captions("The text has no line with the times of a cue."));
    }
    file.finish()
}

/// Removes the line before a timing line if it is the number of the next cue.
fn remove_number(file: &mut CueFile) {
    let payload = file.payload();
    let last = payload.strip_suffix('\n').unwrap_or(payload).rsplit('\n').next().unwrap_or("");
    let number = last.trim();
    if !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) {
        let length = payload.len().saturating_sub(last.len() + 1);
        file.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use crate::captions::{CaptionErrorKind, CaptionFormat, parse_as};

    fn check(body: &str, expect: &[(&str, u64, u64)]) {
        let segments = parse_as(CaptionFormat::Srt, body.as_bytes()).unwrap();
        let found: Vec<_> = segments.iter().map(|s| (s.text.as_str(), s.start_ms, s.end_ms())).collect();
        assert_eq!(found, expect, "{body:?}");
    }

    #[test]
    fn srt_cues_are_read() {
        check(
            "1\r\n00:00:01,000 --> 00:00:02,500 X1:10\r\n{\\an8}<i>Hello</i>\r\nthere\r\n\r\n\
             2\r\n0:00:03.0 --> 0:00:04\r\n<font color=\"#fff\">Tom &amp; Ann</font>\r\n",
            &[("Hello\nthere", 1_000, 2_500), ("Tom & Ann", 3_000, 4_000)],
        );
        check("00:00:01,000 --> 00:00:02,000\nno number", &[("no number", 1_000, 2_000)]);
    }

    #[test]
    fn srt_blank_lines_and_numbers_inside_cue_are_text() {
        check(
            "1\n00:00:01,000 --> 00:00:02,000\na\n\nb\n42\n\n2\n00:00:03,000 --> 00:00:04,000\n3\n3\n\
             00:00:05,000 --> 00:00:06,000\nc\n\n\n",
            &[("a\n\nb\n42", 1_000, 2_000), ("3", 3_000, 4_000), ("c", 5_000, 6_000)],
        );
        check("1\n00:00:01,000 --> 00:00:02,000\n\u{200B}\na\n\u{200B} \nb", &[("\na\n \nb", 1_000, 2_000)]);
    }

    #[test]
    fn srt_broken_cues_are_dropped() {
        check(
            "1\n00:00:05,000 --> 00:00:soon\nunreadable\n\n2\n00:00:01,000 --> 00:00:02,000\na --> b\n\n\
             3\n00:00:05,000 --> 00:00:04,000\nbackwards",
            &[("a --> b", 1_000, 2_000), ("backwards", 5_000, 5_000)],
        );
    }

    #[test]
    fn srt_other_formats_are_rejected() {
        let kind = |body: &str| parse_as(CaptionFormat::Srt, body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("words"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("1\n00:00:01,000 --> 00:00:02,000\n\n"), CaptionErrorKind::NoCues);
    }
}
