//! The files that can be listened to, on all three platforms: found, and fetched from the first good address.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use transcript_core::{
    Clock,
    archive::Wish,
    supplier::{Ask, SupplyError},
    video::{Platform, VideoId},
};
use upstream_reqwest::{Http, InstagramVideos, Media, MediaSource, TikTokCaptions, XCaptions, XOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{
    asking::{Patient, http},
    recorded,
};

const SOUND: &[u8] = b"\0\0\0\x20ftypisom-not-really-sound";
const MAX: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(30);
const POST: &str = "7600000000000000001";
const FAR: &str = "v19-webapp-prime.tiktok.com";
const NEAR: &str = "v16-webapp-prime.tiktok.com";

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

async fn found(source: &dyn MediaSource, id: &str) -> Result<Result<Media, SupplyError>> {
    let video = VideoId::new(source.platform(), id)?;
    let deadline = SystemClock::default().now().plus(Duration::from_secs(60));
    Ok(source.media(&Ask { video, wish: Wish::Default, deadline }, &Patient).await)
}

/// What is in a file that held something else before, once it was fetched into it.
async fn read(media: &Media, http: &Arc<Http>, max: u64) -> Result<Result<Vec<u8>, SupplyError>> {
    let mut file = tokio::fs::File::from_std(tempfile::tempfile()?);
    file.write_all(b"what was there before, and longer than what comes").await?;
    let length = match media.download(http, &Patient, &mut file, max, PATIENCE).await {
        Ok(length) => length,
        Err(error) => return Ok(Err(error)),
    };
    file.rewind().await?;
    let mut body = Vec::new();
    file.read_to_end(&mut body).await?;
    assert_eq!(body.len() as u64, length);
    Ok(Ok(body))
}

/// A script in which the page of [`POST`] sets a cookie, and its files answer so.
fn tiktok(far: Vec<Answer>, near: Vec<Answer>) -> Result<Script> {
    let in_turn = |rule: Rule, answers: Vec<Answer>| answers.into_iter().fold(rule, Rule::answer);
    let page = recorded("tiktok", "pages/mt-first.html")?;
    let page = page.header("set-cookie", "tt_chain_token=xyz; Domain=.tiktok.com; Path=/");
    Ok(Script::new()
        .rule(Rule::get("www.tiktok.com", &format!("/@_/video/{POST}")).answer(page))
        .rule(in_turn(Rule::get(FAR, "/video/tos/*"), far))
        .rule(in_turn(Rule::get(NEAR, "/video/tos/*"), near)))
}

/// What comes of fetching the file of [`POST`] over this script.
async fn fetched(script: Script) -> Result<(Result<Vec<u8>, SupplyError>, ReplayProxy, Arc<Http>)> {
    let proxy = ReplayProxy::start(script)?;
    let http = http(&proxy)?;
    let media = found(&TikTokCaptions::new(Arc::clone(&http), clock()), POST).await??;
    assert_eq!((media.duration_ms, media.has_audio), (Some(31_000), Some(true)));
    assert_eq!(media.language.as_ref().map(|tag| tag.as_str()), Some("fr"));
    let body = read(&media, &http, MAX).await?;
    Ok((body, proxy, http))
}

#[tokio::test]
async fn the_smallest_file_is_fetched_with_the_cookies_of_the_page() -> Result<()> {
    let (body, proxy, _) = fetched(tiktok(vec![Answer::bytes("video/mp4", SOUND)], vec![])?).await?;
    assert_eq!(body?, SOUND);
    let seen = proxy.requests();
    assert_eq!((seen.len(), seen[1].host.as_str()), (2, FAR));
    assert!(seen[1].path.ends_with("-540/"), "{}", seen[1].path);
    assert_eq!(seen[1].header("cookie"), Some("tt_chain_token=xyz"));
    assert_eq!(seen[1].header("referer"), Some("https://www.tiktok.com/"));
    Ok(())
}

#[tokio::test]
async fn the_next_address_is_asked_where_one_gives_no_file() -> Result<()> {
    for bad in [
        Answer::status(403),
        Answer::status(500),
        Answer::text("<html>Access Denied</html>"),
        Answer::text(""),
        Answer::closed(),
        Answer::text("x".repeat(64 << 10)).endlessly(),
        Answer::status(302).header("location", "https://evil.example/a.mp4"),
        Answer::status(302).header("location", "https://127.0.0.1/a.mp4"),
        Answer::status(302).header("location", "/video/tos/again/"),
    ] {
        let (body, proxy, _) =
            fetched(tiktok(vec![bad.clone()], vec![Answer::bytes("video/mp4", SOUND)])?).await?;
        assert_eq!(body?, SOUND, "{bad:?}");
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.granted), "{bad:?}: {:?}", proxy.tunnels());
    }
    let (body, proxy, _) = fetched(tiktok(vec![Answer::status(403)], vec![Answer::status(404)])?).await?;
    let error = body.err().context("a file came")?;
    assert_eq!(error.reason().as_str(), "throttled", "the first address counts: {error:?}");
    assert!(proxy.requests().len() <= 5, "{:?}", proxy.requests());
    Ok(())
}

