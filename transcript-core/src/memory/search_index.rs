//! The in-memory search index.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use async_trait::async_trait;

use super::SharedState;
use crate::{
    error::Result,
    page::{Page, PageRequest},
    search::{
        ArchiveIndex, CANDIDATES_MAX, Candidate, CandidatePage, CandidateRequest, IndexQuery, IndexedTrack,
        IndexedVideo, RebuildState, SearchDocument, SearchSort, TermCondition, TermRow, VOCABULARY_MAX,
        VocabularyWord,
    },
    video::VideoId,
};

/// Points of a match by the column in which it is.
const TITLE_POINTS: f64 = 4.0;
const EXTRA_POINTS: f64 = 0.5;

/// An in-memory [`ArchiveIndex`], which reads every row for each search. A clone is the same index.
#[derive(Clone, Debug, Default)]
pub struct MemorySearchIndex {
    state: SharedState<MemoryIndexState>,
}

#[derive(Debug, Default)]
struct MemoryIndexState {
    videos: BTreeMap<VideoId, MemoryIndexedVideo>,
    rebuild: RebuildState,
}

#[derive(Debug)]
struct MemoryIndexedVideo {
    change: u64,
    generation: u64,
    documents: Vec<SearchDocument>,
}

/// Score of a row that satisfies a query; `None` if it does not.
fn score(row: &TermRow, query: &IndexQuery) -> Option<f64> {
    let is_excluded = query.none.iter().any(|condition| points(row, condition) > 0.0);
    if is_excluded {
        return None;
    }
    query.all.iter().try_fold(0.0, |sum, condition| {
        let points = points(row, condition);
        (points > 0.0).then_some(sum + points)
    })
}

/// Points of a condition; 0 if it does not hold.
fn points(row: &TermRow, condition: &TermCondition) -> f64 {
    let count = |text: &str, is_match: &dyn Fn(&str) -> bool| {
        text.split(' ').filter(|term| !term.is_empty() && is_match(term)).count() as f64
    };
    match condition {
        TermCondition::Term(wanted) => {
            let is_match = |term: &str| term == wanted;
            TITLE_POINTS * count(&row.title, &is_match)
                + count(&row.channel, &is_match)
                + count(&row.words, &is_match).sqrt()
                + EXTRA_POINTS
                    * [&row.extras, &row.others, &row.facets]
                        .map(|text| count(text, &is_match))
                        .iter()
                        .sum::<f64>()
        }
        TermCondition::Prefix(prefix) => {
            let is_match = |term: &str| term.starts_with(prefix.as_str());
            [&row.title, &row.channel, &row.words, &row.extras, &row.others]
                .map(|text| count(text, &is_match))
                .iter()
                .sum()
        }
        TermCondition::Phrase(words) => {
            phrases(&row.title, words) + phrases(&row.channel, words) + phrases(&row.words, words)
        }
        TermCondition::Channel(words) => phrases(&row.channel, words),
        TermCondition::All(all) => {
            let all: Vec<f64> = all.iter().map(|one| points(row, one)).collect();
            if all.iter().all(|points| *points > 0.0) { all.iter().sum() } else { 0.0 }
        }
        TermCondition::Any(any) => any.iter().map(|one| points(row, one)).sum(),
    }
}

fn phrases(text: &str, words: &[String]) -> f64 {
    let terms: Vec<&str> = text.split(' ').collect();
    terms.windows(words.len().max(1)).filter(|window| window.iter().eq(words.iter())).count() as f64
}

impl MemoryIndexState {
    fn put(&mut self, videos: &[IndexedVideo], generation: u64) {
        for IndexedVideo { video, change, documents } in videos {
            let is_newer = self
                .videos
                .get(video)
                .is_some_and(|known| known.generation == generation && known.change > *change);
            if !is_newer {
                let (change, documents) = (*change, documents.clone());
                self.videos.insert(video.clone(), MemoryIndexedVideo { change, generation, documents });
            }
        }
    }

