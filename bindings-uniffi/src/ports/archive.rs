//! An archive of the app's.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    archive::{
        Absence, Archive, ArchivedTrack, Claim, Found, Keep, Lease, Stats, StoredTranscript, Wish,
        content_digest,
    },
    ids::{Cursor, Holder},
    transcript::TrackInfo,
    video::{ShortLink, VideoId},
};

use super::Foreign;
use crate::{error::VerbatimError, transcript::Transcript};

/// A transcript as the archive holds it.
#[derive(Clone, Debug, PartialEq, uniffi::Record)]
pub struct StoredRecord {
    /// The transcript. Its `from_cache` and `revision` mean nothing here.
    pub transcript: Transcript,
    /// Counts the refreshes: 1 for the first.
    pub revision: u32,
    /// The digest of its content: 32 bytes.
    pub content_sha256: Vec<u8>,
    /// Which version of our parsers made it.
    pub parser_version: u32,
    /// When it was stored, in milliseconds since 1970.
    pub stored_at: Timestamp,
}

/// What is known about a wish.
#[derive(Clone, Debug, PartialEq, uniffi::Enum)]
pub enum ArchiveFind {
    /// A transcript.
    Stored {
        /// It.
        stored: StoredRecord,
    },
    /// It is known that there is nothing.
    Absent {
        /// Why, and until when.
        absence: Absence,
    },
    /// The operator took the video down.
    Withdrawn,
    /// Nothing is known.
    Nothing,
}

/// What to keep. It was checked: there is a wish and a segment, and the transcript is of the video.
#[derive(Clone, Debug, uniffi::Record)]
pub struct ArchiveKeep {
    /// The video.
    pub video: VideoId,
    /// The wishes that the transcript answers; at least one.
    pub wishes: Vec<Wish>,
    /// The transcript.
    pub transcript: Transcript,
    /// The digest of its content, by which two are told apart.
    pub content_sha256: Vec<u8>,
    /// All tracks that the video is known to have.
    pub known_tracks: Vec<TrackInfo>,
    /// Which version of our parsers made the transcript.
    pub parser_version: u32,
    /// Whether it replaces what is stored.
    pub replace: bool,
    /// The present moment, in milliseconds since 1970.
    pub now: Timestamp,
}

/// A part of the list of archived tracks.
#[derive(Clone, Debug, uniffi::Record)]
pub struct TrackPage {
    /// The items, in order.
    pub items: Vec<ArchivedTrack>,
    /// What to ask for to go on; none when there is no more.
    pub next: Option<Cursor>,
}

/// A part of a list of videos.
#[derive(Clone, Debug, uniffi::Record)]
pub struct VideoPage {
    /// The items, in order.
    pub items: Vec<VideoId>,
    /// What to ask for to go on; none when there is no more.
    pub next: Option<Cursor>,
}

/// An archive: the lasting store of transcripts. Its contract is the one that the conformance suite holds it to.
#[uniffi::export(rust, foreign)]
#[async_trait]
pub trait ArchiveStore: Send + Sync {
    /// What is known about a wish; an absence only until its end.
    async fn find(&self, video: VideoId, wish: Wish, now: Timestamp) -> Result<ArchiveFind, VerbatimError>;

    /// The tracks that a video is known to have, and what is archived of each; none for a withdrawn video.
    async fn tracks(&self, video: VideoId) -> Result<Vec<ArchivedTrack>, VerbatimError>;

    /// Keeps a transcript for each wish that has none; with `replace`, as a new revision where it has changed. Gives what
    /// the first wish has then. `Conflict` for a withdrawn video.
    async fn keep(&self, keep: ArchiveKeep) -> Result<StoredRecord, VerbatimError>;

    /// Remembers that a wish has nothing.
    async fn keep_absence(&self, absence: Absence) -> Result<(), VerbatimError>;

    /// Claims the right to fetch, or renews one's claim.
    async fn claim(&self, lease: Lease) -> Result<Claim, VerbatimError>;

    /// Gives a claim back, where it is the holder's.
    async fn unclaim(&self, video: VideoId, wish: Wish, holder: Holder) -> Result<(), VerbatimError>;

    /// The video that a short link means, where it was learnt.
    async fn link(&self, link: ShortLink) -> Result<Option<VideoId>, VerbatimError>;

    /// Remembers what a short link means, for ever. The first answer stays.
    async fn keep_link(&self, link: ShortLink, video: VideoId) -> Result<(), VerbatimError>;

    /// Takes a video down, or puts it back. What is stored stays stored, but is no longer found.
    async fn withdraw(&self, video: VideoId, withdrawn: bool, now: Timestamp) -> Result<(), VerbatimError>;

    /// Deletes transcripts, absences and known tracks of a video; a withdrawal, leases and short links stay.
    async fn forget(&self, video: VideoId) -> Result<(), VerbatimError>;

    /// Counts the changes that can make a transcript untrue that was found before.
    async fn changes(&self) -> Result<u64, VerbatimError>;

    /// The archived tracks, by video.
    async fn page(&self, page: PageRequest) -> Result<TrackPage, VerbatimError>;

    /// The withdrawn videos.
    async fn withdrawn(&self, page: PageRequest) -> Result<VideoPage, VerbatimError>;

