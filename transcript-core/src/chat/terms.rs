//! What a text is searched by: words and their beginnings, and runs of letters where no spaces are written.
//!
//! A word counts as it is and by its first letters, which holds its inflected forms together in most languages
//! that write words apart, without a dictionary of each. Scripts without spaces, and Korean, whose words carry
//! their grammar with them, are cut into overlapping runs of two or three letters.

use unicode_script::{Script, UnicodeScript};

use super::fold::{fold_char, is_mark};
use crate::transcript::is_unspaced;

/// A word's first letters stand for its inflected forms.
const STEM_LETTERS: usize = 5;

/// One thing to search by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term<'a> {
    /// A whole word, folded.
    Word(&'a str),
    /// The beginning of the word before it, with an asterisk.
    Stem(&'a str),
    /// A run of letters of a script without spaces.
    Gram(&'a str),
}

impl<'a> Term<'a> {
    /// Its text: no two kinds share one by chance that would matter.
    pub(super) fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Stem(text) | Self::Gram(text) => text,
        }
    }
}

/// Hands over a text's terms, in order.
pub(super) fn terms(text: &str, mut each: impl FnMut(Term<'_>)) {
    let mut cutter = Cutter::default();
    for c in text.chars() {
        cutter.take(c, &mut each);
    }
    cutter.end_word(&mut each);
    cutter.end_run(&mut each);
}

/// How a script without spaces is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cut {
    /// Chinese and Japanese: pairs, and Chinese characters by themselves.
    #[default]
    Ideographic,
    /// Korean: pairs of syllables.
    Syllabic,
    /// Thai, Lao, Khmer, Burmese, Tibetan: runs of three letters.
    Alphabetic,
}

#[derive(Debug, Default)]
struct Cutter {
    word: String,
    run: Vec<char>,
    cut: Cut,
    gram: String,
}

impl Cutter {
    fn take(&mut self, c: char, each: &mut impl FnMut(Term<'_>)) {
        if c.is_ascii_alphanumeric() {
            self.end_run(each);
            self.word.push(c.to_ascii_lowercase());
        } else if c.is_ascii() {
            self.end_word(each);
            self.end_run(each);
        } else if let Some(cut) = cut(c).filter(|_| c.is_alphanumeric()) {
            self.end_word(each);
            if cut != self.cut {
                self.end_run(each);
            }
            self.cut = cut;
            match cut {
                // A syllable is one letter here, which folding would take apart.
                Cut::Syllabic => self.run.push(c),
                _ => fold_char(c, |letter| self.run.push(letter)),
            }
        } else if c.is_alphanumeric() {
            self.end_run(each);
            fold_char(c, |letter| self.word.push(letter));
        } else if !is_mark(c) {
            self.end_word(each);
            self.end_run(each);
        }
    }

    fn end_word(&mut self, each: &mut impl FnMut(Term<'_>)) {
        if self.word.is_empty() {
            return;
        }
        each(Term::Word(&self.word));
        let letters = self.word.chars().count();
        if letters > STEM_LETTERS {
            let end = self.word.char_indices().nth(STEM_LETTERS).map_or(self.word.len(), |(place, _)| place);
            self.word.truncate(end);
        } else if letters > 3 && self.word.ends_with('s') {
            self.word.pop();
        }
        self.word.push('*');
        each(Term::Stem(&self.word));
        self.word.clear();
    }

    fn end_run(&mut self, each: &mut impl FnMut(Term<'_>)) {
        if self.run.is_empty() {
            return;
        }
        let length = if self.cut == Cut::Alphabetic { 3 } else { 2 };
        for letters in self.run.windows(length.min(self.run.len())) {
            self.gram.clear();
            self.gram.extend(letters);
            each(Term::Gram(&self.gram));
        }
        if self.cut == Cut::Ideographic && self.run.len() > 1 {
            for letter in self.run.iter().filter(|letter| letter.script() == Script::Han) {
                self.gram.clear();
                self.gram.push(*letter);
                each(Term::Gram(&self.gram));
            }
        }
        self.run.clear();
    }
}

/// How the script of a letter is cut; none where words are written apart.
fn cut(c: char) -> Option<Cut> {
    match c.script() {
        Script::Hangul => Some(Cut::Syllabic),
        Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar | Script::Tibetan => {
            Some(Cut::Alphabetic)
        }
        _ if is_unspaced(c) => Some(Cut::Ideographic),
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
    fn words_have_their_beginnings() {
        check("The Investments, cats.", &["the", "the*", "investments", "inves*", "cats", "cat*"]);
        check("l’école 3.5", &["l", "l*", "ecole", "ecole*", "3", "3*", "5", "5*"]);
        check("e\u{301}cole", &["ecole", "ecole*"]);
        check("Россию", &["россию", "росси*"]);
        check("", &[]);
        check("…—", &[]);
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_runs() {
        check("火山爆发", &["火山", "山爆", "爆发", "火", "山", "爆", "发"]);
        check("火", &["火"]);
        check("火山が", &["火山", "山か", "火", "山"]);
        check("서울에서", &["서울", "울에", "에서"]);
        check("ภูเขาไฟ", &["ภูเ", "ูเข", "เขา", "ขาไ", "าไฟ"]);
        check("AI革命", &["ai", "ai*", "革命", "革", "命"]);
    }

    proptest! {
        #[test]
        fn any_text_has_terms_of_bounded_number(text in "\\PC{0,80}") {
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
