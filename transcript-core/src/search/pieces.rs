//! Splits a query into pieces: words, filters, and texts between quotation marks.

use icu_normalizer::ComposingNormalizerBorrowed;

use super::{query::QUERY_CHARS_MAX, tokens::is_alphabetic};
use crate::chat::fold::hebrew_sign;

const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();

/// A piece of a query between white space, or between quotation marks.
#[derive(Debug, Default)]
pub(super) struct QueryPiece {
    pub(super) text: String,
    /// As typed, with its marks.
    pub(super) source: String,
    pub(super) is_quoted: bool,
    pub(super) is_excluded: bool,
    pub(super) is_or: bool,
}

pub(super) fn split(text: &str) -> Vec<QueryPiece> {
    // Letters are counted, of Korean by syllable.
    let typed: String = text.chars().take(QUERY_CHARS_MAX).collect();
    // NFC would reorder the marks of Thai and others, which an index has as they are written.
    let is_composed = !typed.chars().any(is_alphabetic);
    let typed = if is_composed { NFC.normalize(&typed) } else { typed.as_str().into() };
    let mut letters = Vec::new();
    for (at, letter) in typed.char_indices() {
        let (before, after) = typed.split_at(at);
        let sign = hebrew_sign(before, letter, after.get(letter.len_utf8()..).unwrap_or_default());
        letters.push(sign.unwrap_or_else(|| plain_quote(letter)));
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        if letter.is_whitespace() || letter.is_control() {
            at += 1;
            continue;
        }
        let is_excluded = is_minus(*letter) && letters.get(at + 1).is_some_and(|next| !next.is_whitespace());
        let start = if is_excluded { at + 1 } else { at };
        let (mut piece, end) = read_piece(&letters, start);
        piece.is_excluded = is_excluded;
        piece.is_or = !piece.is_quoted && !is_excluded && piece.text == "OR";
        piece.source = letters.get(at..end).unwrap_or_default().iter().collect();
        pieces.push(piece);
        at = end.max(at + 1);
    }
    pieces
}

/// Reads a piece and returns where it ends. A quotation mark after a colon quotes the value of a filter.
fn read_piece(letters: &[char], start: usize) -> (QueryPiece, usize) {
    let closing = |from: usize| {
        let rest = letters.get(from..).unwrap_or_default();
        rest.iter().position(|letter| *letter == '"').map(|length| from + length)
    };
    let text = |from: usize, to: usize| letters.get(from..to).unwrap_or_default().iter().collect::<String>();
    if letters.get(start) == Some(&'"')
        && let Some(end) = closing(start + 1)
    {
        return (
            QueryPiece { text: text(start + 1, end), is_quoted: true, ..QueryPiece::default() },
            end + 1,
        );
    }
    let mut end = start + 1;
    while let Some(letter) = letters.get(end) {
        if letter.is_whitespace() || letter.is_control() {
            break;
        }
        if *letter == '"' {
            let is_value = letters.get(end - 1) == Some(&':');
            let Some(close) = closing(end + 1).filter(|_| is_value) else { break };
            let value = format!("{}{}", text(start, end), text(end + 1, close));
            return (QueryPiece { text: value, ..QueryPiece::default() }, close + 1);
        }
        end += 1;
    }
    (QueryPiece { text: text(start, end), ..QueryPiece::default() }, end)
}

fn plain_quote(letter: char) -> char {
    if matches!(letter, '“' | '”' | '„' | '«' | '»' | '＂') { '"' } else { letter }
}

/// Whether a sign excludes what follows it. A dash does not: it also stands before a word of a sentence.
fn is_minus(letter: char) -> bool {
    matches!(letter, '-' | '−' | '－' | '﹣')
}
