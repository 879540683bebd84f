//! How many tokens a text is to a model, as an estimate that rather counts too many.
//!
//! Every model cuts text in its own way. The figures are what byte-pair vocabularies of the last years need for
//! ordinary text, and a fifth more.

/// Thousandths of a token for a character.
fn thousandths(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' => 300,
        '\0'..='\u{7f}' => 500,
        '\u{80}'..='\u{7ff}' => 700,
        _ => 1_200,
    }
}

/// What a passage's number and its line cost.
pub(super) const OF_A_NUMBER: u64 = 6;

/// What a message costs besides its text.
pub(super) const OF_A_MESSAGE: u64 = 8;

/// About how many tokens a text is.
pub(super) fn of(text: &str) -> u64 {
    text.chars().map(thousandths).fold(0, u64::saturating_add).div_ceil(1_000)
}

/// The longest beginning of a text that is at most so many tokens.
pub(super) fn fitting(text: &str, tokens: u64) -> &str {
    let mut left = tokens.saturating_mul(1_000);
    for (place, c) in text.char_indices() {
        match left.checked_sub(thousandths(c)) {
            Some(rest) => left = rest,
            None => return text.get(..place).unwrap_or_default(),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_counted_generously() {
        // A common vocabulary cuts this sentence into ten tokens.
        assert_eq!(of("The quick brown fox jumps over the lazy dog."), 14);
        assert!(of("敏捷的棕色狐狸跳过了懒狗") >= 12);
        assert_eq!(of(""), 0);
        assert_eq!(fitting("abcdef", 1), "abc");
        assert_eq!(fitting("日本語", 2), "日");
        assert_eq!(fitting("abc", 9), "abc");
    }
}
