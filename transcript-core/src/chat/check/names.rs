//! What looks like a passage's number and is a word: a telephone, a car, a road that the transcript speaks of.

use std::{cell::OnceCell, collections::HashSet, sync::Arc};

use super::{
    super::fold::fold,
    numbers::{DIGITS_MAX, ascii_digit, is_named_passage, is_s},
};
use crate::transcript::Transcript;

/// Words such as `S23` and `passage 7` of a transcript, its title and a question. They are looked for once one is met.
#[derive(Debug, Default)]
pub(super) struct Names {
    transcript: Option<Arc<Transcript>>,
    asked: String,
    found: OnceCell<HashSet<String>>,
}

impl Names {
    /// Those of a transcript and a question.
    pub(super) fn of(transcript: &Arc<Transcript>, asked: &str) -> Self {
        Self { transcript: Some(Arc::clone(transcript)), asked: asked.to_owned(), found: OnceCell::new() }
    }

    /// Whether these letters and digits, one behind the other, are such a word.
    pub(super) fn has(&self, letters: &str, digits: &str) -> bool {
        let look = || {
            let transcript = self.transcript.as_deref();
            let titles = transcript.into_iter().flat_map(|one| [one.title.as_deref(), one.author.as_deref()]);
            let spoken =
                transcript.into_iter().flat_map(|one| &one.segments).map(|segment| segment.text.as_str());
            found(spoken.chain(titles.flatten()).chain([self.asked.as_str()]))
        };
        self.found.get_or_init(look).contains(&name(letters, digits))
    }
}

fn found<'t>(texts: impl Iterator<Item = &'t str>) -> HashSet<String> {
    let mut names = HashSet::new();
    for text in texts.filter(|text| text.chars().any(|c| ascii_digit(c).is_some())) {
        let mut before = "";
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let digits = word.strip_prefix(is_s).unwrap_or(word);
            let is_number = (1..=DIGITS_MAX).contains(&digits.chars().count())
                && digits.chars().all(|c| ascii_digit(c).is_some());
            if is_number && digits.len() < word.len() {
                names.insert(name("s", digits));
            } else if is_number && (is_named_passage(before) || is_letter(before)) {
                names.insert(name(before, digits));
            }
            before = word;
        }
    }
    names
}

fn name(letters: &str, digits: &str) -> String {
    let digits: String = digits.chars().map(|c| ascii_digit(c).unwrap_or(c)).collect();
    if is_letter(letters) { format!("s{digits}") } else { fold(letters) + &digits }
}

fn is_letter(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(is_s) && letters.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_a_word() {
        let texts = ["The galaxy s23, an S 4 and", "passage 7, s99a, 12"];
        let names = Names { found: OnceCell::from(found(texts.into_iter())), ..Names::default() };
        for (letters, digits, expect) in [
            ("s", "23", true),
            ("S", "23", true),
            ("s", "4", true),
            ("Passage", "7", true),
            ("s", "7", false),
            ("s", "99", false),
            ("segment", "12", false),
        ] {
            assert_eq!(names.has(letters, digits), expect, "{letters} {digits}");
        }
        assert!(!Names::default().has("s", "1"));
    }
}
