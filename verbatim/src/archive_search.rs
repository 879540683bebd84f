//! Search in the whole archive: opens the index, keeps it up to date, and builds it again when it is lost.

mod index_storage;
mod indexer_job;
mod watched_index;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{runtime::Handle, sync::Mutex};
use transcript_core::{
    ErrorKind, Result,
    archive::Archive,
    debug_fields,
    search::{
        ArchiveIndex, ArchiveSearch, INDEX_FORMAT, IndexCheck, IndexProgress, Indexer, RebuildState,
        SearchPage, SearchParams,
    },
};

pub(crate) use index_storage::IndexStorage;
use index_storage::OpenIndex;
pub use indexer_job::IndexObserver;
use indexer_job::IndexerJob;
use watched_index::WatchedIndex;

use crate::{JobHandle, Verbatim, server_group::ServerGroup, system::SystemClock};

/// Most steps that a search of a process without an indexer makes before it: some 6,400 changed videos.
const CATCH_UP_STEPS: usize = 100;

/// Search in the whole archive. A clone is a handle to the same index.
///
/// The index is opened with the first use. A process that started no indexer indexes what changed before it searches.
#[derive(Clone)]
pub struct SearchService {
    state: Arc<SearchServiceState>,
    servers: ServerGroup,
}

debug_fields!(SearchService { servers });

struct SearchServiceState {
    archive: Arc<dyn Archive>,
    storage: IndexStorage,
    clock: Arc<SystemClock>,
    runtime: Handle,
    /// The open index, and the parts over it: their bound of concurrent work holds for all callers.
    open: Arc<Mutex<Option<(OpenIndex, SearchParts)>>>,
    /// Whether an indexer runs in this process.
    is_followed: AtomicBool,
}

impl SearchServiceState {
    fn parts_over(&self, index: &Arc<WatchedIndex>) -> SearchParts {
        let (archive, clock) = (Arc::clone(&self.archive), Arc::clone(&self.clock));
        let runtime = self.runtime.clone();
        SearchParts {
            search: ArchiveSearch::new(
                Arc::clone(&archive),
                Arc::clone(index) as _,
                Arc::clone(&clock) as _,
                runtime.clone(),
            ),
            indexer: Indexer::new(archive, Arc::clone(index) as _, clock, runtime),
            index: Arc::clone(index),
        }
    }
}

/// The parts over one open index.
#[derive(Clone)]
struct SearchParts {
    search: ArchiveSearch,
    indexer: Indexer,
    index: Arc<WatchedIndex>,
}

impl Verbatim {
    /// Search in the whole archive with an index, operators and ranking.
    ///
    /// Without an index, [`crate::ArchiveTools::search`] finds passages.
    pub fn search(&self) -> &SearchService {
        &self.search
    }
}

impl SearchService {
    pub(crate) fn new(
        archive: Arc<dyn Archive>,
        storage: IndexStorage,
        clock: Arc<SystemClock>,
        servers: ServerGroup,
    ) -> Self {
        let (open, is_followed) = (Arc::default(), AtomicBool::new(false));
        let state =
            SearchServiceState { archive, storage, clock, runtime: Handle::current(), open, is_followed };
        Self { state: Arc::new(state), servers }
    }

    /// Finds the videos of the archive whose transcripts match a query; see [`transcript_core::search`].
    ///
    /// While the index is built, or while more than 64 archived videos wait for it, transcripts may be missing: the
    /// total is a lower bound then.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the cursor is none of this search; otherwise errors of the archive and of the index. A
    /// damaged index in a file is deleted and built again.
    pub async fn search(&self, params: &SearchParams) -> Result<SearchPage> {
        match self.search_once(params).await {
            // The damaged index was deleted: this search begins to build a new one, or finds what is built of it.
            Err(error) if error.kind() == ErrorKind::Corrupt => self.search_once(params).await,
            found => found,
        }
    }

    async fn search_once(&self, params: &SearchParams) -> Result<SearchPage> {
        let parts = self.parts().await?;
        if !self.state.is_followed.load(Ordering::Relaxed) {
            for _ in 0..CATCH_UP_STEPS {
                if self.step().await?.is_idle() {
                    break;
                }
            }
        }
        // Read before the search, and not again once the build has ended. In a later build, too, rows may be missing or
        // outdated: an index is built again because it differs from the archive.
        let is_built = parts.index.is_complete()
            || self.check_index(parts.index.rebuild_state().await).await?.is_complete;
        let is_complete = is_built && !self.check_index(parts.indexer.is_behind().await).await?;
        let found = parts.search.search(params).await;
        let mut page = self.check_index(found).await?;
        page.total.is_exact &= is_complete;
        if let Some(unfiltered) = &mut page.without_filters {
            unfiltered.total.is_exact &= is_complete;
        }
        Ok(page)
    }

