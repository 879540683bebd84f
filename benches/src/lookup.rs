//! Lookups of archived transcripts, compared with a bare hyper server that sends the same bytes.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use http_body_util::BodyExt as _;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::archive::Archive as _;

use crate::{
    baseline_hyper, corpus,
    http_client::{HttpClient, get},
    process::{BenchServer, serve, verbatim, wrk},
    report::{Goal, line, median, ratio},
};

/// Number of rounds; each measures every server once.
const ROUNDS: usize = 7;
/// Duration of a server's load in a round.
const TIME: Duration = Duration::from_secs(2);
/// More bodies than the server caches, in any encoding: 16,000 of 17 KB are 270 MB.
const VIDEOS: u64 = 16_000;
const PATH: &str = "/api/transcript?v=bench-00000";

/// Figures of one server in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupRound {
    pub(crate) cpu_micros: f64,
    pub(crate) per_second: f64,
}

/// Puts this many transcripts into the archive of a data folder, and into its search index: a server would build that
/// in the background of what is measured.
pub(crate) async fn fill(data: &Path, videos: u64) -> Result<()> {
    let archive = SqliteArchive::open(SqliteOptions::new(data.join("archive.db"))).await?;
    for some in (0..videos).collect::<Vec<_>>().chunks(64) {
        let writes =
            some.iter().map(|number| async { Ok(archive.put(corpus::put_request(*number)?).await?) });
        let results: Vec<Result<_>> = futures_util::future::join_all(writes).await;
        results.into_iter().collect::<Result<Vec<_>>>()?;
    }
    archive.close().await;
    let built = verbatim(data, &["search", "rebuild"], &[])?.stdout(Stdio::null()).status()?;
    ensure!(built.success(), "search rebuild failed");
    Ok(())
}

/// Number of videos that are requested at random, and the file that archives them.
pub(crate) type VideoSet<'a> = Option<(u64, &'a Path)>;

/// Sends requests to a server as fast as it responds.
pub(crate) fn round(
    server: &BenchServer,
    path: &str,
    headers: &[&str],
    video_set: VideoSet<'_>,
) -> Result<LookupRound> {
    if let Some((_, archive)) = video_set {
        corpus::into_page_cache(archive)?;
    }
    let before = server.cpu_seconds()?;
    let (count, per_second) = wrk(server, path, headers, video_set.map(|(videos, _)| videos), TIME)?;
    let cpu = server.cpu_seconds()? - before;
    Ok(LookupRound { cpu_micros: cpu * 1e6 / count as f64, per_second })
}

/// A bare server that sends the same response as `server`.
pub(crate) async fn bare_like(
    server: &BenchServer,
    headers: &[(&str, &str)],
    folder: &Path,
) -> Result<BenchServer> {
    let response = get(&HttpClient::new(), server.address(), PATH, headers).await?;
    ensure!(response.status() == 200, "the server responds with {}", response.status());
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    println!("  {} bytes, {:?}", body.len(), head.headers.get("content-encoding"));
    let file = folder.join("answer");
    baseline_hyper::write(&file, &head.headers, &body)?;
    BenchServer::start(Command::new(std::env::current_exe()?).arg("bare").arg(&file))
}

/// Measures both servers alternately and prints the medians.
fn compare(
    name: &str,
    bare: &BenchServer,
    ours: &BenchServer,
    request: (&str, &[&str], VideoSet<'_>),
    goals: (Goal, Goal),
) -> Result<()> {
    let (path, headers, video_set) = request;
    // The first loads only warm the caches.
    round(ours, path, headers, video_set)?;
    round(bare, path, headers, video_set)?;
    let mut rounds = Vec::new();
    for number in 0..ROUNDS {
        // The order alternates.
        let of_bare = || round(bare, path, headers, video_set);
        let (of_bare, of_ours) = if number % 2 == 0 {
            let of_bare = of_bare()?;
            (of_bare, round(ours, path, headers, video_set)?)
        } else {
            let of_ours = round(ours, path, headers, video_set)?;
            (of_bare()?, of_ours)
        };
        rounds.push((of_bare, of_ours));
    }
    let of =
        |figure: &dyn Fn(&(LookupRound, LookupRound)) -> f64| median(rounds.iter().map(figure).collect());
    line(&format!("{name}: CPU of the bare server"), of(&|(bare, _)| bare.cpu_micros), "µs a request");
    line(&format!("{name}: Verbatim's CPU"), of(&|(_, ours)| ours.cpu_micros), "µs a request");
    line(&format!("{name}: throughput of the bare server"), of(&|(bare, _)| bare.per_second), "a second");
    line(&format!("{name}: Verbatim's throughput"), of(&|(_, ours)| ours.per_second), "a second");
    ratio(&format!("{name}: CPU"), of(&|(bare, ours)| ours.cpu_micros / bare.cpu_micros), goals.0);
    ratio(&format!("{name}: throughput"), of(&|(bare, ours)| ours.per_second / bare.per_second), goals.1);
    Ok(())
}

/// Runs all measurements of lookups.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    println!("archiving {VIDEOS} transcripts …");
    fill(folder.path(), VIDEOS).await.context("the archive")?;
    let quiet = || serve(folder.path(), &[("VERBATIM_LOG__LEVEL", "warn".to_owned())]);
    let hot = (Goal::AtMost(1.15), Goal::AtLeast(0.85));
    for (name, header) in [("hot, zstd", "zstd"), ("hot, as it is", "identity")] {
        let ours = quiet()?;
        let bare = bare_like(&ours, &[("accept-encoding", header)], folder.path()).await?;
        let header = format!("accept-encoding: {header}");
        compare(name, &bare, &ours, (PATH, &[&header], None), hot)?;
    }
    let logging = serve(folder.path(), &[])?;
    let bare = bare_like(&logging, &[("accept-encoding", "zstd")], folder.path()).await?;
    compare(
        "hot, zstd, with a log line each",
        &bare,
        &logging,
        (PATH, &["accept-encoding: zstd"], None),
        hot,
    )?;
    let cold = (Goal::AtMost(3.0), Goal::None);
    let archive = folder.path().join("archive.db");
    for (name, header) in [("from SQLite, zstd", "zstd"), ("from SQLite, as it is", "identity")] {
        let ours = quiet()?;
        let bare = bare_like(&ours, &[("accept-encoding", header)], folder.path()).await?;
        let header = format!("accept-encoding: {header}");
        compare(name, &bare, &ours, ("/", &[&header], Some((VIDEOS, archive.as_path()))), cold)?;
    }
    Ok(())
}
