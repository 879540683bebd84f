//! A transcript as WebVTT subtitles.

use std::ops::Range;

use super::subtitle_cue::{
    SubtitleCue, escape_times, has_two_times, page_cues, push_clock, push_times, push_with_marked_blank_lines,
};
use crate::{
    captions::is_blank,
    transcript::{Segment, find_words},
};

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
    write_webvtt_page(segments, 0..segments.len(), false)
}

/// Renders segments as WebVTT like [`write_webvtt`], with times inside the cues of segments that have words.
///
/// Players highlight the words as they are spoken. A word has a time before it, and one after it if it ends before the
/// next; without any time before it, it starts with its cue. Text between two words belongs to the first of them,
/// because WebVTT has no times for a part of a cue only. Times increase within their cue: a word that starts with the
/// one before, or after the end of its cue, has none, and belongs to the one before. The only word of a cue that starts
/// with it and does not end before it has no time at all. [`crate::captions::parse`] reads the same words back, but for
/// these and for the end of one that lasts beyond the start of the next or the end of its cue.
///
/// ```
/// use transcript_core::{captions::write_webvtt_with_words, transcript::{Segment, Word}};
///
/// let words = vec![Word::new("Hello", 500, 300), Word::new("there", 1_000, 1_500)];
/// let segments = [Segment { words, ..Segment::new("Hello there", 500, 2_000) }];
/// let cue = "00:00:00.500 --> 00:00:02.500\nHello<00:00:00.800> <00:00:01.000>there\n";
/// assert_eq!(write_webvtt_with_words(&segments), format!("WEBVTT\n\n{cue}"));
/// ```
pub fn write_webvtt_with_words(segments: &[Segment]) -> String {
    write_webvtt_page(segments, 0..segments.len(), true)
}

