//! A response to a short link never causes requests to other hosts, nor a wrong video.

use anyhow::{Context as _, Result, ensure};
use transcript_core::{supplier::ResolveOutcome, video::VideoLink};
use verbatim_tests::{
    ConnectionTrap, foreign_urls,
    replay::{ReplayProxy, ReplayResponse, Rule, Script},
};

use super::fixture::{INSTAGRAM, TIKTOK, X, check_hosts, check_no_video, follow, redirect, redirecting};
use crate::social::supplier_calls::check_failure;

/// A link of each platform with the host and path of its request.
const LINKS: [(&str, &str, &str); 3] = [
    ("https://vm.tiktok.com/ZTR45GpSF/", TIKTOK, "/ZTR45GpSF/"),
    ("https://www.instagram.com/share/reel/BARSSL4rTu/", INSTAGRAM, "/share/reel/BARSSL4rTu/"),
    ("https://t.co/AbCdEf1234", X, "/AbCdEf1234"),
];

/// Fails unless each platform's link with this target leads to no video after one request.
async fn check(target: &str) -> Result<()> {
    for (link, host, path) in LINKS {
        let proxy = ReplayProxy::start(redirecting(host, path, target))?;
        let outcome = follow(&proxy, link).await?;
        check_no_video(&outcome, "").with_context(|| format!("{link} to {target}"))?;
        ensure!(proxy.requests().len() == 1, "{link} to {target}: {:?}", proxy.requests());
        ensure!(proxy.tunnels().len() == 1, "{link} to {target}: {:?}", proxy.tunnels());
        check_hosts(&proxy)?;
    }
    Ok(())
}

#[tokio::test]
async fn redirect_to_foreign_host_sends_no_request() -> Result<()> {
    for target in [
        "https://evil.example/",
        "https://evil.example/?u=https://vm.tiktok.com/ZTaaaaaaa/",
        "//evil.example/ZTaaaaaaa/",
        "https://youtube.com.evil.example/watch?v=dQw4w9WgXcQ",
        "https://vm.tiktok.com.evil.example/ZTaaaaaaa/",
        "https://evilt.co/AbCdEf1234",
        "https://vm.tiktok.com@evil.example/ZTaaaaaaa/",
        "https://evil.example\\@t.co/AbCdEf1234",
        "https://bit.ly/abc",
        "http://127.0.0.1/",
        "https://127.0.0.1:443/ZTaaaaaaa/",
        "https://10.0.0.1/",
        "https://192.168.1.1/admin",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "http://169.254.169.254/latest/meta-data/",
        "https://localhost/",
        "ftp://vm.tiktok.com/ZTaaaaaaa/",
        "file:///etc/hostname",
        "javascript:alert(document.domain)",
        "data:text/plain,https://vm.tiktok.com/ZTaaaaaaa/",
    ] {
        check(target).await?;
    }
    Ok(())
}

#[tokio::test]
async fn redirect_to_internal_or_look_alike_host_sends_no_request() -> Result<()> {
    let trap = ConnectionTrap::bind()?;
    for (link, host, path) in LINKS {
        for target in foreign_urls(host, trap.port()?) {
            let proxy = ReplayProxy::start(redirecting(host, path, &target))?;
            let outcome = follow(&proxy, link).await?;
            ensure!(!matches!(outcome, Ok(ResolveOutcome::Video(_))), "{link} to {target}: {outcome:?}");
            ensure!(proxy.requests().len() == 1, "{link} to {target}: {:?}", proxy.requests());
            ensure!(proxy.tunnels().len() == 1, "{link} to {target}: {:?}", proxy.tunnels());
            check_hosts(&proxy)?;
        }
    }
    ensure!(trap.connections() == 0, "a redirect was followed");
    Ok(())
}

/// The same URLs, sent by a caller: no link of a video or none at all, so there is nothing to request.
#[test]
fn link_to_internal_or_look_alike_host_is_no_video() {
    for (_, host, path) in LINKS.into_iter().chain([("", "www.youtube.com", "/watch?v=dQw4w9WgXcQ")]) {
        for url in foreign_urls(host, 8443) {
            let url = format!("{}{path}", url.trim_end_matches('/'));
            if let Ok(link) = VideoLink::parse(&url) {
                let VideoLink::Short(link) = &link else { continue };
                assert!(link.address().starts_with(&format!("https://{host}/")), "{url} leads to {link:?}");
            }
        }
    }
}

