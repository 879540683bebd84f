//! Memory of searches whose hits are long transcripts.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use tempfile::TempDir;

use super::command;
use crate::server::{
    bounds::memory_mib,
    harness::{ServerFixture, run_ok, verbatim},
};

/// 40 searches at once find 12 transcripts of 700 KB each. Prints the memory.
#[tokio::test(flavor = "multi_thread")]
async fn search_pages_take_bounded_memory() -> Result<()> {
    const SEARCHES: usize = 40;
    const VIDEOS: usize = 12;
    let data = TempDir::new()?;
    let mut srt = String::new();
    for second in 0..6_000 {
        let time = |s: u32| format!("{:02}:{:02}:{:02},000", s / 3_600, s / 60 % 60, s % 60);
        let line = "The talk goes on and on. ".repeat(4);
        write!(srt, "{}\n{} --> {}\n{line}{second}.\n\n", second + 1, time(second), time(second + 1))?;
    }
    for number in 0..VIDEOS {
        let link = format!("https://youtu.be/longtalk{number:03}");
        let import = ["import", "-", "--video", &link, "--lang", "en"];
        run_ok(verbatim(data.path(), &import), srt.as_bytes())?;
    }
    // It builds the index: that takes memory too, in another process.
    command(data.path(), &[], &["search", "talk", "--limit", "1"])?;
    let server = ServerFixture::start(&data, &[("VERBATIM_SEARCH__REQUESTS_PER_MINUTE", "1000")])?;
    let search = || server.get("/api/search?q=lang:en&limit=100");
    let first = search().await?;
    ensure!(first.status == 200, "{}", first.text());
    assert_eq!(first.json()["hits"].as_array().map(Vec::len), Some(VIDEOS));
    let (before, _) = memory_mib(&server)?;
    let replies = try_join_all((0..SEARCHES).map(|_| search())).await?;
    let (_, peak) = memory_mib(&server)?;
    let (found, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    let counts = format!("{} found, {} refused", found.len(), refused.len());
    eprintln!("{SEARCHES} searches: {before} MiB before, {peak} MiB at the peak; {counts}");
    ensure!(!found.is_empty(), "{counts}");
    for reply in refused {
        assert_eq!((reply.status.as_u16(), reply.header("retry-after")), (503, "5"), "{}", reply.text());
    }
    ensure!(peak < before + 100, "{before} MiB before, {peak} MiB at the peak");
    Ok(())
}
