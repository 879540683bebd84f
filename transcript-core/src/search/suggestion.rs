//! Corrections of typing errors: "did you mean".

use super::{ArchiveIndex, SearchMoment, SearchQuery, VocabularyWord, query::ordered_terms};
use crate::{
    chat::{
        distance::{LETTERS_MAX, distance},
        fold::is_mark,
    },
    error::Result,
};

/// Shortest word that is corrected, in letters; a word from the second length on may have two errors.
const LETTERS_MIN: usize = 4;
const TWO_ERRORS_LETTERS_MIN: usize = 8;
/// Most words that are corrected.
const WORDS_MAX: usize = 4;

/// A query with corrected words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suggestion {
    /// The query.
    pub(super) text: String,
    /// Its corrected words, folded.
    words: Vec<String>,
}

impl Suggestion {
    /// The query with its corrected words as they are written, if they are among these, the best first.
    pub(super) fn as_written(&self, written: &[String]) -> String {
        let mut text = self.text.clone();
        for word in &self.words {
            if let Some(form) = written.iter().find(|form| ordered_terms(form) == [word.as_str()]) {
                text = replace_word(&text, word, form).unwrap_or(text);
            }
        }
        text
    }
}

/// The query with its unknown words replaced by similar words of the index; `None` if there are none.
pub(super) async fn suggest(
    index: &dyn ArchiveIndex,
    text: &str,
    query: &SearchQuery,
) -> Result<Option<Suggestion>> {
    let mut corrected = Suggestion { text: text.to_owned(), words: Vec::new() };
    let words: Vec<String> = query.plain_words().map(str::to_owned).collect();
    for word in words.iter().filter(|word| is_correctable(word)).take(WORDS_MAX) {
        let near = index.near_words(word).await?;
        if near.iter().any(|known| known.word == *word) {
            continue;
        }
        let Some(better) = best(word, &near) else { continue };
        if let Some(replaced) = replace_word(&corrected.text, word, better) {
            corrected.text = replaced;
            corrected.words.push(better.to_owned());
        }
    }
    Ok((!corrected.words.is_empty()).then_some(corrected))
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

/// Whether a character is part of a word.
fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || is_mark(letter)
}

/// The matches of a hit as they are written; those within a sentence first, and of these the ones in lower case.
///
/// A capital letter at the beginning of a sentence or in a title is not one of the word.
pub(super) fn written_words(moments: &[SearchMoment], title: &str) -> Vec<String> {
    let (mut within, mut others) = (Vec::new(), Vec::new());
    for moment in moments {
        let letters: Vec<char> = moment.text.chars().collect();
        for (start, end) in &moment.matches {
            let (start, end) = (*start as usize, *end as usize);
            let word: String = letters.get(start..end).unwrap_or_default().iter().collect();
            let before = letters.get(..start).unwrap_or_default();
            let previous = before.iter().rfind(|letter| !letter.is_whitespace());
            match previous.is_some_and(|letter| is_part(*letter) || *letter == ',') {
                true => within.push(word),
                false => others.push(word.to_lowercase()),
            }
        }
    }
    let words = title.split(|letter: char| !is_part(letter)).filter(|word| !word.is_empty());
    others.extend(words.map(str::to_lowercase));
    within.sort_by_key(|word| word.chars().any(char::is_uppercase));
    within.append(&mut others);
    within
}

/// Replaces the typed form of a word; `None` if the text has it in another form.
fn replace_word(text: &str, word: &str, better: &str) -> Option<String> {
    let mut result = String::new();
    let mut is_replaced = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if !is_replaced && ordered_terms(part) == [word] {
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
    use crate::chat::fold::fold;

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
        assert_eq!(replace_word("हिन्दा", "हिंदा", "हिंदी").unwrap(), "हिंदी");
        assert_eq!(replace_word("cafe\u{301}z", "cafez", "cafes").unwrap(), "cafes");
    }

    #[test]
    fn suggestion_is_as_written() {
        let check = |word: &str, text: &str, matches: &[(u32, u32)], title: &str, expect: &str| {
            let (text, matches) = (text.to_owned(), matches.to_vec());
            let moment = SearchMoment { start_ms: 0, end_ms: 1, text, matches };
            let suggestion = Suggestion { text: format!("the {word} now"), words: vec![word.to_owned()] };
            let written = suggestion.as_written(&written_words(&[moment], title));
            assert_eq!(written, format!("the {expect} now"));
        };
        check("warmepumpe", "Die Wärmepumpe. Wärmepumpe", &[(4, 14), (16, 26)], "", "Wärmepumpe");
        check("harbour", "Old HARBOUR, harbour", &[(4, 11), (13, 20)], "Harbour", "harbour");
        check("harbour", "Harbour", &[(0, 7)], "", "harbour");
        check("cafe", "Nothing", &[], "Das Café", "café");
        check("harbour", "the harbours", &[(4, 12)], "", "harbour");
        check(&fold("विद्यालय"), "यह विद्यालय है", &[(3, 11)], "", "विद्यालय");
    }

    #[test]
    fn suggestion_prefers_fewer_errors_then_frequency() {
        let near = [("harbours", 9), ("harbour", 2), ("barbour", 8)]
            .map(|(word, rows)| VocabularyWord { word: word.to_owned(), rows });
        assert_eq!(best("harbor", &near), Some("harbour"));
        assert_eq!(best("zzzzzz", &near), None);
    }
}
