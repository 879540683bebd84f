//! Media that only yt-dlp finds.

use std::{fs, sync::Arc};

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::TempDir;
use transcript_core::{Clock, supplier::SupplyReason, video::Platform};
use upstream_reqwest::{InstagramMedia, SpeechToText, YtDlp, YtDlpMedia};
use verbatim::SystemClock;
use verbatim_tests::{
    replay::{ReplayProxy, ReplayResponse, Rule, Script},
    write_script,
};

use super::{
    fixture::{REEL, RecordedStages, options, transcribe},
    sounds::tones,
};
use crate::{
    service::fake::{FakeReply, FakeService},
    social::{read_recording, supplier_calls},
};

const FILES: &str = "instagram.fams1-1.fna.fbcdn.net";
const FILE: &str = "/o1/v/t2/f2/m86/reel.mp4";

/// A platform with this page, and a media file at a fixed URL.
fn platform(page: ReplayResponse) -> Result<ReplayProxy> {
    let file = Rule::get(FILES, FILE).header("referer", "https://www.instagram.com/");
    let script = Script::new()
        .rule(Rule::get("www.instagram.com", &format!("/reel/{REEL}/")).respond(page))
        .rule(file.respond(ReplayResponse::bytes("video/mp4", tones(4)?)));
    ReplayProxy::start(script)
}

/// A replacement for yt-dlp that prints the URL of the file.
fn write_program(folder: &TempDir, host: &str) -> Result<std::path::PathBuf> {
    let referer = json!({"Referer": "https://www.instagram.com/"});
    let formats = json!([
        {"protocol": "https", "acodec": "none", "vcodec": "avc1", "tbr": 1, "url": format!("https://{host}/silent.mp4")},
        {"protocol": "https", "tbr": 300, "url": format!("https://{host}{FILE}"), "http_headers": referer},
    ]);
    let info = json!({"id": REEL, "title": "A reel", "channel": "The Rope Walk", "formats": formats});
    let info_file = folder.path().join("info.json");
    fs::write(&info_file, info.to_string())?;
    let program = folder.path().join("yt-dlp");
    write_script(&program, &format!("exec cat '{}'", info_file.display()))?;
    Ok(program)
}

/// Speech-to-text for the platform that falls back to that program.
fn transcriber(
    proxy: &ReplayProxy,
    service: &FakeService,
    folder: &TempDir,
    host: &str,
) -> Result<SpeechToText> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let http = supplier_calls::http(proxy)?;
    let own = InstagramMedia::new(Arc::clone(&http), Arc::clone(&clock));
    let ytdlp = YtDlp::new(&write_program(folder, host)?, Arc::clone(&http), Arc::clone(&clock))?;
    let found = YtDlpMedia::new(Arc::new(ytdlp), Platform::Instagram);
    Ok(SpeechToText::new(http, options(&service.base_url), clock, vec![Arc::new(own), Arc::new(found)])?)
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_page_without_media_falls_back_to_ytdlp() -> Result<()> {
    let service =
        FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.4, "the quick brown fox")])).await?;
    let (proxy, folder) = (platform(ReplayResponse::bytes("text/html", "<html></html>"))?, TempDir::new()?);
    let transcriber = transcriber(&proxy, &service, &folder, FILES)?;
    let supplied = transcribe(&transcriber, None, Arc::new(RecordedStages::default())).await??;
    let transcript = supplied.transcripts.first().context("no transcript")?;
    assert_eq!((transcript.source.as_str(), transcript.title.as_deref()), ("speech-to-text", Some("A reel")));
    assert_eq!(transcript.author.as_deref(), Some("The Rope Walk"));
    assert!(transcript.segments[0].text.contains("quick brown fox"), "{transcript:?}");
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_platform_media_is_preferred_to_ytdlp() -> Result<()> {
    let service =
        FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.4, "the quick brown fox")])).await?;
    let (proxy, folder) = (platform(read_recording("instagram", "pages/reel.html")?)?, TempDir::new()?);
    let transcriber = transcriber(&proxy, &service, &folder, FILES)?;
    let supplied = transcribe(&transcriber, None, Arc::new(RecordedStages::default())).await??;
    assert_ne!(supplied.transcripts.first().context("no transcript")?.title.as_deref(), Some("A reel"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_foreign_media_address_is_not_requested() -> Result<()> {
    let service =
        FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.4, "the quick brown fox")])).await?;
    for host in ["evil.example", "127.0.0.1", "169.254.169.254", "fbcdn.net.evil.example"] {
        let (proxy, folder) =
            (platform(ReplayResponse::bytes("text/html", "<html></html>"))?, TempDir::new()?);
        let transcriber = transcriber(&proxy, &service, &folder, host)?;
        let error = transcribe(&transcriber, None, Arc::new(RecordedStages::default()))
            .await?
            .err()
            .context("a transcript")?;
        // The failure of the first media source is reported.
        assert!(!matches!(error.reason(), SupplyReason::NoCaptions), "{error:?}");
        assert!(
            proxy.requests().iter().all(|request| request.host == "www.instagram.com"),
            "{:?}",
            proxy.requests()
        );
    }
    assert!(service.requests().is_empty());
    Ok(())
}
