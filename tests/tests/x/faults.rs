//! What goes wrong on the way to X, and what comes of it: never a wrong transcript, never a wait without end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use upstream_reqwest::{Http, HttpOptions};
use verbatim_tests::replay::{Answer, ReplayProxy, TestAuthority, Tunnel};

use super::{PASS, POST, Stage, VIDEO, file, make, played};
use crate::social::asking::{ask, ask_within, behind, check_failure, options, reason};

/// The stage on which only other sites' pages are told of the post, and they are answered so.
fn only_syndication(answer: Answer) -> Result<Stage> {
    Ok(Stage { pass: vec![Answer::status(503)], syndication: vec![answer], ..Stage::good()? })
}

#[tokio::test]
async fn whatever_is_wrong_with_one_way_the_other_one_is_taken() -> Result<()> {
    for fault in [
        Answer::status(500),
        Answer::status(401),
        Answer::status(429),
        Answer::closed(),
        Answer::text("<html>"),
        Answer::text("{\"data\": {\"twe").cut_after(5),
        Answer::text("[".repeat(100_000)),
        Answer::text("{\"guest_token\": 5, \"data\": []}"),
        Answer::text("{\"errors\": [{\"message\": \"Internal error\"}]}"),
    ] {
        for stage in [
            Stage { pass: vec![fault.clone()], ..Stage::good()? },
            Stage { post: vec![fault.clone()], ..Stage::good()? },
        ] {
            let (outcome, proxy) = played(stage).await?;
            assert_eq!(reason(&outcome), "transcript", "{fault:?}: {outcome:?}");
            assert!(proxy.requests().len() <= 8, "{fault:?}: {:?}", proxy.requests());
        }
    }
    Ok(())
}

#[tokio::test]
async fn lasting_faults_are_told_with_their_reason() -> Result<()> {
    for (fault, expect) in [
        (Answer::status(500), "platform_fault"),
        (Answer::status(503), "platform_fault"),
        (Answer::closed(), "unreadable"),
        (Answer::status(429).header("retry-after", "60"), "throttled"),
        (Answer::text("<html>"), "unreadable"),
        (Answer::text(""), "unreadable"),
    ] {
        for stage in [
            Stage { master: vec![fault.clone()], ..Stage::good()? },
            Stage { subs: vec![fault.clone()], ..Stage::good()? },
            Stage { words: vec![fault.clone()], ..Stage::good()? },
        ] {
            check_failure(&played(stage).await?.0, expect)?;
        }
        // The first way's own fault is told where the other one is of no help either.
        let (outcome, _) = played(only_syndication(fault)?).await?;
        check_failure(&outcome, "platform_fault")?;
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_without_end_is_left() -> Result<()> {
    let endless = || vec![Answer::text("#".repeat(64 << 10)).endlessly()];
    let bomb = || vec![Answer::bytes("application/json", vec![b' '; 50 << 20]).gzipped()];
    let deep = || vec![Answer::text(format!("{{\"data\":{}", "[".repeat(3_000_000)))];
    let long = || {
        let list = "{\"type\":\"video\"},".repeat(60_000);
        vec![Answer::text(format!("{{\"data\":{{\"tweetResult\":{{\"result\":{{\"a\":[{list}0]}}}}}}}}"))]
    };
    for stage in [
        Stage { post: endless(), syndication: bomb(), ..Stage::good()? },
        Stage { post: bomb(), syndication: endless(), ..Stage::good()? },
        Stage { post: deep(), syndication: long(), ..Stage::good()? },
        Stage { post: long(), syndication: deep(), ..Stage::good()? },
        Stage { pass: endless(), syndication: deep(), ..Stage::good()? },
        Stage { master: endless(), ..Stage::good()? },
        Stage { subs: bomb(), ..Stage::good()? },
        Stage { words: endless(), ..Stage::good()? },
    ] {
        check_failure(&played(stage).await?.0, "unreadable")?;
    }
    Ok(())
}

#[tokio::test]
async fn no_answer_takes_longer_than_the_timeout() -> Result<()> {
    let never = || vec![Answer::never()];
    for script in [
        Stage { pass: never(), syndication: never(), ..Stage::good()? }.script(),
        Stage { post: never(), syndication: never(), ..Stage::good()? }.script(),
        Stage { words: never(), ..Stage::good()? }.script(),
        Stage::good()?.script().all_tunnels([Tunnel::Never]),
    ] {
        let proxy = ReplayProxy::start(script)?;
        let options =
            HttpOptions { timeout: Duration::from_millis(400), ..options(&[&proxy], proxy.ca_file()) };
        let begun = Instant::now();
        let outcome = ask(&make(Arc::new(Http::new(options)?)), VIDEO, None).await?;
        assert!(["timeout", "unreachable"].contains(&reason(&outcome)), "{outcome:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn the_callers_deadline_ends_everything() -> Result<()> {
    let stage = Stage { pass: vec![Answer::never()], ..Stage::good()? };
    let proxy = ReplayProxy::start(stage.script())?;
    let outcome = ask_within(&behind(make, &proxy)?, VIDEO, None, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    Ok(())
}

#[tokio::test]
async fn a_throttled_way_is_left_alone_while_the_other_one_is_open() -> Result<()> {
    let throttled = Answer::status(429).header("retry-after", "3600");
    let stage = Stage { post: vec![throttled], ..Stage::good()? };
    let proxy = ReplayProxy::start(stage.script())?;
    let supplier = behind(make, &proxy)?;
    for _ in 0..3 {
        assert_eq!(reason(&ask(&supplier, VIDEO, None).await?), "transcript");
    }
    assert_eq!(proxy.count(|request| request.path == POST), 1);
    assert_eq!(proxy.count(|request| request.path == PASS), 1);
    Ok(())
}

#[tokio::test]
async fn another_proxy_is_tried_where_one_is_distrusted() -> Result<()> {
    let refused = || vec![Answer::status(403)];
    let block = Stage { pass: refused(), syndication: refused(), ..Stage::good()? }.script();
    let authority = Arc::new(TestAuthority::new()?);
    let blocked = ReplayProxy::start_signed_by(block, Arc::clone(&authority))?;
    let good = ReplayProxy::start_signed_by(Stage::good()?.script(), authority)?;
    let options = HttpOptions { retries: 2, ..options(&[&blocked, &good], good.ca_file()) };
    let supplier = make(Arc::new(Http::new(options)?));
    for _ in 0..2 {
        let outcome = ask(&supplier, VIDEO, None).await?;
        assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    }
    assert_eq!(blocked.requests().len(), 2, "{:?}", blocked.requests());
    Ok(())
}

#[tokio::test]
async fn the_post_that_is_quoted_is_named() -> Result<()> {
    let stage = Stage { post: vec![file("posts/quoting.json")?], ..Stage::good()? };
    let proxy = ReplayProxy::start(stage.script())?;
    let outcome = ask(&behind(make, &proxy)?, "1990000000000000006", None).await?;
    check_failure(&outcome, "no_captions")?;
    let message = outcome.err().map(|error| error.message().to_owned()).unwrap_or_default();
    assert!(message.contains("x.com/i/status/1990000000000000001"), "{message}");
    Ok(())
}
