//! In-memory archive with a read that fails.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use async_trait::async_trait;
use transcript_core::{
    Error, Result, Timestamp,
    archive::{Archive, ArchivedTrack, FindOutcome, TrackSelector},
    memory::MemoryArchive,
    test_doubles::ArchiveWrapper,
    video::VideoId,
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
impl ArchiveWrapper for FailingArchive {
    fn inner(&self) -> &dyn Archive {
        &self.inner
    }

    async fn find(&self, video: &VideoId, selector: &TrackSelector, now: Timestamp) -> Result<FindOutcome> {
        count_call(&self.failing_find)?;
        self.inner.find(video, selector, now).await
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        count_call(&self.failing_tracks)?;
        self.inner.tracks(video).await
    }
}
