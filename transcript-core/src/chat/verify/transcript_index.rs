//! Index of a transcript for quotation lookups, with bounds on the work of one answer.

use std::{
    cell::{Cell, OnceCell},
    collections::HashMap,
    iter::successors,
    ops::Range,
    sync::Arc,
};

use super::{
    super::{
        Passage,
        extractive::QUOTED_CHARS_MAX,
        fold::{find, fold},
        passage::PassageLine,
    },
    quote_ends::with_signs,
    quote_repair, quoted_negation,
};
use crate::transcript::{Segment, Transcript, format_timestamp};

/// Maximum of searches in the whole transcript for one answer.
const WHOLE_SEARCHES_MAX: u32 = 64;
/// Maximum of altered quotations of one answer that are compared with the transcript.
const REPAIRS_MAX: u32 = 16;
/// Maximum of searches in single passages for one answer.
const NEAR_SEARCHES_MAX: u32 = 512;
/// Maximum of matches in a passage of which one that is no part of a longer number is sought.
const EXACT_MATCHES_MAX: usize = 8;
/// Maximum of places of a quotation of which one without a negation is sought.
const PLACES_MAX: usize = 16;
/// A passage with more characters is one very long segment, whose quotations are not checked for a negation.
const CHECKED_CHARS_MAX: usize = QUOTED_CHARS_MAX;
/// Maximum of transcript bytes that are read, folded or scanned for one answer, in total.
const READ_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum of bytes of cached folded passages.
const CACHED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A longer passage is one very long segment; only its start is compared.
const PASSAGE_BYTES_MAX: usize = 16 * 1024;
/// Maximum of bytes of the text on either side of a passage.
const NEIGHBOUR_BYTES_MAX: usize = 4 * 1024;
/// Assumed minimum of letters in a passage; determines how many passages a quotation may span.
const PASSAGE_LETTERS: usize = 120;

/// Text of the transcript with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpokenText {
    /// Text of the transcript.
    pub(super) words: String,
    /// Segments that contain it.
    pub(super) segments: Range<usize>,
    /// Whether a negation directly outside of it reverses it.
    pub(super) is_negated: bool,
}

/// Text at a position of the transcript, and the text directly before and after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SpokenContext {
    pub(super) own: String,
    pub(super) neighbours: String,
}

impl SpokenContext {
    pub(super) fn len(&self) -> usize {
        self.own.len() + self.neighbours.len()
    }

    /// Adds the text at another position.
    pub(super) fn add(&mut self, other: &Self) {
        for (text, more) in [(&mut self.own, &other.own), (&mut self.neighbours, &other.neighbours)] {
            text.push(' ');
            text.push_str(more);
        }
    }
}

/// A transcript and its passages, with caches and work limits.
#[derive(Debug)]
pub(super) struct TranscriptIndex {
    transcript: Arc<Transcript>,
    passages: Arc<[Passage]>,
    whole: OnceCell<WholeText>,
    folded: HashMap<Range<usize>, FoldedText>,
    cached_bytes: usize,
    searches: u32,
    near_searches: u32,
    scans: Cell<u32>,
    repairs: u32,
    /// Bytes that may still be read.
    budget: Cell<usize>,
}

/// Text of a run of passages, and its folded form.
#[derive(Debug)]
struct FoldedText {
    line: PassageLine,
    text: String,
}

/// Folded text of all passages, and the start of each passage in it.
#[derive(Debug)]
struct WholeText {
    text: String,
    starts: Vec<usize>,
}

impl TranscriptIndex {
    pub(super) fn new(transcript: Arc<Transcript>, passages: Arc<[Passage]>) -> Self {
        Self {
            transcript,
            passages,
            whole: OnceCell::new(),
            folded: HashMap::new(),
            cached_bytes: 0,
            searches: 0,
            near_searches: 0,
            scans: Cell::new(0),
            repairs: 0,
            budget: Cell::new(READ_BYTES_MAX),
        }
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.transcript.segments
    }