#[tokio::test]
async fn redirect_to_own_host_with_unsafe_url_sends_no_request() -> Result<()> {
    for target in [
        "http://vm.tiktok.com/ZTaaaaaaa/",
        "https://vm.tiktok.com:8443/ZTaaaaaaa/",
        "https://vm.tiktok.com:80/ZTaaaaaaa/",
        "https://me@vm.tiktok.com/ZTaaaaaaa/",
        "https://me:secret@vm.tiktok.com/ZTaaaaaaa/",
        "https://vm.tiktok.com./ZTaaaaaaa/",
        "http://www.instagram.com/share/reel/BAaaaaaaaa/",
        "https://www.instagram.com:8443/share/reel/BAaaaaaaaa/",
        "https://me@www.instagram.com/share/reel/BAaaaaaaaa/",
        "http://t.co/Zzzzzzzzzz",
        "https://t.co:8443/Zzzzzzzzzz",
        "https://me@t.co/Zzzzzzzzzz",
    ] {
        check(target).await?;
    }
    Ok(())
}

#[tokio::test]
async fn redirect_to_other_page_names_page() -> Result<()> {
    let [tiktok, instagram, x] = LINKS;
    for ((link, host, path), target, part) in [
        (tiktok, "https://www.tiktok.com/?_r=1", "expired"),
        (tiktok, "https://www.tiktok.com/@dyke", "a profile"),
        (tiktok, "https://www.tiktok.com/@dyke/live?x=1", "a live stream"),
        (tiktok, "https://www.instagram.com/reel/DdG4RIxIPyf/", "a video of Instagram"),
        (instagram, "https://www.instagram.com/dyke/", "a profile"),
        (instagram, "https://www.instagram.com/stories/dyke/1/", "a story"),
        (x, "https://x.com/dyke", "a profile"),
        (x, "https://x.com/i/spaces/1abc", "a space"),
        (x, "https://example.org/page", "leads to example.org"),
        (x, "https://youtu.be/dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ"),
        (x, "https://vm.tiktok.com/ZTR45GpSF/", "a short link of TikTok"),
    ] {
        let proxy = ReplayProxy::start(redirecting(host, path, target))?;
        check_no_video(&follow(&proxy, link).await?, part)?;
        ensure!(proxy.requests().len() == 1, "{target}: {:?}", proxy.requests());
        check_hosts(&proxy)?;
    }
    Ok(())
}

#[tokio::test]
async fn redirect_loop_ends_at_first_repetition() -> Result<()> {
    for (link, host, path) in LINKS {
        let looping_link =
            ReplayProxy::start(redirecting(host, path, &format!("https://{host}{path}?again=1")))?;
        check_no_video(&follow(&looping_link, link).await?, "expired")?;
        ensure!(looping_link.requests().len() == 1, "{:?}", looping_link.requests());
    }
    let script = Script::new()
        .rule(redirect(TIKTOK, "/ZTR45GpSF/", "https://vm.tiktok.com/ZTaaaaaaa/"))
        .rule(redirect(TIKTOK, "/ZTaaaaaaa/", "https://www.tiktok.com/t/ZTbbbbbbb/"))
        .rule(redirect("www.tiktok.com", "/t/ZTbbbbbbb/", "https://vm.tiktok.com/ZTR45GpSF"));
    let looping = ReplayProxy::start(script)?;
    check_no_video(&follow(&looping, "vm.tiktok.com/ZTR45GpSF").await?, "expired")?;
    ensure!(looping.requests().len() == 3, "{:?}", looping.requests());
    check_hosts(&looping)
}

#[tokio::test]
async fn redirect_chain_stops_after_five() -> Result<()> {
    let hop = |from: u32| {
        let target = match from {
            5 => "https://x.com/a/status/20".to_owned(),
            _ => format!("https://t.co/hop{}", from + 1),
        };
        redirect(X, &format!("/hop{from}"), &target)
    };
    let proxy = ReplayProxy::start(Script::new().rules((0..6).map(hop)))?;
    check_no_video(&follow(&proxy, "https://t.co/hop0").await?, "other short links")?;
    ensure!(proxy.requests().len() == 5, "{:?}", proxy.requests());
    Ok(())
}

#[tokio::test]
async fn redirect_unreadable_location_is_transient_failure() -> Result<()> {
    let long = format!("https://www.tiktok.com/@a/video/20?{}", "a".repeat(5_000));
    for (link, host, path) in LINKS {
        for target in [None, Some("https://["), Some("http://"), Some("https://a b/"), Some(long.as_str())] {
            let answer = ReplayResponse::status(302);
            let answer = target.into_iter().fold(answer, |answer, target| answer.header("location", target));
            let proxy =
                ReplayProxy::start(Script::new().rule(Rule::new("HEAD", host, path).respond(answer)))?;
            check_failure(&follow(&proxy, link).await?, "unreadable")
                .with_context(|| format!("{target:?}"))?;
            ensure!(proxy.requests().len() == 1, "{:?}", proxy.requests());
        }
    }
    Ok(())
}
