//! Rankings of places of a talk for a question: the engine's, and plain ones to compare it with.

use std::{collections::HashMap, fmt, sync::Arc};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use tokio::sync::Mutex;
use transcript_core::{
    chat::{Chat, EmbedPurpose, Embedder, Passage, Question, passages},
    transcript::{Segment, Transcript},
};

use super::{
    questions::Span,
    talks::{TestTalk, is_spaced},
};

/// A ranking of places of a talk.
#[async_trait]
pub(super) trait Ranking: fmt::Debug + Send + Sync {
    /// Its column in the table.
    fn name(&self) -> &'static str;
    /// At most `count` places, best first.
    async fn rank(&self, talk: &TestTalk, question: &Question, count: usize) -> Result<Vec<Span>>;
}

/// The rankings of the table. The last one is the engine's, whose figures have floors; others are for comparison.
pub(super) fn rankings(chat: &Chat, embedder: Option<Arc<dyn Embedder>>) -> Vec<Box<dyn Ranking>> {
    let mut rankings: Vec<Box<dyn Ranking>> =
        vec![Box::new(Bm25Ranking), Box::new(SearchRanking(chat.clone()))];
    if let Some(embedder) = embedder {
        rankings.push(Box::new(EmbeddingRanking { embedder, last: Mutex::default() }));
    }
    rankings.push(Box::new(EngineRanking(chat.clone())));
    rankings
}

fn span(passage: &Passage) -> Span {
    Span { start_ms: passage.start_ms, end_ms: passage.end_ms }
}

/// The passages of answers without a model.
#[derive(Debug)]
struct EngineRanking(Chat);

#[async_trait]
impl Ranking for EngineRanking {
    fn name(&self) -> &'static str {
        "engine"
    }

    async fn rank(&self, talk: &TestTalk, question: &Question, count: usize) -> Result<Vec<Span>> {
        let passages: Arc<[Passage]> = passages(&talk.transcript.segments).into();
        let indices = self.0.rank(Arc::clone(&passages), question.clone()).await?;
        Ok(indices.iter().filter_map(|index| passages.get(*index)).take(count).map(span).collect())
    }
}

/// The search of the tool `search_transcript`.
#[derive(Debug)]
struct SearchRanking(Chat);

#[async_trait]
impl Ranking for SearchRanking {
    fn name(&self) -> &'static str {
        "search"
    }

    async fn rank(&self, talk: &TestTalk, question: &Question, count: usize) -> Result<Vec<Span>> {
        let passages = self.0.passages(Arc::clone(&talk.transcript)).await?;
        let hits = self.0.search(passages, question.message(), count).await?;
        Ok(hits.passages.iter().map(span).collect())
    }
}

/// Similarity alone, over the passages of the engine.
#[derive(Debug)]
struct EmbeddingRanking {
    embedder: Arc<dyn Embedder>,
    last: Mutex<Option<TalkVectors>>,
}

/// The vectors of the passages of a talk.
#[derive(Debug)]
struct TalkVectors {
    transcript: Arc<Transcript>,
    vectors: Vec<Vec<f32>>,
}

#[async_trait]
impl Ranking for EmbeddingRanking {
    fn name(&self) -> &'static str {
        "vectors"
    }

    async fn rank(&self, talk: &TestTalk, question: &Question, count: usize) -> Result<Vec<Span>> {
        let passages = passages(&talk.transcript.segments);
        let mut last = self.last.lock().await;
        let known = last.take().filter(|known| Arc::ptr_eq(&known.transcript, &talk.transcript));
        let vectors = match known {
            Some(known) => known.vectors,
            None => {
                let texts = passages.iter().map(|passage| passage.text.clone()).collect();
                self.embedder.embed(texts, EmbedPurpose::Passage).await?
            }
        };
        let wanted = self.embedder.embed(vec![question.message().to_owned()], EmbedPurpose::Question).await?;
        let wanted = wanted.first().context("no vector of the question")?;
        let scores: Vec<f64> = vectors.iter().map(|vector| cosine(wanted, vector)).collect();
        *last = Some(TalkVectors { transcript: Arc::clone(&talk.transcript), vectors });
        Ok(best_first(&scores, &passages).take(count).map(|(_, passage)| span(passage)).collect())
    }
}

/// Places with their scores, the best first.
fn best_first<'a, T>(scores: &[f64], places: &'a [T]) -> impl Iterator<Item = (f64, &'a T)> {
    let mut scored: Vec<_> = scores.iter().copied().zip(places).collect();
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    scored.into_iter()
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let product = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    };
    product(one, other) / (product(one, one) * product(other, other)).sqrt().max(f64::MIN_POSITIVE)
}

/// A run of segments.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) span: Span,
    pub(super) text: String,
}

/// A window ends with the segment that reaches this many letters; a letter of an unspaced script counts twice.
const WINDOW_LETTERS: usize = 240;

