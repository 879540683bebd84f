//! Stems of words by language, from the Snowball stemmers.

use std::borrow::Cow;

use snowball_stemmers_rs::{Algorithm, Stemmer};

use super::fold::is_point;

/// Longest word that is stemmed, in bytes; a longer one is its own stem.
const WORD_BYTES_MAX: usize = 80;

/// The Arabic article, alone and with the preposition `ل` ("for").
const ARTICLE: &str = "ال";
const ARTICLE_FOR: &str = "لل";
/// Letters that an Arabic word keeps after its article; more if something stands before or in the article, because
/// words like `والدة` ("mother") begin alike.
const ARTICLE_REST_MIN: usize = 2;
const PREFIXED_REST_MIN: usize = 3;

/// Reduces the words of one language to their stems.
pub(crate) struct WordStemmer {
    stemmer: Option<Stemmer>,
    is_arabic: bool,
}

impl WordStemmer {
    /// The stemmer of a language, by its primary tag. Words of other languages are their own stems.
    pub(crate) fn new(primary: &str) -> Self {
        let algorithm = match primary {
            "ar" => Algorithm::Arabic,
            "da" => Algorithm::Danish,
            "de" => Algorithm::German,
            "el" => Algorithm::Greek,
            "en" => Algorithm::English,
            "es" => Algorithm::Spanish,
            "fr" => Algorithm::French,
            "hi" => Algorithm::Hindi,
            "id" => Algorithm::Indonesian,
            "it" => Algorithm::Italian,
            "nl" => Algorithm::Dutch,
            "pl" => Algorithm::Polish,
            "pt" => Algorithm::Portuguese,
            "ru" => Algorithm::Russian,
            "sv" => Algorithm::Swedish,
            "tr" => Algorithm::Turkish,
            "uk" => Algorithm::Ukrainian,
            _ => return Self { stemmer: None, is_arabic: false },
        };
        Self { stemmer: Some(Stemmer::create(algorithm)), is_arabic: primary == "ar" }
    }

    /// Whether the language has rules.
    pub(crate) fn has_rules(&self) -> bool {
        self.stemmer.is_some()
    }

    /// Stem of a word in lower case.
    pub(crate) fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        match &self.stemmer {
            Some(stemmer) if word.len() <= WORD_BYTES_MAX && self.is_arabic => stem_arabic(stemmer, word),
            Some(stemmer) if word.len() <= WORD_BYTES_MAX => stemmer.stem(word),
            _ => Cow::Borrowed(word),
        }
    }
}

/// Stem of an Arabic word.
///
/// Snowball's rules take a word with a conjunction and the article, such as `والجسر` ("and the bridge"), for a verb, and
/// remove neither. Without them all forms have the stem of the noun.
fn stem_arabic<'a>(stemmer: &Stemmer, word: &'a str) -> Cow<'a, str> {
    if word.chars().any(is_point) {
        let plain: String = word.chars().filter(|letter| !is_point(*letter)).collect();
        return Cow::Owned(stemmer.stem(without_article(&plain)).into_owned());
    }
    stemmer.stem(without_article(word))
}

/// An Arabic word without its article and the conjunction and preposition before it.
fn without_article(word: &str) -> &str {
    let at_least = |letters: usize| move |rest: &&str| rest.chars().nth(letters - 1).is_some();
    if let Some(rest) = word.strip_prefix(ARTICLE).filter(at_least(ARTICLE_REST_MIN)) {
        return rest;
    }
    let joined = word.strip_prefix(['و', 'ف']).unwrap_or(word);
    let with_article = joined.strip_prefix(['ب', 'ك']).unwrap_or(joined);
    let rest = with_article.strip_prefix(ARTICLE).or_else(|| joined.strip_prefix(ARTICLE_FOR));
    rest.filter(at_least(PREFIXED_REST_MIN)).unwrap_or(word)
}

impl std::fmt::Debug for WordStemmer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WordStemmer").field(&self.stemmer.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stemmer_inflections_of_word_have_one_stem() {
        for (language, one, other) in [
            ("en", "investments", "invested"),
            ("de", "häuser", "häusern"),
            ("fr", "pêcheurs", "pêcheur"),
            ("es", "trabajaban", "trabajando"),
            ("it", "navigava", "navigare"),
            ("pt", "cantavam", "cantando"),
            ("nl", "dijken", "dijk"),
            ("ru", "поезда", "поездом"),
            ("ar", "جسر", "والجسر"),
            ("ar", "بستان", "بالبستان"),
            ("ar", "كمان", "للكمان"),
            ("ar", "قرية", "وَالقَرْيَة"),
            ("ar", "الوالدة", "والدة"),
            ("xx", "same", "same"),
        ] {
            let stemmer = WordStemmer::new(language);
            assert_eq!(stemmer.stem(one), stemmer.stem(other), "{language}");
        }
    }

    proptest! {
        #[test]
        fn stemmer_any_word_does_not_panic(word in "\\PC{0,30}", other in "[a-zäöüßéèêçñãõğışа-яёіїєάέήαβγδεζηθικलकािเ\u{300}\u{301}']{0,20}") {
            for language in ["ar", "da", "de", "el", "en", "es", "fr", "hi", "id", "it", "nl", "pl", "pt", "ru", "sv", "tr", "uk"] {
                let stemmer = WordStemmer::new(language);
                prop_assert!(stemmer.stem(&word).len() <= 2 * word.len() + 8);
                prop_assert!(stemmer.stem(&other).len() <= 2 * other.len() + 8);
            }
        }
    }
}
