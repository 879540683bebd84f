//! Media for speech-to-text on three platforms: found, and downloaded from the first usable address.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use transcript_core::{
    Clock,
    archive::TrackSelector,
    supplier::{SupplyError, SupplyRequest},
    video::{Platform, VideoId},
};
use upstream_reqwest::{
    HttpTransport, InstagramMedia, Media, MediaSource, TikTokCaptions, XCaptions, XOptions,
};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{
    read_recording,
    supplier_calls::{PatientMonitor, http},
};

const SOUND: &[u8] = b"\0\0\0\x20ftypisom-not-really-sound";
const MAX: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);
const POST: &str = "7600000000000000001";
const FAR: &str = "v19-webapp-prime.tiktok.com";
const NEAR: &str = "v16-webapp-prime.tiktok.com";

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

async fn find_media(source: &dyn MediaSource, id: &str) -> Result<Result<Media, SupplyError>> {
    let video = VideoId::new(source.platform(), id)?;
    let deadline = SystemClock::default().now().plus(Duration::from_secs(60));
    let request = SupplyRequest { video, selector: TrackSelector::Default, deadline };
    Ok(source.media(&request, &PatientMonitor::default()).await)
}

/// Downloads media into a file that has older content, and returns the file's content.
async fn download(
    media: &Media,
    http: &Arc<HttpTransport>,
    max: u64,
) -> Result<Result<Vec<u8>, SupplyError>> {
    let mut file = tokio::fs::File::from_std(tempfile::tempfile()?);
    file.write_all(b"older content that is longer than the downloaded file").await?;
    let length = match media.download(http, &PatientMonitor::default(), &mut file, max, TIMEOUT).await {
        Ok(length) => length,
        Err(error) => return Ok(Err(error)),
    };
    file.rewind().await?;
    let mut body = Vec::new();
    file.read_to_end(&mut body).await?;
    assert_eq!(body.len() as u64, length);
    Ok(Ok(body))
}

/// A script in which the page of [`POST`] sets a cookie, with these responses of its two file hosts.
fn tiktok(far: Vec<ReplayResponse>, near: Vec<ReplayResponse>) -> Result<Script> {
    let page = read_recording("tiktok", "pages/mt-first.html")?;
    let page = page.header("set-cookie", "tt_chain_token=xyz; Domain=.tiktok.com; Path=/");
    Ok(Script::new()
        .rule(Rule::get("www.tiktok.com", &format!("/@_/video/{POST}")).respond(page))
        .rule(Rule::get(FAR, "/video/tos/*").respond_all(far))
        .rule(Rule::get(NEAR, "/video/tos/*").respond_all(near)))
}

/// Downloads the file of [`POST`] over this script.
async fn download_post(
    script: Script,
) -> Result<(Result<Vec<u8>, SupplyError>, ReplayProxy, Arc<HttpTransport>)> {
    let proxy = ReplayProxy::start(script)?;
    let http = http(&proxy)?;
    let media = find_media(&TikTokCaptions::new(Arc::clone(&http), clock()), POST).await??;
    assert_eq!((media.duration_ms, media.has_audio), (Some(31_000), Some(true)));
    assert_eq!(media.language.as_ref().map(|tag| tag.as_str()), Some("fr"));
    let body = download(&media, &http, MAX).await?;
    Ok((body, proxy, http))
}

#[tokio::test]
async fn media_smallest_file_is_downloaded_with_page_cookies() -> Result<()> {
    let (body, proxy, _) =
        download_post(tiktok(vec![ReplayResponse::bytes("video/mp4", SOUND)], vec![])?).await?;
    assert_eq!(body?, SOUND);
    let requests = proxy.requests();
    assert_eq!((requests.len(), requests[1].host.as_str()), (2, FAR));
    assert!(requests[1].path.ends_with("-540/"), "{}", requests[1].path);
    assert_eq!(requests[1].header("cookie"), Some("tt_chain_token=xyz"));
    assert_eq!(requests[1].header("referer"), Some("https://www.tiktok.com/"));
    Ok(())
}

#[tokio::test]
async fn media_next_address_is_tried_after_failure() -> Result<()> {
    for bad in [
        ReplayResponse::status(403),
        ReplayResponse::status(500),
        ReplayResponse::text("<html>Access Denied</html>"),
        ReplayResponse::text(""),
        ReplayResponse::closed(),
        ReplayResponse::text("x".repeat(64 << 10)).endlessly(),
        ReplayResponse::status(302).header("location", "https://evil.example/a.mp4"),
        ReplayResponse::status(302).header("location", "https://127.0.0.1/a.mp4"),
        ReplayResponse::status(302).header("location", "/video/tos/again/"),
    ] {
        let (body, proxy, _) =
            download_post(tiktok(vec![bad.clone()], vec![ReplayResponse::bytes("video/mp4", SOUND)])?)
                .await?;
        assert_eq!(body?, SOUND, "{bad:?}");
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.granted), "{bad:?}: {:?}", proxy.tunnels());
    }
    let (body, proxy, _) =
        download_post(tiktok(vec![ReplayResponse::status(403)], vec![ReplayResponse::status(404)])?).await?;
    let error = body.err().context("a file was returned")?;
    assert_eq!(error.reason().as_str(), "throttled", "not the failure of the first address: {error:?}");
    assert!(proxy.requests().len() <= 5, "{:?}", proxy.requests());
    Ok(())
}

