//! YouTube's audio: transcribed if a client gets a direct URL, else a failure that explains it.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use transcript_core::{
    Clock,
    supplier::{Supplier, SupplyError, SupplyOutput, SupplyRequest},
    video::{Platform, VideoId},
};
use upstream_reqwest::{SpeechToText, YouTubeCaptions, YouTubeOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{
    fixture::{RecordedStages, TIMEOUT, options},
    sounds::tones,
};
use crate::{
    service::fake::{FakeReply, FakeService},
    social::supplier_calls,
};

const VIDEO: &str = "dyke-walk-0";
const FILES: &str = "rr1---sn-a.googlevideo.com";

/// Transcribes a video with this playability status and streaming data.
async fn transcribe(
    playability: &str,
    streaming: Value,
) -> Result<(Result<SupplyOutput, SupplyError>, Vec<String>)> {
    let player = json!({
        "playabilityStatus": {"status": playability, "reason": "Private video"},
        "videoDetails": {"videoId": VIDEO, "title": "A walk along the dyke", "lengthSeconds": "4"},
        "streamingData": streaming,
    });
    let player_rule = Rule::post("www.youtube.com", "/youtubei/v1/player").or_host("youtubei.googleapis.com");
    let file = Rule::get(FILES, "/videoplayback").respond(ReplayResponse::bytes("audio/mp4", tones(4)?));
    let script = Script::new().rule(player_rule.respond(ReplayResponse::json(&player))).rule(file);
    let proxy = ReplayProxy::start(script)?;
    let service =
        FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.5, " Sheep."), (2.0, 3.5, " Grass.")]))
            .await?;
    let http = supplier_calls::http(&proxy)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let videos = YouTubeCaptions::new(Arc::clone(&http), YouTubeOptions::default(), Arc::clone(&clock));
    let options = upstream_reqwest::SpeechOptions {
        part: std::time::Duration::from_secs(60),
        ..options(&service.base_url)
    };
    let transcriber = SpeechToText::new(http, options, Arc::clone(&clock), vec![Arc::new(videos)])?;
    let video = VideoId::new(Platform::YouTube, VIDEO)?;
    let request = SupplyRequest {
        video,
        selector: transcript_core::archive::TrackSelector::Default,
        deadline: clock.now().plus(TIMEOUT),
    };
    let outcome = transcriber.supply(request, Arc::new(RecordedStages::default())).await;
    let hosts = proxy.requests().into_iter().map(|request| request.host).collect();
    Ok((outcome, hosts))
}

/// Streaming data with one file, of this size in bytes.
fn streams(bytes: &str) -> Value {
    json!({"adaptiveFormats": [{
        "mimeType": "audio/mp4; codecs=\"mp4a.40.2\"", "bitrate": 48_000, "contentLength": bytes,
        "url": format!("https://{FILES}/videoplayback?expire=1795000000"),
    }]})
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_youtube_file_smaller_than_stated_is_unreadable() -> Result<()> {
    let (outcome, hosts) = transcribe("OK", streams("900000")).await?;
    let error = outcome.err().context("a transcript")?;
    assert_eq!(error.reason().as_str(), "unreadable", "{error:?}");
    assert_eq!(hosts.last().map(String::as_str), Some(FILES));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_youtube_direct_url_is_transcribed() -> Result<()> {
    let (outcome, hosts) = transcribe("OK", streams("9000")).await?;
    let supplied = outcome?;
    let transcript = supplied.transcripts.first().context("no transcript")?;
    assert_eq!((transcript.source.as_str(), transcript.segments.len()), ("speech-to-text", 2));
    assert_eq!(transcript.title.as_deref(), Some("A walk along the dyke"));
    assert_eq!(hosts.last().map(String::as_str), Some(FILES));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_youtube_protected_audio_is_reported() -> Result<()> {
    let locked = json!({"adaptiveFormats": [{"mimeType": "audio/mp4", "signatureCipher": "s=1&url=x"}]});
    let (outcome, hosts) = transcribe("OK", locked).await?;
    let error = outcome.err().context("a transcript")?;
    assert_eq!(error.message(), "YouTube provides the audio of this video to its own players only.");
    assert!(!error.reason().is_about_video(), "{error:?}");
    assert!(!hosts.contains(&FILES.to_owned()), "{hosts:?}");
    let (outcome, _) = transcribe("LOGIN_REQUIRED", json!({})).await?;
    assert_eq!(outcome.err().context("a transcript")?.reason().as_str(), "private");
    Ok(())
}
