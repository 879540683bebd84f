//! The spoken language: of the service, else of the platform, and as early as it is known.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use serde_json::json;
use transcript_core::{
    supplier::{SupplyError, SupplyMonitor, SupplyRequest},
    transcript::LanguageTag,
    video::Platform,
};
use upstream_reqwest::{InstagramMedia, Media, MediaSource, SpeechOptions, SpeechToText};
use verbatim_tests::replay::ReplayProxy;

use super::{
    fixture::{RecordedStages, options, transcribe, transcriber, transcriber_with, video},
    parts::whole_chunk,
    sounds::tones,
};
use crate::service::fake::{FakeReply, FakeService, SeenRequest};

/// A media source that states English as the spoken language.
#[derive(Debug)]
struct EnglishMedia(InstagramMedia);

#[async_trait]
impl MediaSource for EnglishMedia {
    fn platform(&self) -> Platform {
        self.0.platform()
    }

    async fn media(
        &self,
        request: &SupplyRequest,
        monitor: &dyn SupplyMonitor,
    ) -> Result<Media, SupplyError> {
        let mut media = self.0.media(request, monitor).await?;
        media.language = Some(LanguageTag::english());
        Ok(media)
    }
}

/// A transcription like [`whole_chunk`], without a language.
fn unnamed_chunk(request: &SeenRequest, index: usize) -> FakeReply {
    let text = format!("part {index}");
    let segments = json!([{"start": 0, "end": request.seconds(), "text": text}]);
    FakeReply::json(&json!({"text": text, "segments": segments}))
}

/// The language of the transcript in one language or in any, or the reason why there is none.
async fn outcome(transcriber: &SpeechToText, language: Option<&str>) -> Result<String> {
    let supplied = transcribe(transcriber, language, Arc::new(RecordedStages::default())).await?;
    Ok(match supplied {
        Ok(supplied) => {
            supplied.transcripts.first().context("no transcript")?.track.language.as_str().to_owned()
        }
        Err(error) => error.reason().as_str().to_owned(),
    })
}

/// Number of downloads of the video's file.
fn count_downloads(proxy: &ReplayProxy) -> usize {
    proxy.count(|request| request.path.ends_with(".mp4"))
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_language_of_platform_counts_if_service_names_none() -> Result<()> {
    let service = FakeService::start(unnamed_chunk).await?;
    let proxy = video(tones(6)?)?;
    let transcriber =
        transcriber_with(&proxy, options(&service.base_url), |videos| Arc::new(EnglishMedia(videos)))?;
    // The service is known to name none after the first video.
    for videos in 1..=2 {
        assert_eq!(outcome(&transcriber, Some("en")).await?, "en");
        assert_eq!((service.requests().len(), count_downloads(&proxy)), (3 * videos, videos));
    }
    assert_eq!(outcome(&transcriber, Some("fr")).await?, "no_language");
    assert_eq!(count_downloads(&proxy), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_service_without_languages_is_not_called_for_one() -> Result<()> {
    let service = FakeService::start(unnamed_chunk).await?;
    let proxy = video(tones(10)?)?;
    let transcriber = transcriber(&proxy, options(&service.base_url))?;
    assert_eq!(outcome(&transcriber, Some("en")).await?, "no_language");
    assert_eq!((service.requests().len(), count_downloads(&proxy)), (1, 1));
    // The first chunk is finished.
    assert_eq!(outcome(&transcriber, None).await?, "und");
    assert_eq!((service.requests().len(), count_downloads(&proxy)), (5, 2));
    assert_eq!(outcome(&transcriber, Some("en")).await?, "no_language");
    assert_eq!((service.requests().len(), count_downloads(&proxy)), (5, 2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_selected_language_is_checked_with_short_chunk() -> Result<()> {
    let service = FakeService::start(whole_chunk).await?;
    let proxy = video(tones(130)?)?;
    let options = SpeechOptions { part: Duration::from_secs(600), ..options(&service.base_url) };
    let transcriber = transcriber(&proxy, options)?;
    assert_eq!(outcome(&transcriber, Some("fr")).await?, "no_language");
    assert_eq!(outcome(&transcriber, Some("en")).await?, "en");
    // The first chunk is sent once.
    let seconds: Vec<_> = service.requests().iter().map(SeenRequest::seconds).collect();
    assert!(matches!(seconds[..], [first, rest] if first <= 60.0 && first + rest > 129.0), "{seconds:?}");
    // Without a language the whole audio is one chunk.
    assert_eq!(outcome(&transcriber, None).await?, "en");
    assert!(service.requests().last().is_some_and(|request| request.seconds() > 129.0));
    Ok(())
}
