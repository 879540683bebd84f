//! Words of the passages of one transcript, numbered, with the words that mean the same as one of a question.

use std::{collections::HashMap, sync::OnceLock};

use super::{
    Passage,
    common_words::CommonWords,
    distance::{LETTERS_MAX, distance},
    generic_words::{is_generic_verb, is_generic_word, language_of_counts},
    separated_number::is_in_digits,
    stemmer::WordStemmer,
    subject_ngrams::SubjectNgrams,
    tokenizer::{Term, terms},
    verb_forms::are_one_verb,
    verify::{Amounts, NumberWords, WrittenNumber, is_rarely_number},
};

/// Share of a word's weight that each form of it has: the same number in digits or in words, the same stem, another
/// form of a verb, the same beginning, part of a compound, a typing error.
pub(super) const NUMBER_QUALITY: f32 = 0.9;
const STEM_QUALITY: f32 = 0.9;
const VERB_QUALITY: f32 = 0.6;
const PREFIX_QUALITY: f32 = 0.6;
const COMPOUND_QUALITY: f32 = 0.5;
const TYPING_ERROR_QUALITY: f32 = 0.5;
/// Words with this many equal first letters count as forms of one word, in languages without a stemmer too.
const PREFIX_LETTERS: usize = 5;
/// Languages that join words to compounds.
const COMPOUND_LANGUAGES: [&str; 7] = ["da", "de", "fi", "hu", "nl", "no", "sv"];
/// Shortest word that is searched inside compounds, in letters. Where a shorter word than [`PREFIX_LETTERS`] is a part,
/// the rest has as many letters as the shortest nouns: "Eier" is no part of "Feier".
const COMPOUND_LETTERS_MIN: usize = 4;
const COMPOUND_REST_MIN: usize = 3;
/// Shortest word that may have two letters swapped, and shortest one with another typing error, in letters.
const SWAPPED_LETTERS_MIN: usize = 5;
const TYPING_ERROR_LETTERS_MIN: usize = 6;

/// Words of passages.
#[derive(Debug)]
pub(super) struct SearchIndex {
    ids: HashMap<String, u32>,
    words: Vec<IndexedWord>,
    /// Words of all passages in order, by index in `words`.
    tokens: Vec<u32>,
    /// End of each passage in `tokens`.
    ends: Vec<usize>,
    language: &'static str,
    common: CommonWords,
    stemmer: WordStemmer,
    numbers: NumberWords,
    /// The passages with each number in words or in digits. Made once, for the first question with a number.
    spoken_numbers: OnceLock<HashMap<String, Vec<usize>>>,
}

/// A distinct word or n-gram of the transcript.
#[derive(Debug)]
struct IndexedWord {
    folded: String,
    lower: String,
    /// Made once, for the first word of a question that may match.
    stem: OnceLock<String>,
    /// The number that it is. Made once, for the first number of a question.
    number: OnceLock<Option<u64>>,
    is_ngram: bool,
}

/// The words of a transcript that a word of a question matches.
#[derive(Clone, Debug, Default)]
pub(super) struct WordMatches {
    /// Each word, and the quality of the match up to 1.
    pub(super) words: Vec<(u32, f32)>,
    /// Whether they may be other words: a letter is another one, missing or too many. "Martin" is not "Marvin".
    pub(super) is_doubtful: bool,
}

/// A word or n-gram of a question.
#[derive(Clone, Debug)]
pub(super) struct QueryWord {
    pub(super) folded: String,
    pub(super) lower: String,
    pub(super) is_ngram: bool,
    pub(super) is_common: bool,
    /// The part of a word of the subject that it is; 0 if it holds grammar.
    pub(super) word_share: f32,
}

/// Words and n-grams of a text, in order.
pub(super) fn query_words(text: &str, common: CommonWords) -> Vec<QueryWord> {
    let mut words = Vec::new();
    let subject = SubjectNgrams::new(text);
    terms(text, |term| match term {
        Term::Word(folded, lower) => words.push(QueryWord {
            folded: folded.to_owned(),
            lower: lower.to_owned(),
            is_ngram: false,
            is_common: common.has_word(folded),
            word_share: 1.0,
        }),
        Term::Ngram(ngram) => words.push(QueryWord {
            folded: ngram.to_owned(),
            lower: String::new(),
            is_ngram: true,
            is_common: common.has_ngram(ngram),
            word_share: subject.word_share(ngram),
        }),
        Term::Stem(_) => {}
    });
    words
}

