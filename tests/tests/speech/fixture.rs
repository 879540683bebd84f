//! A video of a platform, and speech-to-text for it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use transcript_core::{
    Clock,
    archive::TrackSelector,
    supplier::{Supplier, SupplyError, SupplyMonitor, SupplyOutput, SupplyRequest},
    transcript::LanguageTag,
    video::{Platform, VideoId},
};
use upstream_reqwest::{
    AudioFormat, HttpTransport, InstagramMedia, MediaSource, SpeechOptions, SpeechToText,
};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::social::{read_recording, supplier_calls};

/// The video of the platform.
pub(crate) const REEL: &str = "RopeWalk001";
/// Timeout of a transcription. No test comes near it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// A proxy for a platform with one video, whose media file is this response.
pub(crate) fn platform(file: ReplayResponse) -> Result<ReplayProxy> {
    platform_with([file])
}

/// A proxy like [`platform`], whose downloads get these responses in order; the last one repeats.
pub(super) fn platform_with(files: impl IntoIterator<Item = ReplayResponse>) -> Result<ReplayProxy> {
    let page = Rule::get("www.instagram.com", &format!("/reel/{REEL}/"));
    let reel = Rule::get("instagram.fams1-1.fna.fbcdn.net", "/o1/v/t2/f2/m86/reel.mp4").respond_all(files);
    ReplayProxy::start(
        Script::new().rule(page.respond(read_recording("instagram", "pages/reel.html")?)).rule(reel),
    )
}

/// A proxy for a platform with one video, whose media file has this content.
pub(crate) fn video(file: Vec<u8>) -> Result<ReplayProxy> {
    platform(ReplayResponse::bytes("video/mp4", file))
}

/// Options of a service: short WAV chunks, one at a time, so that tests see each request and its time.
pub(super) fn options(base_url: &str) -> SpeechOptions {
    SpeechOptions {
        base_url: base_url.to_owned(),
        model: "sphinx".to_owned(),
        api_key: Some("test-key".to_owned()),
        part: Duration::from_secs(3),
        format: AudioFormat::Wav,
        timeout: Duration::from_secs(30),
        concurrency: 1,
        ..SpeechOptions::default()
    }
}

/// A monitor that never cancels and records the progress.
#[derive(Debug, Default)]
pub(super) struct RecordedStages(Mutex<Vec<(String, u64, u64)>>);

impl RecordedStages {
    pub(super) fn all(&self) -> Vec<(String, u64, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SupplyMonitor for RecordedStages {
    fn report_progress(&self, name: &str, done: u64, of: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), done, of));
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Speech-to-text for the platform behind a proxy.
pub(super) fn transcriber(proxy: &ReplayProxy, options: SpeechOptions) -> Result<Arc<SpeechToText>> {
    transcriber_with(proxy, options, |videos| Arc::new(videos))
}

/// As [`transcriber`], with this media source over the platform's own.
pub(super) fn transcriber_with(
    proxy: &ReplayProxy,
    options: SpeechOptions,
    source: impl FnOnce(InstagramMedia) -> Arc<dyn MediaSource>,
) -> Result<Arc<SpeechToText>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let http: Arc<HttpTransport> = supplier_calls::http(proxy)?;
    let videos = InstagramMedia::new(Arc::clone(&http), Arc::clone(&clock));
    Ok(Arc::new(SpeechToText::new(http, options, clock, vec![source(videos)])?))
}

/// Transcribes the video, in one language or in any.
pub(super) async fn transcribe(
    transcriber: &SpeechToText,
    language: Option<&str>,
    monitor: Arc<dyn SupplyMonitor>,
) -> Result<Result<SupplyOutput, SupplyError>> {
    let selector = match language {
        Some(tag) => TrackSelector::Language(LanguageTag::parse(tag)?),
        None => TrackSelector::Default,
    };
    let deadline = SystemClock::default().now().plus(TIMEOUT);
    let request = SupplyRequest { video: VideoId::new(Platform::Instagram, REEL)?, selector, deadline };
    Ok(transcriber.supply(request, monitor).await)
}

/// Transcribes this file with a service.
pub(super) async fn transcribe_file(
    file: Vec<u8>,
    options: SpeechOptions,
) -> Result<Result<SupplyOutput, SupplyError>> {
    let proxy = video(file)?;
    transcribe(&*transcriber(&proxy, options)?, None, Arc::new(RecordedStages::default())).await
}
