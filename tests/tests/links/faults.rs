//! Faults of the upstream: each has its reason, and none is reported as a fact about the link.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use transcript_core::supplier::SupplyReason;
use upstream_reqwest::HttpOptions;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::fixture::{
    CallOutcome, INSTAGRAM, TIKTOK, check_hosts, check_no_video, check_video, follow_with, options, redirect,
};
use crate::social::supplier_calls::{check_failure, start_pair};

const LINK: &str = "https://vm.tiktok.com/ZTR45GpSF/";
const PATH: &str = "/ZTR45GpSF/";
const TIMEOUT: Duration = Duration::from_secs(60);

fn good() -> ReplayResponse {
    ReplayResponse::status(301).header("location", "https://www.tiktok.com/@dyke/video/20")
}

/// A script whose short link returns these responses in turn.
fn script(answers: impl IntoIterator<Item = ReplayResponse>) -> Script {
    Script::new().rule(Rule::new("HEAD", TIKTOK, PATH).respond_all(answers))
}

/// Resolves the link through a proxy with this script and these option changes.
async fn resolve_with(
    script: Script,
    change: impl FnOnce(HttpOptions) -> HttpOptions,
) -> Result<(CallOutcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let outcome = follow_with(change(options(&[&proxy])), LINK, TIMEOUT).await?;
    check_hosts(&proxy)?;
    Ok((outcome, proxy))
}

fn retrying(options: HttpOptions) -> HttpOptions {
    HttpOptions { retries: 2, ..options }
}

#[tokio::test]
async fn link_not_found_leads_to_no_video() -> Result<()> {
    for status in [404, 410] {
        let (outcome, proxy) = resolve_with(script([ReplayResponse::status(status)]), retrying).await?;
        check_no_video(&outcome, "expired")?;
        assert_eq!(proxy.requests().len(), 1, "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn unexpected_response_has_its_reason() -> Result<()> {
    let page = || {
        ReplayResponse::bytes("text/html", "<script>location='https://www.tiktok.com/@a/video/20'</script>")
    };
    for (answer, reason, requests) in [
        (page(), "unreadable", 1),
        (page().header("location", "https://www.tiktok.com/@a/video/20"), "unreadable", 1),
        (ReplayResponse::status(204), "unreadable", 1),
        (ReplayResponse::status(304), "platform_fault", 1),
        (ReplayResponse::status(400), "platform_fault", 1),
        (ReplayResponse::status(401), "throttled", 1),
        (ReplayResponse::status(403), "throttled", 1),
        (ReplayResponse::status(451), "platform_fault", 1),
        (ReplayResponse::status(302).header("location", "https://www.tiktok.com/login?x=1"), "throttled", 1),
        (
            ReplayResponse::status(302).header("location", "https://www.tiktok.com/captcha-init"),
            "bot_check",
            1,
        ),
        (ReplayResponse::status(429).header("retry-after", "3600"), "throttled", 1),
        (ReplayResponse::status(408), "platform_fault", 3),
        (ReplayResponse::status(500), "platform_fault", 3),
        (ReplayResponse::status(503), "platform_fault", 3),
        (ReplayResponse::closed(), "unreadable", 3),
    ] {
        let (outcome, proxy) = resolve_with(script([answer.clone()]), retrying).await?;
        check_failure(&outcome, reason).with_context(|| format!("{answer:?}"))?;
        ensure!(proxy.requests().len() == requests, "{answer:?}: {:?}", proxy.requests());
    }
    Ok(())
}

#[tokio::test]
async fn transient_failure_is_retried() -> Result<()> {
    for fault in [ReplayResponse::status(503), ReplayResponse::closed()] {
        let (outcome, proxy) = resolve_with(script([fault.clone(), good()]), retrying).await?;
        check_video(&outcome, "20").with_context(|| format!("{fault:?}"))?;
        assert_eq!(proxy.requests().len(), 2, "{fault:?}");
    }
    Ok(())
}

#[tokio::test]
async fn retry_after_is_awaited_or_reported() -> Result<()> {
    let throttled = |wait: &str| ReplayResponse::status(429).header("retry-after", wait);
    let (outcome, proxy) = resolve_with(script([throttled("1"), good()]), retrying).await?;
    check_video(&outcome, "20")?;
    let requests = proxy.requests();
    assert!(
        requests[1].at - requests[0].at >= Duration::from_secs(1),
        "{:?}",
        requests[1].at - requests[0].at
    );

    let (outcome, proxy) = resolve_with(script([throttled("3600"), good()]), retrying).await?;
    // As long as requests are paused.
    let wait = Some(Duration::from_secs(300));
    assert_eq!(outcome.err().map(|error| error.reason().clone()), Some(SupplyReason::Throttled(wait)));
    assert_eq!(proxy.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn silent_upstream_fails_at_timeout() -> Result<()> {
    let started = Instant::now();
    let with_short_timeout = |options| HttpOptions { timeout: Duration::from_millis(150), ..options };
    let (outcome, _) = resolve_with(script([ReplayResponse::never()]), with_short_timeout).await?;
    check_failure(&outcome, "timeout")?;

    // The caller's deadline bounds the call as well.
    let proxy = ReplayProxy::start(script([ReplayResponse::never()]))?;
    let outcome = follow_with(retrying(options(&[&proxy])), LINK, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn huge_headers_are_rejected() -> Result<()> {
    let many = |count: usize, length: usize| {
        (0..count).fold(good(), |answer, at| answer.header(&format!("x-{at}"), &"a".repeat(length)))
    };
    for script in [
        script([many(20, 4_000)]),
        script([many(400, 4_000)]).http1_only(),
        script([many(5_000, 10)]).http1_only(),
    ] {
        let started = Instant::now();
        let (outcome, proxy) = resolve_with(script, |options| options).await?;
        check_failure(&outcome, "unreadable")?;
        assert_eq!(proxy.requests().len(), 1);
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn blocked_route_falls_back_to_another() -> Result<()> {
    let link = "https://www.instagram.com/share/BARSSL4rTu/";
    let path = "/share/BARSSL4rTu/";
    for wall in ["https://www.instagram.com/accounts/login/?next=%2Fshare%2FBARSSL4rTu%2F", "/"] {
        let wall = Script::new().rule(redirect(INSTAGRAM, path, wall));
        let reel = Script::new().rule(redirect(INSTAGRAM, path, "/reel/DdG4RIxIPyf/"));
        let [first, second] = start_pair(wall.clone(), reel)?;
        let outcome = follow_with(retrying(options(&[&first, &second])), link, TIMEOUT).await?;
        check_video(&outcome, "DdG4RIxIPyf")?;
        assert_eq!((first.requests().len(), second.requests().len()), (1, 1));

        // With one address alone, further requests would make it worse.
        let alone = ReplayProxy::start(wall)?;
        let outcome = follow_with(retrying(options(&[&alone])), link, TIMEOUT).await?;
        check_failure(&outcome, "throttled")?;
        assert_eq!(alone.requests().len(), 1);
    }
    Ok(())
}
