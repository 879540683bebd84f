//! The watch page of an archived hour, compared with the JSON lookup at the same server.

use std::time::Instant;

use anyhow::{Result, ensure};
use http_body_util::BodyExt as _;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::archive::Archive as _;

use crate::{
    corpus,
    http_client::{HttpClient, get},
    lookup::{LookupRound, round},
    process::{BenchServer, serve},
    report::{Goal, line, median, ratio},
};

/// Number of rounds; each measures page and JSON once.
const ROUNDS: usize = 7;
/// Number of timed single requests.
const SINGLE: usize = 300;
const PAGE: &str = "/watch/video_site/bench-00000";
const JSON: &str = "/api/transcript?v=bench-00000";
/// The `Accept-Encoding` of browsers.
const ACCEPT: &str = "gzip, deflate, br, zstd";

/// Times of one response in microseconds, to its head and to its end; and its length in bytes.
async fn single(client: &HttpClient, server: &BenchServer, path: &str) -> Result<(f64, f64, usize)> {
    let started = Instant::now();
    let response = get(client, server.address(), path, &[("accept-encoding", ACCEPT)]).await?;
    let first = started.elapsed().as_secs_f64() * 1e6;
    ensure!(response.status() == 200, "{path}: {}", response.status());
    let bytes = response.into_body().collect().await?.to_bytes().len();
    Ok((first, started.elapsed().as_secs_f64() * 1e6, bytes))
}

async fn measure_single(name: &str, server: &BenchServer, path: &str) -> Result<()> {
    let client = HttpClient::new();
    // Opens the connection, which a visitor has after the first request.
    single(&client, server, "/health").await?;
    let (first, whole, bytes) = single(&client, server, path).await?;
    line(&format!("{name}: bytes"), bytes as f64, "bytes");
    line(&format!("{name}: first request, first byte"), first, "µs");
    line(&format!("{name}: first request, whole"), whole, "µs");
    let mut singles = Vec::new();
    for _ in 0..SINGLE {
        singles.push(single(&client, server, path).await?);
    }
    line(&format!("{name}: first byte"), median(singles.iter().map(|one| one.0).collect()), "µs");
    line(&format!("{name}: whole"), median(singles.iter().map(|one| one.1).collect()), "µs");
    Ok(())
}

/// Runs all measurements of pages.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    let archive = SqliteArchive::open(SqliteOptions::new(folder.path().join("archive.db"))).await?;
    archive.put(corpus::put_hour_request(0)?).await?;
    archive.close().await;
    let server = serve(folder.path(), &[("VERBATIM_LOG__LEVEL", "warn".to_owned())])?;
    measure_single("page of an hour, zstd", &server, PAGE).await?;
    measure_single("JSON of the same, zstd", &server, JSON).await?;
    let header = format!("accept-encoding: {ACCEPT}");
    let measure = |path| round(&server, path, &[&header], None);
    let mut rounds: Vec<(LookupRound, LookupRound)> = Vec::new();
    for number in 0..ROUNDS {
        // The order alternates.
        rounds.push(if number % 2 == 0 {
            let json = measure(JSON)?;
            (json, measure(PAGE)?)
        } else {
            let page = measure(PAGE)?;
            (measure(JSON)?, page)
        });
    }
    let of =
        |figure: &dyn Fn(&(LookupRound, LookupRound)) -> f64| median(rounds.iter().map(figure).collect());
    line("JSON: CPU", of(&|(json, _)| json.cpu_micros), "µs a request");
    line("page: CPU", of(&|(_, page)| page.cpu_micros), "µs a request");
    line("JSON: throughput", of(&|(json, _)| json.per_second), "a second");
    line("page: throughput", of(&|(_, page)| page.per_second), "a second");
    ratio("page to JSON: throughput", of(&|(json, page)| page.per_second / json.per_second), Goal::None);
    Ok(())
}
