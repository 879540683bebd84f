//! Search terms of a text: words with their stems, and n-grams in unspaced scripts.
//!
//! A word yields the word itself and a stem of its first letters. The stem joins inflected forms in most languages that
//! separate words, without a dictionary for each. Unspaced scripts, and Korean, whose words carry grammatical endings,
//! are split into overlapping n-grams of two or three letters.

use std::ops::Range;

use icu_normalizer::properties::CanonicalCompositionBorrowed;

use super::fold::{fold_char, folded_digit, fraction_numbers, hebrew_sign, is_mark, is_point, nasal_sign};
use super::separated_number::SeparatedNumber;
use crate::transcript::is_unspaced;
use crate::transcript::script::{Script, char_script};

const COMPOSITION: CanonicalCompositionBorrowed<'static> = CanonicalCompositionBorrowed::new();

/// Length of a stem, in letters.
const STEM_LETTERS: usize = 5;
/// Letters after which a run does not continue in the next text.
const RUN_LETTERS_MAX: usize = 4_000;
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

/// How an index of the archive search stores a term of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// In order: a phrase is a run of these.
    Ordered,
    /// Beside the ordered terms: a stem, the digits of a number with separators, or letters of a run that begin no
    /// n-gram or that a query may name alone.
    Extra,
}

