//! Cases of an index that fails in part, or that another process builds at the same time.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::{FrozenClock, SearchFixture, Spoken, id, video};
use crate::{
    archive::Archive,
    error::{Error, Result},
    page::{Page, PageRequest},
    search::{
        ArchiveIndex, CandidatePage, CandidateRequest, IndexedTrack, IndexedVideo, Indexer, RebuildState,
        SearchParams, VocabularyWord,
    },
    testing::expect_ok,
    video::VideoId,
};

/// An index that stores no documents of one video, and returns no words of its vocabulary.
#[derive(Debug)]
struct FaultyIndex {
    inner: Arc<dyn ArchiveIndex>,
    rejected: VideoId,
    /// Builds the index again, then changes video a, when the state was read for the first time.
    rival: Mutex<Option<SearchFixture>>,
}

impl FaultyIndex {
    fn new(inner: Arc<dyn ArchiveIndex>, rejected: char, rival: Option<SearchFixture>) -> Arc<Self> {
        Arc::new(Self { inner, rejected: video(&id(rejected)), rival: Mutex::new(rival) })
    }
}

#[async_trait]
impl ArchiveIndex for FaultyIndex {
    fn row_terms(&self) -> usize {
        self.inner.row_terms()
    }

    async fn put(
        &self,
        videos: &[IndexedVideo],
        generation: u64,
        state: Option<&RebuildState>,
    ) -> Result<()> {
        if videos.iter().any(|indexed| indexed.video == self.rejected && !indexed.documents.is_empty()) {
            return Err(Error::unexpected("the documents are too long"));
        }
        self.inner.put(videos, generation, state).await
    }

    async fn rebuild_state(&self) -> Result<RebuildState> {
        let state = self.inner.rebuild_state().await?;
        let rival = self.rival.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(rival) = rival {
            rival.indexer.start_rebuild().await?;
            rival.index_all().await;
            rival.put(Spoken { id: &id('a'), lines: &["a lantern"], ..Spoken::default() }).await;
        }
        Ok(state)
    }

    async fn languages(&self) -> Result<Option<Vec<String>>> {
        self.inner.languages().await
    }

    async fn candidates(&self, request: &CandidateRequest) -> Result<CandidatePage> {
        self.inner.candidates(request).await
    }

    async fn list(&self, page: PageRequest) -> Result<Page<IndexedTrack>> {
        self.inner.list(page).await
    }

    async fn near_words(&self, _word: &str) -> Result<Vec<VocabularyWord>> {
        Err(Error::unavailable("the vocabulary takes too long"))
    }
}

/// Without its suggestion, a search has a result.
pub async fn search_failed_suggestion_is_none(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(FaultyIndex::new(index, 'z', None));
    fixture.put(Spoken { lines: &["the harbour wall"], ..Spoken::default() }).await;
    fixture.index_all().await;
    let page = fixture.page(SearchParams { query: "harbuor".to_owned(), ..SearchParams::default() }).await;
    assert_eq!((page.total.value, page.hits.len(), page.suggestion), (0, 0, None));
}

/// A video that the index rejects keeps no other one out, and stays listed for a later version.
pub async fn put_rejected_video_stops_no_other(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(FaultyIndex::new(Arc::clone(&index), 'a', None));
    let put = async |line: &str| {
        for letter in ['a', 'b', 'c'] {
            fixture.put(Spoken { id: &id(letter), lines: &[line], ..Spoken::default() }).await;
        }
        fixture.index_all().await;
    };
    put("a lamp").await;
    fixture.check("lamp", "bc").await;
    put("a lantern").await;
    fixture.check("lantern", "bc").await;
    let (state, has_work) = expect_ok(fixture.indexer.inspect().await);
    assert!(state.is_complete && !has_work, "{state:?}");
    let listed = expect_ok(fixture.archive.unindexed_videos(9).await);
    assert_eq!(listed.iter().map(|item| &item.video).collect::<Vec<_>>(), [&video(&id('a'))]);

    let archive = Arc::new(fixture.archive.clone());
    let later = Indexer::new(archive, index, Arc::new(FrozenClock), Handle::current());
    expect_ok(later.step().await);
    fixture.check("lantern", "abc").await;
    assert!(expect_ok(fixture.archive.unindexed_videos(9).await).is_empty());
}

/// What another process builds again during a step loses no change.
pub async fn step_beside_rebuild_loses_no_change(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(Arc::clone(&index));
    fixture.put(Spoken { id: &id('a'), lines: &["a lamp"], ..Spoken::default() }).await;
    fixture.index_all().await;
    let archive = Arc::new(fixture.archive.clone());
    let slow = FaultyIndex::new(index, 'z', Some(fixture));
    let indexer = Indexer::new(archive, slow, Arc::new(FrozenClock), Handle::current());
    for _ in 0..3 {
        expect_ok(indexer.step().await);
    }
    assert_eq!(expect_ok(indexer.check(|_| {}).await).total, 0, "the index has the change");
}
