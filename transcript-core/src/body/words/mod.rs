//! Compact form of the words of a transcript, for archives.
//!
//! It holds where the words are in the text of their segments, and when; the text is stored once, with the segments.
//! An adaptive arithmetic coder (`bit_coder.rs`) writes it, with what the decoder knows as the context:
//!
//! - A word usually takes the distance from the start of the word before and nothing else. Its context is the share of
//!   that word in the time left of its segment, by the lengths of the words left.
//! - Recognisers measure in steps of 10 ms or more, and compute in binary fractions of a second. A time that these do
//!   not represent is rounded down by a millisecond or not. 25 steps are whole quarters of a second, which they
//!   represent, so a time is rounded as the last one at the same place within 25 steps.
//!
//! Recorded captions of 50 minutes take 4.4 bits a word, of which the rounding is 0.2.

mod bit_coder;
mod columns;

use std::ops::Range;

use bit_coder::{BitCoder, Chance, Decoder, Encoder, Numbers};

use super::numbers::{unzigzag, zigzag};
use crate::transcript::{Segment, TIME_MAX_MS, WORDS_MAX, Word, default_words_end, find_words};

/// The version of this form.
const VERSION: u8 = 2;
/// The version before, which is read.
const COLUMNS_VERSION: u8 = 1;
/// How the words of a segment are stored.
const NO_WORDS: u8 = 0;
const SPACED: u8 = 1;
const EXPLICIT: u8 = 2;
/// Steps of starts in milliseconds, the longest first. The form has their index: new ones are added at the end.
const STEPS: [u64; 13] = [1000, 500, 250, 200, 100, 80, 50, 40, 30, 25, 20, 10, 1];
/// Steps after which the rounding of times repeats.
const ROUNDING_STEPS: usize = 25;
/// Contexts of distances: half octaves of the expected distance.
const DISTANCE_CONTEXTS: usize = 32;
/// Bytes by which a word lasts longer than its length: what a pause and the shortest words take.
const WORD_WEIGHT: u64 = 3;

/// Starts and durations of the words of a segment, in milliseconds. A decoder replaces them.
#[derive(Debug)]
struct WordTimes {
    starts: Vec<u64>,
    durations: Vec<u64>,
}

/// What the words before a word predict about it.
#[derive(Debug)]
struct WordModel {
    step: u64,
    kinds: Numbers,
    places: Numbers,
    /// The distance of each segment's first word from its segment, in steps, and whether only one of them was rounded.
    firsts: Numbers,
    first_rounded: Chance,
    /// The distance of each other word from the one before, in steps.
    distances: Numbers,
    /// Whether a time was rounded down, by whether that at the same place before was.
    rounded: [Chance; 2],
    was_rounded: [bool; ROUNDING_STEPS],
    /// 0: the word lasts until the next. Else its duration, plus 1.
    durations: Numbers,
}

impl WordModel {
    fn new(step: u64) -> Self {
        Self {
            step,
            kinds: Numbers::new(1 + usize::from(EXPLICIT)),
            places: Numbers::new(3),
            firsts: Numbers::new(1),
            first_rounded: Chance::default(),
            distances: Numbers::new(DISTANCE_CONTEXTS),
            rounded: [Chance::default(); 2],
            was_rounded: [false; ROUNDING_STEPS],
            durations: Numbers::new(2),
        }
    }

    /// Encodes or decodes the times of a segment's words, which are not empty. `None` if they are no times.
    fn code_times(
        &mut self,
        coder: &mut impl BitCoder,
        segments: &[Segment],
        index: usize,
        texts: &[&str],
        times: &mut WordTimes,
    ) -> Option<()> {
        let start_ms = segments.get(index)?.start_ms;
        let end_ms = default_words_end(segments, index, start_ms);
        self.code_starts(coder, start_ms..end_ms, texts, &mut times.starts)?;
        let end_ms = default_words_end(segments, index, *times.starts.last()?);
        self.code_durations(coder, end_ms, times);
        Some(())
    }