    /// Indexes some videos that changed, and continues building the index.
    ///
    /// # Errors
    /// Errors of the archive and of the index. A damaged index in a file is deleted; the next step builds it again.
    pub async fn step(&self) -> Result<IndexProgress> {
        match self.step_once().await {
            // The damaged index was deleted: this step begins to build a new one.
            Err(error) if error.kind() == ErrorKind::Corrupt => self.step_once().await,
            stepped => stepped,
        }
    }

    async fn step_once(&self) -> Result<IndexProgress> {
        let stepped = self.parts().await?.indexer.step().await;
        self.check_index(stepped).await
    }

    /// Builds the index again; searches find what it has until then. An interrupted build is continued.
    ///
    /// `on_progress` receives the outcome of each step.
    ///
    /// # Errors
    /// Errors of the archive and of the index; the build continues with the next call.
    pub async fn rebuild(&self, mut on_progress: impl FnMut(&IndexProgress) + Send) -> Result<RebuildState> {
        let state = self.status().await?;
        if state.is_complete || state.format > INDEX_FORMAT {
            let started = self.parts().await?.indexer.start_rebuild().await;
            self.check_index(started).await?;
        }
        loop {
            let progress = self.step().await?;
            on_progress(&progress);
            if progress.is_idle() {
                return Ok(progress.state);
            }
        }
    }

    /// Compares the index with the archive. `on_progress` receives the number of compared transcripts.
    ///
    /// # Errors
    /// Errors of the archive and of the index.
    pub async fn check(&self, on_progress: impl FnMut(u64) + Send) -> Result<IndexCheck> {
        let checked = self.parts().await?.indexer.check(on_progress).await;
        self.check_index(checked).await
    }

    /// State of the build of the index.
    ///
    /// # Errors
    /// Errors of the index.
    pub async fn status(&self) -> Result<RebuildState> {
        let state = self.parts().await?.index.rebuild_state().await;
        self.check_index(state).await
    }

    /// State of the build, and whether a step has something to do.
    async fn inspect(&self) -> Result<(RebuildState, bool)> {
        let inspected = self.parts().await?.indexer.inspect().await;
        self.check_index(inspected).await
    }

    /// Merges a part of the index, if there is something to merge. Only a damaged index is an error.
    async fn optimize(&self) -> Result<()> {
        let optimized = self.parts().await?.index.optimize().await;
        match self.check_index(optimized).await {
            Err(error) if error.kind() != ErrorKind::Corrupt => {
                tracing::warn!(%error, "search index merge failed");
                Ok(())
            }
            checked => checked,
        }
    }

    /// Starts to index what changes, and to build the index where it is incomplete, in the background.
    ///
    /// Of the servers on one database, one at a time does it; the observers of all receive the state of the index twice
    /// a second.
    pub fn start(&self, observer: IndexObserver) -> JobHandle {
        self.state.is_followed.store(true, Ordering::Relaxed);
        let _runtime = self.state.runtime.enter();
        IndexerJob { service: self.clone(), observer }.start()
    }

    /// Closes the index. A later call opens it again.
    pub(crate) async fn close(&self) {
        if let Some((open, _)) = self.state.open.lock().await.take() {
            open.close().await;
        }
    }

    /// The parts over the open index. A file that was deleted or replaced is opened again.
    async fn parts(&self) -> Result<SearchParts> {
        let mut open = self.state.open.lock().await;
        if let Some((lost, _)) = open.take_if(|(open, _)| !open.is_current()) {
            tracing::warn!(
                "search index deleted or replaced; it is opened again and built where it is incomplete"
            );
            lost.close().await;
        }
        if let Some((_, parts)) = open.as_ref() {
            return Ok(parts.clone());
        }
        let opened = self.state.storage.open().await?;
        let parts = self.state.parts_over(&opened.index);
        *open = Some((opened, parts.clone()));
        Ok(parts)
    }

    /// Deletes an index whose file is damaged.
    async fn check_index<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && error.kind() == ErrorKind::Corrupt
        {
            // Locked until the file is deleted, also if this call is cancelled: another caller would open it again.
            let mut open = Arc::clone(&self.state.open).lock_owned().await;
            if let Some((damaged, _)) = open.take_if(|(open, _)| open.index.is_damaged()) {
                let (storage, error) = (self.state.storage.clone(), error.clone());
                let delete = async move {
                    damaged.close().await;
                    // A failure shows again when the file is opened next.
                    let deletion = move || storage.delete_damaged(&error);
                    let _ = tokio::task::spawn_blocking(deletion).await;
                    drop(open);
                };
                let _ = self.state.runtime.spawn(delete).await;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests;
