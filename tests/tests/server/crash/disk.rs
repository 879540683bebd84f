//! A disk that does not keep what is written: nobody is told that it did, nothing more is written until the server
//! is started anew, and nobody pays who is not answered. What is archived is served all the same.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;
use transcript_core::{PageRequest, ids::WalletId};
use verbatim_tests::replay::ReplayProxy;

use super::{people::People, platform, store::Store};
use crate::server::{
    harness::{Reply, Server, borrowed},
    killed::check_ledger,
    preload,
};

/// How often something is done before the disk refuses, so that the connection that writes knows whether it is alone.
const BEFORE: usize = 24;
/// How often it is done then.
const AFTER: usize = 8;
/// Whose allowances a look-up is charged to: the key's, and the service's of the day.
const WALLETS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_the_disk_refuses_is_no_charge_for_nothing() -> Result<()> {
    ledger_refuses(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn charges_that_the_disk_refuses_together_are_none_for_nothing() -> Result<()> {
    ledger_refuses(AFTER).await
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_the_disk_refuses_are_not_delivered() -> Result<()> {
    archive_refuses(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_the_disk_refuses_together_are_not_delivered() -> Result<()> {
    archive_refuses(AFTER).await
}

/// A server on files whose disk can be made to refuse.
struct Fixture {
    store: Store,
    people: People,
    videos: Vec<String>,
    proxy: ReplayProxy,
    sign: PathBuf,
    log: PathBuf,
}

impl Fixture {
    async fn new() -> Result<Self> {
        let videos: Vec<String> =
            (0..BEFORE + 2 * AFTER).map(|place| format!("refused-{place:03}")).collect();
        let names: Vec<&str> = videos.iter().map(String::as_str).collect();
        let (proxy, store) = (platform::platform(&names, Duration::from_millis(1))?, Store::files()?);
        let people = People::made(&store, 1).await?;
        let folder = store.data.path();
        let (sign, log) = (folder.join("sign"), folder.join("log"));
        Ok(Self { store, people, videos, proxy, sign, log })
    }

    fn start(&self) -> Result<Arc<Server>> {
        let mut settings = super::settings(&self.store, &self.proxy);
        let library = preload::library("disk/refuses.c", self.store.data.path())?;
        settings.push(("LD_PRELOAD".to_owned(), library.display().to_string()));
        settings.push(("DISK_REFUSES".to_owned(), self.sign.display().to_string()));
        let settings = borrowed(&settings);
        Ok(Arc::new(Server::start_with_log(&self.store.data, &settings, &self.log)?))
    }

    /// Has the disk refuse what is written to a file, until [`Self::mend`].
    fn refuse(&self, file: &str) -> Result<()> {
        // It is there at once, in whole.
        let (new, path) = (self.sign.with_extension("new"), self.store.data.path().join(file));
        std::fs::write(&new, path.display().to_string())?;
        Ok(std::fs::rename(new, &self.sign)?)
    }

    fn mend(&self) -> Result<()> {
        Ok(std::fs::remove_file(&self.sign)?)
    }

    /// The log says it once, of this file. Who writes alone is told by SQLite itself.
    fn check_log(&self, file: &str, callers: usize) -> Result<()> {
        let said = std::fs::read_to_string(&self.log)?;
        let is_told = |line: &&str| line.contains("the disk did not keep what was written error=");
        let told: Vec<&str> = said.lines().filter(is_told).collect();
        ensure!(told.len() == 1 && told[0].contains(file), "{said}");
        ensure!(callers > 1 || told[0].contains("code: 1034"), "{said}");
        Ok(())
    }

    /// Asks for these with a key, so many at the same time.
    async fn ask(
        &self,
        server: &Arc<Server>,
        key: &str,
        paths: &[String],
        callers: usize,
    ) -> Result<Vec<Reply>> {
        let mut replies = Vec::new();
        for paths in paths.chunks(callers) {
            let mut calls = JoinSet::new();
            for path in paths {
                let (server, key, path) = (Arc::clone(server), key.to_owned(), path.clone());
                calls.spawn(async move { server.get_as(&key, &path).await });
            }
            while let Some(reply) = calls.join_next().await {
                replies.push(reply??);
            }
        }
        Ok(replies)
    }

    /// Those of them whose words came.
    async fn looked_up(
        &self,
        server: &Arc<Server>,
        videos: &[String],
        callers: usize,
    ) -> Result<Vec<String>> {
        let paths: Vec<String> = videos.iter().map(|video| format!("/api/transcript?v={video}")).collect();
        let mut delivered = Vec::new();
        for reply in self.ask(server, &self.people.librarian, &paths, callers).await? {
            let body = reply.json();
            let video = body["videoId"].as_str().unwrap_or_default().to_owned();
            match body["available"] == json!(true) {
                true => {
                    assert_eq!(body["transcript"][0]["text"], json!(format!("This is {video}.")), "{body}");
                    delivered.push(video);
                }
                false => assert_eq!(body["transcript"], json!([]), "{body}"),
            }
        }
        delivered.sort_unstable();
        Ok(delivered)
    }

    /// How many of these charges of one archived video were answered with its words; the others are refused.
    async fn charged(&self, server: &Arc<Server>, count: usize, callers: usize) -> Result<usize> {
        let path = format!("/api/v1/transcript?video_id={}", self.videos[0]);
        let replies =
            self.ask(server, &self.people.clients[0].account_key, &vec![path; count], callers).await?;
        let is_refused = |reply: &&Reply| reply.status == StatusCode::INTERNAL_SERVER_ERROR;
        let refused = replies.iter().filter(is_refused).count();
        let delivered = replies.iter().filter(|reply| reply.status == StatusCode::OK).count();
        ensure!(refused + delivered == count, "{replies:?}");
        Ok(delivered)
    }

    /// How many charges the ledger has of the account, once nothing is held any more.
    async fn entries(&self, wallet: &WalletId) -> Result<usize> {
        let open = self.store.open().await?;
        let entries = open.ledger.entries(wallet, PageRequest::first()).await?.items;
        open.close().await;
        Ok(entries.iter().filter(|entry| entry.kind.is_spent()).count())
    }
}

/// What a wish for a new key is answered.
async fn new_key(server: &Server) -> Result<StatusCode> {
    Ok(server.send(Method::POST, "/api/keys", &[], "").await?.status)
}

/// The disk refuses the file of the ledger.
async fn ledger_refuses(callers: usize) -> Result<()> {
    let fixture = Fixture::new().await?;
    let account = &fixture.people.clients[0].account_wallet;
    let server = fixture.start()?;
    fixture.looked_up(&server, &fixture.videos[..1], 1).await?;
    assert_eq!(fixture.charged(&server, BEFORE, callers).await?, BEFORE);
    fixture.refuse("verbatim.db")?;
    // Of those that were to be committed then nobody knows: they are answered.
    let unknown = fixture.charged(&server, callers, callers).await?;
    assert_eq!(fixture.charged(&server, AFTER, callers).await?, 0);
    fixture.mend()?;
    assert_eq!(fixture.charged(&server, AFTER, callers).await?, 0, "it is believed again");
    assert_eq!(new_key(&server).await?, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(fixture.looked_up(&server, &fixture.videos[..1], 1).await?.len(), 1, "it is archived");
    fixture.check_log("verbatim.db", callers)?;
    drop(server);
    check_ledger(&fixture.store.data).await?;
    let charged = fixture.entries(account).await?;
    assert!((BEFORE..=BEFORE + unknown).contains(&charged), "{charged} charges, {unknown} unknown");

    let server = fixture.start()?;
    assert_eq!(fixture.charged(&server, AFTER, callers).await?, AFTER);
    drop(server);
    check_ledger(&fixture.store.data).await?;
    assert_eq!(fixture.entries(account).await?, charged + AFTER);
    Ok(())
}

/// The disk refuses the file of the archive.
async fn archive_refuses(callers: usize) -> Result<()> {
    let fixture = Fixture::new().await?;
    let (before, after) = fixture.videos.split_at(BEFORE);
    let (refused, late) = after.split_at(AFTER);
    let server = fixture.start()?;
    assert_eq!(fixture.looked_up(&server, before, callers).await?, before);
    fixture.refuse("archive.db")?;
    assert_eq!(fixture.looked_up(&server, refused, callers).await?, [""; 0]);
    fixture.mend()?;
    assert_eq!(fixture.looked_up(&server, late, callers).await?, [""; 0], "it is believed again");
    assert_eq!(new_key(&server).await?, StatusCode::CREATED, "the other file's disk is sound");
    assert_eq!(fixture.looked_up(&server, before, callers).await?, before);
    fixture.check_log("archive.db", callers)?;
    drop(server);
    assert_eq!(check_ledger(&fixture.store.data).await?, WALLETS * before.len(), "whoever was refused paid");

    let server = fixture.start()?;
    assert_eq!(fixture.looked_up(&server, late, callers).await?, late);
    assert_eq!(fixture.looked_up(&server, before, callers).await?, before);
    drop(server);
    assert_eq!(check_ledger(&fixture.store.data).await?, WALLETS * (before.len() + late.len()));
    Ok(())
}
