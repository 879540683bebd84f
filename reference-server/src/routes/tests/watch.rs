use std::sync::atomic::Ordering;

use transcript_core::{
    archive::Archive,
    transcript::LanguageTag,
    video::{Platform, ShortLink, VideoId},
};

use crate::testing::{ARCHIVED, DEFECT, NEW, ServiceFixture, request, transcript};

#[tokio::test]
async fn watch_archived_transcript_is_shown() {
    let service = ServiceFixture::start().await;
    let page = service.get(&format!("/watch/video_site/{ARCHIVED}")).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; "), "{policy}");
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    for part in [
        "<title>A talk – transcript</title>",
        "Ann",
        "It is so",
        "&amp;t=1s\" rel=\"noreferrer\" aria-label=\"Play from 0:01 on YouTube\">0:01</a>",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert_eq!(page.text.matches("<script").count(), 1);
    assert_eq!(page.text.matches("rel=\"stylesheet\"").count(), 1);
    assert_eq!(page.header("access-control-allow-origin"), None);
    let tagged = service.get(&format!("/watch/video_site/{ARCHIVED}?src=mcp_other")).await;
    assert_eq!(tagged.text, page.text);
    let head = service.send(request("HEAD", &format!("/watch/video_site/{ARCHIVED}"), &[], "")).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
}

#[tokio::test]
async fn watch_missing_transcript_shows_reason() {
    let service = ServiceFixture::start().await;
    let page = service.get(&format!("/watch/video_site/{NEW}")).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("This video is not transcribed yet."), "{}", page.text);
    assert!(page.text.contains("data-challenge=\"./aaaaaaaaaaa/challenge\""), "{}", page.text);
    assert!(page.text.contains("data-transcribe=\"./aaaaaaaaaaa/transcribe\""), "{}", page.text);
    let tagged = service.get(&format!("/watch/video_site/{NEW}?src=mcp_other")).await;
    assert!(tagged.text.contains("data-transcribe=\"./aaaaaaaaaaa/transcribe?src=mcp_other\""));
    // Links to other page languages keep the parameters.
    for (path, link) in [
        (format!("video_site/{NEW}?lang=de&src=mcp_other"), "\"?hl=de&amp;lang=de&amp;src=mcp_other\""),
        ("short_video/vm:ZMabc12De?src=mcp_other".to_owned(), "\"?hl=de&amp;src=mcp_other\""),
        (format!("video_site/{NEW}?t=1m15s&q=a+b"), "\"?hl=de&amp;t=75&amp;q=a%20b\""),
    ] {
        let page = service.get(&format!("/watch/{path}")).await;
        assert!(page.text.contains(link), "{path}: {}", page.text);
    }
    let foreign = service.get(&format!("/watch/video_site/{NEW}?src=%22%3E%3Cscript%3E")).await;
    assert_eq!(foreign.text, page.text);
    assert!(page.text.contains(&format!("href=\"https://www.youtube.com/watch?v={NEW}\"")));
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    let now = transcript_core::Clock::now(service.clock.as_ref());
    service.archive.withdraw(&video, true, now).await.unwrap();
    let page = service.get(&format!("/watch/video_site/{ARCHIVED}")).await;
    assert!(page.text.contains("has withdrawn the transcript") && !page.text.contains("It is so"));
}

#[tokio::test]
async fn watch_path_without_video_returns_404_page() {
    let service = ServiceFixture::start().await;
    for target in ["/watch/nowhere/7", "/watch/video_site/short", "/watch/short_video/x", "/watch/reels/%ff"]
    {
        let page = service.get(target).await;
        assert_eq!(page.status, 404, "{target}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").is_some());
    }
}

/// A short link code is not a video id: its page names the short link and links to the platform only.
#[tokio::test]
async fn watch_unresolved_short_link_links_to_platform() {
    let service = ServiceFixture::start().await;
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
        assert_eq!(page.text.matches("href=\"http").count(), 1, "{}", page.text);
        assert!(!page.text.contains("This video is not transcribed yet."));
    }
    for nowhere in
        ["/watch/reels/evil:BAaB3xYz01", "/watch/video_site/vm:ZMabc12De", "/watch/microblog/t.co:a%2Fb"]
    {
        assert_eq!(service.get(nowhere).await.status, 404, "{nowhere}");
    }
}

#[tokio::test]
async fn watch_resolved_short_link_shows_video_page() {
    let service = ServiceFixture::start().await;
    let video = VideoId::new(Platform::TikTok, "7123456789012345678").unwrap();
    service.keep(transcript(&video)).await;
    let link = ShortLink::from_name(Platform::TikTok, "vm:ZMabc12De").unwrap();
    service.archive.put_short_link(&link, &video).await.unwrap();
    let page = service.get("/watch/short_video/vm:ZMabc12De").await;
    assert!(page.text.contains("It is so"), "{}", page.text);
    assert_eq!(page.text, service.get("/watch/short_video/vm%3AZMabc12De").await.text);
}

