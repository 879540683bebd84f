//! The transcript as the source of quotations: where words stand in it, and what is said there.

use std::{
    cell::{Cell, OnceCell},
    collections::HashMap,
    ops::Range,
    sync::Arc,
};

use super::{
    super::{
        Passage,
        fold::{find, fold},
        passage::Line,
    },
    repair,
};
use crate::transcript::{Segment, Transcript};

/// How often the whole transcript is searched for the quotations of one answer.
const WHOLE_SEARCHES_MAX: u32 = 64;
/// How many altered quotations of one answer are compared with what was said.
const REPAIRS_MAX: u32 = 16;
/// How often a passage is searched for the quotations of one answer.
const NEAR_SEARCHES_MAX: u32 = 512;
/// How many bytes of the transcript are read, folded or walked through for one answer, in all.
const LOOKED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many bytes of folded passages are kept.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A passage of more bytes than this is one very long segment, of which only the beginning is compared.
const PASSAGE_BYTES_MAX: usize = 16 * 1024;
/// The most bytes of what stands beside a passage that are looked at, on either side.
const BESIDE_BYTES_MAX: usize = 4 * 1024;
/// How many letters a passage is taken to have at least, to tell over how many a quotation may go.
const PASSAGE_LETTERS: usize = 120;

/// Words that were said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// The transcript's own words.
    pub(super) words: String,
    /// The segments that have them.
    pub(super) segments: Range<usize>,
}

/// What was said at a place: there, and right before and behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) own: String,
    pub(super) beside: String,
}

impl Around {
    pub(super) fn len(&self) -> usize {
        self.own.len() + self.beside.len()
    }

    /// Adds what was said at another place.
    pub(super) fn add(&mut self, other: &Self) {
        for (text, more) in [(&mut self.own, &other.own), (&mut self.beside, &other.beside)] {
            text.push(' ');
            text.push_str(more);
        }
    }
}

/// A transcript and its passages.
#[derive(Debug)]
pub(super) struct Source {
    transcript: Arc<Transcript>,
    passages: Arc<[Passage]>,
    whole: OnceCell<Whole>,
    folded: HashMap<Range<usize>, Folded>,
    kept: usize,
    searches: u32,
    near_searches: u32,
    scans: Cell<u32>,
    repairs: u32,
    /// How many bytes may still be looked at.
    left: Cell<usize>,
}

/// The words of some passages on one line, and folded.
#[derive(Debug)]
struct Folded {
    line: Line,
    text: String,
}

/// All passages, folded into one text, and where each begins in it.
#[derive(Debug)]
struct Whole {
    text: String,
    starts: Vec<usize>,
}

impl Source {
    pub(super) fn new(transcript: Arc<Transcript>, passages: Arc<[Passage]>) -> Self {
        Self {
            transcript,
            passages,
            whole: OnceCell::new(),
            folded: HashMap::new(),
            kept: 0,
            searches: 0,
            near_searches: 0,
            scans: Cell::new(0),
            repairs: 0,
            left: Cell::new(LOOKED_BYTES_MAX),
        }
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.transcript.segments
    }

    /// The passage with this number.
    pub(super) fn passage(&self, number: u32) -> Option<&Passage> {
        self.passages.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Where these words, folded, stand in a passage or across its ends.
    pub(super) fn near(&mut self, number: u32, wanted: &str) -> Option<Said> {
        let place = self.next_search(number)?;
        let beside = 1 + wanted.len() / PASSAGE_LETTERS;
        let around = self.around(place, beside, BESIDE_BYTES_MAX + 2 * wanted.len());
        self.within(place..place + 1, wanted).or_else(|| self.within(around, wanted))
    }

    /// Where these words, folded, stand in a passage as whole words.
    pub(super) fn exactly(&mut self, number: u32, wanted: &str) -> Option<Said> {
        let place = self.next_search(number)?;
        self.within(place..place + 1, wanted).filter(|said| fold(&said.words) == wanted)
    }

    /// The place of a passage that may be searched once more.
    fn next_search(&mut self, number: u32) -> Option<usize> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.passages.get(place)?;
        self.near_searches += 1;
        (self.near_searches <= NEAR_SEARCHES_MAX).then_some(place)
    }

