//! The archive with its index, as the library has them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use storage_sqlx::{SqliteArchive, SqliteOptions, SqliteSearchIndex};
use tokio::runtime::Handle;
use transcript_core::search::{ArchiveIndex as _, ArchiveSearch, Indexer, SearchParams};
use verbatim::SystemClock;

use super::talks::{Talks, number_of};
use crate::{
    archive::{compact, put_all, used_bytes},
    process,
};

/// An archive in a file, with an index in another.
pub(super) struct OwnIndex {
    archive: Arc<SqliteArchive>,
    index: Arc<SqliteSearchIndex>,
    search: ArchiveSearch,
    files: [PathBuf; 2],
}

/// Sizes in bytes of the pages in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnBytes {
    pub(super) compacted_archive: u64,
    pub(super) index: u64,
}

/// CPU time of this process so far, in seconds.
fn cpu_seconds() -> Result<f64> {
    process::cpu_seconds(std::process::id())
}

/// More than the merge of any index needs: each merges 150 pages.
const MERGE_CALLS: u32 = 1000;

/// CPU time of keeping all talks in a new archive without an index, in seconds.
pub(super) async fn keep_without_index(talks: &Talks, folder: &Path) -> Result<f64> {
    let archive = SqliteArchive::open(SqliteOptions::new(folder.join("archive.db"))).await?;
    let before = cpu_seconds()?;
    put_all(&archive, (0..talks.count).map(|number| talks.put_request(number))).await?;
    let seconds = cpu_seconds()? - before;
    archive.close().await;
    Ok(seconds)
}

impl OwnIndex {
    /// Keeps all talks in a new archive and indexes them; returns the CPU time of both, in seconds.
    pub(super) async fn build(talks: &Talks, folder: &Path) -> Result<(Self, f64)> {
        let files = [folder.join("archive.db"), folder.join("index.db")];
        let archive = Arc::new(SqliteArchive::open(SqliteOptions::new(&files[0])).await?);
        let index = Arc::new(SqliteSearchIndex::open(SqliteOptions::new(&files[1])).await?);
        let (clock, runtime) = (Arc::new(SystemClock::default()), Handle::current());
        let indexer = Indexer::new(
            Arc::clone(&archive) as _,
            Arc::clone(&index) as _,
            Arc::clone(&clock) as _,
            runtime.clone(),
        );
        // The index of the empty archive is complete: what follows is indexed because it changed.
        while !indexer.step().await?.is_idle() {}
        let before = cpu_seconds()?;
        put_all(&archive, (0..talks.count).map(|number| talks.put_request(number))).await?;
        while !indexer.step().await?.is_idle() {}
        // As the background job does then; a call without work costs nothing.
        for _ in 0..MERGE_CALLS {
            index.optimize().await?;
        }
        let seconds = cpu_seconds()? - before;
        let search = ArchiveSearch::new(Arc::clone(&archive) as _, Arc::clone(&index) as _, clock, runtime);
        Ok((Self { archive, index, search, files }, seconds))
    }

    /// The numbers of the best talks. Without a hit the query that the engine suggests is searched.
    pub(super) async fn search(&self, query: &str, limit: u32) -> Result<Vec<u64>> {
        let params = SearchParams { query: query.to_owned(), limit, ..SearchParams::default() };
        let mut page = self.search.search(&params).await?;
        if let Some(query) = page.suggestion.take() {
            page = self.search.search(&SearchParams { query, ..params }).await?;
        }
        Ok(page.hits.iter().filter_map(|hit| number_of(&hit.stored.transcript.video)).collect())
    }

    /// Compacts the archive, closes the files, and returns their sizes.
    pub(super) async fn close(self) -> Result<OwnBytes> {
        compact(&self.archive).await?;
        self.archive.close().await;
        self.index.close().await;
        let [archive, index] = &self.files;
        Ok(OwnBytes { compacted_archive: used_bytes(archive)?, index: used_bytes(index)? })
    }
}
