//! Our library alone, in a process of its own: a link in, a transcript out, kept in memory; or a link of Instagram in,
//! the addresses of its sound out.

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
    archive::Wish,
    supplier::{Ask, Watcher},
    time::Clock,
    video::{Platform, VideoId},
};
use upstream_reqwest::{Http, HttpOptions, InstagramVideos, MediaSource as _};
use verbatim::{Get, GetOutcome, Options, SystemClock, UpstreamOptions, Verbatim};
use verbatim_tests::replay::ReplayProxy;

use crate::{platform::video, process::cpu_seconds, social::REELS};

/// A running process that fetches when it is told to.
#[derive(Debug)]
pub(crate) struct Library {
    child: Child,
    tell: ChildStdin,
    hear: BufReader<ChildStdout>,
    next: usize,
}

impl Library {
    /// Starts one that asks through this proxy for videos of this prefix, so many at once.
    pub(crate) fn start(proxy: &ReplayProxy, prefix: &str, at_once: usize) -> Result<Self> {
        Self::run("library", proxy, &[prefix, &at_once.to_string()])
    }

    /// Starts one that looks posts up whose addresses begin with this prefix, from that of this number on.
    pub(crate) fn start_posts(proxy: &ReplayProxy, prefix: &str, first: u64) -> Result<Self> {
        Self::run("posts", proxy, &[prefix, &first.to_string()])
    }

    fn run(topic: &str, proxy: &ReplayProxy, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(topic).arg(proxy.url()).arg(proxy.ca_file()).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let tell = child.stdin.take().context("no standard input")?;
        let hear = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self { child, tell, hear, next: 0 })
    }

    /// Has it fetch the next videos; returns its CPU and wall time, in seconds for all of them.
    pub(crate) fn fetch(&mut self, count: usize) -> Result<(f64, f64)> {
        let before = cpu_seconds(self.child.id())?;
        writeln!(self.tell, "{} {count}", self.next)?;
        self.next += count;
        let mut wall = String::new();
        self.hear.read_line(&mut wall)?;
        Ok((cpu_seconds(self.child.id())? - before, wall.trim().parse().context("the library broke down")?))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What each process does: reads a first number and a count on each line, does `all` of that work, and says how many
/// seconds it took.
async fn told(all: impl AsyncFn(usize, usize) -> Result<()>) -> Result<()> {
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        let (first, count) = line.trim().split_once(' ').context("two numbers are wanted")?;
        let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
        let begun = Instant::now();
        all(first, count).await?;
        println!("{}", begun.elapsed().as_secs_f64());
        line.clear();
    }
    Ok(())
}

/// The process that fetches transcripts.
pub(crate) async fn serve(proxy: String, ca_file: PathBuf, prefix: String, at_once: usize) -> Result<()> {
    let upstream = UpstreamOptions {
        proxies: vec![proxy],
        ca_file: Some(ca_file),
        concurrency: 64,
        ..UpstreamOptions::default()
    };
    let verbatim = Verbatim::open(Options { upstream, ..Options::default() }).await?;
    told(async |first, count| {
        let one = |number| {
            let (verbatim, link) = (verbatim.clone(), video(&prefix, number));
            // As a server's requests are: each a task of its own.
            async move { tokio::spawn(async move { fetch(&verbatim, link).await }).await? }
        };
        stream::iter(first..first + count).map(one).buffer_unordered(at_once).try_collect::<()>().await
    })
    .await
}

async fn fetch(verbatim: &Verbatim, link: String) -> Result<()> {
    match verbatim.get(Get { link, language: None }).await? {
        GetOutcome::Found(found) => {
            ensure!(!found.from_cache && found.stored.transcript.segments.len() > 100, "{found:?}");
            Ok(())
        }
        GetOutcome::Missing(missing) => bail!("{}", missing.message),
    }
}

/// Somebody who waits to the end.
#[derive(Debug)]
struct Patient;

impl Watcher for Patient {
    fn stage(&self, _: &str, _: u64, _: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// The process that looks posts up, one after the other: captions; or, of Instagram, where the sound is.
pub(crate) async fn serve_posts(proxy: String, ca_file: PathBuf, prefix: String, first: u64) -> Result<()> {
    let (proxies, ca_file) = (vec![proxy], Some(ca_file));
    let http = HttpOptions { proxies: proxies.clone(), ca_file: ca_file.clone(), ..HttpOptions::default() };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let reels = InstagramVideos::new(Arc::new(Http::new(http)?), Arc::clone(&clock));
    let upstream = UpstreamOptions { proxies, ca_file, ..UpstreamOptions::default() };
    let verbatim = Verbatim::open(Options { upstream, ..Options::default() }).await?;
    told(async |from, count| {
        for number in (first..).skip(from).take(count) {
            let link = format!("{prefix}{number}");
            if prefix == REELS {
                let video = VideoId::new(Platform::Reels, &format!("Cv{number}"))?;
                let deadline = clock.now().plus(Duration::from_secs(60));
                let media = reels.media(&Ask { video, wish: Wish::Default, deadline }, &Patient).await;
                let media = media.map_err(|error| anyhow!("{}", error.message()))?;
                ensure!(!media.addresses.is_empty(), "{media:?}");
                continue;
            }
            match verbatim.get(Get { link, language: None }).await? {
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
