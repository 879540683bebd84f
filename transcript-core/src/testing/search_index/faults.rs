//! Cases of an index that fails in part, or that another process builds at the same time.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::{SearchFixture, Spoken, clock, id, video};
use crate::{
    archive::Archive,
    error::{Error, Result},
    search::{ArchiveIndex, IndexedVideo, Indexer, RebuildState, SearchParams, VocabularyWord},
    test_doubles::ArchiveIndexWrapper,
    testing::expect_ok,
    video::VideoId,
};

/// What an index returns for documents that it does not store.
fn too_long() -> Error {
    Error::unexpected("the documents are too long")
}

/// An index that stores no documents of one video, and returns no words of its vocabulary.
#[derive(Debug)]
struct FaultyIndex {
    inner: Arc<dyn ArchiveIndex>,
    rejected: VideoId,
    /// The error of a put of its documents, if it fails.
    failure: Mutex<Option<Error>>,
    /// The error of each put with documents, if all of these fail.
    overload: Mutex<Option<Error>>,
    /// The error of each put, if all fail.
    outage: Mutex<Option<Error>>,
    puts: AtomicU64,
    /// Builds the index again, then changes video a, when the state was read for the first time.
    rival: Mutex<Option<SearchFixture>>,
}

impl FaultyIndex {
    fn new(inner: Arc<dyn ArchiveIndex>, rejected: char, rival: Option<SearchFixture>) -> Arc<Self> {
        let rejected = video(&id(rejected));
        let (failure, overload, outage) = (Mutex::new(Some(too_long())), Mutex::default(), Mutex::default());
        let (puts, rival) = (AtomicU64::default(), Mutex::new(rival));
        Arc::new(Self { inner, rejected, failure, overload, outage, puts, rival })
    }
}

/// What an index returns for a put that takes too long.
fn timed_out() -> Error {
    Error::unavailable("a statement timed out")
}