/// Renders a page of segments like the two functions above, with the ends that its cues have in the whole file.
pub(super) fn write_webvtt_page(segments: &[Segment], page: Range<usize>, has_words: bool) -> String {
    let (_, cues) = page_cues(segments, page);
    let mut file = String::with_capacity(cues.iter().map(|cue| cue.text.len() + FRAME_BYTES).sum());
    file.push_str("WEBVTT\n");
    for cue in &cues {
        file.push('\n');
        push_times(&mut file, cue, '.');
        if let Some(text) = has_words.then(|| text_with_times(cue)).flatten() {
            push_with_marked_blank_lines(&mut file, &text);
        } else if cue.text.contains(['&', '<', '>', '{']) || cue.text.matches(':').nth(1).is_some() {
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

/// A part of a cue's text between two times.
struct TimedPart {
    /// Where it begins in the text.
    offset: usize,
    /// The time before it, if it has one.
    mark_ms: Option<u64>,
    /// The end of its last word.
    end_ms: u64,
}

/// The parts of a cue's text with the times of its words; empty if no word can have one.
fn timed_parts(cue: &SubtitleCue<'_>) -> Vec<TimedPart> {
    let offsets = find_words(&cue.text, cue.words).unwrap_or_default();
    if cue.words.iter().any(|word| is_blank(&word.text)) {
        return Vec::new();
    }
    let mut parts: Vec<TimedPart> = Vec::new();
    let mut latest_ms = cue.start_ms;
    for (word, offset) in cue.words.iter().zip(offsets) {
        let start_ms = word.start_ms.max(cue.start_ms);
        // A time at the start of its cue is not valid.
        let has_mark = start_ms < cue.end_ms && start_ms > latest_ms;
        if has_mark {
            latest_ms = start_ms;
        }
        match parts.last_mut() {
            Some(part) if !has_mark => part.end_ms = word.end_ms(),
            last => {
                let offset = if last.is_some() { offset } else { 0 };
                parts.push(TimedPart {
                    offset,
                    mark_ms: has_mark.then_some(start_ms),
                    end_ms: word.end_ms(),
                });
            }
        }
    }
    // The end of a lone word shows that its cue has words.
    let has_end = |end_ms: u64| cue.words.len() == 1 && end_ms > cue.start_ms && end_ms < cue.end_ms;
    parts.retain(|part| part.mark_ms.is_some() || latest_ms > cue.start_ms || has_end(part.end_ms));
    parts
}

/// The escaped text of a cue with the times of its words; `None` if it has none.
fn text_with_times(cue: &SubtitleCue<'_>) -> Option<String> {
    let parts = timed_parts(cue);
    if parts.is_empty() {
        return None;
    }
    let mut text = String::with_capacity(cue.text.len() * 3);
    for (index, part) in parts.iter().enumerate() {
        let next = parts.get(index + 1);
        let words = cue.text.get(part.offset..next.map_or(cue.text.len(), |next| next.offset))?;
        let spoken = words.trim_end();
        let (start_ms, next_ms) =
            (part.mark_ms.unwrap_or(cue.start_ms), next.and_then(|next| next.mark_ms).unwrap_or(cue.end_ms));
        if part.mark_ms.is_some() {
            push_mark(&mut text, start_ms);
        }
        text.push_str(&escape(spoken));
        if part.end_ms > start_ms && part.end_ms < next_ms {
            push_mark(&mut text, part.end_ms);
        }
        text.push_str(words.get(spoken.len()..)?);
    }
    Some(text)
}

fn push_mark(text: &mut String, time_ms: u64) {
    text.push('<');
    push_clock(text, time_ms, '.');
    text.push('>');
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // ASS overrides are not part of WebVTT, but lenient readers remove them. ffmpeg takes a brace at the end of a line
    // for one, too, and what follows the end of this text may be a line end or a backslash.
    let mut text = text.replace("{\\", "&#123;\\").replace("{\n", "&#123;\n");
    if text.ends_with('{') {
        text.pop();
        text.push_str("&#123;");
    }
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
        captions::write::subtitle_cue::{subtitle_cues, tests::read_back_segments},
        captions::{CaptionErrorKind, CaptionFormat, parse, parse_as},
        transcript::{Word, paragraph::tests::any_segments},
    };

    fn check_round_trip(segments: &[Segment]) {
        check_read_back(write_webvtt(segments), read_back_segments(segments));
    }

    fn check_read_back(file: String, expect: Vec<Segment>) {
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
    fn webvtt_brace_at_line_end_is_escaped() {
        let words = vec![Word::new("do", 0, 500), Word::new("{", 500, 200), Word::new("x", 700, 300)];
        let segment = Segment { words, ..Segment::new("do {\nx", 0, 1_000) };
        let file = write_webvtt(std::slice::from_ref(&segment));
        assert!(file.ends_with("\ndo &#123;\nx\n"), "{file:?}");
        let timed = write_webvtt_with_words(std::slice::from_ref(&segment));
        assert!(timed.ends_with("\ndo <00:00:00.500>&#123;\n<00:00:00.700>x\n"), "{timed:?}");
        assert_eq!(parse(timed.as_bytes()), Ok(vec![segment]));
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

    fn read_back_with_words(segments: &[Segment]) -> Vec<Segment> {
        let mut expect = read_back_segments(segments);
        let cues = subtitle_cues(segments);
        for (segment, cue) in expect.iter_mut().zip(&cues) {
            let Some(offsets) = find_words(&cue.text, cue.words) else { continue };
            // Words that cannot have a time belong to the one before: its offset, start, and the end of the last one.
            let mut groups: Vec<(usize, u64, u64)> = Vec::new();
            for (word, offset) in cue.words.iter().zip(offsets) {
                let start = if word.start_ms < cue.end_ms { word.start_ms } else { 0 }.max(cue.start_ms);
                match groups.last_mut() {
                    Some(group) if start <= group.1 => group.2 = word.end_ms(),
                    None => groups.push((0, start, word.end_ms())),
                    _ => groups.push((offset, start, word.end_ms())),
                }
            }
            let has_end = |end: u64| cue.words.len() == 1 && end > cue.start_ms && end < cue.end_ms;
            if groups.iter().all(|group| group.1 == cue.start_ms && !has_end(group.2)) {
                continue;
            }
            let nexts = groups.iter().skip(1).map(|group| (group.0, group.1));
            let nexts = nexts.chain([(cue.text.len(), cue.end_ms)]);
            let words = groups.iter().zip(nexts).map(|(&(offset, start, end), (next_offset, next))| {
                let end = if end > start { end.min(next) } else { next };
                Word::new(cue.text[offset..next_offset].trim(), start, end - start)
            });
            segment.words = words.collect();
        }
        expect
    }

    /// Gives each segment its words at these distances and with these durations, but for every seventh word.
    fn with_words(segments: Vec<Segment>, times: &[(u64, u64)]) -> Vec<Segment> {
        let mut times = times.iter().cycle();
        let mut number = 0;
        let with_words = |mut segment: Segment| {
            let mut at = segment.start_ms;
            for word in segment.text.split_whitespace() {
                let (distance, duration) = times.next().copied().unwrap_or_default();
                at += distance;
                number += 1;
                if number % 7 != 0 && !is_blank(word) && !word.contains('\0') {
                    segment.words.push(Word::new(word, at, duration));
                }
            }
            segment
        };
        segments.into_iter().map(with_words).collect()
    }

    #[test]
    fn webvtt_words_are_times_in_cues() {
        let word = |text: &str, start, end| Word::new(text, start, end - start);
        let segment = |text: &str, start, end, words: Vec<Word>| Segment {
            words,
            ..Segment::new(text, start, end - start)
        };
        let segments = [
            segment("so <we>", 0, 900, vec![word("so", 0, 200), word("<we>", 200, 900)]),
            segment("met", 900, 1_400, vec![word("met", 900, 1_000)]),
            segment("♪ Hi, all!", 2_000, 3_000, vec![word("Hi", 2_100, 2_300), word("all", 2_300, 3_500)]),
            segment("no words", 3_000, 4_000, Vec::new()),
        ];
        let file = write_webvtt_with_words(&segments);
        let texts: Vec<_> =
            file.lines().filter(|line| line.chars().any(char::is_alphabetic)).skip(1).collect();
        assert_eq!(
            texts,
            [
                "so <00:00:00.200>&lt;we&gt;",
                "met<00:00:01.000>",
                "<00:00:02.100>♪ Hi, <00:00:02.300>all!",
                "no words",
            ]
        );
        let read = parse(file.as_bytes()).unwrap();
        assert_eq!(read[..2], segments[..2]);
        assert_eq!(read[2].words, [word("♪ Hi,", 2_100, 2_300), word("all!", 2_300, 3_000)]);
        assert_eq!(read[3], segments[3]);
        check_read_back(file, read_back_with_words(&segments));
    }

    /// As W3C's parser requires: each time is after the start of its cue and the time before, and before its end.
    #[test]
    fn webvtt_times_of_words_increase_within_their_cue() {
        let word = |text: &str, start, end| Word::new(text, start, end - start);
        let words = |list: &[(&str, u64, u64)]| list.iter().map(|&(t, s, e)| word(t, s, e)).collect();
        for (list, text) in [
            // A cue that ends when the next one starts.
            (
                &[
                    ("one", 1_000, 1_500),
                    ("two", 1_500, 3_600),
                    ("three", 3_600, 4_000),
                    ("four", 4_000, 5_000),
                ][..],
                "one <00:00:01.500>two three four",
            ),
            // Whisper's words start before their segment, and together.
            (
                &[
                    ("one", 960, 1_300),
                    ("two", 1_300, 1_300),
                    ("three", 1_300, 2_080),
                    ("four", 2_080, 2_900),
                ],
                "one <00:00:01.300>two three <00:00:02.080>four<00:00:02.900>",
            ),
            (
                &[("one", 1_000, 1_000), ("two", 1_000, 1_500), ("three", 1_500, 2_000)],
                "one two <00:00:01.500>three four<00:00:02.000>",
            ),
            (&[("one", 1_000, 1_200), ("two", 1_000, 1_500)], "one two three four"),
            (&[("one", 3_100, 3_200), ("two", 3_200, 3_500)], "one two three four"),
            (&[("one", 900, 1_200)], "one two three four<00:00:01.200>"),
            (&[("one", 1_100, 3_500)], "<00:00:01.100>one two three four"),
            (&[("one", 1_000, 3_000)], "one two three four"),
            (&[("one", 1_000, 1_000)], "one two three four"),
            (&[("one", 3_000, 3_200)], "one two three four"),
        ] {
            let segments = [
                Segment { words: words(list), ..Segment::new("one two three four", 1_000, 4_000) },
                Segment::new("next", 3_000, 1_000),
            ];
            let file = write_webvtt_with_words(&segments);
            assert_eq!(file.lines().nth(3), Some(text), "{file}");
            check_read_back(file, read_back_with_words(&segments));
        }
    }

    #[test]
    fn webvtt_words_outside_text_are_omitted() {
        let segment = Segment { words: vec![Word::new("x", 0, 1)], ..Segment::new("a b", 0, 9) };
        assert_eq!(write_webvtt_with_words(std::slice::from_ref(&segment)), write_webvtt(&[segment]));
    }

    proptest! {
        #[test]
        fn webvtt_words_are_read_back(
            segments in any_segments(),
            times in proptest::collection::vec((0..900_u64, 0..900_u64), 1..50),
        ) {
            let segments = with_words(segments, &times);
            check_read_back(write_webvtt_with_words(&segments), read_back_with_words(&segments));
        }

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
