//! Keeps an index up to date with the archive.

use std::{
    collections::BTreeSet,
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    ArchiveIndex, INDEX_FORMAT, IndexedVideo, RebuildState, SearchDocument, document::document_digest,
    tokens::IndexTokenizers,
};
use crate::{
    archive::{Archive, ArchivedTrack, ChangedVideo, FindOutcome, StoredTranscript},
    chat::cpu_pool::CpuPool,
    error::{Error, ErrorKind, Result, Retry},
    page::PageRequest,
    time::{Clock, Timestamp},
    video::VideoId,
};

/// Most changed videos of one step.
const CHANGED_MAX: u32 = 64;
/// Tracks of one step of a build.
const BUILD_TRACKS: u32 = 100;
/// Bytes of text of videos that are put together. A longer video is put alone.
const PUT_BYTES: usize = 4 << 20;

/// Most changes that are left in the archive's list because they could not be indexed. It is less than one list has;
/// see [`Archive::unindexed_videos`].
const SKIPPED_MAX: usize = 64;
/// A list of changes of any archive may have this many; see [`Archive::unindexed_videos`].
const LISTED_MAX: u32 = 100;
/// How often a video is put alone before the index is taken to be too slow for it, and when it is tried again.
const SLOW_PUTS_MAX: u32 = 2;
const SLOW_RETRY: Duration = Duration::from_secs(60 * 60);
/// Slow videos after which a put ends with an error: each takes two timeouts.
const SLOW_VIDEOS_MAX: usize = 3;

/// What one step did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// Videos that were indexed because they changed.
    pub changed: u64,
    /// Tracks that the build of the index read in this step.
    pub built: u64,
    /// State of the build after the step.
    pub state: RebuildState,
}

impl IndexProgress {
    /// Whether more is known to be waiting: the build is incomplete, or the step took as many videos as it may.
    pub fn has_more(&self) -> bool {
        !self.state.is_complete || self.changed >= u64::from(CHANGED_MAX)
    }

    /// Whether the step found nothing to do. An incomplete index of a later version is left to that version.
    pub fn is_idle(&self) -> bool {
        let is_ready = self.state.is_complete || self.state.format > INDEX_FORMAT;
        self.changed == 0 && self.built == 0 && is_ready
    }
}

/// Indexes what changed in the archive. A clone is a handle to the same parts.
///
/// Several indexers may run at the same time: see [`ArchiveIndex::put`].
#[derive(Clone, Debug)]
pub struct Indexer {
    pub(super) archive: Arc<dyn Archive>,
    pub(super) index: Arc<dyn ArchiveIndex>,
    pub(super) clock: Arc<dyn Clock>,
    pool: CpuPool,
    tokenizers: IndexTokenizers,
    /// Changes that could not be indexed. The archive still lists them, so that a later version tries them again.
    skipped: Arc<Mutex<Vec<SkippedVideo>>>,
}

/// A video that could not be indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SkippedVideo {
    change: ChangedVideo,
    /// When it is tried again, if it took too long; `None`: by the next process.
    retry_at: Option<Timestamp>,
}

/// The change of all videos of a build. The archive lists none with it.
const BUILD_CHANGE: u64 = 0;

impl Indexer {
    /// An indexer whose work on long transcripts runs on this runtime.
    pub fn new(
        archive: Arc<dyn Archive>,
        index: Arc<dyn ArchiveIndex>,
        clock: Arc<dyn Clock>,
        runtime: tokio::runtime::Handle,
    ) -> Self {
        Self {
            archive,
            index,
            clock,
            pool: CpuPool::new(runtime, 1),
            tokenizers: IndexTokenizers::default(),
            skipped: Arc::default(),
        }
    }

    /// Indexes some videos that changed, then continues building the index if it is incomplete.
    ///
    /// # Errors
    /// Errors of the archive and of the index. A repetition continues.
    ///
    /// # Cancellation
    /// A dropped future leaves the step done or to be repeated.
    pub async fn step(&self) -> Result<IndexProgress> {
        // Listed before the state is read: a build that another process starts after that has these changes.
        let listed = self.changed_videos(CHANGED_MAX).await?;
        let (mut state, is_outdated) = self.read_state().await?;
        if state.format > INDEX_FORMAT {
            // A server of a later version writes what this one cannot.
            return Ok(IndexProgress { changed: 0, built: 0, state });
        }
        if is_outdated {
            if state.format == INDEX_FORMAT {
                tracing::warn!(
                    "the archive is older than the search index, as after a restore: the index is built again"
                );
            }
            state = self.start_rebuild().await?;
        }
        self.index_changed(&listed, &state).await?;
        let changed = listed.len() as u64;
        if state.is_complete || changed >= u64::from(CHANGED_MAX) {
            return Ok(IndexProgress { changed, built: 0, state });
        }
        let before = state.tracks;
        let state = self.build(state).await?;
        Ok(IndexProgress { changed, built: state.tracks.saturating_sub(before), state })
    }

