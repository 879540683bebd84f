//! Signs at the ends of a quotation: without its minus, currency or question mark it has another meaning.

use std::ops::Range;

use super::super::question::{is_greek, is_question_mark};
use crate::transcript::is_unspaced;

/// Maximum of bytes by which the digits of a number are widened at either end.
const NUMBER_BYTES_MAX: usize = 64;
/// Marks that open and close; a mark that does both is its own other half.
const PAIRS: [(char, char); 11] = [
    ('(', ')'),
    ('[', ']'),
    ('{', '}'),
    ('（', '）'),
    ('【', '】'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
    ('"', '"'),
];

/// Widens the byte range of words in a text to the signs that belong to them.
///
/// Words that are the whole text get all of `segments`, which contain them, except white space and speaker marks at its
/// ends. Other words get the rest of a number that they cut, the signs that change what they mean, and the other half
/// of a pair of marks.
pub(super) fn with_signs(text: &str, words: Range<usize>, segments: Range<usize>) -> Range<usize> {
    let (before, piece, after) = around(text, &words);
    if !before.contains(char::is_alphanumeric) && !after.contains(char::is_alphanumeric) {
        return whole(text, segments);
    }
    let start = words.start - length_before(before, piece);
    let end = words.end + length_after(after, piece);
    with_other_halves(text, start..end)
}

/// The text before a range, in it and after it.
fn around<'a>(text: &'a str, range: &Range<usize>) -> (&'a str, &'a str, &'a str) {
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    (part(0..range.start), part(range.clone()), part(range.end..text.len()))
}

/// The range without the white space at its ends, and without the `>>` that marks a change of speaker.
fn whole(text: &str, range: Range<usize>) -> Range<usize> {
    let text = text.get(range.clone()).unwrap_or_default();
    let mut shown = text.trim_start();
    if shown.starts_with(">>") {
        shown = shown.trim_start_matches(|c: char| c == '>' || c.is_whitespace());
    }
    range.start + text.len() - shown.len()..range.start + text.trim_end().len()
}

/// Bytes of the number and the signs directly before words.
fn length_before(before: &str, words: &str) -> usize {
    let is_number = words.starts_with(char::is_numeric);
    let mut rest = before;
    while let Some(digits) =
        rest.strip_suffix(['.', ',']).filter(|digits| is_number && digits.ends_with(char::is_numeric))
    {
        rest = digits.trim_end_matches(char::is_numeric);
    }
    if before.len() - rest.len() > NUMBER_BYTES_MAX {
        rest = before;
    }
    let unsigned = rest.trim_end_matches(|c: char| is_sign_before(c, is_number));
    let signs = rest.get(unsigned.len()..).unwrap_or_default();
    // Dots of an ellipsis and speaker marks are no signs of the words behind them.
    let signs = signs.rsplit("..").next().unwrap_or_default();
    let signs = signs.rsplit(">>").next().unwrap_or_default();
    let is_joined = unsigned.ends_with(ends_spaced_word);
    // The hyphen of "10-40" is no minus.
    let first = if is_joined { signs.find(is_currency).unwrap_or(signs.len()) } else { 0 };
    before.len() - rest.len() + signs.len() - first
}

/// Bytes of the number and the signs directly after words; a percent sign or a question mark may follow a space.
fn length_after(after: &str, words: &str) -> usize {
    let is_number = words.ends_with(char::is_numeric);
    let mut rest = after;
    while let Some(digits) =
        rest.strip_prefix(['.', ',']).filter(|digits| is_number && digits.starts_with(char::is_numeric))
    {
        rest = digits.trim_start_matches(char::is_numeric);
    }
    if after.len() - rest.len() > NUMBER_BYTES_MAX {
        rest = after;
    }
    let number = after.len() - rest.len();
    let has_semicolon = is_greek(words);
    let unsigned = rest.trim_start_matches(|c: char| is_sign_after(c) || (has_semicolon && c == ';'));
    let signs = rest.strip_suffix(unsigned).unwrap_or_default();
    if unsigned.starts_with(ends_spaced_word) {
        return number + signs.trim_end_matches(['+', '#']).len();
    }
    let next = unsigned.trim_start();
    let behind =
        next.trim_start_matches(|c: char| is_question_mark(c) || c == '!' || (is_number && is_unit_sign(c)));
    let is_spaced = next.len() < unsigned.len() && behind.len() < next.len();
    let is_separate = is_spaced && !behind.starts_with(char::is_alphanumeric);
    let spaced = if is_separate { unsigned.len() - behind.len() } else { 0 };
    number + signs.len() + spaced
}

