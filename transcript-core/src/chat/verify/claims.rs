//! What a sentence claims beyond its words: its numbers, and what it denies.
//!
//! Both must agree with the cited passages. A sentence may repeat the numbers of the question. Letters of another
//! script must not hide either.

use std::cell::OnceCell;

use super::{
    amounts::Amounts,
    chinese_aspect,
    exceptions::{self, ExceptionVerdict},
    negation::Polarity,
    number_words::NumberWords,
    support::ExtraContext,
    times,
    transcript_index::SpokenContext,
};
use crate::transcript::{
    LanguageTag,
    script::{Script, char_script},
};

/// Maximum of digits of the number of a list item.
const LIST_DIGITS_MAX: usize = 2;
/// Cyrillic, Greek and Armenian letters that look like Latin ones.
const LATIN_LIKE: &str = "аеіјорсухѕһԁԛԝАВЕЗІЈКМНОРЅТСУХοαινρυκτχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսհ";
/// Those of formulas: hν, ρgh. Longer words of them are not.
const SYMBOLS: &str = "ακνρχ";
const SYMBOL_LETTERS_MAX: usize = 3;
/// Latin letters that look like Cyrillic ones.
const CYRILLIC_LIKE: &str = "aceijopsxyABCEHIJKMOPSTXY";

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
        !has_disguised_word(sentence, spoken)
            && self.amounts(sentence).are_in(&[&self.question, &self.amounts(spoken)])
            && !chinese_aspect::contradicts(sentence, spoken)
            && match exceptions::compare(sentence, spoken, self.language.primary()) {
                Some(verdict) => verdict == ExceptionVerdict::Agrees,
                None => !polarity(sentence).contradicts(&polarity(spoken), |term| extra.is_asked(term)),
            }
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

    /// Whether "am" and "pm" of the times of a sentence are as in the cited passages.
    pub(super) fn has_halves_of_day(
        &self,
        sentence: &str,
        spoken: &SpokenContext,
        amounts: &OnceCell<Amounts>,
    ) -> bool {
        self.amounts(sentence).has_halves_of(amounts.get_or_init(|| self.amounts(&spoken.own)))
    }

    fn amounts(&self, text: &str) -> Amounts {
        Amounts::new(text, &self.number_words)
    }
}

/// Whether letters of a word pass for those of another script, and the cited passages do not have the word.
///
/// Symbols of formulas and Russian endings of spoken words are no such letters.
fn has_disguised_word(sentence: &str, spoken: &str) -> bool {
    let is_latin = |c: &char| char_script(*c) == Script::Latin;
    let letters = || sentence.chars().filter(|c| c.is_alphabetic());
    let latin_count = letters().filter(is_latin).count();
    let is_latin_text = latin_count * 2 > letters().count();
    let is_disguised = |word: &str| {
        let (latin, foreign): (Vec<char>, Vec<char>) =
            word.chars().filter(|c| c.is_alphabetic()).partition(is_latin);
        let are_all = |letters: &[char], alike: &str| letters.iter().all(|c| alike.contains(*c));
        let is_mixed = !latin.is_empty() && !foreign.is_empty();
        // A single letter, as in "α rays", is a symbol.
        let may_be_latin = is_mixed || (is_latin_text && foreign.len() > 1);
        let is_symbol = latin.len() + foreign.len() <= SYMBOL_LETTERS_MAX && are_all(&foreign, SYMBOLS);
        let is_cyrillic = foreign.iter().any(|c| char_script(*c) == Script::Cyrillic);
        // A spoken word with an ending: "SMSка".
        let stem: String = word.chars().take_while(is_latin).collect();
        let is_inflected = !is_latin_text && stem.chars().nth(1).is_some() && spoken.contains(&stem);
        (may_be_latin && are_all(&foreign, LATIN_LIKE) && !is_symbol && !is_inflected)
            || (is_mixed && is_cyrillic && are_all(&latin, CYRILLIC_LIKE) && !is_inflected)
    };
    let mut words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_ascii());
    latin_count > 0 && words.any(|word| is_disguised(word) && !spoken.contains(word))
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
