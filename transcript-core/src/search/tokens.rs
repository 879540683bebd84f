//! Index terms of a text: its folded words and n-grams in order, and the stems of its words.
//!
//! A stem carries the language whose rules produced it, so that it joins only words of that language. Marks are before
//! it, so that no beginning of a word is that of a stem.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use foldhash::HashMap;

pub(super) use crate::chat::tokenizer::TokenKind;
use crate::{
    chat::{
        common_words::is_frequent_word,
        fold::fold,
        stemmer::WordStemmer,
        tokenizer::{Term, terms_with_ranges},
        verb_forms::irregular_base,
    },
    text::head,
    transcript::{
        LanguageTag,
        script::{Script, char_script},
    },
};

/// What a stem begins with. No word contains it.
const MARK: char = '\u{b7}';
/// What a term for filters begins with.
pub(super) const FACET_MARKS: &str = "\u{b7}\u{b7}";
/// Longest term, in bytes. The rest of a longer word is not searched.
const TERM_BYTES_MAX: usize = 128;

/// Most words of a language whose stems are remembered.
const STEMS_MAX: usize = 8_000;
/// Most languages whose stems are remembered between transcripts.
const LANGUAGES_MAX: usize = 8;

/// Shortest word with a stem, in letters.
const STEM_LETTERS_MIN: usize = 3;

/// The languages with a stemmer, by the script of their words.
const LATIN: [&str; 27] = [
    "ca", "cs", "da", "de", "en", "eo", "es", "et", "eu", "fi", "fr", "ga", "hu", "id", "it", "lt", "nb",
    "nl", "nn", "no", "pl", "pt", "ro", "sr", "st", "sv", "tr",
];
const CYRILLIC: [&str; 3] = ["ru", "sr", "uk"];
const GREEK: [&str; 1] = ["el"];
const ARMENIAN: [&str; 1] = ["hy"];
const HEBREW: [&str; 2] = ["he", "yi"];
const ARABIC: [&str; 2] = ["ar", "fa"];
const DEVANAGARI: [&str; 2] = ["hi", "ne"];
const TAMIL: [&str; 1] = ["ta"];

/// Longest stem that words of other languages share with a frequent word by chance, in letters.
const CHANCE_LETTERS_MAX: usize = 3;

/// Splits texts of one language into index terms.
#[derive(Debug)]
pub(super) struct IndexTokenizer {
    language: String,
    stemmer: WordStemmer,
    /// The stems of words in lower case: most words of a transcript are in the ones before it, and the rules take
    /// longer than all else. Each word is looked up, hence the fast hash; its seed is random.
    stems: HashMap<String, [Option<String>; 2]>,
}

impl IndexTokenizer {
    pub(super) fn new(language: &LanguageTag) -> Self {
        let language = language.primary().to_owned();
        Self { stemmer: WordStemmer::new(&language), language, stems: HashMap::default() }
    }

    /// Calls `each` for every term of some texts, with its range in characters of all texts. An extra term follows its
    /// ordered one.
    pub(super) fn tokens<'a>(
        &mut self,
        texts: impl IntoIterator<Item = &'a str>,
        mut each: impl FnMut(&str, Range<usize>, TokenKind),
    ) {
        terms_with_ranges(texts, |term, range, kind| match term {
            Term::Word(number, _) if kind == TokenKind::Extra => each(cut(number), range, kind),
            Term::Word(folded, lower) => {
                each(cut(folded), range.clone(), kind);
                if let Some(known) = self.stems.get(lower) {
                    known.iter().flatten().for_each(|stem| each(stem, range.clone(), TokenKind::Extra));
                    return;
                }
                let stems = stem_terms(&self.stemmer, &self.language, folded, lower);
                stems.iter().flatten().for_each(|stem| each(stem, range.clone(), TokenKind::Extra));
                // More words than any vocabulary has are no language.
                if self.stems.len() >= STEMS_MAX {
                    self.stems.clear();
                }
                self.stems.insert(lower.to_owned(), stems);
            }
            Term::Ngram(ngram) if is_single_ideograph(ngram) => each(ngram, range, TokenKind::Extra),
            Term::Ngram(ngram) => each(ngram, range, kind),
            Term::Stem(_) => {}
        });
    }
}

