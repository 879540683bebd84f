//! Checks a transcript against a query, and finds where it matches.
//!
//! An index only proposes transcripts. Each is read from the archive and checked here before it is shown, so a result
//! never has text that the archive does not have, whatever the index contains.

use std::{collections::HashMap, ops::Range};

use foldhash::HashSet;

use super::{
    document::facets,
    expression::{IndexQuery, TermCondition},
    moments::spoken_texts,
    phrase::RUN_END,
    tokens::{IndexTokenizer, IndexTokenizers, TokenKind, is_single_ideograph},
};
use crate::{archive::StoredTranscript, chat::tokenizer::is_ngram, transcript::Transcript};

/// A term in a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TermPlace {
    /// Whether it is in the text, not in title, channel and facets.
    pub(super) is_spoken: bool,
    /// Range in characters, in the text those of all segments.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where the phrase ends that begins with it; of any other place its end.
    pub(super) phrase_end: usize,
    /// Number of ordered terms before it.
    position: usize,
    /// Number of characters of terms before it, in all texts.
    offset: usize,
}

impl TermPlace {
    /// The place of the first letters of a term.
    fn head(self, letters: usize) -> Self {
        let end = self.end.min(self.start.saturating_add(letters));
        Self { end, phrase_end: end, ..self }
    }
}

/// Places of the terms of a query in a transcript.
#[derive(Debug, Default)]
struct TermPlaces {
    ordered: HashMap<String, Vec<TermPlace>>,
    extra: HashMap<String, Vec<TermPlace>>,
    /// Those of the channel's name that a phrase may have.
    channel: HashMap<String, Vec<TermPlace>>,
}

/// Which text of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    Title,
    Channel,
    Spoken,
}

/// The terms that a query names.
#[derive(Debug, Default)]
struct QueryTerms<'a> {
    terms: HashSet<&'a str>,
    prefixes: Vec<&'a str>,
}

impl<'a> QueryTerms<'a> {
    fn new(query: &'a IndexQuery) -> Self {
        let mut found = Self::default();
        query.all.iter().chain(&query.none).for_each(|condition| found.add(condition));
        found
    }

    fn add(&mut self, condition: &'a TermCondition) {
        match condition {
            TermCondition::Term(term) => drop(self.terms.insert(term)),
            TermCondition::Prefix(prefix) => self.prefixes.push(prefix),
            TermCondition::Phrase(words) | TermCondition::Channel(words) => {
                self.terms.extend(words.iter().map(String::as_str));
            }
            TermCondition::All(all) | TermCondition::Any(all) => all.iter().for_each(|one| self.add(one)),
        }
    }

    fn contains(&self, term: &str) -> bool {
        self.terms.contains(term) || self.prefixes.iter().any(|prefix| term.starts_with(prefix))
    }
}

impl TermPlaces {
    fn new(stored: &StoredTranscript, terms: &QueryTerms<'_>, tokenizer: &mut IndexTokenizer) -> Self {
        let transcript: &Transcript = &stored.transcript;
        let mut places = Self::default();
        let mut before = (0, 0);
        let texts = [(&transcript.title, TextKind::Title), (&transcript.author, TextKind::Channel)];
        for (text, kind) in texts {
            let (position, offset) = places.add(tokenizer, text.as_deref(), kind, before, terms);
            // Phrases end with their text.
            before = (position + 1, offset + 1);
        }
        places.add(tokenizer, spoken_texts(&transcript.segments), TextKind::Spoken, before, terms);
        for facet in facets(stored) {
            let (position, offset) = (usize::MAX, usize::MAX);
            let place = TermPlace { is_spoken: false, start: 0, end: 0, phrase_end: 0, position, offset };
            places.extra.entry(facet).or_default().push(place);
        }
        places
    }

