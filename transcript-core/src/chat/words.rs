//! Whether words are in a text, however they are written.

use unicode_script::{Script, UnicodeScript as _};

use super::fold::{fold, is_mark};
use crate::transcript::is_unspaced;

/// Words that are looked for. Case, accents, punctuation and Unicode form do not count.
///
/// ```
/// use transcript_core::chat::Words;
///
/// let words = Words::of("cafe  PARIS").ok_or("no words")?;
/// assert!(words.are_in("In Paris, every Café is open."));
/// assert!(!words.are_in("Parisian cafés are open."));
/// assert!(Words::of(" … ").is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(Vec<String>);

impl Words {
    /// The words of a query, in any order; none where there is no letter or digit in it.
    pub fn of(query: &str) -> Option<Self> {
        let words: Vec<String> = query.split_whitespace().map(fold).filter(|word| !word.is_empty()).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether every one of them is in the text, as a whole word where its script has words.
    pub fn are_in(&self, text: &str) -> bool {
        let folded = fold(text);
        self.0
            .iter()
            .all(|word| folded.contains(word.as_str()) && (!has_ends(word) || is_whole_in(text, word)))
    }
}

/// Whether a word's ends can be told: not in scripts without spaces, nor in Korean, whose particles are attached.
fn has_ends(word: &str) -> bool {
    !word.chars().any(|c| is_unspaced(c) || c.script() == Script::Hangul)
}

/// Whether the folded word is one of the text's, such as "art" of "state-of-the-art", or "dont" of "don't".
fn is_whole_in(text: &str, word: &str) -> bool {
    let is_between = |c: char| !(c.is_alphanumeric() || is_mark(c)) || is_unspaced(c);
    text.split_whitespace()
        .any(|piece| fold(piece) == word || piece.split(is_between).any(|part| fold(part) == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, text: &str, expect: bool) {
        let words = Words::of(query).unwrap();
        assert_eq!(words.are_in(text), expect, "{query:?} in {text:?}");
    }

    #[test]
    fn a_word_is_found_as_a_whole_wherever_it_stands() {
        check("non", "no, non", true);
        check("101", "10, 101", true);
        check("art", "The party of warning, state-of-the-art", true);
        check("together", "I want to get her home", false);
        check("кот", "который был дома", false);
        check("кот", "как от дома", false);
        check("кот", "Чёрный Кот.", true);
        check("don't", "Don\u{2019}t go", true);
        check("iphone", "我的iPhone很好", true);
        check("很好", "我的iPhone很好", true);
        check("학교", "학교에서 봤다", true);
        check("e", &format!("{} e", "here ".repeat(100)), true);
    }
}
