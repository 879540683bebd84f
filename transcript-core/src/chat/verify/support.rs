//! Decides whether the passages that a sentence cites support it.
//!
//! A sentence without an informative word in common with the cited passages is unsupported if its words occur elsewhere
//! in the transcript, or if it is in the transcript's language. A sentence in another language whose words do not occur
//! in the transcript cannot be compared; its citation is accepted. A sentence without an informative word, such as
//! "Yes", is compared by the words of the question.

use std::{borrow::Cow, collections::HashSet};

use super::{
    super::{
        common_words::{CommonWords, is_common_ngram, is_common_word, is_other_language, is_yes_or_no},
        fold::{fold, is_mark},
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
/// From this many common words of the transcript's language on, a question is in that language.
const OWN_WORDS_MIN: usize = 2;
/// Maximum of terms in a sentence whose words all come from a title or an earlier turn.
const BACKGROUND_TERMS_MAX: usize = 3;

/// Informative terms of a sentence.
#[derive(Clone, Debug)]
pub(super) struct ContentTerms {
    terms: HashSet<String>,
    /// Whether the text is in another language than the transcript.
    is_foreign: bool,
    answer: YesOrNo,
    /// The common words of the languages of the transcript, the question and the text.
    common: CommonWords,
}

/// Whether a text says only "yes" or "no", and in which language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YesOrNo {
    /// It says more, or says it in the transcript's language only.
    None,
    /// Its word is one of the transcript's language and of another one: "no".
    Shared,
    /// Its word is one of another language.
    Foreign,
}

/// What passages have of the terms of a text.
struct TermMatches<'t> {
    shared: HashSet<&'t str>,
    /// Whether they occur in the cited passages, or several of them next to these.
    is_near: bool,
    /// Scripts of all words of the passages.
    scripts: HashSet<Script>,
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
#[derive(Clone, Debug)]
pub(super) struct ExtraContext {
    /// Informative terms of the question; an answer repeats them.
    question: ContentTerms,
    /// Informative terms of the title and the conversation that the question does not have.
    background: HashSet<String>,
    /// Number of common words of the transcript's language in the question.
    own_words: usize,
}

impl ExtraContext {
    pub(super) fn new<'t>(
        question: &str,
        background: impl Iterator<Item = &'t str>,
        language: &LanguageTag,
    ) -> Self {
        let own = CommonWords::of(language.primary());
        let own_words = words(question).filter(|word| own.has_word(&fold(word))).count();
        let question = ContentTerms::new(question, language);
        let terms = background.flat_map(|text| ContentTerms::new(text, language).terms);
        let background = terms.filter(|term| !question.terms.contains(term)).collect();
        Self { question, background, own_words }
    }

    /// Extracts the terms of a text of the answer; the common words of the question's language are none either.
    pub(super) fn content_of(&self, text: &str, language: &LanguageTag) -> ContentTerms {
        ContentTerms::with_common(text, self.question.common, language)
    }

    /// Whether a text is "yes" or "no" to a question in another language, which cannot be compared with passages.
    ///
    /// A short question may have no common word that shows its language.
    pub(super) fn is_foreign_answer(&self, content: &ContentTerms) -> bool {
        match content.answer {
            YesOrNo::None => false,
            YesOrNo::Shared => self.own_words == 0,
            YesOrNo::Foreign => self.own_words < OWN_WORDS_MIN,
        }
    }

    /// Whether the question has a term.
    pub(super) fn is_asked(&self, term: &str) -> bool {
        self.question.terms.contains(term)
    }

    /// Whether passages may answer the question in a sentence without an informative word, such as "Yes".
    ///
    /// They have a word of the question, unless it has none or cannot be compared with them.
    pub(super) fn is_answered_in(&self, spoken: &SpokenContext) -> bool {
        let matches = self.question.matches(spoken);
        self.question.is_empty() || matches.is_near || self.question.is_incomparable(&matches.scripts)
    }
}

