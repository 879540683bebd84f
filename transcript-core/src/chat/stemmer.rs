//! Stems of words by language, from the Snowball stemmers.

use std::borrow::Cow;

use snowball_stemmers_rs::{Algorithm, Stemmer};

use super::{
    fold::{HEBREW_PREFIXES, is_point},
    verb_forms::has_letters,
};

/// Longest word that is stemmed, in bytes; a longer one is its own stem.
const WORD_BYTES_MAX: usize = 80;

/// The Arabic article, alone and with the preposition `ل` ("for").
const ARTICLE: &str = "ال";
const ARTICLE_FOR: &str = "لل";
/// Letters that an Arabic word keeps after its article; more if something stands before or in the article, because
/// words like `والدة` ("mother") begin alike.
const ARTICLE_REST_MIN: usize = 2;
const PREFIXED_REST_MIN: usize = 3;

/// The ending of most feminine nouns in Arabic, of their plurals, and the letters that a noun keeps without it: `بنات`
/// ("daughters") is of another noun.
const FEMININE: char = 'ة';
const FEMININE_PLURAL: &str = "ات";
const FEMININE_REST_MIN: usize = 3;

/// Reduces the words of one language to their stems.
pub(crate) struct WordStemmer {
    rules: StemRules,
}

/// The rules of a language.
enum StemRules {
    None,
    Snowball(Stemmer),
    Arabic(Stemmer),
    Hebrew,
    Turkish(Stemmer),
}

impl WordStemmer {
    /// The stemmer of a language, by its primary tag. Words of other languages are their own stems.
    pub(crate) fn new(primary: &str) -> Self {
        let algorithm = match primary {
            "ar" => Algorithm::Arabic,
            "ca" => Algorithm::Catalan,
            "cs" => Algorithm::Czech,
            "da" => Algorithm::Danish,
            "de" => Algorithm::German,
            "el" => Algorithm::Greek,
            "en" => Algorithm::English,
            "eo" => Algorithm::Esperanto,
            "es" => Algorithm::Spanish,
            "et" => Algorithm::Estonian,
            "eu" => Algorithm::Basque,
            "fa" => Algorithm::Persian,
            "fi" => Algorithm::Finnish,
            "fr" => Algorithm::French,
            "ga" => Algorithm::Irish,
            "he" => return Self { rules: StemRules::Hebrew },
            "hi" => Algorithm::Hindi,
            "hu" => Algorithm::Hungarian,
            "hy" => Algorithm::Armenian,
            "id" => Algorithm::Indonesian,
            "it" => Algorithm::Italian,
            "lt" => Algorithm::Lithuanian,
            "nb" | "nn" | "no" => Algorithm::Norwegian,
            "ne" => Algorithm::Nepali,
            "nl" => Algorithm::Dutch,
            "pl" => Algorithm::Polish,
            "pt" => Algorithm::Portuguese,
            "ro" => Algorithm::Romanian,
            "ru" => Algorithm::Russian,
            "sr" => Algorithm::Serbian,
            "st" => Algorithm::Sesotho,
            "sv" => Algorithm::Swedish,
            "ta" => Algorithm::Tamil,
            "tr" => Algorithm::Turkish,
            "uk" => Algorithm::Ukrainian,
            "yi" => Algorithm::Yiddish,
            _ => return Self { rules: StemRules::None },
        };
        let stemmer = Stemmer::create(algorithm);
        let rules = match primary {
            "ar" => StemRules::Arabic(stemmer),
            "tr" => StemRules::Turkish(stemmer),
            _ => StemRules::Snowball(stemmer),
        };
        Self { rules }
    }

    /// Whether the language has rules.
    pub(crate) fn has_rules(&self) -> bool {
        !matches!(self.rules, StemRules::None)
    }

    /// Whether the rules may take the first letter of a word for a prefix, so that the word is a stem of itself too.
    pub(crate) fn keeps_words(&self) -> bool {
        matches!(self.rules, StemRules::Hebrew)
    }

    /// Stem of a word in lower case.
    pub(crate) fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if word.len() > WORD_BYTES_MAX {
            return Cow::Borrowed(word);
        }
        match &self.rules {
            StemRules::None => Cow::Borrowed(word),
            StemRules::Snowball(stemmer) => stemmer.stem(word),
            StemRules::Arabic(stemmer) => stem_arabic(stemmer, word),
            StemRules::Hebrew => Cow::Borrowed(without_prefix(word)),
            StemRules::Turkish(stemmer) => stem_turkish(stemmer, word),
        }
    }
}

/// Stem of a Turkish word.
///
/// Turkish is written with and without circumflexes, and Snowball's rules do not take a letter with one for a vowel.
fn stem_turkish<'a>(stemmer: &Stemmer, word: &'a str) -> Cow<'a, str> {
    const CIRCUMFLEXES: [char; 4] = ['â', 'î', 'û', '\u{302}'];
    if !word.contains(CIRCUMFLEXES) {
        return stemmer.stem(word);
    }
    let plain = word.chars().filter_map(|letter| match letter {
        'â' => Some('a'),
        'î' => Some('i'),
        'û' => Some('u'),
        '\u{302}' => None,
        letter => Some(letter),
    });
    Cow::Owned(stemmer.stem(&plain.collect::<String>()).into_owned())
}