    /// How much there is.
    async fn stats(&self) -> Result<Stats, VerbatimError>;
}

/// What a store of the core's found, as an app has it.
#[cfg(feature = "testing")]
pub(crate) fn archive_find(found: Found) -> ArchiveFind {
    match found {
        Found::Transcript(stored) => ArchiveFind::Stored { stored: stored_record(&stored) },
        Found::Absent(absence) => ArchiveFind::Absent { absence },
        Found::Withdrawn => ArchiveFind::Withdrawn,
        Found::Nothing => ArchiveFind::Nothing,
    }
}

#[cfg(feature = "testing")]
impl ArchiveKeep {
    /// What a store of the core's keeps.
    ///
    /// # Errors
    /// `InvalidInput` when the transcript is none.
    pub(crate) fn into_core(self) -> Result<Keep, VerbatimError> {
        Ok(Keep {
            video: self.video,
            wishes: self.wishes,
            transcript: Arc::new(self.transcript.into_core()?),
            known_tracks: self.known_tracks,
            parser_version: self.parser_version,
            replace: self.replace,
            now: self.now,
        })
    }
}

/// What a store of the core's holds, as an app has it.
#[cfg(feature = "testing")]
pub(crate) fn stored_record(stored: &StoredTranscript) -> StoredRecord {
    StoredRecord {
        transcript: Transcript::of(&stored.transcript, true, stored.revision),
        revision: stored.revision,
        content_sha256: stored.content_sha256.clone(),
        parser_version: stored.parser_version,
        stored_at: stored.stored_at,
    }
}

/// What the app's archive holds, as the core has it.
fn stored(record: StoredRecord) -> Result<StoredTranscript> {
    let nonsense = |error: VerbatimError| {
        transcript_core::Error::new(
            transcript_core::ErrorKind::Corrupt,
            transcript_core::Retry::Never,
            format!("the app's archive returned no transcript: {error}"),
        )
    };
    Ok(StoredTranscript {
        transcript: Arc::new(record.transcript.into_core().map_err(nonsense)?),
        revision: record.revision,
        content_sha256: record.content_sha256,
        parser_version: record.parser_version,
        stored_at: record.stored_at,
    })
}

#[async_trait]
impl Archive for Foreign<dyn ArchiveStore> {
    async fn find(&self, video: &VideoId, wish: &Wish, now: Timestamp) -> Result<Found> {
        Ok(match self.ask(self.store.find(video.clone(), wish.clone(), now)).await? {
            ArchiveFind::Stored { stored: record } => Found::Transcript(stored(record)?),
            ArchiveFind::Absent { absence } => Found::Absent(absence),
            ArchiveFind::Withdrawn => Found::Withdrawn,
            ArchiveFind::Nothing => Found::Nothing,
        })
    }

    async fn tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>> {
        self.ask(self.store.tracks(video.clone())).await
    }

    async fn keep(&self, keep: Keep) -> Result<StoredTranscript> {
        keep.check()?;
        let keep = ArchiveKeep {
            video: keep.video,
            wishes: keep.wishes,
            content_sha256: content_digest(&keep.transcript),
            transcript: Transcript::of(&keep.transcript, false, 0),
            known_tracks: keep.known_tracks,
            parser_version: keep.parser_version,
            replace: keep.replace,
            now: keep.now,
        };
        stored(self.ask(self.store.keep(keep)).await?)
    }

    async fn keep_absence(&self, absence: Absence) -> Result<()> {
        self.ask(self.store.keep_absence(absence)).await
    }

    async fn claim(&self, lease: Lease) -> Result<Claim> {
        self.ask(self.store.claim(lease)).await
    }

    async fn unclaim(&self, video: &VideoId, wish: &Wish, holder: &Holder) -> Result<()> {
        self.ask(self.store.unclaim(video.clone(), wish.clone(), holder.clone())).await
    }

    async fn link(&self, link: &ShortLink) -> Result<Option<VideoId>> {
        self.ask(self.store.link(link.clone())).await
    }

    async fn keep_link(&self, link: &ShortLink, video: &VideoId) -> Result<()> {
        self.ask(self.store.keep_link(link.clone(), video.clone())).await
    }

    async fn withdraw(&self, video: &VideoId, withdrawn: bool, now: Timestamp) -> Result<()> {
        self.ask(self.store.withdraw(video.clone(), withdrawn, now)).await
    }

    async fn forget(&self, video: &VideoId) -> Result<()> {
        self.ask(self.store.forget(video.clone())).await
    }

    async fn changes(&self) -> Result<u64> {
        self.ask(self.store.changes()).await
    }

    async fn page(&self, page: PageRequest) -> Result<Page<ArchivedTrack>> {
        let TrackPage { items, next } = self.ask(self.store.page(page)).await?;
        Ok(Page { items, next })
    }

    async fn withdrawn(&self, page: PageRequest) -> Result<Page<VideoId>> {
        let VideoPage { items, next } = self.ask(self.store.withdrawn(page)).await?;
        Ok(Page { items, next })
    }

    async fn stats(&self) -> Result<Stats> {
        self.ask(self.store.stats()).await
    }
}
