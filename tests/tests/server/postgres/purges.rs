//! Purges of shared caches by servers on one archive: whose hook fails, after many changes, and without leader leases.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, TestDatabase};

use crate::{
    server::harness::{ServerFixture, psql, run_ok, verbatim_with, wait_until},
    service::fake::{FakeReply, FakeService},
};

const VIDEO: &str = "dyke-walk-0";
const WORDS: &[u8] = b"WEBVTT\n\n00:00.000 --> 00:01.000\nthe sheep graze on the dyke\n";

/// An archive with a video, and the other database of its servers.
struct PurgeFixture {
    main: TestDatabase<'static>,
    archive: TestDatabase<'static>,
    data: TempDir,
}

impl PurgeFixture {
    fn new() -> Result<Self> {
        let (cluster, data) = (Cluster::shared(), TempDir::new()?);
        let fixture = Self { main: cluster.database()?, archive: cluster.database()?, data };
        fixture.run(&["import", "-", "--video", VIDEO], WORDS)?;
        Ok(fixture)
    }

    fn settings(&self) -> [(&str, &str); 2] {
        [
            ("VERBATIM_STORAGE__URL", self.main.url.as_str()),
            ("VERBATIM_STORAGE__ARCHIVE_URL", self.archive.url.as_str()),
        ]
    }

    /// Runs an operator's command.
    fn run(&self, arguments: &[&str], input: &[u8]) -> Result<()> {
        run_ok(verbatim_with(self.data.path(), &self.settings(), arguments), input).map(drop)
    }

    fn withdraw(&self) -> Result<()> {
        self.run(&["archive", "withdraw", VIDEO], b"")
    }

    /// Log of a server.
    fn log(&self, name: &str) -> PathBuf {
        self.data.path().join(format!("{name}.log"))
    }

    /// Starts a server that calls this hook.
    fn start_server(&self, name: &str, hook: &FakeService) -> Result<ServerFixture> {
        let url = format!("{}/purge", hook.url);
        let mut settings = self.settings().to_vec();
        settings.extend([("VERBATIM_CDN__MAX_AGE", "1h"), ("VERBATIM_CDN__PURGE_URL", url.as_str())]);
        settings.push(("VERBATIM_LOG__LEVEL", "info"));
        ServerFixture::start_with_log(&self.data, &settings, &self.log(name))
    }

    /// Waits until this query of a database returns 0.
    async fn wait_until_zero(&self, database: &TestDatabase<'static>, query: &str) -> Result<()> {
        wait_until(query, async || Ok(psql(&database.url, query)?.trim() == "0")).await
    }

    /// Waits for two whole rounds of the only server: it lists the changed videos in each.
    async fn wait_for_rounds(&self) -> Result<()> {
        let latest = || -> Result<f64> {
            let query = "SELECT coalesce(max(extract(epoch FROM query_start)), 0) FROM pg_stat_activity
                WHERE datname = current_database() AND query LIKE '%changed_videos%' AND pid <> pg_backend_pid()";
            Ok(psql(&self.archive.url, query)?.trim().parse()?)
        };
        let mut last = latest()?;
        for _ in 0..3 {
            wait_until("no round", async || {
                let (before, now) = (last, latest()?);
                last = before.max(now);
                Ok(now > before)
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until the hook was called twice and no changed video is left.
    async fn wait_until_purged(&self, hook: &FakeService) -> Result<()> {
        wait_until("no purge and second purge", async || Ok(hook.requests().len() >= 2)).await?;
        self.wait_until_zero(&self.archive, "SELECT count(*) FROM changed_videos").await
    }
}

async fn start_hook(status: u16) -> Result<FakeService> {
    FakeService::start(move |_, _| FakeReply::new(status, "", "")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_hook_of_one_server_stops_no_purge_by_another() -> Result<()> {
    let (fixture, failing, working) = (PurgeFixture::new()?, start_hook(500).await?, start_hook(204).await?);
    fixture.withdraw()?;
    let _failing_server = fixture.start_server("failing", &failing)?;
    wait_until("the failing hook is not called", async || Ok(!failing.requests().is_empty())).await?;
    let mut working_server = fixture.start_server("working", &working)?;
    fixture.wait_until_purged(&working).await?;
    // A server that is killed now delays no later purge.
    let held = "SELECT count(*) FROM turns
        WHERE name = 'cache-purges' AND until > extract(epoch FROM clock_timestamp()) * 1000";
    fixture.wait_until_zero(&fixture.main, held).await?;
    ensure!(working_server.stop()?.success());
    // The failing server finds nothing to purge.
    fixture.wait_for_rounds().await?;
    let log = std::fs::read_to_string(fixture.log("failing"))?;
    ensure!(log.contains("cache purge failed") && !log.contains("cache purge works again"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_is_purged_before_older_changes() -> Result<()> {
    let (fixture, hook) = (PurgeFixture::new()?, start_hook(204).await?);
    let older = "UPDATE changes SET count = count + 5000;
        INSERT INTO changed_videos
            SELECT 'video_site/old-' || lpad(n::TEXT, 7, '0'), n FROM generate_series(0, 4999) n";
    psql(&fixture.archive.url, older)?;
    let _server = fixture.start_server("server", &hook)?;
    wait_until("the older changes are not purged", async || Ok(hook.requests().len() >= 10)).await?;
    fixture.withdraw()?;
    let calls_before = hook.requests().len();
    let mut call = None;
    wait_until("the withdrawn video is not purged", async || {
        let key = format!("video_site-{VIDEO}");
        call = hook.requests().iter().position(|request| request.head.contains(&key));
        Ok(call.is_some())
    })
    .await?;
    // A call may have been on its way. The older changes need a hundred, of which twenty are made in ten seconds.
    assert!(call.is_some_and(|call| call <= calls_before + 1), "call {call:?}, {calls_before} before");
    Ok(())
}

/// Commands and purges on the archive work while the other database cannot be written.
#[tokio::test(flavor = "multi_thread")]
async fn purge_without_leader_lease_is_done() -> Result<()> {
    let (fixture, hook) = (PurgeFixture::new()?, start_hook(204).await?);
    let _server = fixture.start_server("server", &hook)?;
    psql(&fixture.main.url, "DROP TABLE turns")?;
    fixture.withdraw()?;
    fixture.wait_until_purged(&hook).await
}
