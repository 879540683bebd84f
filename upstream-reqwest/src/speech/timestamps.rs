//! Validates the times of a service: small errors are repaired, impossible times are rejected. No I/O.

use transcript_core::transcript::{Segment, Word};

use super::{failure::SpeechFailure, response::TranscribedSpan, words::TranscribedWord};

/// How far a span may begin before its predecessor, and before the audio, in milliseconds.
const BACKWARDS_MAX_MS: i64 = 2_000;
/// How far after the end a span may begin: models process windows of 30 seconds, padded with silence.
const AFTER_END_MAX_MS: i64 = 30_000;
/// Above the length of any chunk.
const TIME_MAX_S: f64 = 1e7;

/// The spans as segments within a chunk of this length, in order.
///
/// Text that begins after the end of the chunk is invented and is dropped.
///
/// # Errors
/// [`SpeechFailure::Times`] when the times are impossible.
pub(super) fn to_segments(spans: &[TranscribedSpan], length_ms: u64) -> Result<Vec<Segment>, SpeechFailure> {
    let length = i64::try_from(length_ms).unwrap_or(i64::MAX);
    let mut placed: Vec<(i64, Option<i64>, &TranscribedSpan)> = Vec::with_capacity(spans.len());
    let (mut latest, mut inside, mut behind) = (0, 0, 0);
    for span in spans {
        let text = span.text.trim();
        if text.is_empty() {
            continue;
        }
        let start = milliseconds(span.start)?;
        if start < -BACKWARDS_MAX_MS {
            return Err(SpeechFailure::Times("a segment begins before the audio"));
        }
        if start + BACKWARDS_MAX_MS < latest {
            return Err(SpeechFailure::Times("they run backwards"));
        }
        if start > length.saturating_add(AFTER_END_MAX_MS) {
            return Err(SpeechFailure::Times("a segment begins long after the end of the audio"));
        }
        let start = start.max(latest);
        latest = start;
        if start >= length {
            behind += text.len();
            continue;
        }
        inside += text.len();
        let end = span.end.map(milliseconds).transpose()?.filter(|end| *end > start);
        placed.push((start, end, span));
    }
    if behind > inside {
        return Err(SpeechFailure::Times("most of the text begins after the end of the audio"));
    }
    let ends: Vec<i64> = placed.iter().skip(1).map(|(start, ..)| *start).chain([length]).collect();
    let segment = |((start, end, span), next): ((i64, Option<i64>, &TranscribedSpan), i64)| {
        let end = end.map_or(next, |end| end.min(next)).max(start);
        let words = words(span, start, end).unwrap_or_default();
        let (start, end) = (start.unsigned_abs(), end.unsigned_abs());
        Segment { words, ..Segment::new(span.text.trim(), start, end - start) }
    };
    Ok(placed.into_iter().zip(ends).map(segment).collect())
}

/// The words of a span that lasts from `start` to `end`; `None` if a time is impossible.
///
/// Small errors are repaired: the words stay in order and within the span.
fn words(span: &TranscribedSpan, start: i64, end: i64) -> Option<Vec<Word>> {
    let mut latest = start;
    let nexts = span.words.iter().skip(1).map(|word| word.start).map(Some).chain([None]);
    let word = |(word, next): (&TranscribedWord, Option<f64>)| {
        let from = milliseconds(word.start).ok()?;
        let to = word.end.or(next).map_or(Some(end), |to| milliseconds(to).ok())?;
        if from + BACKWARDS_MAX_MS < latest || from > end.saturating_add(BACKWARDS_MAX_MS) {
            return None;
        }
        latest = from.clamp(latest, end);
        let duration = to.clamp(latest, end) - latest;
        Some(Word::new(word.text.as_str(), latest.unsigned_abs(), duration.unsigned_abs()))
    };
    span.words.iter().zip(nexts).map(word).collect()
}