    /// Returns the state of the build, and whether a step has something to do.
    ///
    /// # Errors
    /// Errors of the archive and of the index.
    pub async fn inspect(&self) -> Result<(RebuildState, bool)> {
        let (state, is_outdated) = self.read_state().await?;
        if state.format > INDEX_FORMAT {
            return Ok((state, false));
        }
        let has_work = is_outdated || !state.is_complete || !self.changed_videos(1).await?.is_empty();
        Ok((state, has_work))
    }

    /// Whether more videos changed than one step indexes. The index lacks what was archived.
    ///
    /// A process that does not index knows of none that were skipped: there they count as changed.
    ///
    /// # Errors
    /// Errors of the archive.
    pub async fn is_behind(&self) -> Result<bool> {
        let limit = behind_limit(self.lock_skipped().len());
        Ok(self.archive.unindexed_videos(limit).await?.len() >= limit as usize)
    }

    /// Starts to build the index again. Until the build ends, searches find what the index has.
    ///
    /// # Errors
    /// Errors of the archive and of the index.
    pub async fn start_rebuild(&self) -> Result<RebuildState> {
        let state = self.index.rebuild_state().await?;
        let next = RebuildState {
            generation: state.generation.saturating_add(1),
            format: INDEX_FORMAT,
            newest_change: self.archive.newest_change().await?,
            ..RebuildState::default()
        };
        self.index.put(&[], next.generation, Some(&next)).await?;
        Ok(next)
    }

    /// State of the build, with the archive's newest change, and whether the index must be built again: it is of an
    /// earlier format, or the archive went back.
    async fn read_state(&self) -> Result<(RebuildState, bool)> {
        let mut state = self.index.rebuild_state().await?;
        // Read after the state, so that changes in between do not look like an archive that went back.
        let newest = self.archive.newest_change().await?;
        let went_back = newest.is_some() && newest < state.newest_change;
        state.newest_change = newest;
        let is_outdated = went_back || state.format < INDEX_FORMAT;
        Ok((state, is_outdated))
    }

