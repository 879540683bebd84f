//! Exact word matching, independent of spelling variants.

use super::fold::{fold, is_mark};
use crate::transcript::is_unspaced;
use crate::transcript::script::{Script, char_script};

/// Most different words of a query. Further ones are ignored.
const WORDS_MAX: usize = 50;

/// Words to find, at most 50 different ones. Case, accents, punctuation and Unicode form are ignored.
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
        let mut words: Vec<String> = Vec::new();
        for word in query.split_whitespace().map(fold).filter(|word| !word.is_empty()) {
            if words.len() < WORDS_MAX && !words.contains(&word) {
                words.push(word);
            }
        }
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether the text contains every word; as a whole word in scripts that separate words.
    pub fn is_match(&self, text: &str) -> bool {
        let (folded, words) = (fold(text), self.0.iter().map(String::as_str));
        words.clone().all(|word| folded.contains(word))
            && has_whole_words(text, words.filter(|word| has_ends(word)).collect())
    }
}

/// Whether a word has detectable ends.
///
/// It has none in unspaced scripts, and in Korean, where particles are attached.
fn has_ends(word: &str) -> bool {
    !word.chars().any(|c| is_unspaced(c) || char_script(c) == Script::Hangul)
}

/// Whether the folded words are whole words of the text.
///
/// Examples: "art" in "state-of-the-art", "dont" in "don't".
fn has_whole_words(text: &str, mut missing: Vec<&str>) -> bool {
    let is_between = |c: char| !(c.is_alphanumeric() || is_mark(c)) || is_unspaced(c);
    for piece in text.split_whitespace() {
        if missing.is_empty() {
            return true;
        }
        // Each piece is folded once, however many words are missing.
        let mut remove = |found: String| missing.retain(|word| *word != found);
        remove(fold(piece));
        piece.split(is_between).map(fold).for_each(remove);
    }
    missing.is_empty()
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
        check("art don't 很好 state", "我的iPhone很好, don\u{2019}t: state-of-the-art", true);
        check("art warn", "The art of warning", false);
        check("אביב", "תל־אביב", true);
    }

    #[test]
    fn word_query_keeps_a_bounded_number_of_different_words() {
        let words = |query: &str| WordQuery::new(query).unwrap().0;
        assert_eq!(words(&"the Café THE cafe ".repeat(50)), ["the", "cafe"]);
        let many: Vec<String> = (0..200).map(|n| format!("w{n}")).collect();
        assert_eq!(words(&many.join(" ")), many[..WORDS_MAX]);
    }
}
