//! The watch page of an archived hour, beside the look-up of the same video in JSON, from the same server.

use std::time::Instant;

use anyhow::{Result, ensure};
use http_body_util::BodyExt as _;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::archive::Archive as _;

use crate::{
    ask::{Client, get},
    corpus,
    lookup::{Round, round},
    process::{Server, serve},
    report::{Goal, line, median, ratio},
};

/// How many rounds there are, each with page and JSON once.
const ROUNDS: usize = 7;
/// How many single requests are timed.
const SINGLE: usize = 300;
const PAGE: &str = "/watch/video_site/bench-00000";
const JSON: &str = "/api/transcript?v=bench-00000";
/// As browsers ask.
const ACCEPT: &str = "gzip, deflate, br, zstd";

/// How long one answer took, in microseconds: to its head, and to its end; and its bytes.
async fn single(client: &Client, server: &Server, path: &str) -> Result<(f64, f64, usize)> {
    let began = Instant::now();
    let answer = get(client, server.address(), path, &[("accept-encoding", ACCEPT)]).await?;
    let first = began.elapsed().as_secs_f64() * 1e6;
    ensure!(answer.status() == 200, "{path}: {}", answer.status());
    let bytes = answer.into_body().collect().await?.to_bytes().len();
    Ok((first, began.elapsed().as_secs_f64() * 1e6, bytes))
}

async fn timed(what: &str, server: &Server, path: &str) -> Result<()> {
    let client = Client::new();
    // A connection that is there, as a visitor's is after the first request.
    single(&client, server, "/health").await?;
    let (first, whole, bytes) = single(&client, server, path).await?;
    line(&format!("{what}: bytes"), bytes as f64, "bytes");
    line(&format!("{what}: the first one, first byte"), first, "µs");
    line(&format!("{what}: the first one, whole"), whole, "µs");
    let mut singles = Vec::new();
    for _ in 0..SINGLE {
        singles.push(single(&client, server, path).await?);
    }
    line(&format!("{what}: first byte"), median(singles.iter().map(|one| one.0).collect()), "µs");
    line(&format!("{what}: whole"), median(singles.iter().map(|one| one.1).collect()), "µs");
    Ok(())
}

/// All measurements of pages.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    let archive = SqliteArchive::open(SqliteOptions::new(folder.path().join("archive.db"))).await?;
    archive.keep(corpus::keep_an_hour(0)?).await?;
    archive.close().await;
    let server = serve(folder.path(), &[("VERBATIM_LOG__LEVEL", "warn".to_owned())])?;
    timed("page of an hour, zstd", &server, PAGE).await?;
    timed("JSON of the same, zstd", &server, JSON).await?;
    let header = format!("accept-encoding: {ACCEPT}");
    let ask = |path| round(&server, path, &[&header], None);
    let mut rounds: Vec<(Round, Round)> = Vec::new();
    for number in 0..ROUNDS {
        // Neither is always the first one.
        rounds.push(if number % 2 == 0 {
            let json = ask(JSON)?;
            (json, ask(PAGE)?)
        } else {
            let page = ask(PAGE)?;
            (ask(JSON)?, page)
        });
    }
    let of = |figure: &dyn Fn(&(Round, Round)) -> f64| median(rounds.iter().map(figure).collect());
    line("JSON: CPU", of(&|(json, _)| json.cpu_micros), "µs a request");
    line("page: CPU", of(&|(_, page)| page.cpu_micros), "µs a request");
    line("JSON: throughput", of(&|(json, _)| json.per_second), "a second");
    line("page: throughput", of(&|(_, page)| page.per_second), "a second");
    ratio("page beside JSON: throughput", of(&|(json, page)| page.per_second / json.per_second), Goal::None);
    Ok(())
}