fn milliseconds(seconds: f64) -> Result<i64, SpeechFailure> {
    if seconds.is_finite() && seconds.abs() <= TIME_MAX_S {
        // The value is bounded, so the cast is exact enough.
        Ok((seconds * 1_000.0).round() as i64)
    } else {
        Err(SpeechFailure::Times("a time is not a valid number"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(start: f64, end: Option<f64>) -> TranscribedSpan {
        TranscribedSpan { end, ..TranscribedSpan::new(" a ", start) }
    }

    fn times(spans: &[(f64, f64)]) -> Result<Vec<(u64, u64)>, SpeechFailure> {
        let spans: Vec<_> = spans.iter().map(|(start, end)| span(*start, Some(*end))).collect();
        let segments = to_segments(&spans, 10_000)?;
        Ok(segments.iter().map(|segment| (segment.start_ms, segment.end_ms())).collect())
    }

    #[test]
    fn times_valid_are_kept() {
        assert_eq!(
            times(&[(0.0, 1.5), (1.5, 4.0), (6.25, 10.0)]).unwrap(),
            [(0, 1_500), (1_500, 4_000), (6_250, 10_000)]
        );
        assert_eq!(to_segments(&[], 10_000).unwrap(), []);
    }

    #[test]
    fn times_small_errors_are_repaired() {
        for (given, expect) in [
            // Overlapping; end before start; end after the chunk.
            (&[(0.0, 3.0), (2.0, 4.0)][..], &[(0, 2_000), (2_000, 4_000)][..]),
            (&[(1.0, 0.5), (2.0, 4.0)], &[(1_000, 2_000), (2_000, 4_000)]),
            (&[(9.0, 30.0)], &[(9_000, 10_000)]),
            // Slightly backwards; slightly before the start.
            (&[(3.0, 4.0), (2.0, 5.0)], &[(3_000, 3_000), (3_000, 5_000)]),
            (&[(-0.5, 1.0)], &[(0, 1_000)]),
            // Text in the silence that the model added after the end.
            (&[(1.0, 9.0), (2.0, 9.0), (10.5, 29.0)], &[(1_000, 2_000), (2_000, 9_000)]),
        ] {
            assert_eq!(times(given).unwrap(), expect, "{given:?}");
        }
        let open = to_segments(&[span(1.0, None), span(4.0, None)], 10_000).unwrap();
        assert_eq!(open.iter().map(Segment::end_ms).collect::<Vec<_>>(), [4_000, 10_000]);
    }

    #[test]
    fn times_of_words_stay_within_span() {
        let found = |list: &[(f64, Option<f64>)]| -> Vec<(u64, u64)> {
            let word = |(start, end): &(f64, Option<f64>)| TranscribedWord {
                text: "a".to_owned(),
                start: *start,
                end: *end,
            };
            let words = list.iter().map(word).collect();
            let span = TranscribedSpan { words, end: Some(3.0), ..TranscribedSpan::new(" a a ", 1.0) };
            let words = to_segments(&[span], 10_000).unwrap().swap_remove(0).words;
            words.iter().map(|word| (word.start_ms, word.end_ms())).collect()
        };
        assert_eq!(found(&[(1.0, Some(1.5)), (2.0, Some(2.5))]), [(1_000, 1_500), (2_000, 2_500)]);
        assert_eq!(found(&[(1.0, None), (2.0, None)]), [(1_000, 2_000), (2_000, 3_000)]);
        assert_eq!(found(&[(0.9, Some(4.0)), (0.8, Some(0.7))]), [(1_000, 3_000), (1_000, 1_000)]);
        for impossible in [(f64::NAN, None), (9.0, None), (-9.0, None), (1.0, Some(1e300))] {
            assert_eq!(found(&[impossible]), [], "{impossible:?}");
        }
    }

    #[test]
    fn times_impossible_are_rejected() {
        for given in [
            &[(5.0, 6.0), (0.0, 1.0)][..],
            &[(-3.0, 1.0)],
            &[(0.0, 1.0), (90.0, 91.0)],
            &[(12.0, 13.0)],
            &[(3.0e9, 5.0e9)],
            &[(0.0, 1.0e12)],
        ] {
            assert!(matches!(times(given), Err(SpeechFailure::Times(_))), "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn segments_are_ordered_within_chunk(
            given in prop::collection::vec((-3.0_f64..40.0, prop::option::of(-5.0_f64..50.0)), 0..20),
            length_ms in 0_u64..20_000,
        ) {
            let spans: Vec<_> = given.iter().map(|(start, end)| span(*start, *end)).collect();
            if let Ok(segments) = to_segments(&spans, length_ms) {
                prop_assert!(segments.windows(2).all(|pair| pair[0].end_ms() <= pair[1].start_ms));
                prop_assert!(segments.iter().all(|segment| segment.end_ms() <= length_ms && segment.text == "a"));
            }
        }
    }
}
