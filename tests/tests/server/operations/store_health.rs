//! Stores that cannot be written: readiness, requests, metrics and the log, until the cause ends.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use http::Method;
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;
use verbatim_tests_postgres::{Cluster, Durability, programs};

use super::ObservedServer;
use crate::server::{
    harness::{borrow_settings, create_keys_with, run, run_ok, sqlite, text, verbatim_with},
    platform::{platform_settings, start_platform},
    preload,
    v1::mail_client::{MailClient, create_account, remaining_credits},
};

const ARCHIVED: &str = "dyke-walk-0";
const MISSING: &str = "dyke-walk-1";

/// The longest time until `/readyz` shows that a store cannot be written, and until it shows the end.
const READINESS_DELAY: Duration = Duration::from_secs(12);
/// The longest mean time of a round of failing requests: a single one may wait for a busy machine.
const FAILURE_DELAY: Duration = Duration::from_secs(1);
/// Duration of requests while no store responds.
const OUTAGE: Duration = Duration::from_secs(3);
/// Number of rounds of failing requests.
const REQUESTS: u32 = 40;
/// Most warnings of an outage that takes less than a minute: one of each kind of call, and a few of single events.
const WARNINGS_MAX: usize = 20;

/// A server with an archived transcript, an account and a key.
struct StoreFixture {
    observed: ObservedServer,
    key: String,
    account: String,
    data: TempDir,
    _proxy: ReplayProxy,
}

impl StoreFixture {
    /// Starts it with further settings, in a new data folder.
    async fn start(data: TempDir, more: &[(&str, &str)]) -> Result<Self> {
        let proxy = start_platform(&[ARCHIVED, MISSING], Duration::ZERO)?;
        let settings = platform_settings(&proxy);
        let mut settings = borrow_settings(&settings);
        settings.push(("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000"));
        settings.extend_from_slice(more);
        let observed = ObservedServer::start(&data, &settings).await?;
        let key = create_keys_with(&data, 1, &settings)?.remove(0);
        let account =
            create_account(&observed.server, &mut MailClient::new(&data), "ann@example.org").await?;
        let fixture = Self { observed, key, account, data, _proxy: proxy };
        ensure!(fixture.look_up(ARCHIVED).await?, "the transcript is not archived");
        ensure!(fixture.charge().await? == 200);
        fixture.wait_for("ok", "ok").await?;
        Ok(fixture)
    }

    /// Looks a video up with the key; returns whether there is a transcript.
    async fn look_up(&self, video: &str) -> Result<bool> {
        let reply = self.observed.server.get_as(&self.key, &format!("/api/transcript?v={video}")).await?;
        Ok(reply.json()["available"] == true)
    }

    /// The status of a request for the archived transcript that costs a credit.
    async fn charge(&self) -> Result<u16> {
        let path = format!("/api/v1/transcript?video_id={ARCHIVED}");
        Ok(self.observed.server.get_as(&self.account, &path).await?.status.as_u16())
    }