    /// Returns the marker of these segments: the time at which they start.
    pub(super) fn marker(&self, segments: &Range<usize>) -> Option<String> {
        let segment = self.segments().get(segments.start)?;
        Some(format!("[{}]", format_timestamp(segment.start_ms / 1_000)))
    }

    pub(super) fn passage(&self, number: u32) -> Option<&Passage> {
        self.passages.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Finds folded words in a passage or across its ends.
    pub(super) fn find_near(&mut self, number: u32, wanted: &str) -> Option<SpokenText> {
        let index = self.begin_search(number)?;
        let neighbours = 1 + wanted.len() / PASSAGE_LETTERS;
        let around = self.neighbourhood(index, neighbours, NEIGHBOUR_BYTES_MAX + 2 * wanted.len());
        self.find_in(index..index + 1, wanted).or_else(|| self.find_in(around, wanted))
    }

    /// Finds folded words in a passage as whole words; rather the "3" of "then 3" than that of "3.5".
    pub(super) fn find_exact(&mut self, number: u32, wanted: &str) -> Option<SpokenText> {
        let index = self.begin_search(number)?;
        let first = self.find_bytes(index..index + 1, wanted)?;
        let line = &self.folded.get(&(index..index + 1))?.line;
        let is_wanted =
            |bytes: &Range<usize>| line.text.get(bytes.clone()).is_some_and(|it| fold(it) == wanted);
        if !is_wanted(&first) {
            return None;
        }
        let next = |bytes: &Range<usize>| {
            let rest = line.text.get(bytes.end..).filter(|rest| self.take_budget(rest.len()))?;
            let next = find(rest, &fold(rest), wanted)?;
            Some(bytes.end + next.start..bytes.end + next.end)
        };
        let mut matches = successors(Some(first.clone()), next).take(EXACT_MATCHES_MAX);
        let separate = matches.find(|bytes| is_wanted(&widened(line, bytes.clone())));
        spoken_text(line, separate.unwrap_or(first))
    }

    /// Counts a search in a passage; returns its index if the limit allows the search.
    fn begin_search(&mut self, number: u32) -> Option<usize> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.passages.get(index)?;
        self.near_searches += 1;
        (self.near_searches <= NEAR_SEARCHES_MAX).then_some(index)
    }

    /// Takes this many bytes from the budget; returns false if too few are left.
    pub(super) fn take_budget(&self, bytes: usize) -> bool {
        let left = self.budget.get().checked_sub(bytes);
        left.inspect(|left| self.budget.set(*left)).is_some()
    }

    /// Finds folded words anywhere in the transcript.
    pub(super) fn find_anywhere(&mut self, wanted: &str) -> Option<SpokenText> {
        if self.searches >= WHOLE_SEARCHES_MAX {
            return None;
        }
        self.searches += 1;
        let whole = self.whole.get_or_init(|| WholeText::new(&self.passages));
        let at = whole.text.find(wanted)?;
        let passages = whole.passages(at, wanted.len());
        self.find_in(passages, wanted)
    }

