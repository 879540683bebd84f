//! Faults of requests to YouTube: never a wrong transcript, never an endless wait.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use tokio::sync::Semaphore;
use upstream_reqwest::HttpOptions;
use verbatim_tests::replay::{
    ReplayProxy, ReplayResponse, Rule, Script, TestAuthority, Tunnel, recordings::Recordings,
};

use super::{CAPTIONS, HOST, PLATFORM, PLAYER, behind, folder, supplier};
use crate::social::{
    start_replay,
    supplier_calls::{CallOutcome, check_failure, fetch, fetch_within, options, reason, start_pair},
};

const VIDEO: &str = "vb-tracks-0";

fn read_recording(name: &str) -> Result<ReplayResponse> {
    Ok(ReplayResponse::bytes("application/json", Recordings::open(&folder())?.body(name)?))
}

fn good_player() -> Result<ReplayResponse> {
    read_recording("player/several-tracks.json")
}

fn good_captions() -> Result<ReplayResponse> {
    read_recording("captions/tide-mill.en.json3")
}

/// A script with these responses for the player and the captions, in order.
fn script(player: Vec<ReplayResponse>, captions: Vec<ReplayResponse>) -> Script {
    Script::new()
        .rule(Rule::post(HOST, PLAYER).respond_all(player))
        .rule(Rule::get(HOST, CAPTIONS).respond_all(captions))
}

/// A script with these player responses and valid captions.
fn player(responses: Vec<ReplayResponse>) -> Result<Script> {
    Ok(script(responses, vec![good_captions()?]))
}

/// A script with a valid player response and these caption responses.
fn captions(responses: Vec<ReplayResponse>) -> Result<Script> {
    Ok(script(vec![good_player()?], responses))
}

