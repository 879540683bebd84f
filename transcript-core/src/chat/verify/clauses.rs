//! Clauses of a text, with what states and what negates in them.
//!
//! A negating word that a parenthesis or an ellipsis cuts off moves to the clause that goes on behind it: "It is not,
//! however, safe". Marks of a quotation of one or two words end no clause.

use super::{
    super::{
        common_words::{is_common_ngram, is_common_word, is_yes_or_no},
        fold::{fold, is_mark},
        tokenizer::{Term, terms},
    },
    negation_words::{NegationWords, is_ideographic_doubt, is_ideographic_limiter, is_ideographic_suffix},
    normalize::is_single_mark,
    opposites::{PairWord, PairWords},
    quotation_marks::{closing_marks, is_quotation_mark},
};
use crate::transcript::is_unspaced;

/// Longest quotation behind which a clause goes on: two words, or four letters of an unspaced script.
const QUOTED_LENGTH_MAX: usize = 4;
const WORD_LENGTH: usize = 2;
/// Words before a negating word with which it is no open negation: "or not", "if not", "why not".
pub(super) const ALTERNATIVES: &str = "or than why if oder als warum wenn ou si se o of";
/// Words of a clause in which no negation is open: "if it is not".
pub(super) const CONDITIONS: &str = "if whether unless wenn falls ob";
/// Words that begin a new statement, and those that also begin an object: "not, as many say, the oldest".
pub(super) const PRONOUNS: &str = "i you he she it we they ich du er sie wir ihr je tu il elle nous vous ils elles yo ella ellos \
    ellas usted io lui lei noi voi loro eu ele ela eles ik jij hij zij";
pub(super) const DETERMINERS: &str = "the this that these those there which who what my your his her our their der die das ein \
    eine le la les un une el los las lo una het een";

/// A part of a clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// An informative term.
    Term(String),
    /// A negating word.
    Negator,
    /// A negating ending, which covers what precedes it.
    Suffix,
    /// A conjunction.
    Boundary,
    /// A word that denies without a negating word.
    Doubt,
    /// A word for truth.
    Truth(String),
    /// A word that says that something is untrue.
    Untruth,
    /// A word that has an opposite.
    Opposite(PairItem),
}

/// A word that has an opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairItem {
    pub(super) word: PairWord,
    /// Whether the next item is its own term.
    pub(super) has_term: bool,
    /// Whether it may be part of a phrase: "at least", "au moins".
    pub(super) is_phrase: bool,
    /// Whether it also denies: "refused".
    pub(super) denies: bool,
}

/// A clause with at least one item.
#[derive(Debug, Default)]
pub(super) struct Clause {
    pub(super) items: Vec<Item>,
    /// The mark that ends it.
    pub(super) end: Option<char>,
    /// Whether its last negating word, if nothing follows it, negates something behind the clause.
    is_open: bool,
    /// Whether words without an item stand between it and the next clause.
    has_aside: bool,
    /// Its first word, folded.
    first: String,
}

/// Whether a list has a folded word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Finds the ends of clauses.
#[derive(Default)]
struct EndFinder {
    /// Length of the open quotation so far, as in [`QUOTED_LENGTH_MAX`].
    quoted: Option<usize>,
    is_in_word: bool,
}

impl EndFinder {
    /// Whether the next character of a text ends a clause. A mark behind a quotation of several words does.
    fn ends_clause(&mut self, c: char) -> bool {
        if is_quotation_mark(c) {
            self.is_in_word = false;
            let quoted = self.quoted.take();
            self.quoted = quoted.is_none().then_some(0);
            return quoted.is_some_and(|length| length > QUOTED_LENGTH_MAX);
        }
        if let Some(length) = &mut self.quoted {
            *length += match c.is_alphanumeric() {
                true if is_unspaced(c) => 1,
                true if !self.is_in_word => WORD_LENGTH,
                _ => 0,
            };
        }
        self.is_in_word = c.is_alphanumeric() || (self.is_in_word && is_single_mark(c));
        ends_clause(c)
    }
}

/// Whether a character ends a clause.
fn ends_clause(c: char) -> bool {
    !c.is_alphanumeric()
        && !c.is_whitespace()
        && !matches!(c, '-' | '‐' | '‑' | '־' | '֊' | '፡' | '*' | '_' | '%' | '$' | '€' | '£')
        && closing_marks(c).is_none()
        && !is_mark(c)
}

/// Whether a mark may begin or end a parenthesis.
fn is_aside_mark(c: char) -> bool {
    matches!(c, ',' | '，' | '、' | '،' | '–' | '—' | '―' | '(' | ')' | '（' | '）')
}

/// Whether an item begins another clause.
pub(super) fn is_boundary(item: &Item) -> bool {
    *item == Item::Boundary
}

/// The clauses of a text that have items. Each negation is in the clause that it is about.
pub(super) fn clauses(text: &str, words: NegationWords<'_>, pairs: &PairWords) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut ends = EndFinder::default();
    for text in text.replace("...", "…").split_inclusive(|c| ends.ends_clause(c)) {
        let end = text.chars().next_back().filter(|c| ends_clause(*c) || is_quotation_mark(*c));
        let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
        let clause = Clause { end, first: first.map(fold).unwrap_or_default(), ..clause(text, words, pairs) };
        if !clause.items.is_empty() {
            clauses.push(clause);
        } else if let Some(last) = clauses.last_mut() {
            if end.is_some_and(is_aside_mark) {
                last.has_aside |= text.contains(char::is_alphanumeric);
            } else {
                last.end = end;
            }
        }
    }
    move_open_negations(&mut clauses);
    clauses
}

