//! Servers are killed under load of both APIs, and so is their database. Afterwards the ledger must be consistent and
//! match the history that each client recorded.
//!
//! `VERBATIM_KILLS=n` sets the number of kills per test; `VERBATIM_SEED=n` repeats the random choices, but not the
//! exact times.

mod client;
mod clients;
mod clock;
mod disk;
mod fleet;
mod history;
mod store;
mod verify;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio::{sync::watch, task::JoinSet};
use verbatim_tests::replay::ReplayProxy;

use super::{harness::read_number, platform};
use crate::simulation::seeded_rng::SeededRng;
use client::CrashClient;
use clients::CrashAccounts;
use clock::CORRECT;
use fleet::{FleetLog, ServerFleet};
use history::CallHistory;
use store::CrashStore;

/// Kills per test, unless `VERBATIM_KILLS` is set.
const KILLS: u64 = 20;
/// Concurrent clients; each has a key of either API.
const CLIENTS: usize = 16;
/// Videos that are archived from the start.
const ARCHIVED: usize = 12;
/// Videos per kill that no client has fetched yet.
const FRESH_PER_KILL: u64 = 20;
const FRESH_MAX: u64 = 2_000;
/// Latency of a platform response; a fetch is two responses.
const LATENCY: Duration = Duration::from_millis(15);
/// How long a server waits for a fetch before it responds that the fetch goes on.
const WAIT: Duration = Duration::from_secs(4);
/// Bounds of the pause between two kills, in milliseconds.
const PAUSE_MS: (u64, u64) = (40, 700);
/// The longest pause until there are more charges than kills.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// How long a database may be killed again and again. A hold whose end is not stored for a minute expires, and its
/// delivery is free: on a busy machine the database would be down for longer, but for moments that every retry misses.
const OUTAGE_MAX: Duration = Duration::from_secs(15);
/// How long it runs then: a retry with its timeout and the pause before it.
const UPTIME: Duration = Duration::from_secs(8);

