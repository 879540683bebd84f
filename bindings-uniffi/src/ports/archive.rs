//! Archive of the app.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Error, Page, PageRequest, Result, Timestamp,
    archive::{
        self as core, Absence, Archive, ArchiveStats, ArchivedTrack, FetchLease, LeaseOutcome, TrackSelector,
        content_digest,
    },
    ids::{Cursor, Holder},
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

use super::ForeignStore;
use crate::{
    error::VerbatimError,
    metadata::{VideoDetails, VideoMetadata},
    transcript::Transcript,
};

/// Length of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// A transcript as stored in the archive.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct StoredTranscript {
    /// The transcript: of the requested video, with a segment. Its `from_cache`, `revision`, `metadata` and `tracks`
    /// are ignored.
    pub transcript: Transcript,
    /// Number of the revision, starting at 1.
    pub revision: u32,
    /// SHA-256 of the content: 32 bytes.
    pub content_sha256: Vec<u8>,
    /// Version of the library's parsers that produced the transcript.
    pub parser_version: u32,
    /// Time of storage, in milliseconds since 1970.
    pub stored_at: Timestamp,
    /// What is known of the video at present, whatever the revision.
    #[uniffi(default)]
    pub details: VideoDetails,
}

/// Outcome of [`ArchiveStore::find`].
///
/// The variants do not have the names of their records, which they would hide in Kotlin.
#[derive(Clone, Debug, PartialEq, uniffi::Enum)]
#[expect(clippy::large_enum_variant, reason = "each value is moved once, on its way through the boundary")]
pub enum FindOutcome {
    /// The transcript is archived.
    Stored {
        /// The transcript.
        stored: StoredTranscript,
    },
    /// A fetch found no transcript.
    Absent {
        /// Reason and expiry.
        absence: Absence,
    },
    /// The operator took the video down.
    Withdrawn,
    /// The archive has no entry.
    NotFound,
}

/// A transcript to store.
///
/// The library checked it: it has a selector and a segment, and belongs to the video.
#[derive(Clone, Debug, uniffi::Record)]
pub struct PutRequest {
    /// The video.
    pub video: VideoId,
    /// The selectors of the transcript; at least one.
    pub selectors: Vec<TrackSelector>,
    /// The transcript, without metadata and tracks.
    pub transcript: Transcript,
    /// SHA-256 of the content: equal digests mean equal content.
    pub content_sha256: Vec<u8>,
    /// All known tracks of the video.
    pub known_tracks: Vec<TrackInfo>,
    /// Metadata of the video; what is unknown leaves the stored metadata unchanged.
    pub metadata: VideoMetadata,
    /// Version of the library's parsers that produced the transcript.
    pub parser_version: u32,
    /// Whether it replaces a stored transcript.
    pub replace: bool,
    /// Current time, in milliseconds since 1970.
    pub now: Timestamp,
}

/// Page of archived tracks.
#[derive(Clone, Debug, uniffi::Record)]
pub struct TrackPage {
    /// The items, in order.
    pub items: Vec<ArchivedTrack>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Page of videos.
#[derive(Clone, Debug, uniffi::Record)]
pub struct VideoPage {
    /// The items, in order.
    pub items: Vec<VideoId>,
    /// Cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

/// Permanent store of transcripts. The conformance suite defines the contract.
#[uniffi::export(rust, foreign)]
#[async_trait]
pub trait ArchiveStore: Send + Sync {
    /// Finds the transcript of a selector, or its absence that has not expired.
    async fn find(
        &self,
        video: VideoId,
        selector: TrackSelector,
        now: Timestamp,
    ) -> Result<FindOutcome, VerbatimError>;

    /// Known tracks of a video with their archived state; empty for a withdrawn video.
    async fn tracks(&self, video: VideoId) -> Result<Vec<ArchivedTrack>, VerbatimError>;

    /// Stores a transcript for each selector that has none.
    ///
    /// With `replace`, a changed transcript becomes a new revision. Returns the transcript that the first selector has
    /// afterwards. `Conflict` for a withdrawn video.
    async fn put(&self, request: PutRequest) -> Result<StoredTranscript, VerbatimError>;

    /// Stores an absence.
    async fn put_absence(&self, absence: Absence) -> Result<(), VerbatimError>;

    /// Acquires the lease on a fetch, or renews it for the same holder.
    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome, VerbatimError>;

    /// Releases a lease if this holder has it.
    async fn release_lease(
        &self,
        video: VideoId,
        selector: TrackSelector,
        holder: Holder,
    ) -> Result<(), VerbatimError>;

    /// The video of a short link, if stored.
    async fn short_link(&self, link: ShortLink) -> Result<Option<VideoId>, VerbatimError>;

    /// Stores the video of a short link permanently. The first video stays.
    async fn put_short_link(&self, link: ShortLink, video: VideoId) -> Result<(), VerbatimError>;

    /// Withdraws a video or restores it. Stored data stays, but is not found while the video is withdrawn.
    async fn withdraw(&self, video: VideoId, withdrawn: bool, now: Timestamp) -> Result<(), VerbatimError>;

    /// Deletes transcripts, absences and known tracks of a video.
    ///
    /// Its withdrawal, leases and short links stay.
    async fn delete(&self, video: VideoId) -> Result<(), VerbatimError>;

    /// Counter that grows with each change that can invalidate a transcript found before.
    async fn change_counter(&self) -> Result<u64, VerbatimError>;

    /// Lists archived tracks in the order of their videos.
    async fn list_tracks(&self, page: PageRequest) -> Result<TrackPage, VerbatimError>;

    /// Lists withdrawn videos.
    async fn list_withdrawn(&self, page: PageRequest) -> Result<VideoPage, VerbatimError>;