/// Calls `each` for every term of a text, in order.
pub(super) fn terms(text: &str, mut each: impl FnMut(Term<'_>)) {
    NgramTokenizer::default().split([text], |term, _, _| each(term));
}

/// The terms of the archive search: as [`terms`] without [`Term::Stem`], with the range of each, in characters of all
/// texts.
///
/// - A run of an unspaced script continues in the next text, unless that is empty.
/// - Katakana are Hiragana, and kana keep their voicing marks. [`terms`] keeps Katakana apart and drops the marks: the
///   common words of chat are in Hiragana, and folded.
/// - Thai and Lao keep their tone marks, and the parts of a Korean syllable are the syllable.
/// - Digits of other scripts are those of ASCII, and a fraction such as `½` is its two numbers.
/// - A number with separators between its thousands is also a word of its digits.
/// - A nasal consonant of Hindi has the sign that is written for it; see [`nasal_sign`].
pub(crate) fn terms_with_ranges<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    each: impl FnMut(Term<'_>, Range<usize>, TokenKind),
) {
    NgramTokenizer { for_archive: true, ..NgramTokenizer::default() }.split(texts, each);
}

/// Whether a term is of a run.
pub(crate) fn is_ngram(term: &str) -> bool {
    term.chars().next().is_some_and(|letter| ngram_script(letter).is_some())
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
    /// The range in the texts of each letter of the run.
    run_positions: Vec<Range<usize>>,
    /// Number of characters before the next one.
    position: usize,
    word_start: usize,
    ngram_script: NgramScript,
    ngram: String,
    number: SeparatedNumber,
    /// The last character that is part of no word.
    separator: Option<char>,
    /// See [`terms_with_ranges`].
    for_archive: bool,
}

impl NgramTokenizer {
    fn split<'a>(
        mut self,
        texts: impl IntoIterator<Item = &'a str>,
        mut each: impl FnMut(Term<'_>, Range<usize>, TokenKind),
    ) {
        for text in texts {
            self.end_text(&mut each);
            if text.is_empty() {
                self.end_run(&mut each);
            }
            let mut letters = text.chars();
            while let Some(c) = letters.next() {
                let c = hebrew_sign(&self.lower, c, letters.as_str()).unwrap_or(c);
                self.push_char(c, &mut each);
                self.position += 1;
            }
        }
        self.end_word(&mut each);
        self.end_run(&mut each);
        self.end_number(&mut each);
    }

    /// Ends what does not continue in the next text or line.
    fn end_text(&mut self, each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind)) {
        self.end_word(each);
        self.end_number(each);
        if self.ngram_script == NgramScript::Syllabic || self.run.len() >= RUN_LETTERS_MAX {
            self.end_run(each);
        }
    }

    fn push_char(&mut self, c: char, each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind)) {
        let c = if self.for_archive { folded_digit(c) } else { c };
        if c.is_ascii_alphanumeric() {
            self.end_run(each);
            self.start_word();
            self.word.push(c.to_ascii_lowercase());
            self.lower.push(c.to_ascii_lowercase());
        } else if c == '\n' && self.for_archive {
            self.end_text(each);
        } else if c.is_ascii() {
            self.end_word(each);
            self.end_run(each);
            self.separator = Some(c);
        } else if is_point(c) {
            // Part of no word: with and without points, a word is the same.
        } else if let Some(mark) = voicing_mark(c).filter(|_| self.for_archive) {
            self.add_voicing(mark);
        } else if let Some(ngram_script) = self.run_script(c) {
            self.end_word(each);
            self.end_number(each);
            if ngram_script != self.ngram_script {
                self.end_run(each);
            }
            self.ngram_script = ngram_script;
            match ngram_script {
                NgramScript::Syllabic if self.for_archive => self.push_syllable(c),
                // A syllable counts as one letter, and folding would decompose it.
                NgramScript::Syllabic => self.run.push(c),
                NgramScript::Ideographic if self.for_archive => self.push_kana(c),
                // Folding would drop it.
                NgramScript::Alphabetic if is_tone_mark(c) => self.run.push(c),
                _ => fold_char(c, |letter| self.run.push(letter)),
            }
            self.run_positions.resize(self.run.len(), self.position..self.position + 1);
        } else if let Some(numbers) = fraction_numbers(c).filter(|_| self.for_archive) {
            self.add_fraction(&numbers, each);
        } else if c.is_alphanumeric() {
            self.end_run(each);
            self.start_word();
            self.shorten_nasal(c);
            fold_char(c, |letter| self.word.push(letter));
            self.lower.extend(c.to_lowercase());
        } else if is_mark(c) {
            self.lower.push(c);
        } else {
            self.end_word(each);
            self.end_run(each);
            self.separator = Some(c);
        }
    }

    /// How the run of a character is split; `None` if it is part of none.
    fn run_script(&self, c: char) -> Option<NgramScript> {
        ngram_script(c).filter(|_| c.is_alphanumeric() || (self.for_archive && is_tone_mark(c)))
    }

    /// Adds a syllable of Korean to the run, or the next part of one.
    fn push_syllable(&mut self, c: char) {
        let Some(whole) = self.run.last().and_then(|letter| COMPOSITION.compose(*letter, c)) else {
            self.run.push(c);
            return;
        };
        if let (Some(letter), Some(range)) = (self.run.last_mut(), self.run_positions.last_mut()) {
            *letter = whole;
            range.end = self.position + 1;
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

    /// Adds the words that `1/2` has for the character `½`.
    fn add_fraction(&mut self, numbers: &str, each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind)) {
        self.end_word(each);
        self.end_run(each);
        self.end_number(each);
        let range = self.position..self.position + 1;
        for number in numbers.split('/').filter(|number| !number.is_empty()) {
            each(Term::Word(number, number), range.clone(), TokenKind::Ordered);
        }
        self.separator = None;
    }

    /// Makes a nasal consonant at the end of the word the sign that is written for it before a letter.
    fn shorten_nasal(&mut self, next: char) {
        if !self.for_archive || !matches!(next, '\u{900}'..='\u{AFF}') {
            return;
        }
        let joined = self.lower.trim_end_matches(['\u{200C}', '\u{200D}']);
        let mut letters = joined.chars();
        let (virama, nasal) = (letters.next_back(), letters.next_back());
        let sign = nasal.zip(virama).and_then(|(nasal, virama)| nasal_sign(nasal, virama, next));
        // The word has no virama.
        if let Some(sign) = sign.filter(|_| self.word.chars().next_back() == nasal) {
            let kept = letters.as_str().len();
            self.lower.truncate(kept);
            self.lower.push(sign);
            self.word.pop();
            self.word.push(sign);
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

    fn end_word(&mut self, each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind)) {
        if self.word.is_empty() {
            self.lower.clear();
            return;
        }
        let range = self.word_start..self.position;
        if self.for_archive {
            self.add_to_number(&range, each);
        }
        each(Term::Word(&self.word, &self.lower), range.clone(), TokenKind::Ordered);
        if !self.for_archive {
            self.cut_to_stem();
            each(Term::Stem(&self.word), range, TokenKind::Extra);
        }
        self.word.clear();
        self.lower.clear();
    }

    /// Adds the word to the number before it, begins a number with it, or neither.
    fn add_to_number(
        &mut self,
        range: &Range<usize>,
        each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind),
    ) {
        let continues = self.number.continues_with(&self.word, range.start, self.separator);
        if !continues {
            self.end_number(each);
        }
        self.number.add(&self.word, range, self.separator);
    }

    /// Ends a number with separators.
    fn end_number(&mut self, each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind)) {
        if let Some(digits) = self.number.digits() {
            each(Term::Word(digits, digits), self.number.range(), TokenKind::Extra);
        }
        self.number.clear();
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

    fn end_run(&mut self, each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind)) {
        if self.run.is_empty() {
            return;
        }
        let letters = self.run.len();
        let length = if self.ngram_script == NgramScript::Alphabetic { 3 } else { 2 };
        let length = length.min(letters);
        for start in 0..=letters - length {
            self.add_ngram(start..start + length, TokenKind::Ordered, each);
        }
        let is_han = |letter: char| char_script(letter) == Script::Han;
        if self.ngram_script == NgramScript::Ideographic && letters > 1 {
            for start in 0..letters {
                if self.run.get(start).copied().is_some_and(is_han) {
                    self.add_ngram(start..start + 1, TokenKind::Extra, each);
                }
            }
        }
        if self.for_archive {
            // No n-gram begins with the last letters.
            for start in letters - length + 1..letters {
                if !self.run.get(start).copied().is_some_and(is_han) {
                    self.add_ngram(start..letters, TokenKind::Extra, each);
                }
            }
        }
        self.run.clear();
        self.run_positions.clear();
    }

    /// Adds letters of the run with these indices as a term.
    fn add_ngram(
        &mut self,
        letters: Range<usize>,
        kind: TokenKind,
        each: &mut impl FnMut(Term<'_>, Range<usize>, TokenKind),
    ) {
        self.ngram.clear();
        self.ngram.extend(self.run.get(letters.clone()).unwrap_or_default());
        each(Term::Ngram(&self.ngram), self.run_range(letters), kind);
    }
}

