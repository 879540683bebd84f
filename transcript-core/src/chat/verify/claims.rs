//! What a sentence claims beyond its words: its numbers, and what it denies.
//!
//! Both must agree with the cited passages. A sentence may repeat the numbers of the question.

use super::{amounts::Amounts, negation::Polarity, number_words::NumberWords, support::ExtraContext};
use crate::transcript::LanguageTag;

/// Maximum of digits of the number of a list item.
const LIST_DIGITS_MAX: usize = 2;

/// Compares claims about one transcript.
#[derive(Clone, Debug)]
pub(super) struct ClaimChecker {
    language: LanguageTag,
    number_words: NumberWords,
    /// Numbers of the question.
    question: Amounts,
}

impl ClaimChecker {
    /// Creates the checker of answers to a question about a transcript in this language.
    pub(super) fn new(question: &str, language: &LanguageTag) -> Self {
        let number_words = NumberWords::new(language.primary());
        let question = Amounts::new(question, &number_words);
        Self { language: language.clone(), number_words, question }
    }

    /// Whether the claims of a sentence agree with the text of the passages that it cites.
    pub(super) fn agrees(&self, sentence: &str, spoken: &str, extra: &ExtraContext) -> bool {
        let amounts = |text: &str| Amounts::new(text, &self.number_words);
        let polarity = |text: &str| Polarity::new(text, &self.language);
        amounts(sentence).are_in(&[&self.question, &amounts(spoken)])
            && !polarity(sentence).contradicts(&polarity(spoken), |term| extra.is_asked(term))
    }
}

/// A line without the number of a list item before it: `1. `, `12) `.
pub(super) fn without_list_number(sentence: &str) -> &str {
    let bare = sentence.trim_start();
    let rest = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_item = (1..=LIST_DIGITS_MAX).contains(&(bare.len() - rest.len()));
    let after = rest
        .strip_prefix(['.', ')'])
        .filter(|after| after.is_empty() || after.starts_with(char::is_whitespace));
    after.filter(|_| is_item).unwrap_or(sentence)
}