/// Stem of an Arabic word.
///
/// Snowball's rules take a word with a conjunction and the article, such as `والجسر` ("and the bridge"), for a verb,
/// and remove neither. Without them all forms have the stem of the noun. The rules also keep `سيارات` ("cars") apart
/// from `سيارة` ("car").
fn stem_arabic<'a>(stemmer: &Stemmer, word: &'a str) -> Cow<'a, str> {
    if word.chars().any(is_point) {
        let plain: String = word.chars().filter(|letter| !is_point(*letter)).collect();
        return Cow::Owned(stem_arabic(stemmer, &plain).into_owned());
    }
    let noun = without_article(word);
    let singular = noun.strip_suffix(FEMININE_PLURAL).filter(|rest| has_letters(rest, FEMININE_REST_MIN));
    match singular {
        Some(rest) => Cow::Owned(stemmer.stem(&format!("{rest}{FEMININE}")).into_owned()),
        None => stemmer.stem(noun),
    }
}

/// An Arabic word without its article and the conjunction and preposition before it.
fn without_article(word: &str) -> &str {
    let at_least = |letters: usize| move |rest: &&str| has_letters(rest, letters);
    if let Some(rest) = word.strip_prefix(ARTICLE).filter(at_least(ARTICLE_REST_MIN)) {
        return rest;
    }
    let joined = word.strip_prefix(['و', 'ف']).unwrap_or(word);
    let with_article = joined.strip_prefix(['ب', 'ك']).unwrap_or(joined);
    let rest = with_article.strip_prefix(ARTICLE).or_else(|| joined.strip_prefix(ARTICLE_FOR));
    rest.filter(at_least(PREFIXED_REST_MIN)).unwrap_or(word)
}

/// A Hebrew word without the letters before it; "and" and "that" also stand before the article.
fn without_prefix(word: &str) -> &str {
    let is_long = |rest: &&str| has_letters(rest, PREFIXED_REST_MIN);
    let after_article = word.strip_prefix(['ו', 'ש']).and_then(|rest| rest.strip_prefix('ה'));
    let rest = after_article.filter(is_long).or_else(|| word.strip_prefix(HEBREW_PREFIXES).filter(is_long));
    rest.unwrap_or(word)
}

impl std::fmt::Debug for WordStemmer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WordStemmer").field(&self.has_rules()).finish()
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
            ("ar", "سيارة", "سيارات"),
            ("ar", "السيارة", "والسَّيَّارَات"),
            ("ca", "caminava", "caminar"),
            ("cs", "knihu", "kniha"),
            ("eo", "domoj", "domon"),
            ("et", "raamatud", "raamat"),
            ("eu", "etxeak", "etxe"),
            ("fa", "کتابهای", "کتاب"),
            ("fi", "kirjastossa", "kirjastot"),
            ("ga", "mbád", "bhád"),
            ("hu", "könyvek", "könyvet"),
            ("hy", "քաղաքներ", "քաղաքի"),
            ("lt", "knygos", "knyga"),
            ("nb", "båtene", "båten"),
            ("ne", "घरहरू", "घर"),
            ("nn", "båtar", "båt"),
            ("no", "havnene", "havn"),
            ("ro", "casele", "casă"),
            ("sr", "куће", "kući"),
            ("st", "motho", "batho"),
            ("ta", "வீடுகள்", "வீட்டில்"),
            ("yi", "בוך", "בוכ"),
            ("he", "בית", "הבית"),
            ("he", "והמדינה", "המדינה"),
            ("he", "שהספר", "הספר"),
            ("he", "בבית", "לבית"),
            ("tr", "kâğıdın", "kağıdın"),
            ("tr", "ka\u{302}rı", "kar"),
            ("tr", "kâtipler", "katip"),
            ("tr", "resmîdir", "resmi"),
            ("xx", "same", "same"),
        ] {
            let stemmer = WordStemmer::new(language);
            assert_eq!(stemmer.stem(one), stemmer.stem(other), "{language}");
        }
    }

    proptest! {
        #[test]
        fn stemmer_any_word_does_not_panic(word in "\\PC{0,30}", other in "[a-zäöüßéèêçñãõğışа-яёіїєάέήαβγδεζηθικलकािเא-תآ-یա-ֆக-ஹி\u{300}\u{301}']{0,20}") {
            for language in [
                "ar", "ca", "cs", "da", "de", "el", "en", "eo", "es", "et", "eu", "fa", "fi", "fr", "ga", "he",
                "hi", "hu", "hy", "id", "it", "lt", "nb", "ne", "nl", "pl", "pt", "ro", "ru", "sr", "st", "sv",
                "ta", "tr", "uk", "yi",
            ] {
                let stemmer = WordStemmer::new(language);
                prop_assert!(stemmer.stem(&word).len() <= 2 * word.len() + 8);
                prop_assert!(stemmer.stem(&other).len() <= 2 * other.len() + 8);
            }
        }
    }
}
