//! The stop of a server completes the operations of its admin listener.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tempfile::TempDir;

use super::{AdminServer, TestStorage};
use crate::server::harness::send_signal;

/// How long an operation waits for the database, before and after the stop signal.
const HELD: Duration = Duration::from_secs(1);

/// Locks a database file against writes, until the returned process ends.
fn lock(file: &Path) -> Result<Child> {
    let mut holder =
        Command::new("sqlite3").arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let statements = holder.stdin.as_mut().context("no standard input")?;
    statements.write_all(b".timeout 5000\nBEGIN IMMEDIATE; SELECT 'locked';\n")?;
    let mut line = String::new();
    BufReader::new(holder.stdout.take().context("no standard output")?).read_line(&mut line)?;
    ensure!(line == "locked\n", "sqlite3: {line}");
    Ok(holder)
}

#[tokio::test(flavor = "multi_thread")]
async fn admin_stop_completes_running_operations() -> Result<()> {
    for is_connected in [true, false] {
        let storage = TestStorage::Files(TempDir::new()?);
        let mut admin = AdminServer::start(&storage).await?;
        let mut holder = lock(&storage.data().path().join("verbatim.db"))?;
        {
            let mut request =
                Box::pin(admin.send("POST", "/admin/accounts", json!({ "name": "shop", "credits": 500 })));
            let held = tokio::time::timeout(HELD, &mut request).await;
            ensure!(held.is_err(), "the operation was not held");
            let request = is_connected.then_some(request);
            send_signal(admin.server.pid(), "TERM")?;
            tokio::time::sleep(HELD).await;
            // The end of its input ends sqlite3.
            drop(holder.stdin.take());
            holder.wait()?;
            if let Some(request) = request {
                let reply = request.await?;
                assert_eq!(reply.status, 201, "{}", reply.text());
            }
        }
        ensure!(admin.server.wait()?.success());

        let accounts = storage.json(&["accounts", "list", "--json"])?;
        let (name, credits) = (&accounts[0]["email"], &accounts[0]["credits_remaining"]);
        assert_eq!((name, credits), (&json!("shop"), &json!(700)), "connected: {is_connected}");
        let entry = ["ann", "accounts.create", accounts[0]["id"].as_str().context("no id")?, "done"];
        let entries = storage.audit_log()?;
        assert!(entries.iter().any(|found| found == &entry), "{entries:?}");
    }
    Ok(())
}
