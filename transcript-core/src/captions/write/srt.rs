//! A transcript as SRT subtitles.

use std::{fmt::Write as _, ops::Range};

use html_escape::decode_html_entities;

use super::subtitle_cue::{escape_times, has_two_times, page_cues, push_times, push_with_marked_blank_lines};
use crate::{
    captions::timing::{ARROW, TimingLine},
    transcript::Segment,
};

/// Renders segments as SRT, with `\n` line ends.
///
/// Each cue ends at the start of the next one at the latest. SRT has no escapes, so text is written unchanged
/// unless a reader would take it for markup, for an entity or for the times of a cue. Then HTML's character
/// references are used, which [`crate::captions::parse`] decodes. A blank line inside a text gets a zero width
/// space, because players would take it for the end of the cue.
///
/// ```
/// use transcript_core::{captions::write_srt, transcript::Segment};
///
/// let segments = [Segment::new("Tom & Ann", 500, 2_000), Segment::new("List<T>", 2_000, 1_000)];
/// assert_eq!(
///     write_srt(&segments),
///     "1\n00:00:00,500 --> 00:00:02,000\nTom & Ann\n\n2\n00:00:02,000 --> 00:00:03,000\nList&lt;T>\n"
/// );
/// ```
pub fn write_srt(segments: &[Segment]) -> String {
    write_srt_page(segments, 0..segments.len())
}

/// Renders a page of segments like [`write_srt`], with the numbers and the ends that its cues have in the whole file.
pub(super) fn write_srt_page(segments: &[Segment], page: Range<usize>) -> String {
    let (before, cues) = page_cues(segments, page);
    let mut file = String::with_capacity(cues.iter().map(|cue| cue.text.len() + FRAME_BYTES).sum());
    for (index, cue) in cues.iter().enumerate() {
        if index > 0 {
            file.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(file, "{}", before + index + 1);
        push_times(&mut file, cue, ',');
        push_text(&mut file, &cue.text);
        file.push('\n');
    }
    file
}

/// Bytes around a cue's text: enough for 100,000 cues.
const FRAME_BYTES: usize = 40;

/// Appends a text in a form that a lenient reader decodes to the same text.
fn push_text(file: &mut String, text: &str) {
    if needs_escape(text) {
        push_with_marked_blank_lines(file, &escape(text));
    } else {
        push_with_marked_blank_lines(file, text);
    }
}

/// Whether a text may need an escape: it has markup, two times in a line, or several lines and a digit.
///
/// A cheap check without misses; most texts need no escape.
fn needs_escape(text: &str) -> bool {
    text.contains(['&', '<', '{', '>'])
        || text.matches(':').nth(1).is_some()
        || text.contains('\n') && text.bytes().any(|byte| byte.is_ascii_digit())
}

fn escape(text: &str) -> String {
    let mut text = text.to_owned();
    if decode_html_entities(&text) != text {
        text = text.replace('&', "&amp;");
    }
    if has_code(&text) {
        text = text.replace('<', "&lt;").replace('{', "&#123;");
    }
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let is_timing = TimingLine::parse(line) != TimingLine::NotTiming;
        lines.push(if is_timing || has_two_times(line) {
            escape_times(line).replace(ARROW, "--&gt;")
        } else if lines.last().is_some_and(|last| is_number(last)) {
            escape_leading_digit(line)
        } else {
            line.to_owned()
        });
    }
    lines.join("\n")
}

/// Whether a reader may take a part of a text for a code, and remove it.
///
/// Our parser removes the tags and ASS overrides that it knows. ffmpeg also removes those of other names, codes such as
/// `{y:i}`, and all that follows an override without an end, as which it takes a brace at the end of a line. libass
/// hides all text in braces, and players that convert SRT to WebVTT remove every tag.
fn has_code(text: &str) -> bool {
    let is_closed =
        |open: char, close: char| text.split_once(open).is_some_and(|(_, rest)| rest.contains(close));
    is_closed('<', '>') || is_closed('{', '}') || text.contains("{\\") || text.contains("{\n")
}

/// Whether a line may be the number of a cue.
fn is_number(line: &str) -> bool {
    line.trim().bytes().all(|c| c.is_ascii_digit() || matches!(c, b'-' | b'.')) && !line.trim().is_empty()
}