/// The process that a test kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillTarget {
    /// One of the servers, which is restarted at once.
    Server,
    /// The database under the servers: all its processes, or an immediate shutdown.
    Database,
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_server_on_files_keeps_ledger_consistent() -> Result<()> {
    check_crashes(CrashStore::files()?, KillTarget::Server, &[CORRECT]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_server_on_postgres_keeps_ledger_consistent() -> Result<()> {
    check_crashes(CrashStore::postgres()?, KillTarget::Server, &[CORRECT]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_one_of_three_servers_keeps_ledger_consistent() -> Result<()> {
    check_crashes(CrashStore::postgres()?, KillTarget::Server, &[CORRECT; 3]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_database_of_two_servers_keeps_ledger_consistent() -> Result<()> {
    check_crashes(CrashStore::postgres()?, KillTarget::Database, &[CORRECT; 2]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_servers_with_wrong_clocks_keep_ledger_consistent() -> Result<()> {
    check_crashes(CrashStore::postgres()?, KillTarget::Server, &[CORRECT, 300, -300]).await
}

/// Kills while clients send requests to servers with clocks ahead by these seconds, then compares their histories with
/// the ledger.
async fn check_crashes(store: CrashStore, target: KillTarget, clocks: &[i64]) -> Result<()> {
    let seed = read_number("VERBATIM_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let kills = read_number("VERBATIM_KILLS").unwrap_or(KILLS);
    // Only the output of a failed test is shown.
    eprintln!("{target:?} of {clocks:?}, {kills} kills, seed {seed}");
    let rng = SeededRng::new(seed, 0);
    let archived: Vec<String> = (0..ARCHIVED).map(|index| format!("archive-{index:03}")).collect();
    let fresh = (0..(kills * FRESH_PER_KILL).min(FRESH_MAX)).map(|index| format!("fresh-{index:05}"));
    let fresh: Vec<String> = fresh.collect();
    let names: Vec<&str> = archived.iter().chain(&fresh).map(String::as_str).collect();
    let proxy = platform::start_platform(&names, LATENCY)?;
    let accounts = CrashAccounts::create(&store, CLIENTS).await?;
    let mut fleet = ServerFleet::start(&store, &settings(&store, &proxy), clocks).await?;
    archive_videos(&fleet, &accounts, &archived).await?;

    let (stop, stopped) = watch::channel(false);
    let shared = Arc::new(client::VideoPool::new(archived, fresh));
    let mut clients = JoinSet::new();
    for (index, account) in accounts.clients.iter().enumerate() {
        let rng = SeededRng::new(seed, 1 + index as u64);
        let client = CrashClient::new(account.clone(), fleet.log(), Arc::clone(&shared), rng);
        clients.spawn(client.run(stopped.clone()));
    }
    let mut outage = Instant::now();
    for kill in 0..kills {
        tokio::time::sleep(Duration::from_millis(PAUSE_MS.0 + rng.below(PAUSE_MS.1 - PAUSE_MS.0))).await;
        // On a busy machine servers would be killed before they charge anything.
        let busy_until = Instant::now() + BUSY_MAX;
        while shared.charged() <= kill && Instant::now() < busy_until {
            tokio::time::sleep(Duration::from_millis(PAUSE_MS.0)).await;
        }
        match target {
            KillTarget::Server => fleet.kill_and_start(rng.below(clocks.len() as u64) as usize).await?,
            KillTarget::Database => {
                if outage.elapsed() > OUTAGE_MAX {
                    tokio::time::sleep(UPTIME).await;
                    outage = Instant::now();
                }
                store.kill_and_start(kill % 2 == 0)?;
            }
        }
    }
    stop.send(true)?;
    let mut histories: Vec<CallHistory> = Vec::new();
    while let Some(history) = clients.join_next().await {
        match history? {
            Ok(history) => histories.push(history),
            Err(error) => {
                let entries = verify::describe(&store, &accounts).await;
                return Err(error.context(entries.unwrap_or_else(|unread| unread.to_string())));
            }
        }
    }
    fleet.stop()?;
    let charged: u64 = histories.iter().map(CallHistory::delivered).sum();
    let [interrupted, unanswered, replayed] = [
        histories.iter().map(|history| history.interrupted).sum::<u64>(),
        histories.iter().map(|history| history.unanswered).sum(),
        histories.iter().map(|history| history.replayed).sum(),
    ];
    eprintln!(
        "{charged} charged responses, {replayed} replays; {interrupted} requests interrupted, {unanswered} paid requests \
         without a response"
    );
    // A server whose database was killed still responds, with errors.
    let is_load = if target == KillTarget::Server { interrupted > 0 } else { unanswered > 0 };
    ensure!(charged > kills && is_load, "the load is too low");
    verify::check(&store, &accounts, &histories, &proxy).await
}

fn settings(store: &CrashStore, proxy: &ReplayProxy) -> Vec<(String, String)> {
    let mut settings = platform::platform_settings(proxy);
    settings.extend(store.settings());
    settings.push(("VERBATIM_LIMITS__WAIT".to_owned(), format!("{}s", WAIT.as_secs())));
    let more = [
        ("LIMITS__FREE_PER_MONTH", "1000000"),
        ("LIMITS__SERVICE_PER_DAY", "1000000"),
        ("LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "100000"),
        ("LIMITS__ATTEMPTS_PER_ACCOUNT_PER_HOUR", "100000"),
        ("PLANS__FREE__REQUESTS_PER_MINUTE", "100000"),
    ];
    settings.extend(more.map(|(name, value)| (format!("VERBATIM_{name}"), value.to_owned())));
    settings.push(("VERBATIM_PLANS__FREE__CREDITS".to_owned(), clients::MONTHLY.to_string()));
    settings
}

/// Archives the common videos with a key whose charges no check counts.
async fn archive_videos(fleet: &ServerFleet, accounts: &CrashAccounts, videos: &[String]) -> Result<()> {
    let addresses = fleet.log();
    for video in videos {
        let (server, path) = (addresses.wait_for_address(0).await, format!("/api/transcript?v={video}"));
        let reply = client::send(&addresses, &server, &accounts.uncounted_key, &path, None).await;
        ensure!(matches!(&reply, Ok(reply) if reply.json()["available"] == true), "{reply:?}");
    }
    Ok(())
}

/// The addresses of the servers, shared with the clients.
type ServerAddresses = Arc<FleetLog>;
