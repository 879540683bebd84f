//! What goes wrong on the way to TikTok, and what comes of it: never a wrong transcript, never a wait without end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use upstream_reqwest::{Http, HttpOptions};
use verbatim_tests::replay::{Answer, ReplayProxy, TestAuthority, Tunnel};

use super::{HOST, PLATFORM, VIDEO, good_captions, good_page, make, played, script};
use crate::social::{
    asking::{ask, ask_within, behind, check_failure, options, reason},
    recorded,
};

#[tokio::test]
async fn lasting_faults_are_told_with_their_reason() -> Result<()> {
    for (fault, expect) in [
        (Answer::status(500), "platform_fault"),
        (Answer::status(503), "platform_fault"),
        (good_page()?.cut_after(600), "unreadable"),
        (Answer::closed(), "unreadable"),
        (Answer::status(429).header("retry-after", "60"), "throttled"),
        (Answer::text("{\"a\": "), "unreadable"),
        (Answer::text("<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\">".repeat(9_000)), "unreadable"),
        (Answer::bytes("text/html", vec![0xff; 64]), "unreadable"),
        (Answer::text("not gzip").header("content-encoding", "gzip"), "unreadable"),
    ] {
        let (outcome, proxy) = played(script(vec![fault.clone()], vec![good_captions()?])).await?;
        check_failure(&outcome, expect)?;
        assert_eq!(proxy.requests().len(), 1, "{fault:?}");
        let (outcome, _) = played(script(vec![good_page()?], vec![fault])).await?;
        check_failure(&outcome, expect)?;
    }
    Ok(())
}

#[tokio::test]
async fn passing_faults_are_tried_again() -> Result<()> {
    for fault in [Answer::status(500), Answer::status(503), Answer::closed(), good_page()?.cut_after(99)] {
        for script in [
            script(vec![fault.clone(), good_page()?], vec![good_captions()?]),
            script(vec![good_page()?], vec![fault.clone(), good_captions()?]),
        ] {
            let proxy = ReplayProxy::start(script)?;
            let options = HttpOptions { retries: 2, ..options(&[&proxy], proxy.ca_file()) };
            let outcome = ask(&make(Arc::new(Http::new(options)?)), VIDEO, None).await?;
            assert_eq!(reason(&outcome), "transcript", "after {fault:?}: {outcome:?}");
            assert_eq!(proxy.requests().len(), 3, "{fault:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_without_end_is_left() -> Result<()> {
    let endless = || Answer::text("x".repeat(64 << 10)).endlessly();
    // 50 MiB of JSON, in some 50 KiB; and a state of 5 MB that is nothing but one list in another.
    let bomb = || Answer::bytes("text/html", vec![b'['; 50 << 20]).gzipped();
    let deep = format!(
        "<script id=\"__UNIVERSAL_DATA_FOR_REHYDRATION__\">{{\"__DEFAULT_SCOPE__\":{}</script>",
        "[".repeat(5_000_000)
    );
    for script in [
        script(vec![endless()], vec![]),
        script(vec![bomb()], vec![]),
        script(vec![Answer::text(deep)], vec![]),
        script(vec![good_page()?], vec![endless()]),
        script(vec![good_page()?], vec![bomb()]),
    ] {
        let (outcome, _) = played(script).await?;
        check_failure(&outcome, "unreadable")?;
    }
    Ok(())
}

#[tokio::test]
async fn no_answer_takes_longer_than_the_timeout() -> Result<()> {
    let drip = || Ok::<_, anyhow::Error>(good_page()?.slowly(1, Duration::from_millis(20)));
    for script in [
        script(vec![Answer::never()], vec![]),
        script(vec![drip()?], vec![]),
        script(vec![good_page()?], vec![Answer::never()]),
        script(vec![], vec![]).all_tunnels([Tunnel::Never]),
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
    let proxy = ReplayProxy::start(script(vec![Answer::never()], vec![]))?;
    let outcome = ask_within(&behind(make, &proxy)?, VIDEO, None, Duration::from_millis(600)).await?;
    check_failure(&outcome, "timeout")?;
    assert!(proxy.requests().len() <= 1, "{:?}", proxy.requests());
    Ok(())
}

#[tokio::test]
async fn another_proxy_is_tried_where_one_is_distrusted() -> Result<()> {
    let blocks = [
        script(vec![Answer::status(403)], vec![]),
        script(vec![recorded(PLATFORM, "pages/puzzle.html")?], vec![]),
        script(vec![recorded(PLATFORM, "pages/status-withheld.html")?], vec![]),
        script(vec![Answer::status(429).header("retry-after", "3600")], vec![]),
    ];
    for block in blocks {
        let authority = Arc::new(TestAuthority::new()?);
        let blocked = ReplayProxy::start_signed_by(block.clone(), Arc::clone(&authority))?;
        let good =
            ReplayProxy::start_signed_by(script(vec![good_page()?], vec![good_captions()?]), authority)?;
        let options = HttpOptions { retries: 2, ..options(&[&blocked, &good], good.ca_file()) };
        let supplier = make(Arc::new(Http::new(options)?));
        for _ in 0..3 {
            let outcome = ask(&supplier, VIDEO, None).await?;
            assert_eq!(reason(&outcome), "transcript", "{block:?}: {outcome:?}");
        }
        assert_eq!(blocked.requests().len(), 1, "{block:?}: {:?}", blocked.requests());
        assert_eq!(good.requests().len(), 6, "{block:?}");
    }
    Ok(())
}

#[tokio::test]
async fn tiktok_is_left_alone_after_it_asked_for_a_proof() -> Result<()> {
    for block in [
        recorded(PLATFORM, "pages/puzzle.html")?,
        recorded(PLATFORM, "pages/captcha.html")?,
        Answer::status(429).header("retry-after", "3600"),
    ] {
        let proxy = ReplayProxy::start(script(vec![block.clone()], vec![]))?;
        let supplier = behind(make, &proxy)?;
        assert!(ask(&supplier, VIDEO, None).await?.is_err());
        let outcome = ask(&supplier, VIDEO, None).await?;
        check_failure(&outcome, "throttled")?;
        assert_eq!(proxy.requests().len(), 1, "{block:?}");
        assert!(proxy.tunnels().iter().all(|tunnel| tunnel.host == HOST));
    }
    Ok(())
}

#[tokio::test]
async fn what_one_post_is_silences_nothing() -> Result<()> {
    for page in ["status-withheld", "status-deleted", "shell", "other-post"] {
        let proxy =
            ReplayProxy::start(script(vec![recorded(PLATFORM, &format!("pages/{page}.html"))?], vec![]))?;
        let supplier = behind(make, &proxy)?;
        for asked in 1..=2 {
            assert!(ask(&supplier, VIDEO, None).await?.is_err());
            assert_eq!(proxy.requests().len(), asked, "{page}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn compressed_answers_and_old_http_are_understood() -> Result<()> {
    let script =
        || Ok::<_, anyhow::Error>(script(vec![good_page()?.gzipped()], vec![good_captions()?.gzipped()]));
    for script in [script()?, script()?.http1_only()] {
        let (outcome, _) = played(script).await?;
        assert_eq!(reason(&outcome), "transcript", "{outcome:?}");
    }
    Ok(())
}