    /// Some of the videos that changed, without those that could not be indexed.
    pub(super) async fn changed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        let skipped = self.lock_skipped().clone();
        let listed = limit.saturating_add(u32::try_from(skipped.len()).unwrap_or(u32::MAX));
        let mut changed = self.archive.unindexed_videos(listed).await?;
        // A slow one may be in the index without its text, although another indexer deleted it from the list.
        let is_of = |item: &SkippedVideo| changed.iter().any(|change| change.video == item.change.video);
        for lost in skipped.iter().filter(|item| item.retry_at.is_some() && !is_of(item)) {
            self.archive.record_unindexed_video(&lost.change.video).await?;
        }
        // One that is listed no more was repaired or deleted.
        let is_listed = |item: &SkippedVideo| changed.contains(&item.change);
        self.lock_skipped().retain(|item| is_listed(item) || !skipped.contains(item));
        let now = self.clock.now();
        let waits = |item: &SkippedVideo| item.retry_at.is_none_or(|time| time > now);
        changed.retain(|change| !skipped.iter().any(|item| waits(item) && item.change == *change));
        changed.truncate(limit as usize);
        Ok(changed)
    }

    fn lock_skipped(&self) -> MutexGuard<'_, Vec<SkippedVideo>> {
        self.skipped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a change in the archive's list; returns whether there is a place for it.
    fn skip(&self, change: &ChangedVideo, retry_at: Option<Timestamp>) -> bool {
        let mut skipped = self.lock_skipped();
        skipped.retain(|earlier| earlier.change.video != change.video);
        let has_place = skipped.len() < SKIPPED_MAX;
        if has_place {
            skipped.push(SkippedVideo { change: change.clone(), retry_at });
        }
        has_place
    }

    async fn index_changed(&self, changed: &[ChangedVideo], state: &RebuildState) -> Result<()> {
        let mut batch = IndexBatch::default();
        for item in changed {
            match self.read_video(&item.video, item.change).await? {
                Some(read) => batch.add(read, item),
                None if self.skip(item, None) => {}
                None => batch.changes.push(item.clone()),
            }
            if batch.bytes >= PUT_BYTES {
                self.put_changed(&mut batch, state).await?;
            }
        }
        self.put_changed(&mut batch, state).await
    }

    async fn put_changed(&self, batch: &mut IndexBatch, state: &RebuildState) -> Result<()> {
        let IndexBatch { videos, mut changes, .. } = std::mem::take(batch);
        if changes.is_empty() {
            return Ok(());
        }
        // An archive that numbers no change cannot be seen to go back.
        let state_to_put = Some(state).filter(|state| state.newest_change.is_some());
        // Those that are due. One that fails again is skipped again.
        self.lock_skipped().retain(|item| !changes.contains(&item.change));
        self.put_videos(&videos, state.generation, state_to_put).await?;
        let skipped = self.lock_skipped().clone();
        changes.retain(|change| skipped.iter().all(|item| item.change != *change));
        // A video that changed again since it was listed stays listed.
        self.archive.delete_unindexed_videos(&changes).await
    }

    /// Puts videos. Those whose documents the index rejects, or for which it takes too long, are left out.
    async fn put_videos(
        &self,
        videos: &[IndexedVideo],
        generation: u64,
        state: Option<&RebuildState>,
    ) -> Result<()> {
        match self.index.put(videos, generation, state).await {
            // If this fails too, the index is out of reach.
            Err(error) if is_timeout(&error) && !videos.is_empty() => {
                self.index.put(&[], generation, None).await?;
            }
            Err(error) if is_rejection(&error) && !videos.is_empty() => {}
            put => return put,
        }
        // The shortest first: if the index is too slow for these, it is so for all.
        let mut videos: Vec<&IndexedVideo> = videos.iter().collect();
        videos.sort_by_cached_key(|video| text_bytes(video));
        let (mut slow, mut has_put) = (Vec::new(), false);
        for video in videos {
            match self.put_alone(video, generation).await? {
                None => has_put = true,
                Some(error) if is_timeout(&error) => slow.push((video, error)),
                Some(error) => self.leave_out(video, &error, generation).await?,
            }
            if slow.len() >= SLOW_VIDEOS_MAX {
                break;
            }
        }
        let is_full = slow.len() >= SLOW_VIDEOS_MAX;
        // Of an index that is too slow for all, one video is left out: if all are slow, the next step has one less.
        let left_out = if has_put || !is_full { slow.len() } else { 1 };
        for (video, error) in slow.iter().take(left_out) {
            self.leave_out(video, error, generation).await?;
        }
        match slow.pop() {
            Some((_, error)) if is_full => Err(error),
            _ => self.index.put(&[], generation, state).await,
        }
    }

    /// Puts a video without its documents. It stays in the archive's list, or is recorded there by a build, so that it
    /// is tried again.
    async fn leave_out(&self, indexed: &IndexedVideo, error: &Error, generation: u64) -> Result<()> {
        let (video, change) = (indexed.video.clone(), indexed.change);
        let empty = IndexedVideo { video: video.clone(), change, documents: Vec::new() };
        // If this fails too, the error is not one of the video.
        self.index.put(&[empty], generation, None).await?;
        tracing::warn!(%video, %error, "video left out of the search index");
        if change == BUILD_CHANGE {
            return self.archive.record_unindexed_video(&video).await;
        }
        let retry_at = is_timeout(error).then(|| self.clock.now().plus(SLOW_RETRY));
        let has_place = self.skip(&ChangedVideo { video: video.clone(), change }, retry_at);
        if has_place || retry_at.is_none() {
            return Ok(());
        }
        // Its change must stay in the list, but behind all others.
        self.archive.record_unindexed_video(&video).await?;
        Err(error.clone())
    }

    /// Puts one video; returns the error that may be due to its documents.
    async fn put_alone(&self, indexed: &IndexedVideo, generation: u64) -> Result<Option<Error>> {
        let mut puts = 1;
        loop {
            match self.index.put(slice::from_ref(indexed), generation, None).await {
                Err(error) if is_timeout(&error) && puts < SLOW_PUTS_MAX => puts += 1,
                Err(error) if is_timeout(&error) || is_rejection(&error) => return Ok(Some(error)),
                put => return put.map(|()| None),
            }
        }
    }

    /// Indexes some tracks of the archive, from where the build ended before.
    async fn build(&self, mut state: RebuildState) -> Result<RebuildState> {
        let request = PageRequest { after: state.cursor.clone(), limit: BUILD_TRACKS };
        let page = self.archive.list_tracks(request).await?;
        state.tracks = state.tracks.saturating_add(page.items.len() as u64);
        let videos: BTreeSet<VideoId> = page.items.into_iter().map(|track| track.video).collect();
        let mut batch = IndexBatch::default();
        let waits = |video: &VideoId| {
            self.lock_skipped().iter().any(|item| item.retry_at.is_some() && item.change.video == *video)
        };
        for video in videos.iter().filter(|video| !waits(video)) {
            let Some((indexed, bytes)) = self.read_video(video, BUILD_CHANGE).await? else { continue };
            batch.videos.push(indexed);
            batch.bytes += bytes;
            if batch.bytes >= PUT_BYTES {
                let full = std::mem::take(&mut batch);
                // The cursor stays: a crash repeats these videos.
                self.put_videos(&full.videos, state.generation, None).await?;
            }
        }
        state.is_complete = page.next.is_none();
        state.cursor = page.next;
        self.put_videos(&batch.videos, state.generation, Some(&state)).await?;
        Ok(state)
    }

    /// The documents of a video, and the size of their texts in bytes; `None` if its tracks cannot be decoded.
    async fn read_video(&self, video: &VideoId, change: u64) -> Result<Option<(IndexedVideo, usize)>> {
        let tracks = match self.archive.tracks(video).await {
            Err(error) if error.is_unreadable() => {
                tracing::warn!(%video, %error, "video not indexed for search");
                return Ok(None);
            }
            tracks => tracks?,
        };
        let row_terms = self.index.row_terms();
        let (mut documents, mut bytes) = (Vec::new(), 0);
        for track in tracks {
            let Some(stored) = self.read_track(&track).await? else { continue };
            let Some(selector) = track.selectors.first().cloned() else { continue };
            let size = stored.transcript.text_bytes();
            bytes += size;
            let tokenizers = self.tokenizers.clone();
            let work = move || SearchDocument::with_tokenizers(selector, &stored, row_terms, &tokenizers);
            documents.push(self.pool.work(size, work).await?);
        }
        Ok(Some((IndexedVideo { video: video.clone(), change, documents }, bytes)))
    }

    /// The transcript of an archived track; `None` if it is not found or cannot be read.
    pub(super) async fn read_track(&self, track: &ArchivedTrack) -> Result<Option<StoredTranscript>> {
        let Some(selector) = track.selectors.first() else { return Ok(None) };
        match self.archive.find(&track.video, selector, self.clock.now()).await {
            Ok(FindOutcome::Transcript(stored)) => Ok(Some(stored)),
            Ok(FindOutcome::Absence(_) | FindOutcome::Withdrawn | FindOutcome::NotFound) => Ok(None),
            // `archive verify` reports it; the index is complete without it.
            Err(error) if error.is_unreadable() || error.kind() == ErrorKind::Corrupt => {
                tracing::warn!(video = %track.video, %error, "unreadable transcript left out of the search index");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The digest of a track's document; `None` if the index should not have it.
    pub(super) async fn track_digest(&self, track: &ArchivedTrack) -> Result<Option<String>> {
        Ok(self.read_track(track).await?.map(|stored| document_digest(&stored)))
    }
}

/// Changes in the archive's list from which on an index is behind, if some of them are `skipped`.
fn behind_limit(skipped: usize) -> u32 {
    let skipped = u32::try_from(skipped).unwrap_or(u32::MAX);
    CHANGED_MAX.saturating_add(skipped).saturating_add(1).min(LISTED_MAX)
}

/// Whether an index may have refused a video. A full disk, for instance, concerns all of them.
fn is_rejection(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unexpected | ErrorKind::Invalid)
}

/// The length of a video's terms.
fn text_bytes(video: &IndexedVideo) -> usize {
    video.documents.iter().flat_map(|document| &document.rows).map(|row| row.words.len()).sum()
}

/// Whether an index took too long. It may be out of reach, or too slow for a video.
fn is_timeout(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.retry() == Retry::Backoff
}

/// Videos that are put together.
#[derive(Debug, Default)]
struct IndexBatch {
    videos: Vec<IndexedVideo>,
    changes: Vec<ChangedVideo>,
    bytes: usize,
}

impl IndexBatch {
    fn add(&mut self, (video, bytes): (IndexedVideo, usize), change: &ChangedVideo) {
        self.videos.push(video);
        self.changes.push(change.clone());
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexer_limit_of_changes_is_within_list_of_any_archive() {
        assert_eq!([0, 35, 36, SKIPPED_MAX].map(behind_limit), [65, 100, 100, 100]);
    }
}