/// Tokenizers that were used before, with the stems that they remember. A clone is a handle to the same ones.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexTokenizers {
    /// Those that are not in use, one for each language; the one of the latest use is the last.
    idle: Arc<Mutex<Vec<IndexTokenizer>>>,
}

impl IndexTokenizers {
    /// Does work with the tokenizer of a language. Work at the same time has another one, which may remember nothing.
    pub(super) fn with<T>(&self, language: &LanguageTag, work: impl FnOnce(&mut IndexTokenizer) -> T) -> T {
        let mut tokenizer = self.take(language.primary()).unwrap_or_else(|| IndexTokenizer::new(language));
        let done = work(&mut tokenizer);
        // Without stems there is nothing to remember.
        if tokenizer.stemmer.has_rules() {
            self.put_back(tokenizer);
        }
        done
    }

    fn take(&self, language: &str) -> Option<IndexTokenizer> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let index = idle.iter().position(|tokenizer| tokenizer.language == language)?;
        Some(idle.remove(index))
    }

    fn put_back(&self, tokenizer: IndexTokenizer) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|other| other.language != tokenizer.language);
        if idle.len() >= LANGUAGES_MAX {
            idle.remove(0);
        }
        idle.push(tokenizer);
    }
}

/// A word cut to the longest term.
pub(super) fn cut(word: &str) -> &str {
    head(word, TERM_BYTES_MAX)
}

/// Whether an n-gram is one Chinese character, which stands beside the pairs that contain it.
pub(super) fn is_single_ideograph(ngram: &str) -> bool {
    let mut letters = ngram.chars();
    letters.next().is_some_and(|letter| char_script(letter) == Script::Han) && letters.next().is_none()
}

/// Whether an n-gram is of a run that is shorter than the n-grams of its script, or one Chinese character.
pub(super) fn is_short_ngram(ngram: &str) -> bool {
    let letters: Vec<char> = ngram.chars().collect();
    match letters.as_slice() {
        [_] => true,
        [first, _] => is_alphabetic(*first),
        _ => false,
    }
}

/// Whether n-grams of the letter's script have three letters.
pub(super) fn is_alphabetic(letter: char) -> bool {
    matches!(
        char_script(letter),
        Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar | Script::Tibetan
    )
}

/// The stems of a word as terms; none for a short word and in a language without a stemmer.
///
/// A word that is its own stem has one too. Without it, a query for another form would have to exclude the same
/// letters in all other languages. But a frequent word has no short stem: words of other languages end like its forms,
/// `Paris` like one of the Portuguese `para`, and would find every transcript. The rules of English have few endings.
fn stem_terms(stemmer: &WordStemmer, language: &str, folded: &str, lower: &str) -> [Option<String>; 2] {
    if !stemmer.has_rules() || folded.chars().nth(STEM_LETTERS_MIN - 1).is_none() {
        return [None, None];
    }
    let is_frequent = language != "en" && LATIN.contains(&language) && is_frequent_word(folded, language);
    folded_stems(stemmer, language, folded, lower).map(|stem| {
        let stem = stem.filter(|stem| !is_frequent || stem.chars().nth(CHANCE_LETTERS_MAX).is_some());
        stem.map(|stem| marked_stem(cut(&stem), language))
    })
}

/// The stem of a word and, if that is another, the stem of the word without accents, or of the word of which it is an
/// irregular form or plural; no stem is empty.
///
/// A query may lack the accents that the rules read: in French, `marées` has the stem `mar`, `marees` has `mare`. An
/// irregular form keeps its stem: "shots" are also found by "shot", which is a form of "shoot".
fn folded_stems(stemmer: &WordStemmer, language: &str, folded: &str, lower: &str) -> [Option<String>; 2] {
    let stem = folded_stem(stemmer, language, lower);
    let other = if stemmer.keeps_words() {
        Some(folded.to_owned())
    } else {
        let other =
            irregular_base(language, folded).or_else(|| (lower != folded).then_some(Cow::Borrowed(folded)));
        other.map(|word| folded_stem(stemmer, language, &word))
    };
    let other = other.filter(|other| *other != stem);
    [Some(stem), other].map(|stem| stem.filter(|stem| !stem.is_empty()))
}

