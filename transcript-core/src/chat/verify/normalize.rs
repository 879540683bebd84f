//! Normalizes a model's sentence.
//!
//! Entities are decoded, tags and invisible characters are dropped, and quotation marks become a few common ones.

use std::collections::HashSet;

use super::{
    super::{
        fold::{HEBREW_PREFIXES, is_mark},
        question::strip_invisible,
    },
    quotation_marks::is_quotation_mark,
    sanitize::remove_tags,
};
use crate::transcript::is_unspaced;
use crate::transcript::script::{Script, char_script};

/// Maximum of rounds in which nested entities are decoded.
const DECODE_ROUNDS_MAX: usize = 8;
/// Maximum of Hebrew prefixes before a word.
const HEBREW_PREFIX_MAX: usize = 3;

/// Whether a character is in the private-use range of the sanitizer's placeholders.
pub(super) fn is_private(c: char) -> bool {
    ('\u{E000}'..='\u{F8FF}').contains(&c)
}

/// Maps a quotation mark to the common one with the same meaning; returns other characters unchanged.
pub(super) fn common_mark(c: char) -> char {
    match c {
        '＂' | '″' | '❝' | '❞' | '〝' | '〞' | '〟' | '‟' | '‶' | '‷' | '❠' | 'ʺ' | 'ˮ' | '˝' | '⹂' => {
            '"'
        }
        '🙶' | '🙷' | '🙸' | '⸂'..='⸅' | '⸉' | '⸊' | '⸌' | '⸍' | '⸜' | '⸝' | '⸠' | '⸡' => {
            '"'
        }
        '❛' | '❜' | '‛' | '＇' | '´' | '′' | '‵' | 'ʹ' | 'ʼ' | 'ʻ' | 'ʽ' | '׳' => '\'',
        '❟' => '‚',
        '﹁' | '｢' => '「',
        '﹂' | '｣' => '」',
        '﹃' => '『',
        '﹄' => '』',
        '❮' | '❰' => '‹',
        '❯' | '❱' => '›',
        '︽' | '⟪' => '《',
        '︾' | '⟫' => '》',
        '︿' | '⟨' => '〈',
        '﹀' | '⟩' => '〉',
        c => c,
    }
}

/// Normalizes a sentence to one line without hidden or encoded characters.
pub(super) fn normalize_sentence(sentence: &str) -> String {
    let mut text = sentence.to_owned();
    let mut is_stable = false;
    for _ in 0..DECODE_ROUNDS_MAX {
        // A tag may split an entity, and an entity may start a tag.
        let next = remove_tags(&html_escape::decode_html_entities(&text));
        is_stable = next == text;
        if is_stable {
            break;
        }
        text = next;
    }
    if !is_stable {
        text = text.replace(['&', '<'], " ");
    }
    let letters: Vec<char> = strip_invisible(&text).chars().filter(|c| !is_private(*c)).collect();
    let letters = remove_joiners(&letters);
    let quotations = prefixed_quotations(&letters);
    let is_ascii = |at: Option<usize>| {
        at.and_then(|at| letters.get(at))
            .is_some_and(|c| c.is_ascii_alphanumeric() || ('ａ'..='ｚ').contains(c))
    };
    let plain = letters.iter().enumerate().map(|(at, c)| match c {
        '\n' | '\u{2028}' | '\u{2029}' => ' ',
        _ if quotations.contains(&at) => '"',
        // Hebrew writes abbreviations with this mark.
        '״' | '"' if is_inside_hebrew(&letters, at) => '״',
        '״' => '"',
        // Full stops and slashes that links are written with.
        '．' | '․' | '﹒' | '｡' if is_ascii(at.checked_add(1)) => '.',
        '／' | '∕' | '⧸' => '/',
        '＠' | '﹫' => '@',
        c => common_mark(*c),
    });
    plain.collect::<String>().replace("``", "\"").replace("''", "\"").replace("\\\"", "\"")
}

/// Whether there is a Hebrew letter at an index.
fn is_hebrew(letters: &[char], at: Option<usize>) -> bool {
    let letter = at.and_then(|at| letters.get(at));
    letter.is_some_and(|c| c.is_alphabetic() && char_script(*c) == Script::Hebrew)
}

/// Whether an index is between two Hebrew letters.
fn is_inside_hebrew(letters: &[char], at: usize) -> bool {
    is_hebrew(letters, at.checked_sub(1)) && is_hebrew(letters, at.checked_add(1))
}

