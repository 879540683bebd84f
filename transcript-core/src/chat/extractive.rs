//! Answers without a language model: the transcript's own best passages.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;

use super::{
    ChatModel, DeltaSink, ModelReply, ModelRequest, Passage, Question,
    bm25::sort_by_score,
    intent::{
        Intent, asked_time_ms, intent, names_vaguely, passages_after, passages_before, without_list_phrase,
    },
    meaning::{COVERAGE_SUFFICIENT, Similarities, add_meaning, needs_meaning},
    prompt::NOT_COVERED,
    question::{is_greek, is_question_mark},
    retrieve::{LexicalScores, score_lexically},
    search_index::SearchIndex,
    tokenizer::terms,
    whole_video::{asks_for_summary, has_unspaced_words},
};
use crate::error::{Error, Result};

/// Maximum of passages in an answer.
const PASSAGES_MAX: usize = 5;
/// Lowest score of a further passage, relative to the best one.
const RELATIVE_SCORE_MIN: f32 = 0.5;
/// An answer with fewer passages is short.
const FEW_PASSAGES: usize = 3;
/// A list has only what a request names if one place has this share of its words: otherwise, as of "everything that
/// went wrong", other words are spoken.
const LISTED_COVERAGE_MIN: f32 = 0.8;
/// Lowest score of a passage in a list, relative to the best one.
const LIST_SCORE_MIN: f32 = 0.45;
/// A passage asks if at most this many characters follow its last question mark.
const REPLY_CHARS_MAX: usize = 60;
/// Number of passages in the summary of a whole video, one for each equal part.
const SUMMARY_PARTS: usize = 5;
/// Maximum of passages in a list; each equal part has one if it has a good one.
const LIST_PARTS: usize = 8;
/// Longest quotation, in characters. Only a passage of one long segment is longer.
pub(super) const QUOTED_CHARS_MAX: usize = 600;

/// Answers with passages word for word, at once and without a network call.
///
/// It is the default if no language model is configured, and the fallback if nothing of a model's answer could be
/// verified.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractiveModel;

impl ExtractiveModel {
    /// Indices of all passages with a term of the question, best first.
    pub fn rank(passages: &[Passage], question: &Question) -> Vec<usize> {
        sort_by_score(&score_lexically(&SearchIndex::new(passages), passages, question).scores)
    }

    /// Indices of the passages that form the answer, best first.
    ///
    /// For a question about the whole video, they are in transcript order.
    pub fn pick(passages: &[Passage], question: &Question) -> Vec<usize> {
        Retrieval::new(passages, question).pick(passages, |scores| scores.is_covered)
    }
}

/// What the words of a question find in a transcript.
#[derive(Debug)]
pub(super) struct Retrieval {
    index: SearchIndex,
    intent: Intent,
    /// Scores of the passages; none for a whole video and for what follows or precedes the last answer.
    scores: LexicalScores,
}

impl Retrieval {
    pub(super) fn new(passages: &[Passage], question: &Question) -> Self {
        let index = SearchIndex::new(passages);
        let named_time = asked_time_ms(question.message(), passages, &index);
        let intent = named_time.map_or_else(|| intent(question, passages, &index), Intent::At);
        let scores = match &intent {
            Intent::Words => score_lexically(&index, passages, question),
            Intent::List => score_list(&index, passages, question),
            Intent::At(at_ms) => {
                let after = passages_after(passages, *at_ms);
                let score = |index: usize| if index + 1 == after.start { 1.0 } else { 0.0 };
                LexicalScores { scores: (0..passages.len()).map(score).collect(), ..LexicalScores::default() }
            }
            Intent::Part(part) => {
                let inside = centrality(&index).into_iter().enumerate();
                let scores = inside.map(|(at, score)| if part.contains(&at) { 1.0 + score } else { 0.0 });
                LexicalScores { scores: scores.collect(), ..LexicalScores::default() }
            }
            Intent::Whole | Intent::After(_) | Intent::Before(_) => LexicalScores::default(),
        };
        // Other words of a request for a summary describe its form, or the transcript would cover them.
        if intent == Intent::Words && !scores.has_words() && asks_for_summary(question.message()) {
            return Self { index, intent: Intent::Whole, scores: LexicalScores::default() };
        }
        Self { index, intent, scores }
    }