fn folded_stem(stemmer: &WordStemmer, language: &str, lower: &str) -> String {
    let stem = stemmer.stem(lower);
    // The rules of Turkish harden the last consonant. Of two letters that is another word: `ığdır` would be `iki`.
    if language == "tr" && stem.chars().nth(STEM_LETTERS_MIN - 1).is_none() && !lower.starts_with(&*stem) {
        return fold(lower);
    }
    if stem.is_ascii() { stem.into_owned() } else { fold(&stem) }
}

/// The term of a stem in a language.
pub(super) fn marked_stem(stem: &str, language: &str) -> String {
    format!("{MARK}{language}{stem}")
}

/// The stems of a word of unknown language, each with its language.
///
/// If there are `languages`, it is one of them; if an index knows the primary languages of its documents, one of
/// `indexed`.
pub(super) fn stems_of(
    folded: &str,
    lower: &str,
    languages: &[LanguageTag],
    indexed: Option<&[String]>,
) -> Vec<(String, &'static str)> {
    let Some(first) = lower.chars().next().filter(|_| folded.chars().nth(STEM_LETTERS_MIN - 1).is_some())
    else {
        return Vec::new();
    };
    let candidates: &[&'static str] = match char_script(first) {
        Script::Latin => &LATIN,
        Script::Cyrillic => &CYRILLIC,
        Script::Greek => &GREEK,
        Script::Armenian => &ARMENIAN,
        Script::Hebrew => &HEBREW,
        Script::Arabic => &ARABIC,
        Script::Devanagari => &DEVANAGARI,
        Script::Tamil => &TAMIL,
        _ => &[],
    };
    let is_wanted = |language: &str| {
        languages.is_empty()
            || languages.iter().flat_map(LanguageTag::primaries).any(|wanted| wanted == language)
    };
    let is_indexed = |language: &str| indexed.is_none_or(|all| all.iter().any(|known| known == language));
    candidates
        .iter()
        .filter(|language| is_wanted(language) && is_indexed(language))
        .flat_map(|language| {
            let stems = folded_stems(&WordStemmer::new(language), language, folded, lower);
            stems.into_iter().flatten().map(move |stem| (cut(&stem).to_owned(), *language))
        })
        .collect()
}

/// The term that every transcript has.
pub(super) fn any_term() -> String {
    format!("{FACET_MARKS}all")
}

/// The term of transcripts with a primary language, in the script of a language.
pub(super) fn language_script_term(language: &LanguageTag, primary: &str) -> String {
    let script = language.script().unwrap_or_default().to_ascii_lowercase();
    format!("{FACET_MARKS}{}{MARK}{script}", primary.to_ascii_lowercase())
}