#[tokio::test]
async fn media_cross_host_redirect_sends_no_cookies() -> Result<()> {
    let cdn = "v16m.tiktokcdn.com";
    let redirect = ReplayResponse::status(302).header("location", "https://v16m.tiktokcdn.com/a.mp4");
    let script = tiktok(vec![redirect], vec![])?
        .rule(Rule::get(cdn, "/a.mp4").respond(ReplayResponse::bytes("video/mp4", SOUND)));
    let (body, proxy, _) = download_post(script).await?;
    assert_eq!(body?, SOUND);
    let last = proxy.requests().pop().context("no request")?;
    assert_eq!((last.host.as_str(), last.header("cookie")), (cdn, None));
    Ok(())
}

#[tokio::test]
async fn media_oversized_file_is_rejected() -> Result<()> {
    let proxy = ReplayProxy::start(tiktok(
        vec![ReplayResponse::bytes("video/mp4", SOUND)],
        vec![ReplayResponse::bytes("video/mp4", SOUND)],
    )?)?;
    let http = http(&proxy)?;
    let media = find_media(&TikTokCaptions::new(Arc::clone(&http), clock()), POST).await??;
    let length = SOUND.len() as u64;
    let error = download(&media, &http, length - 1).await?.err().context("a file was returned")?;
    assert_eq!(error.reason().as_str(), "unreadable");
    assert_eq!(download(&media, &http, length).await??, SOUND);
    Ok(())
}

#[tokio::test]
async fn media_x_and_instagram_files_are_downloaded() -> Result<()> {
    let guest_token =
        Rule::post("api.x.com", "/1.1/guest/activate.json").respond(read_recording("x", "posts/pass.json")?);
    let post = Rule::get("x.com", "/i/api/graphql/*").respond(read_recording("x", "posts/video.json")?);
    let file = Rule::get("video.twimg.com", "/amplify_video/9001/vid/avc1/480x270/a.mp4")
        .respond(ReplayResponse::bytes("video/mp4", SOUND));
    let page = Rule::get("www.instagram.com", "/reel/RopeWalk001/")
        .respond(read_recording("instagram", "pages/reel.html")?);
    let reel = Rule::get("instagram.fams1-1.fna.fbcdn.net", "/o1/v/t2/f2/m86/reel.mp4")
        .header("referer", "https://www.instagram.com/")
        .respond(ReplayResponse::bytes("video/mp4", SOUND));
    let proxy = ReplayProxy::start(Script::new().rules([guest_token, post, file, page, reel]))?;
    let http = http(&proxy)?;
    let x = XCaptions::new(Arc::clone(&http), XOptions::default(), clock());
    let instagram = InstagramMedia::new(Arc::clone(&http), clock());
    let sources: [(&dyn MediaSource, &str, Platform); 2] =
        [(&x, "1990000000000000001", Platform::X), (&instagram, "RopeWalk001", Platform::Instagram)];
    for (source, id, platform) in sources {
        let media = find_media(source, id).await??;
        assert_eq!((media.video.id(), media.video.platform()), (id, platform));
        assert_eq!(download(&media, &http, MAX).await??, SOUND);
    }
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test]
async fn media_failure_reason_equals_caption_failure_reason() -> Result<()> {
    for (page, expect) in
        [("slide-show", "no_captions"), ("status-private", "private"), ("puzzle", "bot_check")]
    {
        let page = read_recording("tiktok", &format!("pages/{page}.html"))?;
        let id = if expect == "no_captions" { "7600000000000000008" } else { "7600000000000000032" };
        let rule = Rule::get("www.tiktok.com", &format!("/@_/video/{id}")).respond(page);
        let proxy = ReplayProxy::start(Script::new().rule(rule))?;
        let error =
            find_media(&TikTokCaptions::new(http(&proxy)?, clock()), id).await?.err().context("a file")?;
        assert_eq!(error.reason().as_str(), expect, "{error:?}");
    }
    Ok(())
}

#[tokio::test]
async fn media_unusable_addresses_fail_as_unreadable() -> Result<()> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/tiktok/pages/srt.html");
    let page = std::fs::read_to_string(page)?;
    let same_host_page =
        [FAR, NEAR].into_iter().fold(page, |page, host| page.replace(host, "www.tiktok.com"));
    let id = "7600000000000000004";
    let rule = Rule::get("www.tiktok.com", &format!("/@_/video/{id}"))
        .respond(ReplayResponse::bytes("text/html; charset=utf-8", same_host_page));
    let proxy = ReplayProxy::start(Script::new().rule(rule))?;
    let error =
        find_media(&TikTokCaptions::new(http(&proxy)?, clock()), id).await?.err().context("a file")?;
    // Another supplier may have the file, so the failure must not become an absence.
    assert_eq!(error.reason().as_str(), "unreadable", "{error:?}");
    Ok(())
}