/// Divides a transcript into windows. Independent of the passages of the tested code on purpose.
pub(super) fn windows(segments: &[Segment]) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    let mut letters = WINDOW_LETTERS;
    for segment in segments {
        let span = Span { start_ms: segment.start_ms, end_ms: segment.end_ms() };
        let more: usize = segment.text.chars().map(|c| if is_unspaced(c) { 2 } else { 1 }).sum();
        match windows.last_mut().filter(|_| letters < WINDOW_LETTERS) {
            Some(window) => {
                window.text.push(' ');
                window.text.push_str(&segment.text);
                window.span.end_ms = span.end_ms;
                letters += more;
            }
            None => {
                windows.push(Window { span, text: segment.text.clone() });
                letters = more;
            }
        }
    }
    windows
}

/// Whether a character is of a script without spaces between words: Thai, Kana, Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{E00}'..='\u{E7F}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}')
}

/// Splits a text into lower-case words, and scripts without spaces into pairs of characters.
///
/// Marks of the scripts of India and Thailand belong to words.
pub(super) fn bm25_terms(text: &str, language: &str) -> Vec<String> {
    let is_mark =
        |c: char| matches!(c, '\u{300}'..='\u{36F}' | '\u{900}'..='\u{963}' | '\u{966}'..='\u{E7F}');
    let is_part = |c: char| c.is_alphanumeric() || is_mark(c);
    // A line break of captions is not a word boundary in these languages.
    let lower = text.to_lowercase().replace('\u{307}', "");
    let joined = if is_spaced(language) { lower } else { lower.replace(' ', "") };
    let mut terms = Vec::new();
    for word in joined.split(|c| !is_part(c)).filter(|word| !word.is_empty()) {
        let letters: Vec<char> = word.chars().collect();
        if letters.iter().any(|c| is_unspaced(*c)) && letters.len() > 1 {
            terms.extend(letters.windows(2).map(String::from_iter));
        } else {
            terms.push(word.to_owned());
        }
    }
    terms
}

/// Plain BM25 over windows.
#[derive(Debug)]
struct Bm25Ranking;

const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;

#[async_trait]
impl Ranking for Bm25Ranking {
    fn name(&self) -> &'static str {
        "BM25"
    }

    async fn rank(&self, talk: &TestTalk, question: &Question, count: usize) -> Result<Vec<Span>> {
        let windows = windows(&talk.transcript.segments);
        let documents: Vec<Vec<String>> =
            windows.iter().map(|window| bm25_terms(&window.text, talk.language())).collect();
        let scores = bm25(&documents, &bm25_terms(question.message(), talk.language()));
        let found = best_first(&scores, &windows).filter(|(score, _)| *score > 0.0);
        Ok(found.take(count).map(|(_, window)| window.span).collect())
    }
}

/// The score of each document.
fn bm25(documents: &[Vec<String>], query: &[String]) -> Vec<f64> {
    let all = documents.len() as f64;
    let average = documents.iter().map(Vec::len).sum::<usize>() as f64 / all.max(1.0);
    let counts: Vec<HashMap<&str, f64>> = documents
        .iter()
        .map(|document| {
            let mut counts = HashMap::new();
            document.iter().for_each(|term| *counts.entry(term.as_str()).or_default() += 1.0);
            counts
        })
        .collect();
    let rarity = |term: &str| {
        let with = counts.iter().filter(|counts| counts.contains_key(term)).count() as f64;
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    };
    let query: Vec<(&str, f64)> = query.iter().map(|term| (term.as_str(), rarity(term))).collect();
    let score = |(counts, document): (&HashMap<&str, f64>, &Vec<String>)| {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * document.len() as f64 / average;
        let of_term = |(term, rarity): &(&str, f64)| {
            let times = counts.get(term).copied().unwrap_or(0.0);
            rarity * times * (SATURATION + 1.0) / (times + SATURATION * length)
        };
        query.iter().map(of_term).sum()
    };
    counts.iter().zip(documents).map(score).collect()
}

#[test]
fn bm25_rare_term_in_short_document_scores_highest() {
    let documents = ["the pier broke", "the pier the pier", "the harbour was very quiet then", "the end"];
    let documents: Vec<Vec<String>> = documents.iter().map(|text| bm25_terms(text, "en")).collect();
    let scores = bm25(&documents, &bm25_terms("Broke, the pier?", "en"));
    let best = (0..scores.len()).max_by(|one, other| scores[*one].total_cmp(&scores[*other]));
    assert_eq!(best, Some(0));
    assert!(scores[1] > scores[3] && scores[3] > 0.0 && scores[2] > 0.0, "{scores:?}");
    assert_eq!(bm25(&documents, &bm25_terms("winter", "en")), [0.0; 4]);
    assert_eq!(bm25_terms("茶园 里，五", "zh"), ["茶园", "园里", "五"]);
    assert_eq!(bm25_terms("हिन्दी में।", "hi"), ["हिन्दी", "में"]);
}
