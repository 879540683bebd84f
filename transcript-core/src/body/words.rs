//! Compact form of the words of a transcript, for archives.
//!
//! It holds where the words are in the text of their segments, and when; the text is stored once, with the segments.
//! The usual word, one that white space separates and that lasts until the next, takes the distance from the start of
//! the word before and nothing else. Recognisers measure in steps of 10 ms or more, and recordings have about 200
//! different distances: a byte names one of a table. On recorded captions that is 8 bits a word, of which a compressor
//! leaves 5; numbers of seven bits a byte, compressed at the highest level, took 8.

use std::collections::BTreeMap;

use crate::transcript::{Segment, WORDS_MAX, Word, default_words_end, find_words};

/// The version of this form.
const VERSION: u64 = 1;
/// How the words of a segment are stored.
const NO_WORDS: u8 = 0;
const SPACED: u8 = 1;
const EXPLICIT: u8 = 2;
/// Steps of starts in milliseconds, the longest first.
const STEPS: [u64; 12] = [1000, 500, 250, 200, 100, 80, 50, 40, 30, 25, 20, 10];
/// The byte of a number that is not in its table.
const ESCAPE: u8 = u8::MAX;

/// The columns of the form.
#[derive(Debug, Default)]
struct Columns {
    /// One byte for each segment.
    kinds: Vec<u8>,
    /// For each explicit segment: the number of words, then the distance from the previous word and the length of each.
    places: Vec<u8>,
    /// The distance of each segment's first word from its segment, in steps.
    firsts: Vec<u64>,
    /// The distance of each other word from the one before, in steps.
    distances: Vec<u64>,
    /// A bit for each word: whether it starts a millisecond before its step, as times that were rounded down do; for
    /// the first word of a segment, whether it differs from its segment in that.
    early: Vec<bool>,
    /// 0: the word lasts until the next. Else its duration, plus 1.
    durations: Vec<u64>,
}

impl Columns {
    fn add_times(&mut self, segments: &[Segment], index: usize, step: u64) {
        let Some(segment) = segments.get(index) else { return };
        let mut before = position(segment.start_ms, step);
        for (number, word) in segment.words.iter().enumerate() {
            let at = position(word.start_ms, step);
            let distances = if number == 0 { &mut self.firsts } else { &mut self.distances };
            distances.push(zigzag(at.0.wrapping_sub(before.0).cast_signed()));
            self.early.push(if number == 0 { at.1 != before.1 } else { at.1 });
            before = at;
        }
        let ends = segment.words.iter().skip(1).map(|word| word.start_ms);
        for (word, end) in segment.words.iter().zip(ends.chain([default_words_end(segments, index)])) {
            let is_default = word.duration_ms == end.saturating_sub(word.start_ms);
            self.durations.push(if is_default { 0 } else { word.duration_ms.saturating_add(1) });
        }
    }
}

/// Encodes the words of all segments; `None` if no segment has words, or words do not occur in their segment.
pub fn encode(segments: &[Segment]) -> Option<Vec<u8>> {
    if segments.iter().all(|segment| segment.words.is_empty()) {
        return None;
    }
    let step = step(segments);
    let mut columns = Columns::default();
    for (index, segment) in segments.iter().enumerate() {
        let words = &segment.words;
        columns.kinds.push(if words.is_empty() {
            NO_WORDS
        } else if segment.text.split_whitespace().eq(words.iter().map(|word| word.text.as_str())) {
            SPACED
        } else {
            push_places(&mut columns.places, segment)?;
            EXPLICIT
        });
        columns.add_times(segments, index, step);
    }
    let Columns { kinds, places, firsts, distances, early, durations } = columns;
    let early = if early.contains(&true) { pack_bits(&early) } else { Vec::new() };
    let mut bytes = Vec::new();
    push(&mut bytes, VERSION);
    push(&mut bytes, step);
    for column in [kinds, places, coded(&firsts), coded(&distances), early, coded(&durations)] {
        push(&mut bytes, column.len() as u64);
        bytes.extend(column);
    }
    Some(bytes)
}

