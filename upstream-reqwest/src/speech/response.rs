//! Parses a transcription response. The parser is lenient: services agree on the text only. No I/O.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use transcript_core::transcript::LanguageTag;

use super::{
    failure::SpeechFailure,
    language,
    words::{self, TranscribedWord},
};
use crate::json::parse;

/// Maximum number of spans in a chunk: ten minutes have a few hundred.
const SPANS_MAX: usize = 20_000;
/// Smallest part of the text's letters that the spans must have, in percent: the two may differ in spelling.
const SPAN_LETTERS_MIN: usize = 90;
/// Maximum length after the last span of a duration that is that of the speech, in seconds: detectors of speech add
/// 0.4 s.
const SPEECH_PADDING: f64 = 0.5;

/// A parsed transcription.
#[derive(Debug, PartialEq)]
pub(super) struct Transcription {
    /// The language, if the service named one.
    pub(super) language: Option<LanguageTag>,
    /// The whole text.
    pub(super) text: String,
    /// The text in spans with times; `None` if the service sent no times.
    pub(super) spans: Option<Vec<TranscribedSpan>>,
    /// Whether the list of spans was empty or lacked a part of the text: services with times sometimes return that.
    pub(super) is_list_incomplete: bool,
    /// Length of the audio that the service read, in seconds, if it states one.
    pub(super) duration: Option<f64>,
}

impl Transcription {
    /// Where the transcribed audio ends, in milliseconds; `None` if the service does not state it.
    ///
    /// A stated duration that ends with or before the last span is that of the speech: it shows nothing about the rest.
    pub(super) fn covered_ms(&self) -> Option<u64> {
        let duration = self.duration?;
        let ends = self.spans.iter().flatten().map(|span| span.end.unwrap_or(f64::INFINITY));
        let last_end = ends.fold(f64::NEG_INFINITY, f64::max);
        // The cast saturates.
        (last_end + SPEECH_PADDING < duration).then_some((duration * 1_000.0) as u64)
    }
}

/// A part of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TranscribedSpan {
    pub(super) text: String,
    /// In seconds from the start of the chunk.
    pub(super) start: f64,
    pub(super) end: Option<f64>,
    /// The model's confidence values, if the service sends them.
    pub(super) no_speech_prob: Option<f64>,
    pub(super) avg_logprob: Option<f64>,
    pub(super) compression_ratio: Option<f64>,
    /// Its words; empty if the service sends none, or others than its text has.
    pub(super) words: Vec<TranscribedWord>,
}