    /// Whether the words leave open which passages answer the question.
    pub(super) fn needs_meaning(&self) -> bool {
        matches!(self.intent, Intent::Words | Intent::List) && needs_meaning(&self.scores)
    }

    /// Ranks the passages by similarity of meaning too.
    pub(super) fn add_meaning(&mut self, similarities: &Similarities) {
        add_meaning(&mut self.scores, similarities);
    }

    /// Whether the question is about the whole video, or about everything of a kind in it.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.intent, Intent::Whole | Intent::List)
    }

    /// Score of each passage, or none, as for a question about the whole video.
    pub(super) fn scores(&self) -> &[f32] {
        &self.scores.scores
    }

    /// As [`ExtractiveModel::pick`], without passages for scores that do not cover the question.
    fn pick(&self, passages: &[Passage], covers: impl Fn(&LexicalScores) -> bool) -> Vec<usize> {
        let scores = &self.scores;
        match &self.intent {
            Intent::Part(part) => {
                let scores = scores.scores.get(part.clone()).unwrap_or_default();
                best_of_parts(scores, SUMMARY_PARTS).into_iter().map(|at| part.start + at).collect()
            }
            Intent::Whole => best_of_parts(&centrality(&self.index), SUMMARY_PARTS),
            Intent::List if scores.coverage >= LISTED_COVERAGE_MIN => select_list(&scores.scores),
            Intent::List if scores.is_covered || scores.coverage > 0.0 => {
                best_of_parts(&scores.scores, LIST_PARTS)
            }
            Intent::List => Vec::new(),
            Intent::After(cited_ms) => passages_after(passages, *cited_ms).take(PASSAGES_MAX).collect(),
            Intent::Before(cited_ms) => {
                let before = passages_before(passages, *cited_ms);
                (before.end.saturating_sub(PASSAGES_MAX)..before.end).collect()
            }
            Intent::At(_) => sort_by_score(&scores.scores),
            Intent::Words if covers(scores) => with_replies(passages, select_best(scores)),
            Intent::Words => Vec::new(),
        }
    }
}

/// Indices of the best passages, best first: those of which no score is far below the best one.
///
/// If they are few and one place lacks words of the question, the passage after the best one follows them: what a
/// question names is often said just before its answer.
fn select_best(scores: &LexicalScores) -> Vec<usize> {
    let LexicalScores { scores, coverage, .. } = scores;
    let indices = sort_by_score(scores);
    let score = |index: &usize| scores.get(*index).copied().unwrap_or(0.0);
    let score_min = indices.first().map_or(0.0, score) * RELATIVE_SCORE_MIN;
    let best = indices.iter().copied().take(PASSAGES_MAX).take_while(|index| score(index) >= score_min);
    let mut best: Vec<usize> = best.collect();
    let after = indices.first().map(|index| index + 1).filter(|index| *index < scores.len());
    if *coverage < COVERAGE_SUFFICIENT && best.len() < FEW_PASSAGES {
        best.extend(after.filter(|index| !best.contains(index)));
    }
    best
}

/// Adds the passage after one that asks: the interviewer has the words of a question, and the guest its answer.
///
/// The best passage also gets the one after it if another speaker begins there, and prefers it to further passages.
fn with_replies(passages: &[Passage], best: Vec<usize>) -> Vec<usize> {
    let mut picked = best.clone();
    for (rank, index) in best.into_iter().enumerate() {
        let reply = index + 1;
        let (Some(passage), Some(next)) = (passages.get(index), passages.get(reply)) else { continue };
        let is_other_speaker = rank == 0 && next.text.starts_with(">>");
        let has_room = rank == 0 || (picked.len() < PASSAGES_MAX && !picked.contains(&reply));
        if !has_room || !(is_other_speaker || ends_with_question(&passage.text)) {
            continue;
        }
        picked.retain(|other| *other != reply);
        let at = picked.iter().position(|other| *other == index).map_or(picked.len(), |at| at + 1);
        picked.insert(at, reply);
    }
    picked.truncate(PASSAGES_MAX);
    picked
}

/// Whether a passage ends with a question, or with a short reply to one.
fn ends_with_question(text: &str) -> bool {
    let has_semicolon = is_greek(text);
    let is_mark = |c: char| is_question_mark(c) || (has_semicolon && c == ';');
    text.rsplit_once(is_mark).is_some_and(|(_, behind)| behind.chars().count() <= REPLY_CHARS_MAX)
}

