use std::sync::atomic::Ordering;

use transcript_core::{
    archive::Archive,
    transcript::LanguageTag,
    video::{Platform, ShortLink, VideoId},
};

use crate::testing::{ARCHIVED, NEW, Service, request, transcript};

#[tokio::test]
async fn an_archived_transcript_is_shown_to_everyone() {
    let service = Service::start().await;
    let page = service.get(&format!("/watch/video_site/{ARCHIVED}")).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    for part in ["<title>A talk – transcript</title>", "Ann", "It is so", "&amp;t=2s\">0:02</a>"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(!page.text.contains("<script"));
    let tagged = service.get(&format!("/watch/video_site/{ARCHIVED}?src=mcp_other")).await;
    assert_eq!(tagged.text, page.text);
    let head = service.send(request("HEAD", &format!("/watch/video_site/{ARCHIVED}"), &[], "")).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
}

#[tokio::test]
async fn what_is_not_archived_is_said_plainly() {
    let service = Service::start().await;
    let page = service.get(&format!("/watch/video_site/{NEW}")).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("has not been transcribed here yet"), "{}", page.text);
    assert!(page.text.contains(&format!("href=\"https://www.youtube.com/watch?v={NEW}\"")));
    assert_eq!(service.asked.load(Ordering::Relaxed), 0);
    let video = VideoId::new(Platform::VideoSite, ARCHIVED).unwrap();
    let now = transcript_core::Clock::now(service.clock.as_ref());
    service.archive.withdraw(&video, true, now).await.unwrap();
    let page = service.get(&format!("/watch/video_site/{ARCHIVED}")).await;
    assert!(page.text.contains("withdrawn by the operator") && !page.text.contains("It is so"));
}

#[tokio::test]
async fn an_address_without_a_video_is_a_404_page() {
    let service = Service::start().await;
    for target in ["/watch/nowhere/7", "/watch/video_site/short", "/watch/short_video/x", "/watch/reels/%ff"]
    {
        let page = service.get(target).await;
        assert_eq!(page.status, 404, "{target}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").is_some());
    }
}

/// The code of a short link is no id: its page says so, and leads to the platform's own address only.
#[tokio::test]
async fn a_short_link_that_was_not_followed_is_said_plainly() {
    let service = Service::start().await;
    for (link, address) in [
        ("https://vm.tiktok.com/ZMabc12De/", "https://vm.tiktok.com/ZMabc12De/"),
        ("https://www.tiktok.com/t/ZMabc12De/?a=b", "https://www.tiktok.com/t/ZMabc12De/"),
        ("https://www.instagram.com/share/BAaB3xYz01", "https://www.instagram.com/share/BAaB3xYz01/"),
        (
            "https://www.instagram.com/share/reel/BAaB3xYz01/",
            "https://www.instagram.com/share/reel/BAaB3xYz01/",
        ),
        ("https://t.co/aB3xYz01", "https://t.co/aB3xYz01"),
    ] {
        let answer = service.get(&format!("/api/transcript?url={link}")).await.json();
        assert_eq!(answer["available"], false, "{link}");
        let watch_url = answer["watchUrl"].as_str().unwrap();
        let page = service.get(watch_url.strip_prefix("https://v.example").unwrap()).await;
        assert_eq!(page.status, 200, "{watch_url}");
        assert!(page.text.contains("short link"), "{watch_url}: {}", page.text);
        assert!(page.text.contains(&format!("href=\"{address}\"")), "{watch_url}: {}", page.text);
        assert_eq!(page.text.matches("href=").count(), 1, "{}", page.text);
        assert!(!page.text.contains("has not been transcribed here yet"));
    }
    for nowhere in
        ["/watch/reels/evil:BAaB3xYz01", "/watch/video_site/vm:ZMabc12De", "/watch/microblog/t.co:a%2Fb"]
    {
        assert_eq!(service.get(nowhere).await.status, 404, "{nowhere}");
    }
}

#[tokio::test]
async fn a_short_link_that_was_followed_has_its_videos_page() {
    let service = Service::start().await;
    let video = VideoId::new(Platform::ShortVideo, "7123456789012345678").unwrap();
    service.keep(transcript(&video)).await;
    let link = ShortLink::from_name(Platform::ShortVideo, "vm:ZMabc12De").unwrap();
    service.archive.keep_link(&link, &video).await.unwrap();
    let page = service.get("/watch/short_video/vm:ZMabc12De").await;
    assert!(page.text.contains("It is so"), "{}", page.text);
    assert_eq!(page.text, service.get("/watch/short_video/vm%3AZMabc12De").await.text);
}

#[tokio::test]
async fn another_platform_and_language() {
    let service = Service::start().await;
    let mut post = transcript(&VideoId::new(Platform::Microblog, "7").unwrap());
    post.track.language = LanguageTag::parse("he").unwrap();
    post.title = None;
    service.keep(post).await;
    let page = service.get("/watch/microblog/7").await;
    assert!(page.text.contains("<title>X video 7 – transcript</title>"), "{}", page.text);
    assert!(page.text.contains("lang=\"he\"") && page.text.contains("dir=\"auto\""));
}
