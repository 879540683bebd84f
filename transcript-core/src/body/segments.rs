//! JSON list of segments in a response, written and read back (specification 2.1).

use serde::{Deserialize, Serialize};
use serde_json::Serializer;

use crate::{
    error::{Error, Result},
    transcript::{self, TIME_MAX_MS},
};

/// Segment (specification 2.1); times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A segment; times are seconds.")
)]
pub struct Segment {
    /// The text.
    pub text: String,
    /// When it starts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub start: f64,
    /// How long it lasts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub duration: f64,
    /// Extension: the words with their times, if they were requested and are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
}

/// Word of a segment (extension); times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "A word of a segment; times are seconds.")
)]
pub struct Word {
    /// The text.
    pub text: String,
    /// When it starts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub start: f64,
    /// How long it lasts, in seconds.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0.0)))]
    pub duration: f64,
}

/// Without its words.
impl From<&transcript::Segment> for Segment {
    fn from(segment: &transcript::Segment) -> Self {
        Self {
            text: segment.text.clone(),
            start: seconds(segment.start_ms),
            duration: seconds(segment.duration_ms),
            words: Vec::new(),
        }
    }
}

impl From<&transcript::Word> for Word {
    fn from(word: &transcript::Word) -> Self {
        Self { text: word.text.clone(), start: seconds(word.start_ms), duration: seconds(word.duration_ms) }
    }
}

impl Segment {
    /// The segment with its words.
    pub fn with_words(segment: &transcript::Segment) -> Self {
        Self { words: segment.words.iter().map(Word::from).collect(), ..Self::from(segment) }
    }
}

/// Converts milliseconds to seconds.
///
/// Exact as decimals: whole milliseconds stay whole for 285,000 years.
pub fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// Serializes the segments of a transcript without their words: the value of `transcript` in a response.
///
/// # Errors
/// Only if the serializer fails; no transcript causes that.
pub fn write(segments: &[transcript::Segment]) -> Result<Vec<u8>> {
    let mut json =
        Vec::with_capacity(segments.iter().map(|segment| segment.text.len() + 64).sum::<usize>() + 2);
    json.push(b'[');
    for (index, segment) in segments.iter().enumerate() {
        json.extend_from_slice(if index == 0 { b"{\"text\":" } else { b",{\"text\":" });
        add(&mut json, segment.text.as_str())?;
        json.extend_from_slice(b",\"start\":");
        add_seconds(&mut json, segment.start_ms)?;
        json.extend_from_slice(b",\"duration\":");
        add_seconds(&mut json, segment.duration_ms)?;
        json.push(b'}');
    }
    json.push(b']');
    Ok(json)
}

fn add(json: &mut Vec<u8>, value: impl Serialize) -> Result<()> {
    value
        .serialize(&mut Serializer::new(json))
        .map_err(|error| Error::unexpected(format!("cannot serialize segments: {error}")))
}

/// Appends milliseconds as seconds.
///
/// They are written as whole numbers, in a tenth of the time that the shortest decimal of a float takes, with the
/// same result.
fn add_seconds(json: &mut Vec<u8>, millis: u64) -> Result<()> {
    // Beyond the times of any transcript, floats are inexact or written with an exponent.
    if millis > 2 * TIME_MAX_MS {
        return add(json, seconds(millis));
    }
    add(json, millis / 1_000)?;
    let rest = millis % 1_000;
    let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8);
    let length = digits.iter().rposition(|&digit| digit != b'0').unwrap_or(0) + 1;
    json.push(b'.');
    json.extend(digits.into_iter().take(length));
    Ok(())
}

/// Parses the segments that [`write()`] wrote, exact to the millisecond.
///
/// `None` if the JSON is not a list of segments, or a time is beyond the limit of a transcript.
pub fn read(json: &[u8]) -> Option<Vec<transcript::Segment>> {
    let lines: Vec<Segment> = serde_json::from_slice(json).ok()?;
    from_wire(lines)
}

