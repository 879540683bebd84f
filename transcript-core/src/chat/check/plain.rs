//! A sentence of a model with nothing hidden in it: no entities, tags or unseen characters, and the many marks
//! that stand around quotations as the few that are looked for.

use unicode_script::{Script, UnicodeScript};

use super::{
    super::{fold::is_mark, question::visible},
    clean::without_tags,
    marks::is_quotation_mark,
};
use crate::transcript::is_unspaced;

/// How often entities within entities are decoded.
const DECODED_MAX: usize = 8;

/// Whether a character is of the range in which ours have a meaning.
pub(super) fn is_private(c: char) -> bool {
    ('\u{E000}'..='\u{F8FF}').contains(&c)
}

/// A mark around quotations as the common one that means the same; any other character as it is.
pub(super) fn plain_mark(c: char) -> char {
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

/// A sentence on one line, with all that was hidden or coded in it in the open.
pub(super) fn plain(sentence: &str) -> String {
    let mut text = sentence.to_owned();
    let mut is_settled = false;
    for _ in 0..DECODED_MAX {
        // A tag may part an entity, and an entity begin a tag.
        let next = without_tags(&html_escape::decode_html_entities(&text));
        is_settled = next == text;
        if is_settled {
            break;
        }
        text = next;
    }
    if !is_settled {
        text = text.replace(['&', '<'], " ");
    }
    let letters: Vec<char> = visible(&text).chars().filter(|c| !is_private(*c)).collect();
    let letters = without_joiners(&letters);
    let is_hebrew = |at: Option<usize>| {
        at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphabetic() && c.script() == Script::Hebrew)
    };
    let is_ascii = |at: Option<usize>| {
        at.and_then(|at| letters.get(at))
            .is_some_and(|c| c.is_ascii_alphanumeric() || ('ａ'..='ｚ').contains(c))
    };
    let plain = letters.iter().enumerate().map(|(at, c)| match c {
        '\n' | '\u{2028}' | '\u{2029}' => ' ',
        // Hebrew writes abbreviations with it.
        '״' | '"' if is_hebrew(at.checked_sub(1)) && is_hebrew(at.checked_add(1)) => '״',
        '״' => '"',
        // Dots and strokes that addresses are written with.
        '．' | '․' | '﹒' | '｡' if is_ascii(at.checked_add(1)) => '.',
        '／' | '∕' | '⧸' => '/',
        '＠' | '﹫' => '@',
        c => plain_mark(*c),
    });
    plain.collect::<String>().replace("``", "\"").replace("''", "\"").replace("\\\"", "\"")
}

/// Letters without the characters that join or dress others, but where scripts are written with them.
fn without_joiners(letters: &[char]) -> Vec<char> {
    let is_joined = |at: Option<usize>| {
        at.and_then(|at| letters.get(at)).is_some_and(|c| !c.is_ascii() && (c.is_alphabetic() || is_mark(*c)))
    };
    let stays = |at: usize, c: char| match c {
        '\u{200C}' | '\u{200D}' => is_joined(at.checked_sub(1)) && is_joined(at.checked_add(1)),
        '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => {
            !letters.get(at.wrapping_sub(1)).is_some_and(|c| c.is_ascii() || c.is_numeric())
        }
        _ => true,
    };
    letters.iter().enumerate().filter(|(at, c)| stays(*at, **c)).map(|(_, c)| *c).collect()
}

/// Whether a character is a single mark: around quotations, or an apostrophe.
pub(super) fn is_single_mark(c: char) -> bool {
    matches!(c, '\'' | '‘' | '’' | '‚')
}

/// Whether a letter may have an apostrophe beside it.
pub(super) fn has_apostrophes(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c) && c.script() != Script::Hangul
}

/// Whether the single mark at a place is an apostrophe: between two letters, or behind a plural.
fn is_apostrophe(letters: &[char], at: usize) -> bool {
    let near = |at: Option<usize>| at.and_then(|at| letters.get(at)).copied();
    let (before, after) = (near(at.checked_sub(1)), near(at.checked_add(1)));
    match (before, after.filter(|c| c.is_alphanumeric())) {
        (Some(before), Some(after)) => has_apostrophes(before) && has_apostrophes(after),
        (Some('s' | 'S' | 'x' | 'z'), None) => matches!(near(Some(at)), Some('\'' | '’')),
        _ => false,
    }
}

/// A model's own words without any mark that stands around quotations.
pub(super) fn without_marks(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let stays =
        |at: usize, c: char| !is_quotation_mark(c) && (!is_single_mark(c) || is_apostrophe(&letters, at));
    letters.iter().enumerate().filter(|(at, c)| stays(*at, **c)).map(|(_, c)| *c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_coded_or_hidden_comes_into_the_open() {
        assert_eq!(plain("&#10;&gt; a &amp;amp;quot;b&amp;quot;"), " > a \"b\"");
        assert_eq!(plain("a&#8238;b&#xE000;c&#x2028;d"), "abc d");
        assert_eq!(plain("&<b>quot;x&am<i>p;lt;b>y"), "\"xy");
        assert_eq!(plain(&format!("&{}quot;", "amp;".repeat(7_000))).matches('&').count(), 0);
        assert_eq!(plain("צה״ל ״א ב״"), "צה״ל \"א ב\"");
        assert_eq!(
            plain("[s\u{200D}3] می\u{200C}روم 1\u{FE0F}2 evil．com／x"),
            "[s3] می\u{200C}روم 12 evil.com/x"
        );
        assert_eq!(plain("❛a❜ 〝b〟 ﹁c﹂ 🙶d🙷"), "'a' \"b\" 「c」 \"d\"");
    }

    #[test]
    fn only_apostrophes_stay() {
        assert_eq!(without_marks("It's the dogs' 5'10, 'we burned it"), "It's the dogs' 5'10, we burned it");
        assert_eq!(
            without_marks("'불태웠다'고 他说‘我们 \"x\" «y» rock 'n"),
            "불태웠다고 他说我们 x y rock n"
        );
    }
}
