//! Decides whether the passages that a sentence cites support it.
//!
//! A sentence without an informative word in common with the cited passages is unsupported if its words occur elsewhere
//! in the transcript, or if it is in the transcript's language. A sentence in another language whose words do not occur
//! in the transcript cannot be compared; its citation is accepted.

use std::collections::HashSet;

use super::{
    super::{
        common_words::{is_common_ngram, is_common_word, is_other_language},
        tokenizer::{Term, terms},
    },
    transcript_index::SpokenContext,
};
use crate::transcript::LanguageTag;
use crate::transcript::script::{Script, char_script};

/// One in this many informative words of a sentence must occur in the cited passages.
///
/// A paraphrase shares few words with its source; a fabrication around one word of the passage shares fewer.
const WORDS_PER_MATCH: usize = 6;
/// The same for n-grams, of which a different ending or word order changes more.
const NGRAMS_PER_MATCH: usize = 12;
/// Minimum of terms that must occur in the neighbouring passages if none occurs in the cited ones.
const NEIGHBOUR_TERMS_MIN: usize = 2;
/// Least terms of a statement; fewer are a name or a label.
const STATEMENT_TERMS_MIN: usize = 3;
/// Maximum of terms in a sentence whose words all come from a title or an earlier turn.
const BACKGROUND_TERMS_MAX: usize = 3;

/// Informative terms of a sentence.
#[derive(Clone, Debug)]
pub(super) struct ContentTerms {
    terms: HashSet<String>,
    /// Whether the text is in another language than the transcript.
    is_foreign: bool,
}

/// Parts of a sentence that Markdown sets apart: code, table cells and emphasis.
///
/// Each may be a separate false statement beside a true one, which would support the whole sentence.
pub(super) fn separate_parts(sentence: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for mark in ["`", "**", "__"] {
        // What stands between two marks, or behind a mark without a second one.
        parts.extend(sentence.split(mark).skip(1).step_by(if mark == "`" { 1 } else { 2 }));
    }
    if sentence.contains('|') {
        parts.extend(sentence.split('|'));
    }
    parts
}

/// Terms of the question, the title and the conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtraContext {
    /// Informative terms of the question; an answer repeats them.
    question: HashSet<String>,
    /// Informative terms of the title and the conversation that the question does not have.
    background: HashSet<String>,
}

impl ExtraContext {
    pub(super) fn new<'t>(question: &str, background: impl Iterator<Item = &'t str>) -> Self {
        let mut extra = Self::default();
        collect(question, |term| {
            extra.question.insert(term.to_owned());
        });
        for text in background {
            collect(text, |term| {
                if !extra.question.contains(term) {
                    extra.background.insert(term.to_owned());
                }
            });
        }
        extra
    }

    /// Whether the question has a term.
    pub(super) fn is_asked(&self, term: &str) -> bool {
        self.question.contains(term)
    }
}

impl ContentTerms {
    /// Extracts the terms of a text about a transcript in this language.
    pub(super) fn new(text: &str, language: &LanguageTag) -> Self {
        let mut found = HashSet::new();
        collect(text, |term| {
            found.insert(term.to_owned());
        });
        Self { terms: found, is_foreign: is_other_language(text, language.primary()) }
    }

    /// Whether the text may be a statement, by its number of informative terms.
    pub(super) fn is_statement(&self) -> bool {
        self.terms.len() >= STATEMENT_TERMS_MIN
    }

    /// Whether a text has more than one informative term.
    pub(super) fn is_informative(text: &str) -> bool {
        let mut found = HashSet::new();
        collect(text, |term| {
            found.insert(term.to_owned());
        });
        found.len() > 1
    }

    /// Whether `spoken` supports a sentence with these terms.
    ///
    /// `occurs_elsewhere` returns whether one of the terms occurs in the transcript; up to `unsupported_max` terms may
    /// be absent from the transcript.
    pub(super) fn is_supported_by(
        &self,
        spoken: &SpokenContext,
        extra: &ExtraContext,
        unsupported_max: usize,
        occurs_elsewhere: impl FnOnce(&Self) -> bool,
    ) -> bool {
        if self.terms.is_empty() {
            return true;
        }
        let (mut shared, mut scripts): (HashSet<&str>, _) = (HashSet::new(), HashSet::new());
        let mut collect_shared = |text: &str| {
            collect(text, |term| {
                shared.extend(self.terms.get(term).map(String::as_str));
                scripts.extend(script(term));
            });
            shared.len()
        };
        let (own_matches, all_matches) = (collect_shared(&spoken.own), collect_shared(&spoken.neighbours));
        let is_near = own_matches > 0 || all_matches >= NEIGHBOUR_TERMS_MIN;
        let own: HashSet<Script> = self.terms.iter().filter_map(|term| script(term)).collect();
        if self.is_foreign || own.is_disjoint(&scripts) || self.terms.len() <= unsupported_max {
            return is_near || !(self.is_background_only(extra) || occurs_elsewhere(self));
        }
        let found: usize = shared.iter().map(|term| weight(term)).sum();
        let required = self
            .terms
            .iter()
            .filter(|term| shared.contains(term.as_str()) || !extra.question.contains(*term));
        is_near && found >= required.count()
    }

