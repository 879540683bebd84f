//! Mail as its recipient sees it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::server::harness::{Reply, Server};

/// How long a mail may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outbox folder of a server without a mail server.
pub(crate) struct Outbox {
    folder: PathBuf,
    seen: BTreeSet<PathBuf>,
}

impl Outbox {
    /// That of the server over this data folder; what is in it by now counts as read.
    pub(crate) fn of(data: &TempDir) -> Self {
        let folder = data.path().join("outbox");
        let seen = mails(&folder);
        Self { folder, seen }
    }

    /// The next mail: it waits for one.
    pub(crate) async fn next(&mut self) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(mail) = mails(&self.folder).into_iter().find(|mail| !self.seen.contains(mail)) {
                let text = std::fs::read_to_string(&mail)?;
                self.seen.insert(mail);
                return Ok(text);
            }
            if Instant::now() > until {
                bail!("no mail came");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn mails(folder: &Path) -> BTreeSet<PathBuf> {
    // The folder is made for the first mail.
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "eml")).collect()
}

/// The token of the link in a mail.
pub(crate) fn token(mail: &str) -> Result<String> {
    let (_, rest) = mail.split_once("/api/v1/verify?token=").context("a mail without a link")?;
    Ok(rest.chars().take_while(char::is_ascii_alphanumeric).collect())
}

/// Asks for a mail to an address.
pub(crate) async fn register(server: &Server, email: &str) -> Result<Reply> {
    let body = json!({ "email": email }).to_string();
    server.send(Method::POST, "/api/v1/register", &[("content-type", "application/json")], body).await
}

/// A new account for an address; returns its key.
pub(crate) async fn account(server: &Server, outbox: &mut Outbox, email: &str) -> Result<String> {
    let reply = register(server, email).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let token = token(&outbox.next().await?)?;
    let reply = server.get(&format!("/api/v1/verify?token={token}")).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    key_in(&reply)
}

/// The key in the answer to a verification or a rotation.
pub(crate) fn key_in(reply: &Reply) -> Result<String> {
    let key = reply.json()["api_key"].as_str().map(str::to_owned);
    key.with_context(|| format!("no key in {}", reply.text()))
}

/// What an account has left, by its key.
pub(crate) async fn credits(server: &Server, key: &str) -> Result<u64> {
    let reply = server.get_as(key, "/api/v1/me").await?;
    ensure!(reply.status == 200, "{}", reply.text());
    reply.json()["credits_remaining"].as_u64().context("no credits_remaining")
}
