//! Searches during the build of the index, and what its job reports.

use async_trait::async_trait;
use tokio::sync::mpsc;
use transcript_core::{
    Error, Retry,
    memory::MemorySearchIndex,
    search::{CandidatePage, CandidateRequest},
};

use super::*;
use crate::{ImportRequest, Options, StorageOptions, SupplierOptions};

/// More transcripts than one step of a build reads.
const VIDEOS: u64 = 120;

async fn open_with_videos() -> Verbatim {
    open_with_videos_in(StorageOptions::default()).await
}

async fn open_with_videos_in(storage: StorageOptions) -> Verbatim {
    let verbatim = open_in(storage).await;
    import_videos(&verbatim).await;
    verbatim
}

async fn open_in(storage: StorageOptions) -> Verbatim {
    let options = Options { storage, suppliers: SupplierOptions::none(), ..Options::default() };
    Verbatim::open(options).await.unwrap()
}

async fn import_videos(verbatim: &Verbatim) {
    for number in 0..VIDEOS {
        let import = ImportRequest {
            link: format!("https://youtu.be/video{number:06}"),
            captions: b"WEBVTT\n\n00:01.000 --> 00:02.000\nthe tide\n".to_vec(),
            language: Some("en".to_owned()),
            ..ImportRequest::default()
        };
        verbatim.tools().import(import).await.unwrap();
    }
}

async fn index_all(verbatim: &Verbatim) {
    while !verbatim.search().step().await.unwrap().is_idle() {}
}

#[tokio::test]
async fn search_total_is_lower_bound_during_build() {
    let verbatim = open_with_videos().await;
    // As in a process whose indexer has made one step.
    verbatim.search().state.is_followed.store(true, Ordering::Relaxed);
    assert!(!verbatim.search().step().await.unwrap().state.is_complete);
    let params = SearchParams { query: "tide".to_owned(), ..SearchParams::default() };
    let total = verbatim.search().search(&params).await.unwrap().total;
    assert!((1..VIDEOS).contains(&total.value) && !total.is_exact, "{total:?}");
    index_all(&verbatim).await;
    let total = verbatim.search().search(&params).await.unwrap().total;
    assert_eq!((total.value, total.is_exact), (VIDEOS, true));
}

#[tokio::test]
async fn search_total_is_lower_bound_while_many_changes_wait() {
    let verbatim = open_in(StorageOptions::default()).await;
    index_all(&verbatim).await;
    verbatim.search().state.is_followed.store(true, Ordering::Relaxed);
    import_videos(&verbatim).await;
    let params = SearchParams { query: "tide".to_owned(), ..SearchParams::default() };
    let mut totals = Vec::new();
    for _ in 0..3 {
        let total = verbatim.search().search(&params).await.unwrap().total;
        totals.push((total.value, total.is_exact));
        verbatim.search().step().await.unwrap();
    }
    assert_eq!(totals, [(0, false), (64, true), (VIDEOS, true)]);
}

/// An index that is found to be damaged when it is first searched.
#[derive(Debug, Default)]
struct DamagedIndex {
    inner: MemorySearchIndex,
    is_replaced: AtomicBool,
}

#[async_trait]
impl transcript_core::test_doubles::ArchiveIndexWrapper for DamagedIndex {
    fn inner(&self) -> &dyn ArchiveIndex {
        &self.inner
    }

    async fn candidates(&self, request: &CandidateRequest) -> Result<CandidatePage> {
        if !self.is_replaced.swap(true, Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Corrupt, Retry::Never, "the index is damaged"));
        }
        self.inner.candidates(request).await
    }
}

#[tokio::test]
async fn search_of_damaged_index_is_repeated() {
    let verbatim = open_with_videos().await;
    let SearchServiceState { archive, clock, .. } = verbatim.search().state.as_ref();
    let storage = IndexStorage::Shared(Arc::new(DamagedIndex::default()));
    let servers = verbatim.search().servers.clone();
    let search = SearchService::new(Arc::clone(archive), storage, Arc::clone(clock), servers);
    let params = SearchParams { query: "tide".to_owned(), ..SearchParams::default() };
    let total = search.search(&params).await.unwrap().total;
    assert_eq!((total.value, total.is_exact), (VIDEOS, true));
}

