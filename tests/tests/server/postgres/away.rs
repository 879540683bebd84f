//! The database is away, or hangs, or has fewer connections than there are callers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;
use verbatim_tests::replay::ReplayProxy;
use verbatim_tests_postgres::{Cluster, Durability};

use crate::server::{
    harness::{Server, borrowed, run, until, verbatim},
    platform::platform,
    v1::post::{Outbox, account, credits},
};

const VIDEO: &str = "dyke-walk-0";

/// A server on a database of this address, and what it is told.
fn serve(data: &TempDir, proxy: &ReplayProxy, url: &str, more: &[(&str, &str)]) -> Result<Server> {
    let mut settings = crate::server::platform::settings(proxy);
    settings.push(("VERBATIM_STORAGE__URL".to_owned(), url.to_owned()));
    settings.push(("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE".to_owned(), "100000".to_owned()));
    let mut settings = borrowed(&settings);
    settings.extend_from_slice(more);
    Server::start(data, &settings)
}

/// Both surfaces say quickly that something is wrong, each in its own way.
async fn complains(server: &Server, key: &str) -> Result<()> {
    let begun = Instant::now();
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    let (paid, lookup) = tokio::join!(server.get_as(key, &path), server.get("/api/transcript?v=dyke-walk-1"));
    let (paid, lookup) = (paid?, lookup?);
    ensure!(paid.status == 500, "Surface B says so with its status: {} {}", paid.status, paid.text());
    ensure!(lookup.status == 200 && lookup.json()["failureReason"] == "fetch_error", "{}", lookup.text());
    ensure!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_database_away_servers_answer_and_charge_nothing() -> Result<()> {
    let cluster = Cluster::start(Durability::Full)?;
    let database = cluster.database()?;
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &database.url, &[])?;
    let key = account(&server, &mut Outbox::of(&data), "ann@example.org").await?;
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    assert_eq!(server.get_as(&key, &path).await?.header("x-credits-remaining"), "199");

    cluster.stop()?;
    let until_then = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until_then {
        complains(&server, &key).await?;
    }

    cluster.start_again()?;
    let reply = server.get_as(&key, &path).await?;
    assert_eq!(
        (reply.status.as_u16(), reply.header("x-credits-remaining")),
        (200, "198"),
        "{}",
        reply.text()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_hangs_servers_answer_and_charge_nothing() -> Result<()> {
    let cluster = Cluster::start(Durability::Full)?;
    let database = cluster.database()?;
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let timeouts = [("VERBATIM_STORAGE__TIMEOUT", "2s"), ("VERBATIM_STORAGE__CONNECT_TIMEOUT", "1s")];
    let server = serve(&data, &proxy, &database.url, &timeouts)?;
    let key = account(&server, &mut Outbox::of(&data), "ann@example.org").await?;
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    assert_eq!(server.get_as(&key, &path).await?.header("x-credits-remaining"), "199");
    cluster.pause()?;
    let complained = complains(&server, &key).await;
    cluster.resume()?;
    complained?;
    until("it never came back", async || Ok(server.get_as(&key, "/api/v1/me").await?.status == 200)).await?;
    assert_eq!(credits(&server, &key).await?, 199, "nothing was charged");
    let reply = server.get_as(&key, &path).await?;
    assert_eq!(
        (reply.status.as_u16(), reply.header("x-credits-remaining")),
        (200, "198"),
        "{}",
        reply.text()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn more_callers_than_connections_wait_for_each_other_and_pay_once() -> Result<()> {
    const CALLS: u64 = 150;
    let database = Cluster::shared().database()?;
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let one = [("VERBATIM_STORAGE__CONNECTIONS", "1"), ("VERBATIM_STORAGE__TIMEOUT", "60s")];
    let servers = [serve(&data, &proxy, &database.url, &one)?, serve(&data, &proxy, &database.url, &one)?];
    let key = account(&servers[0], &mut Outbox::of(&data), "ann@example.org").await?;
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
    assert_eq!((delivered, credits(&servers[1], &key).await?), (CALLS, 199 - CALLS));
    let mut audit = verbatim(data.path(), &["ledger", "audit", "--json"]);
    audit.env("VERBATIM_STORAGE__URL", &database.url);
    let audit = run(audit, b"")?;
    ensure!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stdout));
    let audit: serde_json::Value = serde_json::from_slice(&audit.stdout)?;
    assert_eq!(audit["differences"], json!([]));
    Ok(())
}
