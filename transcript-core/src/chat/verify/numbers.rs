//! Parses passage numbers in the forms that models write.

use super::sanitize::is_colon;

/// Maximum of passages in one citation.
pub(super) const NUMBERS_MAX: usize = 12;
/// Maximum of digits in a passage number.
pub(super) const DIGITS_MAX: usize = 18;

/// Parses the numbers between the brackets of a citation; `None` if it is no citation.
///
/// In square brackets the letter is optional.
pub(super) fn numbers(inside: &str, needs_letter: bool) -> Option<Vec<u32>> {
    let mut found: Vec<u32> = Vec::new();
    for token in inside.split([',', ';', ' ', '&', '、', '，']).filter(|token| !token.is_empty()) {
        let lower = token.to_lowercase();
        if is_named_passage(&lower) || matches!(lower.as_str(), "and" | "s" | "source" | "see") {
            continue;
        }
        let (first, last) = match lower.split_once(['-', '–', '—', '~']) {
            Some((first, last)) => (number(first, needs_letter)?, number(last, false)?),
            None => {
                let only = number(&lower, needs_letter)?;
                (only, only)
            }
        };
        if last.saturating_sub(first) as usize >= NUMBERS_MAX {
            found.extend([first, last]);
        } else {
            found.extend(first..=last.max(first));
        }
    }
    found.truncate(NUMBERS_MAX);
    (!found.is_empty()).then_some(found)
}

/// Parses a passage number with its letter or footnote mark.
pub(super) fn number(token: &str, needs_letter: bool) -> Option<u32> {
    let bare = token.trim_start_matches(['s', 'p', '^', '#', '§', '.']);
    let digits: String = bare.chars().map(|c| ascii_digit(c).unwrap_or(c)).collect();
    let is_number =
        (1..=DIGITS_MAX).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_letter = bare.len() < token.len();
    let is_one = is_number && (has_letter || !needs_letter);
    // An overlong number counts as one that the model was not given.
    digits.parse::<u64>().ok().filter(|_| is_one).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// Whether a word announces a passage number.
pub(super) fn is_named_passage(word: &str) -> bool {
    ["passage", "passages", "segment", "segments"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Converts a digit of the scripts in which models write numbers to ASCII.
pub(super) fn ascii_digit(c: char) -> Option<char> {
    const ZEROS: [char; 8] = ['0', '０', '٠', '۰', '०', '০', '๐', '𝟎'];
    let value = |zero: char| u32::from(c).checked_sub(u32::from(zero)).filter(|value| *value < 10);
    char::from_digit(ZEROS.into_iter().find_map(value)?, 10)
}

/// Whether bracketed text resembles a passage number without being one: `S2b`, `s-4`, `s:x1`.
pub(super) fn is_like_number(inside: &str) -> bool {
    let mut letters = inside.trim().chars();
    let begins = letters.next().is_some_and(is_letter_s);
    let rest = letters.as_str().trim_start();
    let marks = rest.trim_start_matches(['-', '–', '—', '.', '_', ':', '/', '#', '~', '^', '*']);
    begins && marks.starts_with(char::is_numeric) && !marks.contains(char::is_whitespace)
}

/// Whether the text behind an unclosed bracket is the start of a citation: `s1`, `s4, s1`, or nothing.
pub(super) fn is_cut_citation(inside: &str) -> bool {
    inside.chars().all(|c| is_letter_s(c) || ascii_digit(c).is_some() || matches!(c, ',' | ' '))
}

/// Whether a text consists of one or more times.
pub(super) fn is_time(text: &str) -> bool {
    let is_part =
        |c: char| c.is_numeric() || is_colon(c) || matches!(c, '.' | ',' | '-' | '–' | '—' | ' ' | '~');
    text.contains(is_colon) && text.chars().any(char::is_numeric) && text.chars().all(is_part)
}

/// Whether a character is the letter of a passage number, or looks like it.
pub(super) fn is_letter_s(c: char) -> bool {
    matches!(c, 's' | 'S' | 'ｓ' | 'Ｓ' | 'ѕ' | 'Ѕ' | 'ꜱ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_cut_citation_is_recognized() {
        for (inside, expect) in [
            ("", true),
            ("s1", true),
            ("s4, s1", true),
            ("12", true),
            ("s1 b", false),
            ("the old one", false),
            ("s1.", false),
        ] {
            assert_eq!(is_cut_citation(inside), expect, "{inside}");
        }
    }
}
