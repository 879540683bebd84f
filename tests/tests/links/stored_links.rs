//! Short links in the lookup API: resolved without any setting, counted, and stored permanently.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use transcript_core::{
    ErrorKind,
    engine::NoTranscript,
    lookup::{
        Availability, CreateKeyOutcome, FailureReason, KeyOrigin, LookupOptions, LookupRequest,
        LookupResponse, VideoReference,
    },
};
use verbatim::{GetRequest, HttpOptions, Options, StorageOptions, SupplierOptions, Verbatim};
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::fixture::{INSTAGRAM, TIKTOK, X, check_hosts, redirect};
use crate::simulation::world::key_request;

const SHORT: &str = "https://vm.tiktok.com/ZTR45GpSF/";
const OTHER: &str = "https://vm.tiktok.com/ZTaaaaaaa/";

/// A platform with working and failing short links.
fn platform() -> Result<ReplayProxy> {
    let throttled = ReplayResponse::status(429).header("retry-after", "3600");
    ReplayProxy::start(
        Script::new()
            .rule(redirect(TIKTOK, "/ZTR45GpSF/", "https://www.tiktok.com/@dyke/video/20"))
            .rule(redirect(TIKTOK, "/ZTaaaaaaa/", "https://www.tiktok.com/@dyke/video/30"))
            .rule(redirect(TIKTOK, "/ZTexpired/", "https://www.tiktok.com/?_r=1"))
            .rule(Rule::new("HEAD", TIKTOK, "/ZTfault/").respond(ReplayResponse::status(500)))
            .rule(redirect(INSTAGRAM, "/share/BARSSL4rTu/", "/reel/DdG4RIxIPyf/"))
            .rule(Rule::new("HEAD", INSTAGRAM, "/share/BAbusy/").respond(throttled))
            .rule(redirect(X, "/AbCdEf1234", "https://x.com/dyke/status/20")),
    )
}

/// Opens Verbatim over this folder, behind this proxy. Only YouTube has a supplier, so only short links
/// cause requests.
async fn open(data: &TempDir, proxy: &ReplayProxy, lookup: LookupOptions) -> Result<Verbatim> {
    let video_site = SupplierOptions::default().youtube;
    let options = Options {
        storage: StorageOptions::Files {
            main: data.path().join("verbatim.db"),
            archive: data.path().join("archive.db"),
        },
        suppliers: SupplierOptions { youtube: video_site, ..SupplierOptions::none() },
        upstream: HttpOptions {
            proxies: vec![proxy.url()],
            ca_file: Some(proxy.ca_file().to_owned()),
            retries: 0,
            ..HttpOptions::default()
        },
        lookup,
        ..Options::default()
    };
    Ok(Verbatim::open(options).await?)
}

async fn key(verbatim: &Verbatim) -> Result<String> {
    match verbatim.lookup().keys().create(key_request(KeyOrigin::Operator)).await? {
        CreateKeyOutcome::Created(new) => Ok(new.key.reveal().to_owned()),
        other => bail!("{other:?}"),
    }
}

fn lookup_request(link: &str, key: Option<&str>) -> LookupRequest {
    LookupRequest {
        key: key.map(str::to_owned),
        client: Some(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7))),
        ..LookupRequest::new(VideoReference::Url(link.to_owned()))
    }
}

