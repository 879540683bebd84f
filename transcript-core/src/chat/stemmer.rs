//! Stems of words by language, from the Snowball stemmers.

use std::borrow::Cow;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// Longest word that is stemmed, in bytes; a longer one is its own stem.
const WORD_BYTES_MAX: usize = 80;

/// Reduces the words of one language to their stems.
pub(crate) struct WordStemmer(Option<Stemmer>);

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
            _ => return Self(None),
        };
        Self(Some(Stemmer::create(algorithm)))
    }

    /// Whether the language has rules.
    pub(crate) fn has_rules(&self) -> bool {
        self.0.is_some()
    }

    /// Stem of a word in lower case.
    pub(crate) fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(stemmer) if word.len() <= WORD_BYTES_MAX => stemmer.stem(word),
            _ => Cow::Borrowed(word),
        }
    }
}

impl std::fmt::Debug for WordStemmer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WordStemmer").field(&self.0.is_some()).finish()
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