/// Scores a request for a list without the words that request it: a transcript may have them in another sense.
fn score_list(index: &SearchIndex, passages: &[Passage], question: &Question) -> LexicalScores {
    let listed = without_list_phrase(question);
    let mut scores = score_lexically(index, passages, &listed);
    // Single letters of a word without spaces are in most transcripts.
    if has_unspaced_words(listed.message()) && !scores.is_covered {
        scores.coverage = 0.0;
    }
    scores.is_covered |= scores.coverage == 0.0 && names_vaguely(listed.message(), index);
    scores
}

/// Indices of the passages for a list, in order: the best one of each part, then further ones, none far below the best.
fn select_list(scores: &[f32]) -> Vec<usize> {
    let indices = sort_by_score(scores);
    let score = |index: &usize| scores.get(*index).copied().unwrap_or(0.0);
    let score_min = indices.first().map_or(0.0, score) * LIST_SCORE_MIN;
    let good = |index: &usize| score(index) > 0.0 && score(index) >= score_min;
    let mut picked = best_of_parts(scores, LIST_PARTS);
    picked.retain(good);
    for index in indices.into_iter().filter(good) {
        if picked.len() < LIST_PARTS && !picked.contains(&index) {
            picked.push(index);
        }
    }
    picked.sort_unstable();
    picked
}

/// How characteristic of the video each passage is.
///
/// A word that occurs in several passages, but not in all, characterises a video; a generic word does not.
fn centrality(index: &SearchIndex) -> Vec<f32> {
    let mut passage_counts = vec![0_usize; index.word_count()];
    let distinct: Vec<Vec<u32>> = index
        .passages()
        .map(|words| {
            let mut words = words.to_vec();
            words.sort_unstable();
            words.dedup();
            words
        })
        .collect();
    for word in distinct.iter().flatten() {
        passage_counts.get_mut(*word as usize).into_iter().for_each(|count| *count += 1);
    }
    let passage_count = distinct.len() as f32;
    let weights: Vec<f32> = passage_counts
        .iter()
        .enumerate()
        .map(|(word, count)| {
            let count = *count as f32;
            let is_characteristic = count >= 2.0 && !index.is_generic_id(word);
            if is_characteristic { count.sqrt() * (passage_count / count).ln() } else { 0.0 }
        })
        .collect();
    let weight = |word: &u32| weights.get(*word as usize).copied().unwrap_or(0.0);
    distinct
        .iter()
        .map(|words| words.iter().map(weight).sum::<f32>() / (words.len().max(1) as f32).sqrt())
        .collect()
}

/// Index of the best passage of each of these equal parts, in order; of equal ones the first.
fn best_of_parts(scores: &[f32], parts: usize) -> Vec<usize> {
    let length = scores.len().div_ceil(parts).max(1);
    let best_of = |(part, scores): (usize, &[f32])| {
        let index =
            scores.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1).then(other.0.cmp(&one.0)));
        index.map(|(index, _)| part * length + index)
    };
    scores.chunks(length).enumerate().filter_map(best_of).collect()
}

