//! Supplier of the app.

use std::{mem, sync::Arc, time::Duration};

use async_trait::async_trait;
use transcript_core::{
    Clock,
    supplier::{self, SupplierInfo, SupplierKind, SupplyError, SupplyOutput},
    transcript::TrackKind,
    video::Platform,
};

use crate::{error::VerbatimError, transcript::Transcript};

/// Why a supplier has no transcript.
///
/// `NoCaptions` to `Upcoming` concern the video and are stored as an absence; `Throttled` to `Unreadable` are
/// transient, and several in a row pause the supplier; `Stale` and `Misconfigured` require an action of the app's
/// developer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum SupplyReason {
    /// The video has no captions or no speech.
    NoCaptions,
    /// The video has transcripts, but none in the requested language.
    NoLanguage,
    /// The video is private.
    Private,
    /// The video was removed or never existed.
    Removed,
    /// The video is not available in this region.
    Region,
    /// The video is age-restricted.
    Age,
    /// The video is for members only.
    Members,
    /// The video must be bought.
    Payment,
    /// The video requires a login.
    Login,
    /// The video is a running live stream.
    Live,
    /// The live stream or premiere has not started yet.
    Upcoming,
    /// The platform throttles requests.
    Throttled,
    /// The platform requires a bot check.
    BotCheck,
    /// The platform returned another video.
    OtherVideo,
    /// The platform exceeded the timeout.
    Timeout,
    /// The platform could not be reached.
    Unreachable,
    /// The platform failed with an internal error.
    PlatformFault,
    /// The platform's response cannot be parsed.
    Unreadable,
    /// The client version that the supplier imitates is outdated.
    Stale,
    /// The supplier's settings are invalid.
    Misconfigured,
    /// The supplier failed in another way, such as with an exception that it does not declare.
    ///
    /// Only this call fails: unlike a fault of the platform, it does not pause the supplier.
    Unexpected,
}

/// Error of a supplier.
#[derive(Clone, Debug, PartialEq, uniffi::Error, derive_more::Display, derive_more::Error)]
#[display("{detail}")]
pub enum SupplyFailure {
    /// There is no transcript.
    Failed {
        /// The reason.
        reason: SupplyReason,
        /// The reason, in one sentence for people.
        detail: String,
        /// Time after which a retry may succeed.
        retry_after: Option<Duration>,
    },
}

impl From<uniffi::UnexpectedUniFFICallbackError> for SupplyFailure {
    /// An undeclared exception of the app's code, or an invalid value that it returned.
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        let detail = format!("The app's supplier failed: {}", error.reason);
        Self::Failed { reason: SupplyReason::Unexpected, detail, retry_after: None }
    }
}

/// Progress and cancellation of a fetch.
#[derive(Debug, uniffi::Object)]
pub struct SupplyMonitor {
    inner: Arc<dyn supplier::SupplyMonitor>,
}

#[uniffi::export]
impl SupplyMonitor {
    /// Reports the progress of a stage: `done` of `total` units; a `total` of 0 means unknown.
    pub fn report_progress(&self, name: String, done: i64, total: i64) {
        let count = |value: i64| u64::try_from(value).unwrap_or_default();
        self.inner.report_progress(&name, count(done), count(total));
    }

    /// Whether no caller waits any more. Long work should check this between its steps.
    pub fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }
}

/// Request to a supplier.
#[derive(Clone, Debug, uniffi::Record)]
pub struct SupplyRequest {
    /// Platform of the video.
    pub platform: Platform,
    /// The video's id on its platform.
    pub video_id: String,
    /// URL of the video.
    pub url: String,
    /// Requested language as a BCP 47 tag; `None`: English if available, otherwise the spoken language.
    pub language: Option<String>,
    /// Whether a machine translation into the language is accepted if the video has no other transcript in it.
    pub translated: bool,
    /// Maximum duration of the call.
    pub timeout: Duration,
    /// Progress and cancellation.
    pub monitor: Arc<SupplyMonitor>,
}

/// Source of transcripts that are not archived.
#[uniffi::export(foreign)]
#[async_trait]
pub trait Supplier: Send + Sync {
    /// Returns the transcripts of a video, best match first.
    ///
    /// An empty list means that the video has no captions. Metadata and tracks of the transcripts are stored for the
    /// video.
    async fn supply(&self, request: SupplyRequest) -> Result<Vec<Transcript>, SupplyFailure>;
}

/// A supplier of the app as a port of the core.
pub(crate) struct ForeignSupplier {
    supplier: Arc<dyn Supplier>,
    info: SupplierInfo,
    timeout: Duration,
    clock: verbatim::SystemClock,
}

transcript_core::debug_fields!(ForeignSupplier |this| { name: this.info.name });