#[test]
fn cancelled_search_keeps_lock_while_damaged_index_is_deleted() {
    // The only thread that can delete the file is blocked.
    let runtime =
        tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let verbatim = open_in(StorageOptions::default()).await;
        let SearchServiceState { archive, clock, .. } = verbatim.search().state.as_ref();
        let storage = IndexStorage::Shared(Arc::new(DamagedIndex::default()));
        let servers = verbatim.search().servers.clone();
        let search = SearchService::new(Arc::clone(archive), storage, Arc::clone(clock), servers);
        let index = search.parts().await.unwrap().index;
        let query = SearchParams { query: "tide".to_owned(), ..SearchParams::default() };
        let damaged = search.parts().await.unwrap().search.search(&query).await.map(drop);
        assert!(index.is_damaged(), "{damaged:?}");
        let (release, released) = std::sync::mpsc::channel::<()>();
        let blocker = tokio::task::spawn_blocking(move || released.recv());
        let check = search.check_index(damaged);
        let cancelled = tokio::time::timeout(std::time::Duration::from_millis(100), check).await;
        assert!(cancelled.is_err() && search.state.open.try_lock().is_err());
        drop(release);
        assert!(blocker.await.unwrap().is_err());
        assert!(search.state.open.lock().await.is_none());
    });
}

#[tokio::test]
async fn indexer_without_work_reports_state() {
    let verbatim = open_with_videos().await;
    index_all(&verbatim).await;
    let (sender, mut reports) = mpsc::unbounded_channel();
    let observer = move |progress: &IndexProgress| {
        let _ = sender.send(progress.clone());
    };
    let job = verbatim.search().start(Arc::new(observer));
    let report = reports.recv().await.unwrap();
    assert_eq!((report.changed, report.built), (0, 0));
    assert_eq!((report.state.tracks, report.state.is_complete), (VIDEOS, true));
    job.stop().await;
}

/// A step, for which a search may wait, merges nothing.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn indexer_without_work_merges_index_in_file() {
    let folder = tempfile::tempdir().unwrap();
    let storage = StorageOptions::ArchiveFile(folder.path().join("archive.db"));
    let verbatim = open_with_videos_in(storage).await;
    index_all(&verbatim).await;
    let index = verbatim.search().parts().await.unwrap().index;
    let is_merged = || format!("{index:?}").contains("unmerged: 0");
    assert!(!is_merged(), "{index:?}");
    let (sender, mut reports) = mpsc::unbounded_channel();
    let observer = move |_: &IndexProgress| {
        let _ = sender.send(());
    };
    let job = verbatim.search().start(Arc::new(observer));
    for _ in 0..20 {
        reports.recv().await.unwrap();
        if is_merged() {
            break;
        }
    }
    job.stop().await;
    assert!(is_merged(), "{index:?}");
}

#[cfg(all(feature = "sqlite", unix))]
#[tokio::test]
async fn index_is_not_created_while_folder_is_moved_away() {
    let parent = tempfile::tempdir().unwrap();
    let (data, away) = (parent.path().join("data"), parent.path().join("away"));
    let storage = StorageOptions::ArchiveFile(data.join("archive.db"));
    let verbatim = open_with_videos_in(storage).await;
    index_all(&verbatim).await;
    std::fs::rename(&data, &away).unwrap();
    for _ in 0..2 {
        let error = verbatim.search().status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("move it back"), "{error}");
    }
    assert!(!data.exists());
    std::fs::rename(&away, &data).unwrap();
    let state = verbatim.search().status().await.unwrap();
    assert_eq!((state.tracks, state.is_complete), (VIDEOS, true));
}

/// A server of a later version builds the index: another process must not wait for it without a pause.
#[tokio::test]
async fn index_of_later_version_ends_steps_and_is_rebuilt() {
    let verbatim = open_with_videos().await;
    let index = verbatim.search().parts().await.unwrap().index;
    let generation = index.rebuild_state().await.unwrap().generation + 1;
    let later = RebuildState { generation, format: INDEX_FORMAT + 1, ..RebuildState::default() };
    index.put(&[], generation, Some(&later)).await.unwrap();
    let step = verbatim.search().step().await.unwrap();
    assert!(step.is_idle() && !step.state.is_complete, "{step:?}");
    let rebuilt = verbatim.search().rebuild(|_| {}).await.unwrap();
    assert_eq!((rebuilt.format, rebuilt.tracks, rebuilt.is_complete), (INDEX_FORMAT, VIDEOS, true));
}

/// It is reported by the log of the caller, whose lines have an interval.
#[cfg(feature = "sqlite")]
#[test]
fn index_undeletable_is_error() {
    let folder = tempfile::tempdir().unwrap();
    let storage = IndexStorage::beside(&folder.path().join("archive.db"));
    // Not even root deletes a folder as a file.
    std::fs::create_dir_all(folder.path().join("search/index.db")).unwrap();
    let error = storage.delete_damaged(&Error::unsupported("no access")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.message().contains("no access") && error.message().contains("cannot be deleted"),
        "{error}"
    );
}
