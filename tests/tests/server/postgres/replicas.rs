//! State shared by several servers on one database.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use http::Method;
use serde_json::json;
use tokio::{sync::Semaphore, task::JoinSet};

use super::PostgresFixture;
use crate::server::{
    harness::{audit_ledger, create_keys_with, psql, run_ok, send_signal, verbatim_with, wait_until},
    platform::{fetch_count, gated_platform, start_platform},
    v1::mail_client::{MailClient, create_account, key_from, remaining_credits},
};

const VIDEO: &str = "dyke-walk-0";

/// Keys of the lookup API, created by the operator's command on the same database.
fn keys(fixture: &PostgresFixture, count: usize) -> Result<Vec<String>> {
    create_keys_with(&fixture.data, count, &fixture.settings())
}

#[tokio::test(flavor = "multi_thread")]
async fn key_created_on_one_server_works_and_ends_on_both() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let fixture = PostgresFixture::new(Some(&proxy))?;
    let (one, two) = (fixture.start_server()?, fixture.start_server()?);
    let key = create_account(&one, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    for (left, server) in [&two, &one, &two, &one].into_iter().enumerate() {
        let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
        assert_eq!(reply.header("x-credits-remaining"), (199 - left).to_string());
    }
    assert_eq!((remaining_credits(&one, &key).await?, remaining_credits(&two, &key).await?), (196, 196));
    assert_eq!(fetch_count(&proxy, VIDEO), 1);

    let rotated = two.send_as(&key, Method::POST, "/api/v1/rotate-key", &[], "").await?;
    let new = key_from(&rotated)?;
    for server in [&one, &two] {
        assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
        let dead = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
        assert_eq!(dead.status, 401, "a cached key was charged without a new check");
        assert_eq!(server.get_as(&new, "/api/v1/me").await?.status, 200);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_is_shared_by_servers() -> Result<()> {
    let fixture = PostgresFixture::new(None)?;
    let servers = [fixture.start_server()?, fixture.start_server()?];
    let key = create_account(&servers[0], &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    let mut statuses = Vec::new();
    for index in 0..12 {
        statuses.push(servers[index % 2].get_as(&key, "/api/v1/me").await?.status.as_u16());
    }
    assert_eq!(statuses, [[200; 10].as_slice(), &[429; 2]].concat());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_on_three_servers_costs_one_fetch_and_one_credit() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::from_millis(300))?;
    let fixture = PostgresFixture::new(Some(&proxy))?;
    let servers = Arc::new([fixture.start_server()?, fixture.start_server()?, fixture.start_server()?]);
    let keys = keys(&fixture, 20)?;
    let mut callers = JoinSet::new();
    for index in 0..200 {
        let (servers, key) = (Arc::clone(&servers), keys[index % keys.len()].clone());
        callers.spawn(
            async move { servers[index % 3].get_as(&key, &format!("/api/transcript?v={VIDEO}")).await },
        );
    }
    let mut fetched = 0;
    while let Some(reply) = callers.join_next().await {
        let body = reply??.json();
        assert_eq!(body["available"], json!(true), "{body}");
        fetched += usize::from(body["fromCache"] == json!(false));
    }
    assert_eq!((fetched, fetch_count(&proxy, VIDEO)), (1, 1), "fetches over all servers");
    let mut used = 0;
    for key in &keys {
        used += servers[1].get_as(key, "/api/keys/me").await?.json()["used"].as_u64().unwrap_or(99);
    }
    assert_eq!(used, 1);
    audit_ledger(fixture.data.path(), &fixture.settings())
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_transcript_is_gone_from_all_servers() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let fixture = PostgresFixture::new(Some(&proxy))?;
    let servers = [fixture.start_server()?, fixture.start_server()?];
    let key = keys(&fixture, 1)?.remove(0);
    let path = format!("/api/transcript?v={VIDEO}");
    assert_eq!(servers[0].get_as(&key, &path).await?.json()["available"], json!(true));
    for server in &servers {
        // Often enough to be cached.
        for _ in 0..3 {
            assert_eq!(server.get(&path).await?.json()["available"], json!(true));
        }
    }
    let withdraw = ["archive", "withdraw", VIDEO];
    run_ok(verbatim_with(fixture.data.path(), &fixture.settings(), &withdraw), b"")?;
    // The command ended 50 ms after its commit: no server returns the transcript from then on.
    for server in &servers {
        assert_eq!(server.get(&path).await?.json()["available"], json!(false));
    }
    Ok(())
}

/// A promoted standby may lack the last commits, with them the last changes of the counter.
#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_after_failover_that_lost_changes_is_seen() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let fixture = PostgresFixture::new(Some(&proxy))?;
    let settings = fixture.settings();
    let url = settings.iter().find(|(name, _)| *name == "VERBATIM_STORAGE__URL").map(|(_, url)| *url);
    let change = |sql: &str| psql(url.unwrap_or_default(), &format!("UPDATE changes SET count = {sql}"));
    let server = fixture.start_server()?;
    change("count + 10")?;
    let key = create_account(&server, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    let sold = format!("/api/v1/transcript?video_id={VIDEO}");
    let free = [format!("/api/transcript?v={VIDEO}"), format!("/watch/video_site/{VIDEO}")];
    let words = "The sheep keep the grass short.";
    // Often enough to be cached.
    for _ in 0..3 {
        assert_eq!(server.get_as(&key, &sold).await?.status, 200);
        for path in &free {
            assert!(server.get(path).await?.text().contains(words), "{path}");
        }
    }
    change("count - 3")?;
    // The counter is read again, under traffic.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(server.get(&free[0]).await?.text().contains(words));
    run_ok(verbatim_with(fixture.data.path(), &settings, &["archive", "withdraw", VIDEO]), b"")?;
    // Two further changes: the counter is where it was when the responses were cached.
    for _ in 0..3 {
        for path in &free {
            assert!(!server.get(path).await?.text().contains(words), "{path}");
        }
        assert_eq!(server.get_as(&key, &sold).await?.status, 404);
        change("count + 1")?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// The lookup waits 25 seconds, and the lease of the killed fetch ends after 15.
#[tokio::test(flavor = "multi_thread")]
async fn fetch_of_killed_server_is_done_by_another() -> Result<()> {
    let gate = Arc::new(Semaphore::new(0));
    let proxy = gated_platform(&[VIDEO], &gate)?;
    let fixture = PostgresFixture::new(Some(&proxy))?;
    let servers = [Arc::new(fixture.start_server()?), Arc::new(fixture.start_server()?)];
    let key = keys(&fixture, 1)?.remove(0);
    let path = format!("/api/transcript?v={VIDEO}");
    let killed = {
        let (server, key, path) = (Arc::clone(&servers[0]), key.clone(), path.clone());
        tokio::spawn(async move { server.get_as(&key, &path).await })
    };
    wait_until("no fetch has started", async || Ok(fetch_count(&proxy, VIDEO) > 0)).await?;
    send_signal(servers[0].pid(), "KILL")?;
    assert!(killed.await?.is_err(), "a killed server responded");
    gate.add_permits(1_000);
    let body = servers[1].get_as(&key, &path).await?.json();
    assert_eq!(body["available"], json!(true), "{body}");
    Ok(())
}
