//! A number as a text writes it.

use super::{super::number_words::is_ideograph, Piece};

/// A number of a text, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::chat) struct WrittenNumber {
    /// Its value in digits.
    pub(in crate::chat) form: String,
    /// Its number words, and digits before them; none for digits only.
    pub(super) words: Vec<String>,
}

impl WrittenNumber {
    pub(super) fn new(pieces: &[Piece]) -> Self {
        Self {
            form: pieces.iter().map(|piece| piece.form.as_str()).collect(),
            words: pieces.iter().flat_map(|piece| piece.words.iter().cloned()).collect(),
        }
    }

    /// Whether a folded word or n-gram of the same text is part of the number.
    pub(in crate::chat) fn has(&self, word: &str) -> bool {
        if self.words.is_empty() {
            // An ordinal or a unit: `19th`, `5kg`.
            let digits = word.trim_end_matches(char::is_alphabetic);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            return word == self.form || (is_number && self.form.contains(digits));
        }
        let is_part = |known: &String| known.contains(word) && known.chars().all(is_ideograph);
        self.words.iter().any(|known| known == word || is_part(known))
    }
}
