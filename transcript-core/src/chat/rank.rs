//! BM25: how well each passage fits a query.
//!
//! A question is asked once, so nothing is indexed: one walk over the passages counts the query's own terms, which
//! is less work than building an index of all others.

use std::collections::HashMap;

use super::{
    common_words::{is_common_run, is_common_word},
    passage::Passage,
    terms::{Term, terms},
};

/// How soon more of the same term adds nothing.
const SATURATION: f32 = 1.2;
/// How much a passage's length counts.
const LENGTH: f32 = 0.6;
/// What a word's beginning counts beside the word itself.
const STEM: f32 = 0.7;
/// What a common word counts.
const COMMON: f32 = 0.05;
/// What the passages on either side add: what a question names is often said just before its answer.
const BESIDE: f32 = 0.25;
/// More terms of a query than this are not looked at.
const TERMS_MAX: usize = 4_000;

/// What is searched for: terms, each with a weight.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    places: HashMap<String, usize>,
    weights: Vec<f32>,
    /// How many words or runs of it are not common.
    telling: usize,
}

impl Query {
    /// Adds a text's terms with this weight; a term that is there already keeps the larger one.
    pub(super) fn add(&mut self, text: &str, weight: f32) {
        let mut is_common = false;
        terms(text, |term| {
            is_common = match term {
                Term::Word(word) => is_common_word(word),
                Term::Stem(_) => is_common,
                Term::Gram(run) => is_common_run(run),
            };
            let of_kind = if matches!(term, Term::Stem(_)) { STEM } else { 1.0 };
            let of_word = if is_common { COMMON } else { 1.0 };
            if !is_common && !matches!(term, Term::Stem(_)) {
                self.telling += 1;
            }
            self.put(term.text(), weight * of_kind * of_word);
        });
    }

    /// Adds the terms of a text that are not common.
    pub(super) fn add_telling(&mut self, text: &str) {
        let mut is_common = false;
        terms(text, |term| {
            is_common = match term {
                Term::Word(word) => is_common_word(word),
                Term::Stem(_) => is_common,
                Term::Gram(run) => is_common_run(run),
            };
            if !is_common {
                self.telling += 1;
                self.put(term.text(), 1.0);
            }
        });
    }

    fn put(&mut self, term: &str, weight: f32) {
        if let Some(known) = self.places.get(term).and_then(|place| self.weights.get_mut(*place)) {
            *known = known.max(weight);
        } else if self.weights.len() < TERMS_MAX {
            self.places.insert(term.to_owned(), self.weights.len());
            self.weights.push(weight);
        }
    }

    /// How many words or runs of letters of it say something.
    pub(super) fn telling(&self) -> usize {
        self.telling
    }
}

/// How well each passage fits, in the order of the passages; 0 where it has no term of the query.
pub(super) fn rank(passages: &[Passage], query: &Query) -> Vec<f32> {
    let mut hits: Vec<Vec<(usize, f32)>> = Vec::with_capacity(passages.len());
    let mut lengths: Vec<f32> = Vec::with_capacity(passages.len());
    let mut holding = vec![0_usize; query.weights.len()];
    let mut times = vec![0.0_f32; query.weights.len()];
    for passage in passages {
        let (mut found, mut length) = (Vec::new(), 0.0_f32);
        terms(&passage.text, |term| {
            length += 1.0;
            let place = query.places.get(term.text()).copied();
            if let Some((place, times)) = place.and_then(|place| Some((place, times.get_mut(place)?))) {
                if *times == 0.0 {
                    found.push(place);
                }
                *times += 1.0;
            }
        });
        for place in &found {
            if let Some(holding) = holding.get_mut(*place) {
                *holding += 1;
            }
        }
        let taken = |place| (place, times.get_mut(place).map_or(0.0, std::mem::take));
        hits.push(found.into_iter().map(taken).collect());
        lengths.push(length);
    }
    let own = scores(&hits, &lengths, &holding, query);
    with_neighbours(&own)
}

fn scores(hits: &[Vec<(usize, f32)>], lengths: &[f32], holding: &[usize], query: &Query) -> Vec<f32> {
    let all = lengths.len() as f32;
    let average = (lengths.iter().sum::<f32>() / all.max(1.0)).max(1.0);
    let rarity: Vec<f32> =
        holding.iter().map(|with| (1.0 + (all - *with as f32 + 0.5) / (*with as f32 + 0.5)).ln()).collect();
    let of_hit = |&(place, times): &(usize, f32), length: f32| {
        let (Some(weight), Some(rarity)) = (query.weights.get(place), rarity.get(place)) else { return 0.0 };
        let damped = times + SATURATION * (1.0 - LENGTH + LENGTH * length / average);
        weight * rarity * times * (SATURATION + 1.0) / damped
    };
    hits.iter().zip(lengths).map(|(hits, length)| hits.iter().map(|hit| of_hit(hit, *length)).sum()).collect()
}

fn with_neighbours(own: &[f32]) -> Vec<f32> {
    let at = |place: Option<usize>| place.and_then(|place| own.get(place)).copied().unwrap_or(0.0);
    (0..own.len())
        .map(|place| at(Some(place)) + BESIDE * (at(place.checked_sub(1)) + at(place.checked_add(1))))
        .collect()
}

/// The places of scores above 0, the best first; of equals the earlier one.
pub(super) fn best(scores: &[f32]) -> Vec<usize> {
    let mut places: Vec<usize> =
        scores.iter().enumerate().filter(|(_, score)| **score > 0.0).map(|(place, _)| place).collect();
    let score = |place: &usize| scores.get(*place).copied().unwrap_or(0.0);
    places.sort_by(|one, other| score(other).total_cmp(&score(one)).then(one.cmp(other)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::passages, transcript::Segment};

    fn check(spoken: &[&str], question: &str, expect: &[usize]) {
        let segments: Vec<_> = spoken
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 60_000, 5_000))
            .collect();
        let mut query = Query::default();
        query.add(question, 1.0);
        let found = best(&rank(&passages(&segments), &query));
        assert_eq!(found.get(..expect.len()).unwrap_or(&found), expect, "{question}");
    }

    const TALK: [&str; 5] = [
        "Welcome to the show, what a morning it is.",
        "We invested two million dollars in the harbour.",
        "The bridge over the river was opened in spring.",
        "My grandmother taught me to bake bread.",
        "What I would say is: thank you for watching.",
    ];

    #[test]
    fn a_rare_word_and_its_inflections_decide() {
        check(&TALK, "What does the speaker say about investments?", &[1]);
        check(&TALK, "When did they open the bridges?", &[2]);
        check(&TALK, "Who taught her baking?", &[3]);
        check(&TALK, "xylophone", &[]);
        check(&[], "anything", &[]);
    }

    #[test]
    fn every_script_is_searched() {
        check(&["今天我们讲火山。", "地震是另一回事。", "最后谈谈海啸"], "火山是什么？", &[0]);
        check(
            &["昨日は雨でした。", "東京タワーは一九五八年に完成しました。"],
            "東京タワーはいつ完成しましたか",
            &[1],
        );
        check(&["วันนี้อากาศดี", "น้ำท่วมใหญ่ที่เชียงใหม่"], "น้ำท่วมที่ไหน", &[1]);
        check(&["날씨가 좋습니다", "서울에서 태어났습니다"], "서울은 어디입니까", &[1]);
        check(&["Погода хорошая.", "Он родился в Казани."], "Расскажи про Казань", &[1]);
    }

    #[test]
    fn nothing_is_found_by_a_common_word_before_a_telling_one() {
        check(&["what what what is it", "the kettle boils"], "What is it with kettles?", &[1]);
    }
}
