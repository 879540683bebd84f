//! Many callers at once: one fetch, one charge.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use serde_json::json;
use tempfile::TempDir;
use tokio::{sync::Semaphore, task::JoinSet};

use super::{
    harness::{Server, borrowed, keys, until},
    platform::{fetches, held_platform, platform, settings},
};

const VIDEO: &str = "dyke-walk-0";

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_callers_with_fifty_keys_cost_one_fetch_and_one_allowance() -> Result<()> {
    let proxy = platform(&[VIDEO], Duration::from_millis(300))?;
    let data = TempDir::new()?;
    let settings = settings(&proxy);
    let settings = borrowed(&settings);
    let server = Arc::new(Server::start(&data, &settings)?);
    let keys = keys(&data, 50)?;
    assert_eq!(keys.len(), 50);

    let mut callers = JoinSet::new();
    for place in 0..500 {
        let (server, key) = (Arc::clone(&server), keys[place % keys.len()].clone());
        callers.spawn(async move { server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await });
    }
    let mut fetched = 0;
    while let Some(reply) = callers.join_next().await {
        let body = reply??.json();
        assert_eq!(body["available"], json!(true), "{body}");
        assert_eq!(body["transcript"].as_array().map(Vec::len), Some(3));
        fetched += usize::from(body["fromCache"] == json!(false));
    }
    assert_eq!(fetched, 1, "exactly one caller's own fetch brought it");
    assert_eq!(fetches(&proxy, VIDEO), 1);

    let mut used = 0;
    for key in &keys {
        used += server.get_as(key, "/api/keys/me").await?.json()["used"].as_u64().unwrap_or(99);
    }
    assert_eq!(used, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_leaves_is_charged_for_what_was_archived() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = held_platform(&[VIDEO], &gate)?;
    let data = TempDir::new()?;
    let settings = settings(&proxy);
    let settings = borrowed(&settings);
    let mut server = Server::start(&data, &settings)?;
    let key = keys(&data, 1)?.remove(0);
    let path = format!("/api/transcript?v={VIDEO}");
    // The caller hangs up before the platform has answered; a stop waits for the work.
    let asked = until("the platform was never asked", async || Ok(fetches(&proxy, VIDEO) == 1));
    tokio::select! {
        reply = server.get_as(&key, &path) => bail!("an answer before there was one: {}", reply?.text()),
        asked = asked => asked?,
    }
    gate.add_permits(1);
    assert!(server.stop()?.success());

    let server = Server::start(&data, &settings)?;
    assert_eq!(server.get(&path).await?.json()["available"], json!(true));
    assert_eq!(server.get_as(&key, "/api/keys/me").await?.json()["used"], json!(1));
    assert_eq!(fetches(&proxy, VIDEO), 1);
    Ok(())
}
