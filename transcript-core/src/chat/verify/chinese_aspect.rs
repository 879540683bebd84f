//! Chinese statements with a particle of aspect that reverse one with 没: 责怪了 of 没有责怪.

use std::collections::HashSet;

/// Particles behind a verb.
const PARTICLES: [char; 5] = ['了', '过', '過', '着', '著'];
/// Letters of a clause with which nothing is certain: questions, conditions, other negations, and times.
const UNSURE: &str = "要吗嗎呢么麼？?不未无無非别別直才若假如果差前时時候话話还還";
const QUESTIONS: [char; 4] = ['吗', '嗎', '？', '?'];
const NEGATIONS: [char; 9] = ['不', '没', '沒', '未', '无', '無', '非', '别', '別'];
/// Letters behind 没 that are no verb with it: 没想到, 没准.
const NO_VERB: &str = "想准準事关關什";
/// Letters before a verb that a sentence may add: pronouns, and words for the past.
const SUBJECTS: &str = "他她它我你们們那这這曾经經已";
const VERB_LETTERS: usize = 2;
/// Letters of a verb of one letter and the begin of its object: 去北京 of 没有去北京.
const OBJECT_LETTERS: usize = 3;
/// Letters before a verb in which a negation is looked for.
const BEFORE_VERB: usize = 6;

fn is_han(c: char) -> bool {
    crate::transcript::is_unspaced(c) && c.is_alphanumeric()
}

/// The runs of letters between punctuation.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !c.is_whitespace() && !QUESTIONS.contains(&c))
}

/// Whether a sentence states with a particle what the passages negate with 没, and state nowhere.
pub(super) fn contradicts(sentence: &str, spoken: &str) -> bool {
    let pairs = sentence.chars().zip(sentence.chars().skip(1));
    let verb_ends: HashSet<char> =
        pairs.filter(|(_, c)| PARTICLES.contains(c)).map(|(before, _)| before).collect();
    !verb_ends.is_empty() && clauses(spoken).any(|clause| is_reversed(clause, sentence, spoken, &verb_ends))
}

/// Whether a sentence states what a clause of the passages negates; `verb_ends` are its letters before particles.
fn is_reversed(clause: &str, sentence: &str, spoken: &str, verb_ends: &HashSet<char>) -> bool {
    let Some((before, behind)) = clause.split_once(['没', '沒']) else { return false };
    let behind = behind.strip_prefix('有').unwrap_or(behind);
    let behind = behind.strip_prefix('人').unwrap_or(behind);
    let letters: Vec<char> = behind.chars().take(OBJECT_LETTERS).take_while(|c| is_han(*c)).collect();
    let (Some(verb), Some(first)) = (letters.get(..VERB_LETTERS), letters.first()) else { return false };
    let is_certain = verb.iter().any(|c| verb_ends.contains(c))
        && !NO_VERB.contains(*first)
        && !verb.iter().any(|c| PARTICLES.contains(c))
        && !before.ends_with('有')
        && !before.contains(|c| UNSURE.contains(c))
        && !behind.contains(|c| UNSURE.contains(c) || NEGATIONS.contains(&c));
    if !is_certain {
        return false;
    }
    let verb: String = verb.iter().collect();
    // Who did not do it, and when, stands before the verb.
    let known = spoken.split(&verb).next().unwrap_or_default();
    // 去了北京 of 没有去北京
    let object: Option<String> = (letters.len() == OBJECT_LETTERS).then(|| letters.iter().skip(1).collect());
    let is_stated = clauses(sentence).any(|clause| {
        states(clause, &verb, "", known)
            || object.as_ref().is_some_and(|object| states(clause, &first.to_string(), object, known))
    });
    // 我没有去北京，他去了北京。
    let is_spoken = object.as_ref().is_some_and(|object| {
        spoken.match_indices(*first).any(|(at, letter)| {
            let behind = spoken.get(at + letter.len()..).and_then(|behind| behind.strip_prefix(PARTICLES));
            behind.is_some_and(|behind| behind.starts_with(object.as_str()))
        })
    });
    is_stated && !is_spoken && spoken.matches(&verb).count() == 1
}

/// Whether a clause has a verb with a particle before an object, behind no negation and no letters that are not known.
fn states(clause: &str, verb: &str, object: &str, known: &str) -> bool {
    clause.match_indices(verb).any(|(at, _)| {
        let before = clause.get(..at).unwrap_or_default();
        let behind = clause.get(at + verb.len()..).and_then(|behind| behind.strip_prefix(PARTICLES));
        behind.is_some_and(|behind| behind.starts_with(object))
            && !clause.contains(QUESTIONS)
            && !before.chars().rev().take(BEFORE_VERB).any(|c| NEGATIONS.contains(&c))
            && before.chars().all(|c| SUBJECTS.contains(c) || known.contains(c))
    })
}
