//! BM25 scores of passages against a query.
//!
//! Each question is scored once, so there is no index: one pass over the passages counts the query's terms, which
//! costs less than indexing all other terms.

use std::collections::HashMap;

use super::{
    common_words::{is_common_ngram, is_common_word},
    passage::Passage,
    tokenizer::{Term, terms},
};

/// BM25 `k1`: how soon repetitions of a term stop adding to the score.
const SATURATION: f32 = 1.2;
/// BM25 `b`: how much the length of a passage counts.
const LENGTH_WEIGHT: f32 = 0.6;
/// Weight of a word's stem relative to the word.
const STEM_WEIGHT: f32 = 0.7;
/// Weight of a common word.
const COMMON_WEIGHT: f32 = 0.05;
/// Share of the neighbours' scores that is added to a passage.
///
/// What a question names is often said just before its answer.
const NEIGHBOUR_WEIGHT: f32 = 0.25;
/// Maximum of terms in a query; further terms are ignored.
const TERMS_MAX: usize = 4_000;

/// Weighted terms of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Bm25Query {
    indices: HashMap<String, usize>,
    weights: Vec<f32>,
    /// Number of its words or n-grams that are not common.
    informative: usize,
}

impl Bm25Query {
    /// Adds the terms of a text with this weight; an existing term keeps the larger weight.
    pub(super) fn add(&mut self, text: &str, weight: f32) {
        let mut is_common = false;
        terms(text, |term| {
            is_common = match term {
                Term::Word(word) => is_common_word(word),
                Term::Stem(_) => is_common,
                Term::Ngram(ngram) => is_common_ngram(ngram),
            };
            let kind_weight = if matches!(term, Term::Stem(_)) { STEM_WEIGHT } else { 1.0 };
            let word_weight = if is_common { COMMON_WEIGHT } else { 1.0 };
            if !is_common && !matches!(term, Term::Stem(_)) {
                self.informative += 1;
            }
            self.add_term(term.text(), weight * kind_weight * word_weight);
        });
    }

    /// Adds the terms of a text that are not common.
    pub(super) fn add_informative(&mut self, text: &str) {
        let mut is_common = false;
        terms(text, |term| {
            is_common = match term {
                Term::Word(word) => is_common_word(word),
                Term::Stem(_) => is_common,
                Term::Ngram(ngram) => is_common_ngram(ngram),
            };
            if !is_common {
                self.informative += 1;
                self.add_term(term.text(), 1.0);
            }
        });
    }

    fn add_term(&mut self, term: &str, weight: f32) {
        if let Some(known) = self.indices.get(term).and_then(|index| self.weights.get_mut(*index)) {
            *known = known.max(weight);
        } else if self.weights.len() < TERMS_MAX {
            self.indices.insert(term.to_owned(), self.weights.len());
            self.weights.push(weight);
        }
    }

    /// Number of its informative words and n-grams.
    pub(super) fn informative(&self) -> usize {
        self.informative
    }
}

/// Scores each passage, in passage order; 0 without a term of the query.
pub(super) fn score_all(passages: &[Passage], query: &Bm25Query) -> Vec<f32> {
    let mut hits: Vec<Vec<(usize, f32)>> = Vec::with_capacity(passages.len());
    let mut lengths: Vec<f32> = Vec::with_capacity(passages.len());
    let mut passage_counts = vec![0_usize; query.weights.len()];
    let mut times = vec![0.0_f32; query.weights.len()];
    for passage in passages {
        let (mut found, mut length) = (Vec::new(), 0.0_f32);
        terms(&passage.text, |term| {
            length += 1.0;
            let index = query.indices.get(term.text()).copied();
            if let Some((index, times)) = index.and_then(|index| Some((index, times.get_mut(index)?))) {
                if *times == 0.0 {
                    found.push(index);
                }
                *times += 1.0;
            }
        });
        for index in &found {
            if let Some(passage_counts) = passage_counts.get_mut(*index) {
                *passage_counts += 1;
            }
        }
        let taken = |index| (index, times.get_mut(index).map_or(0.0, std::mem::take));
        hits.push(found.into_iter().map(taken).collect());
        lengths.push(length);
    }
    let own_scores = bm25_scores(&hits, &lengths, &passage_counts, query);
    add_neighbour_scores(&own_scores)
}

fn bm25_scores(
    hits: &[Vec<(usize, f32)>],
    lengths: &[f32],
    passage_counts: &[usize],
    query: &Bm25Query,
) -> Vec<f32> {
    let passage_count = lengths.len() as f32;
    let average = (lengths.iter().sum::<f32>() / passage_count.max(1.0)).max(1.0);
    let rarity: Vec<f32> = passage_counts
        .iter()
        .map(|with| (1.0 + (passage_count - *with as f32 + 0.5) / (*with as f32 + 0.5)).ln())
        .collect();
    let hit_score = |&(index, times): &(usize, f32), length: f32| {
        let (Some(weight), Some(rarity)) = (query.weights.get(index), rarity.get(index)) else { return 0.0 };
        let saturated = times + SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / average);
        weight * rarity * times * (SATURATION + 1.0) / saturated
    };
    hits.iter()
        .zip(lengths)
        .map(|(hits, length)| hits.iter().map(|hit| hit_score(hit, *length)).sum())
        .collect()
}

fn add_neighbour_scores(own_scores: &[f32]) -> Vec<f32> {
    let at = |index: Option<usize>| index.and_then(|index| own_scores.get(index)).copied().unwrap_or(0.0);
    (0..own_scores.len())
        .map(|index| {
            at(Some(index)) + NEIGHBOUR_WEIGHT * (at(index.checked_sub(1)) + at(index.checked_add(1)))
        })
        .collect()
}

/// Indices of the scores above 0, best first; of equal scores the earlier one first.
pub(super) fn sort_by_score(scores: &[f32]) -> Vec<usize> {
    let mut indices: Vec<usize> =
        scores.iter().enumerate().filter(|(_, score)| **score > 0.0).map(|(index, _)| index).collect();
    let score = |index: &usize| scores.get(*index).copied().unwrap_or(0.0);
    indices.sort_by(|one, other| score(other).total_cmp(&score(one)).then(one.cmp(other)));
    indices
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
        let mut query = Bm25Query::default();
        query.add(question, 1.0);
        let found = sort_by_score(&score_all(&passages(&segments), &query));
        assert_eq!(found.get(..expect.len()).unwrap_or(&found), expect, "{question}");
    }

    const SPOKEN_LINES: [&str; 5] = [
        "Welcome to the show, what a morning it is.",
        "We invested two million dollars in the harbour.",
        "The bridge over the river was opened in spring.",
        "My grandmother taught me to bake bread.",
        "What I would say is: thank you for watching.",
    ];

    #[test]
    fn bm25_rare_word_and_inflections_rank_first() {
        check(&SPOKEN_LINES, "What does the speaker say about investments?", &[1]);
        check(&SPOKEN_LINES, "When did they open the bridges?", &[2]);
        check(&SPOKEN_LINES, "Who taught her baking?", &[3]);
        check(&SPOKEN_LINES, "xylophone", &[]);
        check(&[], "anything", &[]);
    }

    #[test]
    fn bm25_all_scripts_are_searched() {
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
    fn bm25_common_word_ranks_below_informative_word() {
        check(&["what what what is it", "the kettle boils"], "What is it with kettles?", &[1]);
    }
}
