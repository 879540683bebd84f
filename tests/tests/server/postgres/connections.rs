//! A server whose database starts later, and databases with few connections.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, Durability, programs};

use crate::server::harness::{ServerFixture, run, verbatim, wait_until};

const WAIT: &str = "VERBATIM_STORAGE__START_TIMEOUT";
const URL: &str = "VERBATIM_STORAGE__URL";
const CONNECT_TIMEOUT: &str = "VERBATIM_STORAGE__CONNECT_TIMEOUT";

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

/// Opens connections until the database server has none left. They end after eight seconds, later than
/// `storage.timeout`.
async fn take_all_connections(url: &str) -> Result<Vec<Child>> {
    let mut clients = Vec::new();
    let psql = programs()?.join("psql");
    let connect = |statement: &str| {
        let mut command = Command::new(&psql);
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--dbname", url, "--command", statement]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    wait_until("a client finds a connection", async || {
        clients.push(connect("SELECT pg_sleep(8)").spawn()?);
        let refused = connect("").output()?;
        Ok(String::from_utf8_lossy(&refused.stderr).contains("too many clients"))
    })
    .await?;
    Ok(clients)
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
        // A busy machine may take longer than the default to accept a connection.
        command.env(URL, &url).env(CONNECT_TIMEOUT, "20s");
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
    // The log's thread writes a line after the event.
    let has_warned =
        |log| Ok::<_, std::io::Error>(std::fs::read_to_string(log)?.contains("raise max_connections"));
    wait_until("the second server does not warn", async || Ok(has_warned(&logs[1])?)).await?;
    ensure!(!has_warned(&logs[0])?, "the first server fits");
    let checked = command(&["check-config", "--connect"])?;
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    ensure!(text.contains("raise max_connections") && !text.contains("no tables"), "{text}");

    let mut clients = take_all_connections(&url).await?;
    let audit = command(&["ledger", "audit"])?;
    ensure!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
    ensure!(clients[0].try_wait()?.is_some(), "the audit did not have to wait");
    for mut client in clients {
        client.wait()?;
    }

    cluster.stop()?;
    let started = Instant::now();
    let checked = command(&["check-config", "--connect"])?;
    let text = String::from_utf8_lossy(&checked.stderr).into_owned();
    ensure!(checked.status.code() == Some(1) && text.contains("cannot be reached"), "{text}");
    ensure!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    Ok(())
}
