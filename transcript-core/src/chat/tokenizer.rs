//! Search terms of a text: words with their stems, and n-grams in unspaced scripts.
//!
//! A word yields the word itself and a stem of its first letters. The stem joins inflected forms in most languages that
//! separate words, without a dictionary for each. Unspaced scripts, and Korean, whose words carry grammatical endings,
//! are split into overlapping n-grams of two or three letters.

use std::ops::Range;

use icu_normalizer::properties::CanonicalCompositionBorrowed;

use super::fold::{fold_char, is_mark, is_point};
use crate::transcript::is_unspaced;
use crate::transcript::script::{Script, char_script};

const COMPOSITION: CanonicalCompositionBorrowed<'static> = CanonicalCompositionBorrowed::new();

/// Length of a stem, in letters.
const STEM_LETTERS: usize = 5;
/// Number of code points from a letter in Hiragana to the same in Katakana.
const KATAKANA_OFFSET: u32 = 0x60;

/// A search term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term<'a> {
    /// A whole word, folded; and in lower case with its accents, which stemmers read.
    Word(&'a str, &'a str),
    /// The stem of the word before it, with an asterisk.
    Stem(&'a str),
    /// An n-gram of an unspaced script.
    Ngram(&'a str),
}

impl<'a> Term<'a> {
    /// Text of the term. Texts of different kinds practically never collide.
    pub(crate) fn text(self) -> &'a str {
        match self {
            Self::Word(text, _) | Self::Stem(text) | Self::Ngram(text) => text,
        }
    }
}

