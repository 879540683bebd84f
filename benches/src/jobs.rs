//! Jobs of the server: CPU of an item next to that of a keyed lookup, and the time and memory of many videos.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;

use crate::{
    fetch::{FetchFixture, start_fixture},
    http_client::{post, text},
    many::{CONCURRENCY, LATENCY, VIDEOS, floor_s},
    platform::{platform, videos},
    report::{Goal, line, median, ratio},
    v1_transcripts::accounts,
};

const ROUNDS: usize = 5;
/// Videos of a round, for each way to request them.
const EACH: usize = 128;
/// For the memory: videos that fill the caches of the server, and twice as many.
const FULL: usize = 2_000;
const TWICE: usize = 4_000;
/// A request for the state costs about a hundredth of an item.
const POLL: Duration = Duration::from_millis(100);

/// A server, and an account of it.
struct JobFixture {
    fixture: FetchFixture,
    bearer: String,
}

async fn start(proxy: &ReplayProxy) -> Result<JobFixture> {
    let data = TempDir::new()?;
    let keys = accounts(data.path(), 1).await?;
    let key = keys.first().context("no account")?;
    let bearer = format!("Bearer {}", key.reveal());
    let settings = [
        // An account gets half of the places.
        ("VERBATIM_LIMITS__JOB_ITEMS_AT_ONCE", (2 * CONCURRENCY).to_string()),
        ("VERBATIM_PLANS__FREE__CREDITS", "1000000".to_owned()),
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000".to_owned()),
    ];
    Ok(JobFixture { fixture: start_fixture(data, proxy, &settings)?, bearer })
}

impl JobFixture {
    /// Runs a job of these videos to its end; returns the wall time.
    async fn run(&self, videos: &[String]) -> Result<Duration> {
        let (client, address) = (&self.fixture.client, self.fixture.server.address());
        let headers = [("authorization", self.bearer.as_str())];
        let body = json!({ "urls": videos }).to_string();
        let started = Instant::now();
        let job = post(client, address, "/api/v1/jobs", &headers, body).await?;
        let job: Value = serde_json::from_str(&job).with_context(|| job.clone())?;
        let id = job["job_id"].as_str().with_context(|| format!("no job: {job}"))?;
        let path = format!("/api/v1/jobs/{id}");
        loop {
            let job: Value = serde_json::from_str(&text(client, address, &path, &headers).await?)?;
            if job["status"] == "completed" {
                ensure!(job["counts"]["done"] == videos.len(), "{job}");
                return Ok(started.elapsed());
            }
            ensure!(matches!(job["status"].as_str(), Some("queued" | "running")), "{job}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// CPU of the server for each of these videos, in milliseconds: of lookups with this concurrency, or of a job.
    async fn cpu_ms(&self, videos: &[String], lookups: Option<usize>) -> Result<f64> {
        let before = self.fixture.server.cpu_seconds()?;
        match lookups {
            Some(concurrency) => self.fixture.fetch(videos, concurrency).await?,
            None => self.run(videos).await?,
        };
        Ok((self.fixture.server.cpu_seconds()? - before) * 1e3 / videos.len() as f64)
    }
}

/// CPU of an item next to a keyed lookup of a new video, alone and with as many at a time as the job.
async fn cost() -> Result<()> {
    let all = videos("jobs--", 3 * EACH * (ROUNDS + 1));
    let proxy = platform(&all, Duration::ZERO)?;
    let jobs = start(&proxy).await?;
    let mut rounds = Vec::new();
    for some in all.chunks(3 * EACH) {
        let (first, rest) = some.split_at(EACH);
        let (second, third) = rest.split_at(EACH);
        rounds.push([
            jobs.cpu_ms(first, Some(1)).await?,
            jobs.cpu_ms(second, Some(CONCURRENCY)).await?,
            jobs.cpu_ms(third, None).await?,
        ]);
    }
    // The first round opens the connections.
    rounds.remove(0);
    let of = |figure: fn(&[f64; 3]) -> f64| median(rounds.iter().map(figure).collect());
    line("CPU of a keyed lookup of a new video, alone", of(|round| round[0]), "ms");
    line("  32 at a time", of(|round| round[1]), "ms");
    line("CPU of an item of a job", of(|round| round[2]), "ms");
    ratio("  next to a lookup alone", of(|round| round[2] / round[0]), Goal::AtMost(1.1));
    ratio("  next to 32 at a time", of(|round| round[2] / round[1]), Goal::None);
    Ok(())
}

/// Wall time, and peak memory of the server in MiB, of a job of these videos on a new server.
async fn job(proxy: &ReplayProxy, videos: &[String]) -> Result<(f64, f64)> {
    let jobs = start(proxy).await?;
    let wall = jobs.run(videos).await?.as_secs_f64();
    Ok((wall, jobs.fixture.server.peak_mib()?))
}

/// Wall time of a thousand videos with latency, and memory in the size of the job.
async fn wall() -> Result<()> {
    let all = videos("wall--", TWICE);
    let proxy = platform(&all, LATENCY)?;
    let some = |count: usize| all.get(..count).context("too few videos");
    let (wall, _) = job(&proxy, some(VIDEOS)?).await?;
    line("job of 1,000 videos, 32 at a time: wall time", wall, "s");
    ratio("  next to two responses for each video", wall / floor_s()?, Goal::AtMost(1.3));
    let (_, full) = job(&proxy, some(FULL)?).await?;
    let (_, twice) = job(&proxy, &all).await?;
    line("job of 2,000 videos: peak memory of the server", full, "MiB");
    ratio("  4,000 videos next to that", twice / full, Goal::AtMost(1.1));
    Ok(())
}

/// Prints the figures.
pub(crate) async fn run() -> Result<()> {
    cost().await?;
    wall().await
}
