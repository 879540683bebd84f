//! Exceptions: whether a sentence applies the rule of a passage to what the passage excepts from it.
//!
//! "The ferry runs on Sunday" contradicts "The ferry runs every day except Sunday", and "The ferry does not run on
//! Sunday" agrees with it. Only a sentence of words of the rule and the exception is compared, in languages
//! with spaces.

use std::{collections::HashSet, sync::LazyLock};

use super::{
    super::{
        common_words::{CommonWords, language_of},
        fold::fold,
        tokenizer::{Term, terms},
    },
    negation_words::{NegationWords, folded},
};
use crate::transcript::is_unspaced;

type WordSet = LazyLock<HashSet<String>>;

/// Words for an exception; "apart" and "aside" are such before "from".
static EXCEPTIONS: WordSet = LazyLock::new(|| {
    folded(
        "except excepting excluding exception apart aside außer ausgenommen ausnahme sauf excepté hormis excepto \
         salvo excepción exceto exceção tranne eccetto eccezione behalve uitgezonderd uitzondering кроме исключением \
         крім عدا باستثناء",
    )
});
/// Words for everything, without one of which "apart from" may be "in addition to".
static UNIVERSALS: WordSet = LazyLock::new(|| {
    folded(
        "every each all everyone everybody everything daily always entire täglich jeden jede jeder jedes alle alles \
         allen immer ganze ganzen tous toutes toute tout chaque toujours todos todas todo toda cada siempre sempre \
         ogni tutti tutte tutto tutta elke elk ieder iedere iedereen altijd dagelijks каждый каждую каждое каждого \
         все всех всегда ежедневно кожен щодня всі كل جميع يوميا دائما",
    )
});
/// Words with which nothing is certain: they begin a clause ("except that"), add ("also"), or oppose ("voted against",
/// "the lights are off").
static UNSURE: WordSet = LazyLock::new(|| {
    folded(
        "that when if where because dass wenn weil que quand si cuando che quando se dat als om что если когда чтобы \
         що якщо أن عندما إذا also too auch außerdem aussi également también anche inoltre também ook также тоже ещё \
         також أيضا else other others andere autre autres otro otros against off out bis wie besides",
    )
});
/// Forms of "to be", and articles with which they say what something is: "Tom is a kid in the class".
static BEING: WordSet = LazyLock::new(|| {
    folded("is was are were ist war sind waren est était sont es era son è sono é foi são zijn")
});
static ARTICLES: WordSet =
    LazyLock::new(|| folded("a an one part ein eine eines einer un une uno una unos unas um uma een"));
/// Words that apply a rule to what may be excepted.
static INCLUSIONS: WordSet = LazyLock::new(|| {
    folded(
        "included including inclusive only even inbegriffen eingeschlossen compris incluido incluso compreso включая",
    )
});
/// Maximum of words of an exception, of its informative words, and of those of a rule.
const EXCEPTED_WORDS_MAX: usize = 4;
const EXCEPTED_MAX: usize = 2;
const RULE_MAX: usize = 12;

/// What the exceptions of passages say of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExceptionVerdict {
    Agrees,
    Contradicts,
}

/// A folded word, with its stem if it is informative.
#[derive(Debug)]
struct StatementWord {
    folded: String,
    stem: Option<String>,
}

fn statement_words(text: &str, language: &str) -> Vec<StatementWord> {
    let (common, known) = (CommonWords::of(language), NegationWords::new(language));
    let is_common = |word: &str| common.has_word(word) || UNIVERSALS.contains(word) || known.is_negator(word);
    let mut words: Vec<StatementWord> = Vec::new();
    terms(text, |term| match term {
        Term::Word(word, _) => words.push(StatementWord { folded: word.to_owned(), stem: None }),
        Term::Stem(stem) => {
            if let Some(last) = words.last_mut().filter(|last| !is_common(&last.folded)) {
                last.stem = Some(stem.to_owned());
            }
        }
        Term::Ngram(_) => {}
    });
    words
}

fn stems(words: &[StatementWord]) -> HashSet<&str> {
    words.iter().filter_map(|word| word.stem.as_deref()).collect()
}

fn have(words: &[StatementWord], set: &HashSet<String>) -> bool {
    words.iter().any(|word| set.contains(&word.folded))
}

/// Number of negating words; the French "ne … pas" is one.
fn negations(words: &[StatementWord], language: &str) -> usize {
    let known = NegationWords::new(language);
    let is_negator = |word: &&StatementWord| known.is_negator(&word.folded) && !known.may_limit(&word.folded);
    let is_contracted = |(before, word): &(&StatementWord, &StatementWord)| {
        word.folded == "t" && before.folded.ends_with('n')
    };
    let pairs = words.iter().zip(words.iter().skip(1));
    words.iter().filter(is_negator).count() + pairs.filter(is_contracted).count()
}

