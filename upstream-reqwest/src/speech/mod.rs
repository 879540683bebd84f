//! Speech-to-text: transcribes a video without captions from its audio.
//!
//! The platform's file is downloaded, converted to PCM samples by the ffmpeg program and split at quiet positions. Each
//! chunk is sent to an OpenAI-compatible service. Its response is untrusted: text without audible sound and times
//! outside the chunk are removed or rejected.

mod audio;
mod chunking;
mod endpoint;
mod failure;
mod ffmpeg;
mod finished_chunks;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hallucination;
mod language;
mod loudness;
mod multipart;
mod response;
mod timestamps;
mod transcribe;
mod words;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::timeout_at;
use transcript_core::{
    Result,
    supplier::{
        Supplier, SupplierInfo, SupplierKind, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason,
        SupplyRequest,
    },
    time::Clock,
    video::Platform,
};

use crate::{
    deadline::call_end,
    http::HttpTransport,
    social::MediaSource,
    speech_options::{AudioFormat, SpeechOptions},
};
use endpoint::SpeechEndpoint;
use failure::SpeechFailure;
use ffmpeg::Ffmpeg;
use finished_chunks::FinishedChunks;
use transcribe::TranscriptionJob;

/// The supplier's name.
const NAME: &str = "speech-to-text";

/// Transcripts of a speech-to-text service, as a supplier named `speech-to-text`.
///
/// It covers the platforms of its media sources. It reports the stages `audio` (bytes), `decoding` and `transcribing`
/// (chunks). It does not limit concurrent videos, each of which needs disk space: the engine does
/// (`EngineBuilder::concurrency`). Dropping its future stops the programs that it runs. Its files have no names, so
/// nothing remains of them however the process ends. Finished chunks of a video that failed are kept for an hour, in at
/// most 32 MB of memory, and are not sent again.
#[derive(Debug)]
pub struct SpeechToText {
    http: Arc<HttpTransport>,
    clock: Arc<dyn Clock>,
    sources: Vec<Arc<dyn MediaSource>>,
    endpoint: SpeechEndpoint,
    ffmpeg: Ffmpeg,
    finished: FinishedChunks,
    options: SpeechOptions,
}

impl SpeechToText {
    /// Creates the supplier. Files are downloaded over this transport; deadlines refer to `clock`.
    /// The media sources of a platform are tried in this order, until one has the audio or knows the video's state.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong, `Unsupported` when the system has no root
    /// certificates.
    pub fn new(
        http: Arc<HttpTransport>,
        options: SpeechOptions,
        clock: Arc<dyn Clock>,
        sources: Vec<Arc<dyn MediaSource>>,
    ) -> Result<Self> {
        let endpoint = SpeechEndpoint::new(&options)?;
        let ffmpeg = Ffmpeg::new(&options.ffmpeg);
        Ok(Self { http, clock, sources, endpoint, ffmpeg, finished: FinishedChunks::default(), options })
    }

    fn sources_of(&self, platform: Platform) -> impl Iterator<Item = &dyn MediaSource> {
        self.sources.iter().map(AsRef::as_ref).filter(move |source| source.platform() == platform)
    }
}

#[async_trait]
impl Supplier for SpeechToText {
    fn info(&self) -> SupplierInfo {
        SupplierInfo {
            name: NAME.to_owned(),
            platforms: Platform::ALL
                .into_iter()
                .filter(|platform| self.sources_of(*platform).count() > 0)
                .collect(),
            kind: SupplierKind::Speech,
        }
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        monitor: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        let sources: Vec<_> = self.sources_of(request.video.platform()).collect();
        if sources.is_empty() {
            let message = format!("{NAME} does not support videos of {}.", request.video.platform().name());
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let deadline = call_end(self.clock.as_ref(), request.deadline);
        let job = TranscriptionJob { speech: self, request: &request, monitor: monitor.as_ref(), deadline };
        timeout_at(deadline, job.run(&sources)).await.unwrap_or_else(|_| Err(SpeechFailure::TooSlow.error()))
    }
}