/// Calls `each` for every term of a text, in order.
pub(super) fn terms(text: &str, mut each: impl FnMut(Term<'_>)) {
    NgramTokenizer::default().split(text, |term, _| each(term));
}

/// The terms of the archive search: as [`terms`] without [`Term::Stem`], with the range of each in the text, in
/// characters.
///
/// Katakana are Hiragana, and kana keep their voicing marks. [`terms`] keeps Katakana apart and drops the marks: the
/// common words of chat are in Hiragana, and folded.
pub(crate) fn terms_with_ranges(text: &str, each: impl FnMut(Term<'_>, Range<usize>)) {
    NgramTokenizer { for_archive: true, ..NgramTokenizer::default() }.split(text, each);
}

/// How an unspaced script is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NgramScript {
    /// Chinese and Japanese: pairs, and single Chinese characters.
    #[default]
    Ideographic,
    /// Korean: pairs of syllables.
    Syllabic,
    /// Thai, Lao, Khmer, Burmese, Tibetan: runs of three letters.
    Alphabetic,
}

#[derive(Debug, Default)]
struct NgramTokenizer {
    word: String,
    /// The word in lower case, with its accents.
    lower: String,
    run: Vec<char>,
    /// The range in the text of each letter of the run.
    run_positions: Vec<Range<usize>>,
    /// Number of characters before the next one.
    position: usize,
    word_start: usize,
    ngram_script: NgramScript,
    ngram: String,
    /// See [`terms_with_ranges`].
    for_archive: bool,
}

impl NgramTokenizer {
    fn split(mut self, text: &str, mut each: impl FnMut(Term<'_>, Range<usize>)) {
        for c in text.chars() {
            self.push_char(c, &mut each);
            self.position += 1;
        }
        self.end_word(&mut each);
        self.end_run(&mut each);
    }

    fn push_char(&mut self, c: char, each: &mut impl FnMut(Term<'_>, Range<usize>)) {
        if c.is_ascii_alphanumeric() {
            self.end_run(each);
            self.start_word();
            self.word.push(c.to_ascii_lowercase());
            self.lower.push(c.to_ascii_lowercase());
        } else if c.is_ascii() {
            self.end_word(each);
            self.end_run(each);
        } else if is_point(c) {
            // Part of no word: with and without points, a word is the same.
        } else if let Some(mark) = voicing_mark(c).filter(|_| self.for_archive) {
            self.add_voicing(mark);
        } else if let Some(ngram_script) = ngram_script(c).filter(|_| c.is_alphanumeric()) {
            self.end_word(each);
            if ngram_script != self.ngram_script {
                self.end_run(each);
            }
            self.ngram_script = ngram_script;
            match ngram_script {
                // A syllable counts as one letter, and folding would decompose it.
                NgramScript::Syllabic => self.run.push(c),
                NgramScript::Ideographic if self.for_archive => self.push_kana(c),
                _ => fold_char(c, |letter| self.run.push(letter)),
            }
            self.run_positions.resize(self.run.len(), self.position..self.position + 1);
        } else if c.is_alphanumeric() {
            self.end_run(each);
            self.start_word();
            fold_char(c, |letter| self.word.push(letter));
            self.lower.extend(c.to_lowercase());
        } else if is_mark(c) {
            self.lower.push(c);
        } else {
            self.end_word(each);
            self.end_run(each);
        }
    }

    /// Adds a letter of Chinese or Japanese to the run.
    fn push_kana(&mut self, c: char) {
        match hiragana(c) {
            Some(letter) => self.run.push(letter),
            None => fold_char(c, |letter| self.run.push(hiragana(letter).unwrap_or(letter))),
        }
    }

    /// Adds a voicing mark to the letter before it.
    fn add_voicing(&mut self, mark: char) {
        if let (Some(letter), Some(range)) = (self.run.last_mut(), self.run_positions.last_mut()) {
            *letter = COMPOSITION.compose(*letter, mark).unwrap_or(*letter);
            range.end = self.position + 1;
        }
    }

    fn start_word(&mut self) {
        if self.word.is_empty() {
            self.word_start = self.position;
        }
    }

    /// Range of the letters of the run with these indices.
    fn run_range(&self, letters: Range<usize>) -> Range<usize> {
        let at = |index: usize| self.run_positions.get(index);
        let start = at(letters.start).map_or(self.position, |range| range.start);
        start..at(letters.end.saturating_sub(1)).map_or(self.position, |range| range.end)
    }

    fn end_word(&mut self, each: &mut impl FnMut(Term<'_>, Range<usize>)) {
        if self.word.is_empty() {
            self.lower.clear();
            return;
        }
        let range = self.word_start..self.position;
        each(Term::Word(&self.word, &self.lower), range.clone());
        if !self.for_archive {
            self.cut_to_stem();
            each(Term::Stem(&self.word), range);
        }
        self.word.clear();
        self.lower.clear();
    }

    /// Makes the word its stem.
    fn cut_to_stem(&mut self) {
        let letters = self.word.chars().count();
        if letters > STEM_LETTERS {
            let end = self.word.char_indices().nth(STEM_LETTERS).map_or(self.word.len(), |(index, _)| index);
            self.word.truncate(end);
        } else if letters > 3 && self.word.ends_with('s') {
            self.word.pop();
        }
        self.word.push('*');
    }

    fn end_run(&mut self, each: &mut impl FnMut(Term<'_>, Range<usize>)) {
        if self.run.is_empty() {
            return;
        }
        let length = if self.ngram_script == NgramScript::Alphabetic { 3 } else { 2 };
        let length = length.min(self.run.len());
        for (index, letters) in self.run.windows(length).enumerate() {
            self.ngram.clear();
            self.ngram.extend(letters);
            each(Term::Ngram(&self.ngram), self.run_range(index..index + length));
        }
        if self.ngram_script == NgramScript::Ideographic && self.run.len() > 1 {
            for (index, letter) in self.run.iter().enumerate() {
                if char_script(*letter) == Script::Han {
                    self.ngram.clear();
                    self.ngram.push(*letter);
                    each(Term::Ngram(&self.ngram), self.run_range(index..index + 1));
                }
            }
        }
        self.run.clear();
        self.run_positions.clear();
    }
}

/// How the script of a letter is split; `None` if the script separates words.
fn ngram_script(c: char) -> Option<NgramScript> {
    match char_script(c) {
        Script::Hangul => Some(NgramScript::Syllabic),
        Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar | Script::Tibetan => {
            Some(NgramScript::Alphabetic)
        }
        // Letters and digits of full width are as in other texts.
        _ if matches!(c, '\u{FF10}'..='\u{FF5A}') => None,
        _ if is_unspaced(c) || c == 'ｰ' => Some(NgramScript::Ideographic),
        _ => None,
    }
}

/// A letter of kana in Hiragana, with its voicing mark; `None` for any other.
fn hiragana(c: char) -> Option<char> {
    match c {
        'ぁ'..='ゖ' => Some(c),
        'ァ'..='ヶ' => char::from_u32(u32::from(c) - KATAKANA_OFFSET),
        _ => None,
    }
}

/// A voicing mark of kana that is a character, in its combining form; `None` for any other character.
fn voicing_mark(c: char) -> Option<char> {
    match c {
        '\u{3099}' | '\u{FF9E}' => Some('\u{3099}'),
        '\u{309A}' | '\u{FF9F}' => Some('\u{309A}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let mut found = Vec::new();
        terms(text, |term| found.push(term.text().to_owned()));
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn tokenizer_words_have_stems() {
        check("The Investments, cats.", &["the", "the*", "investments", "inves*", "cats", "cat*"]);
        check("l’école 3.5", &["l", "l*", "ecole", "ecole*", "3", "3*", "5", "5*"]);
        check("e\u{301}cole", &["ecole", "ecole*"]);
        check("Россию", &["россию", "росси*"]);
        check("كَتَبَ ＷＩＤＥ", &["كتب", "كتب*", "wide", "wide*"]);
        check("Zusam\u{AD}men", &["zusammen", "zusam*"]);
        check("", &[]);
        check("…—", &[]);
    }

    #[test]
    fn tokenizer_ranges_are_characters_of_text() {
        let text = "Ça, l’École! 火山爆发 Ｗide";
        let letters: Vec<char> = text.chars().collect();
        let mut found = Vec::new();
        terms_with_ranges(text, |_, range| {
            found.push(letters.get(range).unwrap().iter().collect::<String>());
        });
        assert_eq!(found, ["Ça", "l", "École", "火山", "山爆", "爆发", "火", "山", "爆", "发", "Ｗide"]);
    }

    #[test]
    fn tokenizer_unspaced_scripts_are_split_into_ngrams() {
        check("火山爆发", &["火山", "山爆", "爆发", "火", "山", "爆", "发"]);
        check("火", &["火"]);
        check("火山が", &["火山", "山か", "火", "山"]);
        check("서울에서", &["서울", "울에", "에서"]);
        check("ภูเขาไฟ", &["ภูเ", "ูเข", "เขา", "ขาไ", "าไฟ"]);
        check("AI革命", &["ai", "ai*", "革命", "革", "命"]);
    }

    #[test]
    fn tokenizer_kana_of_archive_search_are_hiragana() {
        let check = |text: &str, expect: &[&str]| {
            let (mut found, mut end) = (Vec::new(), 0);
            terms_with_ranges(text, |term, range| {
                found.push(term.text().to_owned());
                end = range.end;
            });
            assert_eq!(found, expect, "{text}");
            assert_eq!(end, text.chars().count(), "{text}");
        };
        for text in ["おもちゃ", "オモチャ", "ｵﾓﾁｬ"] {
            check(text, &["おも", "もち", "ちゃ"]);
        }
        for text in ["ばーぱ", "バーパ", "ハ\u{3099}ーハ\u{309A}", "ﾊﾞｰﾊﾟ"] {
            check(text, &["ばー", "ーぱ"]);
        }
    }

    proptest! {
        #[test]
        fn tokenizer_term_count_is_bounded(text in "\\PC{0,80}") {
            let mut count = 0;
            terms(&text, |term| {
                assert!(!term.text().is_empty());
                count += 1;
            });
            // A character folds to at most eighteen letters.
            prop_assert!(count <= 36 * text.chars().count());
        }
    }
}
