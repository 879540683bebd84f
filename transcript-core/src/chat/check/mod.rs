//! The check: what leaves is the transcript's own words, or rests on a passage that was given.
//!
//! A model's text comes in by any pieces. It goes out by sentences:
//!
//! - a citation becomes the moment of the segments that it stands for; a number that was not given is dropped;
//! - a quotation is looked for in what the sentence cites, then in the whole transcript, where it is cited anew;
//!   what leaves is the transcript's text. One that is nearly what was said becomes what was said. Any other takes
//!   its sentence with it;
//! - a sentence without a citation leaves only when one in the same line, behind it, has one;
//! - times and links are the service's: the model's own are taken out.

mod clean;
mod cut;
mod marks;
mod names;
mod numbers;
mod plain;
mod repair;
mod source;
mod support;
mod writer;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

use std::{ops::Range, sync::Arc};

use cut::{Cutter, Piece};
use marks::{Part, parts};
use names::Names;
use plain::is_single_mark;
use source::{Around, Source};
use support::{Beside, Telling};
use writer::{Quoted, Writer};

use super::{Citation, Passage, Sentence, Turn, fold::fold, prompt::NOT_COVERED};
use crate::transcript::{Segment, Transcript, is_unspaced};

/// The most bytes of a model's text that are looked at; an answer is far shorter.
pub(super) const TEXT_BYTES_MAX: usize = 32 * 1024;
/// A quotation of this many characters must be true, or goes.
const QUOTED_CHARS_MIN: usize = 12;
/// The same in scripts in which a character is a word or a syllable.
const QUOTED_WIDE_MIN: usize = 5;
/// So many words of its own that nobody says may stand around what a sentence quotes.
const PASSING_MAX: usize = 4;
/// A sentence of so many words that stand so in what it cites is shown as a quotation.
const WORDS_QUOTED_MAX: usize = 3;
/// The most passages that one sentence cites, and the most quotations in it.
const CITED_MAX: usize = 12;
const QUOTES_MAX: usize = 16;
/// How many lines without a citation may lead to one that has.
const LEADS_MAX: usize = 2;

/// What the check made of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// How many sentences left.
    pub(super) verified: usize,
    /// How many did not.
    pub(super) removed: usize,
    /// Whether the model says that the transcript does not answer the question.
    pub(super) says_not_covered: bool,
    /// Whether there was a word in it at all.
    pub(super) is_readable: bool,
}

/// A sentence that was looked at.
#[derive(Clone, Debug, Default)]
struct Checked {
    text: String,
    /// What it cites, in order, by segments.
    cited: Vec<Range<usize>>,
    /// It quotes what nobody said.
    is_false: bool,
}

/// A sentence that waits for one behind it with a citation.
#[derive(Clone, Debug)]
struct Held {
    text: String,
    starts_line: bool,
}

/// Takes a model's text by pieces, and gives the sentences that may leave.
#[derive(Debug)]
pub(super) struct Checker {
    transcript: Arc<Transcript>,
    source: Source,
    /// Which passages were given, by their places.
    given: Vec<bool>,
    asked: String,
    beside: Beside,
    names: Names,
    cutter: Option<Cutter>,
    taken: usize,
    held: Vec<Held>,
    /// Whether the line before ended without a citation: one alone in the next line is its own.
    line_is_held: bool,
    cited: Vec<Range<usize>>,
    /// Whether a line's beginning was left out, so that what leaves next begins it.
    starts_line: bool,
    report: Report,
    text: String,
}

