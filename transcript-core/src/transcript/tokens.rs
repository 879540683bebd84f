//! Token estimates that rather count too many.
//!
//! Each model has its own tokenizer. The figures are what byte-pair vocabularies of the last years need for ordinary
//! text, plus a fifth.

/// Thousandths of a token for a character.
fn thousandths(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' => 300,
        '\0'..='\u{7f}' => 500,
        '\u{80}'..='\u{7ff}' => 700,
        _ => 1_200,
    }
}

/// Tokens of a passage's number and line break.
#[cfg(feature = "chat")]
pub(crate) const PASSAGE_OVERHEAD: u64 = 6;

/// Tokens of a message besides its text.
#[cfg(feature = "chat")]
pub(crate) const MESSAGE_OVERHEAD: u64 = 8;

/// Estimates the tokens of a text.
pub(crate) fn estimate(text: &str) -> u64 {
    text.chars().map(thousandths).fold(0, u64::saturating_add).div_ceil(1_000)
}

/// Returns the longest prefix of a text with at most this many tokens.
#[cfg(feature = "chat")]
pub(crate) fn truncate(text: &str, tokens: u64) -> &str {
    let mut left = tokens.saturating_mul(1_000);
    for (index, c) in text.char_indices() {
        match left.checked_sub(thousandths(c)) {
            Some(rest) => left = rest,
            None => return text.get(..index).unwrap_or_default(),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_ordinary_text_is_overestimated() {
        // A common vocabulary splits this sentence into ten tokens.
        assert_eq!(estimate("The quick brown fox jumps over the lazy dog."), 14);
        assert!(estimate("敏捷的棕色狐狸跳过了懒狗") >= 12);
        assert_eq!(estimate(""), 0);
    }

    #[cfg(feature = "chat")]
    #[test]
    fn tokens_truncated_text_fits() {
        assert_eq!(truncate("abcdef", 1), "abc");
        assert_eq!(truncate("日本語", 2), "日");
        assert_eq!(truncate("abc", 9), "abc");
    }
}
