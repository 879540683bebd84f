//! Long audio: cut in pauses, each chunk transcribed once, and the transcripts joined.

use std::{collections::HashSet, os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use transcript_core::supplier::SupplyMonitor;
use upstream_reqwest::SpeechOptions;
use verbatim_tests::replay::ReplayResponse;

use super::{
    fixture::{RecordedStages, options, platform_with, transcribe, transcribe_file, transcriber, video},
    sounds::tones,
};
use crate::service::fake::{FakeReply, FakeService, SeenRequest};

/// A transcription with one segment over the whole chunk, which names the request's index.
pub(super) fn whole_chunk(request: &SeenRequest, index: usize) -> FakeReply {
    FakeReply::transcription(&[(0.0, request.seconds(), &format!("part {index}"))])
}

/// Number of different chunks that were sent.
fn count_distinct(requests: &[SeenRequest]) -> usize {
    requests.iter().map(|request| request.file().to_vec()).collect::<HashSet<_>>().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_chunks_join_without_gap_or_overlap() -> Result<()> {
    let service = FakeService::start(whole_chunk).await?;
    let supplied = transcribe_file(tones(10)?, options(&service.base_url)).await??;
    let segments = &supplied.transcripts[0].segments;
    let texts: Vec<_> = segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, ["part 0", "part 1", "part 2", "part 3", "part 4"]);
    assert_eq!(segments[0].start_ms, 0);
    for (pair, cut) in segments.windows(2).zip([1_750_u64, 3_750, 5_750, 7_750]) {
        assert_eq!(pair[0].end_ms(), pair[1].start_ms);
        assert!(cut.abs_diff(pair[1].start_ms) <= 150, "not cut in the pauses: {segments:?}");
    }
    assert!(segments[4].end_ms().abs_diff(10_000) <= 100, "{segments:?}");
    for request in service.requests() {
        assert_eq!(request.field("response_format").as_deref(), Some("verbose_json"));
        assert_eq!(request.field("model").as_deref(), Some("sphinx"));
        assert!(
            request.head.starts_with("post /v1/audio/transcriptions ")
                && request.head.contains("bearer test-key")
        );
    }
    Ok(())
}

/// A transcription like [`whole_chunk`], with the times of its words.
fn timed_chunk(request: &SeenRequest, index: usize) -> FakeReply {
    let (text, end) = (format!(" part {index}."), request.seconds());
    let word = |word: &str, start: f64| json!({"word": word, "start": start, "end": start + 0.25});
    FakeReply::json(&json!({
        "text": text, "segments": [{"start": 0, "end": end, "text": text}],
        "words": [word("part", 0.5), word(&index.to_string(), 1.0)],
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_words_have_times_in_video() -> Result<()> {
    let service = FakeService::start(timed_chunk).await?;
    let supplied = transcribe_file(tones(6)?, options(&service.base_url)).await??;
    for segment in &supplied.transcripts[0].segments {
        let words: Vec<_> = segment.words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(words.join(" ") + ".", segment.text);
        let times: Vec<_> =
            segment.words.iter().map(|word| (word.start_ms - segment.start_ms, word.duration_ms)).collect();
        assert_eq!(times, [(500, 250), (1_000, 250)], "{segment:?}");
    }
    for request in service.requests() {
        let body = String::from_utf8_lossy(&request.body);
        let units = body.matches("name=\"timestamp_granularities[]\"\r\n\r\n").count();
        assert_eq!(units, 2);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_service_without_words_is_transcribed() -> Result<()> {
    // One service rejects the field with the first request, another one fails with every request that has it.
    for (status, requests) in [(422, 4), (500, 9)] {
        let service =
            FakeService::start(move |request, index| match request.field("timestamp_granularities[]") {
                Some(_) => FakeReply::new(status, "", json!({"detail": "unknown field"}).to_string()),
                None => whole_chunk(request, index),
            })
            .await?;
        let options = SpeechOptions { concurrency: 1, retries: 1, ..options(&service.base_url) };
        let supplied = transcribe_file(tones(6)?, options).await??;
        let segments = &supplied.transcripts[0].segments;
        assert!(
            segments.len() == 3 && segments.iter().all(|segment| segment.words.is_empty()),
            "{segments:?}"
        );
        // A rejection is remembered, an internal error is not.
        assert_eq!(service.requests().len(), requests, "{status}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_service_with_words_is_not_called_without() -> Result<()> {
    let service = FakeService::start(|request, index| match index {
        0 => timed_chunk(request, index),
        _ => FakeReply::new(500, "", ""),
    })
    .await?;
    let options = SpeechOptions { concurrency: 1, retries: 1, ..options(&service.base_url) };
    assert!(transcribe_file(tones(6)?, options).await?.is_err());
    let requests = service.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.field("timestamp_granularities[]").is_some()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_failed_chunk_is_retried_alone() -> Result<()> {
    for concurrency in [1, 3] {
        let service = FakeService::start(|request, index| match index {
            2 => FakeReply::new(503, "", "<html>busy</html>"),
            _ => whole_chunk(request, index),
        })
        .await?;
        let options = SpeechOptions { concurrency, ..options(&service.base_url) };
        let supplied = transcribe_file(tones(10)?, options).await??;
        let segments = &supplied.transcripts[0].segments;
        assert_eq!(
            (segments.len(), service.requests().len(), count_distinct(&service.requests())),
            (5, 6, 5)
        );
        assert!(segments.windows(2).all(|pair| pair[0].end_ms() == pair[1].start_ms), "{segments:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_finished_chunks_are_not_sent_again() -> Result<()> {
    let service = FakeService::start(|request, index| match index {
        3 => FakeReply::new(400, "", "{}"),
        _ => whole_chunk(request, index),
    })
    .await?;
    let proxy = video(tones(10)?)?;
    let transcriber = transcriber(&proxy, options(&service.base_url))?;
    let attempt = || transcribe(&transcriber, None, Arc::new(RecordedStages::default()));
    assert!(attempt().await?.is_err());
    let supplied = attempt().await??;
    let segments = &supplied.transcripts[0].segments;
    let texts: Vec<_> = segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, ["part 0", "part 1", "part 2", "part 4", "part 5"]);
    assert_eq!(service.requests().len(), 6);
    // Once there is a transcript, nothing is kept.
    attempt().await??;
    assert_eq!(service.requests().len(), 11);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_retry_after_delays_all_chunks() -> Result<()> {
    let service = FakeService::start(|request, index| match index {
        1 => FakeReply::new(429, "retry-after: 1\r\n", "{}"),
        _ => whole_chunk(request, index),
    })
    .await?;
    let supplied = transcribe_file(tones(4)?, options(&service.base_url)).await??;
    assert_eq!(supplied.transcripts[0].segments.len(), 2);
    let requests = service.requests();
    assert_eq!(requests.len(), 3);
    let pause = requests[2].at.duration_since(requests[1].at);
    assert!(pause >= Duration::from_secs(1), "{pause:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_service_without_timestamps_gets_short_chunks() -> Result<()> {
    // One service rejects the format with timestamps, the other one ignores it.
    for is_rejected in [true, false] {
        let service = FakeService::start(move |request, index| {
            match (is_rejected, request.field("response_format").as_deref()) {
                (true, Some("verbose_json")) => {
                    let error = json!({"error": {"param": "response_format", "code": "unsupported_value"}});
                    FakeReply::new(400, "", error.to_string())
                }
                _ => FakeReply::json(&json!({"text": format!(" Part {index}.")})),
            }
        })
        .await?;
        let options = SpeechOptions { part: Duration::from_secs(600), ..options(&service.base_url) };
        let proxy = video(tones(50)?)?;
        let transcriber = transcriber(&proxy, options)?;
        for requests in [4, 7] {
            let supplied = transcribe(&transcriber, None, Arc::new(RecordedStages::default())).await??;
            let segments = &supplied.transcripts[0].segments;
            assert_eq!(segments.len(), 3, "{segments:?}");
            assert!(segments.iter().all(|segment| segment.duration_ms <= 20_000), "{segments:?}");
            assert!(segments.windows(2).all(|pair| pair[0].end_ms() <= pair[1].start_ms), "{segments:?}");
            assert_eq!(supplied.transcripts[0].track.language.as_str(), "und");
            // The lack of timestamps is remembered.
            assert_eq!(service.requests().len(), requests);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_single_odd_response_is_not_remembered() -> Result<()> {
    for odd in [json!([]), json!([{"start": 0, "end": 1, "text": "All"}])] {
        let service = FakeService::start(move |request, index| match index {
            0 => FakeReply::json(&json!({"text": "All of it.", "segments": odd})),
            _ => whole_chunk(request, index),
        })
        .await?;
        let options = SpeechOptions { part: Duration::from_secs(600), ..options(&service.base_url) };
        let proxy = video(tones(50)?)?;
        let transcriber = transcriber(&proxy, options)?;
        // The whole audio is sent, then short chunks; the next video is sent as a whole again.
        for requests in [4, 5] {
            transcribe(&transcriber, None, Arc::new(RecordedStages::default())).await??;
            assert_eq!(service.requests().len(), requests);
        }
        assert_eq!(service.requests()[4].field("response_format").as_deref(), Some("verbose_json"));
    }
    Ok(())
}

// On one thread, the stage is read after the chunk of the task that reported it is queued.
#[tokio::test]
async fn speech_short_video_overtakes_long_one() -> Result<()> {
    let (permits, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (shared_permits, arrived) = (Arc::clone(&permits), Arc::clone(&waiting));
    let service = FakeService::start(move |request, index| {
        arrived.add_permits(1);
        FakeReply::Gated(Arc::clone(&shared_permits), Box::new(whole_chunk(request, index)))
    })
    .await?;
    let options = options(&service.base_url);
    // One client for both downloads: the first file is long, the second one short.
    let proxy = platform_with([tones(20)?, tones(1)?].map(|file| ReplayResponse::bytes("video/mp4", file)))?;
    let transcriber = transcriber(&proxy, options)?;
    let long = tokio::spawn({
        let transcriber = Arc::clone(&transcriber);
        async move { transcribe(&transcriber, None, Arc::new(RecordedStages::default())).await }
    });
    waiting.acquire().await?.forget();
    let (started, mut start_receiver) = watch::channel(false);
    let short = tokio::spawn({
        let transcriber = Arc::clone(&transcriber);
        async move { transcribe(&transcriber, None, Arc::new(ChunkStarts(started))).await }
    });
    // Its chunk is queued now.
    start_receiver.wait_for(|started| *started).await?;
    permits.add_permits(100);
    assert_eq!(short.await???.transcripts[0].segments.len(), 1);
    assert!(long.await???.transcripts[0].segments.len() > 5);
    let index = service.requests().iter().position(|request| request.seconds() < 1.5);
    assert!(index.is_some_and(|index| index <= 2), "{index:?}");
    Ok(())
}

/// Reports when the transcription of chunks starts.
#[derive(Debug)]
struct ChunkStarts(watch::Sender<bool>);

impl SupplyMonitor for ChunkStarts {
    fn report_progress(&self, name: &str, _: u64, _: u64) {
        if name == "transcribing" {
            self.0.send_replace(true);
        }
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_ffmpeg_reads_file_from_start() -> Result<()> {
    let service = FakeService::start(whole_chunk).await?;
    let folder = TempDir::new()?;
    // Where the system does not reopen a file that is a program's input, the bytes read from it are lost.
    let program = folder.path().join("ffmpeg");
    let script = "#!/bin/sh\n[ \"$(head -c 1 | wc -c)\" -eq 1 ] || exit 1\nexec ffmpeg \"$@\"\n";
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
    let options = SpeechOptions { ffmpeg: program, ..options(&service.base_url) };
    let supplied = transcribe_file(tones(4)?, options).await??;
    assert_eq!(supplied.transcripts[0].segments.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_other_language_fails_after_first_chunk() -> Result<()> {
    let service = FakeService::start(whole_chunk).await?;
    let proxy = video(tones(10)?)?;
    let transcriber = transcriber(&proxy, options(&service.base_url))?;
    let error = transcribe(&transcriber, Some("fr"), Arc::new(RecordedStages::default()))
        .await?
        .err()
        .context("a transcript")?;
    assert_eq!(error.reason().as_str(), "no_language");
    assert!(error.message().contains("is en, not"), "{error}");
    assert_eq!(service.requests().len(), 1);
    Ok(())
}