    /// Whether so many bytes more may be looked at.
    pub(super) fn may_look(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes);
        left.inspect(|left| self.left.set(*left)).is_some()
    }

    /// Where these words, folded, stand anywhere.
    pub(super) fn anywhere(&mut self, wanted: &str) -> Option<Said> {
        if self.searches >= WHOLE_SEARCHES_MAX {
            return None;
        }
        self.searches += 1;
        let whole = self.whole.get_or_init(|| Whole::of(&self.passages));
        let at = whole.text.find(wanted)?;
        let first = whole.starts.partition_point(|start| *start <= at).checked_sub(1)?;
        let end = whole.starts.partition_point(|start| *start < at + wanted.len());
        self.within(first..end, wanted)
    }

    /// What was really said where a passage has words that are nearly these.
    pub(super) fn nearly(&mut self, number: u32, quoted: &str) -> Option<Said> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.passages.get(place)?;
        if self.repairs >= REPAIRS_MAX {
            return None;
        }
        self.repairs += 1;
        let line = self.line(&self.around(place, 1, BESIDE_BYTES_MAX))?;
        if line.text.len() > PASSAGE_BYTES_MAX + 2 * BESIDE_BYTES_MAX {
            return None;
        }
        let bytes = repair::nearest(&line.text, quoted)?;
        self.said(&line, bytes)
    }

    /// The words of a passage, and those beside it, for comparing.
    pub(super) fn words_around(&self, number: u32) -> Around {
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        place.map_or_else(Around::default, |place| self.words_of(place..place + 1))
    }

    /// The words of the passages that have some segments, and those beside them.
    pub(super) fn words_beside(&self, segments: &Range<usize>) -> Around {
        let first = self.passages.partition_point(|passage| passage.segments.end <= segments.start);
        let end = self.passages.partition_point(|passage| passage.segments.start < segments.end);
        self.words_of(first..end.max(first))
    }

    fn words_of(&self, places: Range<usize>) -> Around {
        let text = |place: Option<usize>| {
            let passage = place.and_then(|place| self.passages.get(place));
            passage.map_or("", |passage| passage.text.as_str())
        };
        let before = tail(text(places.start.checked_sub(1)), BESIDE_BYTES_MAX);
        let after = head(text(Some(places.end)), BESIDE_BYTES_MAX);
        let own = self.passages.get(places).unwrap_or_default();
        let own: Vec<&str> = own.iter().map(|passage| head(&passage.text, PASSAGE_BYTES_MAX)).collect();
        Around { own: own.join(" "), beside: [before, after].join(" ") }
    }

    /// Whether any passage is such that `is_in` holds. Beyond a number of searches that is taken to be so.
    pub(super) fn says(&self, is_in: impl Fn(&str) -> bool) -> bool {
        let before = self.scans.get();
        self.scans.set(before + 1);
        let bytes = || self.passages.iter().map(|passage| passage.text.len()).sum();
        before >= WHOLE_SEARCHES_MAX
            || !self.may_look(bytes())
            || self.passages.iter().any(|passage| is_in(&passage.text))
    }

    /// The places beside one, and it, as far as they are not too long.
    fn around(&self, place: usize, beside: usize, bytes: usize) -> Range<usize> {
        let near = |passages: &mut dyn Iterator<Item = &Passage>| {
            let mut left = Some(bytes);
            let fits = |passage: &&Passage| {
                left = left.and_then(|left| left.checked_sub(passage.text.len()));
                left.is_some()
            };
            passages.take(beside).take_while(fits).count()
        };
        let before = near(&mut self.passages.get(..place).unwrap_or_default().iter().rev());
        let after = near(&mut self.passages.get(place + 1..).unwrap_or_default().iter());
        place.saturating_sub(before)..(place + 1 + after).min(self.passages.len())
    }

    fn within(&mut self, places: Range<usize>, wanted: &str) -> Option<Said> {
        let bytes: usize = self.passages.get(places.clone())?.iter().map(|passage| passage.text.len()).sum();
        if !self.folded.contains_key(&places) {
            if !self.may_look(bytes) {
                return None;
            }
            self.kept += bytes;
            if self.kept > KEPT_BYTES_MAX {
                self.folded.clear();
                self.kept = bytes;
            }
            let line = self.line(&places)?;
            let text = fold(&line.text);
            self.folded.insert(places.clone(), Folded { line, text });
        }
        let Folded { line, text } = self.folded.get(&places)?;
        // Few passages have the words; only there the way to their place is walked.
        if !text.contains(wanted) || !self.may_look(bytes) {
            return None;
        }
        let found = find(&line.text, text, wanted)?;
        self.said(line, found)
    }

    /// The words of some passages on one line.
    fn line(&self, places: &Range<usize>) -> Option<Line> {
        let first = self.passages.get(places.start)?;
        let last = self.passages.get(places.end.min(self.passages.len()).checked_sub(1)?)?;
        Some(Line::of(&self.transcript.segments, first.segments.start..last.segments.end))
    }

    fn said(&self, line: &Line, bytes: Range<usize>) -> Option<Said> {
        let words = line.text.get(bytes.clone())?.to_owned();
        Some(Said { words, segments: line.segments(&bytes)? })
    }
}

