//! Karaoke files of speech recognizers: a line occurs once for each of its words, with the word highlighted.
//!
//! Whisper's tools write such files on request, stable-ts does by default. The file shows that the repetitions are
//! copies: the text is the same, and the only highlighted part of it moves on from cue to cue.

use std::{mem, ops::Range};

use super::{cue_collector::is_blank, cue_file::Cue, time_marks::TimeMark};

/// Longest gap between two copies of a line, in milliseconds: tools round times.
const GAP_MS_MAX: i64 = 50;

/// Shortest cue without a highlighted word, in milliseconds, that is speech before or after the copies of its line.
const SPEECH_MS_MIN: i64 = 500;

/// Joins the copies of a line, and keeps the starts of its words as times in the text.
///
/// The cues are ordered by start.
pub(super) fn join_highlighted(cues: Vec<Cue>) -> Vec<Cue> {
    let mut joined = Vec::with_capacity(cues.len());
    let mut run = HighlightRun::default();
    for cue in cues {
        if !run.continues_with(&cue) {
            mem::take(&mut run).finish(&mut joined);
        }
        run.push(cue);
    }
    run.finish(&mut joined);
    joined
}

/// Adjacent cues with the same text in which the highlighted part moves on, if there is one.
#[derive(Default)]
struct HighlightRun {
    cues: Vec<Cue>,
    /// Starts of the highlighted parts.
    marks: Vec<TimeMark>,
    /// End of the last highlighted part.
    highlight_end: usize,
}

impl HighlightRun {
    fn continues_with(&self, cue: &Cue) -> bool {
        self.cues.last().is_some_and(|last| {
            last.text == cue.text
                && !(self.marks.is_empty() && is_plain_speech(last))
                && last.marks.is_empty()
                && cue.marks.is_empty()
                && cue.start_ms <= last.end_ms.saturating_add(GAP_MS_MAX)
                && !is_whole(last)
                && !is_whole(cue)
                && highlight(cue).is_none_or(|part| self.marks.is_empty() || self.highlight_end <= part.start)
        })
    }

    fn push(&mut self, cue: Cue) {
        if let Some(part) = highlight(&cue) {
            // What precedes the first word, as a dash, belongs to it.
            let offset = if self.marks.is_empty() { 0 } else { part.start };
            self.highlight_end = part.end;
            self.marks.push(TimeMark { offset, time_ms: cue.start_ms });
        }
        self.cues.push(cue);
    }

    /// Appends one cue if at least two words are highlighted, and speech after them, else all cues of the run.
    fn finish(self, joined: &mut Vec<Cue>) {
        let Self { mut cues, marks, .. } = self;
        // The highlights that are left say that a cue was joined.
        let plain = |cue: Cue| Cue { highlight: None, ..cue };
        if marks.len() < 2 {
            joined.extend(cues.into_iter().map(plain));
            return;
        }
        let words = cues.iter().rposition(|cue| highlight(cue).is_some()).map_or(0, |last| last + 1);
        let speech = cues.iter().skip(words).position(is_plain_speech);
        let after = cues.split_off(speech.map_or(cues.len(), |speech| words + speech));
        let end = cues.iter().map(|cue| cue.end_ms).max();
        let highlight = cues.iter().find_map(|cue| cue.highlight.clone());
        if let (Some(first), Some(end_ms)) = (cues.into_iter().next(), end) {
            joined.push(Cue { end_ms, marks, highlight, ..first });
        }
        joined.extend(after.into_iter().map(plain));
    }
}

/// The highlighted part of a cue, if it has text.
fn highlight(cue: &Cue) -> Option<&Range<usize>> {
    cue.highlight.as_ref().filter(|part| cue.text.get((*part).clone()).is_some_and(|part| !is_blank(part)))
}

/// Whether a cue without a highlighted word is too long for the pause before or after the words of its copies.
fn is_plain_speech(cue: &Cue) -> bool {
    highlight(cue).is_none() && cue.end_ms - cue.start_ms >= SPEECH_MS_MIN
}

/// Whether all of a cue is highlighted: that is a style, and shows no copy.
fn is_whole(cue: &Cue) -> bool {
    highlight(cue)
        .and_then(|part| cue.text.get(part.clone()))
        .is_some_and(|part| part.trim().len() == cue.text.trim().len())
}

