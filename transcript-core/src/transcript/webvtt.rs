//! A transcript as WebVTT subtitles.

use std::fmt::Write as _;

use super::{
    Segment,
    shown::{clock, has_two_times, shown, with_marked_blank_lines, without_times},
};
use crate::captions::timing::ARROW;

/// The segments as WebVTT, with lines that end in `\n`.
///
/// Each one ends when the next one starts, at the latest. Text is escaped, so that none of it can become a
/// tag, a time or another cue; [`crate::captions::parse`] reads the same text back. A blank line inside a
/// text gets a zero width space, or players would take it for the cue's end.
///
/// ```
/// use transcript_core::transcript::{Segment, webvtt};
///
/// let segments = [Segment::new("List<T> & co", 500, 2_000)];
/// assert_eq!(webvtt(&segments), "WEBVTT\n\n00:00:00.500 --> 00:00:02.500\nList&lt;T&gt; &amp; co\n");
/// ```
pub fn webvtt(segments: &[Segment]) -> String {
    let mut file = String::from("WEBVTT\n");
    for cue in shown(segments) {
        let (start, end) = (clock(cue.start_ms, '.'), clock(cue.end_ms, '.'));
        // Writing to a string cannot fail.
        let _ = writeln!(file, "\n{start} {ARROW} {end}\n{}", escaped(&cue.text));
    }
    file
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // ASS overrides are no part of WebVTT, but lenient readers remove them.
    let text = with_marked_blank_lines(&text.replace("{\\", "&#123;\\"));
    if !text.lines().any(has_two_times) {
        return text;
    }
    let lines =
        text.split('\n').map(|line| if has_two_times(line) { without_times(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        captions::{CaptionErrorKind, CaptionFormat, parse, parse_as},
        transcript::{paragraph::tests::any_segments, shown::tests::as_shown},
    };

    fn survives(segments: &[Segment]) {
        let file = webvtt(segments);
        let expect = as_shown(segments);
        match parse_as(CaptionFormat::WebVtt, file.as_bytes()) {
            Ok(found) => assert_eq!(found, expect, "{file:?}"),
            Err(error) => {
                assert!(expect.is_empty(), "{error}: {file:?}");
                assert_eq!(error.kind(), CaptionErrorKind::NoCues);
            }
        }
    }

    #[test]
    fn hostile_texts_come_back() {
        for text in [
            "a --> b",
            "a\n\n00:00:01.000 --> 00:00:02.000\nforged",
            "a\n\nWEBVTT\n\nNOTE b\n\nSTYLE",
            "\n\nblank lines\n \n\naround\n\n",
            "\u{200B}\na\n\u{200B} \n\u{200B}\u{200B}",
            "<v Ann><i>not italic</i> &lt;i&gt; <00:00:01.000>",
            "{\\an8}top",
            "&amp;#39; &bogus; AT&T",
            "\n\n12",
        ] {
            let segments = [Segment::new(text, 0, 1_000), Segment::new(format!("{text} x"), 1_000, 500)];
            survives(&segments);
            assert_eq!(parse(webvtt(&segments).as_bytes()).unwrap().len(), 2, "{text:?}");
        }
    }

    #[test]
    fn no_text_has_the_times_of_a_cue() {
        let file = webvtt(&[Segment::new("00:01.000 --> 00:02.000\nfrom 1:02.5 to 1:03.5", 0, 1)]);
        assert!(
            file.ends_with("\n00&#58;01.000 --&gt; 00&#58;02.000\nfrom 1&#58;02.5 to 1&#58;03.5\n"),
            "{file:?}"
        );
    }

    #[test]
    fn no_segments_are_an_empty_file() {
        assert_eq!(webvtt(&[]), "WEBVTT\n");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(segments in any_segments()) {
            survives(&segments);
        }
    }
}
