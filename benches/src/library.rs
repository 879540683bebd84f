//! Our library alone, in a process of its own: a link in, a transcript out, kept in memory.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use verbatim::{Get, GetOutcome, Options, UpstreamOptions, Verbatim};
use verbatim_tests::replay::ReplayProxy;

use crate::{platform::video, process::cpu_seconds};

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
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("library").arg(proxy.url()).arg(proxy.ca_file()).args([prefix, &at_once.to_string()]);
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

/// The process itself: reads a first number and a count of videos on each line, fetches them, and says how
/// many seconds that took.
pub(crate) async fn serve(proxy: String, ca_file: PathBuf, prefix: String, at_once: usize) -> Result<()> {
    let upstream = UpstreamOptions {
        proxies: vec![proxy],
        ca_file: Some(ca_file),
        concurrency: 64,
        ..UpstreamOptions::default()
    };
    let verbatim = Verbatim::open(Options { upstream, ..Options::default() }).await?;
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line)? > 0 {
        let (first, count) = line.trim().split_once(' ').context("two numbers are wanted")?;
        let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
        let begun = Instant::now();
        let one = |number| {
            let (verbatim, link) = (verbatim.clone(), video(&prefix, number));
            // As a server's requests are: each a task of its own.
            async move { tokio::spawn(async move { fetch(&verbatim, link).await }).await? }
        };
        stream::iter(first..first + count).map(one).buffer_unordered(at_once).try_collect::<()>().await?;
        println!("{}", begun.elapsed().as_secs_f64());
        line.clear();
    }
    Ok(())
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