/// Whether a character is a tone mark of Thai or Lao. Words differ in it alone.
fn is_tone_mark(c: char) -> bool {
    matches!(c, '\u{E48}'..='\u{E4B}' | '\u{EC8}'..='\u{ECB}')
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
        check("תל־אביב׃ ہے۔اور", &["תל", "תל*", "אביב", "אביב*", "ہے", "ہے*", "اور", "اور*"]);
        check("ሰላም፡ለዓለም። լիճ։ձուկ", &["ሰላም", "ሰላም*", "ለዓለም", "ለዓለም*", "լիճ", "լիճ*", "ձուկ", "ձուկ*"]);
        check("ד״ר ד\"ר ג'ין", &["דר", "דר*", "דר", "דר*", "גין", "גין*"]);
        check("", &[]);
        check("…—", &[]);
    }

    #[test]
    fn tokenizer_ranges_are_characters_of_text() {
        let text = "Ça, l’École! 火山爆发 Ｗide";
        let letters: Vec<char> = text.chars().collect();
        let mut found = Vec::new();
        terms_with_ranges([text], |_, range, _| {
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
            terms_with_ranges([text], |term, range, kind| {
                if kind == TokenKind::Ordered {
                    found.push(term.text().to_owned());
                    end = range.end;
                }
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