impl Checker {
    /// A check against a transcript of which `given` were given to the model, to answer `asked` after `history`.
    pub(super) fn new(
        transcript: &Arc<Transcript>,
        passages: &Arc<[Passage]>,
        given: &[Passage],
        asked: &str,
        history: &[Turn],
    ) -> Self {
        let mut is_given = vec![false; passages.len()];
        for passage in given {
            let place = (passage.number as usize).checked_sub(1);
            if let Some(is_given) = place.and_then(|place| is_given.get_mut(place)) {
                *is_given = true;
            }
        }
        let titles = [transcript.title.as_deref(), transcript.author.as_deref()].into_iter().flatten();
        let hearsay = titles.chain(history.iter().map(|turn| turn.content.as_str()));
        Self {
            beside: Beside::new(asked, hearsay),
            names: Names::of(transcript, asked),
            transcript: Arc::clone(transcript),
            source: Source::new(Arc::clone(transcript), Arc::clone(passages)),
            given: is_given,
            asked: fold(asked),
            cutter: Some(Cutter::new()),
            taken: 0,
            held: Vec::new(),
            line_is_held: false,
            cited: Vec::new(),
            starts_line: false,
            report: Report::default(),
            text: String::new(),
        }
    }

    /// Takes more text; returns what may leave now. Beyond [`TEXT_BYTES_MAX`] nothing is taken.
    pub(super) fn push(&mut self, text: &str) -> Vec<Sentence> {
        let mut end = text.len().min(TEXT_BYTES_MAX.saturating_sub(self.taken));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.taken += text.len();
        let mut pieces = Vec::new();
        if let Some(cutter) = &mut self.cutter {
            cutter.push(text.get(..end).unwrap_or_default(), |piece| pieces.push(piece));
        }
        pieces.into_iter().filter_map(|piece| self.piece(&piece)).collect()
    }

    /// The last of what may leave.
    pub(super) fn finish(&mut self) -> Vec<Sentence> {
        let mut pieces = Vec::new();
        if let Some(cutter) = self.cutter.take() {
            cutter.finish(|piece| pieces.push(piece));
        }
        let left = pieces.into_iter().filter_map(|piece| self.piece(&piece)).collect();
        self.report.removed += std::mem::take(&mut self.held).len();
        left
    }

    /// What was made of the text so far.
    pub(super) fn report(&self) -> Report {
        self.report
    }

    /// All that left so far.
    pub(super) fn response(&self) -> &str {
        self.text.trim()
    }

    /// All that was cited so far.
    pub(super) fn cited(&self) -> &[Range<usize>] {
        &self.cited
    }

    fn piece(&mut self, piece: &Piece) -> Option<Sentence> {
        self.report.is_readable |= piece.text.chars().any(char::is_alphanumeric);
        if piece.text.contains(NOT_COVERED) {
            self.report.says_not_covered = true;
        }
        let checked = self.check(&piece.text.replace(NOT_COVERED, ""));
        let sentence = self.weigh(piece, checked);
        if piece.ends_line {
            self.end_line();
        }
        sentence
    }

    /// Lets a sentence go, holds it, or drops it.
    fn weigh(&mut self, piece: &Piece, checked: Checked) -> Option<Sentence> {
        let says = checked.text.chars().any(char::is_alphanumeric);
        let is_bare = !checked.text.chars().any(|c| c.is_alphanumeric()) || is_only_markers(&checked.text);
        self.starts_line |= piece.starts_line;
        if checked.is_false {
            self.report.removed += 1;
            return None;
        }
        if self.line_is_held && (says || !checked.cited.is_empty()) {
            self.line_is_held = false;
            // A line of citations alone belongs to the line above it.
            if !is_bare || checked.cited.is_empty() {
                self.keep_leads();
            }
        }
        if !says {
            return None;
        }
        let starts_line = std::mem::take(&mut self.starts_line);
        if is_bare && self.held.is_empty() && !self.follows_words() {
            return None;
        }
        self.held.push(Held {
            text: checked.text,
            starts_line: starts_line && (!is_bare || self.held.is_empty()),
        });
        if checked.cited.is_empty() {
            return None;
        }
        self.drop_unsupported(&checked.cited);
        Some(self.release(checked.cited))
    }

