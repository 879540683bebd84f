//! Fetches of new transcripts, compared with youtube-transcript-api, through the same replay proxy.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;

use crate::{
    http_client::{HttpClient, text},
    library::LibraryRun,
    platform::{platform, videos},
    process::{BenchServer, new_key, serve},
    report::{Goal, line, median, ratio},
};

/// Concurrent fetches.
const CONCURRENCY: usize = 32;
const ROUNDS: usize = 5;
/// Batches that are fetched with latency.
const BATCHES: usize = 11;
/// Fetches in a round, for each concurrent one: Verbatim's, and the peer's below. One at a time takes some more.
const OURS: usize = 10;
const PEERS: usize = 3;
const ALONE: usize = 6;
const LATENCY: Duration = Duration::from_millis(100);

/// A server behind a proxy, with a key for it.
pub(crate) struct FetchFixture {
    pub(crate) server: BenchServer,
    key: String,
    pub(crate) client: HttpClient,
    _data: TempDir,
}

/// Starts a server with these further settings; its data folder may have a database already.
pub(crate) fn start_fixture(
    data: TempDir,
    proxy: &ReplayProxy,
    more: &[(&'static str, String)],
) -> Result<FetchFixture> {
    let many = || "1000000".to_owned();
    let mut settings = vec![
        ("VERBATIM_UPSTREAM__PROXY", proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE", proxy.ca_file().display().to_string()),
        ("VERBATIM_UPSTREAM__CONCURRENCY", "64".to_owned()),
        ("VERBATIM_LIMITS__FREE_PER_MONTH", many()),
        ("VERBATIM_LIMITS__SERVICE_PER_DAY", many()),
        ("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "10000".to_owned()),
        ("VERBATIM_LOG__LEVEL", "warn".to_owned()),
    ];
    settings.extend_from_slice(more);
    let key = new_key(data.path(), &[])?;
    Ok(FetchFixture { server: serve(data.path(), &settings)?, key, client: HttpClient::new(), _data: data })
}

impl FetchFixture {
    /// Fetches these videos, `concurrency` at a time; returns the wall time.
    pub(crate) async fn fetch(&self, videos: &[String], concurrency: usize) -> Result<Duration> {
        let bearer = format!("Bearer {}", self.key);
        let started = Instant::now();
        let one = |video: String| {
            let (fixture, bearer) = (self, bearer.clone());
            async move {
                let path = format!("/api/transcript?v={video}");
                let headers = [("authorization", bearer.as_str())];
                let body = text(&fixture.client, fixture.server.address(), &path, &headers).await?;
                ensure!(body.contains("\"fromCache\":false,"), "{}", &body[..body.len().min(400)]);
                Ok(())
            }
        };
        stream::iter(videos.to_vec()).map(one).buffer_unordered(concurrency).try_collect::<()>().await?;
        Ok(started.elapsed())
    }
}

/// The peer's Python, installed below `target` if it is missing; `None` without Python.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peer/venv");
    let python = folder.join("bin/python");
    let has_peer = || {
        let import = Command::new(&python).args(["-c", "import youtube_transcript_api"]).output();
        import.is_ok_and(|output| output.status.success())
    };
    if has_peer() {
        return Some(python);
    }
    Command::new("python3").args(["-m", "venv"]).arg(&folder).status().ok()?;
    let wanted = ["-m", "pip", "install", "--quiet", "youtube-transcript-api==1.2.5"];
    Command::new(&python).args(wanted).status().ok()?;
    has_peer().then_some(python)
}

/// Measures this many fetches of the peer, `concurrency` at a time; returns the cost of each.
fn peer(python: &Path, proxy: &ReplayProxy, count: usize, concurrency: usize) -> Result<FetchCost> {
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peer.py"))
        .args(["peer--", &count.to_string(), &concurrency.to_string()])
        .env("HTTPS_PROXY", proxy.url())
        .env("REQUESTS_CA_BUNDLE", proxy.ca_file())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the peer: {text}{}", String::from_utf8_lossy(&output.stderr));
    let (cpu, wall) = text.trim().split_once(' ').context("no output of the peer")?;
    let each = |seconds: &str| anyhow::Ok(seconds.parse::<f64>()? / count as f64);
    Ok((each(cpu)?, each(wall)?))
}

/// CPU and wall seconds per fetch.
type FetchCost = (f64, f64);

/// One round: the library, the server, and the peer if it is installed.
struct FetchRound {
    library: FetchCost,
    server: FetchCost,
    /// NaN without a peer.
    peer: FetchCost,
}

impl FetchRound {
    async fn run(
        library: &mut LibraryRun,
        fixture: &FetchFixture,
        videos: &[String],
        concurrency: usize,
        peer: FetchCost,
    ) -> Result<Self> {
        let each = |seconds: f64| seconds / videos.len() as f64;
        let (cpu, wall) = library.fetch(videos.len())?;
        let library = (each(cpu), each(wall));
        let before = fixture.server.cpu_seconds()?;
        let wall = each(fixture.fetch(videos, concurrency).await?.as_secs_f64());
        Ok(Self { library, server: (each(fixture.server.cpu_seconds()? - before), wall), peer })
    }
}

/// Measures CPU and throughput of `concurrency` fetches at a time without latency, compared with the peer.
async fn cost(concurrency: usize, [library_goal, server_goal]: [Goal; 2]) -> Result<()> {
    let batches = if concurrency == 1 { ALONE } else { concurrency };
    let (ours, peers) = (OURS * batches, PEERS * batches);
    let videos_of_ours = videos("ours--", ours * (ROUNDS + 1));
    let mut all = videos("peer--", peers + concurrency);
    all.extend_from_slice(&videos_of_ours);
    let proxy = platform(&all, Duration::ZERO)?;
    let fixture = start_fixture(TempDir::new()?, &proxy, &[])?;
    let mut library = LibraryRun::start(&proxy, "ours--", concurrency)?;
    let python = python();
    let mut rounds = Vec::new();
    for some in videos_of_ours.chunks(ours) {
        let peer = python.as_deref().map(|python| peer(python, &proxy, peers, concurrency)).transpose()?;
        let peer = peer.unwrap_or((f64::NAN, f64::NAN));
        rounds.push(FetchRound::run(&mut library, &fixture, some, concurrency, peer).await?);
    }
    // The first round opens the connections.
    rounds.remove(0);
    println!("fetch, {concurrency} at once");
    let of = |figure: fn(&FetchRound) -> f64| median(rounds.iter().map(figure).collect());
    line("the library's CPU", of(|round| round.library.0 * 1e3), "ms a fetch");
    line("the library's throughput", of(|round| 1.0 / round.library.1), "a second");
    line("the server's CPU", of(|round| round.server.0 * 1e3), "ms a fetch");
    line("the server's throughput", of(|round| 1.0 / round.server.1), "a second");
    if python.is_none() {
        println!("no Python with youtube-transcript-api: the peer is not measured");
        return Ok(());
    }
    line("the peer's CPU", of(|round| round.peer.0 * 1e3), "ms a fetch");
    line("the peer's throughput", of(|round| 1.0 / round.peer.1), "a second");
    ratio("the library's CPU to the peer", of(|round| round.library.0 / round.peer.0), library_goal);
    ratio("the server's CPU to the peer", of(|round| round.server.0 / round.peer.0), server_goal);
    let throughput = of(|round| round.peer.1 / round.library.1);
    ratio("the library's throughput to the peer", throughput, Goal::None);
    let throughput = of(|round| round.peer.1 / round.server.1);
    ratio("the server's throughput to the peer", throughput, Goal::None);
    Ok(())
}

/// Measures 32 concurrent fetches of two successive requests with a latency of 100 ms each.
async fn wall() -> Result<()> {
    let all = videos("wall--", CONCURRENCY * (BATCHES + 1));
    let proxy = platform(&all, LATENCY)?;
    let fixture = start_fixture(TempDir::new()?, &proxy, &[])?;
    let mut library = LibraryRun::start(&proxy, "wall--", CONCURRENCY)?;
    let floor = 2.0 * LATENCY.as_secs_f64();
    let (mut libraries, mut servers) = (Vec::new(), Vec::new());
    for some in all.chunks(CONCURRENCY) {
        libraries.push(library.fetch(CONCURRENCY)?.1);
        servers.push(fixture.fetch(some, CONCURRENCY).await?.as_secs_f64());
    }
    for (name, mut walls, goal) in [("the library", libraries, 1.15), ("the server", servers, 1.2)] {
        let cold = walls.remove(0);
        line(&format!("fetch with 100 ms of latency, 32 at once: {name}"), median(walls.clone()) * 1e3, "ms");
        line("the same without connections", cold * 1e3, "ms");
        ratio("with latency: wall time to the floor", median(walls) / floor, Goal::AtMost(goal));
    }
    Ok(())
}

/// Runs all measurements of fetches.
pub(crate) async fn run() -> Result<()> {
    cost(1, [Goal::None, Goal::AtMost(1.0 / 5.0)]).await?;
    cost(CONCURRENCY, [Goal::AtMost(1.0 / 12.0), Goal::AtMost(1.0 / 10.0)]).await?;
    wall().await
}
