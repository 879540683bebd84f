//! Responses of a platform that expand a thousandfold or never end, also when they are parsed: the reason is clear, and
//! memory stays bounded.

use std::{io::Write as _, time::Duration};

use anyhow::{Context as _, Result, ensure};
use flate2::{
    Compression,
    write::{GzEncoder, ZlibEncoder},
};
use futures_util::future::try_join_all;
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{
    bounds::memory_mib,
    harness::wait_until,
    jobs::{PLAYLIST, first_page},
    platform::{HOST, player, serve_platform},
    v1::mail_client::{MailClient, create_account},
};

/// Lookups at the same time.
const LOOKUPS: usize = 16;
/// Length of a bomb's content.
const CONTENT_MIB: usize = 256;
/// Memory of large responses, in MiB: what they share, and what each of them has besides.
const SHARED_MIB: u64 = 128;
const UNCOUNTED_MIB: u64 = 2;
const TOO_LARGE: &str = "too large";
/// The message while other responses take the memory.
const BUSY: &str = "too many large responses";
const UNSUPPORTED: &str = "compressed in an unsupported way";

/// Writes the content of a bomb.
fn write_zeros(mut to: impl std::io::Write) -> std::io::Result<()> {
    let block = vec![0; 1 << 20];
    (0..CONTENT_MIB).try_for_each(|_| to.write_all(&block))
}

fn gzip(write: impl FnOnce(&mut GzEncoder<Vec<u8>>) -> std::io::Result<()>) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    write(&mut encoder)?;
    Ok(encoder.finish()?)
}

/// Responses with the message of their failure.
fn bombs() -> Result<Vec<(&'static str, ReplayResponse, &'static str)>> {
    let encoded = |encodings: &[&str], body: &[u8]| {
        let response = ReplayResponse::bytes("application/json", body.to_vec());
        encodings.iter().fold(response, |response, name| response.header("content-encoding", name))
    };
    let bomb = gzip(|to| write_zeros(to))?;
    ensure!(CONTENT_MIB << 20 > 1_000 * bomb.len(), "{} bytes", bomb.len());
    let nested = gzip(|to| to.write_all(&bomb))?;
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    write_zeros(&mut zlib)?;
    let zlib = zlib.finish()?;
    let mut zstd = zstd::Encoder::new(Vec::new(), 3)?;
    write_zeros(&mut zstd)?;
    let zstd = zstd.finish()?;
    Ok(vec![
        ("gzip", encoded(&["gzip"], &bomb), TOO_LARGE),
        ("gzip without end", encoded(&["gzip"], &bomb).endlessly(), TOO_LARGE),
        ("no encoding, without end", encoded(&[], &[b' '; 64 << 10]).endlessly(), TOO_LARGE),
        ("gzip twice", encoded(&["gzip, gzip"], &nested), UNSUPPORTED),
        ("gzip twice, in two headers", encoded(&["gzip", "gzip"], &nested), UNSUPPORTED),
        // Decompressed once: what remains is no JSON.
        ("gzip twice, said once", encoded(&["gzip"], &nested), "YouTube"),
        ("deflate", encoded(&["deflate"], &zlib), UNSUPPORTED),
        ("zstd", encoded(&["zstd"], &zstd), UNSUPPORTED),
        // No body of these is read, so that they have no end does not matter.
        ("deflate without end", encoded(&["deflate"], &zlib).endlessly(), UNSUPPORTED),
        ("zstd without end", encoded(&["zstd"], &zstd).endlessly(), UNSUPPORTED),
        ("br without end", encoded(&["br"], &[0; 64 << 10]).endlessly(), UNSUPPORTED),
    ])
}

/// A platform whose video `bomb-PART-N` has the bomb number N as its player or captions.
fn start_bombs(bombs: &[(&str, ReplayResponse, &str)]) -> Result<ReplayProxy> {
    let player_rule = |video: &str| {
        Rule::post(HOST, "/youtubei/v1/player").or_host("youtubei.googleapis.com").json("/videoId", video)
    };
    let mut script = Script::new();
    for (number, (_, bomb, _)) in bombs.iter().enumerate() {
        for lookup in 0..LOOKUPS {
            let (plays, captions) = (video("p", number, lookup), video("c", number, lookup));
            let good = ReplayResponse::json(&player(&captions));
            script = script
                .rule(player_rule(&plays).respond(bomb.clone()))
                .rule(player_rule(&captions).respond(good))
                .rule(Rule::get(HOST, "/api/timedtext").query("v", &captions).respond(bomb.clone()));
        }
    }
    ReplayProxy::start(script)
}