impl SearchIndex {
    pub(super) fn new(passages: &[Passage]) -> Self {
        let mut index = Self {
            ids: HashMap::new(),
            words: Vec::new(),
            tokens: Vec::new(),
            ends: Vec::with_capacity(passages.len()),
            language: "",
            common: CommonWords::of(""),
            stemmer: WordStemmer::new(""),
            numbers: NumberWords::default(),
            spoken_numbers: OnceLock::new(),
        };
        for passage in passages {
            terms(&passage.text, |term| match term {
                Term::Word(folded, lower) => index.add(folded, lower, false),
                Term::Ngram(ngram) => index.add(ngram, "", true),
                Term::Stem(_) => {}
            });
            index.ends.push(index.tokens.len());
        }
        let mut counts = vec![0_u32; index.words.len()];
        for id in &index.tokens {
            if let Some(count) = counts.get_mut(*id as usize) {
                *count += 1;
            }
        }
        let counted = index.words.iter().zip(counts);
        index.language = language_of_counts(counted.map(|(word, count)| (word.folded.as_str(), count)));
        index.common = CommonWords::of(index.language);
        index.stemmer = WordStemmer::new(index.language);
        index.numbers = NumberWords::new(index.language);
        index
    }

    fn add(&mut self, folded: &str, lower: &str, is_ngram: bool) {
        let id = match self.ids.get(folded) {
            Some(id) => *id,
            None => {
                let id = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
                self.ids.insert(folded.to_owned(), id);
                let (folded, lower) = (folded.to_owned(), lower.to_owned());
                let (stem, number) = (OnceLock::new(), OnceLock::new());
                self.words.push(IndexedWord { folded, lower, stem, number, is_ngram });
                id
            }
        };
        self.tokens.push(id);
    }

