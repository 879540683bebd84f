//! A transcript as WebVTT subtitles.

use super::{
    Segment,
    shown::{has_two_times, push_times, push_with_marked_blank_lines, shown, without_times},
};

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
    let cues = shown(segments);
    let mut file = String::with_capacity(cues.iter().map(|cue| cue.text.len() + FRAME_BYTES).sum());
    file.push_str("WEBVTT\n");
    for cue in &cues {
        file.push('\n');
        push_times(&mut file, cue, '.');
        if cue.text.contains(['&', '<', '>', '{']) || cue.text.matches(':').nth(1).is_some() {
            push_with_marked_blank_lines(&mut file, &escaped(&cue.text));
        } else {
            push_with_marked_blank_lines(&mut file, &cue.text);
        }
        file.push('\n');
    }
    file
}

/// What stands around a cue's text, in bytes.
const FRAME_BYTES: usize = 34;

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // ASS overrides are no part of WebVTT, but lenient readers remove them.
    let text = text.replace("{\\", "&#123;\\");
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

    /// The file, put together from all of each text without looking what is in it.
    fn plainly(segments: &[Segment]) -> String {
        let clock = |ms: u64| {
            let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
            format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", ms % 1_000)
        };
        let cues = shown(segments).into_iter().map(|cue| {
            let mut text = String::new();
            push_with_marked_blank_lines(&mut text, &escaped(&cue.text));
            format!("\n{} --> {}\n{text}\n", clock(cue.start_ms), clock(cue.end_ms))
        });
        format!("WEBVTT\n{}", cues.collect::<String>())
    }

    proptest! {
        #[test]
        fn short_cuts_change_nothing(segments in any_segments()) {
            prop_assert_eq!(webvtt(&segments), plainly(&segments));
        }

        #[test]
        fn what_is_written_is_read_back(segments in any_segments()) {
            survives(&segments);
        }
    }
}