/// Decodes words into the segments with which they were encoded. `None` if they do not fit.
pub fn decode(bytes: &[u8], segments: &mut [Segment]) -> Option<()> {
    let mut bytes = bytes;
    let (version, step) = (take(&mut bytes)?, take(&mut bytes)?);
    if version != VERSION || step == 0 {
        return None;
    }
    let [kinds, mut places, firsts, distances, early, durations] = take_columns(&mut bytes)?;
    if !bytes.is_empty() || kinds.len() != segments.len() {
        return None;
    }
    let (firsts, distances, durations) = (decoded(firsts)?, decoded(distances)?, decoded(durations)?);
    let (mut firsts, mut distances) = (firsts.into_iter(), distances.into_iter());
    if !early.is_empty() && early.len() != durations.len().div_ceil(8) {
        return None;
    }
    let mut count = 0_usize;
    for (segment, kind) in segments.iter_mut().zip(kinds) {
        let texts: Vec<&str> = match *kind {
            NO_WORDS => Vec::new(),
            SPACED => segment.text.split_whitespace().collect(),
            EXPLICIT => take_places(&mut places, &segment.text)?,
            _ => return None,
        };
        let mut before = position(segment.start_ms, step);
        let mut words = Vec::with_capacity(texts.len());
        for (number, text) in texts.into_iter().enumerate() {
            let distance = if number == 0 { firsts.next()? } else { distances.next()? };
            let at = before.0.checked_add_signed(unzigzag(distance))?;
            let is_early = early.get(count / 8).is_some_and(|byte| byte >> (count % 8) & 1 == 1);
            before = (at, if number == 0 { is_early != before.1 } else { is_early });
            words.push(Word::new(text, at.checked_mul(step)?.checked_sub(before.1.into())?, 0));
            count += 1;
        }
        segment.words = words;
    }
    set_durations(segments, &durations)?;
    (places.is_empty() && firsts.next().is_none() && distances.next().is_none()).then_some(())
}

/// Sets the durations of all words, once all starts are known. `None` if there are more or fewer.
fn set_durations(segments: &mut [Segment], durations: &[u64]) -> Option<()> {
    let mut durations = durations.iter();
    for index in 0..segments.len() {
        let end = default_words_end(segments, index);
        let words = &mut segments.get_mut(index)?.words;
        let ends: Vec<u64> = words.iter().skip(1).map(|word| word.start_ms).chain([end]).collect();
        for (word, end) in words.iter_mut().zip(ends) {
            word.duration_ms = match durations.next()? {
                0 => end.saturating_sub(word.start_ms),
                duration => duration - 1,
            };
        }
    }
    durations.next().is_none().then_some(())
}

/// The longest step of which all starts are multiples, or a millisecond less; else 1.
fn step(segments: &[Segment]) -> u64 {
    let fits = |step: u64| {
        let mut words = segments.iter().flat_map(|segment| &segment.words);
        words.all(|word| word.start_ms % step == 0 || word.start_ms % step == step - 1)
    };
    STEPS.into_iter().find(|step| fits(*step)).unwrap_or(1)
}

/// A time in whole steps, and whether it is a millisecond before them.
fn position(millis: u64, step: u64) -> (u64, bool) {
    let is_early = step > 1 && millis % step == step - 1;
    (millis.saturating_add(is_early.into()) / step, is_early)
}

/// Numbers as bytes that name those of a table, which comes first; rarer numbers follow the bytes.
fn coded(numbers: &[u64]) -> Vec<u8> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for number in numbers {
        *counts.entry(*number).or_default() += 1;
    }
    let mut by_count: Vec<(u64, usize)> = counts.into_iter().collect();
    // Stable, so that the form is the same each time.
    by_count.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    by_count.truncate(ESCAPE.into());
    let mut table: Vec<u64> = by_count.into_iter().map(|(number, _)| number).collect();
    table.sort_unstable();
    let mut bytes = Vec::with_capacity(numbers.len() + table.len() + 8);
    push(&mut bytes, numbers.len() as u64);
    push(&mut bytes, table.len() as u64);
    let mut before = 0;
    for number in &table {
        push(&mut bytes, number - before);
        before = *number;
    }
    let mut rare = Vec::new();
    for number in numbers {
        bytes.push(match table.binary_search(number) {
            Ok(index) => u8::try_from(index).unwrap_or(ESCAPE),
            Err(_) => {
                push(&mut rare, *number);
                ESCAPE
            }
        });
    }
    bytes.extend(rare);
    bytes
}