fn is_doubtful(words: &[StatementWord], language: &str) -> bool {
    let known = NegationWords::new(language);
    have(words, &UNSURE)
        || words.iter().any(|word| known.is_doubt(&word.folded) || known.is_boundary(&word.folded))
}

/// Index of the first word for an exception.
fn find_exception(words: &[StatementWord]) -> Option<usize> {
    let is_from = |at: usize| words.get(at).is_some_and(|word| word.folded == "from");
    let is_exception = |(at, word): (usize, &StatementWord)| {
        EXCEPTIONS.contains(&word.folded)
            && (!matches!(word.folded.as_str(), "apart" | "aside") || is_from(at + 1))
    };
    words.iter().enumerate().position(is_exception)
}

/// Compares a sentence with the exceptions of passages; `None` if they leave it open.
pub(super) fn compare(sentence: &str, spoken: &str, primary: &str) -> Option<ExceptionVerdict> {
    let mut spoken_words = spoken.split(|c: char| !c.is_alphanumeric());
    if sentence.contains(is_unspaced)
        || sentence.contains(['?', '؟'])
        || !spoken_words.any(|word| EXCEPTIONS.contains(&fold(word)))
    {
        return None;
    }
    let (language, own_language) = (language_of(spoken, primary), language_of(sentence, primary));
    let own = statement_words(sentence, own_language);
    if find_exception(&own).is_some() || is_doubtful(&own, own_language) {
        return None;
    }
    let mut pairs = own.iter().zip(own.iter().skip(1));
    if pairs.any(|(verb, next)| BEING.contains(&verb.folded) && ARTICLES.contains(&next.folded)) {
        return None;
    }
    let all = statement_words(spoken, language);
    // The excepted words have no other statement.
    let is_alone = |stem: &&str| all.iter().filter(|word| word.stem.as_deref() == Some(*stem)).count() == 1;
    let mut before: Vec<StatementWord> = Vec::new();
    for part in spoken.split_inclusive([',', '،', '.', '!', '?', ';', ':', '؟', '(', ')', '–', '—']) {
        let words = statement_words(part, language);
        let goes_on = part.ends_with([',', '،', '(', '–', '—']);
        if !goes_on
            && let Some((rule, excepted)) = exception(&words, &before, language)
            && is_about(&own, rule, excepted)
            && stems(excepted).iter().all(is_alone)
        {
            return match negations(&own, own_language) {
                0 => Some(ExceptionVerdict::Contradicts),
                1 => Some(ExceptionVerdict::Agrees),
                _ => None,
            };
        }
        before = if goes_on { words } else { Vec::new() };
    }
    None
}

/// The rule and the exception of a part of a passage; `before` is the part before its comma.
fn exception<'a>(
    part: &'a [StatementWord],
    before: &'a [StatementWord],
    language: &str,
) -> Option<(&'a [StatementWord], &'a [StatementWord])> {
    let at = find_exception(part)?;
    let (own, excepted) = (part.get(..at)?, part.get(at + 1..)?);
    let rule = if stems(own).is_empty() { before } else { own };
    let is_certain =
        |words: &[StatementWord]| !is_doubtful(words, language) && negations(words, language) == 0;
    let (rule_stems, excepted_stems) = (stems(rule), stems(excepted));
    let is_exception = have(rule, &UNIVERSALS)
        && is_certain(rule)
        && is_certain(excepted)
        && find_exception(excepted).is_none()
        && excepted.len() <= EXCEPTED_WORDS_MAX
        && (1..=EXCEPTED_MAX).contains(&excepted_stems.len())
        && (1..=RULE_MAX).contains(&rule_stems.len())
        && rule_stems.is_disjoint(&excepted_stems);
    is_exception.then_some((rule, excepted))
}

/// Whether a sentence is about the whole exception, and says nothing that is not of it or its rule.
fn is_about(sentence: &[StatementWord], rule: &[StatementWord], excepted: &[StatementWord]) -> bool {
    let (rule, excepted) = (stems(rule), stems(excepted));
    let informative = sentence.iter().filter(|word| !INCLUSIONS.contains(&word.folded));
    let own: HashSet<&str> = informative.filter_map(|word| word.stem.as_deref()).collect();
    own.iter().all(|stem| rule.contains(stem) || excepted.contains(stem))
        && excepted.is_subset(&own)
        && rule.intersection(&own).count() >= rule.len().min(2)
}
