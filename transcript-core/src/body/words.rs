//! Compact form of the words of a transcript, for archives.
//!
//! It holds where the words are in the text of their segments, and when; the text is stored once, with the segments.
//! A number of the usual word, one that white space separates and that lasts until the next, is a difference of starts:
//! one byte, which compresses to less. Columns of equal kind follow each other, so that a compressor finds them alike.

use crate::transcript::{Segment, Word, default_words_end, word_offsets};

/// The version of this form.
const VERSION: u64 = 1;
/// How the words of a segment are stored.
const NO_WORDS: u8 = 0;
const SPACED: u8 = 1;
const EXPLICIT: u8 = 2;

/// The columns of the form.
#[derive(Debug, Default)]
struct Columns {
    /// One byte for each segment.
    kinds: Vec<u8>,
    /// For each explicit segment: the number of words, then the distance from the previous word and the length of each.
    places: Vec<u8>,
    /// Differences of starts in units.
    starts: Vec<u8>,
    /// 0: the word lasts until the next. Else its duration in units, plus 1.
    durations: Vec<u8>,
}

/// Encodes the words of all segments; `None` if no segment has words.
pub fn encode(segments: &[Segment]) -> Option<Vec<u8>> {
    if segments.iter().all(|segment| segment.words.is_empty()) {
        return None;
    }
    let unit = unit(segments);
    let mut columns = Columns::default();
    for (index, segment) in segments.iter().enumerate() {
        let words = &segment.words;
        if words.is_empty() {
            columns.kinds.push(NO_WORDS);
            continue;
        }
        if segment.text.split_whitespace().eq(words.iter().map(|word| word.text.as_str())) {
            columns.kinds.push(SPACED);
        } else {
            columns.kinds.push(EXPLICIT);
            push_places(&mut columns.places, segment)?;
        }
        let mut before = segment.start_ms;
        for word in words {
            push_signed(&mut columns.starts, difference(word.start_ms, before) / unit.cast_signed());
            before = word.start_ms;
        }
        let ends = words.iter().skip(1).map(|word| word.start_ms).chain([default_words_end(segments, index)]);
        for (word, end) in words.iter().zip(ends) {
            let is_default = word.duration_ms == end.saturating_sub(word.start_ms);
            push(&mut columns.durations, if is_default { 0 } else { word.duration_ms / unit + 1 });
        }
    }
    let Columns { kinds, places, starts, durations } = columns;
    let mut bytes = Vec::new();
    push(&mut bytes, VERSION);
    push(&mut bytes, unit);
    for column in [kinds, places, starts, durations] {
        push(&mut bytes, column.len() as u64);
        bytes.extend(column);
    }
    Some(bytes)
}

/// Decodes words into the segments with which they were encoded. `None` if they do not fit.
pub fn decode(bytes: &[u8], segments: &mut [Segment]) -> Option<()> {
    let mut bytes = bytes;
    let (version, unit) = (take(&mut bytes)?, take(&mut bytes)?);
    if version != VERSION || unit == 0 {
        return None;
    }
    let [kinds, mut places, mut starts, mut durations] = take_columns(&mut bytes)?;
    if !bytes.is_empty() || kinds.len() != segments.len() {
        return None;
    }
    let mut are_default: Vec<Vec<bool>> = Vec::with_capacity(segments.len());
    for (segment, kind) in segments.iter_mut().zip(kinds) {
        let texts: Vec<&str> = match *kind {
            NO_WORDS => Vec::new(),
            SPACED => segment.text.split_whitespace().collect(),
            EXPLICIT => take_places(&mut places, &segment.text)?,
            _ => return None,
        };
        let mut words = Vec::with_capacity(texts.len());
        let mut defaults = Vec::with_capacity(texts.len());
        let mut before = segment.start_ms;
        for text in texts {
            let step = take_signed(&mut starts)?.checked_mul(i64::try_from(unit).ok()?)?;
            before = before.checked_add_signed(step)?;
            let duration = take(&mut durations)?;
            defaults.push(duration == 0);
            words.push(Word::new(text, before, duration.saturating_sub(1).checked_mul(unit)?));
        }
        segment.words = words;
        are_default.push(defaults);
    }
    for (index, defaults) in are_default.iter().enumerate() {
        let end = default_words_end(segments, index);
        let words = &mut segments.get_mut(index)?.words;
        let ends: Vec<u64> = words.iter().skip(1).map(|word| word.start_ms).chain([end]).collect();
        for ((word, end), is_default) in words.iter_mut().zip(ends).zip(defaults) {
            if *is_default {
                word.duration_ms = end.saturating_sub(word.start_ms);
            }
        }
    }
    (places.is_empty() && starts.is_empty() && durations.is_empty()).then_some(())
}

/// The largest number of milliseconds of which all differences and durations are multiples.
fn unit(segments: &[Segment]) -> u64 {
    let mut unit = 0;
    for segment in segments {
        let mut before = segment.start_ms;
        for word in &segment.words {
            unit = greatest_divisor(unit, word.start_ms.abs_diff(before));
            unit = greatest_divisor(unit, word.duration_ms);
            before = word.start_ms;
        }
    }
    unit.max(1)
}

fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

fn difference(to: u64, from: u64) -> i64 {
    to.cast_signed().wrapping_sub(from.cast_signed())
}

fn push_places(places: &mut Vec<u8>, segment: &Segment) -> Option<()> {
    push(places, segment.words.len() as u64);
    let mut end = 0;
    for (word, at) in segment.words.iter().zip(word_offsets(segment)?) {
        push(places, (at - end) as u64);
        push(places, word.text.len() as u64);
        end = at + word.text.len();
    }
    Some(())
}

fn take_places<'a>(places: &mut &[u8], text: &'a str) -> Option<Vec<&'a str>> {
    let count = usize::try_from(take(places)?).ok().filter(|count| *count <= text.len())?;
    let mut end = 0_usize;
    let mut texts = Vec::with_capacity(count);
    for _ in 0..count {
        let start = end.checked_add(usize::try_from(take(places)?).ok()?)?;
        end = start.checked_add(usize::try_from(take(places)?).ok()?)?;
        texts.push(text.get(start..end).filter(|text| !text.is_empty())?);
    }
    Some(texts)
}

fn take_columns<'a>(bytes: &mut &'a [u8]) -> Option<[&'a [u8]; 4]> {
    let mut columns = [&[][..]; 4];
    for column in &mut columns {
        let length = usize::try_from(take(bytes)?).ok()?;
        (*column, *bytes) = bytes.split_at_checked(length)?;
    }
    Some(columns)
}

/// Appends a number in groups of seven bits, the lowest first.
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn push_signed(bytes: &mut Vec<u8>, number: i64) {
    push(bytes, (number << 1 ^ number >> 63).cast_unsigned());
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = take(bytes)?;
    Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transcript::set_word_durations;

    fn without_words(segments: &[Segment]) -> Vec<Segment> {
        segments.iter().map(|segment| Segment { words: Vec::new(), ..segment.clone() }).collect()
    }

    fn check(segments: &[Segment]) -> usize {
        let bytes = encode(segments).unwrap();
        let mut decoded = without_words(segments);
        decode(&bytes, &mut decoded).unwrap();
        assert_eq!(decoded, segments);
        bytes.len()
    }

    #[test]
    fn words_encoded_decode_to_equal_words() {
        let mut segments = vec![
            Segment::new("it is so\nquiet", 1_000, 3_000),
            Segment::new("no words here", 2_500, 2_000),
            Segment::new("再见, 朋友", 4_000, 900),
        ];
        segments[0].words = [("it", 1_000), ("is", 1_240), ("so", 1_400), ("quiet", 1_900)]
            .map(|(text, start)| Word::new(text, start, 0))
            .into();
        segments[2].words = vec![Word::new("再见", 4_000, 0), Word::new("朋友", 4_300, 0)];
        set_word_durations(&mut segments);
        assert!(check(&segments) < 40);
        segments[0].words[1].duration_ms = 17;
        segments[0].words[0].start_ms = 3;
        check(&segments);
        assert_eq!(encode(&without_words(&segments)), None);
    }

    #[test]
    fn words_damaged_are_rejected_or_fit() {
        let mut segments = vec![Segment::new("a bc, d", 0, 900), Segment::new("e", 950, 100)];
        segments[0].words = vec![Word::new("bc", 0, 10), Word::new("d", 300, 20)];
        segments[1].words = vec![Word::new("e", 950, 0)];
        let bytes = encode(&segments).unwrap();
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], &mut without_words(&segments)), None, "{length}");
        }
        for index in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[index] ^= 1 << bit;
                let mut decoded = without_words(&segments);
                if decode(&damaged, &mut decoded).is_some() {
                    assert!(decoded.iter().all(|segment| word_offsets(segment).is_some()));
                }
            }
        }
        assert_eq!(decode(&bytes, &mut without_words(&segments)[..1]), None);
    }

    proptest! {
        #[test]
        fn words_of_any_segments_decode(
            list in proptest::collection::vec(
                (proptest::collection::vec(("[a-zé]{1,4}", 0_u64..5_000, 0_u64..900), 0..6), 0_u64..10_000, "[ ,.]{1,2}"),
                0..8,
            ),
        ) {
            let mut segments: Vec<Segment> = list
                .into_iter()
                .map(|(words, start, separator)| {
                    let text = words.iter().map(|word| word.0.as_str()).collect::<Vec<_>>().join(&separator);
                    let words = words.into_iter().map(|(text, start, duration)| Word::new(text, start, duration));
                    Segment { words: words.collect(), ..Segment::new(text, start, 2_000) }
                })
                .collect();
            segments.iter_mut().for_each(|segment| segment.words.sort_by_key(|word| word.start_ms));
            segments.retain(|segment| word_offsets(segment).is_some());
            if let Some(bytes) = encode(&segments) {
                let mut decoded = without_words(&segments);
                prop_assert_eq!(decode(&bytes, &mut decoded), Some(()));
                prop_assert_eq!(decoded, segments);
            }
        }
    }
}
