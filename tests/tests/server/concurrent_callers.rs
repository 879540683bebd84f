//! Concurrent callers of one video: one fetch, one charge.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use serde_json::json;
use tempfile::TempDir;
use tokio::{sync::Semaphore, task::JoinSet};

use super::{
    harness::{create_keys, wait_until},
    platform::{fetch_count, gated_platform, serve_platform, start_platform},
};

const VIDEO: &str = "dyke-walk-0";

#[tokio::test(flavor = "multi_thread")]
async fn lookup_500_callers_with_50_keys_cost_one_fetch_and_one_credit() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::from_millis(300))?;
    let data = TempDir::new()?;
    let server = Arc::new(serve_platform(&data, &proxy, &[])?);
    let keys = create_keys(&data, 50)?;
    assert_eq!(keys.len(), 50);

    let mut callers = JoinSet::new();
    for index in 0..500 {
        let (server, key) = (Arc::clone(&server), keys[index % keys.len()].clone());
        callers.spawn(async move { server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await });
    }
    let mut fetched = 0;
    while let Some(reply) = callers.join_next().await {
        let body = reply??.json();
        assert_eq!(body["available"], json!(true), "{body}");
        assert_eq!(body["transcript"].as_array().map(Vec::len), Some(3));
        fetched += usize::from(body["fromCache"] == json!(false));
    }
    assert_eq!(fetched, 1, "exactly one caller gets a response that is not from the cache");
    assert_eq!(fetch_count(&proxy, VIDEO), 1);

    let mut used = 0;
    for key in &keys {
        used += server.get_as(key, "/api/keys/me").await?.json()["used"].as_u64().unwrap_or(99);
    }
    assert_eq!(used, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_disconnected_caller_is_charged_for_archived_transcript() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = gated_platform(&[VIDEO], &gate)?;
    let data = TempDir::new()?;
    let mut server = serve_platform(&data, &proxy, &[])?;
    let key = create_keys(&data, 1)?.remove(0);
    let path = format!("/api/transcript?v={VIDEO}");
    // The caller disconnects before the platform responds; the shutdown waits for the fetch.
    let platform_request =
        wait_until("no request reached the platform", async || Ok(fetch_count(&proxy, VIDEO) == 1));
    tokio::select! {
        reply = server.get_as(&key, &path) => bail!("response before the platform responded: {}", reply?.text()),
        platform_request = platform_request => platform_request?,
    }
    gate.add_permits(1);
    assert!(server.stop()?.success());

    let server = serve_platform(&data, &proxy, &[])?;
    assert_eq!(server.get(&path).await?.json()["available"], json!(true));
    assert_eq!(server.get_as(&key, "/api/keys/me").await?.json()["used"], json!(1));
    assert_eq!(fetch_count(&proxy, VIDEO), 1);
    Ok(())
}