#[tokio::test]
async fn watch_right_to_left_language_is_declared() {
    let service = ServiceFixture::start().await;
    let mut post = transcript(&VideoId::new(Platform::X, "7").unwrap());
    post.track.language = LanguageTag::parse("he").unwrap();
    post.title = None;
    service.keep(post).await;
    let page = service.get("/watch/microblog/7").await;
    assert!(page.text.contains("<title>X video 7 – transcript</title>"), "{}", page.text);
    assert!(page.text.contains("lang=\"he\"") && page.text.contains("dir=\"auto\""));
}

#[tokio::test]
async fn watch_page_is_cached_and_invalidated() {
    let service = ServiceFixture::start().await;
    let target = format!("/watch/video_site/{ARCHIVED}");
    let first = service.get(&target).await;
    let etag = first.header("etag").unwrap().to_owned();
    let again = service.send(request("GET", &target, &[("if-none-match", &etag)], "")).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert!(again.header("content-security-policy").is_some());
    // The attribution tag does not change the page, but it is part of the button's query.
    let tagged = service.get(&format!("{target}?src=mcp_other")).await;
    assert_eq!(tagged.status, 200);
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    let now = transcript_core::Clock::now(service.clock.as_ref());
    service.archive.withdraw(&video, true, now).await.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while service.get(&target).await.text.contains("It is so") {
        assert!(std::time::Instant::now() < deadline, "the page shows a withdrawn transcript");
        tokio::time::sleep(crate::response_cache::EXPIRE).await;
    }
    // No API query hits the cache entry of a page.
    let odd = service.get(&format!("/api/transcript?%00video_site/{ARCHIVED}%00")).await;
    assert_eq!(odd.status, 400);
}

