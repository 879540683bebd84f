//! Search in the whole archive (specification 17).
//!
//! A [`ArchiveIndex`] holds the terms of every archived transcript. [`ArchiveSearch`] parses a query, reads candidates
//! from the index, and reads each candidate from the archive before it is shown: a result has no text that the archive
//! does not have, and nothing of a withdrawn video, whatever the index contains. [`Indexer`] keeps the index up to date
//! from the record of changed videos that the archive writes with each change.

mod check;
mod document;
mod expression;
mod indexer;
mod moments;
mod months;
mod newest;
mod phrase;
mod pieces;
mod query;
mod service;
mod suggestion;
#[cfg(test)]
mod tests;
mod text_match;
mod tokens;

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use check::{IndexCheck, IndexDifference};
pub use document::{INDEX_FORMAT, IndexedVideo, ROWS_MAX, SearchDocument, TermRow};
pub use expression::{IndexQuery, TermCondition};
pub use indexer::{IndexProgress, Indexer};
pub use moments::{MOMENTS_MAX, SearchMoment};
pub use query::{QUERY_CHARS_MAX, QUERY_TERMS_MAX, SearchFilters, SearchQuery};
pub use service::{
    ArchiveSearch, LIMIT_MAX, SearchPage, SearchParams, SearchResult, SearchTotal, UnfilteredSearch,
};

use crate::{
    error::Result,
    ids::Cursor,
    page::{Page, PageRequest},
    time::Timestamp,
    transcript::{LanguageTag, TrackSelector},
    video::VideoId,
};

/// Most videos that a query of an index ranks. Beyond, its total is a lower bound.
pub const CANDIDATES_MAX: u32 = 20_000;
/// Most words of the vocabulary that [`ArchiveIndex::near_words`] reads.
pub const VOCABULARY_MAX: u32 = 20_000;

/// Order of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SearchSort {
    /// Best first.
    #[default]
    Relevance,
    /// Newest video first.
    Date,
}

crate::names::names!(
    /// As in the parameter `sort`.
    SearchSort, from_wire {
        Relevance = "relevance",
        Date = "date",
    }
);

/// Which candidates to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateRequest {
    /// The query.
    pub query: IndexQuery,
    /// The order.
    pub sort: SearchSort,
    /// How many candidates to skip.
    pub offset: u32,
    /// Most candidates.
    pub limit: u32,
}

/// A video that may match: its best transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The video.
    pub video: VideoId,
    /// Selector of the transcript.
    pub selector: TrackSelector,
    /// Score: higher is better. Comparable within one query only.
    pub score: f64,
}

/// Candidates in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CandidatePage {
    /// The candidates, one for each video.
    pub items: Vec<Candidate>,
    /// Number of videos that match.
    pub total: u64,
    /// Whether `total` is exact. If not, it is a lower bound.
    pub is_exact: bool,
}

/// State of building an index from the whole archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuildState {
    /// Number of the build. Documents of earlier builds are deleted at its end.
    pub generation: u64,
    /// Version of the terms; see [`INDEX_FORMAT`].
    pub format: u32,
    /// Where the build continues in the list of tracks.
    pub cursor: Option<Cursor>,
    /// Tracks that the build has read.
    pub tracks: u64,
    /// Whether the build has ended.
    pub is_complete: bool,
    /// Number of the newest change of the archive when the index was last written; see
    /// [`crate::archive::Archive::newest_change`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_change: Option<u64>,
}

/// A transcript in an index, without its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedTrack {
    /// The video.
    pub video: VideoId,
    /// The selector.
    pub selector: TrackSelector,
    /// The language.
    pub language: LanguageTag,
    /// The date by which it is sorted.
    pub date: Timestamp,
    /// [`SearchDocument::digest`].
    pub digest: String,
}

/// A word of the vocabulary, and how many rows have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VocabularyWord {
    /// The word, folded.
    pub word: String,
    /// Number of rows with it.
    pub rows: u64,
}

/// Index of the archive's transcripts.
///
/// It holds nothing that cannot be read again from the archive. Each method is one transaction, but for the end of a
/// build; see [`ArchiveIndex::put`]. Every method fails with [`crate::ErrorKind::Unavailable`] if the index cannot be
/// reached, and with [`crate::ErrorKind::Corrupt`] if it is damaged: then it is deleted and built again.
#[async_trait]
pub trait ArchiveIndex: fmt::Debug + Send + Sync + 'static {
    /// Most ordered terms of a row that the index stores well.
    fn row_terms(&self) -> usize;

    /// Replaces all documents of these videos, which belong to this generation; then stores a state of the build.
    ///
    /// **Behaviour**
    /// - A video is skipped if the index has it in the same generation with a higher change: a slower indexer must not
    ///   undo the work of a faster one. A video without documents stays known with its change.
    /// - If the index is of a higher generation, nothing is stored.
    /// - With [`RebuildState::is_complete`], everything of earlier generations is deleted, maybe in several
    ///   transactions after the one of the videos. The state is stored last: until then the build ends again.
    async fn put(&self, videos: &[IndexedVideo], generation: u64, state: Option<&RebuildState>)
    -> Result<()>;

    /// Returns the state of the build; the default of an empty index.
    async fn rebuild_state(&self) -> Result<RebuildState>;

    /// Makes queries faster, and the index smaller, if much was put since the last time.
    ///
    /// A background job calls it while there is nothing to index. A call does a small part of the work, since other
    /// writes wait for it, and returns at once if there is none. Nothing depends on it: an error is logged.
    async fn optimize(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the primary languages of the documents, such as `en`; `None` if the index does not know them.
    ///
    /// A query looks up the stems of these languages. There may be some of which no document is left.
    async fn languages(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    /// Finds candidates.
    ///
    /// **Behaviour**
    /// - All rows of a transcript whose terms satisfy the query make their video a candidate. Each video is listed
    ///   once, with its best transcript.
    /// - At most [`CANDIDATES_MAX`] videos are ranked, any of those that match.
    async fn candidates(&self, request: &CandidateRequest) -> Result<CandidatePage>;

    /// Lists the documents, ordered by video, in pages.
    async fn list(&self, page: PageRequest) -> Result<Page<IndexedTrack>>;

    /// Returns words of the vocabulary that begin like `word`, for the correction of typing errors.
    ///
    /// **Behaviour**: a sample of at most [`VOCABULARY_MAX`] words. The caller compares them.
    async fn near_words(&self, word: &str) -> Result<Vec<VocabularyWord>>;
}
