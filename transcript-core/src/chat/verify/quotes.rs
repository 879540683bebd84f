//! Classifies the quotations of a sentence.

use super::{
    super::fold::fold, AnswerVerifier, normalize::is_single_mark, quoted_negation,
    sentence_parser::SentencePart, support::ContentTerms, transcript_index::SpokenText, writer::QuotedSpan,
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

    /// Moves each quotation that a negation outside of it reverses to a place without one; false if there is none.
    ///
    /// It stays if the model's words around it deny something.
    pub(super) fn affirm_quotes(
        &mut self,
        parts: &[SentencePart],
        quotes: &mut [Option<QuotedSpan>],
    ) -> bool {
        let denies =
            |part: &SentencePart| matches!(part, SentencePart::Text(text) if quoted_negation::denies(text));
        let is_negated = |spoken: &SpokenText| {
            spoken.is_negated
                && (spoken.words.contains(is_unspaced) || spoken.words.contains(char::is_whitespace))
        };
        let is_reversed =
            |quote: &QuotedSpan| matches!(quote, QuotedSpan::Verified(spoken) if is_negated(spoken));
        if !quotes.iter().flatten().any(is_reversed) || parts.iter().any(denies) {
            return true;
        }
        quotes.iter_mut().flatten().all(|quote| match quote {
            QuotedSpan::Verified(spoken) if is_negated(spoken) => {
                let affirmed = self.source.find_affirmed(spoken);
                affirmed.map(|affirmed| *spoken = affirmed).is_some()
            }
            _ => true,
        })
    }
}
