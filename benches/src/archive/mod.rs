//! Costs of a growing archive: lookups by number of transcripts, and disk space.
//!
//! The archives have a thousand, a hundred thousand and a million transcripts.

mod size;

pub(crate) use size::used_bytes;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use http_body_util::BodyExt as _;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::{
    PageRequest, Timestamp,
    archive::{Archive as _, CompactOutcome, CompactRequest, PutRequest, TrackSelector},
};

use crate::{
    corpus::{Lcg, as_default, into_page_cache},
    http_client::{HttpClient, get},
    markov_text::{MarkovText, TalkSurprise, video},
    process::{BenchServer, new_key, serve},
    report::{Goal, line, median, ratio},
};

const SIZES: [u64; 3] = [1_000, 100_000, 1_000_000];
/// Sizes of the compacted archives. A million is left out: its compaction takes too long.
const COLD_SIZES: [u64; 2] = [1_000, 100_000];
/// Captions of a small video: half a minute.
const CAPTIONS: usize = 10;
const ROUNDS: usize = 15;
/// Lookups in each archive in a round.
const LOOKUPS: u64 = 4_000;

/// The layer that lookups go through.
#[derive(Clone, Copy, Debug)]
enum ArchiveMode {
    /// A server, over HTTP.
    Server,
    /// The store alone.
    Store,
}

/// One archive under measurement.
struct BenchArchive {
    size: u64,
    file: PathBuf,
    archive: SqliteArchive,
    server: BenchServer,
    /// Lookups with a key bypass the response cache, so each one reads the archive, however small it is.
    key: String,
    sequence: Lcg,
}

/// Lookup times of one archive in one round, in microseconds.
#[derive(Clone, Copy, Debug)]
struct BenchRound {
    median_us: f64,
    p99_us: f64,
}

/// Archives transcripts, 256 at once, so that they share commits.
pub(crate) async fn put_all(
    archive: &SqliteArchive,
    transcripts: impl Iterator<Item = Result<PutRequest>>,
) -> Result<()> {
    let mut transcripts = transcripts.peekable();
    while transcripts.peek().is_some() {
        let some: Vec<_> = transcripts.by_ref().take(256).collect::<Result<_>>()?;
        futures_util::future::try_join_all(some.into_iter().map(|request| archive.put(request))).await?;
    }
    Ok(())
}

/// Compacts the whole archive.
pub(crate) async fn compact(archive: &SqliteArchive) -> Result<CompactOutcome> {
    let mut all = CompactOutcome::default();
    let mut page = PageRequest::first();
    loop {
        let some =
            archive.compact(CompactRequest { stored_before: Timestamp::from_millis(i64::MAX), page }).await?;
        all.compacted += some.compacted;
        all.bytes_before += some.bytes_before;
        all.bytes_after += some.bytes_after;
        match some.next {
            Some(after) => page = PageRequest { after: Some(after), ..PageRequest::first() },
            None => return Ok(all),
        }
    }
}

/// The folder of an archive of this size. Missing transcripts are archived first.
async fn fill_archive(data: &Path, size: u64, is_cold: bool) -> Result<PathBuf> {
    let folder = data.join(format!("{size}{}", if is_cold { "-cold" } else { "" }));
    std::fs::create_dir_all(&folder)?;
    let archive = SqliteArchive::open(SqliteOptions::new(folder.join("archive.db"))).await?;
    let stats = archive.stats().await?;
    if stats.transcripts < size {
        let started = Instant::now();
        let talk = MarkovText::new();
        let mut missing = Vec::new();
        for number in 0..size {
            // An earlier run that was interrupted may have left out any of the transcripts that it wrote concurrently.
            if stats.transcripts == 0
                || archive.find_lazy(&video(number)?, &TrackSelector::Default).await?.is_none()
            {
                missing.push(number);
            }
        }
        let transcript = |number| Ok(as_default(talk.transcript(number, CAPTIONS, TalkSurprise::Many)?));
        put_all(&archive, missing.into_iter().map(transcript)).await?;
        let rate = (size - stats.transcripts) as f64 / started.elapsed().as_secs_f64();
        line(&format!("{size} archived"), rate, "a second");
    }
    if is_cold && stats.compact < size {
        let started = Instant::now();
        let compacted = compact(&archive).await?;
        line(
            &format!("{size} compacted"),
            compacted.compacted as f64 / started.elapsed().as_secs_f64(),
            "a second",
        );
        let smaller = compacted.bytes_after as f64 / compacted.bytes_before as f64;
        ratio(&format!("{size} compacted: to the bytes before"), smaller, Goal::None);
        ensure!(archive.stats().await?.compact == size, "{compacted:?}");
    }
    archive.close().await;
    Ok(folder)
}

