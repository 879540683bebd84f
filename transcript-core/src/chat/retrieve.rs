//! Which passages a question is about.

use super::{
    Passage, Question, Role,
    intent::last_cited,
    rank::{Query, best, rank},
};

/// What earlier questions count in one that says little by itself, the last one first.
const EARLIER: [f32; 2] = [0.5, 0.25];
/// What they count in one that says enough.
const EARLIER_BESIDE: f32 = 0.1;
/// A question with fewer telling words leans on what was said before.
const TELLING_ENOUGH: usize = 3;
/// How much nearer to what was cited last a passage of a leaning question is taken to be.
const NEAR: f32 = 0.3;
/// How far from a cited moment that reaches, in milliseconds.
const NEAR_MS: u64 = 120_000;

/// How well each passage fits a question, in the order of the passages, with what was asked before it in mind.
pub(super) fn fitting(passages: &[Passage], question: &Question) -> Vec<f32> {
    let mut query = Query::default();
    query.add(question.message(), 1.0);
    let leans = query.telling() < TELLING_ENOUGH;
    let asked = question.history().iter().rev().filter(|turn| turn.role == Role::User);
    for (turn, weight) in asked.zip(EARLIER) {
        query.add(&turn.content, if leans { weight } else { weight * EARLIER_BESIDE });
    }
    let mut scores = rank(passages, &query);
    if let Some((first, last)) = last_cited(question).filter(|_| leans) {
        let from = first.saturating_sub(NEAR_MS);
        let to = last.saturating_add(NEAR_MS);
        for (score, passage) in scores.iter_mut().zip(passages) {
            if passage.end_ms >= from && passage.start_ms <= to {
                *score *= 1.0 + NEAR;
            }
        }
    }
    scores
}

/// The places of passages that are at most `budget` tokens together, in order: the first, which says what it is
/// about, then the best, each with the one before it and the two after it.
pub(super) fn within(passages: &[Passage], scores: &[f32], budget: u64) -> Vec<usize> {
    let mut picked = vec![false; passages.len()];
    let mut left = budget;
    let mut pick = |place: usize| {
        let (Some(passage), Some(is_picked)) = (passages.get(place), picked.get_mut(place)) else { return };
        if *is_picked {
            return;
        }
        if let Some(rest) = left.checked_sub(passage.tokens()) {
            left = rest;
            *is_picked = true;
        }
    };
    // The best comes first even where there is room for one only.
    let places = best(scores);
    for place in places.iter().take(1).copied().chain([0]).chain(places.iter().copied()) {
        pick(place);
        for beside in [place.checked_sub(1), Some(place + 1), Some(place + 2)].into_iter().flatten() {
            pick(beside);
        }
    }
    // What is left goes to passages spread over the whole, where the words of the question are in few.
    for place in spread(passages.len()) {
        pick(place);
    }
    picked.iter().enumerate().filter(|(_, is_picked)| **is_picked).map(|(place, _)| place).collect()
}

/// All places below `count`, far apart from each other first.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let top = count.next_power_of_two();
    let bits = top.trailing_zeros();
    // The bits of a running number, backwards: each one lies in the middle of the largest gap.
    (0..top)
        .map(move |n| if bits == 0 { n } else { n.reverse_bits() >> (usize::BITS - bits) })
        .filter(move |place| *place < count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{Turn, passages},
        transcript::Segment,
    };

    fn talk(spoken: &[&str]) -> Vec<Passage> {
        let segments: Vec<_> = spoken
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 60_000, 5_000))
            .collect();
        passages(&segments)
    }

    #[test]
    fn a_question_that_says_little_leans_on_what_was_said() {
        let talk = talk(&[
            "The harbour cost much.",
            "Nothing here.",
            "Bread needs flour.",
            "More.",
            "It cost more.",
        ]);
        let turns =
            [(Role::User, "How much flour for bread?"), (Role::Assistant, "“Bread needs flour.” [2:00]")]
                .map(|(role, content)| Turn { role, content: content.to_owned() });
        let first = |question: &str, turns: &[Turn]| {
            let question = Question::new(question, turns.to_vec()).unwrap();
            best(&fitting(&talk, &question)).first().copied()
        };
        assert_eq!(first("Why?", &turns), Some(2));
        assert_eq!(first("And the harbour, its cost?", &turns), Some(0));
        assert_eq!(first("Why?", &[]), None);
    }

    #[test]
    fn the_budget_holds_the_best_first_and_is_kept() {
        let talk = talk(&["aaa", "bbb", "ccc", "ddd", "eee", "fff"]);
        let scores = [0.0, 0.0, 0.0, 0.0, 5.0, 0.0];
        let each = talk[0].tokens();
        assert_eq!(within(&talk, &scores, each), [4]);
        assert_eq!(within(&talk, &scores, 4 * each), [0, 3, 4, 5]);
        assert_eq!(within(&talk, &scores, 99 * each), [0, 1, 2, 3, 4, 5]);
        assert!(within(&talk, &scores, each - 1).is_empty());
        assert_eq!(spread(5).collect::<Vec<_>>(), [0, 4, 2, 1, 3]);
        assert_eq!(spread(0).count(), 0);
        assert_eq!(spread(1).collect::<Vec<_>>(), [0]);
    }
}