    /// Whether the terms are no more than a few words of a title or an earlier turn.
    fn is_background_only(&self, extra: &ExtraContext) -> bool {
        self.terms.len() <= BACKGROUND_TERMS_MAX && self.terms.is_subset(&extra.background)
    }

    /// Whether one of the terms occurs in a text.
    pub(super) fn occurs_in(&self, spoken: &str) -> bool {
        let mut occurs_in = false;
        terms(spoken, |term| occurs_in |= self.terms.contains(term.text()));
        occurs_in
    }
}

/// Number of terms of a sentence that one shared term supports.
fn weight(term: &str) -> usize {
    // Stems end with an asterisk.
    if term.ends_with('*') { WORDS_PER_MATCH } else { NGRAMS_PER_MATCH }
}

/// Calls `each` for every informative term of a text: stems and n-grams.
fn collect(text: &str, mut each: impl FnMut(&str)) {
    let mut is_common = false;
    terms(text, |term| match term {
        Term::Word(word, _) => is_common = is_common_word(word),
        Term::Stem(stem) if !is_common => each(stem),
        Term::Ngram(ngram) if !is_common_ngram(ngram) => each(ngram),
        Term::Stem(_) | Term::Ngram(_) => {}
    });
}

/// Script of a term's first letter; `None` for a number.
fn script(term: &str) -> Option<Script> {
    match char_script(term.chars().next()?) {
        Script::Common | Script::Inherited => None,
        // Japanese mixes three scripts.
        Script::Hiragana | Script::Katakana => Some(Script::Han),
        script => Some(script),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(own: &str, neighbours: &str) -> SpokenContext {
        SpokenContext { own: own.to_owned(), neighbours: neighbours.to_owned() }
    }

    fn check(sentence: &str, words: &str, expect: bool) {
        let spoken = &context(words, "");
        let (content, extra) =
            (ContentTerms::new(sentence, &LanguageTag::english()), ExtraContext::default());
        assert_eq!(content.is_supported_by(spoken, &extra, 0, |_| false), expect, "{sentence}");
        // Words that occur elsewhere give no support here.
        let is_plain = content.terms.is_empty() || content.occurs_in(words);
        assert_eq!(content.is_supported_by(spoken, &extra, 99, |_| true), is_plain, "{sentence}");
    }

    const SPOKEN: &str = "In nineteen twelve the ice broke the old pier in a single night.";

    #[test]
    fn support_requires_words_in_common() {
        check("The pier was broken by ice.", SPOKEN, true);
        check("PWNED", SPOKEN, false);
        check("The speaker loves bananas.", SPOKEN, false);
        check("It is so.", SPOKEN, true);
        check("Der Steg ist nicht mehr da.", SPOKEN, true);
        check("冰把码头毁了", SPOKEN, true);
        check("冰把码头毁了", "今天的天气非常好", false);
        check("冰把码头毁了", "那年的冰毁了老码头", true);
        // A paraphrase shares some words; a story around one word does not.
        check("Frost destroyed the wooden pier overnight.", SPOKEN, true);
        check("The ice queen murdered forty children in Berlin and fled abroad.", SPOKEN, false);
        let is_supported_nearby = |sentence: &str| {
            let content = ContentTerms::new(sentence, &LanguageTag::english());
            content.is_supported_by(&context("It was cold.", SPOKEN), &ExtraContext::default(), 0, |_| true)
        };
        assert!(is_supported_nearby("The ice broke it.") && is_supported_nearby("It was a cold night."));
        assert!(!is_supported_nearby("ICE"));
        check("老码头在一九一二年的冬天被冰雪冲垮", "那年的冰毁了老码头", true);
    }

    #[test]
    fn support_question_words_count_and_background_does_not() {
        let english = LanguageTag::english();
        let is_supported = |sentence: &str, extra: &ExtraContext| {
            ContentTerms::new(sentence, &english).is_supported_by(&context(SPOKEN, ""), extra, 0, |_| false)
        };
        let question = ExtraContext::new(
            "Which storm destroyed the wooden landing stage of Port Ellen?",
            [].into_iter(),
        );
        let answer = "No storm destroyed the wooden landing stage of Port Ellen, ice did.";
        assert!(is_supported(answer, &question) && !is_supported(answer, &ExtraContext::default()));
        assert!(!is_supported("Storm destroyed landing stage.", &question));
        let titled = ExtraContext::new("Was it cold?", ["ПВНД", "Было холодно"].into_iter());
        assert!(!is_supported("ПВНД", &titled) && is_supported("Лёд", &titled));
    }
}
