//! Short links on Surface A: followed without any setting, counted, and remembered for ever.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use transcript_core::{
    ErrorKind,
    lookup::{
        Availability, CreateKey, CreateKeyOutcome, FailureReason, LookupAnswer, LookupAsk, LookupOptions,
        Origin, Reference,
    },
};
use verbatim::{Get, Options, StorageOptions, SupplierOptions, UpstreamOptions, Verbatim};
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::asking::{INSTAGRAM, TIKTOK, X, check_hosts, redirect};

const SHORT: &str = "https://vm.tiktok.com/ZTR45GpSF/";
const OTHER: &str = "https://vm.tiktok.com/ZTaaaaaaa/";

/// A platform on which some short links work and others do not.
fn platform() -> Result<ReplayProxy> {
    let throttled = Answer::status(429).header("retry-after", "3600");
    ReplayProxy::start(
        Script::new()
            .rule(redirect(TIKTOK, "/ZTR45GpSF/", "https://www.tiktok.com/@dyke/video/20"))
            .rule(redirect(TIKTOK, "/ZTaaaaaaa/", "https://www.tiktok.com/@dyke/video/30"))
            .rule(redirect(TIKTOK, "/ZTexpired/", "https://www.tiktok.com/?_r=1"))
            .rule(Rule::new("HEAD", TIKTOK, "/ZTfault/").answer(Answer::status(500)))
            .rule(redirect(INSTAGRAM, "/share/BARSSL4rTu/", "/reel/DdG4RIxIPyf/"))
            .rule(Rule::new("HEAD", INSTAGRAM, "/share/BAbusy/").answer(throttled))
            .rule(redirect(X, "/AbCdEf1234", "https://x.com/dyke/status/20")),
    )
}

/// Everything put together over this folder, behind this proxy. Only YouTube has a supplier, so that nothing
/// but short links leads to a request.
async fn open(data: &TempDir, proxy: &ReplayProxy, lookup: LookupOptions) -> Result<Verbatim> {
    let video_site = SupplierOptions::default().video_site;
    let options = Options {
        storage: StorageOptions::Files {
            main: data.path().join("verbatim.db"),
            archive: data.path().join("archive.db"),
        },
        suppliers: SupplierOptions { video_site, ..SupplierOptions::none() },
        upstream: UpstreamOptions {
            proxies: vec![proxy.url()],
            ca_file: Some(proxy.ca_file().to_owned()),
            retries: 0,
            ..UpstreamOptions::default()
        },
        lookup,
        ..Options::default()
    };
    Ok(Verbatim::open(options).await?)
}

async fn key(verbatim: &Verbatim) -> Result<String> {
    let ask = CreateKey { label: None, email: None, proof: None, origin: Origin::Operator };
    match verbatim.lookup().create_key(ask).await? {
        CreateKeyOutcome::Created(new) => Ok(new.key.reveal().to_owned()),
        other => bail!("{other:?}"),
    }
}

fn asking(link: &str, key: Option<&str>) -> LookupAsk {
    LookupAsk {
        reference: Reference::Url(link.to_owned()),
        src: None,
        key: key.map(str::to_owned),
        proof: None,
        client: Some(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7))),
        default_only: false,
    }
}

