//! Names that look like passage numbers: a phone, a car or a road that the transcript mentions.

use std::{cell::OnceCell, collections::HashSet, sync::Arc};

use super::{
    super::fold::fold,
    numbers::{DIGITS_MAX, ascii_digit, is_letter_s, is_named_passage},
};
use crate::transcript::Transcript;

/// Names such as `S23` in a transcript, its title and a question; collected on first use.
#[derive(Debug, Default)]
pub(super) struct PassageNames {
    transcript: Option<Arc<Transcript>>,
    question: String,
    found: OnceCell<HashSet<String>>,
}

impl PassageNames {
    /// Names of a transcript and a question.
    pub(super) fn new(transcript: &Arc<Transcript>, question: &str) -> Self {
        Self {
            transcript: Some(Arc::clone(transcript)),
            question: question.to_owned(),
            found: OnceCell::new(),
        }
    }

    /// Whether these letters with these digits are such a name.
    pub(super) fn has(&self, letters: &str, digits: &str) -> bool {
        let collect = || {
            let transcript = self.transcript.as_deref();
            let titles = transcript.into_iter().flat_map(|one| [one.title.as_deref(), one.author.as_deref()]);
            let spoken =
                transcript.into_iter().flat_map(|one| &one.segments).map(|segment| segment.text.as_str());
            collect_names(spoken.chain(titles.flatten()).chain([self.question.as_str()]))
        };
        self.found.get_or_init(collect).contains(&name(letters, digits))
    }
}

fn collect_names<'t>(texts: impl Iterator<Item = &'t str>) -> HashSet<String> {
    let mut names = HashSet::new();
    for text in texts.filter(|text| text.chars().any(|c| ascii_digit(c).is_some())) {
        let mut before = "";
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let digits = word.strip_prefix(is_letter_s).unwrap_or(word);
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
    letters.next().is_some_and(is_letter_s) && letters.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passage_names_spoken_names_are_found() {
        let texts = ["The galaxy s23, an S 4 and", "passage 7, s99a, 12"];
        let names = PassageNames {
            found: OnceCell::from(collect_names(texts.into_iter())),
            ..PassageNames::default()
        };
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
        assert!(!PassageNames::default().has("s", "1"));
    }
}
