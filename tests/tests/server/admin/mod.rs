//! The admin API and the commands of an operator, on files and on PostgreSQL.

mod access;
mod operations;
mod quota;
mod stopping;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::Value;
use tempfile::TempDir;

use super::{
    harness::{
        ServerFixture, ServerReply, psql, run, send_once_with, sqlite, text, verbatim_with, wait_until,
    },
    postgres::PostgresFixture,
};

/// A storage for servers and commands.
enum TestStorage {
    Files(TempDir),
    Postgres(PostgresFixture),
}

impl TestStorage {
    /// One of each kind.
    fn all() -> Result<[Self; 2]> {
        Ok([Self::Files(TempDir::new()?), Self::Postgres(PostgresFixture::new(None)?)])
    }

    fn data(&self) -> &TempDir {
        match self {
            Self::Files(data) => data,
            Self::Postgres(fixture) => &fixture.data,
        }
    }

    fn settings(&self) -> Vec<(&str, &str)> {
        match self {
            Self::Files(_) => Vec::new(),
            Self::Postgres(fixture) => fixture.settings(),
        }
    }

    /// Runs a command and checks its exit code; returns standard output and standard error.
    fn command(&self, arguments: &[&str], code: i32) -> Result<(String, String)> {
        let output = run(verbatim_with(self.data().path(), &self.settings(), arguments), b"")?;
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stdout} {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ok((stdout, stderr))
    }

    fn stdout(&self, arguments: &[&str]) -> Result<String> {
        Ok(self.command(arguments, 0)?.0)
    }

    fn json(&self, arguments: &[&str]) -> Result<Value> {
        Ok(serde_json::from_str(&self.stdout(arguments)?)?)
    }

    /// Runs a statement on the ledger, in the form for its database.
    fn sql(&self, in_file: &str, on_server: &str) -> Result<()> {
        match self.settings().iter().find(|(name, _)| *name == "VERBATIM_STORAGE__URL") {
            Some((_, url)) => psql(url, on_server)?,
            None => sqlite(&self.data().path().join("verbatim.db"), in_file)?,
        };
        Ok(())
    }

    fn start(&self) -> Result<ServerFixture> {
        ServerFixture::start(self.data(), &self.settings())
    }

    /// Entries of the audit log, oldest first: operator, operation, subject and result of each.
    fn audit_log(&self) -> Result<Vec<[String; 4]>> {
        let entries = self.json(&["audit-log", "--json"])?;
        let entries = entries.as_array().context("no list")?.iter().rev();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("-").to_owned();
        let fields = ["operator", "operation", "subject", "result"];
        Ok(entries.map(|entry| fields.map(|name| text(entry, name))).collect())
    }
}

/// A server with an admin listener, and the token of `ann`.
struct AdminServer {
    server: ServerFixture,
    address: String,
    token: String,
}

impl AdminServer {
    async fn start(storage: &TestStorage) -> Result<Self> {
        let token = storage.stdout(&["admin-tokens", "create", "ann"])?.trim().to_owned();
        let log = storage.data().path().join("log");
        let mut settings = vec![("VERBATIM_ADMIN__LISTEN", "127.0.0.1:0"), ("VERBATIM_LOG__LEVEL", "info")];
        settings.extend(storage.settings());
        let server = ServerFixture::start_with_log(storage.data(), &settings, &log)?;
        let address = admin_address(&log).await?;
        Ok(Self { server, address, token })
    }

    /// Sends a request with the token of `ann`.
    async fn send(&self, method: &str, path: &str, body: Value) -> Result<ServerReply> {
        let authorization = format!("Bearer {}", self.token);
        let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        send_once_with(&self.address, Method::from_bytes(method.as_bytes())?, path, &headers, body).await
    }

    /// The JSON of a response with this status.
    async fn json(&self, method: &str, path: &str, body: Value, status: u16) -> Result<Value> {
        let reply = self.send(method, path, body).await?;
        ensure!(reply.status == status, "{method} {path}: {} {}", reply.status, reply.text());
        assert_eq!(reply.header("cache-control"), "no-store", "{path}");
        Ok(if status == 204 { Value::Null } else { reply.json() })
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.json("GET", path, Value::Null, 200).await
    }
}

/// The address of the admin listener in a log.
async fn admin_address(log: &Path) -> Result<String> {
    let log = PathBuf::from(log);
    let mut address = None;
    wait_until("the log has no address of the admin API", async || {
        let text = std::fs::read_to_string(&log)?;
        let rest = text.split_once("the admin API is served at http://").map(|(_, rest)| rest);
        address = rest.and_then(|rest| rest.split_once("/admin")).map(|(address, _)| address.to_owned());
        Ok(address.is_some())
    })
    .await?;
    address.context("no address")
}