fn set(error: &Mutex<Option<Error>>, value: Option<Error>) {
    *error.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

fn fail(error: &Mutex<Option<Error>>) -> Result<()> {
    error.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
}

#[async_trait]
impl ArchiveIndexWrapper for FaultyIndex {
    fn inner(&self) -> &dyn ArchiveIndex {
        self.inner.as_ref()
    }

    async fn put(
        &self,
        videos: &[IndexedVideo],
        generation: u64,
        state: Option<&RebuildState>,
    ) -> Result<()> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        fail(&self.outage)?;
        if videos.iter().any(|indexed| !indexed.documents.is_empty()) {
            fail(&self.overload)?;
        }
        if videos.iter().any(|indexed| indexed.video == self.rejected && !indexed.documents.is_empty()) {
            fail(&self.failure)?;
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
    let later = Indexer::new(archive, index, clock(), Handle::current());
    expect_ok(later.step().await);
    fixture.check("lantern", "abc").await;
    assert!(expect_ok(fixture.archive.unindexed_videos(9).await).is_empty());
}

/// A video for which the index takes too long keeps no other one out, and is tried again an hour later.
pub async fn put_slow_video_stops_no_other(index: Arc<dyn ArchiveIndex>) {
    let slow = FaultyIndex::new(index, 'a', None);
    let mut fixture = SearchFixture::new(Arc::clone(&slow) as _);
    let (archive, clock) = (Arc::new(fixture.archive.clone()), clock());
    fixture.indexer =
        Indexer::new(archive, Arc::clone(&slow) as _, Arc::clone(&clock) as _, Handle::current());
    // The first word is found by the build of the index, the second one by the changes.
    for word in ["lamp", "lantern"] {
        set(&slow.failure, Some(timed_out()));
        for letter in ['a', 'b', 'c'] {
            let line = format!("a {word}");
            fixture.put(Spoken { id: &id(letter), lines: &[line.as_str()], ..Spoken::default() }).await;
        }
        fixture.index_all().await;
        fixture.check(word, "bc").await;
        let (state, has_work) = expect_ok(fixture.indexer.inspect().await);
        assert!(state.is_complete && !has_work, "{state:?}");
        clock.advance(Duration::from_secs(3_600));
        set(&slow.failure, None);
        fixture.index_all().await;
        fixture.check(word, "abc").await;
    }
    assert!(expect_ok(fixture.archive.unindexed_videos(9).await).is_empty());
    // Of an index out of reach, no video is to blame.
    fixture.put(Spoken { id: &id('d'), lines: &["a lamp"], ..Spoken::default() }).await;
    set(&slow.outage, Some(timed_out()));
    for _ in 0..3 {
        assert!(fixture.indexer.step().await.is_err());
    }
    set(&slow.outage, None);
    fixture.index_all().await;
    fixture.check("lamp", "d").await;
}

/// A video that a build leaves out, because the index takes too long for it, is indexed by the next process.
pub async fn build_slow_video_is_indexed_by_next_process(index: Arc<dyn ArchiveIndex>) {
    let slow = FaultyIndex::new(Arc::clone(&index), 'a', None);
    set(&slow.failure, Some(timed_out()));
    let fixture = SearchFixture::new(slow);
    for letter in ['a', 'b', 'c'] {
        fixture.put(Spoken { id: &id(letter), lines: &["a lamp"], ..Spoken::default() }).await;
    }
    fixture.index_all().await;
    fixture.check("lamp", "bc").await;
    let archive = Arc::new(fixture.archive.clone());
    let next = Indexer::new(archive, index, clock(), Handle::current());
    expect_ok(next.step().await);
    fixture.check("lamp", "abc").await;
    assert!(expect_ok(fixture.archive.unindexed_videos(9).await).is_empty());
}

/// If an index takes too long for all videos, a step fails after a few of them, and leaves one out.
pub async fn put_overloaded_index_fails_after_few_videos(index: Arc<dyn ArchiveIndex>) {
    let slow = FaultyIndex::new(index, 'z', None);
    let mut fixture = SearchFixture::new(Arc::clone(&slow) as _);
    let (archive, clock) = (Arc::new(fixture.archive.clone()), clock());
    fixture.indexer =
        Indexer::new(archive, Arc::clone(&slow) as _, Arc::clone(&clock) as _, Handle::current());
    fixture.index_all().await;
    let put = async |line: &str| {
        set(&slow.overload, Some(timed_out()));
        for letter in 'a'..='e' {
            fixture.put(Spoken { id: &id(letter), lines: &[line], ..Spoken::default() }).await;
        }
    };
    put("a lamp").await;
    let before = slow.puts.load(Ordering::Relaxed);
    assert!(fixture.indexer.step().await.is_err());
    let puts = slow.puts.load(Ordering::Relaxed) - before;
    assert!(puts < 10, "{puts}: one of all, one of none, two of each of three videos, one without documents");
    set(&slow.overload, None);
    fixture.index_all().await;
    fixture.check("lamp", "bcde").await;
    // While it lasts, each step has fewer videos.
    put("a lantern").await;
    for _ in 0..3 {
        assert!(fixture.indexer.step().await.is_err());
    }
    fixture.index_all().await;
    fixture.check("lantern", "").await;
    clock.advance(Duration::from_secs(3_600));
    set(&slow.overload, None);
    fixture.index_all().await;
    fixture.check("lantern", "abcde").await;
    assert!(expect_ok(fixture.archive.unindexed_videos(9).await).is_empty());
}

/// What another process builds again during a step loses no change.
pub async fn step_beside_rebuild_loses_no_change(index: Arc<dyn ArchiveIndex>) {
    let fixture = SearchFixture::new(Arc::clone(&index));
    fixture.put(Spoken { id: &id('a'), lines: &["a lamp"], ..Spoken::default() }).await;
    fixture.index_all().await;
    let archive = Arc::new(fixture.archive.clone());
    let slow = FaultyIndex::new(index, 'z', Some(fixture));
    let indexer = Indexer::new(archive, slow, clock(), Handle::current());
    for _ in 0..3 {
        expect_ok(indexer.step().await);
    }
    assert_eq!(expect_ok(indexer.check(|_| {}).await).total, 0, "the index has the change");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemorySearchIndex;

    /// More slow videos than an indexer remembers end each step with an error; none is lost.
    #[tokio::test]
    async fn build_of_many_slow_videos_loses_none() {
        let slow = FaultyIndex::new(Arc::new(MemorySearchIndex::default()), 'z', None);
        let mut fixture = SearchFixture::new(Arc::clone(&slow) as _);
        let (archive, clock) = (Arc::new(fixture.archive.clone()), clock());
        fixture.indexer =
            Indexer::new(archive, Arc::clone(&slow) as _, Arc::clone(&clock) as _, Handle::current());
        for number in 0..70 {
            let id = format!("{number:011}");
            fixture.put(Spoken { id: &id, lines: &["a lamp"], ..Spoken::default() }).await;
        }
        set(&slow.overload, Some(timed_out()));
        for _ in 0..80 {
            assert!(fixture.indexer.step().await.is_err());
        }
        clock.advance(Duration::from_secs(3_600));
        set(&slow.overload, None);
        fixture.index_all().await;
        let checked = fixture.indexer.check(|_| {}).await.unwrap();
        assert_eq!((checked.compared, checked.total, checked.is_complete), (70, 0, true));
    }
}