impl TranscribedSpan {
    /// A span without an end, confidence values and words.
    pub(super) fn new(text: impl Into<String>, start: f64) -> Self {
        Self {
            text: text.into(),
            start,
            end: None,
            no_speech_prob: None,
            avg_logprob: None,
            compression_ratio: None,
            words: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
struct TranscriptionResponse {
    text: Option<String>,
    language: Option<Value>,
    detected_language: Option<Value>,
    segments: Option<Vec<TranscriptionSegment>>,
    words: Option<Box<RawValue>>,
    duration: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct TranscriptionSegment {
    text: Option<String>,
    start: Option<f64>,
    end: Option<f64>,
    no_speech_prob: Option<f64>,
    avg_logprob: Option<f64>,
    compression_ratio: Option<f64>,
    /// Some services list the words here.
    words: Option<Box<RawValue>>,
}

/// Parses a response body.
///
/// # Errors
/// [`SpeechFailure::Unreadable`] when it is not a transcription, names an error, or has too many spans.
pub(super) fn read(body: &[u8]) -> Result<Transcription, SpeechFailure> {
    let answer: TranscriptionResponse =
        parse(body).map_err(|_| SpeechFailure::Unreadable("it is not a transcription in JSON"))?;
    if answer.error.is_some_and(|error| error != Value::Bool(false) && error.as_str() != Some("")) {
        return Err(SpeechFailure::Unreadable("it names an error"));
    }
    if answer.text.is_none() && answer.segments.is_none() {
        return Err(SpeechFailure::Unreadable("it has no text"));
    }
    if answer.segments.as_ref().is_some_and(|segments| segments.len() > SPANS_MAX) {
        return Err(SpeechFailure::Unreadable("it has too many segments"));
    }
    let named = |value: &Option<Value>| value.as_ref()?.as_str().and_then(language::named);
    let language = named(&answer.language).or_else(|| named(&answer.detected_language));
    let spans =
        answer.segments.and_then(|segments| segments.into_iter().map(span).collect::<Option<Vec<_>>>());
    let joined = || spans.iter().flatten().map(|span| span.text.as_str()).collect();
    let text: String = answer.text.unwrap_or_else(joined);
    let is_list_incomplete = spans.as_deref().is_some_and(|spans| lack_text(spans, &text));
    // Text without a span has no time either, unless its words do.
    let spans = spans.filter(|_| !is_list_incomplete);
    let words = words::read(answer.words.as_deref());
    let spans = match spans {
        Some(mut spans) => {
            if spans.iter().all(|span| span.words.is_empty()) {
                words::assign(&mut spans, &words);
            }
            Some(spans)
        }
        None => words::to_spans(&text, &words),
    };
    let duration = answer.duration.as_ref().and_then(seconds);
    Ok(Transcription { language, text, spans, is_list_incomplete, duration })
}

/// Whether spans lack a part of the text.
fn lack_text(spans: &[TranscribedSpan], text: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let found: usize = spans.iter().map(|span| letters(&span.text)).sum();
    spans.is_empty() && !text.trim().is_empty() || found * 100 < letters(text) * SPAN_LETTERS_MIN
}

/// A duration as a number or, as some services write it, as text; `None` if it is not positive.
fn seconds(value: &Value) -> Option<f64> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    (seconds.is_finite() && seconds > 0.0).then_some(seconds)
}

/// A span; `None` if it has no start time.
fn span(segment: TranscriptionSegment) -> Option<TranscribedSpan> {
    let mut span = TranscribedSpan {
        end: segment.end,
        no_speech_prob: segment.no_speech_prob,
        avg_logprob: segment.avg_logprob,
        compression_ratio: segment.compression_ratio,
        ..TranscribedSpan::new(segment.text.unwrap_or_default(), segment.start?)
    };
    words::assign(std::slice::from_mut(&mut span), &words::read(segment.words.as_deref()));
    Some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_complete_is_parsed() {
        let transcription = read(
            br#"{"task":"transcribe","language":"english","duration":9.15,"text":" a b","segments":[{"id":0,"seek":0,
            "start":0,"end":3.12,"text":" a","tokens":[50364],"temperature":0.0,"avg_logprob":-0.28,
            "compression_ratio":1.2,"no_speech_prob":0.01},{"start":3.12,"end":null,"text":" b"}],"words":null,
            "usage":{"type":"duration","seconds":10}}"#,
        )
        .unwrap();
        assert_eq!(transcription.language, Some(LanguageTag::english()));
        let spans = transcription.spans.unwrap();
        assert_eq!((spans[0].start, spans[0].end, spans[1].end), (0.0, Some(3.12), None));
        assert_eq!((spans[0].no_speech_prob, spans[1].no_speech_prob), (Some(0.01), None));
    }

    #[test]
    fn response_with_half_emoji_is_parsed() {
        let body = br#"{"text":"a \ud83d","segments":[{"text":"a \ud83d","start":0}]}"#;
        assert_eq!(read(body).unwrap().spans.unwrap()[0].text, "a \u{FFFD}");
    }

