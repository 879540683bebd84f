//! Look-ups of archived transcripts, beside a bare hyper server that sends the same bytes.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use http_body_util::BodyExt as _;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::archive::Archive as _;

use crate::{
    ask::{Client, get},
    bare, corpus,
    process::{Server, serve, wrk},
    report::{Goal, line, median, ratio},
};

/// How many rounds there are, each with every server once.
const ROUNDS: usize = 7;
/// How long a server is asked in a round.
const TIME: Duration = Duration::from_secs(2);
/// More bodies than the server keeps, in every encoding: 16,000 of 17 KB are 270 MB.
const VIDEOS: u64 = 16_000;
const PATH: &str = "/api/transcript?v=bench-00000";

/// What one server did in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) cpu_micros: f64,
    pub(crate) per_second: f64,
}

/// Puts this many transcripts into a data folder's archive.
pub(crate) async fn fill(data: &Path, videos: u64) -> Result<()> {
    let archive = SqliteArchive::open(SqliteOptions::new(data.join("archive.db"))).await?;
    for some in (0..videos).collect::<Vec<_>>().chunks(64) {
        let keeping = some.iter().map(|number| async { Ok(archive.keep(corpus::keep(*number)?).await?) });
        let kept: Vec<Result<_>> = futures_util::future::join_all(keeping).await;
        kept.into_iter().collect::<Result<Vec<_>>>()?;
    }
    archive.close().await;
    Ok(())
}

/// How many videos are asked for at random, and the file in which they are archived.
pub(crate) type Many<'a> = Option<(u64, &'a Path)>;

/// Asks a server as fast as it answers.
pub(crate) fn round(server: &Server, path: &str, headers: &[&str], many: Many<'_>) -> Result<Round> {
    if let Some((_, archive)) = many {
        corpus::into_page_cache(archive)?;
    }
    let before = server.cpu_seconds()?;
    let (count, per_second) = wrk(server, path, headers, many.map(|(videos, _)| videos), TIME)?;
    let cpu = server.cpu_seconds()? - before;
    Ok(Round { cpu_micros: cpu * 1e6 / count as f64, per_second })
}

/// A bare server that sends what `server` answers.
async fn bare_like(server: &Server, headers: &[(&str, &str)], folder: &Path) -> Result<Server> {
    let answer = get(&Client::new(), server.address(), PATH, headers).await?;
    ensure!(answer.status() == 200, "the server answers {}", answer.status());
    let (head, body) = answer.into_parts();
    let body = body.collect().await?.to_bytes();
    println!("  {} bytes, {:?}", body.len(), head.headers.get("content-encoding"));
    let file = folder.join("answer");
    bare::write(&file, &head.headers, &body)?;
    Server::start(Command::new(std::env::current_exe()?).arg("bare").arg(&file))
}

/// Asks both in turn, and prints the medians of what they did.
fn compare(
    what: &str,
    bare: &Server,
    ours: &Server,
    ask: (&str, &[&str], Many<'_>),
    goals: (Goal, Goal),
) -> Result<()> {
    let (path, headers, many) = ask;
    // Once for the caches.
    round(ours, path, headers, many)?;
    round(bare, path, headers, many)?;
    let mut rounds = Vec::new();
    for number in 0..ROUNDS {
        // Neither is always the first one.
        let of_bare = || round(bare, path, headers, many);
        let (of_bare, of_ours) = if number % 2 == 0 {
            let of_bare = of_bare()?;
            (of_bare, round(ours, path, headers, many)?)
        } else {
            let of_ours = round(ours, path, headers, many)?;
            (of_bare()?, of_ours)
        };
        rounds.push((of_bare, of_ours));
    }
    let of = |figure: &dyn Fn(&(Round, Round)) -> f64| median(rounds.iter().map(figure).collect());
    line(&format!("{what}: CPU of the bare server"), of(&|(bare, _)| bare.cpu_micros), "µs a request");
    line(&format!("{what}: our CPU"), of(&|(_, ours)| ours.cpu_micros), "µs a request");
    line(&format!("{what}: throughput of the bare server"), of(&|(bare, _)| bare.per_second), "a second");
    line(&format!("{what}: our throughput"), of(&|(_, ours)| ours.per_second), "a second");
    ratio(&format!("{what}: CPU"), of(&|(bare, ours)| ours.cpu_micros / bare.cpu_micros), goals.0);
    ratio(&format!("{what}: throughput"), of(&|(bare, ours)| ours.per_second / bare.per_second), goals.1);
    Ok(())
}

/// All measurements of look-ups.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    println!("{VIDEOS} transcripts are archived …");
    fill(folder.path(), VIDEOS).await.context("the archive")?;
    let quiet = || serve(folder.path(), &[("VERBATIM_LOG__LEVEL", "warn".to_owned())]);
    let hot = (Goal::AtMost(1.15), Goal::AtLeast(0.85));
    for (what, header) in [("hot, zstd", "zstd"), ("hot, as it is", "identity")] {
        let ours = quiet()?;
        let bare = bare_like(&ours, &[("accept-encoding", header)], folder.path()).await?;
        let header = format!("accept-encoding: {header}");
        compare(what, &bare, &ours, (PATH, &[&header], None), hot)?;
    }
    let logging = serve(folder.path(), &[])?;
    let bare = bare_like(&logging, &[("accept-encoding", "zstd")], folder.path()).await?;
    compare(
        "hot, zstd, with a line for each",
        &bare,
        &logging,
        (PATH, &["accept-encoding: zstd"], None),
        hot,
    )?;
    let cold = (Goal::AtMost(3.0), Goal::None);
    let archive = folder.path().join("archive.db");
    for (what, header) in [("from SQLite, zstd", "zstd"), ("from SQLite, as it is", "identity")] {
        let ours = quiet()?;
        let bare = bare_like(&ours, &[("accept-encoding", header)], folder.path()).await?;
        let header = format!("accept-encoding: {header}");
        compare(what, &bare, &ours, ("/", &[&header], Some((VIDEOS, archive.as_path()))), cold)?;
    }
    Ok(())
}
