//! The words of a transcription, and the spans to which they belong. No I/O.
//!
//! Services list words beside the spans, spell them with or without punctuation, and agree on nothing else. A span gets
//! words only if they are its whole text. What is unreadable costs the words, never the text.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::response::TranscribedSpan;
use crate::json::parse;

/// Maximum number of words in a chunk: ten minutes have about two thousand.
const WORDS_MAX: usize = 50_000;
/// Maximum number of words that are skipped to find the first one of a span.
const SKIPPED_MAX: usize = 8;
/// Tolerance for the time of a word before its span, in seconds.
const TOLERANCE_S: f64 = 0.3;
/// Without spans of the service, a span ends at a pause of this length in seconds, or after this number of words.
const PAUSE_S: f64 = 0.8;
const SPAN_WORDS_MAX: usize = 15;

/// A word with its times in seconds from the start of the chunk.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TranscribedWord {
    pub(super) text: String,
    pub(super) start: f64,
    pub(super) end: Option<f64>,
}

#[derive(Deserialize)]
struct WordItem {
    word: Option<String>,
    text: Option<String>,
    start: Option<f64>,
    end: Option<f64>,
}

/// Reads a list of words; empty if it is not one. Words without letters or digits are left out.
pub(super) fn read(list: Option<&RawValue>) -> Vec<TranscribedWord> {
    let items: Option<Vec<WordItem>> = list.and_then(|list| parse(list.get().as_bytes()).ok());
    let items = items.filter(|items| items.len() <= WORDS_MAX).unwrap_or_default();
    let word = |item: WordItem| {
        let text = item.word.or(item.text)?.trim().to_owned();
        Some(TranscribedWord { text, start: item.start?, end: item.end })
    };
    let words: Option<Vec<_>> = items.into_iter().map(word).collect();
    let mut words = words.unwrap_or_default();
    words.retain(|word| word.text.contains(char::is_alphanumeric));
    words
}

/// Assigns words to the spans, both in order.
pub(super) fn assign(spans: &mut [TranscribedSpan], words: &[TranscribedWord]) {
    let mut rest = words;
    let nexts: Vec<f64> = spans.iter().skip(1).map(|span| span.start).chain([f64::INFINITY]).collect();
    for (span, next) in spans.iter_mut().zip(nexts) {
        let found = (0..=SKIPPED_MAX).find_map(|skipped| {
            let rest = rest.get(skipped..)?;
            let taken = cover(&span.text, rest)?.len();
            rest.split_at_checked(taken)
        });
        if let Some((words, following)) = found {
            span.words = words.to_vec();
            rest = following;
        } else {
            let passed = rest.iter().take_while(|word| word.start + TOLERANCE_S < next).count();
            rest = rest.get(passed..).unwrap_or_default();
        }
    }
}

/// Spans of a text whose words have times while the service sent no spans; `None` if the words are not the text.
pub(super) fn to_spans(text: &str, words: &[TranscribedWord]) -> Option<Vec<TranscribedSpan>> {
    let offsets = cover(text, words).filter(|offsets| offsets.len() == words.len() && !words.is_empty())?;
    let mut spans = Vec::new();
    let (mut first, mut from) = (0, 0);
    for next in 1..=words.len() {
        let to = offsets.get(next).copied().unwrap_or(text.len());
        let part = text.get(from..to)?;
        let last = words.get(next - 1)?;
        let pause = words.get(next).map_or(f64::INFINITY, |word| word.start - last.end.unwrap_or(last.start));
        let is_sentence = part.trim_end().ends_with(['.', '?', '!', '。', '？', '！']);
        if pause >= PAUSE_S || is_sentence || next - first >= SPAN_WORDS_MAX {
            let words = words.get(first..next)?.to_vec();
            let start = words.first()?.start;
            spans.push(TranscribedSpan { end: last.end, words, ..TranscribedSpan::new(part, start) });
            (first, from) = (next, to);
        }
    }
    Some(spans)
}