    fn code_starts(
        &mut self,
        coder: &mut impl BitCoder,
        line_ms: Range<u64>,
        texts: &[&str],
        starts: &mut [u64],
    ) -> Option<()> {
        let weight = |text: &str| text.len() as u64 + WORD_WEIGHT;
        let mut weight_left: u64 = texts.iter().map(|text| weight(text)).sum();
        let (mut before, mut before_ms) = (position(line_ms.start, self.step), line_ms.start);
        *self.rounded_at(before.0) = before.1;
        let mut text_before = None;
        for (start, text) in starts.iter_mut().zip(texts) {
            let (steps, is_rounded) = position(*start, self.step);
            let distance = steps.wrapping_sub(before.0);
            before = if let Some(weight_before) = text_before.replace(weight(text)) {
                let left = line_ms.end.saturating_sub(before_ms) / self.step;
                let expected = left.saturating_mul(weight_before) / weight_left;
                weight_left -= weight_before;
                let context =
                    expected.saturating_mul(expected).checked_ilog2().map_or(0, |log| log as usize + 1);
                let context = context.min(DISTANCE_CONTEXTS - 1);
                let steps = before.0.checked_add(coder.number(&mut self.distances, context, distance))?;
                let was_rounded = *self.rounded_at(steps);
                (steps, coder.bit(&mut self.rounded[usize::from(was_rounded)], is_rounded))
            } else {
                let distance = coder.number(&mut self.firsts, 0, zigzag(distance.cast_signed()));
                let differs = coder.bit(&mut self.first_rounded, is_rounded != before.1);
                (before.0.checked_add_signed(unzigzag(distance))?, differs != before.1)
            };
            *self.rounded_at(before.0) = before.1;
            before_ms = before.0.checked_mul(self.step)?.checked_sub(before.1.into())?;
            *start = before_ms;
        }
        Some(())
    }

    /// The last word usually lasts until `end_ms`.
    fn code_durations(&mut self, coder: &mut impl BitCoder, end_ms: u64, times: &mut WordTimes) {
        let ends = times.starts.iter().skip(1).copied().chain([end_ms]);
        let mut is_usual = true;
        for ((start, end), duration) in times.starts.iter().zip(ends).zip(&mut times.durations) {
            let usual = end.saturating_sub(*start);
            let number = if *duration == usual { 0 } else { duration.saturating_add(1) };
            let number = coder.number(&mut self.durations, usize::from(is_usual), number);
            is_usual = number == 0;
            *duration = if is_usual { usual } else { number - 1 };
        }
    }

    fn rounded_at(&mut self, steps: u64) -> &mut bool {
        &mut self.was_rounded[steps as usize % ROUNDING_STEPS]
    }
}

/// Encodes the words of all segments; `None` if no segment has words, or if words do not occur in their segment, are
/// not in order, or have a time beyond 1,000 hours.
pub fn encode(segments: &[Segment]) -> Option<Vec<u8>> {
    if segments.iter().all(|segment| segment.words.is_empty()) {
        return None;
    }
    let step = step(segments);
    let mut coder = Encoder::new(vec![VERSION, step]);
    let mut model = WordModel::new(STEPS[usize::from(step)]);
    let mut kind_before = NO_WORDS;
    for (index, segment) in segments.iter().enumerate() {
        let texts: Vec<&str> = segment.words.iter().map(|word| word.text.as_str()).collect();
        let kind = if texts.is_empty() {
            NO_WORDS
        } else if segment.text.split_whitespace().eq(texts.iter().copied()) {
            SPACED
        } else {
            EXPLICIT
        };
        coder.number(&mut model.kinds, kind_before.into(), kind.into());
        kind_before = kind;
        if texts.is_empty() {
            continue;
        }
        if kind == EXPLICIT {
            encode_places(&mut coder, &mut model.places, segment)?;
        }
        let words = &segment.words;
        let is_valid = |word: &Word| word.start_ms.max(word.duration_ms) <= TIME_MAX_MS;
        let are_times = segment.start_ms <= TIME_MAX_MS && words.iter().all(is_valid);
        if !are_times || !words.is_sorted_by_key(|word| word.start_ms) {
            return None;
        }
        let mut times = WordTimes {
            starts: words.iter().map(|word| word.start_ms).collect(),
            durations: words.iter().map(|word| word.duration_ms).collect(),
        };
        model.code_times(&mut coder, segments, index, &texts, &mut times)?;
    }
    Some(coder.finish())
}

/// Decodes words into the segments with which they were encoded. `None` if they do not fit.
pub fn decode(bytes: &[u8], segments: &mut [Segment]) -> Option<()> {
    match bytes.split_first()? {
        (&COLUMNS_VERSION, columns) => columns::decode(columns, segments),
        (&VERSION, coded) => decode_coded(coded, segments),
        _ => None,
    }
}

