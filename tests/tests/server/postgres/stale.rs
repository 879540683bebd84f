//! Cached responses while the database of the archive is stopped or hangs.

use std::time::Duration;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, Durability, TestDatabase};

use crate::server::{
    harness::{ServerFixture, run_ok, verbatim_with, wait_until},
    platform::{platform_settings, start_platform},
};

const VIDEO: &str = "dyke-walk-0";
const WITHDRAWN: &str = "dyke-walk-1";
const WORDS: &[u8] = b"WEBVTT\n\n00:00.000 --> 00:01.000\nthe sheep graze on the dyke\n";

/// Runs a command on the database; returns an error unless it succeeds.
fn command(data: &TempDir, database: &TestDatabase<'_>, arguments: &[&str], input: &[u8]) -> Result<()> {
    let settings = [("VERBATIM_STORAGE__URL", database.url.as_str())];
    run_ok(verbatim_with(data.path(), &settings, arguments), input).map(drop)
}

/// Whether a transcript is in the response to each request for this video, in JSON, as text and as a page.
async fn is_served(server: &ServerFixture, video: &str) -> Result<[bool; 3]> {
    let mut served = [false; 3];
    let paths = [
        format!("/api/transcript?v={video}"),
        format!("/api/transcript?v={video}&format=text"),
        format!("/watch/video_site/{video}"),
    ];
    for (served, path) in served.iter_mut().zip(&paths) {
        *served = server.get(path).await?.text().contains("sheep graze");
    }
    Ok(served)
}

/// Fills the cache, takes the database away with `fail`, and brings it back with `mend`.
async fn check_outage(fail: fn(&Cluster) -> Result<()>, mend: fn(&Cluster) -> Result<()>) -> Result<()> {
    let cluster = Cluster::start(Durability::Full)?;
    let database = cluster.database()?;
    let proxy = start_platform(&[], Duration::ZERO)?;
    let data = TempDir::new()?;
    let mut settings = platform_settings(&proxy);
    settings.extend([
        ("VERBATIM_STORAGE__URL".to_owned(), database.url.clone()),
        ("VERBATIM_STORAGE__TIMEOUT".to_owned(), "2s".to_owned()),
        ("VERBATIM_STORAGE__CONNECT_TIMEOUT".to_owned(), "1s".to_owned()),
        ("VERBATIM_ARCHIVE__SERVE_STALE".to_owned(), "20s".to_owned()),
    ]);
    for video in [VIDEO, WITHDRAWN] {
        command(&data, &database, &["import", "-", "--video", video], WORDS)?;
    }
    let server = ServerFixture::start(&data, &crate::server::harness::borrow_settings(&settings))?;
    // What is cheap to build is cached on its second request.
    for _ in 0..3 {
        for video in [VIDEO, WITHDRAWN] {
            assert_eq!(is_served(&server, video).await?, [true; 3]);
        }
    }
    command(&data, &database, &["archive", "withdraw", WITHDRAWN], b"")?;
    wait_until("the withdrawal is not seen", async || Ok(is_served(&server, WITHDRAWN).await? == [false; 3]))
        .await?;
    // The withdrawal has changed what the queries select, so they are cached again.
    for _ in 0..3 {
        assert_eq!(is_served(&server, VIDEO).await?, [true; 3]);
    }

    fail(&cluster)?;
    let during = async {
        for _ in 0..5 {
            assert_eq!(is_served(&server, VIDEO).await?, [true; 3], "a cached response is missing");
        }
        assert_eq!(is_served(&server, WITHDRAWN).await?, [false; 3], "a withdrawn transcript was sent");
        let reply = server.get("/api/transcript?v=dyke-walk-2").await?;
        ensure!(reply.json()["failureReason"] == "fetch_error", "{}", reply.text());
        wait_until("an old response is sent without end", async || {
            Ok(is_served(&server, VIDEO).await? == [false; 3])
        })
        .await
    }
    .await;
    mend(&cluster)?;
    during?;
    wait_until("the archive is not read again", async || Ok(is_served(&server, VIDEO).await? == [true; 3]))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn database_stopped_cached_responses_are_sent_for_limited_time() -> Result<()> {
    check_outage(Cluster::stop, Cluster::restart).await
}

#[tokio::test(flavor = "multi_thread")]
async fn database_hanging_cached_responses_are_sent_for_limited_time() -> Result<()> {
    check_outage(Cluster::pause, Cluster::resume).await
}