    /// Finds the text of a passage that is nearly this quotation.
    pub(super) fn find_similar(&mut self, number: u32, quoted: &str) -> Option<SpokenText> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.passages.get(index)?;
        if self.repairs >= REPAIRS_MAX {
            return None;
        }
        self.repairs += 1;
        let indices = self.neighbourhood(index, 1, NEIGHBOUR_BYTES_MAX);
        let line = self.join(&indices)?;
        if line.text.len() > PASSAGE_BYTES_MAX + 2 * NEIGHBOUR_BYTES_MAX {
            return None;
        }
        let bytes = quote_repair::find_nearest(&line.text, quoted)?;
        self.spoken_at(&line, &indices, bytes)
    }

    /// Text of a passage and of its neighbours, for comparison.
    pub(super) fn context_around(&self, number: u32) -> SpokenContext {
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        index.map_or_else(SpokenContext::default, |index| self.words_at(index..index + 1))
    }

    /// Text of the passages that contain these segments, and of their neighbours.
    pub(super) fn words_of_segments(&self, segments: &Range<usize>) -> SpokenContext {
        let first = self.passages.partition_point(|passage| passage.segments.end <= segments.start);
        let end = self.passages.partition_point(|passage| passage.segments.start < segments.end);
        self.words_at(first..end.max(first))
    }

    fn words_at(&self, indices: Range<usize>) -> SpokenContext {
        let text = |index: Option<usize>| {
            let passage = index.and_then(|index| self.passages.get(index));
            passage.map_or("", |passage| passage.text.as_str())
        };
        let before = tail(text(indices.start.checked_sub(1)), NEIGHBOUR_BYTES_MAX);
        let after = head(text(Some(indices.end)), NEIGHBOUR_BYTES_MAX);
        let own = self.passages.get(indices).unwrap_or_default();
        let own: Vec<&str> = own.iter().map(|passage| head(&passage.text, PASSAGE_BYTES_MAX)).collect();
        SpokenContext { own: own.join(" "), neighbours: [before, after].join(" ") }
    }

    /// Whether `is_in` holds for any passage. Returns true once the search limits are reached.
    pub(super) fn any_passage(&self, is_in: impl Fn(&str) -> bool) -> bool {
        let before = self.scans.get();
        self.scans.set(before + 1);
        let bytes = || self.passages.iter().map(|passage| passage.text.len()).sum();
        before >= WHOLE_SEARCHES_MAX
            || !self.take_budget(bytes())
            || self.passages.iter().any(|passage| is_in(&passage.text))
    }

    /// Indices of a passage and of its neighbours, up to `neighbours` on either side and within `bytes`.
    fn neighbourhood(&self, index: usize, neighbours: usize, bytes: usize) -> Range<usize> {
        let near = |passages: &mut dyn Iterator<Item = &Passage>| {
            let mut left = Some(bytes);
            let fits = |passage: &&Passage| {
                left = left.and_then(|left| left.checked_sub(passage.text.len()));
                left.is_some()
            };
            passages.take(neighbours).take_while(fits).count()
        };
        let before = near(&mut self.passages.get(..index).unwrap_or_default().iter().rev());
        let after = near(&mut self.passages.get(index + 1..).unwrap_or_default().iter());
        index.saturating_sub(before)..(index + 1 + after).min(self.passages.len())
    }

    fn find_in(&mut self, indices: Range<usize>, wanted: &str) -> Option<SpokenText> {
        let found = self.find_bytes(indices.clone(), wanted)?;
        self.spoken_at(&self.folded.get(&indices)?.line, &indices, found)
    }

    /// The words at a byte range of these passages' text, and whether a negation outside of them reverses them.
    fn spoken_at(
        &self,
        line: &PassageLine,
        passages: &Range<usize>,
        bytes: Range<usize>,
    ) -> Option<SpokenText> {
        let is_negated = self.is_negated(line, passages, &bytes).unwrap_or(false);
        Some(SpokenText { is_negated, ..spoken_text(line, bytes)? })
    }

    /// Whether a negation directly outside of words reverses them.
    ///
    /// It never does of a whole passage. So answers without a model, which quote whole passages or parts of very long
    /// ones, are not checked.
    fn is_negated(&self, line: &PassageLine, passages: &Range<usize>, bytes: &Range<usize>) -> Option<bool> {
        let has_word = |text: &str| text.contains(char::is_alphanumeric);
        let (before, after) = (line.text.get(..bytes.start)?, line.text.get(bytes.end..)?);
        let is_long = |passage: &Passage| passage.text.chars().nth(CHECKED_CHARS_MAX).is_some();
        let is_whole = !has_word(before) && !has_word(after);
        if is_whole || self.passages.get(passages.clone())?.iter().any(is_long) {
            return Some(false);
        }
        let text = |index: Option<usize>| {
            index.and_then(|index| self.passages.get(index)).map_or("", |passage| passage.text.as_str())
        };
        let last = tail(text(passages.start.checked_sub(1)), NEIGHBOUR_BYTES_MAX);
        let next = head(text(Some(passages.end)), NEIGHBOUR_BYTES_MAX);
        let before = if has_word(before) { before } else { &[last, " ", before].concat() };
        let after = if has_word(after) { after } else { &[after, " ", next].concat() };
        let language = self.transcript.track.language.primary();
        Some(quoted_negation::is_negated(before, line.text.get(bytes.clone())?, after, language))
    }

    /// The same words at the nearest place where no negation reverses them; `None` if each place has one.
    ///
    /// Returns the words as they are once the limits of this answer are reached.
    pub(super) fn find_affirmed(&mut self, spoken: &SpokenText) -> Option<SpokenText> {
        let wanted = fold(&spoken.words);
        let whole = self.whole.get_or_init(|| WholeText::new(&self.passages));
        let own = self.passages.partition_point(|passage| passage.segments.end <= spoken.segments.start);
        let matches = whole.text.match_indices(&wanted).take(PLACES_MAX);
        let mut places: Vec<Range<usize>> = matches.map(|(at, _)| whole.passages(at, wanted.len())).collect();
        let is_limited = places.len() == PLACES_MAX;
        places.dedup();
        places.sort_by_key(|passages| passages.start.abs_diff(own));
        for passages in places {
            let Some(mut bytes) = self.find_bytes(passages.clone(), &wanted) else {
                return Some(spoken.clone());
            };
            let line = &self.folded.get(&passages)?.line;
            for _ in 0..PLACES_MAX {
                let place = self.spoken_at(line, &passages, bytes.clone())?;
                if !place.is_negated && fold(&place.words) == wanted {
                    return Some(place);
                }
                let rest = line.text.get(bytes.end..)?;
                if !self.take_budget(rest.len()) {
                    return Some(spoken.clone());
                }
                let Some(next) = find(rest, &fold(rest), &wanted) else { break };
                bytes = bytes.end + next.start..bytes.end + next.end;
            }
        }
        is_limited.then(|| spoken.clone())
    }

    /// The byte range of folded words in the text of a run of passages, which is cached.
    fn find_bytes(&mut self, indices: Range<usize>, wanted: &str) -> Option<Range<usize>> {
        let bytes: usize = self.passages.get(indices.clone())?.iter().map(|passage| passage.text.len()).sum();
        if !self.folded.contains_key(&indices) {
            if !self.take_budget(bytes) {
                return None;
            }
            self.cached_bytes += bytes;
            if self.cached_bytes > CACHED_BYTES_MAX {
                self.folded.clear();
                self.cached_bytes = bytes;
            }
            let line = self.join(&indices)?;
            let text = fold(&line.text);
            self.folded.insert(indices.clone(), FoldedText { line, text });
        }
        let FoldedText { line, text } = self.folded.get(&indices)?;
        // Few passages contain the words; only these are scanned for the position.
        if !text.contains(wanted) || !self.take_budget(bytes) {
            return None;
        }
        find(&line.text, text, wanted)
    }

    /// Joins the text of a run of passages.
    fn join(&self, indices: &Range<usize>) -> Option<PassageLine> {
        let first = self.passages.get(indices.start)?;
        let last = self.passages.get(indices.end.min(self.passages.len()).checked_sub(1)?)?;
        Some(PassageLine::new(&self.transcript.segments, first.segments.start..last.segments.end))
    }
}