/// Calls the supplier through a proxy with this script and these changes to the options.
async fn replay_script(
    script: Script,
    change: impl FnOnce(HttpOptions) -> HttpOptions,
) -> Result<(CallOutcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let outcome = fetch(&supplier(change(options(&[&proxy], proxy.ca_file())))?, VIDEO, None).await?;
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

fn with_retries(options: HttpOptions) -> HttpOptions {
    HttpOptions { retries: 2, ..options }
}

fn with_short_timeout(options: HttpOptions) -> HttpOptions {
    HttpOptions { timeout: Duration::from_millis(150), ..options }
}

#[tokio::test]
async fn youtube_retry_after_is_honored() -> Result<()> {
    let throttled = ReplayResponse::status(429).header("retry-after", "1");
    let (outcome, proxy) = replay_script(player(vec![throttled, good_player()?])?, with_retries).await?;
    assert_eq!(reason(&outcome), "transcript");
    let requests = proxy.requests();
    assert_eq!(requests.len(), 3);
    assert!(
        requests[1].at - requests[0].at >= Duration::from_secs(1),
        "{:?}",
        requests[1].at - requests[0].at
    );
    Ok(())
}

#[tokio::test]
async fn youtube_long_retry_after_fails_as_throttled() -> Result<()> {
    let throttled = ReplayResponse::status(429).header("retry-after", "3600");
    for script in [player(vec![throttled.clone()])?, captions(vec![throttled.clone()])?] {
        let (outcome, proxy) = replay_script(script, with_retries).await?;
        check_failure(&outcome, "throttled")?;
        // As long as requests are paused.
        let wait = Some(Duration::from_secs(300));
        let reason = outcome.err().map(|error| error.reason().clone());
        assert_eq!(reason, Some(transcript_core::supplier::SupplyReason::Throttled(wait)));
        assert_eq!(proxy.count(|request| request.path == PLAYER), 1);
        assert!(proxy.count(|request| request.path == CAPTIONS) <= 1);
    }
    Ok(())
}

#[tokio::test]
async fn youtube_requests_pause_while_all_proxies_are_blocked() -> Result<()> {
    for block in
        [ReplayResponse::status(429).header("retry-after", "3600"), read_recording("player/bot-check.json")?]
    {
        let [first, second] = start_pair(player(vec![block.clone()])?, player(vec![block.clone()])?)?;
        let supplier = supplier(with_retries(options(&[&first, &second], first.ca_file())))?;
        assert!(fetch(&supplier, VIDEO, None).await?.is_err());
        for _ in 0..2 {
            let outcome = fetch(&supplier, VIDEO, None).await?;
            check_failure(&outcome, "throttled")?;
            let message = outcome.err().map(|error| error.message().to_owned()).unwrap_or_default();
            assert!(message.contains("requests to it are paused"), "{message}");
        }
        assert_eq!([first.requests().len(), second.requests().len()], [1, 1], "{block:?}");
    }
    Ok(())
}

#[tokio::test]
async fn youtube_transient_faults_are_retried() -> Result<()> {
    let faults = || {
        [
            ReplayResponse::status(500),
            ReplayResponse::status(503),
            ReplayResponse::closed(),
            good_player_cut(),
        ]
    };
    for fault in faults() {
        let (outcome, proxy) =
            replay_script(player(vec![fault.clone(), good_player()?])?, with_retries).await?;
        assert_eq!(reason(&outcome), "transcript", "after {fault:?}: {outcome:?}");
        assert_eq!(proxy.requests().len(), 3, "{fault:?}");
    }
    for fault in [ReplayResponse::status(502), ReplayResponse::closed(), good_captions()?.cut_after(100)] {
        let (outcome, proxy) =
            replay_script(captions(vec![fault.clone(), good_captions()?])?, with_retries).await?;
        assert_eq!(reason(&outcome), "transcript", "after {fault:?}: {outcome:?}");
        assert_eq!(proxy.requests().len(), 3, "{fault:?}");
    }
    Ok(())
}

fn good_player_cut() -> ReplayResponse {
    ReplayResponse::bytes("application/json", vec![b' '; 4_096]).cut_after(1_000)
}

#[tokio::test]
async fn youtube_lasting_faults_carry_reason() -> Result<()> {
    for (fault, expect) in [
        (ReplayResponse::status(500), "platform_fault"),
        (ReplayResponse::status(503), "platform_fault"),
        (good_player_cut(), "unreadable"),
        (ReplayResponse::closed(), "unreadable"),
        (ReplayResponse::status(429).header("retry-after", "60"), "throttled"),
        (ReplayResponse::text("{\"playabilityStatus\": "), "unreadable"),
        (ReplayResponse::text("[[[["), "unreadable"),
        (ReplayResponse::text("[".repeat(100_000)), "unreadable"),
        (ReplayResponse::bytes("application/json", vec![0xff; 64]), "unreadable"),
        (ReplayResponse::text("not gzip").header("content-encoding", "gzip"), "unreadable"),
        (good_captions()?.header("content-encoding", "br"), "unreadable"),
    ] {
        let (outcome, proxy) = replay_script(player(vec![fault.clone()])?, |options| options).await?;
        check_failure(&outcome, expect)?;
        assert_eq!(proxy.count(|request| request.path == CAPTIONS), 0, "{fault:?}");
        let (outcome, _) = replay_script(captions(vec![fault])?, |options| options).await?;
        check_failure(&outcome, expect)?;
    }
    Ok(())
}

#[tokio::test]
async fn fetch_slow_response_fails_at_timeout() -> Result<()> {
    let drip = || Ok::<_, anyhow::Error>(good_player()?.slowly(1, Duration::from_millis(20)));
    for script in [
        player(vec![ReplayResponse::never()])?,
        player(vec![drip()?])?,
        captions(vec![ReplayResponse::never()])?,
        player(vec![good_player()?.after(Duration::from_secs(30))])?,
        Script::new().all_tunnels([Tunnel::Never]),
    ] {
        let started = Instant::now();
        let (outcome, _) = replay_script(script, with_short_timeout).await?;
        assert!(["timeout", "unreachable"].contains(&reason(&outcome)), "{outcome:?}");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn youtube_deadline_ends_call() -> Result<()> {
    let proxy = ReplayProxy::start(player(vec![ReplayResponse::never()])?)?;
    let supplier = supplier(with_retries(options(&[&proxy], proxy.ca_file())))?;
    let started = Instant::now();
    let outcome = fetch_within(&supplier, VIDEO, None, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    assert!(proxy.requests().len() <= 1, "{:?}", proxy.requests());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn youtube_dropped_call_sends_no_further_request() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = ReplayProxy::start(player(vec![good_player()?.gated(&gate)])?)?;
    let supplier = behind(&proxy)?;
    let requested = async {
        while proxy.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        response = fetch(&supplier, VIDEO, None) => bail!("a result before the response: {response:?}"),
        () = requested => {}
    }
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert_eq!(proxy.requests().len(), 1, "{:?}", proxy.requests());
    Ok(())
}

#[tokio::test]
async fn youtube_slow_response_within_timeout_succeeds() -> Result<()> {
    let slow = good_captions()?.slowly(256, Duration::from_millis(5));
    let (outcome, _) =
        replay_script(captions(vec![slow])?.latency(Duration::from_millis(20)), |options| options).await?;
    assert_eq!(reason(&outcome), "transcript");
    Ok(())
}

#[tokio::test]
async fn youtube_compressed_responses_and_http1_work() -> Result<()> {
    let script =
        || Ok::<_, anyhow::Error>(script(vec![good_player()?.gzipped()], vec![good_captions()?.gzipped()]));
    for script in [script()?, script()?.http1_only()] {
        let (outcome, proxy) = replay_script(script, |options| options).await?;
        assert_eq!(reason(&outcome), "transcript");
        assert_eq!(proxy.requests().len(), 2);
    }
    Ok(())
}

#[tokio::test]
async fn youtube_endless_response_is_cut_off() -> Result<()> {
    let piece = "x".repeat(64 * 1024);
    // 40 MiB of white space before a response, in some 40 KiB.
    let bomb = || ReplayResponse::bytes("application/json", vec![b' '; 40 << 20]).gzipped();
    for script in [
        player(vec![ReplayResponse::text(piece).endlessly()])?,
        player(vec![bomb()])?,
        captions(vec![bomb()])?,
    ] {
        let (outcome, _) = replay_script(script, |options| options).await?;
        check_failure(&outcome, "unreadable")?;
    }
    Ok(())
}

#[tokio::test]
async fn youtube_untrusted_certificate_is_rejected() -> Result<()> {
    let (proxy, other) = (start_replay(PLATFORM, "several-tracks")?, TestAuthority::new()?);
    let outcome = fetch(&supplier(options(&[&proxy], other.ca_file()))?, VIDEO, None).await?;
    check_failure(&outcome, "unreachable")?;
    let wrong = Tunnel::OtherCertificate("www.example.com".to_owned());
    let (misnamed, proxy) =
        replay_script(player(vec![good_player()?])?.all_tunnels([wrong]), |options| options).await?;
    check_failure(&misnamed, "unreachable")?;
    assert!(proxy.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn youtube_proxy_refusal_has_its_own_reason() -> Result<()> {
    for (status, expect) in [(403, "unreachable"), (407, "misconfigured"), (502, "unreachable")] {
        let script = player(vec![good_player()?])?.all_tunnels([Tunnel::Refuse(status)]);
        let (outcome, proxy) = replay_script(script, |options| options).await?;
        check_failure(&outcome, expect)?;
        assert!(proxy.requests().is_empty(), "{status}");
    }
    let (outcome, _) = replay_script(player(vec![])?.all_tunnels([Tunnel::Close]), |options| options).await?;
    check_failure(&outcome, "unreachable")
}

#[tokio::test]
async fn youtube_proxies_rotate_per_session() -> Result<()> {
    let good = || good_script();
    let [first, second] = start_pair(good()?, good()?)?;
    let supplier = supplier(options(&[&first, &second], first.ca_file()))?;
    for _ in 0..4 {
        assert_eq!(reason(&fetch(&supplier, VIDEO, None).await?), "transcript");
    }
    // One session stays with one proxy: the platform would reject a change of address within it.
    assert_eq!([first.requests().len(), second.requests().len()], [4, 4]);
    assert!(
        first.requests().windows(2).step_by(2).all(|two| two[0].path == PLAYER && two[1].path == CAPTIONS)
    );
    Ok(())
}

fn good_script() -> Result<Script> {
    player(vec![good_player()?])
}

#[tokio::test]
async fn youtube_blocked_proxy_cools_down_while_other_serves() -> Result<()> {
    let blocks = [
        // The wait is longer than the test: a response proves that the supplier did not wait.
        player(vec![ReplayResponse::status(429).header("retry-after", "3600")])?,
        player(vec![read_recording("player/bot-check.json")?])?,
        player(vec![])?.all_tunnels([Tunnel::Refuse(502)]),
    ];
    for block in blocks {
        let [blocked, good] = start_pair(block.clone(), good_script()?)?;
        let supplier = supplier(with_retries(options(&[&blocked, &good], good.ca_file())))?;
        for _ in 0..3 {
            let outcome = fetch(&supplier, VIDEO, None).await?;
            assert_eq!(reason(&outcome), "transcript", "{block:?}: {outcome:?}");
        }
        assert!(blocked.requests().len() <= 1, "{block:?}: {:?}", blocked.requests());
        assert_eq!(blocked.tunnels().len(), 1, "{block:?}");
        assert_eq!(good.requests().len(), 6, "{block:?}");
    }
    Ok(())
}

#[tokio::test]
async fn youtube_stopped_proxy_is_skipped() -> Result<()> {
    let [gone, good] = start_pair(Script::new(), good_script()?)?;
    let options = with_retries(options(&[&gone, &good], good.ca_file()));
    drop(gone);
    let outcome = fetch(&supplier(options)?, VIDEO, None).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    assert_eq!(good.requests().len(), 2);
    Ok(())
}

#[tokio::test]
async fn youtube_other_video_response_is_rejected() -> Result<()> {
    let other = read_recording("player/other-video.json")?;
    let (outcome, proxy) = replay_script(player(vec![other.clone()])?, |options| options).await?;
    check_failure(&outcome, "other_video")?;
    assert_eq!(proxy.count(|request| request.path == CAPTIONS), 0);
    // The first client is not trusted, the second one is.
    let (outcome, _) = replay_script(player(vec![other, good_player()?])?, |options| options).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn youtube_requests_look_like_official_client() -> Result<()> {
    let proxy = start_replay(PLATFORM, "several-tracks")?;
    assert_eq!(reason(&fetch(&behind(&proxy)?, VIDEO, None).await?), "transcript");
    let requests = proxy.requests();
    let [player, captions] = requests.as_slice() else { anyhow::bail!("{requests:?}") };
    assert_eq!(player.json("/videoId"), Some(VIDEO.into()));
    assert_eq!(player.json("/context/client/hl"), Some("en".into()));
    assert_eq!(player.parameter("key"), None);
    for request in [player, captions] {
        let agent = request.header("user-agent").unwrap_or_default().to_lowercase();
        assert!(!agent.is_empty() && !agent.contains("verbatim") && !agent.contains("reqwest"), "{agent}");
        assert!(request.header("cookie").is_none() && request.header("referer").is_none());
        assert!(!request.headers.iter().any(|(name, _)| name.as_str().contains("forwarded")));
    }
    let once = |name: &str| captions.query.iter().filter(|(key, _)| key == name).count() == 1;
    assert!(once("fmt") && once("lang") && once("signature"), "{:?}", captions.query);
    assert_eq!(captions.parameter("tlang"), None);
    Ok(())
}
