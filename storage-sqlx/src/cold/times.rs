//! The times of a transcript as a column of small numbers.
//!
//! A start is the distance from the one before. A length is what is left when something has been guessed that is
//! known already: captions that a machine made stay until the one after the next begins, those of people often until the
//! next one does, and some are all equally long. Whichever guess is right most often is taken, and then nearly
//! all that is left is zero.

use transcript_core::{captions::TIME_MAX_MS, transcript::Segment};

/// What a length is guessed to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    /// That of the segment before.
    AsBefore,
    /// The time until the next segment begins.
    UntilNext,
    /// The time until the segment after the next begins.
    UntilAfterNext,
}

/// In this order on disk.
const GUESSES: [Guess; 3] = [Guess::AsBefore, Guess::UntilNext, Guess::UntilAfterNext];

impl Guess {
    /// The guess for the segment at this place, of the lengths before it and all starts.
    fn at(self, place: usize, before: i64, starts: &[i64]) -> i64 {
        let until = |ahead: usize| match (starts.get(place), starts.get(place + ahead)) {
            (Some(start), Some(later)) => later - start,
            _ => before,
        };
        match self {
            Self::AsBefore => before,
            Self::UntilNext => until(1),
            Self::UntilAfterNext => until(2),
        }
    }

    /// What is left of each length.
    fn rests(self, starts: &[i64], lengths: &[i64]) -> Vec<i64> {
        let before = std::iter::once(&0).chain(lengths);
        let places = lengths.iter().zip(before).enumerate();
        places.map(|(place, (length, before))| length - self.at(place, *before, starts)).collect()
    }
}

/// The times of segments, as [`read`] takes them; none when one lies beyond what a transcript may have.
pub(super) fn write(segments: &[Segment]) -> Option<Vec<u8>> {
    let bounded = |millis: u64| i64::try_from(millis).ok().filter(|_| millis <= TIME_MAX_MS);
    let starts: Vec<i64> = segments.iter().map(|segment| bounded(segment.start_ms)).collect::<Option<_>>()?;
    let lengths: Vec<i64> =
        segments.iter().map(|segment| bounded(segment.duration_ms)).collect::<Option<_>>()?;
    let left = GUESSES.iter().zip(0_u8..).map(|(guess, number)| (number, guess.rests(&starts, &lengths)));
    let zeros = |rests: &[i64]| rests.iter().filter(|rest| **rest == 0).count();
    let (number, rests) = left.max_by_key(|(number, rests)| (zeros(rests), std::cmp::Reverse(*number)))?;

    let mut bytes = Vec::with_capacity(3 * segments.len() + 8);
    add(&mut bytes, segments.len() as u64);
    bytes.push(number);
    let mut before = 0;
    for start in starts {
        add(&mut bytes, folded(start - before));
        before = start;
    }
    rests.into_iter().for_each(|rest| add(&mut bytes, folded(rest)));
    Some(bytes)
}

/// The start and the length of each segment, in milliseconds; none when this is nothing that [`write`] wrote.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let mut rest = bytes;
    // Each segment has two numbers of a byte at least: a count that is not true takes no memory.
    let count =
        usize::try_from(take(&mut rest)?).ok().filter(|count| count.saturating_mul(2) <= bytes.len())?;
    let (number, after) = rest.split_first()?;
    let guess = *GUESSES.get(usize::from(*number))?;
    rest = after;
    let bounded = |millis: i64| u64::try_from(millis).ok().filter(|millis| *millis <= TIME_MAX_MS);
    let mut starts = Vec::with_capacity(count);
    let mut before = 0_i64;
    for _ in 0..count {
        before = before.checked_add(unfolded(take(&mut rest)?))?;
        bounded(before)?;
        starts.push(before);
    }
    let mut times = Vec::with_capacity(count);
    let mut before = 0;
    for (place, start) in starts.iter().enumerate() {
        let length = guess.at(place, before, &starts).checked_add(unfolded(take(&mut rest)?))?;
        times.push((bounded(*start)?, bounded(length)?));
        before = length;
    }
    rest.is_empty().then_some(times)
}

/// A number whose sign is its last bit, so that those near zero are small.
fn folded(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unfolded(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Adds a number, seven bits in a byte, the lowest first.
fn add(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number off the front; none where there is none.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
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
        fn times_come_back_to_the_millisecond(times in times()) {
            prop_assert_eq!(read(&write(&segments(&times)).unwrap()).unwrap(), times);
        }

        #[test]
        fn any_bytes_are_times_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let bounded = |(start, length): &(u64, u64)| *start <= TIME_MAX_MS && *length <= TIME_MAX_MS;
            prop_assert!(read(&bytes).is_none_or(|times| times.iter().all(bounded)));
        }

        #[test]
        fn numbers_come_back(number in any::<i64>()) {
            // What times differ by is far within 62 bits.
            let number = number >> 2;
            let mut bytes = Vec::new();
            add(&mut bytes, folded(number));
            let mut rest = bytes.as_slice();
            prop_assert_eq!(take(&mut rest).map(unfolded), Some(number));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn what_can_be_guessed_takes_a_byte() {
        let starts = [40_u64, 3_011, 5_200, 9_999, 12_345, 14_000, 15_500];
        let until = |ahead: usize| -> Vec<(u64, u64)> {
            let later = |place: usize| starts.get(place + ahead).copied();
            starts
                .iter()
                .enumerate()
                .filter_map(|(place, start)| Some((*start, later(place)? - start)))
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
    fn what_is_no_column_of_times_is_refused() {
        let whole = write(&segments(&[(5, 10), (9, 10)])).unwrap();
        assert!(read(&whole).is_some());
        for place in 0..whole.len() {
            assert_eq!(read(&whole[..place]), None, "cut at {place}");
        }
        assert_eq!(read(&[whole.as_slice(), &[0]].concat()), None, "more than all");
        // An unknown guess; a start before the beginning; a count that no bytes are there for.
        assert_eq!(read(&[1, 3, 0, 0]), None);
        assert_eq!(read(&[1, 0, 1, 0]), None);
        assert_eq!(read(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0]), None);
        assert_eq!(write(&segments(&[(TIME_MAX_MS + 1, 0)])), None);
        assert_eq!(write(&segments(&[(0, u64::MAX)])), None);
    }
}