#[cfg(test)]
mod tests {
    use crate::captions::parse;

    /// Cues are start, end and text; expected are texts with their words and the starts of these.
    #[track_caller]
    fn check(cues: &[(u64, u64, &str)], expect: &[(&str, &[(&str, u64)])]) {
        let cue = |&(start, end, text): &(u64, u64, &str)| {
            format!(
                "1\n00:00:{:02},{:03} --> 00:00:{:02},{:03}\n{text}\n\n",
                start / 1_000,
                start % 1_000,
                end / 1_000,
                end % 1_000
            )
        };
        let segments = parse(cues.iter().map(cue).collect::<String>().as_bytes()).unwrap();
        let found: Vec<(&str, Vec<(&str, u64)>)> = segments
            .iter()
            .map(|segment| {
                let words = segment.words.iter().map(|word| (word.text.as_str(), word.start_ms));
                (segment.text.as_str(), words.collect())
            })
            .collect();
        let expect: Vec<_> = expect.iter().map(|&(text, words)| (text, words.to_vec())).collect();
        assert_eq!(found, expect);
        assert_eq!(segments[0].start_ms, cues[0].0);
        assert_eq!(segments.last().unwrap().end_ms(), cues.last().unwrap().1);
    }

    #[test]
    fn karaoke_line_is_one_segment_with_words() {
        let line = ("Hello world this", &[("Hello", 0), ("world", 340), ("this", 600)][..]);
        check(
            &[
                (0, 340, "<u>Hello</u> world this"),
                (340, 600, "Hello <u>world</u> this"),
                (600, 1_000, "Hello world <u>this</u>"),
            ],
            &[line],
        );
        let color = "font color=\"#00ff00\"";
        check(
            &[
                (0, 320, &format!("<{color}>Hello</font> world this")),
                (320, 340, "Hello world this"),
                (340, 600, &format!("Hello <{color}>world</font> this")),
                (600, 900, &format!("Hello world <{color}>this</font>")),
                (900, 1_000, "Hello world this"),
            ],
            &[line],
        );
        check(
            &[(0, 500, "- <u>R&amp;B,</u> then &amp;"), (510, 900, "- R&amp;B, <u>then</u> &amp;")],
            &[("- R&B, then &", &[("- R&B,", 0), ("then &", 510)])],
        );
    }

    #[test]
    fn karaoke_line_said_twice_stays_twice() {
        check(
            &[
                (0, 100, "<u>No</u> no"),
                (100, 200, "No <u>no</u>"),
                (200, 300, "<u>No</u> no"),
                (300, 400, "No <u>no</u>"),
            ],
            &[("No no", &[("No", 0), ("no", 100)]), ("No no", &[("No", 200), ("no", 300)])],
        );
    }

    #[test]
    fn karaoke_styles_and_speech_are_kept() {
        for (first, second) in [
            ("No.", "<i>No.</i>"),
            ("No.", "<u>No.</u>"),
            ("<u>No.</u>", "<u>No.</u>"),
            ("No, <u>no</u>", "No, <u>no</u>"),
            ("No, <u>no</u>", "No, no"),
            ("<u>a</u> <u>a</u> b", "a a <u>b</u>"),
        ] {
            let text = |text: &str| {
                text.replace("<i>", "").replace("</i>", "").replace("<u>", "").replace("</u>", "")
            };
            check(&[(0, 1_000, first), (1_000, 2_000, second)], &[(&text(first), &[]), (&text(second), &[])]);
        }
        // A line that is shown longer than a pause was said again.
        check(
            &[
                (0, 900, "Hello world"),
                (900, 1_300, "<u>Hello</u> world"),
                (1_300, 1_800, "Hello <u>world</u>"),
                (1_800, 2_400, "Hello world"),
            ],
            &[
                ("Hello world", &[]),
                ("Hello world", &[("Hello", 900), ("world", 1_300)]),
                ("Hello world", &[]),
            ],
        );
        // There is a gap, as between two speakers.
        check(&[(0, 1_000, "<u>a</u> b"), (1_100, 2_000, "a <u>b</u>")], &[("a b", &[]), ("a b", &[])]);
    }
}
