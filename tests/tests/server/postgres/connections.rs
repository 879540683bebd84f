//! A server whose database starts later, and databases with few connections.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, Durability};

use crate::server::harness::{ServerFixture, run, verbatim, wait_until};

const WAIT: &str = "VERBATIM_STORAGE__START_TIMEOUT";
const URL: &str = "VERBATIM_STORAGE__URL";

#[tokio::test(flavor = "multi_thread")]
async fn server_waits_for_database_at_start() -> Result<()> {
    let cluster = Cluster::start(Durability::None)?;
    cluster.create_database("late")?;
    let url = cluster.url("late");
    cluster.stop()?;
    let data = TempDir::new()?;
    let mut impatient = verbatim(data.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let output = run(
        {
            impatient.env(URL, &url).env(WAIT, "0s");
            impatient
        },
        b"",
    )?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(1) && text.contains("cannot be reached"), "{text}");

    let (log, waiting) = (data.path().join("log"), data.path().to_owned());
    let starting = std::thread::spawn({
        let (url, log) = (url.clone(), log.clone());
        move || {
            let mut command = verbatim(&waiting, &["serve", "--listen", "127.0.0.1:0"]);
            command.env(URL, &url);
            ServerFixture::start_command(command, &log)
        }
    });
    wait_until("the server does not wait", async || {
        Ok(std::fs::read_to_string(&log).is_ok_and(|text| text.contains("waiting for the database")))
    })
    .await?;
    cluster.restart()?;
    let server = starting.join().expect("the thread panicked")?;
    assert_eq!(server.get("/readyz").await?.status, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn check_config_connects_and_commands_find_room() -> Result<()> {
    let cluster = Cluster::start(Durability::None)?;
    for line in ["max_connections = 20", "superuser_reserved_connections = 0"] {
        cluster.add_setting(line)?;
    }
    cluster.stop()?;
    cluster.restart()?;
    cluster.create_database("few")?;
    let url = cluster.url("few");
    let data = TempDir::new()?;
    let command = |arguments: &[&str]| {
        let mut command = verbatim(data.path(), arguments);
        command.env(URL, &url);
        run(command, b"")
    };
    let checked = command(&["check-config", "--connect"])?;
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    ensure!(checked.status.success() && text.contains("no tables yet"), "{text}");
    ensure!(text.contains("20 connections permitted") && !text.contains("max_connections"), "{text}");

    let logs = [data.path().join("one"), data.path().join("two")];
    let mut servers = Vec::new();
    for log in &logs {
        servers.push(ServerFixture::start_with_log(&data, &[(URL, &url)], log)?);
    }
    let warned =
        |log| Ok::<_, std::io::Error>(std::fs::read_to_string(log)?.contains("raise max_connections"));
    assert!(!warned(&logs[0])? && warned(&logs[1])?, "the second server exceeds the limit");
    let checked = command(&["check-config", "--connect"])?;
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    ensure!(text.contains("raise max_connections") && !text.contains("no tables"), "{text}");
    let audit = command(&["ledger", "audit"])?;
    ensure!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));

    cluster.stop()?;
    let started = Instant::now();
    let checked = command(&["check-config", "--connect"])?;
    let text = String::from_utf8_lossy(&checked.stderr).into_owned();
    ensure!(checked.status.code() == Some(1) && text.contains("cannot be reached"), "{text}");
    ensure!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}
