//! What goes wrong on the way, and what comes of it: never a wrong transcript, never a wait without end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use tokio::sync::Semaphore;
use upstream_reqwest::HttpOptions;
use verbatim_tests::replay::{
    Answer, ReplayProxy, Rule, Script, TestAuthority, Tunnel, recordings::Recordings,
};

use super::{
    asking::{Outcome, ask, ask_within, behind, check_failure, options, reason, supplier},
    folder, playing,
};

const HOST: &str = "www.youtube.com";
const PLAYER: &str = "/youtubei/v1/player";
const CAPTIONS: &str = "/api/timedtext";
const VIDEO: &str = "vb-tracks-0";

fn recorded(name: &str) -> Result<Answer> {
    Ok(Answer::bytes("application/json", Recordings::open(&folder())?.body(name)?))
}

fn good_player() -> Result<Answer> {
    recorded("player/several-tracks.json")
}

fn good_captions() -> Result<Answer> {
    recorded("captions/tide-mill.en.json3")
}

/// A script whose player and captions answer so, in turn.
fn script(player: Vec<Answer>, captions: Vec<Answer>) -> Script {
    let in_turn = |rule: Rule, answers: Vec<Answer>| answers.into_iter().fold(rule, Rule::answer);
    Script::new()
        .rule(in_turn(Rule::post(HOST, PLAYER), player))
        .rule(in_turn(Rule::get(HOST, CAPTIONS), captions))
}

/// A script whose player answers so and whose captions are good.
fn player(answers: Vec<Answer>) -> Result<Script> {
    Ok(script(answers, vec![good_captions()?]))
}

/// A script whose player is good and whose captions answer so.
fn captions(answers: Vec<Answer>) -> Result<Script> {
    Ok(script(vec![good_player()?], answers))
}

