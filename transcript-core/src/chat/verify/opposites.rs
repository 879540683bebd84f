//! Opposites: whether a sentence has the opposite of a word in the place of that word.
//!
//! "The fare was expensive in winter" contradicts passages with "the fare was cheap in winter". A sentence contradicts
//! them if one of its clauses is one of theirs, perhaps shortened, with the opposite of a word between the same two
//! informative words. Other clauses with an opposite are often true in other words: "B after A" is "A before B". A
//! clause with a second word of a pair or of quantity ("less expensive", "most are cheap") is not certain, and those
//! with a negation are left to [`negation`](super::negation).

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::{
    super::{fold::fold, stemmer::WordStemmer},
    opposite_words::OPPOSITES,
};

/// Informative words that a clause must have around its word.
const TERMS_MIN: usize = 2;
/// Maximum of informative words on a side of a word; in a longer clause it is not certain.
pub(super) const SIDE_TERMS_MAX: usize = 16;
/// Maximum of words of pairs that are read in a text; nothing is certain about a text with more.
pub(super) const OCCURRENCES_MAX: usize = 200;

/// The pairs of each language: a stem, or a run of letters in unspaced scripts, with its row and its side.
static PAIRS: LazyLock<HashMap<&'static str, HashMap<String, PairWord>>> = LazyLock::new(|| {
    let languages: HashSet<&str> = OPPOSITES.iter().map(|(language, _, _)| *language).collect();
    let pairs = |language: &'static str| {
        let stemmer = WordStemmer::new(language);
        let rows = OPPOSITES.iter().enumerate().filter(move |(_, (of, _, _))| *of == language);
        let words = rows.flat_map(|(row, (_, first, second))| {
            [(false, first), (true, second)].map(|(is_second, words)| (PairWord { row, is_second }, *words))
        });
        let stems = words.flat_map(|(pair, words)| words.split_whitespace().map(move |word| (word, pair)));
        let stem =
            |word: &str| if language.is_empty() { fold(word) } else { stemmer.stem(word).into_owned() };
        stems.map(|(word, pair)| (stem(word), pair)).collect()
    };
    languages.into_iter().map(|language| (language, pairs(language))).collect()
});

/// A side of a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairWord {
    row: usize,
    is_second: bool,
}

impl PairWord {
    fn is_opposite_of(self, other: Self) -> bool {
        self.row == other.row && self.is_second != other.is_second
    }
}

/// Finds words of pairs in texts of one language.
pub(super) struct PairWords {
    pairs: Option<(WordStemmer, &'static HashMap<String, PairWord>)>,
}

impl PairWords {
    /// The pairs of a language by its primary tag.
    pub(super) fn new(language: &str) -> Self {
        Self { pairs: PAIRS.get(language).map(|pairs| (WordStemmer::new(language), pairs)) }
    }

    /// The side of a word in lower case.
    pub(super) fn find(&self, lower: &str) -> Option<PairWord> {
        let (stemmer, pairs) = self.pairs.as_ref()?;
        // These German words have the stems of "sicher" and "bereit".
        pairs.get(&*stemmer.stem(lower)).filter(|_| !matches!(lower, "sich" | "bereits")).copied()
    }

    /// The side of a run of letters of an unspaced script.
    pub(super) fn find_ngram(ngram: &str) -> Option<PairWord> {
        PAIRS.get("")?.get(ngram).copied()
    }
}

/// A word of a pair in a text.
#[derive(Clone, Debug)]
pub(super) struct PairOccurrence {
    pub(super) word: PairWord,
    /// Informative terms of its clause before and after it, nearest first.
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
    /// Whether its clause has no negation and no other word of a pair.
    pub(super) is_certain: bool,
}

impl PairOccurrence {
    /// Whether the clause of the word is that of another one, perhaps shortened, but for the word.
    fn replaces(&self, other: &Self) -> bool {
        let is_in = |own: &[String], spoken: &[String]| {
            own.first() == spoken.first() && own.iter().all(|term| spoken.contains(term))
        };
        let (before, after) = (&self.before, &self.after);
        // "The price fell" may be the end of a longer story.
        !after.is_empty()
            && before.len() + after.len() >= TERMS_MIN
            && before.len().max(after.len()) < SIDE_TERMS_MAX
            && is_in(before, &other.before)
            && is_in(after, &other.after)
    }
}

/// Whether a sentence has the opposite of a word of the passages in its place, and neither has both words.
pub(super) fn is_reversed(sentence: &[PairOccurrence], passages: &[PairOccurrence]) -> bool {
    let has = |text: &[PairOccurrence], word: PairWord| text.iter().any(|found| found.word == word);
    let is_opposite = |own: &PairOccurrence| {
        let replaces = |spoken: &PairOccurrence| {
            spoken.is_certain
                && spoken.word.is_opposite_of(own.word)
                && own.replaces(spoken)
                && !has(sentence, spoken.word)
        };
        own.is_certain && !has(passages, own.word) && passages.iter().any(replaces)
    };
    sentence.len().max(passages.len()) < OCCURRENCES_MAX && sentence.iter().any(is_opposite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposites_each_stem_has_one_side() {
        let mut conflicts = Vec::new();
        for (language, pairs) in PAIRS.iter() {
            let words = PairWords::new(language);
            for (row, (_, first, second)) in
                OPPOSITES.iter().enumerate().filter(|(_, row)| row.0 == *language)
            {
                for (is_second, side) in [(false, first), (true, second)] {
                    let found = |word: &str| match language.is_empty() {
                        true => pairs.get(&fold(word)).copied(),
                        false => words.find(word),
                    };
                    let pair = PairWord { row, is_second };
                    let is_wrong = |word: &&str| {
                        found(word) != Some(pair) || (language.is_empty() && word.chars().count() != 2)
                    };
                    conflicts.extend(side.split_whitespace().filter(is_wrong).map(|word| (*language, word)));
                }
            }
        }
        assert!(conflicts.is_empty(), "{conflicts:?}");
    }
}