/// Moves each negation that a parenthesis or an ellipsis cuts off to the clause that goes on behind it.
fn move_open_negations(clauses: &mut [Clause]) {
    for index in 0..clauses.len() {
        let Some(target) = negated_clause(clauses, index) else { continue };
        let Some(clause) = clauses.get_mut(index) else { continue };
        let count = clause.items.len();
        while clause.items.last() == Some(&Item::Negator) {
            clause.items.pop();
        }
        if clause.items.len() < count
            && let Some(target) = clauses.get_mut(target)
        {
            target.items.insert(0, Item::Negator);
        }
    }
}

/// Index of the clause that the open negation of another one is about; `None` if there is no such clause.
fn negated_clause(clauses: &[Clause], index: usize) -> Option<usize> {
    let clause = clauses.get(index).filter(|clause| clause.is_open)?;
    let next = clauses.get(index + 1)?;
    let is_parenthesis = next.end.is_some_and(is_aside_mark)
        && next.items.first() != Some(&Item::Boundary)
        && !has(PRONOUNS, &next.first)
        && !has(DETERMINERS, &next.first);
    let target = match clause.end? {
        '…' => index + 1,
        end if is_aside_mark(end) && clause.has_aside => index + 1,
        end if is_aside_mark(end) && is_parenthesis => index + 2,
        _ => return None,
    };
    let goes_on = clauses.get(target).filter(|clause| !has(PRONOUNS, &clause.first))?;
    let items = goes_on.items.split(is_boundary).next()?;
    let negates = |item: &Item| matches!(item, Item::Negator | Item::Suffix);
    let is_negatable = items.iter().any(|item| matches!(item, Item::Term(_))) && !items.iter().any(negates);
    is_negatable.then_some(target)
}

/// Reads a clause: its items, in order.
fn clause(clause: &str, words: NegationWords<'_>, pairs: &PairWords) -> Clause {
    let mut items: Vec<Item> = Vec::new();
    let (mut last, mut is_common) = (String::new(), true);
    // A French "ne" before "que" limits and does not negate.
    let mut limiting: Option<usize> = None;
    let (mut is_open, mut has_term, mut is_conditional) = (false, false, false);
    let (mut earlier_ngram, mut last_ngram) = (String::new(), String::new());
    terms(clause, |term| match term {
        Term::Word(word, lower) => {
            // "Not only" negates nothing.
            if words.is_limiter(word) && items.last() == Some(&Item::Negator) {
                items.pop();
            }
            let follows_common = std::mem::replace(&mut is_common, true);
            is_conditional |= has(CONDITIONS, word);
            is_open &= !has_term;
            if matches!((last.as_str(), word), ("rather", "than") | ("instead", "of")) {
                items.push(Item::Doubt);
            } else if words.is_negator(word) || (word == "t" && last.ends_with('n')) {
                limiting = words.may_limit(word).then_some(items.len());
                items.push(Item::Negator);
                is_open = (follows_common || word == "t") && !has(ALTERNATIVES, &last);
            } else if let Some(index) = limiting.filter(|_| matches!(word, "que" | "qu")) {
                limiting = None;
                items.remove(index);
            } else if words.is_boundary(word) {
                items.push(Item::Boundary);
                has_term = false;
            } else if words.is_doubt(word) {
                items.push(Item::Doubt);
            } else {
                is_common = is_common_word(word);
            }
            if words.is_untruth(word) {
                items.push(Item::Untruth);
            }
            let is_phrase = matches!(last.as_str(), "at" | "au" | "du" | "al" | "lo");
            word.clone_into(&mut last);
            let pair = pairs.find(lower);
            items.extend(pair.map(|pair| {
                Item::Opposite(PairItem {
                    word: pair,
                    has_term: !is_common,
                    is_phrase,
                    denies: words.is_doubt(word),
                })
            }));
        }
        Term::Stem(stem) if !is_common => {
            if words.is_truth(&last) {
                items.push(Item::Truth(stem.to_owned()));
            }
            items.push(Item::Term(stem.to_owned()));
            has_term = true;
            if words.has_negating_ending(&last) {
                items.push(Item::Suffix);
            }
        }
        Term::Ngram(ngram) => {
            add_ngram(&mut items, ngram, [&earlier_ngram, &last_ngram], words);
            std::mem::swap(&mut earlier_ngram, &mut last_ngram);
            ngram.clone_into(&mut last_ngram);
        }
        Term::Stem(_) => {}
    });
    // "The bridge is not", "Never"; but "No" is an answer.
    Clause { items, is_open: is_open && !is_conditional && !is_yes_or_no(&last), ..Clause::default() }
}

/// Adds the item that an n-gram is, if any; `before` are the two before it, the nearest last.
fn add_ngram(items: &mut Vec<Item>, ngram: &str, before: [&str; 2], words: NegationWords<'_>) {
    if is_ideographic_limiter(ngram, before) && items.last() == Some(&Item::Negator) {
        items.pop();
    }
    if is_ideographic_doubt(ngram) {
        items.push(Item::Doubt);
    } else if is_ideographic_suffix(ngram) {
        items.push(Item::Suffix);
    } else if words.is_ideographic_negator(ngram, before) {
        items.push(Item::Negator);
    } else if ngram.chars().count() > 1 && !is_common_ngram(ngram) {
        let pair = |word| Item::Opposite(PairItem { word, has_term: true, is_phrase: false, denies: false });
        // "不同意"
        let [_, last] = before;
        items.extend(PairWords::find_ngram(ngram).filter(|_| last != "不同").map(pair));
        items.push(Item::Term(ngram.to_owned()));
    }
}
