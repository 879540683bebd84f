//! What a service said of a part: read leniently, since services differ in all but the text. Pure.

use serde::Deserialize;
use serde_json::Value;
use transcript_core::transcript::LanguageTag;

use super::{language, refusal::Refusal};

/// The most pieces of one part: ten minutes have some hundred.
const PIECES_MAX: usize = 20_000;

/// A transcription.
#[derive(Debug, PartialEq)]
pub(super) struct Said {
    /// The language, where the service named one.
    pub(super) language: Option<LanguageTag>,
    /// The whole text.
    pub(super) text: String,
    /// The text in pieces that each have a time; none where the service gave no times.
    pub(super) pieces: Option<Vec<Piece>>,
    /// Whether it gave a list of pieces without any: services that know times do so now and then.
    pub(super) is_list_empty: bool,
}

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    /// In seconds from the beginning of the part.
    pub(super) start: f64,
    pub(super) end: Option<f64>,
    /// What the model thinks of its own words, where the service tells.
    pub(super) no_speech_prob: Option<f64>,
    pub(super) avg_logprob: Option<f64>,
    pub(super) compression_ratio: Option<f64>,
}

#[derive(Deserialize)]
struct Answer {
    text: Option<String>,
    language: Option<Value>,
    detected_language: Option<Value>,
    segments: Option<Vec<Segment>>,
}

#[derive(Deserialize)]
struct Segment {
    text: Option<String>,
    start: Option<f64>,
    end: Option<f64>,
    no_speech_prob: Option<f64>,
    avg_logprob: Option<f64>,
    compression_ratio: Option<f64>,
}

/// Reads an answer.
///
/// # Errors
/// [`Refusal::Unreadable`] when it is no transcription, or longer than any can be.
pub(super) fn read(body: &[u8]) -> Result<Said, Refusal> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| Refusal::Unreadable("it is no transcription in JSON"))?;
    if answer.text.is_none() && answer.segments.is_none() {
        return Err(Refusal::Unreadable("it has no text"));
    }
    if answer.segments.as_ref().is_some_and(|segments| segments.len() > PIECES_MAX) {
        return Err(Refusal::Unreadable("it has more pieces than can be spoken"));
    }
    let named = |value: &Option<Value>| value.as_ref()?.as_str().and_then(language::named);
    let language = named(&answer.language).or_else(|| named(&answer.detected_language));
    let is_list_empty = answer.segments.as_ref().is_some_and(Vec::is_empty);
    let pieces =
        answer.segments.and_then(|segments| segments.into_iter().map(piece).collect::<Option<Vec<_>>>());
    let joined = || pieces.iter().flatten().map(|piece| piece.text.as_str()).collect();
    let text: String = answer.text.unwrap_or_else(joined);
    // Words without a piece have no time either.
    let pieces = pieces.filter(|pieces| !pieces.is_empty() || text.trim().is_empty());
    Ok(Said { language, text, pieces, is_list_empty })
}

/// A piece; none when it has no time.
fn piece(segment: Segment) -> Option<Piece> {
    Some(Piece {
        text: segment.text.unwrap_or_default(),
        start: segment.start?,
        end: segment.end,
        no_speech_prob: segment.no_speech_prob,
        avg_logprob: segment.avg_logprob,
        compression_ratio: segment.compression_ratio,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_is_read() {
        let said = read(
            br#"{"task":"transcribe","language":"english","duration":9.15,"text":" a b","segments":[{"id":0,"seek":0,
            "start":0,"end":3.12,"text":" a","tokens":[50364],"temperature":0.0,"avg_logprob":-0.28,
            "compression_ratio":1.2,"no_speech_prob":0.01},{"start":3.12,"end":null,"text":" b"}],"words":null,
            "usage":{"type":"duration","seconds":10}}"#,
        )
        .unwrap();
        assert_eq!(said.language, Some(LanguageTag::english()));
        let pieces = said.pieces.unwrap();
        assert_eq!((pieces[0].start, pieces[0].end, pieces[1].end), (0.0, Some(3.12), None));
        assert_eq!((pieces[0].no_speech_prob, pieces[1].no_speech_prob), (Some(0.01), None));
    }

    #[test]
    fn answers_without_times_are_known_as_such() {
        for body in [
            r#"{"text":"a b"}"#,
            r#"{"text":"a b","segments":null,"language":null}"#,
            r#"{"text":"a b","segments":[]}"#,
            r#"{"text":"a b","segments":[{"text":"a b"}]}"#,
        ] {
            let said = read(body.as_bytes()).unwrap();
            assert_eq!((said.text.as_str(), said.pieces), ("a b", None), "{body}");
        }
        for body in [r#"{"text":"","segments":[]}"#, r#"{"segments":[]}"#, r#"{"text":" ","segments":[]}"#] {
            assert_eq!(read(body.as_bytes()).unwrap().pieces, Some(Vec::new()), "{body}");
        }
        assert_eq!(read(br#"{"text":"","segments":null}"#).unwrap().pieces, None);
        let said =
            read(br#"{"language":7,"detected_language":"de","segments":[{"text":"ja","start":1}]}"#).unwrap();
        assert_eq!((said.language.unwrap().as_str(), said.text.as_str()), ("de", "ja"));
    }

    #[test]
    fn what_is_no_transcription_is_refused() {
        let deep = "[".repeat(10_000);
        let many = format!("{{\"segments\":[{}{{}}]}}", "{},".repeat(PIECES_MAX));
        for body in [
            "",
            "<html>Bad Gateway</html>",
            "1\n00:00:01,000 --> 00:00:02,000\nHello\n",
            "{}",
            "[]",
            "null",
            r#"{"error":"no audio"}"#,
            r#"{"text":5}"#,
            r#"{"segments":[{"text":"a","start":"soon"}]}"#,
            r#"{"segments":[{"text":"a","start":1e999}]}"#,
            &deep,
            &many,
        ] {
            assert!(matches!(read(body.as_bytes()), Err(Refusal::Unreadable(_))), "{:.60}", body);
        }
    }
}
