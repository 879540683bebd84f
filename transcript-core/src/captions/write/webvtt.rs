//! A transcript as WebVTT subtitles.

use super::subtitle_cue::{
    escape_times, has_two_times, push_times, push_with_marked_blank_lines, subtitle_cues,
};
use crate::transcript::Segment;

/// Renders segments as WebVTT, with `\n` line ends.
///
/// Each cue ends at the start of the next one at the latest. Text is escaped, so none of it can become a tag, a
/// time or another cue; [`crate::captions::parse`] reads the same text back. A blank line inside a text gets a
/// zero width space, because players would take it for the end of the cue.
///
/// ```
/// use transcript_core::{captions::write_webvtt, transcript::Segment};
///
/// let segments = [Segment::new("List<T> & co", 500, 2_000)];
/// assert_eq!(write_webvtt(&segments), "WEBVTT\n\n00:00:00.500 --> 00:00:02.500\nList&lt;T&gt; &amp; co\n");
/// ```
pub fn write_webvtt(segments: &[Segment]) -> String {
    let cues = subtitle_cues(segments);
    let mut file = String::with_capacity(cues.iter().map(|cue| cue.text.len() + FRAME_BYTES).sum());
    file.push_str("WEBVTT\n");
    for cue in &cues {
        file.push('\n');
        push_times(&mut file, cue, '.');
        if cue.text.contains(['&', '<', '>', '{']) || cue.text.matches(':').nth(1).is_some() {
            push_with_marked_blank_lines(&mut file, &escape(&cue.text));
        } else {
            push_with_marked_blank_lines(&mut file, &cue.text);
        }
        file.push('\n');
    }
    file
}

/// Bytes around a cue's text.
const FRAME_BYTES: usize = 34;

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // ASS overrides are not part of WebVTT, but lenient readers remove them.
    let text = text.replace("{\\", "&#123;\\");
    if !text.lines().any(has_two_times) {
        return text;
    }
    let lines =
        text.split('\n').map(|line| if has_two_times(line) { escape_times(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        captions::write::subtitle_cue::tests::read_back_segments,
        captions::{CaptionErrorKind, CaptionFormat, parse, parse_as},
        transcript::paragraph::tests::any_segments,
    };

    fn check_round_trip(segments: &[Segment]) {
        let file = write_webvtt(segments);
        let expect = read_back_segments(segments);
        match parse_as(CaptionFormat::WebVtt, file.as_bytes()) {
            Ok(found) => assert_eq!(found, expect, "{file:?}"),
            Err(error) => {
                assert!(expect.is_empty(), "{error}: {file:?}");
                assert!(
                    matches!(error.kind(), CaptionErrorKind::NoCues | CaptionErrorKind::Malformed),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn webvtt_hostile_texts_are_read_back() {
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
            check_round_trip(&segments);
            assert_eq!(parse(write_webvtt(&segments).as_bytes()).unwrap().len(), 2, "{text:?}");
        }
    }

    #[test]
    fn webvtt_text_never_looks_like_cue_times() {
        let file = write_webvtt(&[Segment::new("00:01.000 --> 00:02.000\nfrom 1:02.5 to 1:03.5", 0, 1)]);
        assert!(
            file.ends_with("\n00&#58;01.000 --&gt; 00&#58;02.000\nfrom 1&#58;02.5 to 1&#58;03.5\n"),
            "{file:?}"
        );
    }

    #[test]
    fn webvtt_no_segments_return_header_only() {
        assert_eq!(write_webvtt(&[]), "WEBVTT\n");
    }

    /// The file as it is without shortcuts: every text is escaped, whatever it contains.
    fn render_reference(segments: &[Segment]) -> String {
        let clock = |ms: u64| {
            let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
            format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", ms % 1_000)
        };
        let cues = subtitle_cues(segments).into_iter().map(|cue| {
            let mut text = String::new();
            push_with_marked_blank_lines(&mut text, &escape(&cue.text));
            format!("\n{} --> {}\n{text}\n", clock(cue.start_ms), clock(cue.end_ms))
        });
        format!("WEBVTT\n{}", cues.collect::<String>())
    }

    proptest! {
        #[test]
        fn webvtt_shortcuts_equal_reference(segments in any_segments()) {
            prop_assert_eq!(write_webvtt(&segments), render_reference(&segments));
        }

        #[test]
        fn webvtt_output_is_read_back(segments in any_segments()) {
            check_round_trip(&segments);
        }
    }
}
