//! Whether words are in a text, however they are written.

use super::fold::{find, fold};

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
        self.0.iter().all(|word| find(text, &folded, word).is_some_and(|place| is_whole(text, &place, word)))
    }
}

/// Whether the place holds the word and no more.
fn is_whole(text: &str, place: &std::ops::Range<usize>, word: &str) -> bool {
    text.get(place.clone()).is_some_and(|found| {
        let found = fold(found);
        found == *word || !word.is_ascii()
    })
}