    #[test]
    fn response_words_are_in_their_spans() {
        let words = r#"[{"word":"a","start":0,"end":0.5},{"word":"b","start":3.2,"end":4}]"#;
        let segments = r#"[{"text":" a,","start":0,"end":3},{"text":" b","start":3}]"#;
        let nested =
            r#"[{"text":" a,","start":0,"words":[{"word":" a","start":0.1}]},{"text":" b","start":3}]"#;
        let read_words = |body: String| -> Vec<usize> {
            let spans = read(body.as_bytes()).unwrap().spans.unwrap();
            spans.iter().map(|span| span.words.len()).collect()
        };
        assert_eq!(read_words(format!(r#"{{"segments":{segments},"words":{words}}}"#)), [1, 1]);
        assert_eq!(read_words(format!(r#"{{"segments":{nested}}}"#)), [1, 0]);
        assert_eq!(read_words(format!(r#"{{"text":"a, b","segments":null,"words":{words}}}"#)), [1, 1]);
        for odd in ["7", "{}", "[{}]", r#"[{"word":"c","start":0}]"#, r#""words""#] {
            assert_eq!(read_words(format!(r#"{{"segments":{segments},"words":{odd}}}"#)), [0, 0], "{odd}");
        }
    }

    #[test]
    fn response_without_times_has_no_spans() {
        for body in [
            r#"{"text":"a b"}"#,
            r#"{"text":"a b","segments":null,"language":null}"#,
            r#"{"text":"a b","segments":[]}"#,
            r#"{"text":"a b","segments":[{"text":"a b"}]}"#,
        ] {
            let transcription = read(body.as_bytes()).unwrap();
            assert_eq!((transcription.text.as_str(), transcription.spans), ("a b", None), "{body}");
        }
        for body in [r#"{"text":"","segments":[]}"#, r#"{"segments":[]}"#, r#"{"text":" ","segments":[]}"#] {
            assert_eq!(read(body.as_bytes()).unwrap().spans, Some(Vec::new()), "{body}");
        }
        assert_eq!(read(br#"{"text":"","segments":null,"error":null}"#).unwrap().spans, None);
        let transcription =
            read(br#"{"language":7,"detected_language":"de","segments":[{"text":"ja","start":1}]}"#).unwrap();
        assert_eq!((transcription.language.unwrap().as_str(), transcription.text.as_str()), ("de", "ja"));
    }

    #[test]
    fn response_spans_without_part_of_text_are_left_out() {
        for (segments, expect) in [
            (r#"[{"text":" One two,","start":0},{"text":" three four.","start":2}]"#, Some(2)),
            (r#"[{"text":"one two three 4","start":0}]"#, Some(1)),
            (r#"[{"text":" One two,","start":0}]"#, None),
            (r#"[{"text":" One two,","start":0},{"text":null,"start":2}]"#, None),
            (r#"[{"sentence":" One two, three four.","start":0}]"#, None),
        ] {
            let text = if segments.contains('4') { "One two three 4." } else { "One two, three four." };
            let body = format!(r#"{{"text":"{text}","segments":{segments}}}"#);
            let transcription = read(body.as_bytes()).unwrap();
            assert_eq!(transcription.text, text);
            assert_eq!(transcription.spans.map(|spans| spans.len()), expect, "{body}");
            assert_eq!(transcription.is_list_incomplete, expect.is_none(), "{body}");
        }
    }

    #[test]
    fn response_duration_is_end_of_covered_audio() {
        for (duration, expect) in [
            ("30.0", Some(30_000)),
            ("\"30.5\"", Some(30_500)),
            // Some services state the end of the last span, or the length of the speech.
            ("2", None),
            ("8", None),
            ("8.4", None),
            ("9", Some(9_000)),
            ("0", None),
            ("null", None),
            ("\"long\"", None),
        ] {
            let segments = r#"[{"text":"a","start":1,"end":2},{"text":"b","start":3,"end":8}]"#;
            let body = format!(r#"{{"text":"a b","duration":{duration},"segments":{segments}}}"#);
            assert_eq!(read(body.as_bytes()).unwrap().covered_ms(), expect, "{duration}");
        }
        let open = br#"{"duration":9,"segments":[{"text":"a","start":1,"end":null}]}"#;
        assert_eq!(read(open).unwrap().covered_ms(), None);
    }

    #[test]
    fn response_invalid_is_unreadable() {
        let deep = "[".repeat(10_000);
        let many = format!("{{\"segments\":[{}{{}}]}}", "{},".repeat(SPANS_MAX));
        for body in [
            "",
            "<html>Bad Gateway</html>",
            "1\n00:00:01,000 --> 00:00:02,000\nHello\n",
            "{}",
            "[]",
            "null",
            r#"{"error":"no audio"}"#,
            r#"{"text":"","segments":[],"error":"CUDA out of memory"}"#,
            r#"{"text":"a","error":{"message":"no audio"}}"#,
            r#"{"text":5}"#,
            r#"{"segments":[{"text":"a","start":"soon"}]}"#,
            r#"{"segments":[{"text":"a","start":1e999}]}"#,
            &deep,
            &many,
        ] {
            assert!(matches!(read(body.as_bytes()), Err(SpeechFailure::Unreadable(_))), "{:.60}", body);
        }
    }
}
