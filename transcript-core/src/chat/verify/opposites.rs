//! Opposites: whether a sentence has the opposite of a word in the place of that word.
//!
//! "The fare was expensive" contradicts passages with "the fare was cheap". A sentence contradicts them if it has a word
//! of a pair and they have only the other one, with the same informative words around. If one of these changes sides,
//! nothing is certain: "B after A" is "A before B". Clauses with a negation are left to
//! [`negation`](super::negation).

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::{
    super::{fold::fold, stemmer::WordStemmer},
    opposite_words::OPPOSITES,
};

/// Informative words that must be the same around both words, if the sentence has that many.
const SHARED_MIN: usize = 2;

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
    stemmer: WordStemmer,
    pairs: Option<&'static HashMap<String, PairWord>>,
}

impl PairWords {
    /// The pairs of a language by its primary tag.
    pub(super) fn new(language: &str) -> Self {
        Self { stemmer: WordStemmer::new(language), pairs: PAIRS.get(language) }
    }

    /// The side of a word in lower case.
    pub(super) fn find(&self, lower: &str) -> Option<PairWord> {
        self.pairs?.get(&*self.stemmer.stem(lower)).copied()
    }

    /// The side of a run of letters of an unspaced script.
    pub(super) fn find_ngram(ngram: &str) -> Option<PairWord> {
        PAIRS.get("")?.get(ngram).copied()
    }
}

/// A word of a pair in a text.
#[derive(Clone, Debug)]
pub(super) struct FoundWord {
    pub(super) word: PairWord,
    /// Informative terms of its clause before and after it, nearest first.
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
    /// Whether its clause has no negation.
    pub(super) is_certain: bool,
}

impl FoundWord {
    /// Terms after the word that belong to it: only the next one if the word begins its clause.
    fn object(&self) -> &[String] {
        let count = if self.before.is_empty() { 1 } else { self.after.len() };
        self.after.get(..count).unwrap_or(&self.after)
    }

    /// Whether the word is in the place of another one: no word around changed sides.
    fn replaces(&self, other: &Self) -> bool {
        let (own_object, object) = (self.object(), other.object());
        let terms = || self.before.iter().chain(&self.after);
        let is_kept = |term: &String| {
            (self.before.contains(term) && other.before.contains(term))
                || (own_object.contains(term) && object.contains(term))
        };
        let is_moved = |term: &String| {
            (self.before.contains(term) && object.contains(term))
                || (own_object.contains(term) && other.before.contains(term))
        };
        let is_shared = |term: &&String| other.before.contains(term) || other.after.contains(term);
        terms().any(is_kept)
            && !terms().any(|term| is_moved(term) && !is_kept(term))
            && terms().filter(is_shared).count() >= terms().count().min(SHARED_MIN)
    }
}

/// Whether a sentence has the opposite of a word of the passages in its place.
pub(super) fn is_reversed(sentence: &[FoundWord], passages: &[FoundWord]) -> bool {
    let is_opposite = |own: &FoundWord| {
        let is_spoken = passages.iter().any(|spoken| spoken.word == own.word);
        let replaces = |spoken: &FoundWord| {
            spoken.is_certain && spoken.word.is_opposite_of(own.word) && own.replaces(spoken)
        };
        own.is_certain && !is_spoken && passages.iter().any(replaces)
    };
    sentence.iter().any(is_opposite)
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
                    let has_other = |word: &&str| found(word) != Some(PairWord { row, is_second });
                    conflicts.extend(side.split_whitespace().filter(has_other).map(|word| (*language, word)));
                }
            }
        }
        assert!(conflicts.is_empty(), "{conflicts:?}");
    }
}
