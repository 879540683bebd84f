//! N-grams of a question that name a subject, and those that hold its grammar.
//!
//! In scripts without spaces, and in Korean, whose words have endings, most n-grams of a question join two words or
//! hold particles and endings. A transcript that answers the question has other ones: they are no evidence against it.

use std::collections::HashSet;

use super::{common_words::is_common_ngram, fold::fold};
use crate::transcript::script::{Script, char_script};

/// Part of a word that an n-gram is.
const NGRAM_WORDS: f32 = 0.25;
/// Syllables of a Korean word that are a term of it.
const SYLLABLES: usize = 2;
/// Korean for "how many": the word behind it is what is counted, which is a unit.
const HOW_MANY: &str = "몇";

/// Least letters of a Japanese noun in Hiragana that is read as one.
const NOUN_LETTERS_MIN: usize = 2;
/// Japanese particles behind a noun.
const PARTICLES: &str = "はがをの";
/// Japanese words in the place of a noun that name none.
const PRONOUNS: [&str; 10] =
    ["これ", "それ", "あれ", "どれ", "ここ", "そこ", "だれ", "わたし", "あなた", "みんな"];

/// Which n-grams of a text name a subject.
#[derive(Debug)]
pub(super) struct SubjectNgrams {
    /// The first syllables of the Korean words that name one.
    beginnings: HashSet<String>,
    /// The n-grams of Japanese nouns in Hiragana.
    hiragana_nouns: HashSet<String>,
    /// The Chinese characters that stand in common pairs only: 生 of 发生, and the pair 生了, name nothing then.
    common_letters: HashSet<char>,
    /// Whether Kana stand beside Chinese characters or Katakana: particles and endings are Hiragana then.
    is_japanese: bool,
}

impl SubjectNgrams {
    pub(super) fn new(text: &str) -> Self {
        let has = |scripts: &[Script]| text.chars().any(|c| scripts.contains(&char_script(c)));
        Self {
            beginnings: korean_beginnings(text),
            hiragana_nouns: hiragana_nouns(text),
            common_letters: common_letters(text),
            is_japanese: has(&[Script::Hiragana]) && has(&[Script::Han, Script::Katakana]),
        }
    }

    /// The part of a word of a subject that an n-gram is; 0 for one that holds grammar.
    pub(super) fn word_share(&self, ngram: &str) -> f32 {
        let first = ngram.chars().next().map(char_script);
        let is_common_letter =
            |c: char| is_common_ngram(c.encode_utf8(&mut [0; 4])) || self.common_letters.contains(&c);
        let has_common_letter = || ngram.chars().any(is_common_letter);
        match first {
            Some(Script::Hangul) => f32::from(u8::from(self.beginnings.contains(ngram))),
            Some(Script::Han | Script::Hiragana | Script::Katakana) => {
                let has_hiragana = ngram.chars().any(|c| char_script(c) == Script::Hiragana);
                let is_noun = self.hiragana_nouns.contains(ngram);
                let is_grammar = has_common_letter() || (self.is_japanese && has_hiragana && !is_noun);
                if is_grammar { 0.0 } else { NGRAM_WORDS }
            }
            _ => NGRAM_WORDS,
        }
    }
}

/// The Chinese characters of a text that are in common pairs wherever they stand.
fn common_letters(text: &str) -> HashSet<char> {
    let (mut inside, mut outside) = (HashSet::new(), HashSet::new());
    for run in text.split(|c| char_script(c) != Script::Han) {
        let letters: Vec<char> = fold(run).chars().collect();
        let is_common = |pair: &[char]| is_common_ngram(&String::from_iter(pair));
        let pairs: Vec<bool> = letters.windows(2).map(is_common).collect();
        for (at, letter) in letters.into_iter().enumerate() {
            let around = [at.checked_sub(1), Some(at)].into_iter().flatten();
            let is_inside = around.into_iter().any(|pair| pairs.get(pair) == Some(&true));
            if is_inside {
                inside.insert(letter)
            } else {
                outside.insert(letter)
            };
        }
    }
    &inside - &outside
}

/// The first syllables of the Korean words of a text, without those that ask how many, and what these count.
fn korean_beginnings(text: &str) -> HashSet<String> {
    let mut words = text.split(|c| char_script(c) != Script::Hangul).filter(|word| !word.is_empty());
    let mut beginnings = HashSet::new();
    while let Some(word) = words.next() {
        match word.strip_prefix(HOW_MANY) {
            Some("") => drop(words.next()),
            Some(_) => {}
            None => {
                beginnings.insert(word.chars().take(SYLLABLES).collect());
            }
        }
    }
    beginnings
}

/// The n-grams of the nouns in Hiragana with which phrases of a text begin: the letters before the first particle.
fn hiragana_nouns(text: &str) -> HashSet<String> {
    let phrases = text.split(|c: char| char_script(c) != Script::Hiragana && !c.is_alphanumeric());
    let mut ngrams = HashSet::new();
    for phrase in phrases {
        let mut letters: Vec<char> =
            phrase.chars().take_while(|c| char_script(*c) == Script::Hiragana).collect();
        let particle = letters.iter().skip(NOUN_LETTERS_MIN).position(|c| PARTICLES.contains(*c));
        letters.truncate(particle.map_or(0, |at| at + NOUN_LETTERS_MIN));
        let noun: String = letters.iter().collect();
        if !PRONOUNS.contains(&noun.as_str()) {
            let folded: Vec<char> = fold(&noun).chars().collect();
            ngrams.extend(folded.windows(2).map(String::from_iter));
        }
    }
    ngrams.retain(|ngram| !is_common_ngram(ngram));
    ngrams
}