impl ForeignSupplier {
    pub(crate) fn new(
        supplier: Arc<dyn Supplier>,
        name: String,
        platforms: Vec<Platform>,
        kind: SupplierKind,
        timeout: Duration,
    ) -> Self {
        let clock = verbatim::SystemClock::default();
        Self { supplier, info: SupplierInfo { name, platforms, kind }, timeout, clock }
    }

    /// Checks and converts the transcripts that the app's code returned.
    fn check_transcripts(&self, transcripts: Vec<Transcript>) -> Result<SupplyOutput, SupplyError> {
        let mut output = SupplyOutput::default();
        for transcript in transcripts {
            self.add_transcript(&mut output, transcript).map_err(|error| {
                let message =
                    format!("The supplier {} returned an invalid transcript: {error}.", self.info.name);
                SupplyError::new(supplier::SupplyReason::PlatformFault, message).defect()
            })?;
        }
        if output.transcripts.is_empty() {
            return Err(SupplyError::new(supplier::SupplyReason::NoCaptions, "The video has no captions."));
        }
        Ok(output)
    }

    /// Adds a transcript with its metadata and tracks; metadata of an earlier transcript stays.
    fn add_transcript(&self, output: &mut SupplyOutput, mut record: Transcript) -> Result<(), VerbatimError> {
        let (metadata, tracks) = (mem::take(&mut record.metadata), mem::take(&mut record.tracks));
        let metadata = metadata.into_core()?;
        let mut transcript = record.into_core()?;
        // A remote service names the supplier that it used.
        if self.info.kind != SupplierKind::Remote {
            self.info.name.clone_into(&mut transcript.source);
        }
        for track in tracks.into_iter().chain([transcript.track.clone()]) {
            if !output.known_tracks.iter().any(|known| known.is_same(&track)) {
                output.known_tracks.push(track);
            }
        }
        output.metadata = mem::take(&mut output.metadata).or(&metadata);
        output.transcripts.push(transcript);
        Ok(())
    }
}

#[async_trait]
impl supplier::Supplier for ForeignSupplier {
    fn info(&self) -> SupplierInfo {
        self.info.clone()
    }

    fn is_custom(&self) -> bool {
        true
    }

    async fn supply(
        &self,
        request: supplier::SupplyRequest,
        monitor: Arc<dyn supplier::SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        let timeout = request.deadline.since(self.clock.now()).min(self.timeout);
        let request = SupplyRequest {
            platform: request.video.platform(),
            video_id: request.video.id().to_owned(),
            url: request.video.address(),
            language: request.selector.language().map(|tag| tag.as_str().to_owned()),
            translated: request.selector.takes(TrackKind::Translated),
            timeout,
            monitor: Arc::new(SupplyMonitor { inner: monitor }),
        };
        match tokio::time::timeout(timeout, self.supplier.supply(request)).await {
            Ok(Ok(transcripts)) => self.check_transcripts(transcripts),
            Ok(Err(failure)) => Err(failure.into()),
            Err(_) => {
                let message = format!("The supplier {} did not answer in time.", self.info.name);
                Err(SupplyError::new(supplier::SupplyReason::Timeout, message))
            }
        }
    }
}

impl From<SupplyFailure> for SupplyError {
    fn from(failure: SupplyFailure) -> Self {
        use supplier::SupplyReason as Core;
        let SupplyFailure::Failed { reason, detail, retry_after } = failure;
        let is_unexpected = reason == SupplyReason::Unexpected;
        let reason = match reason {
            SupplyReason::NoCaptions => Core::NoCaptions,
            SupplyReason::NoLanguage => Core::NoLanguage(Vec::new()),
            SupplyReason::Private => Core::Private,
            SupplyReason::Removed => Core::Removed,
            SupplyReason::Region => Core::Region,
            SupplyReason::Age => Core::Age,
            SupplyReason::Members => Core::Members,
            SupplyReason::Payment => Core::Payment,
            SupplyReason::Login => Core::Login,
            SupplyReason::Live => Core::Live,
            SupplyReason::Upcoming => Core::Upcoming(None),
            SupplyReason::Throttled => Core::Throttled(retry_after),
            SupplyReason::BotCheck => Core::BotCheck,
            SupplyReason::OtherVideo => Core::OtherVideo,
            SupplyReason::Timeout => Core::Timeout,
            SupplyReason::Unreachable => Core::Unreachable,
            SupplyReason::PlatformFault | SupplyReason::Unexpected => Core::PlatformFault,
            SupplyReason::Unreadable => Core::Unreadable,
            SupplyReason::Stale => Core::Stale,
            SupplyReason::Misconfigured => Core::Misconfigured,
        };
        let error = SupplyError::new(reason, detail);
        let error = if is_unexpected { error.video_only() } else { error };
        match retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        }
    }
}