/// The line with its leading digit as a character reference.
///
/// After a number, some readers take "10,000,000 people" for the times of a cue.
fn escape_leading_digit(line: &str) -> String {
    let words = line.trim_start();
    let (blank, _) = line.split_at(line.len() - words.len());
    let mut rest = words.chars();
    match rest.next().filter(char::is_ascii_digit) {
        Some(digit) if !is_number(words) => format!("{blank}&#{};{}", u32::from(digit), rest.as_str()),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        captions::write::subtitle_cue::{subtitle_cues, tests::read_back_segments},
        captions::{CaptionErrorKind, CaptionFormat, parse, parse_as},
        transcript::paragraph::tests::any_segments,
    };

    fn check_round_trip(segments: &[Segment]) {
        let file = write_srt(segments);
        let expect = read_back_segments(segments);
        match parse_as(CaptionFormat::Srt, file.as_bytes()) {
            Ok(found) => assert_eq!(found, expect, "{file:?}"),
            Err(error) => {
                assert!(expect.is_empty(), "{error}: {file:?}");
                assert!(
                    matches!(error.kind(), CaptionErrorKind::Empty | CaptionErrorKind::Malformed),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn srt_hostile_texts_are_read_back() {
        for text in [
            "a --> b",
            "a\n\n2\n00:00:01,000 --> 00:00:02,000\nforged",
            "00:00:01,000 --> 00:00:00,000",
            "\n\nblank lines\n \n\naround\n\n",
            "\u{200B}\na\n\u{200B} \n\u{200B}\u{200B}",
            "<i>not italic</i> &lt;i&gt; &am<b>p;",
            "{\\an8}top {\\i1",
            "&amp;#39; &bogus; AT&T",
            "&&amp;lt<b>;{\\an8}",
            "12",
            "12\n\n13\n",
            "I count\n5\n10,000,000 people",
            "5\n 10.5 &#49; of it",
            "from 1:02.5 to 1:03.5",
            "No.",
        ] {
            let segments = [Segment::new(text, 0, 1_000), Segment::new(format!("{text} x"), 1_000, 500)];
            check_round_trip(&segments);
            assert_eq!(parse(write_srt(&segments).as_bytes()).unwrap().len(), 2, "{text:?}");
        }
    }

    #[test]
    fn srt_plain_text_is_not_escaped() {
        for text in ["AT&T & co", "1 < 2", "2 > 0 < 1", "a: b} {c", "{a: b", "a --> b", "x -- y", "C:\\new"] {
            assert!(write_srt(&[Segment::new(text, 0, 1)]).ends_with(&format!("\n{text}\n")), "{text:?}");
        }
    }

    /// Written as it is, each text loses words in ffmpeg.
    #[test]
    fn srt_text_that_ffmpeg_removes_is_escaped() {
        for (text, expect) in [
            ("well <inaudible> he said", "well &lt;inaudible> he said"),
            ("<laughs>", "&lt;laughs>"),
            ("List<T>, 1 < 2 > 0", "List&lt;T>, 1 &lt; 2 > 0"),
            ("if a < b and c > d", "if a &lt; b and c > d"),
            ("go </div> on", "go &lt;/div> on"),
            ("{y:2} ok", "&#123;y:2} ok"),
            ("{y:a{b} c", "&#123;y:a&#123;b} c"),
            ("{curly} x", "&#123;curly} x"),
            ("{a} {s:hello world} ok", "&#123;a} &#123;s:hello world} ok"),
            ("{\\displaystyle x} y", "&#123;\\displaystyle x} y"),
            ("set {\\x now", "set &#123;\\x now"),
            ("if (x > 0) {\nreturn x;", "if (x > 0) &#123;\nreturn x;"),
        ] {
            let segments = [Segment::new(text, 0, 1)];
            assert!(write_srt(&segments).ends_with(&format!("\n{expect}\n")), "{text:?}");
            check_round_trip(&segments);
        }
    }

    #[test]
    fn srt_text_never_looks_like_cue_number_or_times() {
        for (text, expect) in [
            ("00:01,000 --> 00:02,000", "00&#58;01,000 --&gt; 00&#58;02,000"),
            ("from 1:02.5 to 1:03.5", "from 1&#58;02.5 to 1&#58;03.5"),
            ("5\n10,000,000 people", "5\n&#49;0,000,000 people"),
            ("5\n6\nseven", "5\n6\nseven"),
        ] {
            assert!(write_srt(&[Segment::new(text, 0, 1)]).ends_with(&format!("\n{expect}\n")), "{text:?}");
        }
    }

    /// The file as it is without shortcuts: every text is escaped, whatever it contains.
    fn render_reference(segments: &[Segment]) -> String {
        let clock = |ms: u64| {
            let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
            format!("{hours:02}:{minutes:02}:{seconds:02},{:03}", ms % 1_000)
        };
        let cues = subtitle_cues(segments);
        let cues = cues.iter().zip(1..).map(|(cue, number)| {
            let mut text = String::new();
            push_with_marked_blank_lines(&mut text, &escape(&cue.text));
            format!("{number}\n{} {ARROW} {}\n{text}\n", clock(cue.start_ms), clock(cue.end_ms))
        });
        cues.collect::<Vec<_>>().join("\n")
    }

    proptest! {
        #[test]
        fn srt_shortcuts_equal_reference(segments in any_segments()) {
            prop_assert_eq!(write_srt(&segments), render_reference(&segments));
        }

        #[test]
        fn srt_output_is_read_back(segments in any_segments()) {
            check_round_trip(&segments);
        }

        #[test]
        fn srt_markup_is_read_back_as_text(
            texts in proptest::collection::vec("(<i>|</|<|>|&|amp;|lt;|#|39;|\\{\\\\an8\\}|\\{|-->|00:01|\
            1|\n|\r| |a|\u{200B}|<00:01>){0,12}", 1..6),
        ) {
            let segments: Vec<_> =
                texts.into_iter().zip(0..).map(|(text, n)| Segment::new(text, n * 10, 30)).collect();
            check_round_trip(&segments);
            prop_assert_eq!(write_srt(&segments), render_reference(&segments));
        }
    }
}
