//! What goes wrong on the way, and what comes of it: nothing is said about the link that is not known.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use transcript_core::supplier::SupplyReason;
use upstream_reqwest::HttpOptions;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script, TestAuthority};

use super::asking::{
    INSTAGRAM, Outcome, TIKTOK, check_failure, check_hosts, check_nowhere, check_video, follow_with, options,
    redirect,
};

const LINK: &str = "https://vm.tiktok.com/ZTR45GpSF/";
const PATH: &str = "/ZTR45GpSF/";
const PATIENCE: Duration = Duration::from_secs(60);

fn good() -> Answer {
    Answer::status(301).header("location", "https://www.tiktok.com/@dyke/video/20")
}

/// A script whose one short link answers so, in turn.
fn script(answers: impl IntoIterator<Item = Answer>) -> Script {
    Script::new().rule(answers.into_iter().fold(Rule::new("HEAD", TIKTOK, PATH), Rule::answer))
}

/// What comes of following the link through a proxy with this script and these changes to the options.
async fn played(
    script: Script,
    change: impl FnOnce(HttpOptions) -> HttpOptions,
) -> Result<(Outcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let outcome = follow_with(change(options(&[&proxy])), LINK, PATIENCE).await?;
    check_hosts(&proxy)?;
    Ok((outcome, proxy))
}

fn retrying(options: HttpOptions) -> HttpOptions {
    HttpOptions { retries: 2, ..options }
}

#[tokio::test]
async fn a_link_that_is_not_there_is_nowhere() -> Result<()> {
    for status in [404, 410] {
        let (outcome, proxy) = played(script([Answer::status(status)]), retrying).await?;
        check_nowhere(&outcome, "expired")?;
        assert_eq!(proxy.requests().len(), 1, "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn every_other_answer_is_told_with_its_reason() -> Result<()> {
    let page =
        || Answer::bytes("text/html", "<script>location='https://www.tiktok.com/@a/video/20'</script>");
    for (answer, reason, requests) in [
        (page(), "unreadable", 1),
        (page().header("location", "https://www.tiktok.com/@a/video/20"), "unreadable", 1),
        (Answer::status(204), "unreadable", 1),
        (Answer::status(304), "platform_fault", 1),
        (Answer::status(400), "platform_fault", 1),
        (Answer::status(401), "throttled", 1),
        (Answer::status(403), "throttled", 1),
        (Answer::status(451), "platform_fault", 1),
        (Answer::status(302).header("location", "https://www.tiktok.com/login?x=1"), "throttled", 1),
        (Answer::status(302).header("location", "https://www.tiktok.com/captcha-init"), "bot_check", 1),
        (Answer::status(429).header("retry-after", "3600"), "throttled", 1),
        (Answer::status(408), "platform_fault", 3),
        (Answer::status(500), "platform_fault", 3),
        (Answer::status(503), "platform_fault", 3),
        (Answer::closed(), "unreadable", 3),
    ] {
        let (outcome, proxy) = played(script([answer.clone()]), retrying).await?;
        check_failure(&outcome, reason).with_context(|| format!("{answer:?}"))?;
        ensure!(proxy.requests().len() == requests, "{answer:?}: {:?}", proxy.requests());
    }
    Ok(())
}

#[tokio::test]
async fn passing_faults_are_tried_again() -> Result<()> {
    for fault in [Answer::status(503), Answer::closed()] {
        let (outcome, proxy) = played(script([fault.clone(), good()]), retrying).await?;
        check_video(&outcome, "20").with_context(|| format!("{fault:?}"))?;
        assert_eq!(proxy.requests().len(), 2, "{fault:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_named_wait_is_kept_or_told() -> Result<()> {
    let throttled = |wait: &str| Answer::status(429).header("retry-after", wait);
    let (outcome, proxy) = played(script([throttled("1"), good()]), retrying).await?;
    check_video(&outcome, "20")?;
    let seen = proxy.requests();
    assert!(seen[1].at - seen[0].at >= Duration::from_secs(1), "{:?}", seen[1].at - seen[0].at);

    let (outcome, proxy) = played(script([throttled("3600"), good()]), retrying).await?;
    let wait = Some(Duration::from_secs(3_600));
    assert_eq!(outcome.err().map(|error| error.reason().clone()), Some(SupplyReason::Throttled(wait)));
    assert_eq!(proxy.requests().len(), 1);
    Ok(())
}

#[tokio::test]
async fn who_never_answers_is_not_waited_for() -> Result<()> {
    let started = Instant::now();
    let hasty = |options| HttpOptions { timeout: Duration::from_millis(150), ..options };
    let (outcome, _) = played(script([Answer::never()]), hasty).await?;
    check_failure(&outcome, "timeout")?;

    // Nor longer than the caller waits.
    let proxy = ReplayProxy::start(script([Answer::never()]))?;
    let outcome = follow_with(retrying(options(&[&proxy])), LINK, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn huge_headers_are_not_taken() -> Result<()> {
    let many = |count: usize, length: usize| {
        (0..count).fold(good(), |answer, at| answer.header(&format!("x-{at}"), &"a".repeat(length)))
    };
    for script in [
        script([many(20, 4_000)]),
        script([many(400, 4_000)]).http1_only(),
        script([many(5_000, 10)]).http1_only(),
    ] {
        let started = Instant::now();
        let (outcome, proxy) = played(script, |options| options).await?;
        check_failure(&outcome, "unreadable")?;
        assert_eq!(proxy.requests().len(), 1);
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn where_one_address_is_distrusted_another_is_taken() -> Result<()> {
    let link = "https://www.instagram.com/share/BARSSL4rTu/";
    let path = "/share/BARSSL4rTu/";
    let authority = Arc::new(TestAuthority::new()?);
    for wall in ["https://www.instagram.com/accounts/login/?next=%2Fshare%2FBARSSL4rTu%2F", "/"] {
        let wall = Script::new().rule(redirect(INSTAGRAM, path, wall));
        let reel = Script::new().rule(redirect(INSTAGRAM, path, "/reel/DdG4RIxIPyf/"));
        let first = ReplayProxy::start_signed_by(wall.clone(), Arc::clone(&authority))?;
        let second = ReplayProxy::start_signed_by(reel, Arc::clone(&authority))?;
        let outcome = follow_with(retrying(options(&[&first, &second])), link, PATIENCE).await?;
        check_video(&outcome, "DdG4RIxIPyf")?;
        assert_eq!((first.requests().len(), second.requests().len()), (1, 1));

        // With one address alone, asking on would make it worse.
        let alone = ReplayProxy::start(wall)?;
        let outcome = follow_with(retrying(options(&[&alone])), link, PATIENCE).await?;
        check_failure(&outcome, "throttled")?;
        assert_eq!(alone.requests().len(), 1);
    }
    Ok(())
}
