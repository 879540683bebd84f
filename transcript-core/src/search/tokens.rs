//! Index terms of a text: its folded words and n-grams in order, and the stems of its words.
//!
//! A stem carries the language whose rules produced it, so that it joins only words of that language.

use std::ops::Range;

use foldhash::HashMap;

use crate::{
    chat::{
        fold::fold,
        stemmer::WordStemmer,
        tokenizer::{Term, terms_with_ranges},
    },
    transcript::{
        LanguageTag,
        script::{Script, char_script},
    },
};

/// Separates the parts of a term that is not a word. No word contains it.
pub(super) const MARK: char = '\u{b7}';
/// Longest term, in bytes. The rest of a longer word is not searched.
const TERM_BYTES_MAX: usize = 128;

/// Most words whose stems are remembered.
const STEMS_MAX: usize = 20_000;

/// Shortest word with a stem, in letters.
const STEM_LETTERS_MIN: usize = 3;

/// The languages with a stemmer, by the script of their words.
const LATIN: [&str; 12] = ["da", "de", "en", "es", "fr", "id", "it", "nl", "pl", "pt", "sv", "tr"];
const CYRILLIC: [&str; 2] = ["ru", "uk"];
const GREEK: [&str; 1] = ["el"];
const ARABIC: [&str; 1] = ["ar"];
const DEVANAGARI: [&str; 1] = ["hi"];

/// How an index stores a term of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// In order: a phrase is a run of these.
    Ordered,
    /// Beside the ordered terms: a stem, or one character of a run of Chinese characters.
    Extra,
}

/// Splits texts of one language into index terms.
#[derive(Debug)]
pub(super) struct IndexTokenizer {
    language: String,
    stemmer: WordStemmer,
    /// The stems of words in lower case: a transcript repeats most of its words, and the rules take longer than all
    /// else. Each word is looked up, hence the fast hash; its seed is random.
    stems: HashMap<String, Option<String>>,
}

impl IndexTokenizer {
    pub(super) fn new(language: &LanguageTag) -> Self {
        let language = language.primary().to_owned();
        Self { stemmer: WordStemmer::new(&language), language, stems: HashMap::default() }
    }

    /// Calls `each` for every term of a text, with its range in characters. An extra term follows its ordered one.
    pub(super) fn tokens(&mut self, text: &str, mut each: impl FnMut(&str, Range<usize>, TokenKind)) {
        terms_with_ranges(text, |term, range| match term {
            Term::Word(folded, lower) => {
                each(cut(folded), range.clone(), TokenKind::Ordered);
                if let Some(known) = self.stems.get(lower) {
                    if let Some(stem) = known {
                        each(stem, range, TokenKind::Extra);
                    }
                    return;
                }
                let stem = stem_term(&self.stemmer, &self.language, folded, lower);
                if let Some(stem) = &stem {
                    each(stem, range, TokenKind::Extra);
                }
                // More words than any vocabulary has are no language.
                if self.stems.len() >= STEMS_MAX {
                    self.stems.clear();
                }
                self.stems.insert(lower.to_owned(), stem);
            }
            Term::Ngram(ngram) if is_single_ideograph(ngram) => each(ngram, range, TokenKind::Extra),
            Term::Ngram(ngram) => each(ngram, range, TokenKind::Ordered),
            Term::Stem(_) => {}
        });
    }
}

/// A word cut to the longest term.
pub(super) fn cut(word: &str) -> &str {
    let end = (0..=TERM_BYTES_MAX.min(word.len())).rev().find(|end| word.is_char_boundary(*end));
    word.get(..end.unwrap_or(0)).unwrap_or(word)
}

/// Whether an n-gram is one Chinese character, which stands beside the pairs that contain it.
pub(super) fn is_single_ideograph(ngram: &str) -> bool {
    let mut letters = ngram.chars();
    letters.next().is_some_and(|letter| char_script(letter) == Script::Han) && letters.next().is_none()
}