    /// Whether what left last is in the line that goes on.
    fn follows_words(&self) -> bool {
        !self.text.is_empty() && !self.text.ends_with('\n')
    }

    fn end_line(&mut self) {
        self.line_is_held |= !self.held.is_empty();
        self.starts_line = true;
    }

    /// Drops what waits, but for the lines that lead to the next: headings, and those that end with a colon.
    fn keep_leads(&mut self) {
        let is_lead = |held: &Held| {
            let text = held.text.trim();
            text.starts_with('#') || text.trim_end_matches(['*', '_', ' ']).ends_with([':', '：'])
        };
        let leads = self
            .held
            .iter()
            .rev()
            .take(LEADS_MAX)
            .take_while(|held| is_lead(held) && held.starts_line)
            .count();
        let from = self.held.len() - leads;
        self.report.removed += from;
        self.held.drain(..from);
    }

    /// Drops what waits, but for the sentence that ends the waiting, where it cannot rest on what that one cites.
    fn drop_unsupported(&mut self, cited: &[Range<usize>]) {
        let Some(last) = self.held.pop() else { return };
        if self.held.is_empty() {
            self.held.push(last);
            return;
        }
        let mut said = Around::default();
        cited.iter().for_each(|segments| said.add(&self.source.words_beside(segments)));
        let before = self.held.len();
        let held = std::mem::take(&mut self.held);
        let language = &self.transcript.track.language;
        let may_stay = |held: &Held| self.may_rest(&Telling::of(&held.text, language), &said, 0);
        let held = held.into_iter().filter(may_stay).collect();
        self.held = held;
        self.report.removed += before - self.held.len();
        let starts_line = last.starts_line || (before > 0 && self.held.is_empty());
        self.held.push(Held { starts_line, ..last });
    }

    fn release(&mut self, cited: Vec<Range<usize>>) -> Sentence {
        let before = self.text.len();
        for held in std::mem::take(&mut self.held) {
            let text = held.text.trim_end();
            let is_first = self.text.is_empty();
            if held.starts_line && !is_first {
                self.text.push('\n');
            }
            let text = if held.starts_line || is_first { text.trim_start() } else { text };
            // Nothing makes a link or an image of the marker of another sentence.
            let is_joined = (self.text.ends_with(']') && text.starts_with(['(', ':']))
                || (self.text.ends_with('!') && text.starts_with('['));
            if is_joined {
                self.text.push(' ');
            }
            self.text.push_str(text);
            self.report.verified += 1;
        }
        let mut citations = Vec::new();
        for segments in cited {
            if !self.cited.contains(&segments) {
                citations.extend(citation(&self.transcript, &segments));
                self.cited.push(segments);
            }
        }
        Sentence { text: self.text.get(before..).unwrap_or_default().to_owned(), citations }
    }

    /// Looks at a sentence: what it cites, and whether what it quotes was said.
    fn check(&mut self, sentence: &str) -> Checked {
        let parts = parts(sentence, &self.names);
        let is_crowded = parts.iter().filter(|part| matches!(part, Part::Quote(_))).count() > QUOTES_MAX;
        if is_crowded || parts.contains(&Part::Unclosed) {
            return Checked { is_false: true, ..Checked::default() };
        }
        let numbers = self.given_of(&parts);
        let parts = self.with_words_as_quotes(parts, &numbers);
        let mut quotes: Vec<Option<Quoted>> = Vec::with_capacity(parts.len());
        for part in &parts {
            let quote =
                if let Part::Quote(quoted) = part { Some(self.quoted(quoted, &numbers)) } else { None };
            quotes.push(quote);
        }
        if quotes.iter().flatten().any(|quote| *quote == Quoted::False) {
            return Checked { is_false: true, ..Checked::default() };
        }
        let says_itself = quotes.iter().flatten().any(|quote| matches!(quote, Quoted::Said(_)));
        let numbers = if says_itself { numbers } else { self.supporting(&parts, &quotes, numbers) };
        let parts = if says_itself { self.without_riders(parts, &quotes, &numbers) } else { parts };
        let cites = parts.iter().any(|part| matches!(part, Part::Cites(_)));
        if cites && numbers.is_empty() && !says_itself {
            // It claims to rest on what it does not: no citation of another sentence makes it better.
            return Checked { is_false: true, ..Checked::default() };
        }
        Writer::new(&self.source, numbers, &quotes).write(&parts, &quotes)
    }

