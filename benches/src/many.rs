//! `verbatim get` of a thousand videos, next to the time that its concurrency permits.

use std::{
    io::Write as _,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;

use crate::{
    platform::{platform, videos},
    process::{status_mib, verbatim},
    report::{Goal, line, median, ratio},
};

pub(crate) const VIDEOS: usize = 1_000;
/// A part of the videos, for the memory.
const FEW: usize = 250;
pub(crate) const LATENCY: Duration = Duration::from_millis(100);
/// Concurrent videos of the command, of YouTube's supplier, and of a job.
pub(crate) const CONCURRENCY: usize = 32;
/// Requests for one video that depend on each other.
const REQUESTS: u32 = 2;
const ROUNDS: usize = 3;

/// Wall time, and peak memory in MiB, of one run.
fn get(proxy: &ReplayProxy, videos: &[String]) -> Result<(Duration, f64)> {
    let folder = TempDir::new()?;
    let settings = [
        ("VERBATIM_UPSTREAM__PROXY", proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE", proxy.ca_file().display().to_string()),
        ("VERBATIM_UPSTREAM__CONCURRENCY", (2 * CONCURRENCY).to_string()),
        ("VERBATIM_LOG__LEVEL", "warn".to_owned()),
    ];
    let files = folder.path().join("files");
    let to = files.to_str().context("the path is not UTF-8")?;
    let mut command = verbatim(&folder.path().join("data"), &["get", "--from", "-", "--to", to], &settings)?;
    let started = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    // Dropped, which ends the input.
    child.stdin.take().context("no standard input")?.write_all(videos.join("\n").as_bytes())?;
    let mut peak = 0.0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // The process may have ended already.
        peak = status_mib(child.id(), "VmHWM:").unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(5));
    };
    let wall = started.elapsed();
    ensure!(status.success() && count(&files)? == videos.len(), "{status}");
    Ok((wall, peak))
}

/// Seconds that [`VIDEOS`] take if nothing but the latency takes time.
pub(crate) fn floor_s() -> Result<f64> {
    let rounds = u32::try_from(VIDEOS.div_ceil(CONCURRENCY))?;
    Ok((LATENCY * REQUESTS * rounds).as_secs_f64())
}

fn count(folder: &Path) -> Result<usize> {
    Ok(std::fs::read_dir(folder)?.count())
}

/// Prints the figures.
pub(crate) fn run() -> Result<()> {
    let all = videos("many--", VIDEOS);
    let proxy = platform(&all, LATENCY)?;
    let few = all.get(..FEW).context("too few videos")?;
    let (mut walls, mut peaks, mut growths) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (_, peak_of_few) = get(&proxy, few)?;
        let (wall, peak) = get(&proxy, &all)?;
        walls.push(wall.as_secs_f64());
        peaks.push(peak);
        growths.push(peak / peak_of_few);
    }
    let wall = median(walls);
    line("get of 1,000 videos, 32 at a time: wall time", wall, "s");
    ratio("  next to two responses for each video", wall / floor_s()?, Goal::AtMost(1.3));
    line("  peak memory", median(peaks), "MiB");
    ratio("  next to 250 videos", median(growths), Goal::AtMost(1.1));
    Ok(())
}