/// The longest beginning of a text with at most so many bytes.
fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// The longest end of a text with at most so many bytes.
fn tail(text: &str, bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..).unwrap_or_default()
}

impl Whole {
    fn of(passages: &[Passage]) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(passages.len()));
        for passage in passages {
            starts.push(text.len());
            text.push_str(&fold(&passage.text));
        }
        Self { text, starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::passages,
        transcript::{LanguageTag, TrackInfo, TrackKind},
        video::{Platform, VideoId},
    };

    fn source(segments: Vec<Segment>) -> Source {
        let passages = passages(&segments);
        let transcript = Transcript {
            video: VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ").unwrap(),
            title: None,
            author: None,
            duration_ms: None,
            track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
            source: "test".to_owned(),
            segments,
        };
        Source::new(Arc::new(transcript), passages.into())
    }

    #[test]
    fn words_are_found_where_they_were_said() {
        let segments =
            ["We built the harbour", "in nineteen twelve.", "It was cold.", "The ice broke in May."];
        let segments: Vec<_> = segments
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 9_000, 1_000))
            .collect();
        let mut source = source(segments);
        assert_eq!(source.passages.len(), 4);
        let said = |words: &str, segments| Some(Said { words: words.to_owned(), segments });
        assert_eq!(source.near(2, &fold("Nineteen TWELVE")), said("nineteen twelve", 1..2));
        assert_eq!(source.near(1, &fold("harbour, in nineteen")), said("harbour in nineteen", 0..2));
        assert_eq!(source.near(1, &fold("ice broke")), None);
        assert_eq!(source.anywhere(&fold("it was cold; the ice")), said("It was cold. The ice", 2..4));
        assert_eq!(source.anywhere(&fold("it was warm")), None);
        assert_eq!(source.exactly(1, "harbour"), said("harbour", 0..1));
        assert_eq!(source.exactly(1, "harb"), None);
        assert_eq!(source.exactly(2, "harbour"), None);
        assert_eq!(source.near(9, "x"), None);
        assert_eq!(source.near(0, "x"), None);
        assert_eq!(source.nearly(4, "the snow broke in late May"), said("The ice broke in May", 3..4));
        assert_eq!(source.nearly(9, "x"), None);
    }

    #[test]
    fn what_is_looked_at_is_bounded() {
        let segments = [Segment::new("a harbour", 0, 1), Segment::new("é".repeat(3_000_000), 9_000, 1)];
        let mut source = source(segments.to_vec());
        assert!(source.words_around(1).len() < 10_000 && source.words_around(2).len() < 30_000);
        assert!(source.words_beside(&(0..2)).len() < 30_000);
        // A long neighbour is not looked at, and a long passage not for ever.
        assert_eq!(source.around(0, 1, BESIDE_BYTES_MAX), 0..1);
        for _ in 0..20 {
            assert_eq!(source.near(2, "eeeeeeeeeeeeee"), None);
        }
        assert!(source.left.get() < 6_000_000, "{}", source.left.get());
        assert!(source.nearly(2, "eeeee eee eee").is_none());
        assert!(source.says(|_| false));
        for _ in 0..NEAR_SEARCHES_MAX {
            source.near(1, "x");
        }
        assert_eq!(source.near(1, "harbour"), None);
    }
}