    /// The passages that a sentence cites and that were given, each once, and so many as are looked at.
    fn given_of(&self, parts: &[Part]) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::new();
        let cited = parts
            .iter()
            .flat_map(|part| if let Part::Cites(numbers) = part { numbers.as_slice() } else { &[] });
        for number in cited {
            let place = (*number as usize).checked_sub(1);
            let is_given = place.and_then(|place| self.given.get(place)) == Some(&true);
            if is_given && numbers.len() < CITED_MAX && !numbers.contains(number) {
                numbers.push(*number);
            }
        }
        numbers
    }

    /// A sentence that is a few words of what it cites, and nothing else, as a quotation: what an instruction in the
    /// transcript wanted said is then seen to have been said there.
    fn with_words_as_quotes(&mut self, mut parts: Vec<Part>, numbers: &[u32]) -> Vec<Part> {
        let says = |part: &Part| match part {
            Part::Text(text) => text.chars().any(char::is_alphanumeric),
            Part::Quote(_) | Part::Unclosed => true,
            Part::Cites(_) => false,
        };
        let mut saying = parts.iter().enumerate().filter(|(_, part)| says(part));
        let (Some((place, Part::Text(text))), None) = (saying.next(), saying.next()) else { return parts };
        let text = text.clone();
        let words = text.trim_matches(|c: char| !c.is_alphanumeric());
        let count = words.split_whitespace().count() + words.chars().filter(|c| is_unspaced(*c)).count() / 2;
        let wanted = fold(words);
        // In the same letters: "Coal." is an answer, "PWNED" is what somebody said.
        let mut is_said =
            |number: &u32| self.source.exactly(*number, &wanted).is_some_and(|said| said.words == words);
        if count > WORDS_QUOTED_MAX || !numbers.iter().any(&mut is_said) {
            return parts;
        }
        let (before, after) = text.split_once(words).unwrap_or_default();
        let quoted = [before.to_owned(), words.to_owned(), after.to_owned()];
        let [before, words, after] = quoted;
        parts.splice(place..=place, [Part::Text(before), Part::Quote(words), Part::Text(after)]);
        parts
    }

    /// Those of the passages that a sentence cites on which its own words may rest. A word that it quotes proves
    /// nothing for the others.
    fn supporting(&self, parts: &[Part], quotes: &[Option<Quoted>], numbers: Vec<u32>) -> Vec<u32> {
        let own = parts.iter().zip(quotes).map(|(part, quote)| match (part, quote) {
            (Part::Unclosed | Part::Cites(_), _) | (_, Some(Quoted::Word(_))) => " ".to_owned(),
            (Part::Text(text) | Part::Quote(text), _) => clean::clean(text, &|_| false),
        });
        let telling = Telling::of(&own.collect::<String>(), &self.transcript.track.language);
        let may_rest = |number: &u32| self.may_rest(&telling, &self.source.words_around(*number), 0);
        if !numbers.iter().any(may_rest) {
            return Vec::new();
        }
        // Beside one that it rests on it may name those next to it.
        let is_next = |number: &u32| {
            let Around { own, beside } = self.source.words_around(*number);
            self.may_rest(&telling, &Around { own: own + " " + &beside, beside: String::new() }, 0)
        };
        numbers.into_iter().filter(is_next).collect()
    }

    fn may_rest(&self, telling: &Telling, said: &Around, passing: usize) -> bool {
        self.source.may_look(said.len())
            && telling.may_rest_on(said, &self.beside, passing, |telling| {
                self.source.says(|text| telling.is_in(text))
            })
    }

    /// The parts of a sentence that quotes what was said, without its own words where these say something else.
    fn without_riders(&self, parts: Vec<Part>, quotes: &[Option<Quoted>], numbers: &[u32]) -> Vec<Part> {
        let mut said = Around::default();
        numbers.iter().for_each(|number| said.add(&self.source.words_around(*number)));
        let mut own = String::new();
        for (part, quote) in parts.iter().zip(quotes) {
            match (part, quote) {
                (_, Some(Quoted::Said(one))) => said.add(&self.source.words_beside(&one.segments)),
                (Part::Text(text) | Part::Quote(text), _) => own.push_str(&clean::clean(text, &|_| false)),
                _ => own.push(' '),
            }
        }
        let telling = Telling::of(&own, &self.transcript.track.language);
        if self.may_rest(&telling, &said, PASSING_MAX) {
            return parts;
        }
        let is_own = |quote: &Option<Quoted>| !matches!(quote, Some(Quoted::Said(_)));
        let bare = parts.into_iter().zip(quotes).map(|(part, quote)| match part {
            Part::Text(_) | Part::Quote(_) if is_own(quote) => Part::Text(" ".to_owned()),
            part => part,
        });
        bare.collect()
    }

    /// What a quotation is.
    fn quoted(&mut self, quoted: &str, numbers: &[u32]) -> Quoted {
        let wanted = fold(quoted);
        if wanted.is_empty() {
            return Quoted::Words(String::new());
        }
        let words = || quoted.trim_matches(is_single_mark).to_owned();
        let is_wide = quoted.chars().filter(|c| is_unspaced(*c)).count() >= QUOTED_WIDE_MIN;
        if !is_wide && quoted.chars().count() < QUOTED_CHARS_MIN {
            // A word that the model sets apart; marks stand around it where the passage has it.
            let exact = numbers.iter().find_map(|number| self.source.exactly(*number, &wanted));
            return exact.map_or_else(|| Quoted::Words(words()), Quoted::Word);
        }
        let near = numbers.iter().find_map(|number| self.source.near(*number, &wanted));
        let is_asked = self.asked.contains(&wanted);
        if !Telling::proves(quoted) {
            // "And then it was" is said everywhere, and speaks for nothing.
            let is_said = near.is_some() || is_asked || self.source.anywhere(&wanted).is_some();
            return match near {
                Some(said) => Quoted::Word(said),
                None if is_said => Quoted::Words(words()),
                None => Quoted::False,
            };
        }
        if let Some(said) = near.or_else(|| self.source.anywhere(&wanted)) {
            return Quoted::Said(said);
        }
        if is_asked {
            // Nobody is quoted: these are words of the question.
            return Quoted::Words(words());
        }
        match numbers.iter().find_map(|number| self.source.nearly(*number, quoted)) {
            Some(said) => Quoted::Said(said),
            None => Quoted::False,
        }
    }
}

/// Whether a text is markers such as `[1:05]`, and nothing else that is said.
fn is_only_markers(text: &str) -> bool {
    let mut is_inside = false;
    text.chars().all(|c| match c {
        '[' => {
            is_inside = true;
            true
        }
        ']' => {
            is_inside = false;
            true
        }
        c => is_inside || !c.is_alphanumeric(),
    })
}

/// The moment of some segments of a transcript.
pub(super) fn citation(transcript: &Transcript, segments: &Range<usize>) -> Option<Citation> {
    let cited = transcript.segments.get(segments.clone())?;
    let start_ms = cited.first()?.start_ms;
    let end_ms = cited.iter().map(Segment::end_ms).max()?;
    let text = super::passage::Line::of(&transcript.segments, segments.clone()).text;
    Some(Citation { start_ms, end_ms, text, url: transcript.video.address_at(start_ms / 1_000) })
}
