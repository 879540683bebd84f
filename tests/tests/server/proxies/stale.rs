//! A shared cache while the server does not run, and a purge hook that fails.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::archive::Archive;

use super::{ProxyFixture, example, free_port};
use crate::{
    server::{
        caching::put_request_for,
        harness::{ServerFixture, run_ok, verbatim, wait_until},
    },
    service::fake::{FakeReply, FakeService},
};

const VIDEO: &str = "dyke-walk-0";
const PATH: &str = "/api/transcript?v=dyke-walk-0";

async fn archive_video(data: &TempDir) -> Result<()> {
    let archive = SqliteArchive::open(SqliteOptions::new(data.path().join("archive.db"))).await?;
    archive.put(put_request_for(VIDEO, "The sheep keep the grass short.", false)?).await?;
    archive.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn varnish_serves_stale_responses_without_server() -> Result<()> {
    let data = TempDir::new()?;
    archive_video(&data).await?;
    let settings = [("VERBATIM_CDN__MAX_AGE", "1s"), ("VERBATIM_CDN__STALE_WHILE_REVALIDATE", "0s")];
    let server = ServerFixture::start(&data, &settings)?;
    let server_port = server.address().rsplit_once(':').context("no port")?.1;
    // Only the time for which the server does not answer counts.
    let vcl = example("varnish.vcl", &[("8080", server_port), ("req.grace = 60s", "req.grace = 0s")])?;
    let proxy = ProxyFixture::varnish(free_port()?, &vcl).await?;
    let fresh = proxy.get(PATH).await?;
    assert!(fresh.status == 200 && fresh.json()["available"] == true, "{fresh:?}");
    drop(server);
    let died = Instant::now();
    let mut stale = None;
    wait_until("the stale response is not sent", async || {
        let reply = proxy.get(PATH).await?;
        // From its second second on it is stale.
        let age: u64 = reply.header("age").parse().unwrap_or(0);
        let is_stale = reply.status == 200 && age >= 3;
        stale = is_stale.then_some(reply);
        Ok(is_stale)
    })
    .await?;
    let stale = stale.context("no response")?;
    assert_eq!(stale.body, fresh.body);
    eprintln!("stale response after {:?}, of age {} s", died.elapsed(), stale.header("age"));
    let missing = proxy.get("/api/transcript?v=dyke-walk-1").await?;
    assert_eq!(missing.status, 503);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_purge_hook_is_called_again_and_delays_no_withdrawal() -> Result<()> {
    let data = TempDir::new()?;
    archive_video(&data).await?;
    let withdraw = |undo: &[&str]| {
        let started = Instant::now();
        run_ok(verbatim(data.path(), &[&["archive", "withdraw", VIDEO], undo].concat()), b"")?;
        Ok::<_, anyhow::Error>(started.elapsed())
    };
    // No server runs: the withdrawal is recorded, and purged by the next server.
    let took = withdraw(&[])?;
    let hook =
        FakeService::start(|_, before| FakeReply::new(if before < 2 { 500 } else { 204 }, "", "")).await?;
    let settings = [
        ("VERBATIM_CDN__MAX_AGE", "1h"),
        ("VERBATIM_CDN__PURGE_URL", &*format!("{}/hook", hook.url)),
        ("VERBATIM_CDN__PURGE_SECRET", "secret-of-the-hook"),
    ];
    let server = ServerFixture::start(&data, &settings)?;
    let mut calls = Vec::new();
    wait_until("no two failures, a purge and a second purge", async || {
        calls = hook.requests();
        Ok(calls.len() >= 4)
    })
    .await?;
    for call in &calls {
        assert!(call.head.starts_with("post /hook http/1.1\r\n"), "{}", call.head);
        assert!(call.head.contains("\r\nsurrogate-key: video_site-dyke-walk-0\r\n"), "{}", call.head);
        assert!(call.head.contains("\r\nauthorization: bearer secret-of-the-hook\r\n"), "{}", call.head);
        assert_eq!(call.json(), json!({ "tags": ["video_site-dyke-walk-0"] }));
    }
    let pauses: Vec<_> = calls.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    // The pauses after failures double; the second purge is ten seconds after the first one.
    let least = [2, 4, 10].map(Duration::from_secs);
    assert!(pauses.iter().zip(least).all(|(pause, least)| *pause >= least), "{pauses:?}");
    eprintln!("withdrawal in {took:?}; pauses {pauses:?}");
    let undone = withdraw(&["--undo"])?;
    assert!(took.max(undone) < Duration::from_secs(20), "{took:?} {undone:?}");
    let reply = server.get(PATH).await?;
    let cache_control = "public, max-age=0, s-maxage=3600, stale-while-revalidate=60, stale-if-error=86400";
    assert_eq!(reply.header("cache-control"), cache_control);
    assert_eq!(reply.header("surrogate-key"), "video_site-dyke-walk-0");
    assert_eq!(reply.header("cache-tag"), "video_site-dyke-walk-0");
    assert_eq!(reply.header("vary"), "accept-encoding, authorization");
    Ok(())
}
