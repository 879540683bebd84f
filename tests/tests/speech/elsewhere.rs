//! What a platform does not tell us itself, yt-dlp finds.

use std::{fs, sync::Arc};

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::TempDir;
use transcript_core::{Clock, supplier::SupplyReason, video::Platform};
use upstream_reqwest::{InstagramVideos, SpeechToText, YtDlp, YtDlpSound};
use verbatim::SystemClock;
use verbatim_tests::{
    replay::{Answer, ReplayProxy, Rule, Script},
    write_script,
};

use super::{
    service::{Reply, Service},
    sounds::tones,
    stage::{Notes, REEL, listen, options},
};
use crate::social::{asking, recorded};

const FILES: &str = "instagram.fams1-1.fna.fbcdn.net";
const FILE: &str = "/o1/v/t2/f2/m86/reel.mp4";

/// A platform whose page is this, and whose file can be had by whoever knows where it is.
fn platform(page: Answer) -> Result<ReplayProxy> {
    let file = Rule::get(FILES, FILE).header("referer", "https://www.instagram.com/");
    let script = Script::new()
        .rule(Rule::get("www.instagram.com", &format!("/reel/{REEL}/")).answer(page))
        .rule(file.answer(Answer::bytes("video/mp4", tones(4)?)));
    ReplayProxy::start(script)
}

/// A program in place of yt-dlp, which says that the file is there.
fn program(folder: &TempDir, host: &str) -> Result<std::path::PathBuf> {
    let referer = json!({"Referer": "https://www.instagram.com/"});
    let formats = json!([
        {"protocol": "https", "acodec": "none", "vcodec": "avc1", "tbr": 1, "url": format!("https://{host}/silent.mp4")},
        {"protocol": "https", "tbr": 300, "url": format!("https://{host}{FILE}"), "http_headers": referer},
    ]);
    let info = json!({"id": REEL, "title": "A reel", "channel": "The Rope Walk", "formats": formats});
    let told = folder.path().join("told.json");
    fs::write(&told, info.to_string())?;
    let program = folder.path().join("yt-dlp");
    write_script(&program, &format!("exec cat '{}'", told.display()))?;
    Ok(program)
}

/// Who listens to the platform, with the help of that program.
fn listener(proxy: &ReplayProxy, service: &Service, folder: &TempDir, host: &str) -> Result<SpeechToText> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let http = asking::http(proxy)?;
    let own = InstagramVideos::new(Arc::clone(&http), Arc::clone(&clock));
    let ytdlp = YtDlp::new(&program(folder, host)?, Arc::clone(&http), Arc::clone(&clock))?;
    let found = YtDlpSound::new(Arc::new(ytdlp), Platform::Reels);
    Ok(SpeechToText::new(http, options(&service.base_url), clock, vec![Arc::new(own), Arc::new(found)])?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_video_whose_page_says_nothing_is_listened_to() -> Result<()> {
    let service = Service::start(|_, _| Reply::heard(&[(0.0, 1.4, "the quick brown fox")])).await?;
    let (proxy, folder) = (platform(Answer::bytes("text/html", "<html></html>"))?, TempDir::new()?);
    let listener = listener(&proxy, &service, &folder, FILES)?;
    let supplied = listen(&listener, None, Arc::new(Notes::default())).await??;
    let transcript = supplied.tracks.first().context("no transcript")?;
    assert_eq!((transcript.source.as_str(), transcript.title.as_deref()), ("speech-to-text", Some("A reel")));
    assert_eq!(transcript.author.as_deref(), Some("The Rope Walk"));
    assert!(transcript.segments[0].text.contains("quick brown fox"), "{transcript:?}");
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_our_own_way_finds_is_taken_first() -> Result<()> {
    let service = Service::start(|_, _| Reply::heard(&[(0.0, 1.4, "the quick brown fox")])).await?;
    let (proxy, folder) = (platform(recorded("instagram", "pages/reel.html")?)?, TempDir::new()?);
    let listener = listener(&proxy, &service, &folder, FILES)?;
    let supplied = listen(&listener, None, Arc::new(Notes::default())).await??;
    assert_ne!(supplied.tracks.first().context("no transcript")?.title.as_deref(), Some("A reel"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_the_platforms_is_not_opened() -> Result<()> {
    let service = Service::start(|_, _| Reply::heard(&[(0.0, 1.4, "the quick brown fox")])).await?;
    for host in ["evil.example", "127.0.0.1", "169.254.169.254", "fbcdn.net.evil.example"] {
        let (proxy, folder) = (platform(Answer::bytes("text/html", "<html></html>"))?, TempDir::new()?);
        let listener = listener(&proxy, &service, &folder, host)?;
        let error =
            listen(&listener, None, Arc::new(Notes::default())).await?.err().context("it was heard")?;
        // What our own way met is told.
        assert!(!matches!(error.reason(), SupplyReason::NoCaptions), "{error:?}");
        assert!(
            proxy.requests().iter().all(|request| request.host == "www.instagram.com"),
            "{:?}",
            proxy.requests()
        );
    }
    assert!(service.seen().is_empty());
    Ok(())
}