/// The id of a video.
fn video(part: &str, bomb: usize, lookup: usize) -> String {
    format!("bomb-{part}{bomb:02}-{lookup:02}")
}

#[tokio::test(flavor = "multi_thread")]
async fn bombs_of_platform_fail_with_reason_and_take_bounded_memory() -> Result<()> {
    let (data, bombs) = (TempDir::new()?, bombs()?);
    let proxy = start_bombs(&bombs)?;
    let settings = [
        ("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "100000"),
        ("VERBATIM_LIMITS__MISSES_PER_NETWORK_PER_MINUTE", "100000"),
        ("VERBATIM_SUPPLIERS__BREAKER_THRESHOLD", "0"),
        // The size must end a response, not the time: other programs may leave little of the processors.
        ("VERBATIM_UPSTREAM__TIMEOUT", "1m"),
        ("VERBATIM_LIMITS__WAIT", "2m"),
    ];
    let server = serve_platform(&data, &proxy, &settings)?;
    let key = server.send(Method::POST, "/api/keys", &[], "").await?;
    let key = key.json()["key"].as_str().context("no key")?.to_owned();
    let (before, _) = memory_mib(&server)?;
    for (number, (name, _, message)) in bombs.iter().enumerate() {
        for part in ["p", "c"] {
            let path = |lookup| format!("/api/transcript?v={}", video(part, number, lookup));
            let paths: Vec<String> = (0..LOOKUPS).map(path).collect();
            let replies = try_join_all(paths.iter().map(|path| server.get_as(&key, path)));
            let replies = timeout(Duration::from_secs(120), replies).await.context(*name)??;
            let mut has_expected = false;
            for reply in replies {
                let (body, expect) = (reply.json(), *message);
                let why = body["failureMessage"].as_str().unwrap_or_default();
                let is_expected = why.contains(expect);
                let is_busy = expect == TOO_LARGE && why.contains(BUSY);
                ensure!(
                    body["available"] == false && (is_expected || is_busy),
                    "{name} {part}: {}",
                    reply.text()
                );
                has_expected |= is_expected;
            }
            ensure!(has_expected, "{name} {part}: no body reached its limit");
        }
        let (_, peak) = memory_mib(&server)?;
        eprintln!("{name}: {before} MiB before, {peak} MiB peak");
    }
    let (_, peak) = memory_mib(&server)?;
    // The content of all bombs would take 4 GiB for each kind. The allocator may keep as much as is used.
    let peak_max = before + 2 * (SHARED_MIB + UNCOUNTED_MIB * LOOKUPS as u64);
    ensure!(peak < peak_max, "{before} MiB before, {peak} MiB at the peak");
    ensure!(proxy.requests().len() <= bombs.len() * LOOKUPS * 2 * 6, "{} requests", proxy.requests().len());
    ensure!(server.get("/health").await?.status == 200);
    Ok(())
}

/// A page of a list whose values would take a hundred times its length in memory.
#[tokio::test(flavor = "multi_thread")]
async fn list_page_with_a_million_values_takes_bounded_memory() -> Result<()> {
    let entries = vec![r#"{"":0}"#; 1_198_000].join(",");
    let page = ReplayResponse::bytes("application/json", format!(r#"{{"contents":[{entries}]}}"#));
    let proxy = ReplayProxy::start(Script::new().rule(first_page().respond(page)))?;
    let data = TempDir::new()?;
    let server = serve_platform(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let (before, _) = memory_mib(&server)?;
    let (headers, body) = ([("content-type", "application/json")], json!({ "playlist": PLAYLIST }));
    let started = server.send_as(&key, Method::POST, "/api/v1/jobs", &headers, body.to_string()).await?;
    ensure!(started.status == 202, "{}", started.text());
    // The page is requested again after it was found unreadable.
    wait_until("the page was not requested again", async || {
        Ok(proxy.count(|request| request.json("/browseId").is_some()) > 1)
    })
    .await?;
    let (_, peak) = memory_mib(&server)?;
    ensure!(peak < before + 200, "{before} MiB before, {peak} MiB at the peak");
    Ok(())
}
