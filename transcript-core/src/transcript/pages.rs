//! Pages of a transcript: parts of a certain number of characters.

use super::{Chunk, Segment};
use crate::error::{Error, Result};

/// Default size of a page, in characters: about 5,000 tokens of English.
pub const PAGE_CHARS: u32 = 20_000;
/// Maximum size of a page, in characters.
pub const PAGE_CHARS_MAX: u32 = 1_000_000;

/// Splits segments into pages of at most this number of characters, in order: every segment is in one page.
///
/// Segments are never split: a longer one is the only one of its page.
///
/// ```
/// use transcript_core::transcript::{Segment, pages};
///
/// let segments: Vec<_> = (0..3).map(|n| Segment::new(format!("word {n}"), n * 1_000, 1_000)).collect();
/// let texts: Vec<_> = pages(&segments, 12)?.into_iter().map(|page| page.text).collect();
/// assert_eq!(texts, ["word 0 word 1", "word 2"]);
/// # Ok::<(), transcript_core::Error>(())
/// ```
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] if the size is 0 or more than [`PAGE_CHARS_MAX`].
pub fn pages(segments: &[Segment], chars_max: u32) -> Result<Vec<Chunk>> {
    if !(1..=PAGE_CHARS_MAX).contains(&chars_max) {
        return Err(Error::invalid(format!(
            "the size of a page must be from 1 to {PAGE_CHARS_MAX} characters, not {chars_max}"
        )));
    }
    let (mut pages, mut end) = (Vec::new(), 0);
    let mut page: Option<Chunk> = None;
    for (index, segment) in segments.iter().enumerate() {
        match &mut page {
            Some(page) if index < end => page.push(index, segment),
            _ => {
                end = page_end(segments, index, chars_max);
                pages.extend(page.replace(Chunk::new(index, segment)));
            }
        }
    }
    pages.extend(page);
    Ok(pages)
}

/// The end of the page that begins with this segment: the index after its last segment.
pub(crate) fn page_end(segments: &[Segment], start: usize, chars_max: u32) -> usize {
    let (mut end, mut used) = (start, 0_u64);
    while let Some(segment) = segments.get(end) {
        used = used.saturating_add(chars(segment));
        if end > start && used > u64::from(chars_max) {
            break;
        }
        end += 1;
    }
    end
}

/// Characters of the text of a segment.
pub(crate) fn chars(segment: &Segment) -> u64 {
    segment.text.chars().count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_every_segment_once_within_size() {
        let texts = ["one", "two", "", "a longer text", "three", "é"];
        let segments: Vec<_> =
            texts.iter().zip(0..).map(|(text, n)| Segment::new(*text, n * 1_000, 1_500)).collect();
        for size in 1..40 {
            let pages = pages(&segments, size).unwrap();
            let indexes: Vec<usize> = pages.iter().flat_map(|page| page.segments.clone()).collect();
            assert_eq!(indexes, (0..texts.len()).collect::<Vec<_>>(), "{size}");
            for page in &pages {
                let used: u64 = segments[page.segments.clone()].iter().map(chars).sum();
                assert!(used <= size.into() || page.segments.len() == 1, "{size}: {page:?}");
            }
        }
        let [first, second] = &pages(&segments, 19).unwrap()[..] else { panic!("two pages") };
        assert_eq!((first.text.as_str(), first.start_ms, first.end_ms), ("one two a longer text", 0, 4_500));
        assert_eq!((second.text.as_str(), second.start_ms, second.end_ms), ("three é", 4_000, 6_500));
        assert_eq!(pages(&[], 1).unwrap(), []);
        assert!(pages(&segments, 0).is_err() && pages(&segments, PAGE_CHARS_MAX + 1).is_err());
    }
}
