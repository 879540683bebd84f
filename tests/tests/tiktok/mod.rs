//! The production supplier of TikTok's captions, through the replay proxy.

mod faults;
mod hosts;
mod recorded;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use transcript_core::supplier::Supplier;
use upstream_reqwest::{HttpTransport, TikTokCaptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use crate::social::{
    check_all, read_recording, start_replay,
    supplier_calls::{CallOutcome, behind, fetch, reason, replay},
};

const PLATFORM: &str = "tiktok";
const HOST: &str = "www.tiktok.com";
const FILES: &str = "v16-webapp.tiktok.com";
/// A post with one caption track.
const VIDEO: &str = "7600000000000000005";
const PAGE: &str = "/@_/video/7600000000000000005";
const CAPTIONS: &str = "/5e1f/6a0c/video/tos/useast/tos-useast-pv/o9/";

fn make(http: Arc<HttpTransport>) -> Arc<dyn Supplier> {
    Arc::new(TikTokCaptions::new(http, Arc::new(SystemClock::default())))
}

fn good_page() -> Result<ReplayResponse> {
    read_recording(PLATFORM, "pages/mobile.html")
}

fn good_captions() -> Result<ReplayResponse> {
    read_recording(PLATFORM, "captions/laying.vtt")
}

/// A script with these responses for the page and the captions, in order.
fn script(page: Vec<ReplayResponse>, captions: Vec<ReplayResponse>) -> Script {
    Script::new()
        .rule(Rule::get(HOST, PAGE).respond_all(page))
        .rule(Rule::get(FILES, CAPTIONS).respond_all(captions))
}

/// Requests [`VIDEO`] through a proxy with this script.
async fn replay_script(script: Script) -> Result<(CallOutcome, ReplayProxy)> {
    replay(make, script, VIDEO).await
}

#[tokio::test]
async fn tiktok_recordings_have_expected_outcomes() -> Result<()> {
    check_all(PLATFORM, make).await
}

#[tokio::test]
async fn tiktok_page_request_is_like_browser_and_keeps_cookies_in_session() -> Result<()> {
    let page = good_page()?
        .header("set-cookie", "ttwid=1%7Cabc; Domain=.tiktok.com; Path=/; Secure; HttpOnly")
        .header("set-cookie", "tt_chain_token=xyz==; Domain=tiktok.com; Path=/")
        .header("set-cookie", "own=1; Path=/")
        .header("set-cookie", "foreign=1; Domain=evil.example");
    let proxy = ReplayProxy::start(script(vec![page], vec![good_captions()?]))?;
    let supplier = behind(make, &proxy)?;
    for _ in 0..2 {
        assert_eq!(reason(&fetch(&supplier, VIDEO, None).await?), "transcript");
    }
    let requests = proxy.requests();
    let [page, captions, next_page, _] = requests.as_slice() else { anyhow::bail!("{requests:?}") };
    let cookies = captions.header("cookie").context("no cookies")?;
    assert_eq!(cookies, "ttwid=1%7Cabc; tt_chain_token=xyz==");
    assert_eq!(captions.header("referer"), Some("https://www.tiktok.com/"));
    for page in [page, next_page] {
        assert_eq!(
            (page.header("cookie"), page.header("referer")),
            (None, None),
            "cookies of another session"
        );
        assert_eq!(page.header("sec-fetch-mode"), Some("navigate"));
        assert!(page.query.is_empty());
    }
    for request in &requests {
        let agent = request.header("user-agent").unwrap_or_default();
        assert!(agent.starts_with("Mozilla/5.0") && !agent.contains("verbatim"), "{agent}");
        assert!(!request.headers.iter().any(|(name, _)| name.as_str().contains("forwarded")));
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_redirect_to_post_page_is_followed() -> Result<()> {
    let proper = "/@rope.walk/video/7600000000000000005";
    let redirect = ReplayResponse::status(301).header("location", proper).header("set-cookie", "a=1; Path=/");
    let script = script(vec![redirect], vec![good_captions()?])
        .rule(Rule::get(HOST, proper).header("cookie", "a=1").respond(good_page()?));
    let (outcome, proxy) = replay_script(script).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    assert_eq!(proxy.requests().len(), 3);
    Ok(())
}

#[tokio::test]
async fn tiktok_transcript_has_post_metadata() -> Result<()> {
    let proxy = start_replay(PLATFORM, "mt-first")?;
    let supplied = fetch(&behind(make, &proxy)?, "7600000000000000001", Some("translation:en")).await??;
    let [requested, default] = supplied.transcripts.as_slice() else { anyhow::bail!("{supplied:?}") };
    assert_eq!(requested.author.as_deref(), Some("The Rope Walk"));
    assert_eq!((requested.duration_ms, requested.source.as_str()), (Some(31_000), "tiktok-captions"));
    // A translation is marked as one, and not as the original.
    assert!(!requested.track.original && requested.track.is_generated());
    assert!(default.track.original && default.track.language.as_str() == "fr");
    Ok(())
}