/// Returns the text of a passage for quotation, without characters that would end the quotation.
fn quote_text(text: &str, question: &str) -> String {
    let plain: String = text
        .chars()
        .take(SEARCHED_CHARS_MAX)
        .map(|c| match c {
            '"' | '“' | '”' | '„' | '«' | '»' | '‹' | '›' | '「' | '」' | '『' | '』' | '[' | ']' | '<'
            | '>' => ' ',
            '【' | '】' | '［' | '］' | '\\' | '`' | '&' | '＂' | '〝' | '〞' | '❝' | '❞' | '″' => {
                ' '
            }
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    excerpt(plain.trim(), question)
}

/// Length of a passage that is searched for the quotation, in characters.
const SEARCHED_CHARS_MAX: usize = 60_000;

/// Returns a text, or the part of a long text with most terms of the question.
fn excerpt(text: &str, question: &str) -> String {
    if text.chars().nth(QUOTED_CHARS_MAX).is_none() {
        return text.to_owned();
    }
    let mut question_terms: HashSet<String> = HashSet::new();
    terms(question, |term| {
        question_terms.insert(term.text().to_owned());
    });
    let letters: Vec<char> = text.chars().take(SEARCHED_CHARS_MAX).collect();
    let score = |piece: &str| {
        let mut hits = 0;
        terms(piece, |term| hits += usize::from(question_terms.contains(term.text())));
        hits
    };
    let pieces = letters.chunks(QUOTED_CHARS_MAX).map(|piece| piece.iter().collect::<String>());
    let best =
        pieces.reduce(|best, next| if score(&next) > score(&best) { next } else { best }).unwrap_or_default();
    // A chunk starts and ends inside words in scripts that separate words.
    match (best.find(char::is_whitespace), best.rfind(char::is_whitespace)) {
        (Some(start), Some(end)) if start < end => best.get(start..end).unwrap_or_default().trim().to_owned(),
        _ => best,
    }
}

impl ExtractiveModel {
    /// Writes the answer to a request from the passages that were found for it.
    ///
    /// `is_fallback`: a language model answered the question. Then only a question of which the transcript has no
    /// word is not covered.
    pub(super) fn write_answer(request: &ModelRequest, found: &Retrieval, is_fallback: bool) -> String {
        let covers = |scores: &LexicalScores| scores.is_covered || (is_fallback && scores.coverage > 0.0);
        let picked = found.pick(&request.passages, covers);
        let lines = picked.iter().filter_map(|index| request.passages.get(*index)).map(|passage| {
            format!("“{}” [s{}]", quote_text(&passage.text, &request.question), passage.number)
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        if text.is_empty() { NOT_COVERED.to_owned() } else { text }
    }
}

#[async_trait]
impl ChatModel for ExtractiveModel {
    fn context_tokens(&self) -> u32 {
        u32::MAX
    }

    async fn complete(
        &self,
        request: ModelRequest,
        deltas: Option<Arc<dyn DeltaSink>>,
    ) -> Result<ModelReply> {
        let question = Question::new(&request.question, request.history.clone())
            .map_err(|error| Error::invalid(error.to_string()))?;
        let found = Retrieval::new(&request.passages, &question);
        let text = Self::write_answer(&request, &found, false);
        if let Some(deltas) = deltas {
            deltas.push(&text);
        }
        Ok(ModelReply { text, usage: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::passages, transcript::Segment};

    fn test_passages(count: u64) -> Vec<Passage> {
        let segments: Vec<_> = (0..count)
            .map(|n| Segment::new(format!("The harbour of part {n} has ships and ships."), n * 60_000, 1_000))
            .collect();
        passages(&segments)
    }

    fn picked(count: u64, question: &str) -> Vec<usize> {
        ExtractiveModel::pick(&test_passages(count), &Question::new(question, Vec::new()).unwrap())
    }

    #[test]
    fn extractive_summary_has_one_passage_per_part() {
        let indices = picked(50, "Summarise it");
        assert_eq!(indices.iter().map(|index| index / 10).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(picked(2, "Summarise it").len(), 2);
        assert!(picked(0, "Summarise it").is_empty());
    }

    #[test]
    fn extractive_unspoken_words_pick_nothing() {
        assert!(picked(5, "xylophone?").is_empty());
        assert_eq!(picked(50, "part 7").first(), Some(&7));
    }

    #[test]
    fn extractive_time_in_question_picks_its_passage() {
        for (question, expect) in [
            ("What is at 2:57?", vec![2]),
            ("What does he say at 2:00?", vec![2]),
            ("2:57に何と言っていますか", vec![2]),
            ("Und bei 0:48:01?", vec![48]),
            ("Was passiert bei 2:57?", vec![2]),
            ("Que se passe-t-il à 2:57 ?", vec![2]),
            ("¿Qué pasa en el minuto 2:57?", vec![2]),
            ("Что происходит на 2:57?", vec![2]),
            ("What is the topic at the 2:57 mark?", vec![2]),
            ("whats going on around 2:57", vec![2]),
            ("Describe 2:57", vec![2]),
        ] {
            assert_eq!(picked(50, question), expect, "{question}");
        }
        let passages = test_passages(50);
        let index = SearchIndex::new(&passages);
        for question in [
            "Which harbour has ships at 2:57?",
            "Does the train leave at 2:57?",
            "What is 16:9?",
            "What is at 2:57:00?",
        ] {
            assert_eq!(asked_time_ms(question, &passages, &index), None, "{question}");
        }
    }

    #[test]
    fn extractive_list_has_only_good_passages() {
        let mut scores = [0.1; 16];
        for index in [3, 4, 5] {
            scores[index] = 1.0;
        }
        assert_eq!(select_list(&scores), [3, 4, 5]);
        assert_eq!(select_list(&[1.0; 16]), [0, 2, 4, 6, 8, 10, 12, 14]);
        assert!(select_list(&[0.0; 16]).is_empty());
    }

    #[test]
    fn extractive_list_of_what_is_not_spoken_is_empty() {
        let english =
            ["we made a list of all of it and the harbour was full", "and then it was over, all of it"];
        let german = ["ich nenne alle meine Boote und das ist die Liste", "und dann war das alles vorbei"];
        let japanese = ["大きな箱を全部出して、例を挙げておきました", "次は本の話です"];
        for (spoken, question, expect) in [
            (english, "List all volcanoes", true),
            (english, "Name all presidents", true),
            (english, "List all the decisions that were made", false),
            (english, "List everything in the harbour", false),
            (german, "Nenne alle Vulkane", true),
            (german, "Nenne alle Boote", false),
            (japanese, "大統領を全部挙げて", true),
            (japanese, "箱を全部挙げて", false),
        ] {
            let segments: Vec<_> =
                (0..).zip(spoken).map(|(n, text)| Segment::new(text, n * 60_000, 5_000)).collect();
            let picked =
                ExtractiveModel::pick(&passages(&segments), &Question::new(question, Vec::new()).unwrap());
            assert_eq!(picked.is_empty(), expect, "{question}");
        }
    }

    #[test]
    fn extractive_short_answer_has_passage_after_best_one() {
        let select = |scores: &[f32], coverage| {
            let scores = LexicalScores { scores: scores.to_vec(), coverage, ..LexicalScores::default() };
            select_best(&scores)
        };
        assert_eq!(select(&[0.0, 1.0, 0.1], 0.5), [1, 2]);
        assert_eq!(select(&[0.0, 0.1, 1.0], 0.5), [2]);
        assert_eq!(select(&[0.0, 1.0, 0.1], 1.0), [1]);
        assert_eq!(select(&[0.9, 1.0, 0.1, 0.8], 0.5), [1, 0, 3]);
    }

    #[test]
    fn extractive_question_of_interviewer_brings_its_reply() {
        for (spoken, expect) in [
            (["How did the town recover?", "Slowly, with help.", "Then came spring."], vec![0, 1]),
            (["How did it recover? Hm.", "Slowly, with help.", "Then came spring."], vec![0, 1]),
            (["町はどう復興しましたか？", "ゆっくりです。", "春が来ました。"], vec![0, 1]),
            (["كيف تعافت البلدة؟", "ببطء.", "ثم جاء الربيع."], vec![0, 1]),
            (["Πώς ανέκαμψε η πόλη;", "Αργά.", "Ήρθε η άνοιξη."], vec![0, 1]),
            (["how did the town recover", ">> slowly", "then came spring"], vec![0, 1]),
            (["The town did recover.", "It was slow; hard.", "Then came spring."], vec![0]),
            (["It cost 2π; or so.", "It was slow.", "Then came spring."], vec![0]),
        ] {
            let segments: Vec<_> =
                (0..).zip(spoken).map(|(n, text)| Segment::new(text, n * 60_000, 5_000)).collect();
            assert_eq!(with_replies(&passages(&segments), vec![0]), expect, "{spoken:?}");
        }
        let segments: Vec<_> =
            (0..8).map(|n| Segment::new("How did it recover?", n * 60_000, 5_000)).collect();
        let replies = |best: &[usize]| with_replies(&passages(&segments), best.to_vec());
        assert_eq!(replies(&[0, 2, 4, 6, 7]), [0, 1, 2, 4, 6]);
        assert_eq!(replies(&[0, 4, 1]), [0, 1, 2, 4, 5]);
        assert_eq!(replies(&[7]), [7]);
    }

    #[test]
    fn extractive_long_segment_quotes_matching_part() {
        let text = format!("{} the kettle boils {}", "filler ".repeat(300), "more ".repeat(300));
        let quote = quote_text(&text, "When does the kettle boil?");
        assert!(quote.contains("kettle") && quote.chars().count() <= QUOTED_CHARS_MAX, "{quote}");
        assert_eq!(quote_text("a “b” [c]", ""), "a  b   c");
    }
}
