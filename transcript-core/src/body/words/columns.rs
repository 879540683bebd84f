//! Version 1 of the words of a transcript: columns of bytes. It is read and no longer written.

use super::{EXPLICIT, NO_WORDS, SPACED, position};
use crate::{
    body::numbers::{take_number, unzigzag},
    transcript::{Segment, WORDS_MAX, Word, default_words_end},
};

/// The byte of a number that is not in its table.
const ESCAPE: u8 = u8::MAX;

/// Decodes words, without the version, into the segments with which they were encoded. `None` if they do not fit.
pub(super) fn decode(mut bytes: &[u8], segments: &mut [Segment]) -> Option<()> {
    let step = take_number(&mut bytes).filter(|step| *step > 0)?;
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
        let Some(last) = segments.get(index)?.words.last() else { continue };
        let end = default_words_end(segments, index, last.start_ms);
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

/// Numbers as bytes that name those of a table, which comes first; rarer numbers follow the bytes.
fn decoded(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut bytes = bytes;
    let (count, table_len) = (take_number(&mut bytes)?, take_number(&mut bytes)?);
    let mut table: Vec<u64> = Vec::with_capacity(usize::from(ESCAPE));
    for _ in 0..(table_len <= ESCAPE.into()).then_some(table_len)? {
        let before = table.last().copied().unwrap_or_default();
        table.push(before.checked_add(take_number(&mut bytes)?)?);
    }
    let count = usize::try_from(count).ok().filter(|count| *count <= WORDS_MAX)?;
    let (codes, mut rare) = bytes.split_at_checked(count)?;
    let number = |code: &u8| match *code {
        ESCAPE => take_number(&mut rare),
        index => table.get(usize::from(index)).copied(),
    };
    let numbers = codes.iter().map(number).collect::<Option<_>>()?;
    rare.is_empty().then_some(numbers)
}

fn take_places<'a>(places: &mut &[u8], text: &'a str) -> Option<Vec<&'a str>> {
    let count = usize::try_from(take_number(places)?).ok().filter(|count| *count <= text.len())?;
    let mut end = 0_usize;
    let mut texts = Vec::with_capacity(count);
    for _ in 0..count {
        let start = end.checked_add(usize::try_from(take_number(places)?).ok()?)?;
        end = start.checked_add(usize::try_from(take_number(places)?).ok()?)?;
        texts.push(text.get(start..end).filter(|text| !text.is_empty())?);
    }
    Some(texts)
}

fn take_columns<'a>(bytes: &mut &'a [u8]) -> Option<[&'a [u8]; 6]> {
    let mut columns = [&[][..]; 6];
    for column in &mut columns {
        let length = usize::try_from(take_number(bytes)?).ok()?;
        (*column, *bytes) = bytes.split_at_checked(length)?;
    }
    Some(columns)
}