/// The numbers of [`coded`].
fn decoded(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut bytes = bytes;
    let (count, table_len) = (take(&mut bytes)?, take(&mut bytes)?);
    let mut table: Vec<u64> = Vec::with_capacity(usize::from(ESCAPE));
    for _ in 0..(table_len <= ESCAPE.into()).then_some(table_len)? {
        let before = table.last().copied().unwrap_or_default();
        table.push(before.checked_add(take(&mut bytes)?)?);
    }
    let count = usize::try_from(count).ok().filter(|count| *count <= WORDS_MAX)?;
    let (codes, mut rare) = bytes.split_at_checked(count)?;
    let number = |code: &u8| match *code {
        ESCAPE => take(&mut rare),
        index => table.get(usize::from(index)).copied(),
    };
    let numbers = codes.iter().map(number).collect::<Option<_>>()?;
    rare.is_empty().then_some(numbers)
}

fn pack_bits(bits: &[bool]) -> Vec<u8> {
    let byte =
        |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (index, bit)| byte | u8::from(*bit) << index);
    bits.chunks(8).map(byte).collect()
}

fn push_places(places: &mut Vec<u8>, segment: &Segment) -> Option<()> {
    push(places, segment.words.len() as u64);
    let mut end = 0;
    for (word, at) in segment.words.iter().zip(find_words(&segment.text, &segment.words)?) {
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

fn take_columns<'a>(bytes: &mut &'a [u8]) -> Option<[&'a [u8]; 6]> {
    let mut columns = [&[][..]; 6];
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

/// A signed number as one without sign, small if it is near 0.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
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
        assert!(check(&segments) < 50);
        segments[0].words[1].duration_ms = 17;
        segments[0].words[0].start_ms = 3;
        check(&segments);
        assert_eq!(encode(&without_words(&segments)), None);
    }

    #[test]
    fn words_rounded_down_and_rare_distances_decode() {
        let mut segments: Vec<Segment> =
            (0..60).map(|line| Segment::new("a b c d e f g h i j", line * 9_000, 9_000)).collect();
        for (line, segment) in (0_u64..).zip(&mut segments) {
            // Every third start is a millisecond early.
            let start = |word: u64| line * 9_000 + word * 10 * (1 + (line * 7 + word) % 40);
            let words =
                segment.text.split(' ').zip(0_u64..).map(|(text, word)| {
                    Word::new(text, start(word).saturating_sub(u64::from(word % 3 == 1)), 0)
                });
            segment.words = words.collect();
            segment.words.sort_by_key(|word| word.start_ms);
            for (word, text) in segment.words.iter_mut().zip("abcdefghij".chars()) {
                word.text = text.to_string();
            }
        }
        set_word_durations(&mut segments);
        let steps = check(&segments);
        assert!(steps < 1_500, "{steps}: two bytes and a bit for each of 600 words");
        // More different distances and durations than a table has.
        for (number, word) in (0_u64..).zip(segments.iter_mut().flat_map(|segment| &mut segment.words)) {
            word.start_ms += number % 7;
            word.duration_ms = number;
        }
        for segment in &mut segments {
            segment.words.sort_by_key(|word| word.start_ms);
            for (word, text) in segment.words.iter_mut().zip("abcdefghij".chars()) {
                word.text = text.to_string();
            }
        }
        assert!(check(&segments) > steps);
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
                    assert!(
                        decoded.iter().all(|segment| find_words(&segment.text, &segment.words).is_some())
                    );
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
            segments.retain(|segment| find_words(&segment.text, &segment.words).is_some());
            if let Some(bytes) = encode(&segments) {
                let mut decoded = without_words(&segments);
                prop_assert_eq!(decode(&bytes, &mut decoded), Some(()));
                prop_assert_eq!(decoded, segments);
            }
        }
    }
}
