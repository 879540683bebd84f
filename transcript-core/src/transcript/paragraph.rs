//! Paragraphs, shared by plain text and Markdown.

use super::{Chapter, Chunk, Segment};
use crate::transcript::script::{Script, char_script};

/// Silence between two segments that begins a new paragraph, in milliseconds.
pub(crate) const PAUSE_MS: u64 = 3_000;

/// Silence that ends a paragraph that is long enough, in milliseconds: speech without punctuation has no other end.
const SHORT_PAUSE_MS: u64 = 700;

/// From this number of letters on, a paragraph ends at the next segment that ends a sentence, or before a short pause.
const LETTERS_ENOUGH: usize = 400;

/// From this number of letters on, a paragraph ends at the current segment, sentence or not.
const LETTERS_MAX: usize = 800;

/// Groups segments into paragraphs: same words, same order, new white space between them.
///
/// A paragraph ends before a long pause; when it is long enough, at the end of a sentence or before a short pause; and
/// in speech without pauses and punctuation, at a maximum length. It ends only between segments. Words are joined by
/// single spaces, or by nothing in scripts that are written without spaces.
///
/// ```
/// use transcript_core::transcript::{Segment, paragraphs};
///
/// let segments = [
///     Segment::new("So this\nis", 0, 1_000),
///     Segment::new(" the start.", 1_000, 1_000),
///     Segment::new("Later.", 9_000, 1_000),
/// ];
/// let paragraphs = paragraphs(&segments);
/// assert_eq!(paragraphs[0].text, "So this is the start.");
/// assert_eq!(paragraphs[1].start_ms, 9_000);
/// ```
pub fn paragraphs(segments: &[Segment]) -> Vec<Chunk> {
    chapter_paragraphs(segments, &[])
}

/// Groups segments into paragraphs as [`paragraphs`] does, and begins one also at the first segment at or after the
/// start of each chapter.
///
/// `chapters` are ordered by start. Chapters that begin before the same segment share its paragraph.
///
/// ```
/// use transcript_core::transcript::{Chapter, Segment, chapter_paragraphs};
///
/// let segments = [Segment::new("So far.", 0, 1_000), Segment::new("Next.", 1_000, 1_000)];
/// let chapters = [Chapter { title: "Second".to_owned(), start_ms: 500 }];
/// let texts: Vec<_> = chapter_paragraphs(&segments, &chapters).into_iter().map(|found| found.text).collect();
/// assert_eq!(texts, ["So far.", "Next."]);
/// ```
pub fn chapter_paragraphs(segments: &[Segment], chapters: &[Chapter]) -> Vec<Chunk> {
    let mut chapters = chapters.iter().peekable();
    let mut paragraphs: Vec<Chunk> = Vec::new();
    let mut letters = 0;
    let mut end_ms: Option<u64> = None;
    for (index, segment) in segments.iter().enumerate() {
        if segment.text.trim().is_empty() {
            continue;
        }
        let pause_ms = if letters >= LETTERS_ENOUGH { SHORT_PAUSE_MS } else { PAUSE_MS };
        let is_after_pause = end_ms.is_some_and(|end| segment.start_ms >= end.saturating_add(pause_ms));
        let mut is_in_new_chapter = false;
        while chapters.next_if(|chapter| chapter.start_ms <= segment.start_ms).is_some() {
            is_in_new_chapter = true;
        }
        match paragraphs.last_mut() {
            Some(last) if !is_after_pause && !is_in_new_chapter && !is_full(&last.text, letters) => {
                last.push(index, segment);
            }
            _ => {
                paragraphs.push(Chunk::new(index, segment));
                letters = 0;
            }
        }
        letters += segment.text.chars().map(|c| if is_unspaced(c) { 2 } else { 1 }).sum::<usize>();
        // A duration of zero means unknown, and so is the silence after it.
        end_ms = (segment.duration_ms > 0).then(|| end_ms.unwrap_or(0).max(segment.end_ms()));
    }
    paragraphs
}

/// Whether a paragraph with this text is complete.
fn is_full(text: &str, letters: usize) -> bool {
    letters >= LETTERS_MAX || (letters >= LETTERS_ENOUGH && ends_sentence(text))
}

