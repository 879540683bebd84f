//! Classifies the quotations of a sentence.

use super::{
    super::fold::fold, AnswerVerifier, normalize::is_single_mark, support::ContentTerms, writer::QuotedSpan,
};
use crate::transcript::is_unspaced;

/// From this many characters on, a quotation must match the transcript or its sentence is removed.
const QUOTED_CHARS_MIN: usize = 12;
/// The same for scripts in which a character is a word or a syllable.
const QUOTED_WIDE_MIN: usize = 5;

impl AnswerVerifier {
    /// Classifies a quotation.
    pub(super) fn classify_quote(&mut self, quoted: &str, numbers: &[u32]) -> QuotedSpan {
        let wanted = fold(quoted);
        if wanted.is_empty() {
            return QuotedSpan::Unquoted(String::new());
        }
        let words = || quoted.trim_matches(is_single_mark).to_owned();
        let is_wide = quoted.chars().filter(|c| is_unspaced(*c)).count() >= QUOTED_WIDE_MIN;
        if !is_wide && quoted.chars().count() < QUOTED_CHARS_MIN {
            // A single emphasised word; it keeps its marks where the passage contains it.
            let exact = numbers.iter().find_map(|number| self.source.find_exact(*number, &wanted));
            return exact.map_or_else(|| QuotedSpan::Unquoted(words()), QuotedSpan::Fragment);
        }
        let near = numbers.iter().find_map(|number| self.source.find_near(*number, &wanted));
        let is_from_question = self.question.contains(&wanted);
        if !ContentTerms::is_informative(quoted) {
            // "And then it was" occurs everywhere and supports nothing.
            let is_spoken =
                near.is_some() || is_from_question || self.source.find_anywhere(&wanted).is_some();
            return match near {
                Some(spoken) => QuotedSpan::Fragment(spoken),
                None if is_spoken => QuotedSpan::Unquoted(words()),
                None => QuotedSpan::NotFound,
            };
        }
        if let Some(spoken) = near.or_else(|| self.source.find_anywhere(&wanted)) {
            return QuotedSpan::Verified(spoken);
        }
        if is_from_question {
            // The words are the question's, so this is no quotation.
            return QuotedSpan::Unquoted(words());
        }
        match numbers.iter().find_map(|number| self.source.find_similar(*number, quoted)) {
            Some(spoken) => QuotedSpan::Verified(spoken),
            None => QuotedSpan::NotFound,
        }
    }
}
