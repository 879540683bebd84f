//! Instagram videos through the production adapter and the replay proxy.

mod recorded;

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use transcript_core::{
    Clock,
    archive::TrackSelector,
    supplier::{SupplyError, SupplyRequest},
    video::{Platform, VideoId},
};
use upstream_reqwest::{InstagramMedia, Media, MediaSource};
use verbatim::SystemClock;
use verbatim_tests::{
    ConnectionTrap, foreign_urls,
    replay::{ReplayProxy, ReplayResponse, Rule, Script},
};

use crate::social::{
    read_recording,
    supplier_calls::{PatientMonitor, check_failure, http},
};

const PLATFORM: &str = "instagram";
const HOST: &str = "www.instagram.com";
const CODE: &str = "RopeWalk001";

/// Requests the media of a post whose page is this response.
async fn replay_page(page: ReplayResponse, code: &str) -> Result<(Result<Media, SupplyError>, ReplayProxy)> {
    let rule = Rule::get(HOST, &format!("/reel/{code}/")).respond(page);
    let proxy = ReplayProxy::start(Script::new().rule(rule))?;
    let videos = InstagramMedia::new(http(&proxy)?, Arc::new(SystemClock::default()));
    let deadline = SystemClock::default().now().plus(std::time::Duration::from_secs(60));
    let request = SupplyRequest {
        video: VideoId::new(Platform::Instagram, code)?,
        selector: TrackSelector::Default,
        deadline,
    };
    let outcome = videos.media(&request, &PatientMonitor::default()).await;
    ensure!(proxy.unexpected().is_empty(), "unexpected: {:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

#[tokio::test]
async fn instagram_reel_takes_one_request() -> Result<()> {
    let (outcome, proxy) = replay_page(read_recording(PLATFORM, "pages/reel.html")?, CODE).await?;
    let media = outcome?;
    assert_eq!(media.title.as_deref(), Some("How a rope is laid, from the hemp to the coil. #rope"));
    assert_eq!((media.author.as_deref(), media.duration_ms), (Some("The Rope Walk"), Some(72_000)));
    assert_eq!((media.has_audio, media.addresses.len()), (Some(true), 2));
    // The page also contains other posts of the author; their addresses must not be returned.
    assert!(media.addresses.iter().all(|address| address.url.path().contains("/reel")));
    let [page] = proxy.requests().try_into().ok().context("one request")?;
    assert_eq!((page.header("cookie"), page.header("sec-fetch-mode")), (None, Some("navigate")));
    Ok(())
}

#[tokio::test]
async fn instagram_pages_map_to_outcomes() -> Result<()> {
    for (page, expect) in [
        ("silent", "no_captions"),
        ("picture", "no_captions"),
        ("gated", "age"),
        ("other", "other_video"),
        ("missing", "platform_fault"),
        ("held-back", "throttled"),
        ("login", "throttled"),
        ("error", "removed"),
        ("shell", "unreadable"),
        ("elsewhere", "unreadable"),
    ] {
        let (outcome, _) =
            replay_page(read_recording(PLATFORM, &format!("pages/{page}.html"))?, CODE).await?;
        check_failure(&outcome, expect).with_context(|| page.to_owned())?;
    }
    for (page, duration_ms) in [("gallery", 9_500), ("older", 71_100)] {
        let (outcome, _) =
            replay_page(read_recording(PLATFORM, &format!("pages/{page}.html"))?, CODE).await?;
        assert_eq!(outcome?.duration_ms, Some(duration_ms), "{page}");
    }
    Ok(())
}

#[tokio::test]
async fn instagram_faults_carry_reason() -> Result<()> {
    let to = |address: &str| ReplayResponse::status(302).header("location", address);
    for (response, expect) in [
        (ReplayResponse::status(500), "platform_fault"),
        (ReplayResponse::status(429).header("retry-after", "60"), "throttled"),
        (ReplayResponse::status(401), "throttled"),
        (ReplayResponse::status(403), "throttled"),
        (ReplayResponse::status(404), "removed"),
        (ReplayResponse::closed(), "unreadable"),
        (ReplayResponse::text(""), "unreadable"),
        (
            ReplayResponse::text("{\"message\":\"Please wait a few minutes\",\"require_login\":true}"),
            "throttled",
        ),
        (to("/accounts/login/?next=/reel/RopeWalk001/"), "throttled"),
        (to("https://www.instagram.com/"), "throttled"),
        (to("https://www.instagram.com/challenge/"), "bot_check"),
        (to("https://evil.example/reel/RopeWalk001/"), "unreadable"),
        (to("http://127.0.0.1/"), "unreadable"),
        (to("/reel/RopeWalk001/"), "unreadable"),
        (ReplayResponse::text("<script>xig_polaris_media".repeat(100_000)), "unreadable"),
        (ReplayResponse::bytes("text/html", vec![b' '; 50 << 20]).gzipped(), "unreadable"),
        (ReplayResponse::text("x".repeat(64 << 10)).endlessly(), "unreadable"),
    ] {
        let (outcome, proxy) = replay_page(response.clone(), CODE).await?;
        check_failure(&outcome, expect).with_context(|| format!("{response:?}"))?;
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST && tunnel.granted), "{response:?}");
        assert!(proxy.requests().len() <= 6);
    }
    Ok(())
}

#[tokio::test]
async fn instagram_foreign_redirect_is_not_followed() -> Result<()> {
    let trap = ConnectionTrap::bind()?;
    for address in foreign_urls(HOST, trap.port()?) {
        let redirect = ReplayResponse::status(302).header("location", &address);
        let (outcome, proxy) = replay_page(redirect, CODE).await?;
        assert!(outcome.is_err(), "{address} gave {outcome:?}");
        assert_eq!(proxy.requests().len(), 1, "{address}");
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST && tunnel.port == 443), "{address}");
    }
    assert_eq!(trap.connections(), 0);
    Ok(())
}
