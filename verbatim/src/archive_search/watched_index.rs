//! Notes what the calls of an index found: whether it is damaged, since errors of the archive look the same to the
//! callers of both, and whether its build has ended, so that a search need not read that.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use async_trait::async_trait;
use transcript_core::{
    ErrorKind, Page, PageRequest, Result,
    search::{
        ArchiveIndex, CandidatePage, CandidateRequest, IndexedTrack, IndexedVideo, RebuildState,
        VocabularyWord,
    },
};

/// An index, and what its calls found.
#[derive(Debug)]
pub(super) struct WatchedIndex {
    inner: Arc<dyn ArchiveIndex>,
    is_damaged: AtomicBool,
    is_complete: AtomicBool,
}

impl WatchedIndex {
    pub(super) fn new(inner: Arc<dyn ArchiveIndex>) -> Self {
        Self { inner, is_damaged: AtomicBool::new(false), is_complete: AtomicBool::new(false) }
    }

    /// Whether its build had ended when its state was last read.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Relaxed)
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Relaxed)
    }

    fn watch<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt) {
            self.is_damaged.store(true, Relaxed);
        }
        result
    }
}

#[async_trait]
impl ArchiveIndex for WatchedIndex {
    fn row_terms(&self) -> usize {
        self.inner.row_terms()
    }

    async fn put(
        &self,
        videos: &[IndexedVideo],
        generation: u64,
        state: Option<&RebuildState>,
    ) -> Result<()> {
        self.watch(self.inner.put(videos, generation, state).await)
    }

    async fn rebuild_state(&self) -> Result<RebuildState> {
        let state = self.watch(self.inner.rebuild_state().await)?;
        self.is_complete.store(state.is_complete, Relaxed);
        Ok(state)
    }

    async fn optimize(&self) -> Result<()> {
        self.watch(self.inner.optimize().await)
    }

    async fn languages(&self) -> Result<Option<Vec<String>>> {
        self.watch(self.inner.languages().await)
    }

    async fn candidates(&self, request: &CandidateRequest) -> Result<CandidatePage> {
        self.watch(self.inner.candidates(request).await)
    }

    async fn list(&self, page: PageRequest) -> Result<Page<IndexedTrack>> {
        self.watch(self.inner.list(page).await)
    }

    async fn near_words(&self, word: &str) -> Result<Vec<VocabularyWord>> {
        self.watch(self.inner.near_words(word).await)
    }
}