/// Adds the other half of a pair of marks if it stands directly at an end of the words.
fn with_other_halves(text: &str, words: Range<usize>) -> Range<usize> {
    let (before, piece, after) = around(text, &words);
    let opening = before.chars().next_back().filter(|c| {
        PAIRS.iter().any(|(open, close)| open == c && has_unmatched(piece.chars(), *open, *close))
    });
    let behind = after.trim_start_matches(['.', ',', '!', '?', '…', '。', '，', '！', '？']);
    let closing = behind.chars().next().filter(|c| {
        PAIRS.iter().any(|(open, close)| close == c && has_unmatched(piece.chars().rev(), *close, *open))
    });
    let opening = opening.filter(|c| closing != Some(*c));
    let start = words.start - opening.map_or(0, char::len_utf8);
    let end = words.end + closing.map_or(0, |c| after.len() - behind.len() + c.len_utf8());
    start..end
}

/// Whether `second` occurs without a `first` before it; of equal marks, whether one is without another.
fn has_unmatched(letters: impl Iterator<Item = char>, first: char, second: char) -> bool {
    let mut depth = 0_usize;
    for c in letters {
        if c == first {
            depth += 1;
        } else if c == second {
            let Some(left) = depth.checked_sub(1) else { return true };
            depth = left;
        }
    }
    first == second && depth % 2 == 1
}

/// Whether a character ends or begins a word of a script that separates words.
fn ends_spaced_word(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}

fn is_currency(c: char) -> bool {
    matches!(c, '$' | '¢'..='¥' | '฿' | '\u{20A0}'..='\u{20CF}' | '﷼' | '＄' | '￠' | '￡' | '￥' | '￦')
}

fn is_sign_before(c: char, is_number: bool) -> bool {
    matches!(c, '-' | '−' | '+' | '±' | '~' | '≈' | '#' | '@' | '.' | '¿' | '¡')
        || is_currency(c)
        || (is_number && matches!(c, '<' | '>' | '≤' | '≥'))
}

fn is_sign_after(c: char) -> bool {
    matches!(c, '+' | '#' | '!' | '！' | '°' | '′' | '″') || is_unit_sign(c) || is_question_mark(c)
}

/// Whether a character is the unit of a number, also after a space.
fn is_unit_sign(c: char) -> bool {
    is_currency(c) || matches!(c, '%' | '‰' | '％' | '٪')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, words: &str, expect: &str) {
        let start = text.find(words).unwrap();
        let range = with_signs(text, start..start + words.len(), 0..text.len());
        assert_eq!(text.get(range), Some(expect), "{words} in {text}");
    }

    #[test]
    fn quote_ends_whole_text_keeps_all_signs() {
        for (text, words) in [
            ("-40 degrees, he wrote.", "40 degrees, he wrote"),
            (".5 percent of it was 12%", "5 percent of it was 12"),
            ("$5 million for C++", "5 million for C"),
            ("(sighs) One woman refused (applause)", "sighs) One woman refused (applause"),
            ("He called it 'a wicked sum'.", "He called it 'a wicked sum"),
            ("¿Quién dijo eso?", "Quién dijo eso"),
            ("Qui a dit cela ?", "Qui a dit cela"),
            ("\"Run!\"", "Run"),
            ("他是谁？", "他是谁"),
        ] {
            check(text, words, text);
        }
        check(">> -40 degrees ", "40 degrees", "-40 degrees");
        check("> 5 percent", "5 percent", "> 5 percent");
    }

    #[test]
    fn quote_ends_part_of_text_keeps_signs_that_change_it() {
        for (text, words, expect) in [
            ("It was -40 degrees, then 3.5%, he said", "40 degrees", "-40 degrees"),
            ("It was -40 degrees, then 3.5%, he said", "then 3", "then 3.5%"),
            ("It was -40 degrees, then 3.5%, he said", "5", "3.5%"),
            ("She paid US$5 for 10-40 of them", "5 for 10", "$5 for 10"),
            ("She paid US$5 for 10-40 of them", "40 of them", "40 of them"),
            ("Il a payé 5 €, ou 12 % de moins", "payé 5", "payé 5 €"),
            ("Learn C++ or C#, and get an A+ for it", "Learn C", "Learn C++"),
            ("Learn C++ or C#, and get an A+ for it", "get an A", "get an A+"),
            ("2+2 is four", "2", "2"),
            ("Who paid? He did. Then we left", "Who paid", "Who paid?"),
            ("Qui a payé ? Lui. Et puis", "Qui a payé", "Qui a payé ?"),
            ("Ποιος το είπε; Αυτός. Και μετά", "Ποιος το είπε", "Ποιος το είπε;"),
            ("Then: ¿quién pagó? Él", "quién pagó", "¿quién pagó?"),
            ("She said \"never sail,\" and left", "She said \"never sail", "She said \"never sail,\""),
            ("So (sighs) we left", "sighs) we", "(sighs) we"),
            ("Well...5 of us left early", "5 of us", "5 of us"),
            ("The ice broke. It was cold.", "The ice broke", "The ice broke"),
            ("The well-known pier", "known pier", "known pier"),
            ("温度是-40度，很冷", "40度", "-40度"),
        ] {
            check(text, words, expect);
        }
    }
}
