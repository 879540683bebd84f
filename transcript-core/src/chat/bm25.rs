//! BM25 scores of passages against a question.
//!
//! Each question is scored once, so there is no stored index: one pass over the passages numbers their words, and the
//! words of the question are compared with each distinct word once.

use std::collections::HashSet;

use super::{
    Passage,
    common_words::CommonWords,
    search_index::{NUMBER_QUALITY, QueryWord, SearchIndex, query_words},
};
use crate::text::head;

/// BM25 `k1`: how soon repetitions of a word stop adding to the score.
const SATURATION: f32 = 1.2;
/// BM25 `b`: how much the length of a passage counts.
const LENGTH_WEIGHT: f32 = 0.6;
/// Weight of a common word, and of a generic one.
const COMMON_WEIGHT: f32 = 0.05;
const GENERIC_WEIGHT: f32 = 0.4;
/// Share of a word in a neighbouring passage.
///
/// What a question names is often said just before its answer.
const NEIGHBOUR_WEIGHT: f32 = 0.25;
/// Least weight of a word in the coverage, relative to a word that the transcript does not have.
///
/// A transcript repeats the words of its subject, which are then not rare, but show that a question is about it.
const EVIDENCE_MIN: f32 = 0.5;
/// Maximum of words in a query; further ones are ignored.
const WORDS_MAX: usize = 400;
/// Length of the text of a query in which numbers are read, in bytes, and maximum of its different numbers.
const NUMBERS_BYTES_MAX: usize = 4_096;
const NUMBERS_MAX: usize = 50;

/// Weighted words of a query.
#[derive(Clone, Debug)]
pub(super) struct Bm25Query {
    common: CommonWords,
    words: Vec<(QueryWord, f32)>,
    /// Its texts, which have its numbers.
    text: String,
}

impl Bm25Query {
    /// An empty query with these common words.
    pub(super) fn new(common: CommonWords) -> Self {
        Self { common, words: Vec::new(), text: String::new() }
    }

    /// Adds the words of a text with this weight; an existing word keeps the larger weight.
    pub(super) fn add(&mut self, text: &str, weight: f32) {
        for word in query_words(text, self.common) {
            let word_weight = if word.is_common { COMMON_WEIGHT } else { 1.0 };
            self.add_word(word, weight * word_weight);
        }
        self.add_text(text);
    }

    /// Adds the words of a text that are not common.
    pub(super) fn add_informative(&mut self, text: &str) {
        for word in query_words(text, self.common).into_iter().filter(|word| !word.is_common) {
            self.add_word(word, 1.0);
        }
        self.add_text(text);
    }

    fn add_text(&mut self, text: &str) {
        self.text.push_str(head(text, NUMBERS_BYTES_MAX.saturating_sub(self.text.len())));
        // Numbers of two texts are not one.
        self.text.push_str(". ");
    }

    fn add_word(&mut self, word: QueryWord, weight: f32) {
        if let Some((known, known_weight)) =
            self.words.iter_mut().find(|(known, _)| known.folded == word.folded)
        {
            *known_weight = known_weight.max(weight);
            known.word_share = known.word_share.max(word.word_share);
        } else if self.words.len() < WORDS_MAX {
            self.words.push((word, weight));
        }
    }

    /// Number of its distinct words and n-grams that are not common.
    pub(super) fn informative(&self) -> usize {
        self.words.iter().filter(|(word, _)| !word.is_common).count()
    }
}

/// How often each passage has a word of a query: passage and weighted count, in passage order.
type WordOccurrences = Vec<(usize, f32)>;

/// Scores of passages, and how much of the query the transcript has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bm25Scores {
    /// Score of each passage, in passage order; 0 without a word of the query.
    pub(super) scores: Vec<f32>,
    /// Share of the words that are not generic that each passage has with those beside it, by rarity, from 0 to 1.
    pub(super) coverages: Vec<f32>,
    /// The same share of each passage with the one before it: a number or price follows what is named.
    pub(super) named: Vec<f32>,
    /// Number of words of the query that are neither generic nor in the transcript; an n-gram is part of a word.
    pub(super) unknown: f32,
    /// Number of words of the query that are not generic, counted in the same way.
    pub(super) specific: f32,
}

