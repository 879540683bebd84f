//! Corrections of typing errors: "did you mean".

use super::{ArchiveIndex, SearchQuery, VocabularyWord};
use crate::{
    chat::{
        distance::{LETTERS_MAX, distance},
        fold::{fold, is_mark},
    },
    error::Result,
};

/// Shortest word that is corrected, in letters; a word from the second length on may have two errors.
const LETTERS_MIN: usize = 4;
const TWO_ERRORS_LETTERS_MIN: usize = 8;
/// Most words that are corrected.
const WORDS_MAX: usize = 4;

/// The query with its unknown words replaced by similar words of the index; `None` if there are none.
pub(super) async fn suggest(
    index: &dyn ArchiveIndex,
    text: &str,
    query: &SearchQuery,
) -> Result<Option<String>> {
    let mut corrected = text.to_owned();
    let mut is_changed = false;
    let words: Vec<String> = query.plain_words().map(str::to_owned).collect();
    for word in words.iter().filter(|word| is_correctable(word)).take(WORDS_MAX) {
        let near = index.near_words(word).await?;
        if near.iter().any(|known| known.word == *word) {
            continue;
        }
        let Some(better) = best(word, &near) else { continue };
        if let Some(replaced) = replace_word(&corrected, word, better) {
            corrected = replaced;
            is_changed = true;
        }
    }
    Ok(is_changed.then_some(corrected))
}

fn is_correctable(word: &str) -> bool {
    let letters = word.chars().count();
    (LETTERS_MIN..=LETTERS_MAX).contains(&letters) && word.chars().any(char::is_alphabetic)
}

/// The most similar word; of equally similar ones the most frequent.
fn best<'a>(word: &str, near: &'a [VocabularyWord]) -> Option<&'a str> {
    let errors_max = if word.chars().count() >= TWO_ERRORS_LETTERS_MIN { 2 } else { 1 };
    let letters: Vec<char> = word.chars().collect();
    near.iter()
        // Rows of an earlier version have stems with a mark behind them.
        .filter(|known| known.word.chars().all(|letter| letter.is_alphanumeric()))
        .filter_map(|known| {
            let errors = distance(&letters, &known.word, errors_max)?;
            Some((errors, std::cmp::Reverse(known.rows), known.word.as_str()))
        })
        .min()
        .map(|(_, _, word)| word)
}

/// Replaces the typed form of a word; `None` if the text has it in another form.
fn replace_word(text: &str, word: &str, better: &str) -> Option<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || is_mark(letter);
    let mut result = String::new();
    let mut is_replaced = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if !is_replaced && fold(part) == word {
            result.push_str(better);
            is_replaced = true;
        } else {
            result.push_str(part);
        }
        let between = after.find(is_part).unwrap_or(after.len());
        let (gap, next) = after.split_at(between);
        result.push_str(gap);
        rest = next;
    }
    is_replaced.then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_replaces_first_typed_form() {
        assert_eq!(
            replace_word("lang:en Harbuor, now", "harbuor", "harbour").unwrap(),
            "lang:en harbour, now"
        );
        assert_eq!(replace_word("nothing", "harbuor", "harbour"), None);
        // The vocabulary has folded words: Hindi without the sign that joins consonants.
        let typed = "बड़ा विद्यलय";
        assert_eq!(replace_word(typed, &fold("विद्यलय"), &fold("विद्यालय")).unwrap(), "बड़ा विदयालय");
        assert_eq!(replace_word("cafe\u{301}z", "cafez", "cafes").unwrap(), "cafes");
    }

    #[test]
    fn suggestion_prefers_fewer_errors_then_frequency() {
        let near = [("harbours", 9), ("harbour", 2), ("barbour", 8)]
            .map(|(word, rows)| VocabularyWord { word: word.to_owned(), rows });
        assert_eq!(best("harbor", &near), Some("harbour"));
        assert_eq!(best("zzzzzz", &near), None);
    }
}
