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
use tokio::time::{Instant, timeout_at};
use transcript_core::{
    Result,
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    time::Clock,
    video::Platform,
};

pub use options::{SoundFormat, SpeechOptions};

use crate::{http::Http, social::MediaSource};
use endpoint::Endpoint;
use ffmpeg::Ffmpeg;
use listening::Listening;
use refusal::Refusal;

/// The supplier's name.
const NAME: &str = "speech-to-text";
/// How long before the caller's deadline it gives up, so that its own verdict still arrives.
const MARGIN: std::time::Duration = std::time::Duration::from_millis(250);

/// What a speech-to-text service hears in videos, as a supplier named `speech-to-text`.
///
/// It covers the platforms of its media sources. It tells the stages `audio` (bytes), `decoding` and
/// `transcribing` (parts). It works on as many videos at once as it is asked for, each of which takes room on the disk:
/// the engine bounds them (`Builder::at_once`). Dropping its future ends the programs that it runs; its files have no names, so
/// nothing is left of them whatever ends the process.
#[derive(Debug)]
pub struct SpeechToText {
    http: Arc<Http>,
    clock: Arc<dyn Clock>,
    sources: Vec<Arc<dyn MediaSource>>,
    endpoint: Endpoint,
    ffmpeg: Ffmpeg,
    options: SpeechOptions,
}

impl SpeechToText {
    /// The supplier. Files are fetched over this transport. A platform's sources are asked in this order, the next
    /// one where one could not tell what a video is; the clock is the one that deadlines are given by.
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
        Ok(Self { http, clock, sources, endpoint, ffmpeg, options })
    }

    fn sources_of(&self, platform: Platform) -> impl Iterator<Item = &dyn MediaSource> {
        self.sources.iter().map(AsRef::as_ref).filter(move |source| source.platform() == platform)
    }
}

#[async_trait]
impl Supplier for SpeechToText {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: NAME.to_owned(),
            platforms: Platform::ALL
                .into_iter()
                .filter(|platform| self.sources_of(*platform).count() > 0)
                .collect(),
            kind: SupplierKind::Speech,
        }
    }

    async fn supply(&self, ask: Ask, watcher: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        let sources: Vec<_> = self.sources_of(ask.video.platform()).collect();
        if sources.is_empty() {
            let message = format!("{NAME} cannot listen to videos of {}.", ask.video.platform().name());
            return Err(SupplyError::new(SupplyReason::Misconfigured, message));
        }
        let left = ask.deadline.since(self.clock.now()).saturating_sub(MARGIN);
        let deadline = Instant::now() + left;
        let listening = Listening { parts: self, ask: &ask, watcher: watcher.as_ref(), deadline };
        timeout_at(deadline, listening.run(&sources)).await.unwrap_or_else(|_| Err(Refusal::TooSlow.error()))
    }
}