/// Fails unless a response is about this video or link code and has no transcript for this reason.
fn check(answer: &LookupResponse, id: &str, expect: FailureReason) -> Result<()> {
    ensure!(answer.video_id == id, "{answer:?}");
    match &answer.availability {
        Availability::Unavailable(NoTranscript { reason, .. }) if *reason == expect => Ok(()),
        other => bail!("{id}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resolved_link_is_stored_permanently() -> Result<()> {
    let data = TempDir::new()?;
    let links = [(SHORT, "20"), ("instagram.com/share/BARSSL4rTu", "DdG4RIxIPyf"), ("t.co/AbCdEf1234", "20")];
    let proxy = platform()?;
    let verbatim = open(&data, &proxy, LookupOptions::default()).await?;
    let key = key(&verbatim).await?;
    for (count, (link, id)) in links.iter().enumerate() {
        for key in [Some(key.as_str()), None] {
            let answer = verbatim.lookup().look_up(lookup_request(link, key)).await?;
            let reason = match key {
                // The link was resolved; its platform has no supplier.
                Some(_) => FailureReason::ConfigError,
                None => FailureReason::NeedsVerification,
            };
            check(&answer, id, reason)?;
            ensure!(proxy.requests().len() == count + 1, "{link}: {:?}", proxy.requests());
        }
    }
    check_hosts(&proxy)?;
    verbatim.close().await;

    // The platform no longer responds: the archive resolves the links.
    let silent = ReplayProxy::start(Script::new())?;
    let verbatim = open(&data, &silent, LookupOptions::default()).await?;
    for (link, id) in links {
        check(
            &verbatim.lookup().look_up(lookup_request(link, Some(&key))).await?,
            id,
            FailureReason::ConfigError,
        )?;
        check(
            &verbatim.lookup().look_up_archived(lookup_request(link, None)).await?,
            id,
            FailureReason::NeedsVerification,
        )?;
    }
    assert!(silent.tunnels().is_empty(), "{:?}", silent.tunnels());
    verbatim.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn link_resolution_counts_against_caller_limit() -> Result<()> {
    let (data, proxy) = (TempDir::new()?, platform()?);
    let limits = LookupOptions {
        misses_per_network_per_minute: 1,
        attempts_per_key_per_hour: 1,
        ..Default::default()
    };
    let verbatim = open(&data, &proxy, limits).await?;
    let key = key(&verbatim).await?;
    let lookup = verbatim.lookup();

    // Without a key it counts as a miss of the network; above the limit no request is sent.
    check(&lookup.look_up(lookup_request(SHORT, None)).await?, "20", FailureReason::NeedsVerification)?;
    check(&lookup.look_up(lookup_request(OTHER, None)).await?, "ZTaaaaaaa", FailureReason::FairUse)?;
    assert_eq!(proxy.requests().len(), 1);
    // With a key it counts as an attempt of the key; a stored link does not count.
    check(&lookup.look_up(lookup_request(SHORT, Some(&key))).await?, "20", FailureReason::ConfigError)?;
    check(&lookup.look_up(lookup_request(OTHER, Some(&key))).await?, "30", FailureReason::ConfigError)?;
    let third = "https://vm.tiktok.com/ZTthird/";
    check(&lookup.look_up(lookup_request(third, Some(&key))).await?, "ZTthird", FailureReason::FairUse)?;
    // A lookup of the archive alone resolves nothing.
    check(
        &lookup.look_up_archived(lookup_request(third, None)).await?,
        "ZTthird",
        FailureReason::NeedsVerification,
    )?;
    assert_eq!(proxy.requests().len(), 2);
    verbatim.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_link_is_bad_request_and_transient_failure_is_not() -> Result<()> {
    let (data, proxy) = (TempDir::new()?, platform()?);
    let verbatim = open(&data, &proxy, LookupOptions::default()).await?;
    let key = key(&verbatim).await?;
    let request = |link: &str| verbatim.lookup().look_up(lookup_request(link, Some(&key)));

    let dead =
        request("https://vm.tiktok.com/ZTexpired/").await.err().context("an expired link was resolved")?;
    assert!(dead.parameter == "url" && dead.message.contains("expired"), "{dead}");
    let get = GetRequest { link: "https://vm.tiktok.com/ZTexpired/".to_owned(), ..GetRequest::default() };
    assert_eq!(verbatim.get(get).await.unwrap_err().kind(), ErrorKind::Invalid);

    check(&request("https://vm.tiktok.com/ZTfault/").await?, "ZTfault", FailureReason::FetchError)?;
    check(&request("https://www.instagram.com/share/BAbusy").await?, "BAbusy", FailureReason::RateLimited)?;
    // The expired link was requested once, and is not requested again for a while, with or without a key.
    let before = proxy.requests().len();
    assert_eq!(before, 3);
    for key in [Some(key.as_str()), None] {
        let again = verbatim.lookup().look_up(lookup_request("https://vm.tiktok.com/ZTexpired/", key)).await;
        assert_eq!(again.unwrap_err(), dead);
    }
    // A transient failure is not stored: the next lookup sends a request.
    check(&request("https://vm.tiktok.com/ZTfault/").await?, "ZTfault", FailureReason::FetchError)?;
    assert_eq!(proxy.requests().len(), before + 1);
    verbatim.close().await;
    Ok(())
}