/// The words at a byte range of the text, with the signs that belong to them.
fn spoken_text(line: &PassageLine, bytes: Range<usize>) -> Option<SpokenText> {
    let bytes = widened(line, bytes);
    let words = line.text.get(bytes.clone())?.to_owned();
    Some(SpokenText { words, segments: line.segments(&bytes)?, is_negated: false })
}

fn widened(line: &PassageLine, bytes: Range<usize>) -> Range<usize> {
    let segments = line.segment_bytes(&bytes);
    with_signs(&line.text, bytes, segments)
}

/// Longest prefix of a text with at most this many bytes.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut prefixes = (0..=bytes.min(text.len())).rev().map(|end| text.get(..end));
    prefixes.find_map(|prefix| prefix).unwrap_or_default()
}

/// Longest suffix of a text with at most this many bytes.
pub(super) fn tail(text: &str, bytes: usize) -> &str {
    let mut suffixes = (text.len().saturating_sub(bytes)..=text.len()).map(|start| text.get(start..));
    suffixes.find_map(|suffix| suffix).unwrap_or_default()
}

impl WholeText {
    fn new(passages: &[Passage]) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::with_capacity(passages.len()));
        for passage in passages {
            starts.push(text.len());
            text.push_str(&fold(&passage.text));
        }
        Self { text, starts }
    }

    /// Indices of the passages with this many bytes of the text from an offset on.
    fn passages(&self, at: usize, length: usize) -> Range<usize> {
        let first = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        first..self.starts.partition_point(|start| *start < at + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{passages, tests::transcript_of};

    fn source(segments: Vec<Segment>) -> TranscriptIndex {
        let passages = passages(&segments);
        TranscriptIndex::new(transcript_of(segments), passages.into())
    }

    #[test]
    fn transcript_index_finds_words_at_their_position() {
        let segments =
            ["We built the harbour", "in nineteen twelve.", "It was cold.", "The ice broke in May."];
        let segments: Vec<_> = segments
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 9_000, 1_000))
            .collect();
        let mut source = source(segments);
        assert_eq!(source.passages.len(), 4);
        let spoken =
            |words: &str, segments| Some(SpokenText { words: words.to_owned(), segments, is_negated: false });
        assert_eq!(source.find_near(2, &fold("Nineteen TWELVE")), spoken("nineteen twelve", 1..2));
        assert_eq!(source.find_near(1, &fold("harbour, in nineteen")), spoken("harbour in nineteen", 0..2));
        assert_eq!(source.find_near(1, &fold("ice broke")), None);
        assert_eq!(source.find_anywhere(&fold("it was cold; the ice")), spoken("It was cold. The ice", 2..4));
        assert_eq!(source.find_anywhere(&fold("it was warm")), None);
        assert_eq!(source.find_exact(1, "harbour"), spoken("harbour", 0..1));
        assert_eq!(source.find_exact(1, "harb"), None);
        let mut numbers = self::source(vec![Segment::new("It was 3.5, then 3, PWNED 1.2", 0, 1_000)]);
        assert_eq!(numbers.find_exact(1, "3"), spoken("3", 0..1));
        assert_eq!(numbers.find_exact(1, "pwned1"), spoken("PWNED 1.2", 0..1));
        // Segments without words are no part of those with them.
        let mut music =
            self::source(vec![Segment::new("♪♪", 0, 12_000), Segment::new("We built it.", 12_000, 1_000)]);
        assert_eq!(music.find_near(1, "webuiltit"), spoken("We built it.", 1..2));
        assert_eq!(source.find_exact(2, "harbour"), None);
        assert_eq!(source.find_near(9, "x"), None);
        assert_eq!(source.find_near(0, "x"), None);
        assert_eq!(
            source.find_similar(4, "the snow broke in late May"),
            spoken("The ice broke in May", 3..4)
        );
        assert_eq!(source.find_similar(9, "x"), None);
    }

    #[test]
    fn transcript_index_work_is_bounded() {
        let segments = [Segment::new("a harbour", 0, 1), Segment::new("é".repeat(3_000_000), 9_000, 1)];
        let mut source = source(segments.to_vec());
        assert!(source.context_around(1).len() < 10_000 && source.context_around(2).len() < 30_000);
        assert!(source.words_of_segments(&(0..2)).len() < 30_000);
        // A long neighbour is skipped, and a long passage is searched only within the byte budget.
        assert_eq!(source.neighbourhood(0, 1, NEIGHBOUR_BYTES_MAX), 0..1);
        for _ in 0..20 {
            assert_eq!(source.find_near(2, "eeeeeeeeeeeeee"), None);
        }
        assert!(source.budget.get() < 6_000_000, "{}", source.budget.get());
        assert!(source.find_similar(2, "eeeee eee eee").is_none());
        assert!(source.any_passage(|_| false));
        for _ in 0..NEAR_SEARCHES_MAX {
            source.find_near(1, "x");
        }
        assert_eq!(source.find_near(1, "harbour"), None);
    }
}