fn decode_coded(bytes: &[u8], segments: &mut [Segment]) -> Option<()> {
    let (step, coded) = bytes.split_first()?;
    let mut model = WordModel::new(*STEPS.get(usize::from(*step))?);
    let mut coder = Decoder::new(coded);
    let (mut kind, mut count) = (NO_WORDS, 0);
    for index in 0..segments.len() {
        kind = u8::try_from(coder.number(&mut model.kinds, kind.into(), 0)).ok()?;
        let text = &segments.get(index)?.text;
        let texts: Vec<&str> = match kind {
            NO_WORDS => Vec::new(),
            SPACED => text.split_whitespace().collect(),
            EXPLICIT => decode_places(&mut coder, &mut model.places, text)?,
            _ => return None,
        };
        count += texts.len();
        if count > WORDS_MAX {
            return None;
        }
        let mut times = WordTimes { starts: vec![0; texts.len()], durations: vec![0; texts.len()] };
        if !texts.is_empty() {
            model.code_times(&mut coder, segments, index, &texts, &mut times)?;
        }
        let times = times.starts.into_iter().zip(times.durations);
        let word = |(text, (start, duration)): (&str, (u64, u64))| Word::new(text, start, duration);
        let words = texts.into_iter().zip(times).map(word).collect();
        segments.get_mut(index)?.words = words;
    }
    coder.is_complete().then_some(())
}

/// The index of the longest step of which all starts are multiples, or a millisecond less.
fn step(segments: &[Segment]) -> u8 {
    let fits = |step: u64| {
        let mut words = segments.iter().flat_map(|segment| &segment.words);
        words.all(|word| word.start_ms % step == 0 || word.start_ms % step == step - 1)
    };
    let index = STEPS.iter().zip(0..).find(|(step, _)| fits(**step));
    index.map_or(STEPS.len() as u8 - 1, |(_, index)| index)
}

/// A time in whole steps, and whether it was rounded down to a millisecond before them.
fn position(millis: u64, step: u64) -> (u64, bool) {
    let is_rounded = step > 1 && millis % step == step - 1;
    (millis.saturating_add(is_rounded.into()) / step, is_rounded)
}

/// Encodes the number of a segment's words, then the distance from the word before and the length of each.
fn encode_places(coder: &mut Encoder, places: &mut Numbers, segment: &Segment) -> Option<()> {
    coder.number(places, 0, segment.words.len() as u64);
    let mut end = 0;
    for (word, at) in segment.words.iter().zip(find_words(&segment.text, &segment.words)?) {
        coder.number(places, 1, (at - end) as u64);
        coder.number(places, 2, word.text.len() as u64);
        end = at + word.text.len();
    }
    Some(())
}

