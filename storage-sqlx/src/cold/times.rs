//! The times of a transcript as a column of small numbers.
//!
//! A start is stored as the distance from the previous start. A length is stored as the difference from a guess:
//! generated captions usually last until the segment after the next begins, human captions often until the next
//! one begins, and in some files all are equally long. The encoder uses the guess that is exact most often; nearly
//! all differences are then zero.

use transcript_core::{
    body::numbers::{push_number, take_number, unzigzag, zigzag},
    transcript::{Segment, TIME_MAX_MS},
};

/// A guess for the length of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeGuess {
    /// The length of the previous segment.
    AsBefore,
    /// The time until the next segment begins.
    UntilNext,
    /// The time until the segment after the next begins.
    UntilAfterNext,
}

/// All guesses. The index of a guess is the number stored in the column.
const GUESSES: [TimeGuess; 3] = [TimeGuess::AsBefore, TimeGuess::UntilNext, TimeGuess::UntilAfterNext];

impl TimeGuess {
    /// The guess for the segment at this index, from the previous length and all starts.
    fn predict(self, index: usize, previous: i64, starts: &[i64]) -> i64 {
        let until = |ahead: usize| match (starts.get(index), starts.get(index + ahead)) {
            (Some(start), Some(later)) => later - start,
            _ => previous,
        };
        match self {
            Self::AsBefore => previous,
            Self::UntilNext => until(1),
            Self::UntilAfterNext => until(2),
        }
    }

    /// The difference of each length from its guess.
    fn residuals(self, starts: &[i64], lengths: &[i64]) -> Vec<i64> {
        let previous = std::iter::once(&0).chain(lengths);
        let indexed = lengths.iter().zip(previous).enumerate();
        indexed.map(|(index, (length, previous))| length - self.predict(index, *previous, starts)).collect()
    }
}

/// Encodes the times of segments for [`read`]. `None` if one exceeds the limit of a transcript.
pub(super) fn write(segments: &[Segment]) -> Option<Vec<u8>> {
    let bounded = |millis: u64| i64::try_from(millis).ok().filter(|_| millis <= TIME_MAX_MS);
    let starts: Vec<i64> = segments.iter().map(|segment| bounded(segment.start_ms)).collect::<Option<_>>()?;
    let lengths: Vec<i64> =
        segments.iter().map(|segment| bounded(segment.duration_ms)).collect::<Option<_>>()?;
    let candidates =
        GUESSES.iter().zip(0_u8..).map(|(guess, number)| (number, guess.residuals(&starts, &lengths)));
    let zeros = |residuals: &[i64]| residuals.iter().filter(|residual| **residual == 0).count();
    let (number, residuals) =
        candidates.max_by_key(|(number, residuals)| (zeros(residuals), std::cmp::Reverse(*number)))?;

    let mut bytes = Vec::with_capacity(3 * segments.len() + 8);
    push_number(&mut bytes, segments.len() as u64);
    bytes.push(number);
    let mut previous = 0;
    for start in starts {
        push_number(&mut bytes, zigzag(start - previous));
        previous = start;
    }
    residuals.into_iter().for_each(|residual| push_number(&mut bytes, zigzag(residual)));
    Some(bytes)
}

/// Start and length of each segment, in milliseconds. `None` if [`write`] did not write these bytes.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let mut residual = bytes;
    // Each segment has two numbers of at least one byte: a false count allocates nothing.
    let count = usize::try_from(take_number(&mut residual)?)
        .ok()
        .filter(|count| count.saturating_mul(2) <= bytes.len())?;
    let (number, after) = residual.split_first()?;
    let guess = *GUESSES.get(usize::from(*number))?;
    residual = after;
    let bounded = |millis: i64| u64::try_from(millis).ok().filter(|millis| *millis <= TIME_MAX_MS);
    let mut starts = Vec::with_capacity(count);
    let mut previous = 0_i64;
    for _ in 0..count {
        previous = previous.checked_add(unzigzag(take_number(&mut residual)?))?;
        bounded(previous)?;
        starts.push(previous);
    }
    let mut times = Vec::with_capacity(count);
    let mut previous = 0;
    for (index, start) in starts.iter().enumerate() {
        let length =
            guess.predict(index, previous, &starts).checked_add(unzigzag(take_number(&mut residual)?))?;
        times.push((bounded(*start)?, bounded(length)?));
        previous = length;
    }
    residual.is_empty().then_some(times)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(times: &[(u64, u64)]) -> Vec<Segment> {
        times.iter().map(|(start, length)| Segment::new("", *start, *length)).collect()
    }

    fn times() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let time = || prop_oneof![0_u64..10_000, 0..=TIME_MAX_MS];
        proptest::collection::vec((time(), time()), 0..30)
    }

    proptest! {
        #[test]
        fn times_encoded_decode_to_equal_times(times in times()) {
            prop_assert_eq!(read(&write(&segments(&times)).unwrap()).unwrap(), times);
        }

        #[test]
        fn times_arbitrary_bytes_decode_in_bounds_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let bounded = |(start, length): &(u64, u64)| *start <= TIME_MAX_MS && *length <= TIME_MAX_MS;
            prop_assert!(read(&bytes).is_none_or(|times| times.iter().all(bounded)));
        }
    }

    #[test]
    fn times_guessed_lengths_take_one_byte() {
        let starts = [40_u64, 3_011, 5_200, 9_999, 12_345, 14_000, 15_500];
        let until = |ahead: usize| -> Vec<(u64, u64)> {
            let later = |index: usize| starts.get(index + ahead).copied();
            starts
                .iter()
                .enumerate()
                .filter_map(|(index, start)| Some((*start, later(index)? - start)))
                .collect()
        };
        let even: Vec<_> = starts.iter().map(|start| (*start, 2_570)).collect();
        for (number, times) in [(0, even), (1, until(1)), (2, until(2))] {
            let bytes = write(&segments(&times)).unwrap();
            assert_eq!(bytes[1], number, "{times:?}");
            // At the beginning or the end there is nothing to guess from.
            let guessed = bytes.iter().filter(|byte| **byte == 0).count();
            assert!(guessed + 2 >= times.len(), "{bytes:?}");
        }
    }

    #[test]
    fn times_malformed_column_is_rejected() {
        let whole = write(&segments(&[(5, 10), (9, 10)])).unwrap();
        assert!(read(&whole).is_some());
        for index in 0..whole.len() {
            assert_eq!(read(&whole[..index]), None, "cut at {index}");
        }
        assert_eq!(read(&[whole.as_slice(), &[0]].concat()), None, "more than all");
        // An unknown guess; a start before zero; a count larger than the bytes.
        assert_eq!(read(&[1, 3, 0, 0]), None);
        assert_eq!(read(&[1, 0, 1, 0]), None);
        assert_eq!(read(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0]), None);
        assert_eq!(write(&segments(&[(TIME_MAX_MS + 1, 0)])), None);
        assert_eq!(write(&segments(&[(0, u64::MAX)])), None);
    }
}
