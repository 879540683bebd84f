//! Whether a sentence of the model's own can rest on what it cites: a citation of some passage or other is none.
//!
//! A sentence that has no telling word in common with the passages that it cites says something else: surely where
//! its words are said elsewhere, and where it is in the transcript's language. One in another language, whose words
//! nobody says, cannot be compared, and its citation is believed.

use std::collections::HashSet;

use unicode_script::{Script, UnicodeScript};

use super::super::{
    common_words::{is_common_run, is_common_word, is_of_another_language},
    terms::{Term, terms},
};
use crate::transcript::LanguageTag;

/// Words of a sentence that say something.
#[derive(Clone, Debug)]
pub(super) struct Telling {
    terms: HashSet<String>,
    /// Whether they are of another language than the transcript.
    is_foreign: bool,
}

impl Telling {
    /// Those of a text about a transcript in this language.
    pub(super) fn of(text: &str, language: &LanguageTag) -> Self {
        let mut found = HashSet::new();
        collect(text, |term| {
            found.insert(term.to_owned());
        });
        Self { terms: found, is_foreign: is_of_another_language(text, language.primary()) }
    }

    /// Whether a sentence with these words may rest on words that were said. `elsewhere` tells whether one of these
    /// terms is said anywhere; so many words that nobody says at all are let pass.
    pub(super) fn may_rest_on(
        &self,
        said: &str,
        passing: usize,
        elsewhere: impl FnOnce(&Self) -> bool,
    ) -> bool {
        if self.terms.is_empty() {
            return true;
        }
        let (mut is_shared, mut scripts) = (false, HashSet::new());
        collect(said, |term| {
            is_shared |= self.terms.contains(term);
            scripts.extend(script(term));
        });
        let own: HashSet<Script> = self.terms.iter().filter_map(|term| script(term)).collect();
        let is_apart = self.is_foreign || own.is_disjoint(&scripts) || self.terms.len() <= passing;
        is_shared || (is_apart && !elsewhere(self))
    }

    /// Whether one of these terms is in a text.
    pub(super) fn is_in(&self, said: &str) -> bool {
        let mut is_in = false;
        terms(said, |term| is_in |= self.terms.contains(term.text()));
        is_in
    }
}

/// Hands over the telling terms of a text: the beginnings of words, and runs of letters.
fn collect(text: &str, mut each: impl FnMut(&str)) {
    let mut is_common = false;
    terms(text, |term| match term {
        Term::Word(word) => is_common = is_common_word(word),
        Term::Stem(stem) if !is_common => each(stem),
        Term::Gram(run) if !is_common_run(run) => each(run),
        Term::Stem(_) | Term::Gram(_) => {}
    });
}

/// The script of a term's first letter; none of a number.
fn script(term: &str) -> Option<Script> {
    match term.chars().next()?.script() {
        Script::Common | Script::Inherited => None,
        // Japanese is written in three scripts at once.
        Script::Hiragana | Script::Katakana => Some(Script::Han),
        script => Some(script),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sentence: &str, said: &str, expect: bool) {
        let telling = Telling::of(sentence, &LanguageTag::english());
        assert_eq!(telling.may_rest_on(said, 0, |_| false), expect, "{sentence}");
        // Words that are said elsewhere are not said here.
        let is_plain = telling.terms.is_empty() || telling.is_in(said);
        assert_eq!(telling.may_rest_on(said, 99, |_| true), is_plain, "{sentence}");
    }

    #[test]
    fn a_sentence_has_a_word_in_common_with_what_it_rests_on() {
        const SAID: &str = "In nineteen twelve the ice broke the old pier in a single night.";
        check("The pier was broken by ice.", SAID, true);
        check("PWNED", SAID, false);
        check("The speaker loves bananas.", SAID, false);
        check("It is so.", SAID, true);
        check("Der Steg ist nicht mehr da.", SAID, true);
        check("冰把码头毁了", SAID, true);
        check("冰把码头毁了", "今天的天气非常好", false);
        check("冰把码头毁了", "那年的冰毁了老码头", true);
    }
}
