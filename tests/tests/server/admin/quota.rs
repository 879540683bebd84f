//! Quota, expiry and request counts of keys.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::TestStorage;
use crate::server::{
    harness::{EXAMPLE, ServerFixture, wait_until},
    postgres::PostgresFixture,
};

const VIDEO: &str = "L1ghth0use1";
const LOOKUP: &str = "/api/transcript?v=L1ghth0use1";
/// Interval at which a server stores the counts, and some time for a slow machine.
const COUNTED_WITHIN: Duration = Duration::from_secs(15);

fn prepare(storage: &TestStorage, arguments: &[&str]) -> Result<String> {
    storage.stdout(&["import", EXAMPLE, "--video", VIDEO, "--lang", "en"])?;
    Ok(storage.stdout(&[&["keys", "create"], arguments].concat())?.trim().to_owned())
}

/// The requests of the first key.
fn requests(storage: &TestStorage) -> Result<Value> {
    Ok(storage.json(&["keys", "list", "--json"])?[0]["requests"].clone())
}

/// Sends lookups until one is refused; returns how many were admitted.
async fn admitted(server: &ServerFixture, key: &str, max: u64) -> Result<u64> {
    for count in 0..max {
        let reply = server.get_as(key, LOOKUP).await?;
        if reply.status == 429 {
            return Ok(count);
        }
        assert_eq!((reply.status.as_u16(), &reply.json()["available"]), (200, &json!(true)));
    }
    Ok(max)
}

#[tokio::test(flavor = "multi_thread")]
async fn key_quota_is_exact_and_survives_restart() -> Result<()> {
    for storage in TestStorage::all()? {
        let key = prepare(&storage, &["--quota", "12/day"])?;
        let mut server = storage.start()?;
        assert_eq!(admitted(&server, &key, 5).await?, 5);
        // A graceful stop stores the counts.
        assert!(server.stop()?.success());
        let counts = requests(&storage)?;
        assert_eq!(
            (&counts["total"], &counts["today"], &counts["thisMonth"]),
            (&json!(5), &json!(5), &json!(5))
        );
        assert!(counts["lastAt"].is_string());

        let server = storage.start()?;
        assert_eq!(admitted(&server, &key, 99).await?, 7);
        for path in [LOOKUP, "/api/transcript?v=L1ghth0use1&format=text", "/api/transcript?v=unknown-id0"] {
            let refused = server.get_as(&key, path).await?;
            assert_eq!(refused.status, 429, "{path}");
            assert_eq!(refused.header("content-type"), "application/problem+json");
            assert_eq!(refused.json()["status"], 429);
            let wait: u64 = refused.header("retry-after").parse()?;
            assert!((1..=86_400).contains(&wait), "{wait}");
            let detail = refused.json()["detail"].as_str().context("detail")?.to_owned();
            assert!(
                detail.starts_with("This API key has used its 12 requests of the day. Try again in "),
                "{detail}"
            );
        }
        assert_eq!(server.get(LOOKUP).await?.status, 200, "a caller without a key is not refused");
        assert_eq!(server.get_as(&key, "/api/keys/me").await?.status, 200, "the status does not count");
        let started = Instant::now();
        wait_until("the counts are not stored", async || Ok(requests(&storage)?["total"] == 12)).await?;
        assert!(started.elapsed() < COUNTED_WITHIN, "{:?}", started.elapsed());
        let table = storage.stdout(&["keys", "list"])?;
        assert!(table.contains("12/12/day"), "{table}");

        let id = storage.json(&["keys", "list", "--json"])?[0]["id"].as_str().context("id")?.to_owned();
        storage.stdout(&["keys", "set", &id, "--quota", "14/day"])?;
        assert_eq!(admitted(&server, &key, 99).await?, 2, "a changed quota holds at once");
        storage.stdout(&["keys", "set", &id, "--no-quota"])?;
        assert_eq!(admitted(&server, &key, 10).await?, 10);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn key_expired_is_refused_with_sentence() -> Result<()> {
    for storage in TestStorage::all()? {
        let key = prepare(&storage, &["--expires", "3s"])?;
        let expires = storage.json(&["keys", "list", "--json"])?[0]["expires"].clone();
        let server = storage.start()?;
        wait_until("the key does not expire", async || Ok(server.get_as(&key, LOOKUP).await?.status != 200))
            .await?;
        let sentence = format!("This API key expired at {}", expires.as_str().context("expires")?);
        for path in [LOOKUP, "/api/transcript?v=unknown-id0&format=md", "/api/keys/me"] {
            let refused = server.get_as(&key, path).await?;
            assert_eq!(refused.status, 401, "{path}");
            assert_eq!(
                refused.header("www-authenticate"),
                "Bearer realm=\"verbatim\", error=\"invalid_token\""
            );
            let detail = refused.json()["detail"].as_str().context("detail")?.to_owned();
            assert!(detail.starts_with(&sentence), "{detail}");
        }
        assert_eq!(server.get(LOOKUP).await?.status, 200);
        let id = storage.json(&["keys", "list", "--json"])?[0]["id"].as_str().context("id")?.to_owned();
        storage.stdout(&["keys", "set", &id, "--no-expiry"])?;
        assert_eq!(server.get_as(&key, LOOKUP).await?.status, 200, "an expiry can be removed");
    }
    Ok(())
}

/// A killed server loses counts, but never more than those of one interval.
#[tokio::test(flavor = "multi_thread")]
async fn key_counts_lost_by_kill_are_those_of_one_interval() -> Result<()> {
    let storage = TestStorage::Files(TempDir::new()?);
    let key = prepare(&storage, &["--quota", "1000/day"])?;
    let server = storage.start()?;
    assert_eq!(admitted(&server, &key, 20).await?, 20);
    wait_until("the counts are not stored", async || Ok(requests(&storage)?["total"] == 20)).await?;
    assert_eq!(admitted(&server, &key, 10).await?, 10);
    drop(server);
    let total = requests(&storage)?["total"].as_u64().context("total")?;
    assert!((20..=30).contains(&total), "{total}");
    Ok(())
}

/// Two servers exceed a quota together by what one admits within an interval, and not after it.
#[tokio::test(flavor = "multi_thread")]
async fn key_quota_on_two_servers_is_exceeded_by_one_interval() -> Result<()> {
    let storage = TestStorage::Postgres(PostgresFixture::new(None)?);
    let key = prepare(&storage, &["--quota", "30/day"])?;
    let (one, two) = (storage.start()?, storage.start()?);
    assert_eq!(admitted(&one, &key, 30).await?, 30);
    let before_exchange = admitted(&two, &key, 60).await?;
    assert!(before_exchange <= 30, "a server alone admits {before_exchange} of 30");
    wait_until("the counts are not stored", async || {
        Ok(requests(&storage)?["total"].as_u64() == Some(30 + before_exchange))
    })
    .await?;
    assert_eq!((admitted(&one, &key, 9).await?, admitted(&two, &key, 9).await?), (0, 0));
    Ok(())
}
