//! A video of a platform, and who listens to it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use transcript_core::{
    Clock,
    archive::Wish,
    supplier::{Ask, Supplied, Supplier, SupplyError, Watcher},
    transcript::LanguageTag,
    video::{Platform, VideoId},
};
use upstream_reqwest::{Http, InstagramVideos, SoundFormat, SpeechOptions, SpeechToText};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use crate::social::{asking, recorded};

/// The video.
pub(crate) const REEL: &str = "RopeWalk001";
/// The longest that anybody waits. No test comes near it.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A proxy for a platform with one video, of which this is the file.
pub(crate) fn platform(file: Answer) -> Result<ReplayProxy> {
    platform_with([file])
}

/// The same, where the file is another one each time that it is fetched; the last one stays.
pub(super) fn platform_with(files: impl IntoIterator<Item = Answer>) -> Result<ReplayProxy> {
    let page = Rule::get("www.instagram.com", &format!("/reel/{REEL}/"));
    let reel = Rule::get("instagram.fams1-1.fna.fbcdn.net", "/o1/v/t2/f2/m86/reel.mp4");
    let reel = files.into_iter().fold(reel, Rule::answer);
    ReplayProxy::start(Script::new().rule(page.answer(recorded("instagram", "pages/reel.html")?)).rule(reel))
}

/// The same with a file of sound.
pub(crate) fn video(file: Vec<u8>) -> Result<ReplayProxy> {
    platform(Answer::bytes("video/mp4", file))
}

/// A service's options: small parts of WAV, one at a time, so that tests see what is sent, and when.
pub(super) fn options(base_url: &str) -> SpeechOptions {
    SpeechOptions {
        base_url: base_url.to_owned(),
        model: "sphinx".to_owned(),
        api_key: Some("test-key".to_owned()),
        part: Duration::from_secs(3),
        format: SoundFormat::Wav,
        timeout: Duration::from_secs(30),
        concurrency: 1,
        ..SpeechOptions::default()
    }
}

/// Somebody who waits to the end and takes note of how far it is.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<Vec<(String, u64, u64)>>);

impl Notes {
    pub(super) fn all(&self) -> Vec<(String, u64, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Watcher for Notes {
    fn stage(&self, name: &str, done: u64, of: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), done, of));
    }

    fn cancelled(&self) -> bool {
        false
    }
}

/// Who listens to the platform behind a proxy.
pub(super) fn listener(proxy: &ReplayProxy, options: SpeechOptions) -> Result<Arc<SpeechToText>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let http: Arc<Http> = asking::http(proxy)?;
    let videos = InstagramVideos::new(Arc::clone(&http), Arc::clone(&clock));
    Ok(Arc::new(SpeechToText::new(http, options, clock, vec![Arc::new(videos)])?))
}

/// What comes of listening to the video, in a language or in any.
pub(super) async fn listen(
    listener: &SpeechToText,
    language: Option<&str>,
    watcher: Arc<dyn Watcher>,
) -> Result<Result<Supplied, SupplyError>> {
    let wish = match language {
        Some(tag) => Wish::Language(LanguageTag::parse(tag)?),
        None => Wish::Default,
    };
    let deadline = SystemClock::default().now().plus(PATIENCE);
    let ask = Ask { video: VideoId::new(Platform::Reels, REEL)?, wish, deadline };
    Ok(listener.supply(ask, watcher).await)
}

/// What comes of listening to this file with a service.
pub(super) async fn heard(file: Vec<u8>, options: SpeechOptions) -> Result<Result<Supplied, SupplyError>> {
    let proxy = video(file)?;
    listen(&*listener(&proxy, options)?, None, Arc::new(Notes::default())).await
}