/// The term of transcripts of a platform. FTS5 ends a term at `_`.
pub(super) fn platform_term(platform: crate::video::Platform) -> String {
    format!("{FACET_MARKS}{}", platform.as_str().replace('_', "\u{b7}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, text: &str, ordered: &[&str], extra: &[&str]) {
        let (mut in_order, mut beside) = (Vec::new(), Vec::new());
        IndexTokenizer::new(&LanguageTag::parse(language).unwrap()).tokens(
            [text],
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
        check("en", "Running, cats run", &["running", "cats", "run"], &["·enrun", "·encat", "·enrun"]);
        check("en", "women fell", &["women", "fell"], &["·enwomen", "·enwoman", "·enfell", "·enfall"]);
        check("de", "Häusern fell", &["hausern", "fell"], &["·dehaus", "·defell"]);
        check("fi", "taloissa", &["taloissa"], &["·fitalo"]);
        check("tr", "evler ığdır iki", &["evler", "igdir", "iki"], &["·trev", "·trigdir", "·trigi", "·trik"]);
        check("vi", "những", &["nhung"], &[]);
        check("zh", "火山爆", &["火山", "山爆"], &["火", "山", "爆"]);
    }

    #[test]
    fn tokens_word_with_accents_has_stem_without_them() {
        check("fr", "marées, marées", &["marees"; 2], &["·frmar", "·frmare", "·frmar", "·frmare"]);
        check("fr", "marees", &["marees"], &["·frmare"]);
        check("es", "habían", &["habian"], &["·eshab", "·eshabi"]);
        check("tr", "IĞDIR", &["igdir"], &["·trigdir", "·trigi"]);
        check("he", "הבית גדול", &["הבית", "גדול"], &["·heבית", "·heהבית", "·heגדול"]);
    }

    #[test]
    fn tokens_frequent_word_has_no_short_stem() {
        check("pt", "para Paris mesa", &["para", "paris", "mesa"], &["·ptpar", "·ptmes"]);
        check("pt", "nas NASA", &["nas", "nasa"], &["·ptnas"]);
        check("es", "como comer comida", &["como", "comer", "comida"], &["·escom", "·escom"]);
        check("en", "own owned", &["own", "owned"], &["·enown", "·enown"]);
        for (word, language, expect) in
            [("paris", "pt", "par"), ("comer", "es", "com"), ("para", "pt", "par")]
        {
            let stems = stems_of(word, word, &[LanguageTag::parse(language).unwrap()], None);
            assert_eq!(stems, [(expect.to_owned(), language)], "{word}");
        }
    }

    #[test]
    fn tokens_of_platforms_have_no_separator() {
        for platform in crate::video::Platform::ALL {
            let term = platform_term(platform);
            assert!(
                term.chars().all(|letter| !letter.is_ascii() || letter.is_ascii_alphanumeric()),
                "{term}"
            );
        }
    }

    #[test]
    fn tokens_stems_are_remembered_for_few_languages() {
        let tokenizers = IndexTokenizers::default();
        let known = |language: &str| {
            let language = LanguageTag::parse(language).unwrap();
            tokenizers.with(&language, |tokenizer| {
                let known = tokenizer.stems.len();
                tokenizer.tokens(["women and children"], |_, _, _| {});
                known
            })
        };
        assert_eq!([known("en"), known("en-GB"), known("de")], [0, 3, 0]);
        assert_eq!(known("vi"), 0, "a language without stems takes no place");
        assert_eq!(["fr", "es", "en", "it", "nl", "pt", "sv"].map(known), [0, 0, 3, 0, 0, 0, 0]);
        assert_eq!(["fi", "de", "en"].map(known), [0, 0, 3], "the one of the earliest use is forgotten");
        let inner = tokenizers.with(&LanguageTag::english(), |_| known("en"));
        assert_eq!((inner, known("en")), (0, 3), "work at the same time has a tokenizer each");
    }

    #[test]
    fn tokens_long_word_is_cut() {
        let word = "ä".repeat(500);
        check("xx", &word, &["a".repeat(128).as_str()], &[]);
    }

    #[test]
    fn tokens_stems_of_query_follow_its_script() {
        let stems = stems_of("поездом", "поездом", &[], None);
        assert!(stems.contains(&("поезд".to_owned(), "ru")), "{stems:?}");
        assert!(stems.iter().all(|(_, language)| CYRILLIC.contains(language)));
        assert!(stems_of("火山", "火山", &[], None).is_empty());
        assert_eq!(stems_of("cats", "cats", &[LanguageTag::english()], None), [("cat".to_owned(), "en")]);
        let french = LanguageTag::parse("fr").unwrap();
        assert_eq!(
            stems_of("maree", "marée", &[french], None),
            [("mar".to_owned(), "fr"), ("mare".to_owned(), "fr")]
        );
    }
}
