//! Listening: the words of a video that has no captions, from its sound.
//!
//! The platform's file is fetched, turned into plain sound by the ffmpeg program, cut where it is quiet, and
//! each part is sent to an OpenAI-compatible service. What that says is believed only as
//! far as it can be true: where there is no sound there are no words, and no time lies outside its part.

mod answer;
mod cutting;
mod endpoint;
mod ffmpeg;
mod form;
mod invented;
mod language;
mod listening;
mod loudness;
mod options;
mod refusal;
mod sound;
mod times;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use transcript_core::{
    Result,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    time::Clock,
};

pub use options::{SoundFormat, SpeechOptions};

use crate::{http::Http, social::MediaSource};
use endpoint::Endpoint;
use ffmpeg::Ffmpeg;
use listening::Listening;
use refusal::Refusal;

/// The supplier's name.
const NAME: &str = "speech-to-text";
/// How many videos are listened to at once; each takes room on the disk.
const VIDEOS_MAX: usize = 4;
/// How long before the caller's deadline it gives up, so that its own verdict still arrives.
const MARGIN: std::time::Duration = std::time::Duration::from_millis(250);

/// What a speech-to-text service hears in videos, as a supplier named `speech-to-text`.
///
/// It covers the platforms of its media sources. It tells the stages `audio` (bytes), `decoding` and
/// `transcribing` (parts). Dropping its future ends the programs that it runs; its files have no names, so
/// nothing is left of them whatever ends the process.
#[derive(Debug)]
pub struct SpeechToText {
    http: Arc<Http>,
    clock: Arc<dyn Clock>,
    sources: Vec<Arc<dyn MediaSource>>,
    endpoint: Endpoint,
    ffmpeg: Ffmpeg,
    options: SpeechOptions,
    videos: Semaphore,
}

impl SpeechToText {
    /// The supplier. Files are fetched over this transport, at most one source for each platform; the clock is
    /// the one that deadlines are given by.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong, `Unsupported` when the system has no root
    /// certificates.
    pub fn new(
        http: Arc<Http>,
        options: SpeechOptions,
        clock: Arc<dyn Clock>,
        sources: Vec<Arc<dyn MediaSource>>,
    ) -> Result<Self> {
        let endpoint = Endpoint::new(&options)?;
        let ffmpeg = Ffmpeg::new(&options.ffmpeg);
        let videos = Semaphore::new(VIDEOS_MAX);
        Ok(Self { http, clock, sources, endpoint, ffmpeg, options, videos })
    }
}

#[async_trait]
impl Supplier for SpeechToText {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: NAME.to_owned(),
            platforms: self.sources.iter().map(|source| source.platform()).collect(),
            kind: SupplierKind::Speech,
        }
    }

    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        let Some(source) = self.sources.iter().find(|source| source.platform() == ask.video.platform())
        else {
            let message = format!("{NAME} cannot listen to videos of {}.", ask.video.platform().name());
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        };
        let left = ask.deadline.since(self.clock.now()).saturating_sub(MARGIN);
        let deadline = Instant::now() + left;
        let work = async {
            // The semaphore is never closed.
            let _place = self.videos.acquire().await;
            Listening { parts: self, ask: &ask, watcher: watcher.as_ref(), deadline }
                .run(source.as_ref())
                .await
        };
        timeout_at(deadline, work).await.unwrap_or_else(|_| Err(Refusal::TooSlow.error()))
    }
}