/// Positions of the marks of Hebrew quotations that are joined to a prefix such as "that": `ש"מכרנו הכול"`.
fn prefixed_quotations(letters: &[char]) -> HashSet<usize> {
    let is_quote = |c: char| matches!(c, '״' | '"');
    let is_inside = |at: usize| is_inside_hebrew(letters, at);
    let opens = |at: usize| {
        let before = letters.get(..at).unwrap_or_default();
        let prefix = before.iter().rev().take_while(|c| HEBREW_PREFIXES.contains(*c)).count();
        let is_word =
            (1..=HEBREW_PREFIX_MAX).contains(&prefix) && !is_hebrew(letters, at.checked_sub(prefix + 1));
        is_word && is_inside(at)
    };
    let has_before = |at: usize, has: fn(char) -> bool| {
        at.checked_sub(1).and_then(|at| letters.get(at)).is_some_and(|c| has(*c))
    };
    let (mut positions, mut is_quoting) = (HashSet::new(), false);
    for (at, _) in letters.iter().enumerate().filter(|(_, c)| is_quote(**c)) {
        if positions.contains(&at) {
            continue;
        }
        if !is_inside(at) {
            // It closes a quotation without a prefix, or opens one.
            is_quoting = !is_quoting && !has_before(at, char::is_alphanumeric);
            continue;
        }
        if is_quoting || !opens(at) {
            continue;
        }
        // Other marks inside words are those of abbreviations.
        let ends = |at: usize, c: char| is_quote(c) && (!is_inside(at) || opens(at));
        let next = letters.iter().enumerate().skip(at + 1).find(|(at, c)| ends(*at, **c));
        // After a digit it is an inch sign.
        let closes = |at: usize| !is_hebrew(letters, at.checked_add(1)) && !has_before(at, char::is_numeric);
        let Some((close, _)) = next.filter(|(at, _)| closes(*at)) else { continue };
        let inside = letters.get(at + 1..close).unwrap_or_default();
        if inside.iter().any(|c| c.is_whitespace()) && !inside.last().is_some_and(|c| c.is_whitespace()) {
            positions.extend([at, close]);
        }
    }
    positions
}

/// Drops joiners and variation selectors, except in scripts that use them.
fn remove_joiners(letters: &[char]) -> Vec<char> {
    let is_joined = |at: Option<usize>| {
        at.and_then(|at| letters.get(at)).is_some_and(|c| !c.is_ascii() && (c.is_alphabetic() || is_mark(*c)))
    };
    let is_kept = |at: usize, c: char| match c {
        '\u{200C}' | '\u{200D}' => is_joined(at.checked_sub(1)) && is_joined(at.checked_add(1)),
        '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => {
            !letters.get(at.wrapping_sub(1)).is_some_and(|c| c.is_ascii() || c.is_numeric())
        }
        _ => true,
    };
    letters.iter().enumerate().filter(|(at, c)| is_kept(*at, **c)).map(|(_, c)| *c).collect()
}

/// Whether a character is a single quotation mark or an apostrophe.
pub(super) fn is_single_mark(c: char) -> bool {
    matches!(c, '\'' | '‘' | '’' | '‚')
}

/// Whether an apostrophe may stand next to a letter.
pub(super) fn has_apostrophes(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c) && char_script(c) != Script::Hangul
}

/// Whether the single mark at an index is an apostrophe: between two letters, or after a plural.
fn is_apostrophe(letters: &[char], at: usize) -> bool {
    let near = |at: Option<usize>| at.and_then(|at| letters.get(at)).copied();
    let (before, after) = (near(at.checked_sub(1)), near(at.checked_add(1)));
    match (before, after.filter(|c| c.is_alphanumeric())) {
        (Some(before), Some(after)) => has_apostrophes(before) && has_apostrophes(after),
        (Some('s' | 'S' | 'x' | 'z'), None) => matches!(near(Some(at)), Some('\'' | '’')),
        _ => false,
    }
}

/// Drops quotation marks from a model's own words.
pub(super) fn remove_marks(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_kept =
        |at: usize, c: char| !is_quotation_mark(c) && (!is_single_mark(c) || is_apostrophe(&letters, at));
    letters.iter().enumerate().filter(|(at, c)| is_kept(*at, **c)).map(|(_, c)| *c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalize_encoded_and_hidden_text_is_revealed() {
        assert_eq!(normalize_sentence("&#10;&gt; a &amp;amp;quot;b&amp;quot;"), " > a \"b\"");
        assert_eq!(normalize_sentence("a&#8238;b&#xE000;c&#x2028;d"), "abc d");
        assert_eq!(normalize_sentence("&<b>quot;x&am<i>p;lt;b>y"), "\"xy");
        assert_eq!(normalize_sentence(&format!("&{}quot;", "amp;".repeat(7_000))).matches('&').count(), 0);
        assert_eq!(normalize_sentence("צה״ל ״א ב״"), "צה״ל \"א ב\"");
        // A mark after a prefix opens a quotation, or is part of an abbreviation.
        assert_eq!(normalize_sentence("ש״א ב״ וש\"ג צה\"ל ד\""), "ש\"א ב\" וש\"ג צה״ל ד\"");
        assert_eq!(normalize_sentence("50 ש\"ח, ש\"א ב\""), "50 ש״ח, ש\"א ב\"");
        assert_eq!(normalize_sentence("ב\"כ \"א ב\" דו\"ח ו\"א\""), "ב״כ \"א ב\" דו״ח ו״א\"");
        let abbreviated = normalize_sentence("אמר \"קנו ב 50 ש\"ח בלבד\" או ב\"כ רחב 5\"");
        assert_eq!(abbreviated, "אמר \"קנו ב 50 ש״ח בלבד\" או ב״כ רחב 5\"");
        assert_eq!(
            normalize_sentence("[s\u{200D}3] می\u{200C}روم 1\u{FE0F}2 evil．com／x"),
            "[s3] می\u{200C}روم 12 evil.com/x"
        );
        assert_eq!(normalize_sentence("❛a❜ 〝b〟 ﹁c﹂ 🙶d🙷"), "'a' \"b\" 「c」 \"d\"");
    }

    #[test]
    fn remove_marks_keeps_only_apostrophes() {
        assert_eq!(remove_marks("It's the dogs' 5'10, 'we burned it"), "It's the dogs' 5'10, we burned it");
        assert_eq!(
            remove_marks("'불태웠다'고 他说‘我们 \"x\" «y» rock 'n"),
            "불태웠다고 他说我们 x y rock n"
        );
    }
}
