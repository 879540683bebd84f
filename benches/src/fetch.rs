//! Fetches of new transcripts, beside youtube-transcript-api, through the same replay proxy.

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
    ask::{Client, text},
    library::Library,
    platform::{platform, videos},
    process::{Server, new_key, serve},
    report::{Goal, line, median, ratio},
};

/// How many are fetched at once.
const AT_ONCE: usize = 32;
const ROUNDS: usize = 5;
/// How many batches are fetched with latency.
const BATCHES: usize = 11;
/// How many we fetch in a round, and how many the peer.
const OURS: usize = 320;
const PEERS: usize = 96;
const LATENCY: Duration = Duration::from_millis(100);

/// A server behind a proxy, with a key for it.
struct Stage {
    server: Server,
    key: String,
    client: Client,
    _data: TempDir,
}

fn stage(proxy: &ReplayProxy) -> Result<Stage> {
    let data = TempDir::new()?;
    let many = || "1000000".to_owned();
    let settings = [
        ("VERBATIM_UPSTREAM__PROXY", proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE", proxy.ca_file().display().to_string()),
        ("VERBATIM_UPSTREAM__CONCURRENCY", "64".to_owned()),
        ("VERBATIM_LIMITS__FREE_PER_MONTH", many()),
        ("VERBATIM_LIMITS__SERVICE_PER_DAY", many()),
        ("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "10000".to_owned()),
        ("VERBATIM_LOG__LEVEL", "warn".to_owned()),
    ];
    let key = new_key(data.path(), &[])?;
    Ok(Stage { server: serve(data.path(), &settings)?, key, client: Client::new(), _data: data })
}

impl Stage {
    /// Has these videos fetched, [`AT_ONCE`] at a time.
    async fn fetch(&self, videos: &[String]) -> Result<Duration> {
        let bearer = format!("Bearer {}", self.key);
        let begun = Instant::now();
        let one = |video: String| {
            let (stage, bearer) = (self, bearer.clone());
            async move {
                let path = format!("/api/transcript?v={video}");
                let headers = [("authorization", bearer.as_str())];
                let body = text(&stage.client, stage.server.address(), &path, &headers).await?;
                ensure!(body.contains("\"fromCache\":false,"), "{}", &body[..body.len().min(400)]);
                Ok(())
            }
        };
        stream::iter(videos.to_vec()).map(one).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        Ok(begun.elapsed())
    }
}

/// The peer's Python, installed below `target` when it is not there yet. None without Python.
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

/// What each of this many fetches costs the peer.
fn peer(python: &Path, proxy: &ReplayProxy, count: usize) -> Result<Cost> {
    let output = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/peer.py"))
        .args(["peer--", &count.to_string(), &AT_ONCE.to_string()])
        .env("HTTPS_PROXY", proxy.url())
        .env("REQUESTS_CA_BUNDLE", proxy.ca_file())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the peer: {text}{}", String::from_utf8_lossy(&output.stderr));
    let (cpu, wall) = text.trim().split_once(' ').context("the peer said nothing")?;
    let each = |seconds: &str| anyhow::Ok(seconds.parse::<f64>()? / count as f64);
    Ok((each(cpu)?, each(wall)?))
}

/// CPU and wall seconds a fetch.
type Cost = (f64, f64);

/// One round: the library, the server, and the peer where there is one.
struct Round {
    library: Cost,
    server: Cost,
    /// Nothing that can be compared with, where there is no peer.
    peer: Cost,
}

impl Round {
    async fn run(library: &mut Library, stage: &Stage, videos: &[String], peer: Cost) -> Result<Self> {
        let each = |seconds: f64| seconds / videos.len() as f64;
        let (cpu, wall) = library.fetch(videos.len())?;
        let library = (each(cpu), each(wall));
        let before = stage.server.cpu_seconds()?;
        let wall = each(stage.fetch(videos).await?.as_secs_f64());
        Ok(Self { library, server: (each(stage.server.cpu_seconds()? - before), wall), peer })
    }
}

/// CPU and throughput without latency, beside the peer.
async fn cost() -> Result<()> {
    let ours = videos("ours--", OURS * (ROUNDS + 1));
    let mut all = videos("peer--", PEERS + AT_ONCE);
    all.extend_from_slice(&ours);
    let proxy = platform(&all, Duration::ZERO)?;
    let stage = stage(&proxy)?;
    let mut library = Library::start(&proxy, "ours--", AT_ONCE)?;
    let python = python();
    let mut rounds = Vec::new();
    for some in ours.chunks(OURS) {
        let peer = python.as_deref().map(|python| peer(python, &proxy, PEERS)).transpose()?;
        rounds.push(Round::run(&mut library, &stage, some, peer.unwrap_or((f64::NAN, f64::NAN))).await?);
    }
    // The first one makes the connections.
    rounds.remove(0);
    let of = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure).collect());
    line("fetch: the library's CPU", of(|round| round.library.0 * 1e3), "ms a fetch");
    line("fetch: the library's throughput, 32 at once", of(|round| 1.0 / round.library.1), "a second");
    line("fetch: the server's CPU", of(|round| round.server.0 * 1e3), "ms a fetch");
    line("fetch: the server's throughput, 32 at once", of(|round| 1.0 / round.server.1), "a second");
    if python.is_none() {
        println!("there is no Python with youtube-transcript-api: nothing to compare with");
        return Ok(());
    }
    line("fetch: the peer's CPU", of(|round| round.peer.0 * 1e3), "ms a fetch");
    line("fetch: the peer's throughput, 32 at once", of(|round| 1.0 / round.peer.1), "a second");
    let goal = Goal::AtMost(1.0 / 12.0);
    ratio("fetch: the library's CPU beside the peer", of(|round| round.library.0 / round.peer.0), goal);
    ratio("fetch: the server's CPU beside the peer", of(|round| round.server.0 / round.peer.0), goal);
    let throughput = of(|round| round.peer.1 / round.library.1);
    ratio("fetch: the library's throughput beside the peer", throughput, Goal::None);
    let throughput = of(|round| round.peer.1 / round.server.1);
    ratio("fetch: the server's throughput beside the peer", throughput, Goal::None);
    Ok(())
}

/// 32 at once when every answer takes 100 ms: two requests each, one after the other.
async fn wall() -> Result<()> {
    let all = videos("wall--", AT_ONCE * (BATCHES + 1));
    let proxy = platform(&all, LATENCY)?;
    let stage = stage(&proxy)?;
    let mut library = Library::start(&proxy, "wall--", AT_ONCE)?;
    let floor = 2.0 * LATENCY.as_secs_f64();
    let (mut libraries, mut servers) = (Vec::new(), Vec::new());
    for some in all.chunks(AT_ONCE) {
        libraries.push(library.fetch(AT_ONCE)?.1);
        servers.push(stage.fetch(some).await?.as_secs_f64());
    }
    for (who, mut walls) in [("the library", libraries), ("the server", servers)] {
        let cold = walls.remove(0);
        line(&format!("fetch with 100 ms of latency, 32 at once: {who}"), median(walls.clone()) * 1e3, "ms");
        line("the same without connections", cold * 1e3, "ms");
        ratio("with latency: wall time beside the floor", median(walls) / floor, Goal::AtMost(1.15));
    }
    Ok(())
}

/// All measurements of fetches.
pub(crate) async fn run() -> Result<()> {
    cost().await?;
    wall().await
}