impl BenchArchive {
    async fn open(folder: &Path, size: u64) -> Result<Self> {
        let file = folder.join("archive.db");
        let archive = SqliteArchive::open(SqliteOptions::new(file.clone())).await?;
        let key = format!("Bearer {}", new_key(folder, &[])?);
        let server = serve(folder, &[("VERBATIM_LOG__LEVEL", "warn".to_owned())])?;
        Ok(Self { size, file, archive, server, key, sequence: Lcg::new(size) })
    }

    async fn measure(&mut self, client: &HttpClient, mode: ArchiveMode) -> Result<BenchRound> {
        into_page_cache(&self.file)?;
        match mode {
            ArchiveMode::Server => self.measure_server(client).await,
            ArchiveMode::Store => self.measure_store().await,
        }
    }

    /// Looks up random transcripts at the server, one after the other.
    async fn measure_server(&mut self, client: &HttpClient) -> Result<BenchRound> {
        let mut durations = Vec::new();
        for _ in 0..LOOKUPS {
            let path = format!("/api/transcript?v={}", video(self.sequence.below(self.size))?.id());
            let started = Instant::now();
            let response = get(client, self.server.address(), &path, &[("authorization", &self.key)]).await?;
            ensure!(response.status() == 200, "the server responds with {}", response.status());
            response.into_body().collect().await?;
            durations.push(started.elapsed());
        }
        Ok(round(durations))
    }

    /// Looks up random transcripts in the store, one after the other.
    async fn measure_store(&mut self) -> Result<BenchRound> {
        let mut durations = Vec::new();
        for _ in 0..LOOKUPS {
            let video = video(self.sequence.below(self.size))?;
            let started = Instant::now();
            let found = self.archive.find_lazy(&video, &TrackSelector::Default).await?;
            let body = found.map(|found| found.body()).transpose()?;
            durations.push(started.elapsed());
            ensure!(body.is_some(), "{video} is not archived");
        }
        Ok(round(durations))
    }
}

fn round(mut durations: Vec<Duration>) -> BenchRound {
    durations.sort_unstable();
    let at = |part: usize| {
        durations
            .get(durations.len() * part / 100)
            .map_or(f64::NAN, |durations| durations.as_secs_f64() * 1e6)
    };
    BenchRound { median_us: at(50), p99_us: at(99) }
}

/// Measures all archives alternately and prints medians.
///
/// Ratios are to the smallest archive in the same round.
async fn compare(name_prefix: &str, archives: &mut [BenchArchive], mode: ArchiveMode) -> Result<()> {
    let client = HttpClient::new();
    let mut rounds = vec![Vec::new(); archives.len()];
    for number in 0..=ROUNDS {
        for index in 0..archives.len() {
            // The order rotates. The first round only warms the caches.
            let index = (index + number) % archives.len();
            let round = archives[index].measure(&client, mode).await?;
            if number > 0 {
                rounds[index].push(round);
            }
        }
    }
    for (index, archive) in archives.iter().enumerate() {
        let of = |figure: fn(&BenchRound) -> f64| median(rounds[index].iter().map(figure).collect());
        let name = format!("{name_prefix}, {} transcripts", archive.size);
        line(&format!("{name}: p50"), of(|round| round.median_us), "µs");
        line(&format!("{name}: p99"), of(|round| round.p99_us), "µs");
        if index == 0 {
            continue;
        }
        let to_first = |figure: fn(&BenchRound) -> f64| {
            let pairs = rounds[index].iter().zip(&rounds[0]);
            median(pairs.map(|(round, first)| figure(round) / figure(first)).collect())
        };
        ratio(&format!("{name}: p50 to the smallest"), to_first(|round| round.median_us), Goal::AtMost(1.2));
        ratio(&format!("{name}: p99 to the smallest"), to_first(|round| round.p99_us), Goal::AtMost(1.2));
    }
    Ok(())
}

/// Runs all measurements, in a folder whose archives are filled where transcripts are missing.
pub(crate) async fn run(data: Option<&Path>, only_fill: bool) -> Result<()> {
    let own = TempDir::new()?;
    let data = data.unwrap_or(own.path());
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    for size in SIZES {
        hot.push((fill_archive(data, size, false).await?, size));
    }
    for size in COLD_SIZES {
        cold.push((fill_archive(data, size, true).await?, size));
    }
    if only_fill {
        return Ok(());
    }
    size::run(own.path()).await?;
    for (name_prefix, folders) in [("as sent", hot), ("compact", cold)] {
        let mut archives = Vec::new();
        for (folder, size) in folders {
            archives.push(BenchArchive::open(&folder, size).await?);
        }
        compare(&format!("{name_prefix}, over HTTP"), &mut archives, ArchiveMode::Server).await?;
        compare(&format!("{name_prefix}, the store alone"), &mut archives, ArchiveMode::Store).await?;
        for archive in archives {
            archive.archive.close().await;
        }
    }
    Ok(())
}
