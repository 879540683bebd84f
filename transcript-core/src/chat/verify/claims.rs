//! What a sentence claims beyond its words: its numbers, and what it denies.
//!
//! Both must agree with the cited passages. A sentence may repeat the numbers of the question.

use std::cell::OnceCell;

use super::{
    amounts::Amounts, negation::Polarity, number_words::NumberWords, support::ExtraContext, times,
    transcript_index::SpokenContext,
};
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
        let polarity = |text: &str| Polarity::new(text, &self.language);
        self.amounts(sentence).are_in(&[&self.question, &self.amounts(spoken)])
            && !polarity(sentence).contradicts(&polarity(spoken), |term| extra.is_asked(term))
    }

    /// Whether the cited passages contain a time as it is written, or they or the question have its numbers.
    ///
    /// `amounts` keeps the numbers of the passages for the next time.
    pub(super) fn has_time(&self, time: &str, spoken: &SpokenContext, amounts: &OnceCell<Amounts>) -> bool {
        let amounts = || amounts.get_or_init(|| self.amounts(&spoken.own));
        times::is_written_in(time, spoken)
            || times::has_numbers(time, &[&self.question, amounts()], &self.number_words)
    }

    /// Whether the cited passages have a time, as with [`has_time`](Self::has_time) without the question.
    pub(super) fn has_spoken_time(
        &self,
        time: &str,
        spoken: &SpokenContext,
        amounts: &OnceCell<Amounts>,
    ) -> bool {
        let amounts = || amounts.get_or_init(|| self.amounts(&spoken.own));
        times::is_written_in(time, spoken) || times::has_numbers(time, &[amounts()], &self.number_words)
    }

    fn amounts(&self, text: &str) -> Amounts {
        Amounts::new(text, &self.number_words)
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