    /// The language of the passages: a primary tag, empty if unknown.
    pub(super) fn language(&self) -> &'static str {
        self.language
    }

    /// The common words of the passages and of a question about them.
    pub(super) fn common_words(&self, question: &str) -> CommonWords {
        self.common.with_question(question, self.language)
    }

    /// Whether a word says little about a subject.
    pub(super) fn is_generic(&self, word: &QueryWord) -> bool {
        word.is_common
            || is_generic_word(&word.folded, self.language)
            || is_generic_verb(&word.folded, self.language)
            || (self.language == "ar"
                && without_pronoun(&word.folded).is_some_and(|rest| is_generic_word(rest, "ar")))
    }

    /// Whether a word of a query names a subject: it is neither generic nor grammar.
    pub(super) fn is_of_subject(&self, word: &QueryWord) -> bool {
        word.word_share > 0.0 && !self.is_generic(word)
    }

    /// Whether a word of the transcript says little about a subject.
    pub(super) fn is_generic_id(&self, id: usize) -> bool {
        self.words.get(id).is_none_or(|word| {
            let is_common = if word.is_ngram { CommonWords::has_ngram } else { CommonWords::has_word };
            is_common(self.common, &word.folded) || is_generic_word(&word.folded, self.language)
        })
    }

    /// Number of distinct words and n-grams.
    pub(super) fn word_count(&self) -> usize {
        self.words.len()
    }

    /// Words of each passage, in passage order.
    pub(super) fn passages(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.tokens.get(start..*end).unwrap_or_default())
    }

    /// The word itself, if the transcript has it.
    pub(super) fn exact(&self, word: &QueryWord) -> Option<u32> {
        self.ids.get(&word.folded).copied()
    }

    /// The numbers of a question that a transcript may have in another form.
    pub(super) fn written_numbers(&self, question: &str) -> Vec<WrittenNumber> {
        Amounts::new(question, &self.numbers).numbers()
    }

    /// The passages that have a number, in words or in digits; `passages` are those of the index.
    pub(super) fn passages_with(&self, passages: &[Passage], number: &WrittenNumber) -> &[usize] {
        let spoken = self.spoken_numbers.get_or_init(|| {
            let mut spoken: HashMap<String, Vec<usize>> = HashMap::new();
            for (index, passage) in passages.iter().enumerate() {
                let is_left_out = |word: &str| is_rarely_number(word) || self.common.has_word(word);
                for form in Amounts::new(&passage.text, &self.numbers).spoken(is_left_out) {
                    spoken.entry(form).or_default().push(index);
                }
            }
            spoken
        });
        spoken.get(&number.form).map(Vec::as_slice).unwrap_or_default()
    }

    /// The words of the transcript that a word of a question matches: forms of it, or, if there are none, words from
    /// which a typing error keeps it apart.
    pub(super) fn matches(&self, word: &QueryWord) -> WordMatches {
        let words = self.forms(word);
        if words.is_empty() && !self.is_generic(word) {
            return self.misspelt(word);
        }
        WordMatches { words, is_doubtful: false }
    }

    /// The words of the transcript that are forms of a word of a question, each with the quality of the match up to 1.
    pub(super) fn forms(&self, word: &QueryWord) -> Vec<(u32, f32)> {
        if word.is_ngram || word.is_common {
            return self.exact(word).map(|id| (id, 1.0)).into_iter().collect();
        }
        let stem = self.stemmer.stem(&word.lower);
        let number = self.numbers.number(&word.folded);
        let matched = |id: usize| u32::try_from(id).ok();
        self.words
            .iter()
            .enumerate()
            .filter(|(_, other)| !other.is_ngram)
            .filter_map(|(id, other)| Some((matched(id)?, self.quality(word, &stem, number, other)?)))
            .collect()
    }

    /// The words of the transcript that differ from a word of a question by one typing error behind the first letter:
    /// by two swapped letters, or, if there are none, by another one.
    fn misspelt(&self, word: &QueryWord) -> WordMatches {
        let letters: Vec<char> = word.folded.chars().collect();
        let is_long = (SWAPPED_LETTERS_MIN..=LETTERS_MAX).contains(&letters.len());
        if word.is_ngram || !is_long || !letters.iter().all(|letter| letter.is_alphabetic()) {
            return WordMatches::default();
        }
        let is_near = |other: &IndexedWord| {
            !other.is_ngram
                && other.folded.chars().next() == letters.first().copied()
                && other.folded.chars().all(char::is_alphabetic)
                && distance(&letters, &other.folded, 1).is_some()
        };
        let near = self.words.iter().enumerate().filter(|(_, other)| is_near(other));
        let near = near.filter(|(id, _)| !self.is_generic_id(*id));
        let (swapped, other): (Vec<_>, Vec<_>) =
            near.partition(|(_, other)| has_same_letters(&letters, &other.folded));
        let is_doubtful = swapped.is_empty();
        let near = match is_doubtful {
            true if letters.len() < TYPING_ERROR_LETTERS_MIN => Vec::new(),
            true => other,
            false => swapped,
        };
        let ids = near.into_iter().filter_map(|(id, _)| u32::try_from(id).ok());
        WordMatches { words: ids.map(|id| (id, TYPING_ERROR_QUALITY)).collect(), is_doubtful }
    }

    /// The quality of a match of a word of a question, with its stem and the number that it is, and a word of the
    /// transcript.
    fn quality(&self, word: &QueryWord, stem: &str, number: Option<u64>, other: &IndexedWord) -> Option<f32> {
        let (one, two) = (word.folded.as_str(), other.folded.as_str());
        if one == two {
            return Some(1.0);
        }
        let is_other_form = number.is_some() && is_in_digits(one) != is_in_digits(two);
        if is_other_form
            && *other.number.get_or_init(|| self.numbers.number(two)) == number
            // "One" and "un" are rarely numbers.
            && !self.common.has_word(two)
        {
            return Some(NUMBER_QUALITY);
        }
        let shared = shared_letters(one, two);
        // With and without its article, an Arabic word begins with other letters.
        let is_alike = shared >= 2 || self.language == "ar";
        let has_stem =
            || other.stem.get_or_init(|| self.stemmer.stem(&other.lower).into_owned()).as_str() == stem;
        if is_alike && !self.common.has_word(two) && has_stem() {
            return Some(STEM_QUALITY);
        }
        if (shared >= 1 || self.language == "ar") && are_one_verb(self.language, one, two) {
            return Some(VERB_QUALITY);
        }
        let (one_letters, two_letters) = (one.chars().count(), two.chars().count());
        if shared >= PREFIX_LETTERS && one_letters > PREFIX_LETTERS && two_letters > PREFIX_LETTERS {
            return Some(PREFIX_QUALITY);
        }
        let (short, long) = if one_letters < two_letters { (one, two) } else { (two, one) };
        let letters = one_letters.min(two_letters);
        let has_rest = || one_letters.abs_diff(two_letters) >= COMPOUND_REST_MIN;
        let is_compound = COMPOUND_LANGUAGES.contains(&self.language)
            && letters >= COMPOUND_LETTERS_MIN
            && (long.starts_with(short) || long.ends_with(short))
            && (letters >= PREFIX_LETTERS || (has_rest() && !is_generic_word(short, self.language)));
        is_compound.then_some(COMPOUND_QUALITY)
    }
}

