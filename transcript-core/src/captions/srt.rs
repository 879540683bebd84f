//! SRT, as leniently as players read it, and SBV, which differs in its timing lines only.
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
    // Number of the open cue, or of the first one before it opens.
    let mut cue_number = None;
    for (line, number) in lines(text).zip(1..) {
        let times = match TimingLine::parse(line) {
            TimingLine::NotTiming => {
                if file.is_open() {
                    file.push_line(line);
                } else if let Some(first) = as_number(line) {
                    cue_number = Some(first);
                } else if line.chars().any(char::is_alphabetic) {
                    // Text before the first cue has no times.
                    file.count_left_out(number);
                }
                continue;
            }
            TimingLine::Invalid => None,
            TimingLine::Times(start, end) => Some((start, end)),
        };
        if file.is_open() {
            cue_number = remove_number(&mut file, cue_number);
        }
        file.end()?;
        file.begin(times, number);
    }
    // A file that was cut may end in the number of a cue.
    file.push_line("");
    remove_number(&mut file, cue_number);
    if !file.has_timing() {
        return Err(CaptionError::not_captions("The text has no line with the times of a cue."));
    }
    file.finish()
}

/// Removes the last line with text if it is the number of the next cue, and returns that number.
///
/// A number that stays is returned too, unless the file has had no cue numbers so far.
///
/// Directly before a timing line every number is one. Before blank lines, in files with doubled line ends, it follows a
/// blank line too, and is the number after `previous`.
fn remove_number(file: &mut CueFile, previous: Option<u64>) -> Option<u64> {
    let payload = file.payload();
    let text = payload.trim_end();
    let last = text.rsplit('\n').next().unwrap_or("");
    let number = as_number(last)?;
    let before = text.get(..text.len() - last.len()).unwrap_or("");
    let is_direct = payload.get(text.len()..).is_some_and(|rest| rest.matches('\n').count() == 1);
    let follows_blank = before.lines().next_back().is_some_and(|line| line.trim().is_empty());
    let is_next = previous.is_some_and(|previous| previous.checked_add(1) == Some(number));
    let is_cue_number = is_direct || follows_blank && is_next && !before.trim().is_empty();
    if is_cue_number {
        let length = before.len();
        file.truncate(length);
    }
    (is_cue_number || previous.is_some()).then_some(number)
}

/// The number that a line consists of.
fn as_number(line: &str) -> Option<u64> {
    let number = line.trim();
    let is_number = !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit());
    is_number.then(|| number.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::captions::{CaptionErrorKind, CaptionFormat, parse_as, parse_with_report};

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
    fn srt_doubled_line_ends_leave_no_numbers() {
        let body = "1\n00:00:01,000 --> 00:00:02,500\nHello\nthere\n\n2\n00:00:03,000 --> 00:00:04,000\nBye\n\n\
                    3\n00:00:05,000 --> 00:00:06,000\n4\n";
        let expect = [("Hello\nthere", 1_000, 2_500), ("Bye", 3_000, 4_000), ("4", 5_000, 6_000)];
        check(body, &expect);
        check(&body.replace('\n', "\r\r\n"), &expect);
        let doubled = [("Hello\n\nthere", 1_000, 2_500), ("Bye", 3_000, 4_000), ("4", 5_000, 6_000)];
        check(&body.replace('\n', "\n\n"), &doubled);
        check(&body.replace('\n', "\r\n\r\n"), &doubled);
    }

    #[test]
    fn srt_numbers_are_text_in_file_without_cue_numbers() {
        check(
            "00:00:01,000 --> 00:00:02,000\na\n\n42\n\n00:00:03,000 --> 00:00:04,000\nb\n\n43\n\n\
             00:00:05,000 --> 00:00:06,000\nc",
            &[("a\n\n42", 1_000, 2_000), ("b\n\n43", 3_000, 4_000), ("c", 5_000, 6_000)],
        );
    }

    #[test]
    fn srt_number_of_missing_cue_is_removed() {
        let cue = "7\n00:00:01,000 --> 00:00:02,000\nHello\n";
        for (end, expect) in
            [("\n8\n", "Hello"), ("\n8", "Hello"), ("\n9\n", "Hello\n\n9"), ("8\n", "Hello\n8")]
        {
            check(&format!("{cue}{end}"), &[(expect, 1_000, 2_000)]);
        }
        check("7\n00:00:01,000 --> 00:00:02,000\n\n8\n", &[("8", 1_000, 2_000)]);
    }

    #[test]
    fn srt_times_with_spaces_are_read_and_cut_ones_reported() {
        let cue = |times: &str| {
            format!(
                "1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n{times}\nBye\n\n3\n00:00:08,000 --> 00:00:09,000\nc"
            )
        };
        check(
            &cue("00:00:05, 500 --> 00:00:07, 000"),
            &[("Hello", 1_000, 2_000), ("Bye", 5_500, 7_000), ("c", 8_000, 9_000)],
        );
        let cut = cue("00:00:05,500 -->");
        check(&cut, &[("Hello", 1_000, 2_000), ("c", 8_000, 9_000)]);
        assert_eq!(parse_with_report(cut.as_bytes()).unwrap().left_out.lines, [6]);
    }

    #[test]
    fn sbv_cues_are_read() {
        check(
            "0:00:01.000,0:00:03.000\nHello\nthere\n\n0:00:03.500,0:00:04.000\n10:30,11:00\n",
            &[("Hello\nthere", 1_000, 3_000), ("10:30,11:00", 3_500, 4_000)],
        );
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