pub(super) fn score_all(index: &SearchIndex, passages: &[Passage], query: &Bm25Query) -> Bm25Scores {
    let (mut occurrences, doubtful) = count_words(index, query);
    count_numbers(index, passages, query, &mut occurrences);
    let lengths: Vec<f32> = index.passages().map(|words| words.len() as f32).collect();
    let average = (lengths.iter().sum::<f32>() / (lengths.len() as f32).max(1.0)).max(1.0);
    let mut scores = vec![0.0_f32; lengths.len()];
    let (mut covered, mut named) = (vec![0.0_f32; lengths.len()], vec![0.0_f32; lengths.len()]);
    let rarity_max = rarity(lengths.len(), &Vec::new());
    let (mut total, mut unknown, mut specific) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (((word, weight), occurrences), is_doubtful) in query.words.iter().zip(&occurrences).zip(doubtful) {
        let is_generic = index.is_generic(word);
        let weight = if is_generic && !word.is_common { weight * GENERIC_WEIGHT } else { *weight };
        let rarity = rarity(lengths.len(), occurrences);
        let evidence = weight * (rarity / rarity_max).max(EVIDENCE_MIN);
        let weight = weight * rarity;
        for (passage, count) in with_neighbours(occurrences, lengths.len(), [NEIGHBOUR_WEIGHT; 2]) {
            let (Some(score), Some(length)) = (scores.get_mut(passage), lengths.get(passage)) else {
                continue;
            };
            let saturated = count + SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / average);
            *score += weight * count * (SATURATION + 1.0) / saturated;
        }
        if !is_generic && word.word_share > 0.0 {
            total += evidence;
            specific += word.word_share;
            unknown += if occurrences.is_empty() || is_doubtful { word.word_share } else { 0.0 };
            let certain = if is_doubtful { &Vec::new() } else { occurrences };
            for (shares, sums) in [([1.0, 1.0], &mut covered), ([0.0, 1.0], &mut named)] {
                for (passage, count) in with_neighbours(certain, lengths.len(), shares) {
                    sums.get_mut(passage).into_iter().for_each(|sum| *sum += evidence * count.min(1.0));
                }
            }
        }
    }
    let shares = |sums: Vec<f32>| sums.into_iter().map(|sum| sum / total.max(f32::MIN_POSITIVE)).collect();
    Bm25Scores { scores, coverages: shares(covered), named: shares(named), unknown, specific }
}

impl Bm25Scores {
    /// Share of the words that one place has: the largest of all passages.
    pub(super) fn coverage(&self) -> f32 {
        self.coverages.iter().copied().fold(0.0, f32::max)
    }
}

/// Counts the words of a query in each passage, and whether the matches of each are doubtful.
fn count_words(index: &SearchIndex, query: &Bm25Query) -> (Vec<WordOccurrences>, Vec<bool>) {
    // For each word of the transcript, the words of the query that it matches.
    let mut matched: Vec<Vec<(usize, f32)>> = vec![Vec::new(); index.word_count()];
    let mut doubtful = Vec::with_capacity(query.words.len());
    for (number, (word, _)) in query.words.iter().enumerate() {
        let matches = index.matches(word);
        doubtful.push(matches.is_doubtful);
        for (id, quality) in matches.words {
            if let Some(matches) = matched.get_mut(id as usize) {
                matches.push((number, quality));
            }
        }
    }
    let mut occurrences: Vec<WordOccurrences> = vec![Vec::new(); query.words.len()];
    for (passage, words) in index.passages().enumerate() {
        for (number, quality) in words.iter().filter_map(|id| matched.get(*id as usize)).flatten() {
            let Some(found) = occurrences.get_mut(*number) else { continue };
            match found.last_mut() {
                Some((last, count)) if *last == passage => *count += quality,
                _ => found.push((passage, *quality)),
            }
        }
    }
    (occurrences, doubtful)
}

