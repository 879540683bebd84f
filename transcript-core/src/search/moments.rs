//! The best moments of a hit: sentences with their times and the words that match.

use std::ops::Range;

use icu_properties::{CodePointMapData, props::GeneralCategory};

use super::text_match::{TermPlace, TextMatch};
use crate::transcript::{PAUSE_MS, Segment, ends_sentence, is_unspaced};

/// Most moments of a hit.
pub const MOMENTS_MAX: usize = 5;
/// Characters from which a moment ends with a sentence, and its most characters unless a segment is longer.
const CHARS_ENOUGH: usize = 30;
const CHARS_MAX: usize = 240;
/// Characters after which no segment is joined because a match continues in it.
const JOINED_CHARS_MAX: usize = 2 * CHARS_MAX;
/// Speech after which a moment ends: it is opened at its start, which is then near its matches. 240 characters without
/// spaces take a minute.
const SPEECH_MS_MAX: u64 = 15_000;
/// Most characters of a moment. A longer segment is cut.
const TEXT_CHARS_MAX: usize = 2_000;

/// A moment of a video in which words of a query are spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchMoment {
    /// Start, in milliseconds from the start of the video.
    pub start_ms: u64,
    /// End, in milliseconds from the start of the video.
    pub end_ms: u64,
    /// The text of whole segments on one line, cut at 2,000 characters.
    pub text: String,
    /// Half-open ranges of the matches in `text`, in Unicode code points: in order, without overlap.
    pub matches: Vec<(u32, u32)>,
}

/// The best moments of a match, best first.
pub(super) fn moments(segments: &[Segment], found: &TextMatch) -> Vec<SearchMoment> {
    let spoken = SegmentStarts::new(segments);
    let mut places: Vec<SegmentRange> = Vec::new();
    // Segments that begin within a match.
    let mut joined = vec![false; segments.len()];
    for place in found.groups.iter().flatten().filter(|place| place.is_spoken) {
        places.extend(spoken.ranges(place));
        let within = spoken.segment(place.start) + 1..spoken.segment(place.phrase_end.saturating_sub(1)) + 1;
        joined.get_mut(within).unwrap_or_default().fill(true);
    }
    places.sort_unstable();
    places.dedup();
    let units = units(segments, &joined);
    // By unit: the number of groups, and the number of places.
    let mut scores = vec![(0_usize, 0_usize); units.len()];
    for group in &found.groups {
        let mut matched = vec![false; units.len()];
        for place in group.iter().filter(|place| place.is_spoken) {
            let segment = spoken.segment(place.start);
            let unit = units.partition_point(|unit| unit.end <= segment);
            let (Some(score), Some(is_matched)) = (scores.get_mut(unit), matched.get_mut(unit)) else {
                continue;
            };
            score.0 += usize::from(!*is_matched);
            score.1 += 1;
            *is_matched = true;
        }
    }
    let mut best: Vec<usize> =
        (0..units.len()).filter(|unit| scores.get(*unit).is_some_and(|score| score.0 > 0)).collect();
    best.sort_by_key(|unit| std::cmp::Reverse(scores.get(*unit).copied()));
    best.truncate(MOMENTS_MAX);
    best.into_iter().filter_map(|unit| moment(segments, units.get(unit)?.clone(), &places)).collect()
}

/// A segment, and a range of its characters.
type SegmentRange = (usize, usize, usize);

/// Where the segments of a text begin, in characters of the text; and its end.
struct SegmentStarts(Vec<usize>);

impl SegmentStarts {
    fn new(segments: &[Segment]) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        for segment in segments {
            end += segment.text.chars().count();
            starts.push(end);
        }
        Self(starts)
    }

    /// The segment of a character.
    fn segment(&self, position: usize) -> usize {
        self.0.partition_point(|start| *start <= position).saturating_sub(1)
    }

    /// The parts of a place in each of its segments.
    fn ranges(&self, place: &TermPlace) -> impl Iterator<Item = SegmentRange> {
        let segments = self.segment(place.start)..self.segment(place.end.saturating_sub(1)) + 1;
        segments.filter_map(move |segment| {
            let (start, end) = (*self.0.get(segment)?, *self.0.get(segment + 1)?);
            let range = place.start.max(start)..place.end.min(end);
            (!range.is_empty()).then(|| (segment, range.start - start, range.end - start))
        })
    }
}

/// The texts of segments, with an empty one after each pause, at which a run ends.
pub(super) fn spoken_texts(segments: &[Segment]) -> impl Iterator<Item = &str> {
    let mut end_ms = 0;
    segments.iter().flat_map(move |segment| {
        let pause = is_after_pause(segment, end_ms).then_some("");
        end_ms = segment.end_ms();
        pause.into_iter().chain([segment.text.as_str()])
    })
}

fn is_after_pause(segment: &Segment, end_ms: u64) -> bool {
    segment.start_ms >= PAUSE_MS.saturating_add(end_ms)
}

