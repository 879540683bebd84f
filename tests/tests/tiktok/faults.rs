//! Faults of requests to TikTok: never a wrong transcript, never an endless wait.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use upstream_reqwest::{HttpOptions, HttpTransport};
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Tunnel};

use super::{HOST, PLATFORM, VIDEO, good_captions, good_page, make, replay_script, script};
use crate::social::{
    read_recording,
    supplier_calls::{
        behind, check_failure, check_timeout, fetch, fetch_with, fetch_within, options, reason, start_pair,
    },
};

#[tokio::test]
async fn tiktok_lasting_faults_carry_reason() -> Result<()> {
    for (fault, expect) in [
        (ReplayResponse::status(500), "platform_fault"),
        (ReplayResponse::status(503), "platform_fault"),
        (good_page()?.cut_after(600), "unreadable"),
        (ReplayResponse::closed(), "unreadable"),
        (ReplayResponse::status(429).header("retry-after", "60"), "throttled"),
        (ReplayResponse::text("{\"a\": "), "unreadable"),
        (
            ReplayResponse::text("<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\">".repeat(9_000)),
            "unreadable",
        ),
        (ReplayResponse::bytes("text/html", vec![0xff; 64]), "unreadable"),
        (ReplayResponse::text("not gzip").header("content-encoding", "gzip"), "unreadable"),
    ] {
        let (outcome, proxy) = replay_script(script(vec![fault.clone()], vec![good_captions()?])).await?;
        check_failure(&outcome, expect)?;
        assert_eq!(proxy.requests().len(), 1, "{fault:?}");
        let (outcome, _) = replay_script(script(vec![good_page()?], vec![fault])).await?;
        check_failure(&outcome, expect)?;
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_transient_faults_are_retried() -> Result<()> {
    for fault in [
        ReplayResponse::status(500),
        ReplayResponse::status(503),
        ReplayResponse::closed(),
        good_page()?.cut_after(99),
    ] {
        for script in [
            script(vec![fault.clone(), good_page()?], vec![good_captions()?]),
            script(vec![good_page()?], vec![fault.clone(), good_captions()?]),
        ] {
            let proxy = ReplayProxy::start(script)?;
            let options = HttpOptions { retries: 2, ..options(&[&proxy], proxy.ca_file()) };
            let outcome = fetch_with(make, options, VIDEO).await?;
            assert_eq!(reason(&outcome), "transcript", "after {fault:?}: {outcome:?}");
            assert_eq!(proxy.requests().len(), 3, "{fault:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_endless_response_is_cut_off() -> Result<()> {
    let endless = || ReplayResponse::text("x".repeat(64 << 10)).endlessly();
    // 50 MiB of JSON in some 50 KiB; and a state of 5 MB that consists of nested lists.
    let bomb = || ReplayResponse::bytes("text/html", vec![b'['; 50 << 20]).gzipped();
    let deep = format!(
        "<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\">{{\"__DEFAULT_SCOPE__\":{}</script>",
        "[".repeat(5_000_000)
    );
    for script in [
        script(vec![endless()], vec![]),
        script(vec![bomb()], vec![]),
        script(vec![ReplayResponse::text(deep)], vec![]),
        script(vec![good_page()?], vec![endless()]),
        script(vec![good_page()?], vec![bomb()]),
    ] {
        let (outcome, _) = replay_script(script).await?;
        check_failure(&outcome, "unreadable")?;
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_slow_response_fails_at_timeout() -> Result<()> {
    let drip = || Ok::<_, anyhow::Error>(good_page()?.slowly(1, Duration::from_millis(20)));
    for script in [
        script(vec![ReplayResponse::never()], vec![]),
        script(vec![drip()?], vec![]),
        script(vec![good_page()?], vec![ReplayResponse::never()]),
        script(vec![], vec![]).all_tunnels([Tunnel::Never]),
    ] {
        check_timeout(make, script, VIDEO).await?;
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_deadline_ends_call() -> Result<()> {
    let proxy = ReplayProxy::start(script(vec![ReplayResponse::never()], vec![]))?;
    let outcome = fetch_within(&behind(make, &proxy)?, VIDEO, None, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    assert!(proxy.requests().len() <= 1, "{:?}", proxy.requests());
    Ok(())
}

#[tokio::test]
async fn tiktok_blocked_proxy_is_replaced_by_next() -> Result<()> {
    let blocks = [
        script(vec![ReplayResponse::status(403)], vec![]),
        script(vec![read_recording(PLATFORM, "pages/puzzle.html")?], vec![]),
        script(vec![read_recording(PLATFORM, "pages/status-withheld.html")?], vec![]),
        script(vec![ReplayResponse::status(429).header("retry-after", "3600")], vec![]),
    ];
    for block in blocks {
        let [blocked, good] = start_pair(block.clone(), script(vec![good_page()?], vec![good_captions()?]))?;
        let options = HttpOptions { retries: 2, ..options(&[&blocked, &good], good.ca_file()) };
        let supplier = make(Arc::new(HttpTransport::new(options)?));
        for _ in 0..3 {
            let outcome = fetch(&supplier, VIDEO, None).await?;
            assert_eq!(reason(&outcome), "transcript", "{block:?}: {outcome:?}");
        }
        assert_eq!(blocked.requests().len(), 1, "{block:?}: {:?}", blocked.requests());
        assert_eq!(good.requests().len(), 6, "{block:?}");
    }
    Ok(())
}

/// Anyone can make up links of such posts.
#[tokio::test]
async fn tiktok_withheld_post_cools_down_no_proxy() -> Result<()> {
    let withheld = || {
        Ok::<_, anyhow::Error>(script(vec![read_recording(PLATFORM, "pages/status-withheld.html")?], vec![]))
    };
    let [one, other] = start_pair(withheld()?, withheld()?)?;
    let options = HttpOptions { retries: 2, ..options(&[&one, &other], other.ca_file()) };
    let supplier = make(Arc::new(HttpTransport::new(options)?));
    for requests in 1..=2 {
        check_failure(&fetch(&supplier, VIDEO, None).await?, "platform_fault")?;
        assert_eq!([one.requests().len(), other.requests().len()], [requests; 2]);
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_page_without_post_is_requested_again() -> Result<()> {
    let shell = || read_recording(PLATFORM, "pages/shell.html");
    let proxy = ReplayProxy::start(script(vec![shell()?, shell()?, good_page()?], vec![good_captions()?]))?;
    let retrying = HttpOptions { retries: 2, ..options(&[&proxy], proxy.ca_file()) };
    let outcome = fetch_with(make, retrying, VIDEO).await?;
    assert_eq!(reason(&outcome), "transcript", "{outcome:?}");

    let proxy = ReplayProxy::start(script(vec![shell()?], vec![]))?;
    let retrying = HttpOptions { retries: 2, ..options(&[&proxy], proxy.ca_file()) };
    let outcome = fetch_with(make, retrying, VIDEO).await?;
    check_failure(&outcome, "unreadable")?;
    assert_eq!(proxy.requests().len(), 3);
    Ok(())
}

/// However long the platform asks for, requests go on after five minutes, and each caller gets that time.
#[tokio::test]
async fn tiktok_long_retry_after_is_bounded_for_all_callers() -> Result<()> {
    for named in ["3600", "2300910892"] {
        let throttled = ReplayResponse::status(429).header("retry-after", named);
        let proxy = ReplayProxy::start(script(vec![throttled], vec![]))?;
        let supplier = behind(make, &proxy)?;
        let mut waits = Vec::new();
        for _ in 0..2 {
            let failure = fetch(&supplier, VIDEO, None).await?.unwrap_err();
            waits.push(failure.retry_after().map(|wait| wait.as_secs_f64().ceil()));
            assert!(!failure.message().contains(named), "{failure}");
        }
        assert_eq!(waits, [Some(300.0), Some(300.0)]);
        assert_eq!(proxy.requests().len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_bot_check_pauses_requests() -> Result<()> {
    for block in [
        read_recording(PLATFORM, "pages/puzzle.html")?,
        read_recording(PLATFORM, "pages/captcha.html")?,
        ReplayResponse::status(429).header("retry-after", "3600"),
    ] {
        let proxy = ReplayProxy::start(script(vec![block.clone()], vec![]))?;
        let supplier = behind(make, &proxy)?;
        assert!(fetch(&supplier, VIDEO, None).await?.is_err());
        let outcome = fetch(&supplier, VIDEO, None).await?;
        check_failure(&outcome, "throttled")?;
        assert_eq!(proxy.requests().len(), 1, "{block:?}");
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST));
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_post_failure_pauses_nothing() -> Result<()> {
    for page in ["status-withheld", "status-deleted", "shell", "other-post"] {
        let proxy = ReplayProxy::start(script(
            vec![read_recording(PLATFORM, &format!("pages/{page}.html"))?],
            vec![],
        ))?;
        let supplier = behind(make, &proxy)?;
        for requests in 1..=2 {
            assert!(fetch(&supplier, VIDEO, None).await?.is_err());
            assert_eq!(proxy.requests().len(), requests, "{page}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_compressed_responses_and_http1_work() -> Result<()> {
    let script =
        || Ok::<_, anyhow::Error>(script(vec![good_page()?.gzipped()], vec![good_captions()?.gzipped()]));
    for script in [script()?, script()?.http1_only()] {
        let (outcome, _) = replay_script(script).await?;
        assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    }
    Ok(())
}
