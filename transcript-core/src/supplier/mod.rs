//! Suppliers: sources of transcripts that are not archived.

mod error;
mod list;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

pub use error::{SupplyError, SupplyReason};
pub(crate) use list::missing_lister;
pub use list::{
    ListAbsence, ListAbsenceReason, ListOutcome, ListPosition, ListedVideo, TimeRange, VideoListPage,
    VideoLister,
};

use crate::{
    time::Timestamp,
    transcript::{TrackInfo, TrackSelector, Transcript, VideoMetadata},
    video::{Platform, ShortLink, VideoId},
};

/// How a supplier obtains transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SupplierKind {
    /// Reads captions of the platform.
    Captions,
    /// Recognises speech in the audio.
    Speech,
    /// Requests transcripts from another service.
    Remote,
}

/// Name and capabilities of a supplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierInfo {
    /// Name, `source` on the wire: `youtube-captions`, `speech-to-text`, …
    pub name: String,
    /// Supported platforms.
    pub platforms: Vec<Platform>,
    /// How the supplier obtains transcripts.
    pub kind: SupplierKind,
}

impl SupplierInfo {
    /// A supplier of captions for these platforms.
    pub fn captions(name: &str, platforms: &[Platform]) -> Self {
        Self { name: name.to_owned(), platforms: platforms.to_vec(), kind: SupplierKind::Captions }
    }
}

/// Request to a supplier.
#[derive(Clone, Debug)]
pub struct SupplyRequest {
    /// The video.
    pub video: VideoId,
    /// Selects the track.
    pub selector: TrackSelector,
    /// Time after which a result is useless. A supplier stops before it.
    pub deadline: Timestamp,
}

/// Result of a supplier.
#[derive(Clone, Debug, Default)]
pub struct SupplyOutput {
    /// At least one transcript, the best match first.
    ///
    /// If a language was selected, the default transcript is included where it is another one.
    pub transcripts: Vec<Transcript>,
    /// All known tracks of the video, fetched or not.
    pub known_tracks: Vec<TrackInfo>,
    /// Metadata of the video, as far as it came with the transcript.
    pub metadata: VideoMetadata,
}

/// Receives a supplier's progress and reports cancellation to it.
pub trait SupplyMonitor: fmt::Debug + Send + Sync + 'static {
    /// Reports that the stage `name` has processed `done` of `of` units; `of` is 0 if unknown.
    fn report_progress(&self, name: &str, done: u64, of: u64);

    /// Whether the result is no longer needed. Long work checks this between its steps.
    fn is_cancelled(&self) -> bool;
}

/// A source of transcripts that are not archived.
#[async_trait]
pub trait Supplier: fmt::Debug + Send + Sync + 'static {
    /// Describes the supplier; the value never changes.
    fn info(&self) -> SupplierInfo;

    /// Whether this is code of an application: an invalid transcript is then a defect of that code.
    ///
    /// Unlike the invalid response of a platform, it neither opens nor closes the circuit breaker.
    fn is_custom(&self) -> bool {
        false
    }

    /// Fetches or creates the transcript of a video.
    ///
    /// **Behaviour**
    /// - The result belongs to the requested video: a platform response about another video is a failure.
    /// - Text and times are those of the platform; nothing is invented, and an empty response is a failure.
    /// - Transient faults are retried inside, within the deadline.
    /// - Dropping the future stops the work and removes its temporary data.
    ///
    /// # Errors
    /// [`SupplyError`]; its reason decides what is stored as an absence, charged and reported.
    async fn supply(
        &self,
        request: SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError>;
}

/// Outcome of resolving a short link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveOutcome {
    /// The link leads to this video.
    Video(VideoId),
    /// The link has expired, or leads to no video; the text says which.
    NotAVideo(String),
}

/// Resolves short links of a platform.
#[async_trait]
pub trait LinkResolver: fmt::Debug + Send + Sync + 'static {
    /// Resolves a short link to its video.
    ///
    /// **Behaviour**: redirects are followed only between the platform's known hosts, at most five, and no body is
    /// read.
    ///
    /// # Errors
    /// [`SupplyError`] if the platform cannot be reached or currently rejects requests.
    async fn resolve(&self, link: &ShortLink, deadline: Timestamp) -> Result<ResolveOutcome, SupplyError>;
}
