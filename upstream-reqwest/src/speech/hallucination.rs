//! Removes text that a model invents for silence: thanks for watching, subtitle credits, repetitions.
//!
//! No I/O.

use transcript_core::transcript::Segment;

use super::response::TranscribedSpan;

/// Whisper's own rule for silence: high no-speech probability and low confidence in the text.
const NO_SPEECH_MIN: f64 = 0.6;
const CONFIDENCE_MIN: f64 = -1.0;
/// Whisper's own rule for repetitions: the text compresses too well.
const COMPRESSION_MAX: f64 = 2.4;
/// Maximum number of equal texts in a row.
const REPEATS_MAX: usize = 3;

/// Whether the model's confidence values mark a span as invented. A span without these values is kept.
pub(super) fn is_low_confidence(span: &TranscribedSpan) -> bool {
    let is_silence = span.no_speech_prob.is_some_and(|prob| prob > NO_SPEECH_MIN)
        && span.avg_logprob.is_some_and(|trust| trust < CONFIDENCE_MIN);
    is_silence || span.compression_ratio.is_some_and(|ratio| ratio > COMPRESSION_MAX)
}

/// Whether a text contains words.
///
/// Notes and remarks in brackets, such as `♪` or `[Music]`, do not count.
pub(super) fn has_words(text: &str) -> bool {
    let mut depth = 0_usize;
    text.chars().any(|c| {
        match c {
            '[' | '(' | '【' | '（' => depth += 1,
            ']' | ')' | '】' | '）' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_alphanumeric()
    })
}

/// Reduces runs of more than three equal texts to the first one.
pub(super) fn remove_repetition(segments: Vec<Segment>) -> Vec<Segment> {
    let mut kept: Vec<Segment> = Vec::with_capacity(segments.len());
    let mut run: Vec<Segment> = Vec::new();
    for segment in segments {
        if run.last().is_some_and(|last| !is_same(&last.text, &segment.text)) {
            end_run(&mut run, &mut kept);
        }
        run.push(segment);
    }
    end_run(&mut run, &mut kept);
    kept
}

fn end_run(run: &mut Vec<Segment>, kept: &mut Vec<Segment>) {
    let count = if run.len() > REPEATS_MAX { 1 } else { run.len() };
    kept.extend(run.drain(..).take(count));
}

fn is_same(one: &str, other: &str) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_confidence_span_is_detected() {
        let span = |no_speech_prob, avg_logprob, compression_ratio| {
            is_low_confidence(&TranscribedSpan {
                no_speech_prob,
                avg_logprob,
                compression_ratio,
                ..TranscribedSpan::new("Thank you.", 0.0)
            })
        };
        assert!(span(Some(0.9), Some(-1.2), None));
        assert!(span(None, None, Some(9.0)));
        assert!(!span(Some(0.9), Some(-0.3), Some(1.4)));
        assert!(!span(Some(0.9), None, None));
        assert!(!span(None, None, None));
    }

    #[test]
    fn remarks_in_brackets_are_not_words() {
        for text in ["♪", "[Music]", "(applause) ♪♪", "...", "【音楽】", ""] {
            assert!(!has_words(text), "{text}");
        }
        for text in ["[Music] Hello", "7", "(he) said", "ありがとう", "] odd"] {
            assert!(has_words(text), "{text}");
        }
    }

    #[test]
    fn repetition_over_three_is_reduced_to_one() {
        let kept = |texts: &[&str]| {
            let segments = texts.iter().map(|text| Segment::new(*text, 0, 1)).collect();
            remove_repetition(segments).into_iter().map(|segment| segment.text).collect::<Vec<_>>()
        };
        assert_eq!(kept(&["No.", "no!", "No", "Yes."]), ["No.", "no!", "No", "Yes."]);
        assert_eq!(kept(&["a", "You.", "you", "You!", "You.", "b"]), ["a", "You.", "b"]);
        assert!(kept(&[]).is_empty());
    }
}
