//! Reads mails from the outbox folder as their recipient.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use crate::server::harness::{ServerFixture, ServerReply, wait_until};

/// The outbox folder of a server without a mail server.
pub(crate) struct MailClient {
    folder: PathBuf,
    read_mails: BTreeSet<PathBuf>,
}

impl MailClient {
    /// Opens the outbox of the server on this data folder; mails in it now count as read.
    pub(crate) fn new(data: &TempDir) -> Self {
        let folder = data.path().join("outbox");
        let read_mails = list_mails(&folder);
        Self { folder, read_mails }
    }

    /// Waits for the next mail.
    pub(crate) async fn next(&mut self) -> Result<String> {
        let mut next = None;
        wait_until("no mail arrived", async || {
            next = list_mails(&self.folder).into_iter().find(|mail| !self.read_mails.contains(mail));
            Ok(next.is_some())
        })
        .await?;
        let mail = next.context("no mail")?;
        let text = std::fs::read_to_string(&mail)?;
        self.read_mails.insert(mail);
        Ok(text)
    }
}

fn list_mails(folder: &Path) -> BTreeSet<PathBuf> {
    // The server creates the folder for the first mail.
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "eml")).collect()
}

/// The token of the link in a mail.
pub(crate) fn token_from(mail: &str) -> Result<String> {
    let (_, rest) = mail.split_once("/api/v1/verify?token=").context("a mail without a link")?;
    Ok(rest.chars().take_while(char::is_ascii_alphanumeric).collect())
}

/// Requests a verification email to an address.
pub(crate) async fn register(server: &ServerFixture, email: &str) -> Result<ServerReply> {
    let body = json!({ "email": email }).to_string();
    server.send(Method::POST, "/api/v1/register", &[("content-type", "application/json")], body).await
}

/// Creates an account for an address and returns its key.
pub(crate) async fn create_account(
    server: &ServerFixture,
    outbox: &mut MailClient,
    email: &str,
) -> Result<String> {
    let reply = register(server, email).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let token = token_from(&outbox.next().await?)?;
    let reply = server.get(&format!("/api/v1/verify?token={token}")).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    key_from(&reply)
}

/// The key in the response to a verification or a rotation.
pub(crate) fn key_from(reply: &ServerReply) -> Result<String> {
    let key = reply.json()["api_key"].as_str().map(str::to_owned);
    key.with_context(|| format!("no key in {}", reply.text()))
}

/// The remaining credits of an account, by its key.
pub(crate) async fn remaining_credits(server: &ServerFixture, key: &str) -> Result<u64> {
    let reply = server.get_as(key, "/api/v1/me").await?;
    ensure!(reply.status == 200, "{}", reply.text());
    reply.json()["credits_remaining"].as_u64().context("no credits_remaining")
}