fn decode_places<'a>(coder: &mut Decoder<'_>, places: &mut Numbers, text: &'a str) -> Option<Vec<&'a str>> {
    let mut take = |context| usize::try_from(coder.number(places, context, 0)).ok();
    let count = take(0).filter(|count| *count <= text.len())?;
    let mut end = 0_usize;
    let mut texts = Vec::new();
    for _ in 0..count {
        let start = end.checked_add(take(1)?)?;
        end = start.checked_add(take(2)?)?;
        texts.push(text.get(start..end).filter(|text| !text.is_empty())?);
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transcript::set_word_durations;

    /// [`timed_lines`] as the version before encoded them.
    const COLUMNS: &str =
        "0114030100020502000602060502010000000a0404100806140100030201040a06020012000100000000";

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

    /// Three lines: words that white space separates, no words, and words without space between them.
    fn timed_lines() -> Vec<Segment> {
        let mut segments = vec![
            Segment::new("it is so\nquiet", 1_000, 3_000),
            Segment::new("no words here", 2_500, 2_000),
            Segment::new("再见, 朋友", 4_000, 900),
        ];
        segments[0].words = [("it", 1_000), ("is", 1_240), ("so", 1_399), ("quiet", 1_900)]
            .map(|(text, start)| Word::new(text, start, 0))
            .into();
        segments[2].words = vec![Word::new("再见", 4_000, 0), Word::new("朋友", 4_300, 0)];
        set_word_durations(&mut segments);
        segments[0].words[1].duration_ms = 17;
        segments
    }

    #[test]
    fn words_encoded_decode_to_equal_words() {
        let mut segments = timed_lines();
        assert!(check(&segments) < 30);
        segments[0].words[0].start_ms = 3;
        check(&segments);
        assert_eq!(encode(&without_words(&segments)), None);
    }

    #[test]
    fn words_beyond_the_most_are_refused() {
        let text = "a ".repeat(WORDS_MAX / 2 + 1);
        let mut segments = [Segment::new(text.as_str(), 0, 9_000), Segment::new(text.as_str(), 9_000, 9_000)];
        // What an encoder without a limit of words would write: all words of both lines at one time.
        for segment in &mut segments {
            segment.words = text
                .split(' ')
                .filter(|word| !word.is_empty())
                .map(|word| Word::new(word, segment.start_ms, 0))
                .collect();
        }
        let bytes = encode(&segments).unwrap();
        assert!(bytes.len() < 1 << 20, "{}", bytes.len());
        assert_eq!(decode(&bytes, &mut without_words(&segments)), None);
        segments[1].words.clear();
        check(&segments);
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
            let mut decoded = without_words(&segments);
            assert!(decode(&bytes[..length], &mut decoded).is_none() || decoded != segments, "{length}");
        }
        assert_eq!(decode(&[bytes.as_slice(), &[0]].concat(), &mut without_words(&segments)), None);
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

    #[test]
    fn words_beyond_limits_are_not_encoded() {
        let mut segments = [Segment::new("a b", 0, 900)];
        segments[0].words = vec![Word::new("a", 10, 0), Word::new("b", 5, 0)];
        assert_eq!(encode(&segments), None);
        segments[0].words[1].start_ms = TIME_MAX_MS + 1;
        assert_eq!(encode(&segments), None);
        segments[0].words[1] = Word::new("c", 20, 0);
        assert_eq!(encode(&segments), None);
        segments[0].words[1] = Word::new("b", 20, 0);
        assert!(encode(&segments).is_some());
    }

    #[test]
    fn words_of_first_version_are_read() {
        let expect = timed_lines();
        let bytes: Vec<u8> = (0..COLUMNS.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&COLUMNS[at..at + 2], 16).unwrap())
            .collect();
        let mut segments = without_words(&expect);
        decode(&bytes, &mut segments).unwrap();
        assert_eq!(segments, expect);
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], &mut without_words(&expect)), None, "{length}");
        }
    }

    fn time() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..5_000, 0..=TIME_MAX_MS]
    }

    proptest! {
        #[test]
        fn words_of_any_segments_decode(
            list in proptest::collection::vec(
                (proptest::collection::vec(("[a-zé]{1,4}", time(), time()), 0..6), time(), time(), "[ ,.]{1,2}"),
                0..8,
            ),
            step in prop_oneof![Just(1_u64), Just(10), Just(80)],
            is_rounded in any::<bool>(),
        ) {
            let mut segments: Vec<Segment> = list
                .into_iter()
                .map(|(words, start, duration, separator)| {
                    let text = words.iter().map(|word| word.0.as_str()).collect::<Vec<_>>().join(&separator);
                    let in_steps = |time: u64| (time / step * step).saturating_sub(is_rounded.into());
                    let words = words.into_iter().map(|(text, start, duration)| Word::new(text, in_steps(start), duration));
                    Segment { words: words.collect(), ..Segment::new(text, start, duration) }
                })
                .collect();
            segments.iter_mut().for_each(|segment| segment.words.sort_by_key(|word| word.start_ms));
            segments.retain(|segment| find_words(&segment.text, &segment.words).is_some());
            let bytes = encode(&segments);
            prop_assert_eq!(bytes.is_some(), segments.iter().any(|segment| !segment.words.is_empty()));
            if let Some(bytes) = bytes {
                let mut decoded = without_words(&segments);
                prop_assert_eq!(decode(&bytes, &mut decoded), Some(()));
                prop_assert_eq!(decoded, segments);
            }
        }

        #[test]
        fn words_arbitrary_bytes_are_rejected_or_fit(
            version in 0_u8..4,
            bytes in proptest::collection::vec(any::<u8>(), 0..90),
        ) {
            let mut segments = [Segment::new("a bc, d", 0, 900), Segment::new("再见 e", 950, u64::MAX)];
            if decode(&[&[version], bytes.as_slice()].concat(), &mut segments).is_some() {
                prop_assert!(segments.iter().all(|segment| find_words(&segment.text, &segment.words).is_some()));
            }
        }
    }
}
