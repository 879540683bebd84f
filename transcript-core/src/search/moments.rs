//! The best moments of a hit: sentences with their times and the words that match.

use std::ops::Range;

use super::text_match::TextMatch;
use crate::transcript::{PAUSE_MS, Segment, ends_sentence, is_unspaced};

/// Most moments of a hit.
pub const MOMENTS_MAX: usize = 5;
/// Characters from which a moment ends with a sentence, and its most characters unless a segment is longer.
const CHARS_ENOUGH: usize = 30;
const CHARS_MAX: usize = 240;
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
    let units = units(segments);
    // By unit: the number of groups, the number of places, and their ranges by segment.
    let mut scores = vec![(0_usize, 0_usize); units.len()];
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    for group in &found.groups {
        let mut matched = vec![false; units.len()];
        for place in group {
            let Some(segment) = place.segment else { continue };
            let unit = units.partition_point(|unit| unit.end <= segment);
            let (Some(score), Some(is_matched)) = (scores.get_mut(unit), matched.get_mut(unit)) else {
                continue;
            };
            score.0 += usize::from(!*is_matched);
            score.1 += 1;
            *is_matched = true;
            places.push((segment, place.start, place.end));
        }
    }
    places.sort_unstable();
    let mut best: Vec<usize> =
        (0..units.len()).filter(|unit| scores.get(*unit).is_some_and(|score| score.0 > 0)).collect();
    best.sort_by_key(|unit| std::cmp::Reverse(scores.get(*unit).copied()));
    best.truncate(MOMENTS_MAX);
    best.into_iter().filter_map(|unit| moment(segments, units.get(unit)?.clone(), &places)).collect()
}

/// Runs of segments that make a sentence or a part of one.
fn units(segments: &[Segment]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let (mut chars, mut ends, mut end_ms) = (0, true, 0);
    for (index, segment) in segments.iter().enumerate() {
        let more = segment.text.chars().count();
        let is_new = ends || chars + more > CHARS_MAX || segment.start_ms >= PAUSE_MS.saturating_add(end_ms);
        match units.last_mut() {
            Some(last) if !is_new => last.end = index + 1,
            _ => {
                units.push(index..index + 1);
                chars = 0;
            }
        }
        chars += more;
        ends = chars >= CHARS_ENOUGH && ends_sentence(&segment.text);
        end_ms = segment.end_ms();
    }
    units
}

/// A moment of these segments, with the places in it.
fn moment(
    segments: &[Segment],
    unit: Range<usize>,
    places: &[(usize, usize, usize)],
) -> Option<SearchMoment> {
    let spoken = segments.get(unit.clone())?;
    let (mut text, mut length) = (String::new(), 0_usize);
    let mut matches: Vec<(usize, usize)> = Vec::new();
    for (index, segment) in unit.clone().zip(spoken) {
        let first = places.partition_point(|place| place.0 < index);
        let own: Vec<_> = places.iter().skip(first).take_while(|place| place.0 == index).collect();
        // Position in the moment of each character of the segment; white space is one space.
        let mut positions = Vec::new();
        let joins_before = text.chars().next_back().is_some_and(is_unspaced);
        let mut is_between = !(joins_before && segment.text.chars().next().is_some_and(is_unspaced));
        for letter in segment.text.chars() {
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
        for (_, start, end) in own {
            let (start, last) =
                (positions.get(*start), end.checked_sub(1).and_then(|last| positions.get(last)));
            if let (Some(start), Some(last)) = (start, last) {
                matches.push((*start, last + 1));
            }
        }
    }
    let (first, last) = (spoken.first()?, spoken.iter().map(Segment::end_ms).max()?);
    let (text, matches) = cut(text, merge(matches));
    (!text.is_empty()).then_some(SearchMoment { start_ms: first.start_ms, end_ms: last, text, matches })
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
