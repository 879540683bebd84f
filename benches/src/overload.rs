//! Load far beyond capacity, compared with the peak: 64 connections against 4,000.
//!
//! Beside it: a bare hyper server with the same response, which shows what the load generator and the kernel take for
//! 4,000 connections; the time of the health endpoint; and of paid requests while callers without a key use all
//! capacity.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::sleep};

use crate::{
    http_client::{HttpClient, get},
    lookup::bare_like,
    process::{BenchServer, ProcessLoad, wrk_tolerant},
    report::{Goal, line, median, ratio},
    v1_transcripts::{ChargedFixture, PATH},
};

const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_secs(4);
/// Connections at which the server reaches its peak.
const PEAK: u32 = 64;
/// Connections far beyond capacity.
const FAR: u32 = 4_000;
/// Pause between two requests of a probe.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// Requests one path again and again while another load runs.
struct Probe {
    task: JoinHandle<()>,
    latencies: Arc<Mutex<Vec<f64>>>,
}

impl Probe {
    fn start(server: &BenchServer, path: &'static str, key: Option<String>) -> Self {
        let (address, latencies) = (server.address().to_owned(), Arc::new(Mutex::new(Vec::new())));
        let recorded = Arc::clone(&latencies);
        let task = tokio::spawn(async move {
            let client = HttpClient::new();
            let bearer = key.map(|key| format!("Bearer {key}"));
            let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
            loop {
                let started = Instant::now();
                let response = get(&client, &address, path, &headers).await;
                let is_ok = response.is_ok_and(|response| response.status().is_success());
                // A request that fails counts as one without end.
                let latency = if is_ok { started.elapsed().as_secs_f64() * 1_000.0 } else { f64::INFINITY };
                recorded.lock().unwrap_or_else(PoisonError::into_inner).push(latency);
                sleep(PROBE_INTERVAL).await;
            }
        });
        Self { task, latencies }
    }

    /// Ends the requests; returns their times in milliseconds.
    fn end(self) -> Vec<f64> {
        self.task.abort();
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Measures everything.
pub(crate) async fn run() -> Result<()> {
    let fixture = ChargedFixture::open().await?;
    let server = &fixture.server;
    let look_up = |server: &BenchServer, connections| {
        let load = ProcessLoad { connections, script: None, variables: &[], time: TIME };
        let headers = ["Accept-Encoding: zstd"];
        tokio::task::block_in_place(|| wrk_tolerant(server, "/api/transcript?v=bench-00000", &headers, &load))
    };
    let folder = TempDir::new()?;
    let bare = bare_like(server, &[("accept-encoding", "zstd")], folder.path()).await?;
    measure("bare hyper server", &bare, Goal::None, |connections| look_up(&bare, connections)).await?;
    drop(bare);
    let archived = |connections| look_up(server, connections);
    let charged = |connections| tokio::task::block_in_place(|| fixture.overload(connections, PATH, TIME));
    measure("archived", server, Goal::AtLeast(0.8), archived).await?;
    measure("charged", server, Goal::AtLeast(0.8), charged).await?;

    // Paid requests beside a flood without keys.
    let probe = || Probe::start(server, PATH, Some(fixture.key(0)));
    let probe_alone = probe();
    sleep(TIME).await;
    let alone = probe_alone.end();
    let probe_beside = probe();
    archived(FAR)?;
    let beside = probe_beside.end();
    ensure!(beside.iter().all(|latency| latency.is_finite()), "a paid request failed");
    line("paid, alone: p50", median(alone.clone()), "ms");
    line("paid, beside 4,000 connections without key: p50", median(beside.clone()), "ms");
    line("the same: slowest", slowest(&beside), "ms");
    Ok(())
}

/// Measures a load at its peak and far beyond, in turns.
async fn measure(
    what: &str,
    server: &BenchServer,
    goal: Goal,
    load: impl Fn(u32) -> Result<(u64, f64)>,
) -> Result<()> {
    load(PEAK)?;
    let (mut peaks, mut ratios, mut health) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (_, peak) = load(PEAK)?;
        let probe = Probe::start(server, "/healthz", None);
        let (_, far) = load(FAR)?;
        health.extend(probe.end());
        peaks.push(peak);
        ratios.push(far / peak);
    }
    line(&format!("{what}, {PEAK} connections"), median(peaks), "a second");
    ratio(&format!("{what}, {FAR} connections: to these"), median(ratios), goal);
    line(&format!("{what}, {FAR} connections: health, p50"), median(health.clone()), "ms");
    line(&format!("{what}, {FAR} connections: health, slowest"), slowest(&health), "ms");
    Ok(())
}

fn slowest(latencies: &[f64]) -> f64 {
    latencies.iter().copied().fold(0.0, f64::max)
}