/// An Arabic word without the pronoun at its end: `عندهم` is "with them".
fn without_pronoun(word: &str) -> Option<&str> {
    ["هما", "هم", "هن", "ها", "كم", "نا", "ه", "ك", "ي"]
        .into_iter()
        .find_map(|pronoun| word.strip_suffix(pronoun))
}

/// Whether two words have the same letters in any order.
fn has_same_letters(one: &[char], other: &str) -> bool {
    let (mut one, mut other): (Vec<char>, Vec<char>) = (one.to_vec(), other.chars().collect());
    one.sort_unstable();
    other.sort_unstable();
    one == other
}

/// Number of equal first letters.
fn shared_letters(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::passages, transcript::Segment};

    /// The quality of a match of a word of a question with the transcript; 0 without one.
    fn quality(spoken: &str, word: &str) -> f32 {
        let index = SearchIndex::new(&passages(&[Segment::new(spoken, 0, 5_000)]));
        let words = query_words(word, index.common_words(word));
        let matched = words.iter().flat_map(|word| index.matches(word).words);
        matched.map(|(_, quality)| quality).fold(0.0, f32::max)
    }

    #[test]
    fn search_index_matches_forms_of_word() {
        let arabic = "نحن في البيت ثم وضعنا مرهم على القدم من أجل العلاج";
        for (spoken, word, expect) in [
            (arabic, "المرهم", STEM_QUALITY),
            (arabic, "والمرهم", STEM_QUALITY),
            (arabic, "قدم", STEM_QUALITY),
            (arabic, "الجسر", 0.0),
            ("we were in the harbour with the ships", "ship", STEM_QUALITY),
            ("we were in the harbour with the ships", "sheep", 0.0),
            ("we drank tea in the harbour with the others", "drink", VERB_QUALITY),
            ("it took nine winters and 12 ships to build the pier", "9", NUMBER_QUALITY),
            ("it took nine winters and 12 ships to build the pier", "twelve", NUMBER_QUALITY),
            ("it took nine winters and 12 ships to build the pier", "8", 0.0),
            ("it took two winters and the ships to build the pier", "second", 0.0),
            ("it was the saddle of the horse that she had", "saddel", TYPING_ERROR_QUALITY),
            ("it was the saddle of the horse that she had", "sadddle", TYPING_ERROR_QUALITY),
            ("it was the saddle of the horse that she had", "house", 0.0),
            ("it was the saddle of the horse that she had", "addsle", 0.0),
            ("it was in 12345 that she had the horse", "12354", 0.0),
            ("la huelga de la fábrica no era de ella", "hulega", TYPING_ERROR_QUALITY),
            ("der Brotteig war nicht in der Küche und auch nicht im Keller", "Brot", COMPOUND_QUALITY),
            ("der Hausbau war nicht in der Stadt und auch nicht im Tal", "Haus", COMPOUND_QUALITY),
            ("das Brot war nicht in der Küche und auch nicht im Keller", "Brotteig", COMPOUND_QUALITY),
            ("das war ein Waldhaus und es war nicht in der Stadt", "Haus", COMPOUND_QUALITY),
            ("die Feier war nicht in der Stadt und auch nicht im Tal", "Eier", 0.0),
            ("sie kommt oder sie kommt nicht und das ist auch alles", "Kleidoder", 0.0),
            ("the bread knife was not in the kitchen and not with her", "knif", 0.0),
        ] {
            assert_eq!(quality(spoken, word), expect, "{word} in {spoken}");
        }
    }
}
