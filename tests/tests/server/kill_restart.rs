//! The server is killed repeatedly during lookups: no acknowledged transcript and no allowance is lost.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use serde_json::json;
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use tokio::task::JoinSet;
use transcript_core::{
    PageRequest, Timestamp,
    ledger::{Ledger, audit},
};

use super::{
    harness::{ServerFixture, borrow_settings, create_keys, send_signal},
    platform::{platform_settings, start_platform},
};

/// How often the server is killed.
const KILLS: usize = 6;
/// How many lookups run at each kill.
const CALLERS: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn ledger_balances_equal_entries_after_every_kill() -> Result<()> {
    let videos: Vec<String> = (0..KILLS * CALLERS).map(|index| format!("killed-{index:04}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let proxy = start_platform(&names, Duration::from_millis(40))?;
    let data = TempDir::new()?;
    let mut settings = platform_settings(&proxy);
    settings.push(("VERBATIM_LIMITS__FREE_PER_MONTH".to_owned(), "1000".to_owned()));
    settings.push(("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR".to_owned(), "1000".to_owned()));
    let settings = borrow_settings(&settings);
    let keys = create_keys(&data, 4)?;

    let mut acknowledged = BTreeSet::new();
    for round in 0..KILLS {
        let server = Arc::new(ServerFixture::start(&data, &settings)?);
        let mut callers = JoinSet::new();
        for index in 0..CALLERS {
            let (server, key) = (Arc::clone(&server), keys[index % keys.len()].clone());
            let video = videos[round * CALLERS + index].clone();
            callers.spawn(async move {
                let reply = server.get_as(&key, &format!("/api/transcript?v={video}")).await;
                // A connection that the kill interrupted acknowledged nothing.
                reply.ok().filter(|reply| reply.json()["available"] == json!(true)).map(|_| video)
            });
        }
        // Each kill comes after another number of responses, while the other requests still run.
        for _ in 0..round * 3 {
            acknowledged.extend(callers.join_next().await.transpose()?.flatten());
        }
        kill(&server, &mut callers, &mut acknowledged).await?;
        check_ledger(&data).await?;
    }
    ensure!(!acknowledged.is_empty(), "no lookup ended before its server was killed");

    let server = ServerFixture::start(&data, &settings)?;
    for video in &acknowledged {
        let body = server.get(&format!("/api/transcript?v={video}")).await?.json();
        assert_eq!(body["available"], json!(true), "an acknowledged transcript was lost: {video}");
        assert_eq!(body["transcript"][0]["text"], json!(format!("This is {video}.")));
    }
    Ok(())
}

async fn kill(
    server: &ServerFixture,
    callers: &mut JoinSet<Option<String>>,
    acknowledged: &mut BTreeSet<String>,
) -> Result<()> {
    send_signal(server.pid(), "KILL")?;
    while let Some(video) = callers.join_next().await {
        acknowledged.extend(video?);
    }
    Ok(())
}

/// Checks that every balance equals the sum of its entries, also after overdue holds have expired, and that no hold is
/// charged twice. Returns the number of charges per wallet and hold.
pub(crate) async fn check_ledger(data: &TempDir) -> Result<usize> {
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    let far = Timestamp::from_millis(4_000_000_000_000);
    let mut holds = BTreeSet::new();
    for round in ["before expiry", "after expiry of overdue holds"] {
        holds.clear();
        for balance in store.wallets(PageRequest::first()).await?.items {
            let entries = store.entries(&balance.wallet, PageRequest::first()).await?.items;
            let differences =
                audit::compare(&balance, &entries).map_err(|seq| anyhow::anyhow!("entry {seq}"))?;
            assert!(differences.is_empty(), "{round}: {differences:?}");
            for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
                assert!(
                    holds.insert((entry.wallet.clone(), entry.cause.clone())),
                    "{round}: {} was charged twice",
                    entry.cause
                );
            }
        }
        while store.expire(far, 100).await? > 0 {}
    }
    store.close().await;
    Ok(holds.len())
}
