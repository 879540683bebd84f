//! Tokens of a text, as far as its numbers are concerned.

use super::{
    super::fold::{fold_char, is_mark},
    number_words::is_ideograph,
    numbers::ascii_digit,
    sanitize::is_colon,
};
use crate::transcript::is_unspaced;

/// Endings of a number that do not change its value: of ordinals, decades, times and units.
const ENDINGS: [&str; 22] = [
    "st", "nd", "rd", "th", "s", "er", "ere", "re", "e", "eme", "ieme", "ste", "te", "de", "am", "pm", "h",
    "mm", "cm", "km", "mg", "kg",
];

/// A token of a text, as far as numbers are concerned.
pub(super) enum Token {
    /// A folded word without digits.
    Word(String),
    /// Digits in their canonical form.
    Digits(String),
    /// A folded word with letters and digits.
    Mixed(String),
    /// A run of Chinese numerals.
    Ideographs(String),
    /// A sign between the numbers of a clock time.
    ClockSign,
    Comma,
    /// Other punctuation than a hyphen, or text of an unspaced script.
    Break,
}

/// Calls `each` for every token of a text.
pub(super) fn tokens(text: &str, mut each: impl FnMut(Token)) {
    let letters: Vec<char> = text.chars().collect();
    let (mut at, mut word, mut run) = (0, String::new(), String::new());
    while let Some(&c) = letters.get(at) {
        at += 1;
        if !run.is_empty() && !is_ideograph(c) {
            each(Token::Ideographs(std::mem::take(&mut run)));
        }
        if let Some(digit) = ascii_digit(c) {
            word.push(digit);
        } else if is_ideograph(c) || is_unspaced(c) {
            end_word(&mut word, &mut each);
            match () {
                () if is_ideograph(c) => run.push(c),
                () if is_clock_sign(&letters, at) => each(Token::ClockSign),
                () => each(Token::Break),
            }
        } else if c.is_numeric() {
            // A unit such as m²; other signs, such as ½, are compared as they are.
            if !(matches!(c, '²' | '³') && word.ends_with(char::is_alphabetic)) {
                word.push(c);
            }
        } else if c.is_alphanumeric() {
            fold_char(c, |letter| word.push(letter));
        } else if is_separator(c)
            && word.ends_with(|c: char| c.is_ascii_digit())
            && follows_digit(&letters, at)
        {
            word.push(if matches!(c, ',' | '.' | '٫' | '٬') { c } else { '\'' });
        } else if !is_mark(c) {
            end_word(&mut word, &mut each);
            match c {
                c if c.is_whitespace() || matches!(c, '-' | '‐' | '‑' | '\'' | '’') => {}
                ',' => each(Token::Comma),
                _ if is_clock_sign(&letters, at) => each(Token::ClockSign),
                _ => each(Token::Break),
            }
        }
    }
    if !run.is_empty() {
        each(Token::Ideographs(run));
    }
    end_word(&mut word, &mut each);
}

fn follows_digit(letters: &[char], at: usize) -> bool {
    letters.get(at).is_some_and(|c| ascii_digit(*c).is_some())
}

/// Whether the character before `end` is a Chinese sign of a clock time, or a colon between digits.
fn is_clock_sign(letters: &[char], end: usize) -> bool {
    let Some(at) = end.checked_sub(1) else { return false };
    match letters.get(at) {
        Some('点' | '點' | '时' | '時' | '分') => true,
        Some(c) if is_colon(*c) => {
            at.checked_sub(1).is_some_and(|before| follows_digit(letters, before))
                && follows_digit(letters, end)
        }
        _ => false,
    }
}

/// Whether a character separates thousands or decimals.
fn is_separator(c: char) -> bool {
    matches!(c, ',' | '.' | '\'' | '’' | '٫' | '٬')
}

fn end_word(word: &mut String, each: &mut impl FnMut(Token)) {
    let word = std::mem::take(word);
    let digits = word.trim_end_matches(char::is_alphabetic);
    let (ending, is_mixed) =
        (word.get(digits.len()..).unwrap_or_default(), digits.contains(char::is_alphabetic));
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || is_separator(c));
    match () {
        () if word.is_empty() => {}
        () if !word.contains(char::is_numeric) => each(Token::Word(word)),
        () if is_plain && !is_mixed && (ending.is_empty() || ENDINGS.contains(&ending)) => {
            each(Token::Digits(canonical(digits)));
        }
        () => each(Token::Mixed(word)),
    }
}

/// A number without separators of thousands, with a point before decimals and without zeros after them.
fn canonical(digits: &str) -> String {
    let parts: Vec<&str> = digits.split(is_separator).collect();
    let are_thousands = parts.iter().skip(1).all(|part| part.len() == 3)
        && parts.first().is_some_and(|part| (1..=3).contains(&part.len()));
    if parts.len() == 1 || are_thousands {
        return parts.concat();
    }
    let (Some((decimals, whole)), separators) = (parts.split_last(), digits.matches(is_separator)) else {
        return digits.to_owned();
    };
    let mut kinds: Vec<&str> = separators.collect();
    let last = kinds.pop();
    // Several equal separators that are no thousands: a date or a version.
    if kinds.iter().any(|kind| Some(*kind) == last) {
        return parts.join(".");
    }
    match decimals.trim_end_matches('0') {
        "" => whole.concat(),
        decimals => format!("{}.{decimals}", whole.concat()),
    }
}
