//! The database is stopped, hangs, or has fewer connections than callers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tokio::task::JoinSet;
use verbatim_tests::replay::ReplayProxy;
use verbatim_tests_postgres::{Cluster, Durability};

use crate::server::{
    harness::{ServerFixture, audit_ledger, wait_until},
    platform::{serve_platform, start_platform},
    v1::mail_client::{MailClient, create_account, remaining_credits},
};

const VIDEO: &str = "dyke-walk-0";

/// A server on the database of this address, with further settings.
fn serve(data: &TempDir, proxy: &ReplayProxy, url: &str, more: &[(&str, &str)]) -> Result<ServerFixture> {
    let own = [("VERBATIM_STORAGE__URL", url), ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000")];
    serve_platform(data, proxy, &[&own, more].concat())
}

/// Checks that both APIs report a database failure within 20 seconds, each in its own form.
async fn check_failure_reported(server: &ServerFixture, key: &str) -> Result<()> {
    let started = Instant::now();
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    let (paid, lookup) = tokio::join!(server.get_as(key, &path), server.get("/api/transcript?v=dyke-walk-1"));
    let (paid, lookup) = (paid?, lookup?);
    ensure!(paid.status == 500, "the v1 API did not report the failure: {} {}", paid.status, paid.text());
    ensure!(lookup.status == 200 && lookup.json()["failureReason"] == "fetch_error", "{}", lookup.text());
    ensure!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}

/// Checks that a transcript is delivered, and that this many credits remain.
async fn check_delivery(server: &ServerFixture, key: &str, left: &str) -> Result<()> {
    let reply = server.get_as(key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
    let delivered = (reply.status.as_u16(), reply.header("x-credits-remaining"));
    assert_eq!(delivered, (200, left), "{}", reply.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn database_stopped_requests_fail_fast_without_charge() -> Result<()> {
    let cluster = Cluster::start(Durability::Full)?;
    let database = cluster.database()?;
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &database.url, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    check_delivery(&server, &key, "199").await?;

    cluster.stop()?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        check_failure_reported(&server, &key).await?;
    }

    cluster.restart()?;
    check_delivery(&server, &key, "198").await
}

#[tokio::test(flavor = "multi_thread")]
async fn database_hanging_requests_fail_fast_without_charge() -> Result<()> {
    let cluster = Cluster::start(Durability::Full)?;
    let database = cluster.database()?;
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let timeouts = [("VERBATIM_STORAGE__TIMEOUT", "2s"), ("VERBATIM_STORAGE__CONNECT_TIMEOUT", "1s")];
    let server = serve(&data, &proxy, &database.url, &timeouts)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    check_delivery(&server, &key, "199").await?;
    cluster.pause()?;
    let reported = check_failure_reported(&server, &key).await;
    cluster.resume()?;
    reported?;
    wait_until("the database did not recover", async || {
        Ok(server.get_as(&key, "/api/v1/me").await?.status == 200)
    })
    .await?;
    assert_eq!(remaining_credits(&server, &key).await?, 199, "a failed request was charged");
    check_delivery(&server, &key, "198").await
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_with_one_connection_serves_and_charges_all_callers() -> Result<()> {
    const CALLS: u64 = 150;
    let database = Cluster::shared().database()?;
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let one = [("VERBATIM_STORAGE__CONNECTIONS", "1"), ("VERBATIM_STORAGE__TIMEOUT", "60s")];
    let servers = [serve(&data, &proxy, &database.url, &one)?, serve(&data, &proxy, &database.url, &one)?];
    let key = create_account(&servers[0], &mut MailClient::new(&data), "ann@example.org").await?;
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    assert_eq!(servers[0].get_as(&key, &path).await?.status, 200);
    let servers = Arc::new(servers);
    let mut calls = JoinSet::new();
    for n in 0..CALLS {
        let (servers, key, path) = (Arc::clone(&servers), key.clone(), path.clone());
        calls.spawn(async move { servers[n as usize % 2].get_as(&key, &path).await });
    }
    let mut delivered = 0;
    while let Some(reply) = calls.join_next().await {
        let reply = reply??;
        assert_eq!(reply.status, 200, "{}", reply.text());
        delivered += 1;
    }
    assert_eq!((delivered, remaining_credits(&servers[1], &key).await?), (CALLS, 199 - CALLS));
    audit_ledger(data.path(), &[("VERBATIM_STORAGE__URL", &database.url)])
}
