//! The production supplier of TikTok's captions, through the replay proxy.

mod faults;
mod hosts;
mod recorded;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use transcript_core::supplier::Supplier;
use upstream_reqwest::{Http, TikTokCaptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use crate::social::{
    asking::{Outcome, ask, behind, reason},
    check_all, playing, recorded,
};

const PLATFORM: &str = "tiktok";
const HOST: &str = "www.tiktok.com";
const FILES: &str = "v16-webapp.tiktok.com";
/// A post with one track: [`LAYING`] is its captions.
const VIDEO: &str = "7600000000000000005";
const PAGE: &str = "/@_/video/7600000000000000005";
const CAPTIONS: &str = "/5e1f/6a0c/video/tos/useast/tos-useast-pv/o9/";

fn make(http: Arc<Http>) -> Arc<dyn Supplier> {
    Arc::new(TikTokCaptions::new(http, Arc::new(SystemClock::default())))
}

fn good_page() -> Result<Answer> {
    recorded(PLATFORM, "pages/mobile.html")
}

fn good_captions() -> Result<Answer> {
    recorded(PLATFORM, "captions/laying.vtt")
}

/// A script whose page and captions answer so, in turn.
fn script(page: Vec<Answer>, captions: Vec<Answer>) -> Script {
    let in_turn = |rule: Rule, answers: Vec<Answer>| answers.into_iter().fold(rule, Rule::answer);
    Script::new()
        .rule(in_turn(Rule::get(HOST, PAGE), page))
        .rule(in_turn(Rule::get(FILES, CAPTIONS), captions))
}

/// What comes of asking for [`VIDEO`] through a proxy with this script.
async fn played(script: Script) -> Result<(Outcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let outcome = ask(&behind(make, &proxy)?, VIDEO, None).await?;
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

#[tokio::test]
async fn every_recording_comes_out_as_expected() -> Result<()> {
    check_all(PLATFORM, make).await
}

#[tokio::test]
async fn a_page_is_asked_for_as_a_browser_would_and_its_cookies_stay_within_the_errand() -> Result<()> {
    let page = good_page()?
        .header("set-cookie", "ttwid=1%7Cabc; Domain=.tiktok.com; Path=/; Secure; HttpOnly")
        .header("set-cookie", "tt_chain_token=xyz==; Domain=tiktok.com; Path=/")
        .header("set-cookie", "own=1; Path=/")
        .header("set-cookie", "foreign=1; Domain=evil.example");
    let proxy = ReplayProxy::start(script(vec![page], vec![good_captions()?]))?;
    let supplier = behind(make, &proxy)?;
    for _ in 0..2 {
        assert_eq!(reason(&ask(&supplier, VIDEO, None).await?), "transcript");
    }
    let seen = proxy.requests();
    let [page, captions, again, _] = seen.as_slice() else { anyhow::bail!("{seen:?}") };
    let cookies = captions.header("cookie").context("no cookies")?;
    assert_eq!(cookies, "ttwid=1%7Cabc; tt_chain_token=xyz==");
    assert_eq!(captions.header("referer"), Some("https://www.tiktok.com/"));
    for page in [page, again] {
        assert_eq!((page.header("cookie"), page.header("referer")), (None, None), "another errand's cookies");
        assert_eq!(page.header("sec-fetch-mode"), Some("navigate"));
        assert!(page.query.is_empty());
    }
    for request in &seen {
        let agent = request.header("user-agent").unwrap_or_default();
        assert!(agent.starts_with("Mozilla/5.0") && !agent.contains("verbatim"), "{agent}");
        assert!(!request.headers.iter().any(|(name, _)| name.as_str().contains("forwarded")));
    }
    Ok(())
}

#[tokio::test]
async fn a_redirect_to_the_posts_own_page_is_followed() -> Result<()> {
    let proper = "/@rope.walk/video/7600000000000000005";
    let redirect = Answer::status(301).header("location", proper).header("set-cookie", "a=1; Path=/");
    let script = script(vec![redirect], vec![good_captions()?])
        .rule(Rule::get(HOST, proper).header("cookie", "a=1").answer(good_page()?));
    let (outcome, proxy) = played(script).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    assert_eq!(proxy.requests().len(), 3);
    Ok(())
}

#[tokio::test]
async fn everything_is_told_of_the_post() -> Result<()> {
    let proxy = playing(PLATFORM, "mt-first")?;
    let supplied = ask(&behind(make, &proxy)?, "7600000000000000001", Some("en")).await??;
    let [wished, default] = supplied.tracks.as_slice() else { anyhow::bail!("{supplied:?}") };
    assert_eq!(wished.author.as_deref(), Some("The Rope Walk"));
    assert_eq!((wished.duration_ms, wished.source.as_str()), (Some(31_000), "tiktok-captions"));
    // A translation is marked as one, and not as what was said.
    assert!(!wished.track.original && wished.track.is_generated());
    assert!(default.track.original && default.track.language.as_str() == "fr");
    Ok(())
}
