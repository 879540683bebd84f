//! Finds the transcript text of a quotation that is nearly correct.

use std::ops::Range;

use super::super::fold::fold_char;
use crate::transcript::is_unspaced;

/// Maximum of words of a quotation that are compared.
const QUOTED_MAX: usize = 160;
/// Maximum of words of the text that are compared.
const TEXT_MAX: usize = 2_000;
/// Words that must be equal: this many, and [`MATCHES_PERCENT`] of the quoted words.
const MATCHES_MIN: usize = 4;
const MATCHES_PERCENT: usize = 60;
/// Score of an equal word; [`MISMATCH_SCORE`] is that of a missing or different word.
const MATCH_SCORE: i32 = 2;
const MISMATCH_SCORE: i32 = -1;

/// A word, or a letter of an unspaced script, with its byte range.
struct QuoteWord {
    folded: String,
    bytes: Range<usize>,
}

fn words(text: &str, words_max: usize) -> Vec<QuoteWord> {
    let mut words: Vec<QuoteWord> = Vec::new();
    let mut is_open = false;
    for (index, c) in text.char_indices() {
        let mut folded = String::new();
        fold_char(c, |letter| folded.push(letter));
        let end = index + c.len_utf8();
        if folded.is_empty() {
            is_open = is_open && !c.is_whitespace() && !c.is_ascii_punctuation();
            continue;
        }
        let is_single = is_unspaced(c);
        let is_full = words.len() == words_max;
        match words.last_mut() {
            Some(last) if is_open && !is_single => {
                last.folded.push_str(&folded);
                last.bytes.end = end;
            }
            _ if is_full => return words,
            _ => words.push(QuoteWord { folded, bytes: index..end }),
        }
        is_open = !is_single;
    }
    words
}

/// Finds the part of `text` that a quotation altered; `None` if too few words are equal.
///
/// It is the run of words with the best alignment, from its first equal word to its last.
pub(super) fn find_nearest(text: &str, quoted: &str) -> Option<Range<usize>> {
    let quote = words(quoted, QUOTED_MAX);
    let text_words = words(text, TEXT_MAX);
    let (end, cell) = best_alignment_end(&quote, &text_words)?;
    let enough = MATCHES_MIN.max((quote.len() * MATCHES_PERCENT).div_ceil(100));
    if cell.matches < enough {
        return None;
    }
    Some(text_words.get(cell.start)?.bytes.start..text_words.get(end)?.bytes.end)
}

/// Best alignment that ends at a pair of words: score, start in the text and number of equal words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AlignmentCell {
    score: i32,
    start: usize,
    matches: usize,
}

/// The best alignment of a run of `text_words` with a run of `quote`, and the index of its last equal word.
fn best_alignment_end(quote: &[QuoteWord], text_words: &[QuoteWord]) -> Option<(usize, AlignmentCell)> {
    let mut previous_row = vec![AlignmentCell::default(); text_words.len() + 1];
    let mut best: Option<(usize, AlignmentCell)> = None;
    for word in quote {
        let mut row = vec![AlignmentCell::default(); text_words.len() + 1];
        for (index, other) in text_words.iter().enumerate() {
            let at = |cells: &[AlignmentCell], index: usize| cells.get(index).copied().unwrap_or_default();
            let (diagonal, up, left) =
                (at(&previous_row, index), at(&previous_row, index + 1), at(&row, index));
            let cell = if word.folded == other.folded {
                let start = if diagonal.score > 0 { diagonal.start } else { index };
                let matches = if diagonal.score > 0 { diagonal.matches } else { 0 };
                let cell =
                    AlignmentCell { score: diagonal.score.max(0) + MATCH_SCORE, start, matches: matches + 1 };
                if best.is_none_or(|(_, known)| cell.score > known.score) {
                    best = Some((index, cell));
                }
                cell
            } else {
                let from = [diagonal, up, left].into_iter().max_by_key(|cell| cell.score).unwrap_or_default();
                AlignmentCell { score: (from.score + MISMATCH_SCORE).max(0), ..from }
            };
            if let Some(slot) = row.get_mut(index + 1) {
                *slot = cell;
            }
        }
        previous_row = row;
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, quoted: &str, expect: Option<&str>) {
        let found = find_nearest(text, quoted).and_then(|range| text.get(range));
        assert_eq!(found, expect, "{quoted}");
    }

    #[test]
    fn find_nearest_altered_quotation_returns_original() {
        let text = "And so the rules are strict, they said, for every ship that enters the port.";
        check(
            text,
            "the rules are relaxed for every ship",
            Some("the rules are strict, they said, for every ship"),
        );
        check(text, "rules were strict they said", Some("rules are strict, they said"));
        check(text, "the ship was blue", None);
        check(text, "", None);
        check("", "a b c d", None);
        check(
            "今天的天气非常好，我们去海边",
            "今天的天气很不好，我们去海边",
            Some("今天的天气非常好，我们去海边"),
        );
    }

    proptest! {
        #[test]
        fn find_nearest_result_is_part_of_text(text in "[a-d好 ,é]{0,60}", quoted in "[a-d好 é]{0,30}") {
            if let Some(range) = find_nearest(&text, &quoted) {
                prop_assert!(text.get(range).is_some_and(|part| !part.is_empty()));
            }
        }
    }
}
