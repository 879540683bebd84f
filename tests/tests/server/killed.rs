//! The server is killed in the middle of look-ups, again and again: no word and no allowance is lost.

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
    harness::{Server, borrowed, keys},
    platform::{platform, settings},
};

/// How often the server is killed.
const LIVES: usize = 6;
/// How many look-ups are under way when it is.
const CALLERS: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn balances_equal_their_entries_after_every_kill() -> Result<()> {
    let videos: Vec<String> = (0..LIVES * CALLERS).map(|place| format!("killed-{place:04}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let proxy = platform(&names, Duration::from_millis(40))?;
    let data = TempDir::new()?;
    let mut settings = settings(&proxy);
    settings.push(("VERBATIM_LIMITS__FREE_PER_MONTH".to_owned(), "1000".to_owned()));
    settings.push(("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR".to_owned(), "1000".to_owned()));
    let settings = borrowed(&settings);
    let keys = keys(&data, 4)?;

    let mut acknowledged = BTreeSet::new();
    for life in 0..LIVES {
        let server = Arc::new(Server::start(&data, &settings)?);
        let mut callers = JoinSet::new();
        for place in 0..CALLERS {
            let (server, key) = (Arc::clone(&server), keys[place % keys.len()].clone());
            let video = videos[life * CALLERS + place].clone();
            callers.spawn(async move {
                let reply = server.get_as(&key, &format!("/api/transcript?v={video}")).await;
                // A connection cut by the kill acknowledged nothing.
                reply.ok().filter(|reply| reply.json()["available"] == json!(true)).map(|_| video)
            });
        }
        // At another point of the work each time: after so many answers, the others being under way.
        for _ in 0..life * 3 {
            acknowledged.extend(callers.join_next().await.transpose()?.flatten());
        }
        kill(&server, &mut callers, &mut acknowledged).await?;
        check_ledger(&data).await?;
    }
    ensure!(!acknowledged.is_empty(), "no look-up ended before its server was killed");

    let server = Server::start(&data, &settings)?;
    for video in &acknowledged {
        let body = server.get(&format!("/api/transcript?v={video}")).await?.json();
        assert_eq!(body["available"], json!(true), "an acknowledged transcript was lost: {video}");
        assert_eq!(body["transcript"][0]["text"], json!(format!("This is {video}.")));
    }
    Ok(())
}

async fn kill(
    server: &Server,
    callers: &mut JoinSet<Option<String>>,
    acknowledged: &mut BTreeSet<String>,
) -> Result<()> {
    let pid = server.pid().to_string();
    std::process::Command::new("kill").args(["-KILL", &pid]).status()?;
    while let Some(video) = callers.join_next().await {
        acknowledged.extend(video?);
    }
    Ok(())
}

/// Every balance is what its entries add up to; what was held is returned once it is overdue, and every
/// charge of a key is one transcript. Returns how many charges of a wallet there are.
pub(crate) async fn check_ledger(data: &TempDir) -> Result<usize> {
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    let far = Timestamp::from_millis(4_000_000_000_000);
    let mut holds = BTreeSet::new();
    for round in ["as it was left", "after what was held is overdue"] {
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