#[tokio::test]
async fn a_redirect_to_another_host_takes_no_cookies_along() -> Result<()> {
    let cdn = "v16m.tiktokcdn.com";
    let away = Answer::status(302).header("location", "https://v16m.tiktokcdn.com/a.mp4");
    let script =
        tiktok(vec![away], vec![])?.rule(Rule::get(cdn, "/a.mp4").answer(Answer::bytes("video/mp4", SOUND)));
    let (body, proxy, _) = fetched(script).await?;
    assert_eq!(body?, SOUND);
    let last = proxy.requests().pop().context("no request")?;
    assert_eq!((last.host.as_str(), last.header("cookie")), (cdn, None));
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_too_long_is_refused() -> Result<()> {
    let proxy = ReplayProxy::start(tiktok(
        vec![Answer::bytes("video/mp4", SOUND)],
        vec![Answer::bytes("video/mp4", SOUND)],
    )?)?;
    let http = http(&proxy)?;
    let media = found(&TikTokCaptions::new(Arc::clone(&http), clock()), POST).await??;
    let length = SOUND.len() as u64;
    let error = read(&media, &http, length - 1).await?.err().context("a file came")?;
    assert_eq!(error.reason().as_str(), "unreadable");
    assert_eq!(read(&media, &http, length).await??, SOUND);
    Ok(())
}

#[tokio::test]
async fn x_and_instagram_have_files_too() -> Result<()> {
    let pass = Rule::post("api.x.com", "/1.1/guest/activate.json").answer(recorded("x", "posts/pass.json")?);
    let post = Rule::get("x.com", "/i/api/graphql/*").answer(recorded("x", "posts/video.json")?);
    let file = Rule::get("video.twimg.com", "/amplify_video/9001/vid/avc1/480x270/a.mp4")
        .answer(Answer::bytes("video/mp4", SOUND));
    let page = Rule::get("www.instagram.com", "/reel/RopeWalk001/")
        .answer(recorded("instagram", "pages/reel.html")?);
    let reel = Rule::get("instagram.fams1-1.fna.fbcdn.net", "/o1/v/t2/f2/m86/reel.mp4")
        .header("referer", "https://www.instagram.com/")
        .answer(Answer::bytes("video/mp4", SOUND));
    let proxy = ReplayProxy::start(Script::new().rules([pass, post, file, page, reel]))?;
    let http = http(&proxy)?;
    let x = XCaptions::new(Arc::clone(&http), XOptions::default(), clock());
    let instagram = InstagramVideos::new(Arc::clone(&http), clock());
    let sources: [(&dyn MediaSource, &str, Platform); 2] =
        [(&x, "1990000000000000001", Platform::Microblog), (&instagram, "RopeWalk001", Platform::Reels)];
    for (source, id, platform) in sources {
        let media = found(source, id).await??;
        assert_eq!((media.video.id(), media.video.platform()), (id, platform));
        assert_eq!(read(&media, &http, MAX).await??, SOUND);
    }
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_listened_to_is_refused_as_its_captions_are() -> Result<()> {
    for (page, expect) in
        [("slide-show", "no_captions"), ("status-private", "private"), ("puzzle", "bot_check")]
    {
        let page = recorded("tiktok", &format!("pages/{page}.html"))?;
        let id = if expect == "no_captions" { "7600000000000000008" } else { "7600000000000000032" };
        let rule = Rule::get("www.tiktok.com", &format!("/@_/video/{id}")).answer(page);
        let proxy = ReplayProxy::start(Script::new().rule(rule))?;
        let error = found(&TikTokCaptions::new(http(&proxy)?, clock()), id).await?.err().context("a file")?;
        assert_eq!(error.reason().as_str(), expect, "{error:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_video_whose_addresses_are_all_of_no_use_has_one_all_the_same() -> Result<()> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/tiktok/pages/srt.html");
    let page = std::fs::read_to_string(page)?;
    let of_the_site = [FAR, NEAR].into_iter().fold(page, |page, host| page.replace(host, "www.tiktok.com"));
    let id = "7600000000000000004";
    let rule = Rule::get("www.tiktok.com", &format!("/@_/video/{id}"))
        .answer(Answer::bytes("text/html; charset=utf-8", of_the_site));
    let proxy = ReplayProxy::start(Script::new().rule(rule))?;
    let error = found(&TikTokCaptions::new(http(&proxy)?, clock()), id).await?.err().context("a file")?;
    // Another source may have it, and nothing is remembered of the video.
    assert_eq!(error.reason().as_str(), "unreadable", "{error:?}");
    Ok(())
}