/// Runs of segments that make a sentence or a part of one. A segment that is `joined` to the one before it begins none.
fn units(segments: &[Segment], joined: &[bool]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let (mut chars, mut ends, mut start_ms, mut end_ms) = (0, true, 0, 0);
    for (index, segment) in segments.iter().enumerate() {
        let more = segment.text.chars().count();
        let is_long = chars + more > CHARS_MAX || segment.start_ms >= SPEECH_MS_MAX.saturating_add(start_ms);
        let is_joined = joined.get(index) == Some(&true) && chars <= JOINED_CHARS_MAX;
        let is_new = ends || is_long || is_after_pause(segment, end_ms);
        match units.last_mut() {
            Some(last) if is_joined || !is_new => last.end = index + 1,
            _ => {
                units.push(index..index + 1);
                (chars, start_ms) = (0, segment.start_ms);
            }
        }
        chars += more;
        ends = chars >= CHARS_ENOUGH && ends_sentence(&segment.text);
        end_ms = segment.end_ms();
    }
    units
}

/// A moment of these segments, with the places in it.
fn moment(segments: &[Segment], unit: Range<usize>, places: &[SegmentRange]) -> Option<SearchMoment> {
    let spoken = segments.get(unit.clone())?;
    let (mut text, mut length) = (String::new(), 0_usize);
    let mut matches: Vec<(usize, usize)> = Vec::new();
    for (index, segment) in unit.clone().zip(spoken) {
        let first = places.partition_point(|place| place.0 < index);
        let own = places.iter().skip(first).take_while(|place| place.0 == index);
        let letters: Vec<char> = segment.text.chars().collect();
        // Position in the moment of each character of the segment; white space is one space.
        let mut positions = Vec::new();
        let joins_before = text.chars().next_back().is_some_and(is_unspaced);
        let mut is_between = !(joins_before && letters.first().copied().is_some_and(is_unspaced));
        for letter in letters.iter().copied() {
            let is_space = letter.is_whitespace() || letter.is_control();
            if !is_space {
                if is_between && length > 0 {
                    text.push(' ');
                    length += 1;
                }
                positions.push(length);
                text.push(letter);
                length += 1;
            } else {
                positions.push(length);
            }
            is_between = is_space;
        }
        // A place within an earlier one is done. Of very many marks in sequence, each is read once.
        let mut done = 0;
        for (_, start, end) in own {
            if *end <= done {
                continue;
            }
            let (start, end) = whole_letters(&letters, done.max(*start)..*end);
            done = end;
            let (start, last) =
                (positions.get(start), end.checked_sub(1).and_then(|last| positions.get(last)));
            if let (Some(start), Some(last)) = (start, last) {
                matches.push((*start, last + 1));
            }
        }
    }
    let (first, last) = (spoken.first()?, spoken.iter().map(Segment::end_ms).max()?);
    let (text, matches) = cut(text, merge(matches));
    (!text.is_empty()).then_some(SearchMoment { start_ms: first.start_ms, end_ms: last, text, matches })
}

/// The range of these letters with all of their marks.
fn whole_letters(letters: &[char], range: Range<usize>) -> (usize, usize) {
    let is_inside = |index: usize| letters.get(index).is_some_and(|letter| continues_letter(*letter));
    let (mut start, mut end) = (range.start, range.end);
    while start > 0 && is_inside(start) {
        start -= 1;
    }
    while is_inside(end) {
        end += 1;
    }
    (start, end)
}

/// Whether a character is a mark of the letter before it, or a part of its syllable.
fn continues_letter(c: char) -> bool {
    // The vowels that Thai and Lao write after a sign above the letter, and the parts of Korean syllables.
    let is_part = matches!(c, '\u{E33}' | '\u{EB3}' | '\u{1160}'..='\u{11FF}');
    let is_mark = || {
        matches!(
            CodePointMapData::<GeneralCategory>::new().get(c),
            GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark
        )
    };
    is_part || (!c.is_ascii() && is_mark())
}

/// Joins ranges that overlap or touch.
fn merge(mut ranges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    ranges.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Cuts a text to its longest length, from shortly before the first match.
fn cut(text: String, matches: Vec<(usize, usize)>) -> (String, Vec<(u32, u32)>) {
    let is_long = text.chars().nth(TEXT_CHARS_MAX).is_some();
    let skip = match matches.first() {
        Some((start, _)) if is_long && *start > TEXT_CHARS_MAX / 2 => start - TEXT_CHARS_MAX / 4,
        _ => 0,
    };
    let text = match is_long {
        true => text.chars().skip(skip).take(TEXT_CHARS_MAX).collect(),
        false => text,
    };
    let length = text.chars().count();
    let shown = matches.into_iter().filter_map(|(start, end)| {
        let (start, end) = (start.checked_sub(skip)?, end.checked_sub(skip)?);
        (end <= length).then_some((u32::try_from(start).ok()?, u32::try_from(end).ok()?))
    });
    let matches = shown.collect();
    (text, matches)
}