    /// The best document of each matching video: score, date and selector.
    fn matches(&self, query: &IndexQuery) -> Vec<(f64, i64, Candidate)> {
        let is_within = |document: &&SearchDocument| {
            query.before.is_none_or(|before| document.date < before)
                && query.after.is_none_or(|after| document.date >= after)
        };
        let best = |video: &VideoId, indexed: &MemoryIndexedVideo| {
            indexed
                .documents
                .iter()
                .filter(is_within)
                .filter_map(|document| {
                    let score =
                        document.rows.iter().filter_map(|row| score(row, query)).max_by(f64::total_cmp)?;
                    let (video, selector) = (video.clone(), document.selector.clone());
                    Some((score, document.date.as_millis(), Candidate { video, selector, score }))
                })
                .max_by(|one, other| one.0.total_cmp(&other.0))
        };
        self.videos.iter().filter_map(|(video, indexed)| best(video, indexed)).collect()
    }
}

#[async_trait]
impl ArchiveIndex for MemorySearchIndex {
    fn row_terms(&self) -> usize {
        4_000
    }

    async fn put(
        &self,
        videos: &[IndexedVideo],
        generation: u64,
        rebuild: Option<&RebuildState>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        if state.rebuild.generation > generation {
            return Ok(());
        }
        state.put(videos, generation);
        if let Some(rebuild) = rebuild {
            state.rebuild = rebuild.clone();
            if rebuild.is_complete {
                state.videos.retain(|_, indexed| indexed.generation >= generation);
            }
        }
        Ok(())
    }

    async fn rebuild_state(&self) -> Result<RebuildState> {
        Ok(self.state.lock().rebuild.clone())
    }

    async fn candidates(&self, request: &CandidateRequest) -> Result<CandidatePage> {
        let mut found = self.state.lock().matches(&request.query);
        match request.sort {
            SearchSort::Relevance => found.sort_by(|one, other| {
                other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)).then(one.2.video.cmp(&other.2.video))
            }),
            SearchSort::Date => found.sort_by_key(|one| (Reverse(one.1), one.2.video.clone())),
        }
        let total = found.len() as u64;
        let is_exact = total <= u64::from(CANDIDATES_MAX);
        let page = found.into_iter().take(CANDIDATES_MAX as usize).skip(request.offset as usize);
        let items = page.take(request.limit as usize).map(|(.., candidate)| candidate).collect();
        Ok(CandidatePage { items, total: total.min(u64::from(CANDIDATES_MAX)), is_exact })
    }

    async fn list(&self, page: PageRequest) -> Result<Page<IndexedTrack>> {
        let key = |track: &IndexedTrack| format!("{} {}", track.video, track.selector);
        let state = self.state.lock();
        let mut tracks: Vec<IndexedTrack> = Vec::new();
        for (video, indexed) in &state.videos {
            tracks.extend(indexed.documents.iter().map(|document| IndexedTrack {
                video: video.clone(),
                selector: document.selector.clone(),
                language: document.language.clone(),
                date: document.date,
                digest: document.digest.clone(),
            }));
        }
        tracks.sort_by_cached_key(key);
        let after = page.after.as_ref().map(crate::ids::Cursor::as_str);
        let rest = tracks.into_iter().filter(|track| after.is_none_or(|after| key(track).as_str() > after));
        Ok(Page::cut(rest, &page, key))
    }

    async fn near_words(&self, word: &str) -> Result<Vec<VocabularyWord>> {
        let first = word.chars().next();
        let state = self.state.lock();
        let rows =
            state.videos.values().flat_map(|video| &video.documents).flat_map(|document| &document.rows);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for row in rows {
            let texts = [&row.title, &row.channel, &row.words];
            let terms: BTreeSet<&str> = texts.into_iter().flat_map(|text| text.split(' ')).collect();
            for term in terms.into_iter().filter(|term| term.chars().next() == first) {
                *counts.entry(term).or_default() += 1;
            }
        }
        let words = counts.into_iter().take(VOCABULARY_MAX as usize);
        Ok(words.map(|(word, rows)| VocabularyWord { word: word.to_owned(), rows }).collect())
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::search_index_conformance!(Arc::new(super::MemorySearchIndex::default()));
}
