//! Faulty services and files: each fails with a reason, and none runs without end.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::json;
use transcript_core::supplier::SupplyError;
use upstream_reqwest::SpeechOptions;
use verbatim_tests::replay::ReplayResponse;

use super::{
    fixture::{RecordedStages, options, platform, transcribe, transcribe_file, transcriber},
    sounds::{ffmpeg, sound, tones},
};
use crate::service::fake::{FakeReply, FakeService};

/// Longer than any response takes.
const AMPLE: Duration = Duration::from_secs(60);

/// The failure of a service that always sends this reply, and the number of requests it received.
async fn failure(
    reply: impl Fn() -> FakeReply + Send + Sync + 'static,
    timeout: Duration,
) -> Result<(SupplyError, usize)> {
    let service = FakeService::start(move |_, _| reply()).await?;
    let options =
        SpeechOptions { retries: 1, timeout, part: Duration::from_secs(60), ..options(&service.base_url) };
    let error = transcribe_file(short_tones()?, options).await?.err().context("a transcript")?;
    Ok((error, service.requests().len()))
}

/// The same file of four seconds in every test.
fn short_tones() -> Result<Vec<u8>> {
    static TONES: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    TONES.get_or_init(|| tones(4).ok()).clone().context("no tones")
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_service_failures_map_to_reasons() -> Result<()> {
    let hush = r#"{"error":{"message":"Incorrect API key provided: test-key"}}"#;
    for (status, body, reason, requests) in [
        (401, hush, "misconfigured", 1),
        (404, "", "misconfigured", 1),
        (413, "<html>", "misconfigured", 1),
        (429, r#"{"error":{"code":"insufficient_quota"}}"#, "misconfigured", 1),
        // The same without a request for the times of words.
        (400, hush, "platform_fault", 2),
        (302, "", "platform_fault", 1),
        (500, hush, "platform_fault", 4),
        (200, "<html>hello</html>", "unreadable", 2),
        (200, "", "unreadable", 2),
        (200, r#"{"error":"no audio"}"#, "unreadable", 2),
        (200, r#"{"segments":[{"start":1e999,"text":"a"}]}"#, "unreadable", 2),
        (200, r#"{"text":"a","segments":[{"start":9e9,"end":9e9,"text":"a"}]}"#, "unreadable", 2),
        (200, r#"{"text":"","segments":[],"error":"CUDA out of memory"}"#, "unreadable", 2),
        (200, r#"{"duration":0.8,"segments":[{"start":0,"end":0.2,"text":"a"}]}"#, "unreadable", 2),
        (200, r#"{"text":"a","segments":[{"start":3,"text":"a"},{"start":0,"text":"b"}]}"#, "unreadable", 2),
    ] {
        let (error, request_count) = failure(move || FakeReply::new(status, "", body), AMPLE).await?;
        assert_eq!((error.reason().as_str(), request_count), (reason, requests), "{status} {body}: {error}");
        assert!(!error.message().contains("test-key") && !error.message().contains("127.0.0.1"), "{error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_duration_of_last_segment_is_no_sign_of_missing_text() -> Result<()> {
    let segments = json!([{"start": 0.0, "end": 0.5, "text": "Hello."}]);
    let body = json!({"text": "Hello.", "duration": 0.5, "segments": segments});
    let service = FakeService::start(move |_, _| FakeReply::json(&body)).await?;
    let options = SpeechOptions { part: Duration::from_secs(60), ..options(&service.base_url) };
    let supplied = transcribe_file(short_tones()?, options).await??;
    assert_eq!(supplied.transcripts[0].segments[0].text, "Hello.");
    assert_eq!(service.requests().len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_unresponsive_service_fails() -> Result<()> {
    let endless = "HTTP/1.1 200 X\r\nconnection: close\r\n\r\n{\"text\":\"";
    for (reply, timeout, reason) in [
        (FakeReply::Endless(endless.to_owned()), AMPLE, "unreadable"),
        (FakeReply::Never, Duration::from_secs(1), "timeout"),
        (FakeReply::Closed, AMPLE, "unreadable"),
    ] {
        let (error, _) = failure(move || reply.clone(), timeout).await?;
        assert_eq!(error.reason().as_str(), reason, "{error}");
    }
    let gone =
        transcribe_file(tones(4)?, SpeechOptions { retries: 0, ..options("http://127.0.0.1:9/v1") }).await?;
    assert_eq!(gone.err().context("a transcript")?.reason().as_str(), "unreachable");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_segments_without_sound_are_dropped() -> Result<()> {
    let thanks = json!({"text": "Thanks for watching!", "language": "en", "segments": [
        {"start": 0.0, "end": 1.0, "text": " Hello.", "no_speech_prob": 0.1, "avg_logprob": -0.2},
        {"start": 1.0, "end": 1.4, "text": " ♪", "no_speech_prob": 0.1},
        {"start": 4.5, "end": 6.5, "text": " Thanks for watching!", "no_speech_prob": 0.3},
        {"start": 8.0, "end": 9.0, "text": " Goodbye.", "no_speech_prob": 0.9, "avg_logprob": -0.1},
        {"start": 9.0, "end": 9.9, "text": " you", "no_speech_prob": 0.9, "avg_logprob": -1.5},
        {"start": 10.5, "end": 39.0, "text": " Subscribe!"},
    ]});
    let service = FakeService::start(move |_, _| FakeReply::json(&thanks)).await?;
    let options = SpeechOptions { part: Duration::from_secs(60), ..options(&service.base_url) };
    // Two seconds with sound, six without, and two with sound again.
    let source = "aevalsrc=0.3*sin(440*2*PI*t)*(lt(t\\,2)+gt(t\\,8)):s=16000:d=10";
    let supplied = transcribe_file(sound(source)?, options).await??;
    let texts: Vec<_> =
        supplied.transcripts[0].segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, ["Hello.", "Goodbye."]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_text_that_compresses_well_is_kept_unless_it_repeats() -> Result<()> {
    let hindi = "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।";
    let segments = json!({"text": hindi, "language": "hindi", "segments": [
        {"start": 0.0, "end": 2.0, "text": hindi, "avg_logprob": -0.2, "compression_ratio": 2.8},
        {"start": 2.0, "end": 3.5, "text": "धन्यवाद ".repeat(30), "avg_logprob": -0.2, "compression_ratio": 9.1},
    ]});
    let service = FakeService::start(move |_, _| FakeReply::json(&segments)).await?;
    let options = SpeechOptions { part: Duration::from_secs(60), ..options(&service.base_url) };
    let supplied = transcribe_file(short_tones()?, options).await??;
    let texts: Vec<_> =
        supplied.transcripts[0].segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, [hindi]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_incomplete_files_are_unreadable() -> Result<()> {
    let service = FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.0, "not requested")])).await?;
    // As long as the platform states.
    let tones = ["-f", "lavfi", "-i", "aevalsrc=0.3*sin(440*2*PI*t)*lt(mod(t\\,2)\\,1.5):s=16000:d=72"];
    let webm = ffmpeg(&[&tones[..], &["-c:a", "libopus", "-f", "webm"]].concat())?;
    let mp4 = ffmpeg(&[&tones[..], &["-c:a", "aac", "-movflags", "+faststart"]].concat())?;
    for (file, length) in [(&webm, webm.len() / 3), (&webm, 600), (&mp4, mp4.len() / 3)] {
        let part = file.iter().copied().take(length).collect();
        let error = transcribe_file(part, options(&service.base_url)).await?.err().context("a transcript")?;
        assert_eq!(error.reason().as_str(), "unreadable", "{length} bytes: {error}");
        assert!(!error.counts_against_supplier(), "{length} bytes: {error}");
    }
    assert!(service.requests().is_empty(), "{:?}", service.requests().len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_unusable_files_fail_with_reason() -> Result<()> {
    let service = FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.0, "not requested")])).await?;
    let silent_film = ["-f", "lavfi", "-i", "color=black:s=64x64:r=2:d=2", "-c:v", "mpeg4"];
    let silent_film = ffmpeg(&silent_film)?;
    // A playlist that names a local file.
    let playlist = b"\0#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n".to_vec();
    for (file, reason) in [
        (silent_film, "no_captions"),
        (sound("aevalsrc=sin(t):s=16000:d=0.05")?, "no_captions"),
        (b"\0\0\0\x20ftypisom and nothing else".to_vec(), "unreadable"),
        (vec![7; 100_000], "unreadable"),
        (playlist, "unreadable"),
        (Vec::new(), "unreadable"),
        (tones(4)?.split_at(300).0.to_vec(), "unreadable"),
    ] {
        let length = file.len();
        let error = transcribe_file(file, options(&service.base_url)).await?.err().context("a transcript")?;
        assert_eq!(error.reason().as_str(), reason, "{length} bytes: {error}");
        // The service received no request, so the failure must not count as its success.
        let is_video_only = error.is_video_only();
        assert!(is_video_only || error.counts_against_supplier(), "{length} bytes: {error}");
        assert!(is_video_only || reason != "no_captions", "{length} bytes: {error}");
    }
    let long = SpeechOptions { max_duration: Duration::from_secs(73), ..options(&service.base_url) };
    let error = transcribe_file(tones(76)?, long).await?.err().context("a transcript")?;
    assert!(error.message().contains("lasts more than 73 s"), "{error}");
    let short_limit = SpeechOptions { max_duration: Duration::from_secs(60), ..options(&service.base_url) };
    let proxy = platform(ReplayResponse::status(500))?;
    let error =
        transcribe(&*transcriber(&proxy, short_limit)?, None, Arc::new(RecordedStages::default())).await?;
    let error = error.err().context("a transcript")?;
    assert!(error.message().contains("lasts 72 s; speech-to-text is limited to 60 s"), "{error}");
    assert_eq!((error.reason().as_str(), proxy.requests().len()), ("no_captions", 1), "a file was fetched");
    let large = SpeechOptions { max_download: 1_000, ..options(&service.base_url) };
    let error = transcribe_file(tones(4)?, large).await?.err().context("a transcript")?;
    assert_eq!(error.reason().as_str(), "unreadable");
    assert!(service.requests().is_empty(), "{:?}", service.requests().len());
    Ok(())
}