    /// Waits until `/readyz` has these states of the stores.
    async fn wait_for(&self, main: &str, archive: &str) -> Result<()> {
        let started = Instant::now();
        loop {
            let reply = self.observed.server.get("/readyz").await?;
            let body = reply.json();
            if body["main"] == main && body["archive"] == archive {
                ensure!(reply.status == if main == "ok" && archive == "ok" { 200 } else { 503 }, "{body}");
                return Ok(());
            }
            ensure!(started.elapsed() < READINESS_DELAY, "not {main} and {archive}: {body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Checks the server while stores cannot be written, with these states and failures of these kinds.
    async fn check_outage(&self, main: &str, archive: &str, kinds: &[&str]) -> Result<()> {
        self.wait_for(main, archive).await?;
        let server = &self.observed.server;
        let started = Instant::now();
        for _ in 0..REQUESTS {
            let path = format!("/api/transcript?v={MISSING}");
            let reply = server.get_as(&self.key, &path).await?;
            let body = reply.json();
            assert_eq!(
                (&body["available"], &body["failureReason"]),
                (&false.into(), &"fetch_error".into()),
                "{body}"
            );
            assert_eq!(reply.header("x-failure-detail"), "storage");
            if main != "ok" {
                let created = server.send(Method::POST, "/api/keys", &[], "").await?;
                assert_eq!(created.status, 500, "{}", created.text());
                assert_eq!(self.charge().await?, 500);
            }
            let archived = server.get(&format!("/api/transcript?v={ARCHIVED}")).await?;
            assert_eq!(archived.json()["available"], true, "{}", archived.text());
        }
        let delay = started.elapsed() / REQUESTS;
        ensure!(delay < FAILURE_DELAY, "failures took {delay:?}");
        let figures = self.observed.scrape().await?;
        let failed: Vec<&str> = [("main", main), ("archive", archive)]
            .iter()
            .filter(|one| one.1 != "ok")
            .map(|one| one.0)
            .collect();
        for store in failed {
            let errors: f64 = kinds
                .iter()
                .map(|kind| figures.sum("verbatim_store_errors_total", &[("store", store), ("kind", kind)]))
                .sum();
            assert!(errors >= 1.0, "{store}: no failure of a kind in {kinds:?}");
            assert_eq!(figures.sum("verbatim_store_writable", &[("store", store)]).to_bits(), 0);
        }
        assert!(figures.sum("verbatim_store_answers", &[]) > 1.9, "a store cannot be read");
        let lookups = [("api", "lookup"), ("reason", "storage")];
        assert!(figures.sum("verbatim_unanswered_lookups_total", &lookups) > f64::from(REQUESTS) - 0.5);
        Ok(())
    }

    /// Checks that the server works again, and that no failed request was charged.
    async fn check_recovery(&self) -> Result<()> {
        self.wait_for("ok", "ok").await?;
        assert!(self.look_up(MISSING).await?, "the server does not fetch again");
        assert_eq!(remaining_credits(&self.observed.server, &self.account).await?, 199);
        assert_eq!(self.charge().await?, 200);
        for end in ["store recovered", "readiness check succeeded"] {
            self.observed.wait_for_log(end).await?;
        }
        self.check_log()
    }

    /// Checks that the log has few lines about the failures.
    fn check_log(&self) -> Result<()> {
        let log = self.observed.log()?;
        let warnings: Vec<&str> =
            log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).collect();
        assert!(
            (1..=WARNINGS_MAX).contains(&warnings.len()),
            "{} warnings:\n{}",
            warnings.len(),
            warnings.join("\n")
        );
        assert!(log.contains("store failed") && log.contains("readiness check failed"), "{log}");
        Ok(())
    }
}

/// A small disk, until it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; `None` if this user must not mount.
    fn mount(path: PathBuf) -> Result<Option<Self>> {
        fs::create_dir(&path)?;
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(&path).output()?;
        if !mounted.status.success() {
            eprintln!("not checked: {}", String::from_utf8_lossy(&mounted.stderr));
            return Ok(None);
        }
        Ok(Some(Self(path)))
    }

    /// Fills the rest of the disk with a file.
    fn fill(&self) -> Result<PathBuf> {
        let path = self.0.join("filler");
        let mut filler = fs::File::create(&path)?;
        while filler.write(&[1; 4_096]).is_ok_and(|written| written > 0) {}
        Ok(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server may still have the files open.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_fails_writes_at_once_until_space_is_free() -> Result<()> {
    let data = TempDir::new()?;
    let Some(disk) = SmallDisk::mount(data.path().join("disk"))? else { return Ok(()) };
    let main = format!("sqlite://{}", disk.0.join("verbatim.db").display());
    let fixture = StoreFixture::start(data, &[("VERBATIM_STORAGE__URL", &main)]).await?;
    assert!(fixture.observed.scrape().await?.sum("verbatim_store_free_bytes", &[("store", "main")]) > 1e6);
    // The log keeps the length that the migrations gave it, and is written again from its start: only a log without
    // room needs the disk.
    sqlite(&disk.0.join("verbatim.db"), "PRAGMA wal_checkpoint(TRUNCATE)")?;
    let filler = disk.fill()?;
    fixture.check_outage("read-only", "ok", &["full"]).await?;
    let figures = fixture.observed.scrape().await?;
    assert!(figures.sum("verbatim_store_free_bytes", &[("store", "main")]) < 1e5);
    fs::remove_file(filler)?;
    fixture.check_recovery().await
}

/// Checks files whose writes fail while a file with the name in this variable exists.
async fn check_failing_writes(variable: &str) -> Result<()> {
    let data = TempDir::new()?;
    let library = preload::compile_library("disk/refuses.c", data.path())?.display().to_string();
    let sign = data.path().join("sign");
    let sign_text = sign.display().to_string();
    let settings = [("LD_PRELOAD", library.as_str()), (variable, sign_text.as_str())];
    let fixture = StoreFixture::start(data, &settings).await?;
    let new = sign.with_extension("new");
    fs::write(&new, ".db")?;
    fs::rename(new, &sign)?;
    fixture.check_outage("read-only", "read-only", &["io", "read_only"]).await?;
    fs::remove_file(sign)?;
    fixture.check_recovery().await
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_disk_fails_writes_at_once_until_it_is_writable() -> Result<()> {
    check_failing_writes("DISK_READ_ONLY").await
}

#[tokio::test(flavor = "multi_thread")]
async fn exceeded_quota_fails_writes_at_once_until_it_is_raised() -> Result<()> {
    check_failing_writes("DISK_QUOTA").await
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_database_fails_writes_at_once_until_it_is_back() -> Result<()> {
    let fixture = StoreFixture::start(TempDir::new()?, &[]).await?;
    let folder = fixture.data.path();
    let away = folder.join("away");
    fs::create_dir(&away)?;
    let names = ["verbatim.db", "verbatim.db-wal", "verbatim.db-shm"];
    for name in names {
        fs::rename(folder.join(name), away.join(name))?;
    }
    fixture.check_outage("read-only", "ok", &["io"]).await?;
    for name in names {
        fs::rename(away.join(name), folder.join(name))?;
    }
    fixture.check_recovery().await
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_database_fails_writes_at_once() -> Result<()> {
    let fixture = StoreFixture::start(TempDir::new()?, &[]).await?;
    for name in ["archive.db", "archive.db-wal", "archive.db-shm"] {
        fs::remove_file(fixture.data.path().join(name))?;
    }
    fixture.check_outage("ok", "read-only", &["io"]).await?;
    fixture.check_log()
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_log_fails_writes_at_once() -> Result<()> {
    let fixture = StoreFixture::start(TempDir::new()?, &[]).await?;
    fs::remove_file(fixture.data.path().join("verbatim.db-wal"))?;
    fixture.check_outage("read-only", "ok", &["io"]).await?;
    fixture.check_log()
}

/// Runs a statement on a database of a cluster, as its administrator.
fn execute(cluster: &Cluster, statements: &[&str]) -> Result<()> {
    let mut psql = Command::new(programs()?.join("psql"));
    psql.args(["-q", "-v", "ON_ERROR_STOP=1", &cluster.url("postgres")]);
    for statement in statements {
        psql.args(["-c", statement]);
    }
    run_ok(psql, b"").map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_postgres_is_logged_by_transitions() -> Result<()> {
    let cluster = Cluster::start(Durability::None)?;
    cluster.create_database("health")?;
    let fixture =
        StoreFixture::start(TempDir::new()?, &[("VERBATIM_STORAGE__URL", &cluster.url("health"))]).await?;
    cluster.stop()?;
    fixture.wait_for("unavailable", "unavailable").await?;
    let read = async || {
        let started = Instant::now();
        while started.elapsed() < OUTAGE {
            let reply = fixture.observed.server.get(&format!("/api/transcript?v={ARCHIVED}")).await?;
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        anyhow::Ok(())
    };
    tokio::try_join!(read(), read(), read(), read(), async {
        let created = fixture.observed.server.send(Method::POST, "/api/keys", &[], "").await?;
        assert_eq!(created.status, 500, "{}", created.text());
        Ok(())
    })?;
    let figures = fixture.observed.scrape().await?;
    for store in ["main", "archive"] {
        let unreachable = [("store", store), ("kind", "unreachable")];
        assert!(figures.sum("verbatim_store_errors_total", &unreachable) >= 1.0, "{store}");
        assert_eq!(figures.sum("verbatim_store_writable", &[("store", store)]).to_bits(), 0);
    }
    cluster.restart()?;
    fixture.check_recovery().await
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_postgres_fails_writes_at_once_until_it_is_writable() -> Result<()> {
    const DISCONNECT: &str =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'health'";
    let cluster = Cluster::start(Durability::None)?;
    // Its log must have no warning about a transaction that has already ended.
    cluster.add_setting("log_min_messages = warning")?;
    cluster.stop()?;
    cluster.restart()?;
    cluster.create_database("health")?;
    let url = cluster.url("health");
    let fixture = StoreFixture::start(TempDir::new()?, &[("VERBATIM_STORAGE__URL", &url)]).await?;
    execute(&cluster, &["ALTER DATABASE health SET default_transaction_read_only = on", DISCONNECT])?;
    fixture.check_outage("read-only", "read-only", &["read_only"]).await?;
    execute(&cluster, &["ALTER DATABASE health RESET default_transaction_read_only", DISCONNECT])?;
    fixture.check_recovery().await?;
    let log = fs::read_to_string(cluster.socket_folder().join("log"))?;
    assert!(!log.contains("there is no transaction in progress"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_on_standby_report_read_only_database() -> Result<()> {
    let cluster = Cluster::start(Durability::None)?;
    cluster.create_database("standby")?;
    let (data, url) = (TempDir::new()?, cluster.url("standby"));
    let settings = [("VERBATIM_STORAGE__URL", url.as_str())];
    create_keys_with(&data, 1, &settings)?;
    cluster.stop()?;
    // Without the address of a primary, the server replays its own log.
    cluster.write_file("standby.signal", "")?;
    cluster.restart()?;
    for arguments in [["ledger", "audit"], ["keys", "list"], ["keys", "create"], ["jobs", "list"]] {
        let output = run(verbatim_with(data.path(), &settings, &arguments), b"")?;
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains("is read-only: connect to the server that accepts writes"), "{errors}");
    }
    Ok(())
}