/// Fails unless an answer is about this video, or this code, and has no transcript for this reason.
fn check(answer: &LookupAnswer, id: &str, expect: FailureReason) -> Result<()> {
    ensure!(answer.video_id == id, "{answer:?}");
    match &answer.availability {
        Availability::Unavailable { reason, .. } if *reason == expect => Ok(()),
        other => bail!("{id}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_link_means_is_remembered_for_ever() -> Result<()> {
    let data = TempDir::new()?;
    let links = [(SHORT, "20"), ("instagram.com/share/BARSSL4rTu", "DdG4RIxIPyf"), ("t.co/AbCdEf1234", "20")];
    let proxy = platform()?;
    let verbatim = open(&data, &proxy, LookupOptions::default()).await?;
    let key = key(&verbatim).await?;
    for (count, (link, id)) in links.iter().enumerate() {
        for key in [Some(key.as_str()), None] {
            let answer = verbatim.lookup().look_up(asking(link, key)).await?;
            let reason = match key {
                // No supplier: the link was followed, and that is all.
                Some(_) => FailureReason::ConfigError,
                None => FailureReason::NeedsVerification,
            };
            check(&answer, id, reason)?;
            ensure!(proxy.requests().len() == count + 1, "{link}: {:?}", proxy.requests());
        }
    }
    check_hosts(&proxy)?;
    verbatim.close().await;

    // A platform that answers nothing more: the archive knows.
    let silent = ReplayProxy::start(Script::new())?;
    let verbatim = open(&data, &silent, LookupOptions::default()).await?;
    for (link, id) in links {
        check(&verbatim.lookup().look_up(asking(link, Some(&key))).await?, id, FailureReason::ConfigError)?;
        check(&verbatim.lookup().peek(asking(link, None)).await?, id, FailureReason::NeedsVerification)?;
    }
    assert!(silent.tunnels().is_empty(), "{:?}", silent.tunnels());
    verbatim.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn following_a_link_counts_against_who_asks() -> Result<()> {
    let (data, proxy) = (TempDir::new()?, platform()?);
    let limits = LookupOptions {
        misses_per_network_per_minute: 1,
        attempts_per_key_per_hour: 1,
        ..Default::default()
    };
    let verbatim = open(&data, &proxy, limits).await?;
    let key = key(&verbatim).await?;
    let lookup = verbatim.lookup();

    // Without a key it is a miss of the network; one that is over the limit asks nobody.
    check(&lookup.look_up(asking(SHORT, None)).await?, "20", FailureReason::NeedsVerification)?;
    check(&lookup.look_up(asking(OTHER, None)).await?, "ZTaaaaaaa", FailureReason::FairUse)?;
    assert_eq!(proxy.requests().len(), 1);
    // With a key it is an attempt of the key; what is remembered is none.
    check(&lookup.look_up(asking(SHORT, Some(&key))).await?, "20", FailureReason::ConfigError)?;
    check(&lookup.look_up(asking(OTHER, Some(&key))).await?, "30", FailureReason::ConfigError)?;
    let third = "https://vm.tiktok.com/ZTthird/";
    check(&lookup.look_up(asking(third, Some(&key))).await?, "ZTthird", FailureReason::FairUse)?;
    // Looking without fetching follows nothing.
    check(&lookup.peek(asking(third, None)).await?, "ZTthird", FailureReason::NeedsVerification)?;
    assert_eq!(proxy.requests().len(), 2);
    verbatim.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_link_is_a_bad_request_and_a_passing_failure_is_none() -> Result<()> {
    let (data, proxy) = (TempDir::new()?, platform()?);
    let verbatim = open(&data, &proxy, LookupOptions::default()).await?;
    let key = key(&verbatim).await?;
    let ask = |link: &str| verbatim.lookup().look_up(asking(link, Some(&key)));

    let dead = ask("https://vm.tiktok.com/ZTexpired/").await.err().context("a dead link has an answer")?;
    assert!(dead.parameter == "url" && dead.message.contains("expired"), "{dead}");
    let get = Get { link: "https://vm.tiktok.com/ZTexpired/".to_owned(), language: None };
    assert_eq!(verbatim.get(get).await.unwrap_err().kind(), ErrorKind::Invalid);

    check(&ask("https://vm.tiktok.com/ZTfault/").await?, "ZTfault", FailureReason::FetchError)?;
    check(&ask("https://www.instagram.com/share/BAbusy").await?, "BAbusy", FailureReason::RateLimited)?;
    // The dead link was asked for once, and is not for a while, whoever asks.
    let before = proxy.requests().len();
    assert_eq!(before, 3);
    for key in [Some(key.as_str()), None] {
        let again = verbatim.lookup().look_up(asking("https://vm.tiktok.com/ZTexpired/", key)).await;
        assert_eq!(again.unwrap_err(), dead);
    }
    // A failure is not remembered: whoever asks again, asks the platform.
    check(&ask("https://vm.tiktok.com/ZTfault/").await?, "ZTfault", FailureReason::FetchError)?;
    assert_eq!(proxy.requests().len(), before + 1);
    verbatim.close().await;
    Ok(())
}