    /// Totals of the archive.
    async fn stats(&self) -> Result<ArchiveStats, VerbatimError>;
}

#[cfg(feature = "testing")]
impl From<core::FindOutcome> for FindOutcome {
    fn from(outcome: core::FindOutcome) -> Self {
        match outcome {
            core::FindOutcome::Transcript(stored) => Self::Stored { stored: stored.into() },
            core::FindOutcome::Absence(absence) => Self::Absent { absence },
            core::FindOutcome::Withdrawn => Self::Withdrawn,
            core::FindOutcome::NotFound => Self::NotFound,
        }
    }
}

#[cfg(feature = "testing")]
impl PutRequest {
    /// The request for a store of the core.
    ///
    /// # Errors
    /// `InvalidInput` if the transcript is invalid.
    pub(crate) fn into_core(self) -> Result<core::PutRequest, VerbatimError> {
        Ok(core::PutRequest {
            video: self.video,
            selectors: self.selectors,
            transcript: Arc::new(self.transcript.into_core()?),
            known_tracks: self.known_tracks,
            metadata: self.metadata.into_core()?,
            parser_version: self.parser_version,
            replace: self.replace,
            now: self.now,
        })
    }
}

#[cfg(feature = "testing")]
impl From<core::StoredTranscript> for StoredTranscript {
    fn from(stored: core::StoredTranscript) -> Self {
        Self {
            transcript: Transcript::from(&*stored.transcript),
            revision: stored.revision,
            content_sha256: stored.content_sha256,
            parser_version: stored.parser_version,
            stored_at: stored.stored_at,
            details: VideoDetails::from(&*stored.details),
        }
    }
}

/// The core's form of a transcript of this video from the app's archive.
///
/// # Errors
/// `Corrupt` if it is invalid or of another video: a wrong row would be shown as the transcript of this video.
fn into_core(video: &VideoId, stored: StoredTranscript) -> Result<core::StoredTranscript> {
    let invalid =
        |reason: &str| Error::corrupt(format!("the app's archive returned an invalid transcript: {reason}"));
    let unreadable = |error: VerbatimError| invalid(&error.to_string());
    let transcript = stored.transcript.into_core().map_err(unreadable)?;
    transcript.check().map_err(|error| invalid(error.message()))?;
    let reason = if transcript.video != *video {
        Some("it is of another video")
    } else if stored.revision == 0 {
        Some("its revision is 0")
    } else if stored.content_sha256.len() != DIGEST_BYTES {
        Some("its digest does not have 32 bytes")
    } else {
        None
    };
    if let Some(reason) = reason {
        return Err(invalid(reason));
    }
    Ok(core::StoredTranscript {
        transcript: Arc::new(transcript),
        revision: stored.revision,
        content_sha256: stored.content_sha256,
        parser_version: stored.parser_version,
        stored_at: stored.stored_at,
        details: Arc::new(stored.details.into_core().map_err(unreadable)?),
    })
}

#[async_trait]
impl Archive for ForeignStore<dyn ArchiveStore> {
    async fn find(
        &self,
        video: &VideoId,
        selector: &TrackSelector,
        now: Timestamp,
    ) -> Result<core::FindOutcome> {
        Ok(match self.call(self.store.find(video.clone(), selector.clone(), now)).await? {
            FindOutcome::Stored { stored } => core::FindOutcome::Transcript(into_core(video, stored)?),
            FindOutcome::Absent { absence } => core::FindOutcome::Absence(absence),
            FindOutcome::Withdrawn => core::FindOutcome::Withdrawn,
            FindOutcome::NotFound => core::FindOutcome::NotFound,
        })
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        self.call(self.store.tracks(video.clone())).await
    }

    async fn put(&self, request: core::PutRequest) -> Result<core::StoredTranscript> {
        request.check()?;
        let video = request.video.clone();
        let request = PutRequest {
            video: request.video,
            selectors: request.selectors,
            content_sha256: content_digest(&request.transcript),
            transcript: Transcript::from(&*request.transcript),
            known_tracks: request.known_tracks,
            metadata: VideoMetadata::from(&request.metadata),
            parser_version: request.parser_version,
            replace: request.replace,
            now: request.now,
        };
        into_core(&video, self.call(self.store.put(request)).await?)
    }

    async fn put_absence(&self, absence: Absence) -> Result<()> {
        self.call(self.store.put_absence(absence)).await
    }

    async fn acquire_lease(&self, lease: FetchLease) -> Result<LeaseOutcome> {
        self.call(self.store.acquire_lease(lease)).await
    }

    async fn release_lease(&self, video: &VideoId, selector: &TrackSelector, holder: &Holder) -> Result<()> {
        self.call(self.store.release_lease(video.clone(), selector.clone(), holder.clone())).await
    }

    async fn short_link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.call(self.store.short_link(link.clone())).await
    }

    async fn put_short_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        self.call(self.store.put_short_link(link.clone(), video.clone())).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.call(self.store.withdraw(video.clone(), withdrawn, now)).await
    }

    async fn delete(&self, video: &VideoId) -> Result<()> {
        self.call(self.store.delete(video.clone())).await
    }

    async fn change_counter(&self) -> Result<u64> {
        self.call(self.store.change_counter()).await
    }

    async fn list_tracks(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let after = page.after.clone();
        let TrackPage { items, next } = self.call(self.store.list_tracks(page)).await?;
        self.page(after, items, next)
    }

    async fn list_withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let after = page.after.clone();
        let VideoPage { items, next } = self.call(self.store.list_withdrawn(page)).await?;
        self.page(after, items, next)
    }

    async fn stats(&self) -> Result<ArchiveStats> {
        self.call(self.store.stats()).await
    }
}
