//! In-memory archive with a read that fails.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use async_trait::async_trait;
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    archive::{
        Absence, Archive, ArchiveStats, ArchivedTrack, ChangedVideo, FetchLease, FindOutcome, LazyTranscript,
        LeaseOutcome, PutRequest, StoredTranscript, TrackSelector, VectorsKey,
    },
    ids::Holder,
    memory::MemoryArchive,
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

/// [`MemoryArchive`] whose reads can fail.
#[derive(Debug, Default)]
pub(crate) struct FailingArchive {
    inner: MemoryArchive,
    /// Number of the call of [`Archive::find`] that fails, from now on: 1 is the next one. 0: none fails.
    pub(crate) failing_find: AtomicU32,
    /// The same of [`Archive::tracks`].
    pub(crate) failing_tracks: AtomicU32,
}

/// Counts a call; fails if it is the one with this number.
fn count_call(number: &AtomicU32) -> Result<()> {
    match number.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
        Ok(1) => Err(Error::unavailable("the archive is unavailable")),
        _ => Ok(()),
    }
}

#[async_trait]
impl Archive for FailingArchive {
    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        count_call(&self.failing_find)?;
        self.inner.find(video, selector, now).await
    }

    async fn find_lazy(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
    ) -> Result<Option<Arc<dyn LazyTranscript>>> {
        self.inner.find_lazy(video, selector).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        count_call(&self.failing_tracks)?;
        self.inner.tracks(video).await
    }

    async fn put(&self, request: PutRequest) -> Result<StoredTranscript> {
        self.inner.put(request).await
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        self.inner.put_absence(absence).await
    }

    async fn add_known_tracks(&self, video: &VideoId, tracks: &[TrackInfo], now: Timestamp) -> Result<()> {
        self.inner.add_known_tracks(video, tracks, now).await
    }

    async fn vectors(&self, key: &VectorsKey) -> Result<Option<Vec<u8>>> {
        self.inner.vectors(key).await
    }

    async fn put_vectors(&self, key: &VectorsKey, vectors: Vec<u8>) -> Result<()> {
        self.inner.put_vectors(key, vectors).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        self.inner.acquire_lease(lease).await
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        self.inner.release_lease(video, selector, holder).await
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.inner.short_link(link).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        self.inner.put_short_link(link, video).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.inner.withdraw(video, withdrawn, now).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.inner.delete(video).await
    }

    async fn change_counter(&self) -> Result<u64> {
        self.inner.change_counter().await
    }

    async fn unindexed_videos(&self, limit: u32) -> Result<Vec<ChangedVideo>> {
        self.inner.unindexed_videos(limit).await
    }

    async fn newest_change(&self) -> Result<Option<u64>> {
        self.inner.newest_change().await
    }

    async fn delete_unindexed_videos(&self, videos: &[ChangedVideo]) -> Result<()> {
        self.inner.delete_unindexed_videos(videos).await
    }

    async fn record_unindexed_video(&self, video: &VideoId) -> Result<()> {
        self.inner.record_unindexed_video(video).await
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        self.inner.list_tracks(page).await
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        self.inner.list_withdrawn(page).await
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        self.inner.stats().await
    }
}