impl ContentTerms {
    /// Extracts the terms of a text about a transcript in this language.
    pub(super) fn new(text: &str, language: &LanguageTag) -> Self {
        Self::with_common(text, CommonWords::of(language.primary()), language)
    }

    fn with_common(text: &str, common: CommonWords, language: &LanguageTag) -> Self {
        let primary = language.primary();
        let common = common.with_question(text, primary);
        let is_foreign = is_other_language(text, primary);
        let own = CommonWords::of(primary);
        let is_answer = |word: &str| is_yes_or_no(&fold(word));
        // "Sim" is yes in Portuguese, and a card in an English sentence.
        let is_in_language = is_foreign || words(text).all(is_answer);
        let (answers, others): (Vec<&str>, Vec<&str>) =
            words(text).partition(|word| is_answer(word) && (is_in_language || own.has_word(&fold(word))));
        let mut found = HashSet::new();
        let text = if answers.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(others.join(" ")) };
        collect(
            &text,
            |word| common.has_word(word),
            |term| {
                found.insert(term.to_owned());
            },
        );
        let answer = match answers.first().map(|word| fold(word)) {
            Some(word) if own.is_of_one() && (is_foreign || others.is_empty()) => match own.has_word(&word) {
                false => YesOrNo::Foreign,
                true if own.has_elsewhere(&word) => YesOrNo::Shared,
                true => YesOrNo::None,
            },
            _ => YesOrNo::None,
        };
        Self { terms: found, is_foreign, answer, common }
    }

    /// The terms of a part of the text, which is in the language of the whole.
    pub(super) fn of_part(&self, part: &str, language: &LanguageTag) -> Self {
        let part = Self::with_common(part, self.common, language);
        Self { is_foreign: self.is_foreign || part.is_foreign, ..part }
    }

    /// Whether the text has no informative term.
    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether the text may be a statement, by its number of informative terms.
    pub(super) fn is_statement(&self) -> bool {
        self.terms.len() >= STATEMENT_TERMS_MIN
    }

    /// Whether a text has more than one informative term.
    pub(super) fn is_informative(text: &str) -> bool {
        let mut found = HashSet::new();
        collect(text, is_common_word, |term| {
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
        let TermMatches { shared, is_near, scripts } = self.matches(spoken);
        if self.is_incomparable(&scripts) || self.terms.len() <= unsupported_max {
            return is_near || !(self.is_background_only(extra) || occurs_elsewhere(self));
        }
        let found: usize = shared.iter().map(|term| weight(term)).sum();
        let required =
            self.terms.iter().filter(|term| shared.contains(term.as_str()) || !extra.is_asked(term));
        is_near && found >= required.count()
    }

    /// What passages have of these terms.
    fn matches(&self, spoken: &SpokenContext) -> TermMatches<'_> {
        let (mut shared, mut scripts) = (HashSet::new(), HashSet::new());
        let mut count = |text: &str| {
            // Common words show the script too: captions such as "you" have no others.
            read_terms(
                text,
                |word| self.common.has_word(word),
                |term, is_informative| {
                    scripts.extend(script(term));
                    if is_informative {
                        shared.extend(self.terms.get(term).map(String::as_str));
                    }
                },
            );
            shared.len()
        };
        let (own_matches, all_matches) = (count(&spoken.own), count(&spoken.neighbours));
        let is_near = own_matches > 0 || all_matches >= NEIGHBOUR_TERMS_MIN;
        TermMatches { shared, is_near, scripts }
    }

    /// Whether the text shares no words with passages in these scripts because of its language or script.
    fn is_incomparable(&self, scripts: &HashSet<Script>) -> bool {
        let own: HashSet<Script> = self.terms.iter().filter_map(|term| script(term)).collect();
        self.is_foreign || (!scripts.is_empty() && own.is_disjoint(scripts))
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

/// The words of a text, as they are written.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !is_mark(c)).filter(|word| !word.is_empty())
}

/// Number of terms of a sentence that one shared term supports.
fn weight(term: &str) -> usize {
    // Stems end with an asterisk.
    if term.ends_with('*') { WORDS_PER_MATCH } else { NGRAMS_PER_MATCH }
}

/// Calls `each` for every informative term of a text: stems and n-grams.
fn collect(text: &str, is_common: impl Fn(&str) -> bool, mut each: impl FnMut(&str)) {
    read_terms(text, is_common, |term, is_informative| {
        if is_informative {
            each(term);
        }
    });
}

/// Calls `each` for every term of a text, with whether it is informative: stems and n-grams that are not common.
fn read_terms(text: &str, is_common: impl Fn(&str) -> bool, mut each: impl FnMut(&str, bool)) {
    let mut is_common_stem = false;
    terms(text, |term| match term {
        Term::Word(word, _) => {
            is_common_stem = is_common(word);
            each(word, false);
        }
        Term::Stem(stem) => each(stem, !is_common_stem),
        Term::Ngram(ngram) => each(ngram, !is_common_ngram(ngram)),
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

    fn no_context() -> ExtraContext {
        ExtraContext::new("", [].into_iter(), &LanguageTag::english())
    }

    fn check(sentence: &str, words: &str, expect: bool) {
        let spoken = &context(words, "");
        let (content, extra) = (ContentTerms::new(sentence, &LanguageTag::english()), no_context());
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
        // Passages with only common words, or none, support nothing in their language.
        for spoken in ["you", "Here we go.", "♪ 1 2 3"] {
            check("This video reviews the new iPhone camera.", spoken, false);
        }
        check("Der neue Hafen ist nicht mehr da.", "you", true);
        // Common words of other languages are words here.
        check("He will die in the war.", SPOKEN, false);
        // A paraphrase shares some words; a story around one word does not.
        check("Frost destroyed the wooden pier overnight.", SPOKEN, true);
        check("The ice queen murdered forty children in Berlin and fled abroad.", SPOKEN, false);
        let is_supported_nearby = |sentence: &str| {
            let content = ContentTerms::new(sentence, &LanguageTag::english());
            content.is_supported_by(&context("It was cold.", SPOKEN), &no_context(), 0, |_| true)
        };
        assert!(is_supported_nearby("The ice broke it.") && is_supported_nearby("It was a cold night."));
        assert!(!is_supported_nearby("ICE"));
        check("老码头在一九一二年的冬天被冰雪冲垮", "那年的冰毁了老码头", true);
    }

    #[test]
    fn support_of_empty_answer_requires_words_of_question() {
        let english = LanguageTag::english();
        let is_answered = |question: &str, own: &str, neighbours: &str| {
            ExtraContext::new(question, [].into_iter(), &english).is_answered_in(&context(own, neighbours))
        };
        assert!(is_answered("Did the ice break it?", SPOKEN, ""));
        assert!(is_answered("Did the ice break the pier?", "It was cold.", SPOKEN));
        assert!(!is_answered(
            "Did the harbour master murder the boy?",
            "It was cold.",
            "The harbour museum."
        ));
        assert!(!is_answered("Did the ice break the pier?", "you", ""));
        for question in ["Is it so?", "Ist das Eis nicht mehr da?", "冰把码头毁了吗？"] {
            assert!(is_answered(question, SPOKEN, ""), "{question}");
        }
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
            &english,
        );
        let answer = "No storm destroyed the wooden landing stage of Port Ellen, ice did.";
        assert!(is_supported(answer, &question) && !is_supported(answer, &no_context()));
        assert!(!is_supported("Storm destroyed landing stage.", &question));
        let titled = ExtraContext::new("Was it cold?", ["ПВНД", "Было холодно"].into_iter(), &english);
        assert!(!is_supported("ПВНД", &titled) && is_supported("Лёд", &titled));
    }
}
