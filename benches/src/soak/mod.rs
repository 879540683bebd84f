//! Hours of mixed load with faults: whether memory, descriptors and latency stay as they are.
//!
//! The baseline is the first tenth of the run. Clients that pay, look up, chat, leave, send garbage or read nothing use
//! one server; the platform fails now and then, and another program locks the database file.

mod clients;
mod platform;
mod samples;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::{
    clients::{ClientKind, SoakClients},
    samples::{ProcessSample, RequestLog},
};
use crate::{
    lookup::fill,
    process::{new_key, serve, verbatim},
    report::{Goal, line, ratio},
    v1_transcripts::{ACCOUNTS, accounts},
};

/// Archived videos that clients look up.
const ARCHIVED: u64 = 2_000;
/// How often another program locks the database, and for how long.
const LOCK_INTERVAL: Duration = Duration::from_secs(300);
const LOCK_TIME: Duration = Duration::from_secs(1);
const SAMPLE_INTERVAL: Duration = Duration::from_secs(60);

/// Runs the load for this long and prints a line each minute.
pub(crate) async fn run(minutes: u64) -> Result<()> {
    ensure!(minutes >= 2, "the load runs for at least two minutes");
    // No other code of this process has installed a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let data = TempDir::new()?;
    fill(data.path(), ARCHIVED).await?;
    let account_keys =
        accounts(data.path(), ACCOUNTS).await?.iter().map(|key| key.reveal().to_owned()).collect();
    let lookup_key = new_key(data.path(), &[])?;
    let fetches = minutes * 60 * ClientKind::FETCHES_PER_SECOND;
    let proxy = platform::start(usize::try_from(fetches)?)?;
    let many = || "100000000".to_owned();
    let settings = [
        ("VERBATIM_UPSTREAM__PROXY", proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE", proxy.ca_file().display().to_string()),
        ("VERBATIM_LIMITS__FREE_PER_MONTH", many()),
        ("VERBATIM_LIMITS__SERVICE_PER_DAY", many()),
        ("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "10000".to_owned()),
        ("VERBATIM_LIMITS__TOOL_CALLS_PER_NETWORK_PER_MINUTE", "10000".to_owned()),
        ("VERBATIM_LIMITS__ACCOUNTS_PER_DAY", many()),
        ("VERBATIM_PLANS__FREE__CREDITS", many()),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000".to_owned()),
        ("VERBATIM_LOG__LEVEL", "error".to_owned()),
    ];
    let server = serve(data.path(), &settings)?;
    let log = Arc::new(RequestLog::default());
    let clients = Arc::new(SoakClients::new(server.address(), account_keys, lookup_key, ARCHIVED, &log)?);

    let started = Instant::now();
    let end = started + Duration::from_secs(minutes * 60);
    let mut tasks = JoinSet::new();
    for kind in ClientKind::ALL {
        tasks.spawn(Arc::clone(&clients).run(kind, end));
    }
    tasks.spawn(lock_repeatedly(data.path().join("verbatim.db"), end));
    let mut process_samples = Vec::new();
    while Instant::now() < end {
        tokio::time::sleep(SAMPLE_INTERVAL.min(end.saturating_duration_since(Instant::now()))).await;
        let sample = ProcessSample::read(server.process_id(), started.elapsed())?;
        println!("{sample}; {}", log.end_minute());
        process_samples.push(sample);
    }
    let cpu_share = server.cpu_seconds()? / started.elapsed().as_secs_f64();
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    drop(server);

    print_summary(&log, &process_samples, cpu_share);
    check_ledger(data.path())?;
    ensure!(log.unexpected() == 0, "{} responses were unexpected", log.unexpected());
    Ok(())
}

fn print_summary(log: &RequestLog, process_samples: &[ProcessSample], cpu_share: f64) {
    println!("{}", log.statuses());
    line("CPU of the server", cpu_share * 100.0, "% of a core");
    // The first half fills caches.
    let (_, second_half) = process_samples.split_at(process_samples.len() / 2);
    let memory = samples::slope_per_hour(second_half, |sample| sample.anonymous_mib);
    line("slope of anonymous memory, second half", memory, "MiB an hour");
    let descriptors = samples::slope_per_hour(second_half, |sample| sample.descriptors);
    line("slope of descriptors, second half", descriptors, "an hour");
    for (what, [first, last]) in log.ends() {
        line(&format!("{what}: p99 in the first tenth"), first, "ms");
        ratio(&format!("{what}: p99 in the last tenth to the first"), last / first, Goal::None);
    }
}

/// Locks a database file again and again, as a backup program does.
async fn lock_repeatedly(file: std::path::PathBuf, end: Instant) -> Result<()> {
    while Instant::now() + LOCK_INTERVAL < end {
        tokio::time::sleep(LOCK_INTERVAL).await;
        let file = file.clone();
        let lock = move || -> Result<()> {
            let connection = Connection::open(file)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
            std::thread::sleep(LOCK_TIME);
            connection.execute_batch("ROLLBACK")?;
            Ok(())
        };
        tokio::task::spawn_blocking(lock).await??;
    }
    Ok(())
}

/// Recomputes every balance of the killed server.
fn check_ledger(data: &Path) -> Result<()> {
    let audit = verbatim(data, &["ledger", "audit"], &[])?.output()?;
    let text = String::from_utf8_lossy(&audit.stdout).into_owned();
    print!("{text}");
    ensure!(audit.status.success(), "the audit found differences");
    Ok(())
}
