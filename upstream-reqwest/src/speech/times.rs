//! The times that a service gave, as far as they can be true: repaired where it is clear what was meant,
//! refused where it is not. Pure.

use transcript_core::transcript::Segment;

use super::{answer::Piece, refusal::Refusal};

/// How far a piece may begin before the one that comes before it, and before the sound, in milliseconds.
const BACKWARDS_MAX_MS: i64 = 2_000;
/// How far behind the end a piece may begin: models look at 30 seconds at once, filled up with silence.
const BEHIND_MAX_MS: i64 = 30_000;
/// Longer than any part.
const TIME_MAX_S: f64 = 1e7;

/// The pieces as segments within a part of this length, in their order. What begins behind the end of the part
/// was said by nobody, and is left out.
///
/// # Errors
/// [`Refusal::Times`] when the times make no sense.
pub(super) fn placed(pieces: &[Piece], length_ms: u64) -> Result<Vec<Segment>, Refusal> {
    let length = i64::try_from(length_ms).unwrap_or(i64::MAX);
    let mut placed: Vec<(i64, Option<i64>, &str)> = Vec::with_capacity(pieces.len());
    let (mut latest, mut inside, mut behind) = (0, 0, 0);
    for piece in pieces {
        let text = piece.text.trim();
        if text.is_empty() {
            continue;
        }
        let start = milliseconds(piece.start)?;
        if start < -BACKWARDS_MAX_MS {
            return Err(Refusal::Times("a piece begins before the sound does"));
        }
        if start + BACKWARDS_MAX_MS < latest {
            return Err(Refusal::Times("they run backwards"));
        }
        if start > length.saturating_add(BEHIND_MAX_MS) {
            return Err(Refusal::Times("a piece begins long after the end of the sound"));
        }
        let start = start.max(latest);
        latest = start;
        if start >= length {
            behind += text.len();
            continue;
        }
        inside += text.len();
        let end = piece.end.map(milliseconds).transpose()?.filter(|end| *end > start);
        placed.push((start, end, text));
    }
    if behind > inside {
        return Err(Refusal::Times("most of it begins after the end of the sound"));
    }
    let ends: Vec<i64> = placed.iter().skip(1).map(|(start, ..)| *start).chain([length]).collect();
    let segment = |((start, end, text), next): ((i64, Option<i64>, &str), i64)| {
        let end = end.map_or(next, |end| end.min(next));
        let (start, end) = (start.unsigned_abs(), end.max(start).unsigned_abs());
        Segment::new(text, start, end - start)
    };
    Ok(placed.into_iter().zip(ends).map(segment).collect())
}

fn milliseconds(seconds: f64) -> Result<i64, Refusal> {
    if seconds.is_finite() && seconds.abs() <= TIME_MAX_S {
        // A cast of a float that is within bounds is exact enough.
        Ok((seconds * 1_000.0).round() as i64)
    } else {
        Err(Refusal::Times("they are no times"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(start: f64, end: Option<f64>) -> Piece {
        Piece {
            text: " a ".to_owned(),
            start,
            end,
            no_speech_prob: None,
            avg_logprob: None,
            compression_ratio: None,
        }
    }

    fn times(pieces: &[(f64, f64)]) -> Result<Vec<(u64, u64)>, Refusal> {
        let pieces: Vec<_> = pieces.iter().map(|(start, end)| piece(*start, Some(*end))).collect();
        let segments = placed(&pieces, 10_000)?;
        Ok(segments.iter().map(|segment| (segment.start_ms, segment.end_ms())).collect())
    }

    #[test]
    fn good_times_are_kept() {
        assert_eq!(
            times(&[(0.0, 1.5), (1.5, 4.0), (6.25, 10.0)]).unwrap(),
            [(0, 1_500), (1_500, 4_000), (6_250, 10_000)]
        );
        assert_eq!(placed(&[], 10_000).unwrap(), []);
    }

    #[test]
    fn small_slips_are_repaired() {
        for (given, expect) in [
            // Overlapping, ending before it begins, ending behind the end.
            (&[(0.0, 3.0), (2.0, 4.0)][..], &[(0, 2_000), (2_000, 4_000)][..]),
            (&[(1.0, 0.5), (2.0, 4.0)], &[(1_000, 2_000), (2_000, 4_000)]),
            (&[(9.0, 30.0)], &[(9_000, 10_000)]),
            // A little backwards, a little before the beginning.
            (&[(3.0, 4.0), (2.0, 5.0)], &[(3_000, 3_000), (3_000, 5_000)]),
            (&[(-0.5, 1.0)], &[(0, 1_000)]),
            // Said into the silence that the model put behind the end.
            (&[(1.0, 9.0), (2.0, 9.0), (10.5, 29.0)], &[(1_000, 2_000), (2_000, 9_000)]),
        ] {
            assert_eq!(times(given).unwrap(), expect, "{given:?}");
        }
        let open = placed(&[piece(1.0, None), piece(4.0, None)], 10_000).unwrap();
        assert_eq!(open.iter().map(Segment::end_ms).collect::<Vec<_>>(), [4_000, 10_000]);
    }

    #[test]
    fn nonsense_is_refused() {
        for given in [
            &[(5.0, 6.0), (0.0, 1.0)][..],
            &[(-3.0, 1.0)],
            &[(0.0, 1.0), (90.0, 91.0)],
            &[(12.0, 13.0)],
            &[(3.0e9, 5.0e9)],
            &[(0.0, 1.0e12)],
        ] {
            assert!(matches!(times(given), Err(Refusal::Times(_))), "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn segments_lie_in_order_within_their_part(
            given in prop::collection::vec((-3.0_f64..40.0, prop::option::of(-5.0_f64..50.0)), 0..20),
            length_ms in 0_u64..20_000,
        ) {
            let pieces: Vec<_> = given.iter().map(|(start, end)| piece(*start, *end)).collect();
            if let Ok(segments) = placed(&pieces, length_ms) {
                prop_assert!(segments.windows(2).all(|pair| pair[0].end_ms() <= pair[1].start_ms));
                prop_assert!(segments.iter().all(|segment| segment.end_ms() <= length_ms && segment.text == "a"));
            }
        }
    }
}
