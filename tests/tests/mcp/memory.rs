//! Memory of calls that wait for work on a long transcript.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::try_join_all;
use serde_json::json;
use tokio::time::timeout;

use super::{SHORT, archive, http::call_plain, srt};
use crate::server::{
    bounds::memory_mib,
    harness::{ServerFixture, create_keys, run_ok, verbatim},
};

/// 200 calls at once search a transcript of 700 KB, and one reads a short transcript. Prints the memory.
#[tokio::test(flavor = "multi_thread")]
async fn mcp_waiting_searches_take_bounded_memory() -> Result<()> {
    const CALLS: usize = 200;
    let data = archive()?;
    let link = "https://youtu.be/verylongtal";
    let lines =
        (0..6_000).map(|n| format!("{}and this is number {n}.", "The talk goes on and on. ".repeat(4)));
    let import = ["import", "-", "--video", link, "--lang", "en", "--title", "A talk"];
    run_ok(verbatim(data.path(), &import), srt(lines).as_bytes())?;
    // The first indexing of a transcript takes memory too.
    let server = ServerFixture::start(&data, &[("VERBATIM_SEARCH__ACCESS", "off")])?;
    let keys = create_keys(&data, 2)?;
    let (busy, other) = (keys.first().context("no key")?, keys.last().context("no key")?);
    let search = |number: usize| {
        let arguments = json!({ "video": link, "query": format!("number {number}") });
        call_plain(&server, Some(busy), "search_transcript", arguments)
    };
    let first = search(CALLS).await?;
    ensure!(first["isError"] == false, "{first}");
    let (before, _) = memory_mib(&server)?;
    let short = call_plain(&server, Some(other), "get_transcript", json!({ "video": SHORT }));
    let calls = async { tokio::try_join!(try_join_all((0..CALLS).map(search)), short) };
    let (results, short) =
        timeout(Duration::from_secs(120), calls).await.context("calls wait for too long")??;
    let (_, peak) = memory_mib(&server)?;
    let (refused, found): (Vec<_>, Vec<_>) = results.iter().partition(|result| result["isError"] == true);
    let counts = format!("{} found, {} refused", found.len(), refused.len());
    eprintln!("{CALLS} searches: {before} MiB before, {peak} MiB at the peak; {counts}");
    ensure!(!found.is_empty(), "{counts}");
    for result in refused {
        assert_eq!(result["_meta"]["verbatim/code"], 503, "{result}");
        assert_eq!(result["_meta"]["verbatim/retry_after"], 5, "{result}");
    }
    // A short transcript waits for none of them.
    ensure!(short["isError"] == false, "{short}");
    ensure!(peak < before + 100, "{before} MiB before, {peak} MiB at the peak");
    Ok(())
}
