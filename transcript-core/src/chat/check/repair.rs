//! What was really said, where a quotation is nearly that.

use std::ops::Range;

use super::super::fold::fold_char;
use crate::transcript::is_unspaced;

/// The most words of a quotation that is compared.
const QUOTED_MAX: usize = 160;
/// The most words of what it is compared with.
const TEXT_MAX: usize = 2_000;
/// How many words must be the same: this many, and this share of those quoted, in percent.
const SAME_MIN: usize = 4;
const SAME_PERCENT: usize = 60;
/// What a word that is the same counts, and what one that is missing or another takes away.
const SAME: i32 = 2;
const OTHER: i32 = -1;

/// A word, or a letter of a script without spaces, and where it stands.
struct Word {
    folded: String,
    bytes: Range<usize>,
}

fn words(text: &str, most: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut is_open = false;
    for (place, c) in text.char_indices() {
        let mut folded = String::new();
        fold_char(c, |letter| folded.push(letter));
        let end = place + c.len_utf8();
        if folded.is_empty() {
            is_open = is_open && !c.is_whitespace() && !c.is_ascii_punctuation();
            continue;
        }
        let alone = is_unspaced(c);
        let is_full = words.len() == most;
        match words.last_mut() {
            Some(last) if is_open && !alone => {
                last.folded.push_str(&folded);
                last.bytes.end = end;
            }
            _ if is_full => return words,
            _ => words.push(Word { folded, bytes: place..end }),
        }
        is_open = !alone;
    }
    words
}

/// The part of `text` that a quotation altered: the run of words that has most in common with it, in its order,
/// from the first word that is the same to the last. None when too little is the same.
pub(super) fn nearest(text: &str, quoted: &str) -> Option<Range<usize>> {
    let quote = words(quoted, QUOTED_MAX);
    let said = words(text, TEXT_MAX);
    let (end, cell) = best_end(&quote, &said)?;
    let enough = SAME_MIN.max((quote.len() * SAME_PERCENT).div_ceil(100));
    if cell.same < enough {
        return None;
    }
    Some(said.get(cell.start)?.bytes.start..said.get(end)?.bytes.end)
}

/// A run of words that ends somewhere: how good it is, where it starts, and how many of its words are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    score: i32,
    start: usize,
    same: usize,
}

/// The best run of `said` beside a run of `quote`, by its last word that is the same.
fn best_end(quote: &[Word], said: &[Word]) -> Option<(usize, Cell)> {
    let mut above = vec![Cell::default(); said.len() + 1];
    let mut best: Option<(usize, Cell)> = None;
    for word in quote {
        let mut row = vec![Cell::default(); said.len() + 1];
        for (place, other) in said.iter().enumerate() {
            let at = |cells: &[Cell], place: usize| cells.get(place).copied().unwrap_or_default();
            let (diagonal, up, left) = (at(&above, place), at(&above, place + 1), at(&row, place));
            let cell = if word.folded == other.folded {
                let start = if diagonal.score > 0 { diagonal.start } else { place };
                let same = if diagonal.score > 0 { diagonal.same } else { 0 };
                let cell = Cell { score: diagonal.score.max(0) + SAME, start, same: same + 1 };
                if best.is_none_or(|(_, known)| cell.score > known.score) {
                    best = Some((place, cell));
                }
                cell
            } else {
                let from = [diagonal, up, left].into_iter().max_by_key(|cell| cell.score).unwrap_or_default();
                Cell { score: (from.score + OTHER).max(0), ..from }
            };
            if let Some(slot) = row.get_mut(place + 1) {
                *slot = cell;
            }
        }
        above = row;
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, quoted: &str, expect: Option<&str>) {
        let found = nearest(text, quoted).and_then(|range| text.get(range));
        assert_eq!(found, expect, "{quoted}");
    }

    #[test]
    fn altered_words_lead_to_the_true_ones() {
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
        fn what_is_found_is_a_part_of_the_text(text in "[a-d好 ,é]{0,60}", quoted in "[a-d好 é]{0,30}") {
            if let Some(range) = nearest(&text, &quoted) {
                prop_assert!(text.get(range).is_some_and(|part| !part.is_empty()));
            }
        }
    }
}
