//! The production link resolver, through the replay proxy.

mod faults;
mod fixture;
mod foreign_targets;
mod stored_links;

use anyhow::{Result, ensure};
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use self::fixture::{INSTAGRAM, TIKTOK, X, check_hosts, check_video, follow, redirect, redirecting};

/// Fails unless a link resolves to this video with requests to exactly these hosts and paths.
async fn check(link: &str, script: Script, id: &str, made: &[&str]) -> Result<()> {
    let proxy = ReplayProxy::start(script)?;
    check_video(&follow(&proxy, link).await?, id)?;
    let requests = proxy.requests();
    let paths: Vec<_> = requests.iter().map(|request| format!("{}{}", request.host, request.path)).collect();
    ensure!(paths == made, "{link}: {paths:?}");
    for request in &requests {
        ensure!(request.method == "HEAD" && request.query.is_empty(), "{request:?}");
        let agent = request.header("user-agent").unwrap_or_default();
        ensure!(agent.contains("verbatim/") && !agent.contains("Mozilla"), "{agent}");
        for private in ["cookie", "referer", "authorization"] {
            ensure!(request.header(private).is_none(), "{private} was sent");
        }
    }
    ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    check_hosts(&proxy)
}

#[tokio::test]
async fn link_resolves_with_one_request() -> Result<()> {
    let video = "https://www.tiktok.com/@dyke/video/7524919459643919624?_r=1&_t=ZT-8";
    for (link, host, path) in [
        ("https://vm.tiktok.com/ZTR45GpSF/", "vm.tiktok.com", "/ZTR45GpSF/"),
        ("vt.tiktok.com/ZTR45GpSF?k=1", "vt.tiktok.com", "/ZTR45GpSF/"),
        ("http://tiktok.com/t/ZTR45GpSF", "www.tiktok.com", "/t/ZTR45GpSF/"),
    ] {
        let script = redirecting(host, path, video);
        check(link, script, "7524919459643919624", &[&format!("{host}{path}")]).await?;
    }
    let reel = "https://www.instagram.com/reel/DdG4RIxIPyf/?igsh=MzRlODBiNWFlZA==";
    for (link, path) in [
        ("https://www.instagram.com/share/BARSSL4rTu", "/share/BARSSL4rTu/"),
        ("https://instagram.com/share/reel/BARSSL4rTu/?igsh=1", "/share/reel/BARSSL4rTu/"),
        ("instagram.com/share/p/BARSSL4rTu", "/share/p/BARSSL4rTu/"),
    ] {
        let script = redirecting(INSTAGRAM, path, reel);
        check(link, script, "DdG4RIxIPyf", &[&format!("{INSTAGRAM}{path}")]).await?;
    }
    let script = redirecting(X, "/AbCdEf1234", "https://x.com/dyke/status/1585341984679469056/video/1");
    check("https://t.co/AbCdEf1234?amp=1", script, "1585341984679469056", &["t.co/AbCdEf1234"]).await
}

#[tokio::test]
async fn relative_location_resolves_on_same_host() -> Result<()> {
    let script = redirecting("www.tiktok.com", "/t/ZTR45GpSF/", "/@dyke/video/20?_r=1");
    check("tiktok.com/t/ZTR45GpSF", script, "20", &["www.tiktok.com/t/ZTR45GpSF/"]).await?;
    let script = redirecting(INSTAGRAM, "/share/BARSSL4rTu/", "../../reel/DdG4RIxIPyf/");
    check("instagram.com/share/BARSSL4rTu", script, "DdG4RIxIPyf", &["www.instagram.com/share/BARSSL4rTu/"])
        .await
}

#[tokio::test]
async fn short_link_chain_resolves_up_to_five_redirects() -> Result<()> {
    let hop = |from: u32| {
        let target = match from {
            4 => "https://www.tiktok.com/@dyke/video/20".to_owned(),
            _ => format!("https://vm.tiktok.com/hop{}/?from=app", from + 1),
        };
        redirect(TIKTOK, &format!("/hop{from}/"), &target)
    };
    let paths: Vec<_> = (0..5).map(|at| format!("vm.tiktok.com/hop{at}/")).collect();
    let paths: Vec<_> = paths.iter().map(String::as_str).collect();
    check("vm.tiktok.com/hop0", Script::new().rules((0..5).map(hop)), "20", &paths).await?;

    let across = Script::new()
        .rule(redirect(TIKTOK, "/ZTR45GpSF/", "https://www.tiktok.com/t/ZTaaaaaaa/?_r=1"))
        .rule(redirect("www.tiktok.com", "/t/ZTaaaaaaa/", "//vt.tiktok.com/ZSbbbbbbb//"))
        .rule(redirect("vt.tiktok.com", "/ZSbbbbbbb/", "https://m.tiktok.com/v/20.html"));
    let paths = ["vm.tiktok.com/ZTR45GpSF/", "www.tiktok.com/t/ZTaaaaaaa/", "vt.tiktok.com/ZSbbbbbbb/"];
    check("vm.tiktok.com/ZTR45GpSF", across, "20", &paths).await
}

#[tokio::test]
async fn platform_interstitial_url_is_unwrapped() -> Result<()> {
    let warning =
        "https://x.com/safety/unsafe_link_warning?unsafe_link=https%3A%2F%2Fx.com%2Fa%2Fstatus%2F20";
    check("t.co/AbCdEf1234", redirecting(X, "/AbCdEf1234", warning), "20", &["t.co/AbCdEf1234"]).await?;
    let passage = "https://l.instagram.com/?u=https%3A%2F%2Fwww.instagram.com%2Freel%2FDdG4RIxIPyf%2F&e=AT0";
    let script = redirecting(INSTAGRAM, "/share/BARSSL4rTu/", passage);
    check("instagram.com/share/BARSSL4rTu", script, "DdG4RIxIPyf", &["www.instagram.com/share/BARSSL4rTu/"])
        .await
}

#[tokio::test]
async fn host_without_head_gets_get_and_body_is_not_read() -> Result<()> {
    for endless in [false, true] {
        let page =
            ReplayResponse::status(301).header("location", "https://x.com/a/status/20").body("x".repeat(100));
        let page = if endless { page.endlessly() } else { page };
        let script = Script::new()
            .rule(Rule::new("HEAD", X, "/AbCdEf1234").respond(ReplayResponse::status(405)))
            .rule(Rule::get(X, "/AbCdEf1234").respond(page));
        let proxy = ReplayProxy::start(script)?;
        check_video(&follow(&proxy, "https://t.co/AbCdEf1234").await?, "20")?;
        let methods: Vec<_> = proxy.requests().into_iter().map(|request| request.method).collect();
        assert_eq!(methods, ["HEAD", "GET"]);
    }
    Ok(())
}
