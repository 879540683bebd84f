//! Keeps an index up to date with the archive.

use std::{
    collections::BTreeSet,
    slice,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    ArchiveIndex, INDEX_FORMAT, IndexedVideo, RebuildState, SearchDocument, document::document_digest,
    tokens::IndexTokenizers,
};
use crate::{
    archive::{Archive, ArchivedTrack, ChangedVideo, FindOutcome, StoredTranscript},
    chat::cpu_pool::CpuPool,
    error::{Error, ErrorKind, Result},
    page::PageRequest,
    time::Clock,
    video::VideoId,
};

/// Most changed videos of one step.
const CHANGED_MAX: u32 = 64;
/// Tracks of one step of a build.
const BUILD_TRACKS: u32 = 100;
/// Bytes of text of videos that are put together. A longer video is put alone.
const PUT_BYTES: usize = 4 << 20;

/// Most changes that are left in the archive's list because they could not be indexed. It is less than one list has; see
/// [`Archive::unindexed_videos`].
const SKIPPED_MAX: usize = 64;

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
    skipped: Arc<Mutex<Vec<ChangedVideo>>>,
}

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
        let skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let listed = limit.saturating_add(u32::try_from(skipped.len()).unwrap_or(u32::MAX));
        let mut changed = self.archive.unindexed_videos(listed).await?;
        // One that is listed no more was repaired or deleted.
        let mut known = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|item| changed.contains(item) || !skipped.contains(item));
        drop(known);
        changed.retain(|item| !skipped.contains(item));
        changed.truncate(limit as usize);
        Ok(changed)
    }

    /// Leaves a change in the archive's list; returns whether it may stay there.
    fn skip(&self, change: &ChangedVideo) -> bool {
        let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.retain(|earlier| earlier.video != change.video);
        let may_stay = skipped.len() < SKIPPED_MAX;
        if may_stay {
            skipped.push(change.clone());
        }
        may_stay
    }

    /// Indexes the videos that changed.
    async fn index_changed(&self, changed: &[ChangedVideo], state: &RebuildState) -> Result<()> {
        let mut batch = IndexBatch::default();
        for item in changed {
            match self.read_video(&item.video, item.change).await? {
                Some(read) => batch.add(read, item),
                None if self.skip(item) => {}
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
        let rejected = self.put_videos(&videos, state.generation, state_to_put).await?;
        changes.retain(|change| !rejected.contains(&change.video) || !self.skip(change));
        // A video that changed again since it was listed stays listed.
        self.archive.delete_unindexed_videos(&changes).await
    }

    /// Puts videos; returns those whose documents the index rejects. It has none of theirs then, and all others.
    async fn put_videos(
        &self,
        videos: &[IndexedVideo],
        generation: u64,
        state: Option<&RebuildState>,
    ) -> Result<Vec<VideoId>> {
        match self.index.put(videos, generation, state).await {
            Err(error) if is_rejection(&error) && !videos.is_empty() => {}
            put => return put.map(|()| Vec::new()),
        }
        let mut rejected = Vec::new();
        for indexed in videos {
            match self.index.put(slice::from_ref(indexed), generation, None).await {
                Err(error) if is_rejection(&error) => {
                    let video = indexed.video.clone();
                    let empty = IndexedVideo { video, change: indexed.change, documents: Vec::new() };
                    // If this fails too, the error is not one of the video.
                    self.index.put(&[empty], generation, None).await?;
                    tracing::warn!(video = %indexed.video, %error, "video rejected by the search index");
                    rejected.push(indexed.video.clone());
                }
                put => put?,
            }
        }
        self.index.put(&[], generation, state).await?;
        Ok(rejected)
    }

    /// Indexes some tracks of the archive, from where the build ended before.
    async fn build(&self, mut state: RebuildState) -> Result<RebuildState> {
        let request = PageRequest { after: state.cursor.clone(), limit: BUILD_TRACKS };
        let page = self.archive.list_tracks(request).await?;
        state.tracks = state.tracks.saturating_add(page.items.len() as u64);
        let videos: BTreeSet<VideoId> = page.items.into_iter().map(|track| track.video).collect();
        let mut batch = IndexBatch::default();
        for video in &videos {
            let Some((indexed, bytes)) = self.read_video(video, 0).await? else { continue };
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
            let size = stored.transcript.segments.iter().map(|segment| segment.text.len()).sum();
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
            Err(error) if error.is_unreadable() || error.kind() == ErrorKind::Corrupt => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The digest of a track's document; `None` if the index should not have it.
    pub(super) async fn track_digest(&self, track: &ArchivedTrack) -> Result<Option<String>> {
        Ok(self.read_track(track).await?.map(|stored| document_digest(&stored)))
    }
}

/// Whether an index may have refused a video. A full disk, for instance, concerns all of them.
fn is_rejection(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unexpected | ErrorKind::Invalid)
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
