//! The library alone, in its own process.
//!
//! It turns links into transcripts, with stores in memory, or Instagram links into media addresses.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use transcript_core::{
    archive::TrackSelector,
    supplier::{SupplyMonitor, SupplyRequest},
    time::Clock,
    video::{Platform, VideoId},
};
use upstream_reqwest::{HttpOptions, HttpTransport, InstagramMedia, MediaSource as _};
use verbatim::{GetOutcome, GetRequest, Options, SystemClock, Verbatim};
use verbatim_tests::replay::ReplayProxy;

use crate::{platform::video, process::cpu_seconds, social::REELS};

/// A running process that fetches on request.
#[derive(Debug)]
pub(crate) struct LibraryRun {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: usize,
}

impl LibraryRun {
    /// Starts a process that fetches videos with this prefix through this proxy, with this concurrency.
    pub(crate) fn start(proxy: &ReplayProxy, prefix: &str, concurrency: usize) -> Result<Self> {
        Self::run("library", proxy, &[prefix, &concurrency.to_string()])
    }

    /// Starts a process that looks up posts with this address prefix, from this number on.
    pub(crate) fn start_posts(proxy: &ReplayProxy, prefix: &str, first: u64) -> Result<Self> {
        Self::run("posts", proxy, &[prefix, &first.to_string()])
    }

    fn run(topic: &str, proxy: &ReplayProxy, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(topic).arg(proxy.url()).arg(proxy.ca_file()).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, input, output, next: 0 })
    }

    /// Fetches the next videos; returns the process's CPU and wall time, in seconds for all of them.
    pub(crate) fn fetch(&mut self, count: usize) -> Result<(f64, f64)> {
        let before = cpu_seconds(self.child.id())?;
        writeln!(self.input, "{} {count}", self.next)?;
        self.next += count;
        let mut wall = String::new();
        self.output.read_line(&mut wall)?;
        Ok((
            cpu_seconds(self.child.id())? - before,
            wall.trim().parse().context("the library process failed")?,
        ))
    }
}

impl Drop for LibraryRun {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls `all` with a first number and a count from each line of standard input; prints its seconds.
async fn run_batches(all: impl AsyncFn(usize, usize) -> Result<()>) -> Result<()> {
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        let (first, count) = line.trim().split_once(' ').context("not two numbers")?;
        let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
        let started = Instant::now();
        all(first, count).await?;
        println!("{}", started.elapsed().as_secs_f64());
        line.clear();
    }
    Ok(())
}

/// Runs the process that fetches transcripts.
pub(crate) async fn serve(proxy: String, ca_file: PathBuf, prefix: String, concurrency: usize) -> Result<()> {
    let upstream = HttpOptions {
        proxies: vec![proxy],
        ca_file: Some(ca_file),
        concurrency: 64,
        ..HttpOptions::default()
    };
    let verbatim = Verbatim::open(Options { upstream, ..Options::default() }).await?;
    run_batches(async |first, count| {
        let one = |number| {
            let (verbatim, link) = (verbatim.clone(), video(&prefix, number));
            // Each fetch is a task, as in a server.
            async move { tokio::spawn(async move { fetch(&verbatim, link).await }).await? }
        };
        stream::iter(first..first + count).map(one).buffer_unordered(concurrency).try_collect::<()>().await
    })
    .await
}

async fn fetch(verbatim: &Verbatim, link: String) -> Result<()> {
    match verbatim.get(GetRequest { link, ..GetRequest::default() }).await? {
        GetOutcome::Found(found) => {
            ensure!(!found.from_cache && found.stored.transcript.segments.len() > 100, "{found:?}");
            Ok(())
        }
        GetOutcome::Missing(missing) => bail!("{}", missing.message),
    }
}

/// A monitor that never cancels.
#[derive(Debug)]
struct PatientMonitor;

impl SupplyMonitor for PatientMonitor {
    fn report_progress(&self, _: &str, _: u64, _: u64) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Runs the process that looks up posts one after the other.
///
/// It gets captions, or for Instagram the media addresses.
pub(crate) async fn serve_posts(proxy: String, ca_file: PathBuf, prefix: String, first: u64) -> Result<()> {
    let (proxies, ca_file) = (vec![proxy], Some(ca_file));
    let http = HttpOptions { proxies: proxies.clone(), ca_file: ca_file.clone(), ..HttpOptions::default() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let reels = InstagramMedia::new(Arc::new(HttpTransport::new(http)?), Arc::clone(&clock));
    let upstream = HttpOptions { proxies, ca_file, ..HttpOptions::default() };
    let verbatim = Verbatim::open(Options { upstream, ..Options::default() }).await?;
    run_batches(async |from, count| {
        for number in (first..).skip(from).take(count) {
            let link = format!("{prefix}{number}");
            if prefix == REELS {
                let video = VideoId::new(Platform::Instagram, &format!("Cv{number}"))?;
                let deadline = clock.now().plus(Duration::from_secs(60));
                let media = reels
                    .media(
                        &SupplyRequest { video, selector: TrackSelector::Default, deadline },
                        &PatientMonitor,
                    )
                    .await;
                let media = media.map_err(|error| anyhow!("{}", error.message()))?;
                ensure!(!media.addresses.is_empty(), "{media:?}");
                continue;
            }
            match verbatim.get(GetRequest { link, ..GetRequest::default() }).await? {
                GetOutcome::Found(found) => {
                    ensure!(!found.from_cache && found.stored.transcript.segments.len() == 30, "{found:?}");
                }
                GetOutcome::Missing(missing) => bail!("{}", missing.message),
            }
        }
        Ok(())
    })
    .await
}