/// What comes of asking through a proxy with this script and these changes to the options.
async fn played(
    script: Script,
    change: impl FnOnce(HttpOptions) -> HttpOptions,
) -> Result<(Outcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let outcome = ask(&supplier(change(options(&[&proxy], proxy.ca_file())))?, VIDEO, None).await?;
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

fn retrying(options: HttpOptions) -> HttpOptions {
    HttpOptions { retries: 2, ..options }
}

fn hasty(options: HttpOptions) -> HttpOptions {
    HttpOptions { timeout: Duration::from_millis(150), ..options }
}

#[tokio::test]
async fn a_named_wait_is_honoured() -> Result<()> {
    let throttled = Answer::status(429).header("retry-after", "1");
    let (outcome, proxy) = played(player(vec![throttled, good_player()?])?, retrying).await?;
    assert_eq!(reason(&outcome), "transcript");
    let seen = proxy.requests();
    assert_eq!(seen.len(), 3);
    assert!(seen[1].at - seen[0].at >= Duration::from_secs(1), "{:?}", seen[1].at - seen[0].at);
    Ok(())
}

#[tokio::test]
async fn a_long_wait_is_told_instead_of_waited_for() -> Result<()> {
    let throttled = Answer::status(429).header("retry-after", "3600");
    for script in [player(vec![throttled.clone()])?, captions(vec![throttled.clone()])?] {
        let (outcome, proxy) = played(script, retrying).await?;
        check_failure(&outcome, "throttled")?;
        let wait = Some(Duration::from_secs(3_600));
        let reason = outcome.err().map(|error| error.reason().clone());
        assert_eq!(reason, Some(transcript_core::supplier::SupplyReason::Throttled(wait)));
        assert_eq!(proxy.count(|request| request.path == PLAYER), 1);
        assert!(proxy.count(|request| request.path == CAPTIONS) <= 1);
    }
    Ok(())
}

#[tokio::test]
async fn the_platform_is_left_alone_while_no_address_is_welcome() -> Result<()> {
    for block in [Answer::status(429).header("retry-after", "3600"), recorded("player/bot-check.json")?] {
        let [first, second] = pair(player(vec![block.clone()])?, player(vec![block.clone()])?)?;
        let supplier = supplier(retrying(options(&[&first, &second], first.ca_file())))?;
        assert!(ask(&supplier, VIDEO, None).await?.is_err());
        for _ in 0..2 {
            let outcome = ask(&supplier, VIDEO, None).await?;
            check_failure(&outcome, "throttled")?;
            let message = outcome.err().map(|error| error.message().to_owned()).unwrap_or_default();
            assert!(message.contains("not asked for now"), "{message}");
        }
        assert_eq!([first.requests().len(), second.requests().len()], [1, 1], "{block:?}");
    }
    Ok(())
}

#[tokio::test]
async fn passing_faults_are_tried_again() -> Result<()> {
    let faults = || [Answer::status(500), Answer::status(503), Answer::closed(), good_player_cut()];
    for fault in faults() {
        let (outcome, proxy) = played(player(vec![fault.clone(), good_player()?])?, retrying).await?;
        assert_eq!(reason(&outcome), "transcript", "after {fault:?}: {outcome:?}");
        assert_eq!(proxy.requests().len(), 3, "{fault:?}");
    }
    for fault in [Answer::status(502), Answer::closed(), good_captions()?.cut_after(100)] {
        let (outcome, proxy) = played(captions(vec![fault.clone(), good_captions()?])?, retrying).await?;
        assert_eq!(reason(&outcome), "transcript", "after {fault:?}: {outcome:?}");
        assert_eq!(proxy.requests().len(), 3, "{fault:?}");
    }
    Ok(())
}

fn good_player_cut() -> Answer {
    Answer::bytes("application/json", vec![b' '; 4_096]).cut_after(1_000)
}

#[tokio::test]
async fn lasting_faults_are_told_with_their_reason() -> Result<()> {
    for (fault, expect) in [
        (Answer::status(500), "platform_fault"),
        (Answer::status(503), "platform_fault"),
        (good_player_cut(), "unreadable"),
        (Answer::closed(), "unreadable"),
        (Answer::status(429).header("retry-after", "60"), "throttled"),
        (Answer::text("{\"playabilityStatus\": "), "unreadable"),
        (Answer::text("[[[["), "unreadable"),
        (Answer::text("[".repeat(100_000)), "unreadable"),
        (Answer::bytes("application/json", vec![0xff; 64]), "unreadable"),
        (Answer::text("not gzip").header("content-encoding", "gzip"), "unreadable"),
        (good_captions()?.header("content-encoding", "br"), "unreadable"),
    ] {
        let (outcome, proxy) = played(player(vec![fault.clone()])?, |options| options).await?;
        check_failure(&outcome, expect)?;
        assert_eq!(proxy.count(|request| request.path == CAPTIONS), 0, "{fault:?}");
        let (outcome, _) = played(captions(vec![fault])?, |options| options).await?;
        check_failure(&outcome, expect)?;
    }
    Ok(())
}

#[tokio::test]
async fn no_answer_takes_longer_than_the_timeout() -> Result<()> {
    let drip = || Ok::<_, anyhow::Error>(good_player()?.slowly(1, Duration::from_millis(20)));
    for script in [
        player(vec![Answer::never()])?,
        player(vec![drip()?])?,
        captions(vec![Answer::never()])?,
        player(vec![good_player()?.after(Duration::from_secs(30))])?,
        Script::new().all_tunnels([Tunnel::Never]),
    ] {
        let begin = Instant::now();
        let (outcome, _) = played(script, hasty).await?;
        assert!(["timeout", "unreachable"].contains(&reason(&outcome)), "{outcome:?}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn the_callers_deadline_ends_everything() -> Result<()> {
    let proxy = ReplayProxy::start(player(vec![Answer::never()])?)?;
    let supplier = supplier(retrying(options(&[&proxy], proxy.ca_file())))?;
    let begin = Instant::now();
    let outcome = ask_within(&supplier, VIDEO, None, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    assert!(proxy.requests().len() <= 1, "{:?}", proxy.requests());
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    Ok(())
}

#[tokio::test]
async fn nothing_goes_on_when_the_caller_has_left() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = ReplayProxy::start(player(vec![good_player()?.held(&gate)])?)?;
    let supplier = behind(&proxy)?;
    let asked = async {
        while proxy.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        answer = ask(&supplier, VIDEO, None) => bail!("an answer before there was one: {answer:?}"),
        () = asked => {}
    }
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert_eq!(proxy.requests().len(), 1, "{:?}", proxy.requests());
    Ok(())
}

#[tokio::test]
async fn a_slow_answer_in_time_is_good() -> Result<()> {
    let slow = good_captions()?.slowly(256, Duration::from_millis(5));
    let (outcome, _) =
        played(captions(vec![slow])?.latency(Duration::from_millis(20)), |options| options).await?;
    assert_eq!(reason(&outcome), "transcript");
    Ok(())
}

#[tokio::test]
async fn compressed_answers_and_old_http_are_understood() -> Result<()> {
    let script =
        || Ok::<_, anyhow::Error>(script(vec![good_player()?.gzipped()], vec![good_captions()?.gzipped()]));
    for script in [script()?, script()?.http1_only()] {
        let (outcome, proxy) = played(script, |options| options).await?;
        assert_eq!(reason(&outcome), "transcript");
        assert_eq!(proxy.requests().len(), 2);
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_without_end_is_left() -> Result<()> {
    let piece = "x".repeat(64 * 1024);
    // 40 MiB of white space before an answer, in some 40 KiB.
    let bomb = || Answer::bytes("application/json", vec![b' '; 40 << 20]).gzipped();
    for script in
        [player(vec![Answer::text(piece).endlessly()])?, player(vec![bomb()])?, captions(vec![bomb()])?]
    {
        let (outcome, _) = played(script, |options| options).await?;
        check_failure(&outcome, "unreadable")?;
    }
    Ok(())
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused() -> Result<()> {
    let (proxy, other) = (playing("several-tracks")?, TestAuthority::new()?);
    let outcome = ask(&supplier(options(&[&proxy], other.ca_file()))?, VIDEO, None).await?;
    check_failure(&outcome, "unreachable")?;
    let wrong = Tunnel::OtherCertificate("www.example.com".to_owned());
    let (misnamed, proxy) =
        played(player(vec![good_player()?])?.all_tunnels([wrong]), |options| options).await?;
    check_failure(&misnamed, "unreachable")?;
    assert!(proxy.requests().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_from_the_platform() -> Result<()> {
    for (status, expect) in [(403, "unreachable"), (407, "misconfigured"), (502, "unreachable")] {
        let script = player(vec![good_player()?])?.all_tunnels([Tunnel::Refuse(status)]);
        let (outcome, proxy) = played(script, |options| options).await?;
        check_failure(&outcome, expect)?;
        assert!(proxy.requests().is_empty(), "{status}");
    }
    let (outcome, _) = played(player(vec![])?.all_tunnels([Tunnel::Close]), |options| options).await?;
    check_failure(&outcome, "unreachable")
}

/// Two proxies of one authority.
fn pair(first: Script, second: Script) -> Result<[ReplayProxy; 2]> {
    let authority = Arc::new(TestAuthority::new()?);
    Ok([
        ReplayProxy::start_signed_by(first, Arc::clone(&authority))?,
        ReplayProxy::start_signed_by(second, authority)?,
    ])
}

#[tokio::test]
async fn proxies_are_used_in_turn() -> Result<()> {
    let good = || script_of_good();
    let [first, second] = pair(good()?, good()?)?;
    let supplier = supplier(options(&[&first, &second], first.ca_file()))?;
    for _ in 0..4 {
        assert_eq!(reason(&ask(&supplier, VIDEO, None).await?), "transcript");
    }
    // One visit stays with one proxy: the platform would distrust a change of address in between.
    assert_eq!([first.requests().len(), second.requests().len()], [4, 4]);
    assert!(
        first.requests().windows(2).step_by(2).all(|two| two[0].path == PLAYER && two[1].path == CAPTIONS)
    );
    Ok(())
}

fn script_of_good() -> Result<Script> {
    player(vec![good_player()?])
}

#[tokio::test]
async fn a_blocked_proxy_rests_and_the_other_one_serves() -> Result<()> {
    let blocks = [
        // A wait that nobody would wait for: that the answer comes shows that none was waited.
        player(vec![Answer::status(429).header("retry-after", "3600")])?,
        player(vec![recorded("player/bot-check.json")?])?,
        player(vec![])?.all_tunnels([Tunnel::Refuse(502)]),
    ];
    for block in blocks {
        let [blocked, good] = pair(block.clone(), script_of_good()?)?;
        let supplier = supplier(retrying(options(&[&blocked, &good], good.ca_file())))?;
        for _ in 0..3 {
            let outcome = ask(&supplier, VIDEO, None).await?;
            assert_eq!(reason(&outcome), "transcript", "{block:?}: {outcome:?}");
        }
        assert!(blocked.requests().len() <= 1, "{block:?}: {:?}", blocked.requests());
        assert_eq!(blocked.tunnels().len(), 1, "{block:?}");
        assert_eq!(good.requests().len(), 6, "{block:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_proxy_that_is_gone_is_passed_over() -> Result<()> {
    let [gone, good] = pair(Script::new(), script_of_good()?)?;
    let options = retrying(options(&[&gone, &good], good.ca_file()));
    drop(gone);
    let outcome = ask(&supplier(options)?, VIDEO, None).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    assert_eq!(good.requests().len(), 2);
    Ok(())
}

#[tokio::test]
async fn another_videos_answer_is_never_taken() -> Result<()> {
    let other = recorded("player/other-video.json")?;
    let (outcome, proxy) = played(player(vec![other.clone()])?, |options| options).await?;
    check_failure(&outcome, "other_video")?;
    assert_eq!(proxy.count(|request| request.path == CAPTIONS), 0);
    // The first client is distrusted, the second is not.
    let (outcome, _) = played(player(vec![other, good_player()?])?, |options| options).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    Ok(())
}

#[tokio::test]
async fn the_requests_say_who_asks_and_nothing_of_us() -> Result<()> {
    let proxy = playing("several-tracks")?;
    assert_eq!(reason(&ask(&behind(&proxy)?, VIDEO, None).await?), "transcript");
    let seen = proxy.requests();
    let [player, captions] = seen.as_slice() else { anyhow::bail!("{seen:?}") };
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