    /// Adds the terms of some texts that the query names; returns the next position and offset.
    fn add<'a>(
        &mut self,
        tokenizer: &mut IndexTokenizer,
        texts: impl IntoIterator<Item = &'a str>,
        text: TextKind,
        (mut position, mut offset): (usize, usize),
        terms: &QueryTerms<'_>,
    ) -> (usize, usize) {
        // Where the terms so far end. Those of a run overlap.
        let mut text_end = 0_usize;
        let is_spoken = text == TextKind::Spoken;
        tokenizer.tokens(texts, |term, range, kind| {
            let is_ordered = kind == TokenKind::Ordered;
            if terms.contains(term) {
                let offset = offset.saturating_sub(text_end.saturating_sub(range.start));
                let Range { start, end } = range;
                let place = TermPlace { is_spoken, start, end, phrase_end: end, position, offset };
                let list = if is_ordered { &mut self.ordered } else { &mut self.extra };
                list.entry(term.to_owned()).or_default().push(place);
                if text == TextKind::Channel && (is_ordered || is_single_ideograph(term)) {
                    self.channel.entry(term.to_owned()).or_default().push(place);
                }
            }
            position += usize::from(is_ordered);
            offset += range.end.saturating_sub(text_end.max(range.start));
            text_end = text_end.max(range.end);
        });
        (position, offset)
    }

    /// Adds the places where a condition holds; returns whether it does.
    fn find(&self, condition: &TermCondition, found: &mut Vec<TermPlace>) -> bool {
        let before = found.len();
        match condition {
            TermCondition::Term(term) => {
                let lists = [self.ordered.get(term), self.extra.get(term)];
                found.extend(lists.into_iter().flatten().flatten());
                found.len() > before
            }
            TermCondition::Prefix(prefix) => {
                // Of an n-gram only these letters match, of a word all.
                let letters = if is_ngram(prefix) { prefix.chars().count() } else { usize::MAX };
                let all = self.ordered.iter().chain(&self.extra);
                let matching = all.filter(|(term, _)| term.starts_with(prefix.as_str()));
                found.extend(matching.flat_map(|(_, places)| places).map(|place| place.head(letters)));
                found.len() > before
            }
            TermCondition::Phrase(words) => {
                let list = |word: &str| if is_single_ideograph(word) { &self.extra } else { &self.ordered };
                find_phrase(words, |word| list(word).get(word), found)
            }
            TermCondition::Channel(words) => find_phrase(words, |word| self.channel.get(word), found),
            TermCondition::Any(any) => {
                // Not `any`: each condition adds its places.
                any.iter().filter(|condition| self.find(condition, found)).count() > 0
            }
            TermCondition::All(all) => {
                let holds = all.iter().all(|condition| self.find(condition, found));
                if !holds {
                    found.truncate(before);
                }
                holds
            }
        }
    }
}

/// Adds the places of words that follow each other; returns whether there are any.
fn find_phrase<'a>(
    words: &[String],
    places: impl Fn(&str) -> Option<&'a Vec<TermPlace>>,
    found: &mut Vec<TermPlace>,
) -> bool {
    let (mut lists, mut is_apart) = (Vec::new(), false);
    for word in words {
        if word == RUN_END {
            is_apart = true;
            continue;
        }
        let Some(list) = places(word) else { return false };
        lists.push((std::mem::take(&mut is_apart), is_single_ideograph(word), list));
    }
    let Some(((_, is_character, first), rest)) = lists.split_first() else { return false };
    let before = found.len();
    for place in *first {
        let mut phrase = vec![*place];
        let mut last = (*is_character, *place);
        for (is_apart, is_character, list) in rest {
            let is_adjoining = last.0 || *is_character || *is_apart;
            let Some(next) = following(last.1, is_adjoining, list) else { break };
            phrase.push(next);
            last = (*is_character, next);
        }
        if phrase.len() == lists.len() {
            phrase.iter_mut().take(1).for_each(|first| first.phrase_end = last.1.end);
            found.extend(phrase);
        }
    }
    found.len() > before
}

/// The place in a list that follows a place: as the next term in order, or where its letters end.
///
/// A single Chinese character has no position, but adjoins its neighbours; and so does the next of two runs, whose
/// n-grams may follow each other within another run.
fn following(last: TermPlace, is_adjoining: bool, list: &[TermPlace]) -> Option<TermPlace> {
    let index = if is_adjoining {
        let offset = last.offset.checked_add(last.end.saturating_sub(last.start))?;
        list.binary_search_by_key(&offset, |place| place.offset)
    } else {
        let position = last.position.checked_add(1)?;
        list.binary_search_by_key(&position, |place| place.position)
    };
    list.get(index.ok()?).copied()
}

/// Where each word group of a query occurs in a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TextMatch {
    /// The places of each group, in the order of the query.
    pub(super) groups: Vec<Vec<TermPlace>>,
}

/// How much of a query is in a text, without title and channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpokenWords {
    /// Number of word groups that occur.
    pub(super) groups: usize,
    /// Number of places.
    pub(super) places: usize,
}

impl TextMatch {
    /// How much of the query is in the text.
    pub(super) fn spoken(&self) -> SpokenWords {
        let counts = || self.groups.iter().map(|group| group.iter().filter(|place| place.is_spoken).count());
        SpokenWords { groups: counts().filter(|count| *count > 0).count(), places: counts().sum() }
    }
}

/// Where the query matches a transcript; `None` if it does not.
pub(super) fn match_text(
    query: &IndexQuery,
    stored: &StoredTranscript,
    tokenizers: &IndexTokenizers,
) -> Option<TextMatch> {
    let terms = QueryTerms::new(query);
    let language = &stored.transcript.track.language;
    let places = tokenizers.with(language, |tokenizer| TermPlaces::new(stored, &terms, tokenizer));
    let is_excluded = query.none.iter().any(|condition| places.find(condition, &mut Vec::new()));
    let date = super::document::document_date(stored);
    let is_outside =
        query.before.is_some_and(|before| date >= before) || query.after.is_some_and(|after| date < after);
    if is_excluded || is_outside {
        return None;
    }
    let mut groups = Vec::new();
    for (index, condition) in query.all.iter().enumerate() {
        let mut found = Vec::new();
        if !places.find(condition, &mut found) {
            return None;
        }
        if index < query.word_groups {
            groups.push(found);
        }
    }
    Some(TextMatch { groups })
}
