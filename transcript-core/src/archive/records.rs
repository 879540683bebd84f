//! Input and output types of the archive.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    ids::{Cursor, Holder},
    page::PageRequest,
    time::{LEASE_MAX, Timestamp},
    transcript::{LanguageTag, TrackInfo, TrackSelector, Transcript, VideoDetails, VideoMetadata},
    video::VideoId,
};

/// Archived transcript with its revision and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTranscript {
    /// The transcript.
    pub transcript: Arc<Transcript>,
    /// Revision number: 1 for the first, one more per refresh.
    pub revision: u32,
    /// [`super::content_digest`] of the content: 32 bytes, the base of the ETag.
    pub content_sha256: Vec<u8>,
    /// Version of the parsers that produced it; see [`crate::captions::PARSER_VERSION`].
    pub parser_version: u32,
    /// When it was stored.
    pub stored_at: Timestamp,
    /// What is known of the video at present, whatever the revision.
    #[serde(default)]
    pub details: Arc<VideoDetails>,
}

impl StoredTranscript {
    /// First four bytes of the content digest, for cursors: they differ for other transcripts and revisions.
    pub fn short_digest(&self) -> u32 {
        self.content_sha256.iter().take(4).fold(0, |digest, byte| digest << 8 | u32::from(*byte))
    }
}

/// Negative-cache entry of a video and selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// The video.
    pub video: VideoId,
    /// The selector.
    #[serde(rename = "wish")]
    pub selector: TrackSelector,
    /// Permanent name of the reason, from [`crate::supplier::SupplyReason::as_str`].
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// Names of the suppliers that were tried. A newly configured supplier voids the absence.
    #[serde(rename = "asked")]
    pub suppliers_tried: Vec<String>,
    /// When it expires.
    pub until: Timestamp,
}

/// Outcome of [`super::Archive::find`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindOutcome {
    /// The transcript.
    Transcript(StoredTranscript),
    /// A valid absence: the video has no such transcript.
    #[serde(rename = "absent")]
    Absence(Absence),
    /// The operator took the video down.
    Withdrawn,
    /// Nothing is known.
    #[serde(rename = "nothing")]
    NotFound,
}

/// Maximum number of known tracks of a video.
pub const KNOWN_TRACKS_MAX: usize = 1_000;

/// Request of [`super::Archive::put`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutRequest {
    /// The video.
    pub video: VideoId,
    /// Selectors that the transcript serves; at least one.
    #[serde(rename = "wishes")]
    pub selectors: Vec<TrackSelector>,
    /// The transcript. Shared, because the call may have to be repeated.
    pub transcript: Arc<Transcript>,
    /// All known tracks of the video.
    pub known_tracks: Vec<TrackInfo>,
    /// Metadata of the video; what is unknown leaves the stored metadata unchanged.
    #[serde(default)]
    pub metadata: VideoMetadata,
    /// Version of the parsers that produced the transcript.
    pub parser_version: u32,
    /// Whether it replaces the stored transcript (a refresh).
    pub replace: bool,
    /// The current time.
    pub now: Timestamp,
}

impl PutRequest {
    /// Checks the limits of the request; every implementation calls it first.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`]: no selector, too many known tracks, a transcript beyond its limits, or one
    /// of another video.
    pub fn check(&self) -> Result<()> {
        if self.selectors.is_empty() {
            return Err(Error::invalid("the put request has no track selector"));
        }
        check_known_tracks(&self.known_tracks)?;
        self.transcript.check()?;
        self.metadata.check()?;
        if self.transcript.video != self.video {
            return Err(Error::invalid("the transcript belongs to another video"));
        }
        Ok(())
    }
}

/// Checks the number of known tracks; every implementation of [`super::Archive::add_known_tracks`] calls it first.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] for more than [`KNOWN_TRACKS_MAX`].
pub fn check_known_tracks(tracks: &[TrackInfo]) -> Result<()> {
    match tracks.len() {
        0..=KNOWN_TRACKS_MAX => Ok(()),
        _ => Err(Error::invalid("the request has more than 1,000 known tracks")),
    }
}

/// Request for a fetch lease; see [`super::Archive::acquire_lease`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FetchLease {
    /// The video.
    pub video: VideoId,
    /// The selector to fetch.
    #[serde(rename = "wish")]
    pub selector: TrackSelector,
    /// Holder of the lease.
    pub holder: Holder,
    /// The current time.
    pub now: Timestamp,
    /// When the lease expires unless it is renewed.
    pub until: Timestamp,
}