#[tokio::test]
async fn watch_cached_page_needs_no_router() {
    let service = ServiceFixture::start().await;
    let target = format!("/watch/video_site/{ARCHIVED}");
    let german = ("accept-language", "de");
    let cached = |method, target: &str, headers: &[(&str, &str)]| {
        let now = std::time::Instant::now();
        crate::routes::cached(&service.app, &request(method, target, headers, ""), now)
    };
    assert!(cached("GET", &target, &[german]).is_none(), "nothing was requested yet");
    // The first answer is from the archive, and the second one from the cache.
    let first = service.send(request("GET", &target, &[german], "")).await;
    assert!(first.text.contains("Transkript") && first.header("vary").unwrap().contains("accept-language"));
    let second = service.send(request("GET", &target, &[german], "")).await;
    // Of a cached body, the length is added with the connection's framing.
    let names = |headers: &http::HeaderMap| {
        let names = headers.keys().filter(|name| *name != http::header::CONTENT_LENGTH);
        names.map(ToString::to_string).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((names(&second.headers), &second.text), (names(&first.headers), &first.text));
    for name in ["etag", "vary", "content-security-policy", "referrer-policy", "cache-control"] {
        assert_eq!(second.header(name), first.header(name), "{name}");
    }
    assert_eq!(cached("HEAD", &target, &[german]).unwrap().status(), 200);
    let ready = cached("GET", &target, &[german]).unwrap();
    assert_eq!((ready.status().as_u16(), ready.headers().get("etag")), (200, first.headers.get("etag")));
    for (method, target, header) in [
        ("POST", target.as_str(), german),
        ("GET", &target, ("accept-language", "ja")),
        ("GET", &target, ("authorization", "Bearer vbk_x")),
        ("GET", &format!("{target}?t=1"), german),
        ("GET", &format!("{target}/pdf"), german),
        ("GET", "/watch/nowhere/x", german),
    ] {
        assert!(cached(method, target, &[header]).is_none(), "{method} {target} {header:?}");
    }
}

#[tokio::test]
async fn watch_five_megabytes_are_one_page() {
    let service = ServiceFixture::start().await;
    let video = VideoId::new(Platform::YouTube, DEFECT).unwrap();
    let mut long = transcript(&video);
    let words = "and so it went on, day after day. ".repeat(8);
    long.segments = (0..20_000_u64)
        .map(|index| transcript_core::transcript::Segment::new(words.as_str(), index * 1_000, 1_000))
        .collect();
    service.keep(long).await;
    let page = service.get(&format!("/watch/video_site/{DEFECT}")).await;
    assert_eq!(page.status, 200);
    let words = page.text.split("id=\"words\"").nth(1).unwrap();
    assert_eq!(words.matches("and so it went on").count(), 160_000);
    assert!(page.text.len() > 5_000_000 && page.text.contains(">5:33:"), "{}", page.text.len());
}

#[tokio::test]
async fn front_page_redirects_to_watch_page() {
    let service = ServiceFixture::start().await;
    let home = service.get("/").await;
    assert_eq!((home.status.as_u16(), home.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(!home.text.contains("<script"), "{}", home.text);
    for (link, location) in [
        (format!("https://youtu.be/{NEW}?t=5"), format!("watch/video_site/{NEW}?t=5")),
        (format!("%20https://www.youtube.com/shorts/{NEW}%20"), format!("watch/video_site/{NEW}")),
        ("https://vm.tiktok.com/ZMabc12De/".to_owned(), "watch/short_video/vm:ZMabc12De".to_owned()),
        ("https://t.co/aB3xYz01".to_owned(), "watch/microblog/t.co:aB3xYz01".to_owned()),
    ] {
        let there = service.get(&format!("/?url={link}")).await;
        assert_eq!(
            (there.status.as_u16(), there.header("location")),
            (303, Some(location.as_str())),
            "{link}"
        );
    }
    let wrong = service.get("/?url=https://evil.example/%22%3E%3Cscript%3E").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("role=\"alert\"") && !wrong.text.contains("<script"), "{}", wrong.text);
    assert!(wrong.text.contains("value=\"https://evil.example/&quot;&gt;&lt;script&gt;\""), "{}", wrong.text);
    // The form takes what a link may have.
    assert!(wrong.text.contains("maxlength=\"4096\""), "{}", wrong.text);
    for nothing in ["/?url=", "/?url=%20", "/?other=1"] {
        assert_eq!(service.get(nothing).await.status, 200, "{nothing}");
    }
    assert_eq!(service.get("/?url=%ff").await.status, 400);
    assert_eq!(service.get("/?url=a&url=b").await.status, 400);
}

#[tokio::test]
async fn assets_are_immutable() {
    let service = ServiceFixture::start().await;
    let home = service.get("/").await.text;
    let sheet = home.split("rel=\"stylesheet\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let asset = service.get(&format!("/{sheet}")).await;
    assert_eq!((asset.status.as_u16(), asset.header("content-type")), (200, Some("text/css; charset=utf-8")));
    assert_eq!(asset.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(service.get("/assets/style.000000000000.css").await.status, 404);
    assert_eq!(service.get("/assets/%2e%2e%2fCargo.toml").await.status, 404);
}

/// Browsers get error pages; programs get problem details.
#[tokio::test]
async fn errors_are_pages_for_browsers() {
    let service = ServiceFixture::start().await;
    let accept = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    for (method, target, status) in [
        ("GET", "/nothing/here", 404),
        ("GET", "/watch/video_site", 404),
        ("DELETE", "/", 405),
        ("POST", "/watch/video_site/dQw4w9WgXcQ", 405),
        ("GET", "/watch/video_site/nowhere/challenge", 404),
    ] {
        let answer = service.send(request(method, target, &accept, "")).await;
        assert_eq!(answer.status, status, "{target}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{target}");
        assert!(answer.text.contains(&format!("Error {status}")), "{}", answer.text);
        assert!(answer.header("content-security-policy").is_some());
        assert_eq!(answer.header("allow").is_some(), status == 405);
        let length = answer.header("content-length").map(|length| length.parse::<usize>().unwrap());
        assert!(length.is_none_or(|length| length == answer.text.len()), "{target}: {length:?}");
        let program = service.send(request(method, target, &[], "")).await;
        assert_eq!(program.header("content-type"), Some("application/problem+json"), "{target}");
    }
    let api = service.send(request("GET", "/api/nothing", &accept, "")).await;
    assert_eq!(api.header("content-type"), Some("application/problem+json"));
}

#[tokio::test]
async fn moment_redirects_to_its_paragraph() {
    let service = ServiceFixture::start().await;
    let page = format!("/watch/video_site/{ARCHIVED}");
    let text = service.get(&page).await.text;
    assert!(text.contains("<p id=\"t1\">"), "{text}");
    for (query, location) in [
        ("?t=0", format!("./{ARCHIVED}#t1")),
        ("?t=1m40s", format!("./{ARCHIVED}#t1")),
        ("?src=x&lang=en&t=2", format!("./{ARCHIVED}?lang=en#t1")),
        ("?t=2&q=a%20%26b", format!("./{ARCHIVED}?q=a%20%26b#t1")),
        ("?lang=en&q=a&t=2&hl=de", format!("./{ARCHIVED}?lang=en&q=a&hl=de#t1")),
    ] {
        let there = service.get(&format!("{page}{query}")).await;
        assert_eq!(
            (there.status.as_u16(), there.header("location")),
            (303, Some(location.as_str())),
            "{query}"
        );
    }
    // An invalid moment or language, and a video without a transcript, show the page as without it.
    let repeated = format!("{page}?lang=de&lang=en");
    for path in [format!("{page}?t=later"), repeated, format!("/watch/video_site/{NEW}?t=5")] {
        assert_eq!(service.get(&path).await.status, 200, "{path}");
    }
}