/// Finds the words that are the whole text, from the first one on: the byte offset of each. `None` if they are not.
fn cover(text: &str, words: &[TranscribedWord]) -> Option<Vec<usize>> {
    let mut offsets = Vec::new();
    let mut end = 0;
    loop {
        let rest = text.get(end..)?;
        // Only punctuation and white space may be between two words.
        let Some(letter) = rest.find(char::is_alphanumeric) else { return Some(offsets) };
        let word = words.get(offsets.len())?;
        let at = rest.find(&word.text).filter(|at| *at <= letter)?;
        offsets.push(end + at);
        end += at + word.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[(&str, f64)]) -> Vec<TranscribedWord> {
        let word = |(text, start): &(&str, f64)| TranscribedWord {
            text: (*text).to_owned(),
            start: *start,
            end: Some(start + 0.2),
        };
        list.iter().map(word).collect()
    }

    fn assigned(spans: &[(&str, f64)], list: &[(&str, f64)]) -> Vec<String> {
        let mut spans: Vec<_> =
            spans.iter().map(|(text, start)| TranscribedSpan::new(*text, *start)).collect();
        assign(&mut spans, &words(list));
        let texts = |span: TranscribedSpan| {
            span.words.into_iter().map(|word| word.text).collect::<Vec<_>>().join("|")
        };
        spans.into_iter().map(texts).collect()
    }

    #[test]
    fn words_belong_to_span_with_their_text() {
        assert_eq!(
            assigned(
                &[(" So, we met.", 0.0), (" ♪", 1.0), (" We left", 2.0)],
                &[("So", 0.0), ("we", 0.2), ("met", 0.5), ("We", 2.0), ("left", 2.2),]
            ),
            ["So|we|met", "", "We|left"]
        );
        assert_eq!(assigned(&[("日本。", 0.0)], &[("日", 0.0), ("本。", 0.1)]), ["日|本。"]);
        assert_eq!(assigned(&[("a b", 0.0)], &[]), [""]);
    }

    #[test]
    fn words_of_differently_spelled_span_are_left_out() {
        let list = [("ten", 0.0), ("boats", 0.3), ("came", 2.0), ("in", 2.2)];
        assert_eq!(assigned(&[("10 boats", 0.0), ("came in", 2.0)], &list), ["", "came|in"]);
        // Words without a span are skipped.
        assert_eq!(assigned(&[("came in", 2.0)], &list), ["came|in"]);
        assert_eq!(assigned(&[("came", 2.0), ("out", 2.2)], &list), ["came", ""]);
    }

    #[test]
    fn words_without_spans_make_spans() {
        let list = words(&[("So", 0.0), ("we", 0.2), ("met", 2.0), ("He", 2.2), ("left", 2.4)]);
        let spans = to_spans(" So we met. He left ", &list).unwrap();
        let found: Vec<_> =
            spans.iter().map(|span| (span.text.trim(), span.start, span.end, span.words.len())).collect();
        let end = |start: f64| Some(start + 0.2);
        assert_eq!(
            found,
            [("So we", 0.0, end(0.2), 2), ("met.", 2.0, end(2.0), 1), ("He left", 2.2, end(2.4), 2)]
        );
        assert_eq!(to_spans("So we", &list), None);
        assert_eq!(to_spans("So we met at last", &list), None);
        assert_eq!(to_spans("", &[]), None);
    }

    #[test]
    fn words_unreadable_list_is_empty() {
        let of = |json: &str| read(Some(&RawValue::from_string(json.to_owned()).unwrap()));
        assert_eq!(
            of(r#"[{"word":" So","start":0,"end":0.2},{"word":"-","start":1}]"#),
            words(&[("So", 0.0)])
        );
        assert_eq!(of(r#"[{"text":"So","start":0,"end":0.2,"probability":1}]"#), words(&[("So", 0.0)]));
        for json in
            [r#"{"a":1}"#, "5", r#"[{"word":5,"start":1}]"#, r#"[{"word":"a"}]"#, r#"[{"start":1}]"#, "[7]"]
        {
            assert_eq!(of(json), [], "{json}");
        }
        assert_eq!(read(None), []);
    }
}