impl FetchLease {
    /// When the lease of another holder ends, which is stored with the end `until`.
    ///
    /// It is the end of this lease if `until` is more than [`LEASE_MAX`] after `now`: a clock that was ahead and was
    /// corrected since acquired it, and its holder renews it if it is alive. The store stores the earlier end.
    pub fn end_of_other(&self, until: Timestamp) -> Timestamp {
        if until > self.now.plus(LEASE_MAX) { until.min(self.until) } else { until }
    }
}

/// Outcome of [`super::Archive::acquire_lease`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseOutcome {
    /// The caller holds the lease.
    #[serde(rename = "claimed")]
    Acquired,
    /// Another holder has the lease.
    Busy {
        /// When that lease expires unless it is renewed.
        until: Timestamp,
    },
}

/// Track of a video and its state in the archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedTrack {
    /// The video.
    pub video: VideoId,
    /// The track.
    pub track: TrackInfo,
    /// Selectors that the archived track serves, in order; empty if the track is only known.
    #[serde(rename = "wishes")]
    pub selectors: Vec<TrackSelector>,
    /// Newest revision; `None` if the track is not archived.
    pub revision: Option<u32>,
    /// When that revision was stored.
    pub stored_at: Option<Timestamp>,
}

/// Size figures of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveStats {
    /// Videos with at least one transcript.
    pub videos: u64,
    /// Transcripts, all revisions counted.
    pub transcripts: u64,
    /// Absences, including expired ones that are not deleted yet.
    pub absences: u64,
    /// Videos taken down by the operator.
    pub withdrawn: u64,
    /// Resolved short links.
    pub links: u64,
    /// Bytes of the transcripts as stored.
    pub bytes: u64,
    /// Transcripts in cold storage; see [`super::Archive::compact`].
    #[serde(default)]
    pub compact: u64,
}

/// Request of [`super::Archive::compact`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompactRequest {
    /// Only transcripts stored before this time are moved.
    pub stored_before: Timestamp,
    /// Where to continue, and how many transcripts to scan.
    pub page: PageRequest,
}

/// Outcome of [`super::Archive::compact`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactOutcome {
    /// Transcripts scanned.
    #[serde(rename = "looked_at")]
    pub scanned: u64,
    /// Transcripts moved to cold storage by this call.
    pub compacted: u64,
    /// Size of the moved transcripts before, in bytes.
    pub bytes_before: u64,
    /// Size of the moved transcripts now, in bytes.
    pub bytes_after: u64,
    /// Videos with a transcript that could not be decoded. It was left unchanged.
    pub damaged: Vec<VideoId>,
    /// Where to continue; `None` at the end.
    pub next: Option<Cursor>,
}

/// Request of [`super::Archive::verify`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifyArchiveRequest {
    /// Where to continue, and how many transcripts to check.
    pub page: PageRequest,
    /// Whether damaged transcripts are deleted.
    pub delete_damaged: bool,
}

/// Outcome of [`super::Archive::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyArchiveOutcome {
    /// Transcripts checked.
    pub scanned: u64,
    /// Transcripts that cannot be read.
    pub damaged: Vec<DamagedTranscript>,
    /// Where to continue; `None` at the end.
    pub next: Option<Cursor>,
}

/// Video whose responses in shared caches may be outdated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedVideo {
    /// The video.
    pub video: VideoId,
    /// Number of its newest change; a later change has a higher one.
    pub change: u64,
}

/// Archived transcript that cannot be read, or the newest one of a video with damaged selectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedTranscript {
    /// The video.
    pub video: VideoId,
    /// Language of its track; `None` if unknown.
    pub language: Option<LanguageTag>,
    /// Its revision.
    pub revision: u32,
    /// Selectors that it serves; none if it is an earlier revision. Of damaged selectors, those without a transcript;
    /// of a video without any, those of its archived tracks.
    pub selectors: Vec<TrackSelector>,
    /// What is damaged.
    pub reason: String,
    /// Whether this call deleted it.
    pub is_deleted: bool,
    /// Whether this call set the damaged selectors of its video again.
    #[serde(default)]
    pub is_restored: bool,
    /// Whether its video has no selector, so that lookups fetch it. See [`super::Archive::restore_selectors`].
    #[serde(default)]
    pub is_unselected: bool,
}
