//! SRT, as leniently as players read it.
//!
//! Removed are the numbers, what follows the times, the formatting tags of [`super::markup`] and
//! ASS overrides. Entities are decoded. A blank line ends a cue only where another one follows:
//! text behind a blank line is words all the same.

use super::{
    CaptionError,
    cue_file::CueFile,
    cues::Cues,
    timing::{TimingLine, lines},
};

pub(super) fn parse(text: &str) -> Result<Cues, CaptionError> {
    let mut file = CueFile::default();
    for (line, number) in lines(text).zip(1..) {
        let times = match TimingLine::read(line) {
            TimingLine::None => {
                if file.is_open() {
                    file.line(line);
                } else if line.chars().any(char::is_alphabetic) {
                    // Words before the first cue have no times.
                    file.leave_out(number);
                }
                continue;
            }
            TimingLine::Broken => None,
            TimingLine::Times(start, end) => Some((start, end)),
        };
        forget_number(&mut file);
        file.end()?;
        file.begin(times, number);
    }
    if !file.has_timing() {
        return Err(CaptionError::not_captions("There is no line with the times of a cue in the text."));
    }
    file.finish()
}

/// Takes back the line before a timing line where it is the next cue's number.
fn forget_number(file: &mut CueFile) {
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
    fn cues_are_read() {
        check(
            "1\r\n00:00:01,000 --> 00:00:02,500 X1:10\r\n{\\an8}<i>Hello</i>\r\nthere\r\n\r\n\
             2\r\n0:00:03.0 --> 0:00:04\r\n<font color=\"#fff\">Tom &amp; Ann</font>\r\n",
            &[("Hello\nthere", 1_000, 2_500), ("Tom & Ann", 3_000, 4_000)],
        );
        check("00:00:01,000 --> 00:00:02,000\nno number", &[("no number", 1_000, 2_000)]);
    }

    #[test]
    fn blank_lines_and_numbers_inside_a_cue_are_words() {
        check(
            "1\n00:00:01,000 --> 00:00:02,000\na\n\nb\n42\n\n2\n00:00:03,000 --> 00:00:04,000\n3\n3\n\
             00:00:05,000 --> 00:00:06,000\nc\n\n\n",
            &[("a\n\nb\n42", 1_000, 2_000), ("3", 3_000, 4_000), ("c", 5_000, 6_000)],
        );
        check("1\n00:00:01,000 --> 00:00:02,000\n\u{200B}\na\n\u{200B} \nb", &[("\na\n \nb", 1_000, 2_000)]);
    }

    #[test]
    fn broken_cues_are_dropped() {
        check(
            "1\n00:00:05,000 --> 00:00:soon\nunreadable\n\n2\n00:00:01,000 --> 00:00:02,000\na --> b\n\n\
             3\n00:00:05,000 --> 00:00:04,000\nbackwards",
            &[("a --> b", 1_000, 2_000), ("backwards", 5_000, 5_000)],
        );
    }

    #[test]
    fn what_is_no_subrip_is_refused() {
        let kind = |body: &str| parse_as(CaptionFormat::Srt, body.as_bytes()).unwrap_err().kind();
        assert_eq!(kind("words"), CaptionErrorKind::NotCaptions);
        assert_eq!(kind("1\n00:00:01,000 --> 00:00:02,000\n\n"), CaptionErrorKind::NoCues);
    }
}