/// Whether a text ends a sentence, possibly inside quotation marks or brackets.
pub(crate) fn ends_sentence(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '\'', '”', '’', '»', ')', ']', '」', '』', '）']);
    text.ends_with(['.', '!', '?', '…', '。', '！', '？', '।', '؟', '۔', '።', '។', '။'])
}

/// Appends the words of a segment to a line.
pub(crate) fn append(line: &mut String, text: &str) {
    for part in text.lines() {
        for (index, word) in part.split_whitespace().enumerate() {
            let joins = match (line.chars().next_back(), word.chars().next()) {
                (Some(before), Some(after)) => {
                    // A space inside a line of captions was written on purpose; a line end was not.
                    let is_one_word = is_wide_alphanumeric(before) && is_wide_alphanumeric(after);
                    index == 0 && is_unspaced(before) && is_unspaced(after) && !is_one_word
                }
                _ => true,
            };
            if !joins {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
}

/// Whether a character is a digit or Latin letter of full width: two numbers or words of these need a space.
fn is_wide_alphanumeric(c: char) -> bool {
    matches!(c, '０'..='９' | 'Ａ'..='Ｚ' | 'ａ'..='ｚ')
}

/// Whether a letter or mark belongs to a script that is written without spaces between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    // Most letters belong to other scripts, which are all below these.
    if c < '\u{E00}' {
        return false;
    }
    // Chinese and Japanese punctuation belongs to no single script.
    matches!(c, '\u{3000}'..='\u{30FF}' | '\u{FF00}'..='\u{FF65}')
        || matches!(
            char_script(c),
            Script::Han
                | Script::Hiragana
                | Script::Katakana
                | Script::Bopomofo
                | Script::Yi
                | Script::Thai
                | Script::Lao
                | Script::Khmer
                | Script::Myanmar
                | Script::Tibetan
        )
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in crate::transcript) fn without_white_space(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace()).collect()
    }

    /// Segments with arbitrary texts.
    pub(crate) fn any_segments() -> impl Strategy<Value = Vec<Segment>> {
        let text = prop_oneof![
            "\\PC{0,30}",
            "[ -~\n]{0,30}",
            "[a-c.。ก中 \n\r\u{200B}\u{A0}]{0,20}",
            proptest::string::string_regex(".{0,20}").unwrap(),
        ];
        proptest::collection::vec((text, 0..10_000_u64, 0..5_000_u64), 0..20).prop_map(|mut cues| {
            cues.sort_by_key(|cue| cue.1);
            cues.into_iter().map(|(text, start, duration)| Segment::new(text, start, duration)).collect()
        })
    }

    fn check(segments: &[(&str, u64, u64)], expect: &[(u64, &str)]) {
        let segments: Vec<_> =
            segments.iter().map(|&(text, start, end)| Segment::new(text, start, end - start)).collect();
        let found = paragraphs(&segments);
        let found: Vec<_> = found.iter().map(|p| (p.start_ms, p.text.as_str())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn paragraph_words_are_joined_by_script_rules() {
        check(&[("a\nb", 0, 1), ("  c  d ", 1, 2), (" \n", 2, 3)], &[(0, "a b c d")]);
        check(&[("你好，", 0, 1), ("世界\n再见", 1, 2), ("（终）", 2, 3)], &[(0, "你好，世界再见（终）")]);
        check(
            &[("カー", 0, 1), ("ルです", 1, 2), ("スペース 有り", 2, 3)],
            &[(0, "カールですスペース 有り")],
        );
        check(
            &[("第１", 0, 1), ("２回", 1, 2), ("ＡＢ", 2, 3), ("ｃは", 3, 4)],
            &[(0, "第１ ２回ＡＢ ｃは")],
        );
        check(&[("สวัส", 0, 1), ("ดี", 1, 2)], &[(0, "สวัสดี")]);
        check(&[("中文", 0, 1), ("and English", 1, 2), ("中文", 2, 3)], &[(0, "中文 and English 中文")]);
        check(&[("안녕", 0, 1), ("세계", 1, 2)], &[(0, "안녕 세계")]);
        check(&[], &[]);
        check(&[(" ", 0, 1)], &[]);
    }

    #[test]
    fn paragraph_begins_after_long_pause() {
        check(&[("a", 0, 1_000), ("b", 3_999, 5_000), ("c", 8_000, 9_000)], &[(0, "a b"), (8_000, "c")]);
        // An earlier segment that lasts longer fills the silence.
        check(&[("a", 0, 9_000), ("b", 1_000, 2_000), ("c", 8_000, 9_000)], &[(0, "a b c")]);
        check(&[("a", 0, 0), ("b", 60_000, 60_000)], &[(0, "a b")]);
    }

    #[test]
    fn paragraph_begins_at_chapter() {
        let segments = [("a", 0), ("b", 1_000), (" ", 2_000), ("c", 2_500), ("d", 3_000), ("e", 4_000)];
        let segments = segments.map(|(text, start)| Segment::new(text, start, 500));
        let starts = |chapters: &[u64]| -> Vec<u64> {
            let chapter = |start_ms: &u64| Chapter { title: String::new(), start_ms: *start_ms };
            let chapters: Vec<_> = chapters.iter().map(chapter).collect();
            chapter_paragraphs(&segments, &chapters).iter().map(|paragraph| paragraph.start_ms).collect()
        };
        assert_eq!(starts(&[]), [0]);
        assert_eq!(starts(&[0, 3_000, 9_000]), [0, 3_000]);
        assert_eq!(starts(&[1_999, 2_000, 2_400, 3_999]), [0, 2_500, 4_000]);
    }

    #[test]
    fn paragraph_ends_at_sentence_or_maximum_length() {
        let ends = |text: &str, count: usize| -> Vec<usize> {
            let segments: Vec<_> = (0..count).map(|n| Segment::new(text, n as u64 * 10, 10)).collect();
            paragraphs(&segments).iter().map(|p| p.text.matches("word").count()).collect()
        };
        // Ten letters each: 40 are enough at the end of a sentence, 80 are the maximum.
        assert_eq!(ends("a word is.", 100), [40, 40, 20]);
        assert_eq!(ends("\"a word.\" ", 100), [40, 40, 20]);
        assert_eq!(ends("a word is ", 100), [80, 20]);
        assert_eq!(ends(&"a word is ".repeat(200), 2), [200, 200]);
        let chinese: Vec<_> = (0..50).map(|n| Segment::new("没有标点的十个汉字啊", n * 10, 10)).collect();
        assert_eq!(paragraphs(&chinese).len(), 2);
    }

    #[test]
    fn paragraph_without_punctuation_ends_at_short_pause() {
        let ends = |pause_ms: u64| -> Vec<usize> {
            // A pause follows every tenth segment, and each segment has ten letters.
            let start = |n: u64| n * 1_000 + n / 10 * pause_ms;
            let segments: Vec<_> = (0..100).map(|n| Segment::new("a word is ", start(n), 1_000)).collect();
            paragraphs(&segments).iter().map(|p| p.text.matches("word").count()).collect()
        };
        assert_eq!(ends(700), [40, 40, 20]);
        assert_eq!(ends(699), [80, 20]);
    }

    proptest! {
        #[test]
        fn paragraphs_keep_words_and_order(segments in any_segments()) {
            let input_text: String = segments.iter().map(|segment| segment.text.as_str()).collect();
            let found = paragraphs(&segments);
            let all: String = found.iter().map(|paragraph| paragraph.text.as_str()).collect();
            prop_assert_eq!(without_white_space(&all), without_white_space(&input_text));
            for paragraph in &found {
                prop_assert!(!paragraph.text.is_empty());
                prop_assert!(!paragraph.text.contains(|c: char| c.is_whitespace() && c != ' '));
                prop_assert!(!paragraph.text.contains("  "));
                prop_assert_eq!(paragraph.text.trim(), &paragraph.text);
                prop_assert_eq!(segments[paragraph.segments.start].start_ms, paragraph.start_ms);
                let end = segments[paragraph.segments.clone()].iter().map(Segment::end_ms).max();
                prop_assert!(end >= Some(paragraph.end_ms));
            }
        }
    }
}
