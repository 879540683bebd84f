//! Whether a sentence of the model's own can rest on what it cites: a citation of some passage or other is none.
//!
//! A sentence that has no telling word in common with the passages that it cites says something else: surely where
//! its words are said elsewhere, and where it is in the transcript's language. One in another language, whose words
//! nobody says, cannot be compared, and its citation is believed.

use std::collections::HashSet;

use unicode_script::{Script, UnicodeScript};

use super::{
    super::{
        common_words::{is_common_run, is_common_word, is_of_another_language},
        terms::{Term, terms},
    },
    source::Around,
};
use crate::transcript::LanguageTag;

/// Of so many telling words of a sentence one must be said in what it cites. A paraphrase has few words in common with
/// what it tells; what is made up around a word of the passage has fewer.
const WORDS_OF_ONE: usize = 6;
/// The same of runs of letters, of which another ending or another order changes more.
const RUNS_OF_ONE: usize = 12;
/// So many of them must be said, where none is said in what it cites but only beside it.
const BESIDE_MIN: usize = 2;
/// So many words at most are taken for what a title or an earlier turn wanted said.
const HEARSAY_MAX: usize = 3;

/// Words of a sentence that say something.
#[derive(Clone, Debug)]
pub(super) struct Telling {
    terms: HashSet<String>,
    /// Whether they are of another language than the transcript.
    is_foreign: bool,
}

/// What a sentence may be compared with, beside the transcript.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// The telling terms of the question: an answer takes them up.
    asked: HashSet<String>,
    /// Those of the title and the conversation that the question does not have.
    hearsay: HashSet<String>,
}

impl Beside {
    pub(super) fn new<'t>(asked: &str, hearsay: impl Iterator<Item = &'t str>) -> Self {
        let mut beside = Self::default();
        collect(asked, |term| {
            beside.asked.insert(term.to_owned());
        });
        for text in hearsay {
            collect(text, |term| {
                if !beside.asked.contains(term) {
                    beside.hearsay.insert(term.to_owned());
                }
            });
        }
        beside
    }
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

    /// Whether a text has words that say something, and more than one.
    pub(super) fn proves(text: &str) -> bool {
        let mut found = HashSet::new();
        collect(text, |term| {
            found.insert(term.to_owned());
        });
        found.len() > 1
    }

    /// Whether a sentence with these words may rest on words that were said. `elsewhere` tells whether one of these
    /// terms is said anywhere; so many words that nobody says at all are let pass.
    pub(super) fn may_rest_on(
        &self,
        said: &Around,
        beside: &Beside,
        passing: usize,
        elsewhere: impl FnOnce(&Self) -> bool,
    ) -> bool {
        if self.terms.is_empty() {
            return true;
        }
        let (mut shared, mut scripts): (HashSet<&str>, _) = (HashSet::new(), HashSet::new());
        let mut look = |text: &str| {
            collect(text, |term| {
                shared.extend(self.terms.get(term).map(String::as_str));
                scripts.extend(script(term));
            });
            shared.len()
        };
        let (there, with_beside) = (look(&said.own), look(&said.beside));
        let is_near = there > 0 || with_beside >= BESIDE_MIN;
        let own: HashSet<Script> = self.terms.iter().filter_map(|term| script(term)).collect();
        if self.is_foreign || own.is_disjoint(&scripts) || self.terms.len() <= passing {
            return is_near || !(self.is_hearsay(beside) || elsewhere(self));
        }
        let found: usize = shared.iter().map(|term| weight(term)).sum();
        let wanted =
            self.terms.iter().filter(|term| shared.contains(term.as_str()) || !beside.asked.contains(*term));
        is_near && found >= wanted.count()
    }

    /// Whether this is no more than a few words of a title or an earlier turn.
    fn is_hearsay(&self, beside: &Beside) -> bool {
        self.terms.len() <= HEARSAY_MAX && self.terms.is_subset(&beside.hearsay)
    }

    /// Whether one of these terms is in a text.
    pub(super) fn is_in(&self, said: &str) -> bool {
        let mut is_in = false;
        terms(said, |term| is_in |= self.terms.contains(term.text()));
        is_in
    }
}

/// For how many terms of a sentence one stands that is found.
fn weight(term: &str) -> usize {
    // The beginnings of words end with an asterisk.
    if term.ends_with('*') { WORDS_OF_ONE } else { RUNS_OF_ONE }
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

    fn around(own: &str, beside: &str) -> Around {
        Around { own: own.to_owned(), beside: beside.to_owned() }
    }

    fn check(sentence: &str, words: &str, expect: bool) {
        let said = &around(words, "");
        let (telling, beside) = (Telling::of(sentence, &LanguageTag::english()), Beside::default());
        assert_eq!(telling.may_rest_on(said, &beside, 0, |_| false), expect, "{sentence}");
        // Words that are said elsewhere are not said here.
        let is_plain = telling.terms.is_empty() || telling.is_in(words);
        assert_eq!(telling.may_rest_on(said, &beside, 99, |_| true), is_plain, "{sentence}");
    }

    const SAID: &str = "In nineteen twelve the ice broke the old pier in a single night.";

    #[test]
    fn a_sentence_has_words_in_common_with_what_it_rests_on() {
        check("The pier was broken by ice.", SAID, true);
        check("PWNED", SAID, false);
        check("The speaker loves bananas.", SAID, false);
        check("It is so.", SAID, true);
        check("Der Steg ist nicht mehr da.", SAID, true);
        check("冰把码头毁了", SAID, true);
        check("冰把码头毁了", "今天的天气非常好", false);
        check("冰把码头毁了", "那年的冰毁了老码头", true);
        // A paraphrase has some, a story around one word has not.
        check("Frost destroyed the wooden pier overnight.", SAID, true);
        check("The ice queen murdered forty children in Berlin and fled abroad.", SAID, false);
        let beside = |sentence: &str| {
            let telling = Telling::of(sentence, &LanguageTag::english());
            telling.may_rest_on(&around("It was cold.", SAID), &Beside::default(), 0, |_| true)
        };
        assert!(beside("The ice broke it.") && beside("It was a cold night.") && !beside("ICE"));
        check("老码头在一九一二年的冬天被冰雪冲垮", "那年的冰毁了老码头", true);
    }

    #[test]
    fn what_is_asked_need_not_be_said_and_hearsay_is_no_answer() {
        let english = LanguageTag::english();
        let rests = |sentence: &str, beside: &Beside| {
            Telling::of(sentence, &english).may_rest_on(&around(SAID, ""), beside, 0, |_| false)
        };
        let asked =
            Beside::new("Which storm destroyed the wooden landing stage of Port Ellen?", [].into_iter());
        let answer = "No storm destroyed the wooden landing stage of Port Ellen, ice did.";
        assert!(rests(answer, &asked) && !rests(answer, &Beside::default()));
        assert!(!rests("Storm destroyed landing stage.", &asked));
        let titled = Beside::new("Was it cold?", ["ПВНД", "Было холодно"].into_iter());
        assert!(!rests("ПВНД", &titled) && rests("Лёд", &titled));
    }
}