/// Converts times to whole milliseconds; `None` if one is beyond the limit of a transcript.
///
/// Invalid words are left out: they never cost the transcript.
pub fn from_wire(lines: Vec<Segment>) -> Option<Vec<transcript::Segment>> {
    let segment = |line: Segment| {
        Some(transcript::Segment {
            text: line.text,
            start_ms: millis(line.start)?,
            duration_ms: millis(line.duration)?,
            words: line.words.into_iter().map(word).collect::<Option<_>>().unwrap_or_default(),
        })
    };
    let mut segments = lines.into_iter().map(segment).collect::<Option<Vec<_>>>()?;
    transcript::remove_unfit_words(&mut segments);
    Some(segments)
}

fn word(word: Word) -> Option<transcript::Word> {
    Some(transcript::Word::new(word.text, millis(word.start)?, millis(word.duration)?))
}

/// Converts seconds to the nearest whole milliseconds.
///
/// Within the limits of a transcript, no other milliseconds are written as these seconds. `None` for NaN, a negative
/// time, or one beyond [`TIME_MAX_MS`].
pub fn millis(seconds: f64) -> Option<u64> {
    let millis = (seconds * 1000.0).round();
    // Neither comparison holds for NaN.
    (0.0 <= millis && millis <= TIME_MAX_MS as f64).then_some(millis as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment() -> impl Strategy<Value = transcript::Segment> {
        (any::<String>(), 0..=TIME_MAX_MS, prop_oneof![0_u64..10_000, 0..=TIME_MAX_MS])
            .prop_map(|(text, start_ms, duration_ms)| transcript::Segment::new(text, start_ms, duration_ms))
    }

    proptest! {
        #[test]
        fn segments_written_equal_response_and_read_back(
            segments in proptest::collection::vec(segment(), 0..20)
        ) {
            let json = write(&segments).unwrap();
            let answer: Vec<_> = segments.iter().map(Segment::from).collect();
            prop_assert_eq!(&json, &serde_json::to_vec(&answer).unwrap());
            prop_assert_eq!(read(&json).unwrap(), segments);
        }
    }

    #[test]
    fn segments_every_millisecond_is_distinct() {
        for millis_of in [0..100_000, TIME_MAX_MS - 100_000..TIME_MAX_MS + 1] {
            for number in millis_of {
                let text = serde_json::to_string(&seconds(number)).unwrap();
                let mut written = Vec::new();
                add_seconds(&mut written, number).unwrap();
                assert_eq!(written, text.as_bytes(), "{number}");
                assert_eq!(millis(serde_json::from_str(&text).unwrap()), Some(number), "{text}");
            }
        }
    }

    #[test]
    fn segments_invalid_word_costs_words() {
        let read_words = |start: &str| {
            let words = format!(
                r#"[{{"text":"a","start":0.5,"duration":0.25}},{{"text":"b","start":{start},"duration":0}}]"#
            );
            let json = format!(r#"[{{"text":"a b","start":0.5,"duration":1,"words":{words}}}]"#);
            read(json.as_bytes()).unwrap().swap_remove(0).words
        };
        let words = [transcript::Word::new("a", 500, 250), transcript::Word::new("b", 1_000, 0)];
        assert_eq!(read_words("1"), words);
        assert_eq!(read_words("-1"), []);
    }

    #[test]
    fn segments_other_json_is_rejected() {
        let line = |start: &str| format!(r#"[{{"text":"x","start":{start},"duration":1.0}}]"#);
        assert_eq!(read(line("0.001").as_bytes()).unwrap(), [transcript::Segment::new("x", 1, 1_000)]);
        for json in
            [String::new(), "{}".to_owned(), "[1]".to_owned(), line("-1"), line("1e300"), line("3600001")]
        {
            assert_eq!(read(json.as_bytes()), None, "{json}");
        }
    }
}