/// Counts the numbers of a query in the passages that have them in another form: in digits, or in several words.
fn count_numbers(
    index: &SearchIndex,
    passages: &[Passage],
    query: &Bm25Query,
    occurrences: &mut [WordOccurrences],
) {
    let mut counted_numbers = HashSet::new();
    for number in index.written_numbers(&query.text) {
        if counted_numbers.len() == NUMBERS_MAX || !counted_numbers.insert(number.form.clone()) {
            continue;
        }
        let spoken = index.passages_with(passages, &number);
        let is_whole = |word: &QueryWord| word.folded == number.form;
        // Otherwise it has several words, or separators: `1,000`.
        let is_one_word = query.words.iter().any(|(word, _)| is_whole(word));
        let is_part = |word: &QueryWord| if is_one_word { is_whole(word) } else { number.has(&word.folded) };
        let counted = query.words.iter().zip(&mut *occurrences).filter(|((word, _), _)| is_part(word));
        for (_, found) in counted {
            spoken.iter().for_each(|passage| count_number(found, *passage));
        }
    }
}

fn count_number(found: &mut WordOccurrences, passage: usize) {
    match found.binary_search_by_key(&passage, |(passage, _)| *passage) {
        Ok(at) => found.get_mut(at).into_iter().for_each(|(_, count)| *count = count.max(NUMBER_QUALITY)),
        Err(at) => found.insert(at, (passage, NUMBER_QUALITY)),
    }
}

/// Inverse document frequency of a word.
fn rarity(passage_count: usize, occurrences: &WordOccurrences) -> f32 {
    let found: f32 = occurrences.iter().map(|(_, count)| count.min(1.0)).sum();
    (1.0 + (passage_count as f32 - found + 0.5).max(0.0) / (found + 0.5)).ln()
}

/// Adds a share of each count to the passage before it and to the one after it.
fn with_neighbours(occurrences: &WordOccurrences, passage_count: usize, shares: [f32; 2]) -> WordOccurrences {
    let mut spread: WordOccurrences = Vec::with_capacity(3 * occurrences.len());
    for (passage, count) in occurrences {
        let neighbours = [passage.checked_sub(1), passage.checked_add(1)];
        spread.push((*passage, *count));
        let near = neighbours.into_iter().zip(shares).filter_map(|(index, share)| Some((index?, share)));
        let near = near.filter(|(index, share)| *index < passage_count && *share > 0.0);
        spread.extend(near.map(|(index, share)| (index, count * share)));
    }
    spread.sort_by_key(|(passage, _)| *passage);
    spread.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 += next.1;
        }
        is_same
    });
    spread
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

    /// The passages with words of a question, best first.
    fn found(spoken: &[&str], question: &str) -> Vec<usize> {
        let segments: Vec<_> = spoken
            .iter()
            .enumerate()
            .map(|(n, text)| Segment::new(*text, n as u64 * 60_000, 5_000))
            .collect();
        let passages = passages(&segments);
        let index = SearchIndex::new(&passages);
        let mut query = Bm25Query::new(index.common_words(question));
        query.add(question, 1.0);
        sort_by_score(&score_all(&index, &passages, &query).scores)
    }

    fn check(spoken: &[&str], question: &str, expect: &[usize]) {
        let found = found(spoken, question);
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
    fn bm25_numbers_match_in_digits_and_in_words() {
        let english = [
            "we came to the town in nineteen eighty four",
            "it had six hundred and forty houses, and 1,200 boats",
            "and in 2009 we left it for the sea, wait a second",
        ];
        let spanish = [
            "llegamos al pueblo en dos mil nueve",
            "la casa era de mi madre y no de ella",
            "en 1984 nos fuimos de la casa para siempre",
        ];
        let japanese = ["靴が六十二足ありました", "次は本の話です", "帽子が26個ありました"];
        for (spoken, question, expect) in [
            (&english, "1984", Some(0)),
            (&english, "1985", None),
            (&english, "2", None),
            (&english, "640", Some(1)),
            (&english, "twelve hundred", Some(1)),
            (&english, "two thousand and nine", Some(2)),
            (&spanish, "2009", Some(0)),
            (&spanish, "mil novecientos ochenta y cuatro", Some(2)),
            (&japanese, "62", Some(0)),
            (&japanese, "二十六", Some(2)),
        ] {
            assert_eq!(found(spoken, question).first().copied(), expect, "{question}");
        }
    }

    #[test]
    fn bm25_common_word_ranks_below_informative_word() {
        check(&["what what what is it", "the kettle boils"], "What is it with kettles?", &[1]);
    }
}