/// The stem of a word as a term; `None` for a short word and in a language without a stemmer.
///
/// A word that is its own stem has one too. Without it, a query for another form would have to exclude the same
/// letters in all other languages.
fn stem_term(stemmer: &WordStemmer, language: &str, folded: &str, lower: &str) -> Option<String> {
    if !stemmer.has_rules() || folded.chars().nth(STEM_LETTERS_MIN - 1).is_none() {
        return None;
    }
    let stem = folded_stem(stemmer, lower);
    (!stem.is_empty()).then(|| marked_stem(cut(&stem), language))
}

fn folded_stem(stemmer: &WordStemmer, lower: &str) -> String {
    let stem = stemmer.stem(lower);
    if stem.is_ascii() { stem.into_owned() } else { fold(&stem) }
}

/// The term of a stem in a language.
pub(super) fn marked_stem(stem: &str, language: &str) -> String {
    format!("{stem}{MARK}{language}")
}

/// The language of a term if it is a stem.
pub(super) fn stem_language(term: &str) -> Option<&str> {
    term.split_once(MARK).filter(|(stem, _)| !stem.is_empty()).map(|(_, language)| language)
}

/// The stems of a word of unknown language, each with its language.
pub(super) fn stems_of(lower: &str, languages: &[LanguageTag]) -> Vec<(String, &'static str)> {
    let Some(first) = lower.chars().next().filter(|_| lower.chars().nth(STEM_LETTERS_MIN - 1).is_some())
    else {
        return Vec::new();
    };
    let candidates: &[&'static str] = match char_script(first) {
        Script::Latin => &LATIN,
        Script::Cyrillic => &CYRILLIC,
        Script::Greek => &GREEK,
        Script::Arabic => &ARABIC,
        Script::Devanagari => &DEVANAGARI,
        _ => &[],
    };
    let is_wanted =
        |language: &str| languages.is_empty() || languages.iter().any(|wanted| wanted.primary() == language);
    candidates
        .iter()
        .filter(|language| is_wanted(language))
        .map(|language| (cut(&folded_stem(&WordStemmer::new(language), lower)).to_owned(), *language))
        .filter(|(stem, _)| !stem.is_empty())
        .collect()
}

/// The term that every transcript has.
pub(super) fn any_term() -> String {
    format!("{MARK}all")
}

/// The term of transcripts that satisfy a request for a language.
pub(super) fn language_script_term(language: &LanguageTag) -> String {
    let script = language.script().unwrap_or_default().to_ascii_lowercase();
    format!("{MARK}{}{MARK}{script}", language.primary().to_ascii_lowercase())
}

/// The term of transcripts of a platform.
pub(super) fn platform_term(platform: crate::video::Platform) -> String {
    format!("{MARK}{}", platform.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, text: &str, ordered: &[&str], extra: &[&str]) {
        let (mut in_order, mut beside) = (Vec::new(), Vec::new());
        IndexTokenizer::new(&LanguageTag::parse(language).unwrap()).tokens(
            text,
            |term, _, kind| match kind {
                TokenKind::Ordered => in_order.push(term.to_owned()),
                TokenKind::Extra => beside.push(term.to_owned()),
            },
        );
        assert_eq!(in_order, ordered, "{text}");
        assert_eq!(beside, extra, "{text}");
    }

    #[test]
    fn tokens_words_have_stems_of_their_language() {
        check("en", "Running, cats run", &["running", "cats", "run"], &["run·en", "cat·en", "run·en"]);
        check("de", "Häusern", &["hausern"], &["haus·de"]);
        check("fi", "taloissa", &["taloissa"], &[]);
        check("zh", "火山爆", &["火山", "山爆"], &["火", "山", "爆"]);
    }

    #[test]
    fn tokens_long_word_is_cut() {
        let word = "ä".repeat(500);
        check("xx", &word, &["a".repeat(128).as_str()], &[]);
    }

    #[test]
    fn tokens_stems_of_query_follow_its_script() {
        let stems = stems_of("поездом", &[]);
        assert!(stems.contains(&("поезд".to_owned(), "ru")), "{stems:?}");
        assert!(stems.iter().all(|(_, language)| CYRILLIC.contains(language)));
        assert!(stems_of("火山", &[]).is_empty());
        assert_eq!(stems_of("cats", &[LanguageTag::english()]), [("cat".to_owned(), "en")]);
    }
}
