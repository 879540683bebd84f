//! Exact word matching, independent of spelling variants.

use super::fold::{fold, is_mark};
use crate::transcript::is_unspaced;
use crate::transcript::script::{Script, char_script};

/// Words to find. Case, accents, punctuation and Unicode form are ignored.
///
/// ```
/// use transcript_core::chat::WordQuery;
///
/// let words = WordQuery::new("cafe  PARIS").ok_or("no words")?;
/// assert!(words.is_match("In Paris, every Café is open."));
/// assert!(!words.is_match("Parisian cafés are open."));
/// assert!(WordQuery::new(" … ").is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordQuery(Vec<String>);

impl WordQuery {
    /// Parses the words of a query, in any order; `None` if it has no letter or digit.
    pub fn new(query: &str) -> Option<Self> {
        let words: Vec<String> = query.split_whitespace().map(fold).filter(|word| !word.is_empty()).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether the text contains every word; as a whole word in scripts that separate words.
    pub fn is_match(&self, text: &str) -> bool {
        let folded = fold(text);
        self.0
            .iter()
            .all(|word| folded.contains(word.as_str()) && (!has_ends(word) || is_whole_in(text, word)))
    }
}

/// Whether a word has detectable ends.
///
/// It has none in unspaced scripts, and in Korean, where particles are attached.
fn has_ends(word: &str) -> bool {
    !word.chars().any(|c| is_unspaced(c) || char_script(c) == Script::Hangul)
}

/// Whether the folded word is a whole word of the text.
///
/// Examples: "art" in "state-of-the-art", "dont" in "don't".
fn is_whole_in(text: &str, word: &str) -> bool {
    let is_between = |c: char| !(c.is_alphanumeric() || is_mark(c)) || is_unspaced(c);
    text.split_whitespace()
        .any(|piece| fold(piece) == word || piece.split(is_between).any(|part| fold(part) == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, text: &str, expect: bool) {
        let words = WordQuery::new(query).unwrap();
        assert_eq!(words.is_match(text), expect, "{query:?} in {text:?}");
    }

    #[test]
    fn word_query_matches_whole_words() {
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
