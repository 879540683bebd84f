//! Failing syncs of the disk: writes are not acknowledged, the server writes nothing until its restart, and callers
//! without a response are not charged. Archived transcripts are still served.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinSet;
use transcript_core::{PageRequest, ids::WalletId};
use verbatim_tests::replay::ReplayProxy;

use super::{clients::CrashAccounts, platform, store::CrashStore};
use crate::server::{
    harness::{ServerFixture, ServerReply, borrow_settings},
    kill_restart::check_ledger,
    preload,
};

/// Calls before the disk fails.
const BEFORE: usize = 24;
/// Calls after that.
const AFTER: usize = 8;
/// Wallets that a lookup charges: the key's, and the service's of the day.
const WALLETS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn disk_failure_during_charge_charges_delivered_only() -> Result<()> {
    check_ledger_failure(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_failure_during_group_commit_charges_delivered_only() -> Result<()> {
    check_ledger_failure(AFTER).await
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_failure_during_archiving_delivers_nothing() -> Result<()> {
    check_archive_failure(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_failure_during_concurrent_archiving_delivers_nothing() -> Result<()> {
    check_archive_failure(AFTER).await
}

/// A server on files, with a disk that the test can make fail.
struct DiskFixture {
    store: CrashStore,
    accounts: CrashAccounts,
    videos: Vec<String>,
    proxy: ReplayProxy,
    sign_file: PathBuf,
    log: PathBuf,
}

impl DiskFixture {
    async fn new() -> Result<Self> {
        let videos: Vec<String> =
            (0..BEFORE + 2 * AFTER).map(|index| format!("refused-{index:03}")).collect();
        let names: Vec<&str> = videos.iter().map(String::as_str).collect();
        let (proxy, store) =
            (platform::start_platform(&names, Duration::from_millis(1))?, CrashStore::files()?);
        let accounts = CrashAccounts::create(&store, 1).await?;
        let folder = store.data.path();
        let (sign_file, log) = (folder.join("sign"), folder.join("log"));
        Ok(Self { store, accounts, videos, proxy, sign_file, log })
    }

    fn start(&self) -> Result<Arc<ServerFixture>> {
        let mut settings = super::settings(&self.store, &self.proxy);
        let library = preload::compile_library("disk/refuses.c", self.store.data.path())?;
        settings.push(("LD_PRELOAD".to_owned(), library.display().to_string()));
        settings.push(("DISK_REFUSES".to_owned(), self.sign_file.display().to_string()));
        let settings = borrow_settings(&settings);
        Ok(Arc::new(ServerFixture::start_with_log(&self.store.data, &settings, &self.log)?))
    }

    /// Makes the disk fail for writes to a file, until [`Self::mend`].
    fn fail(&self, file: &str) -> Result<()> {
        // The rename replaces the file atomically.
        let (new, path) = (self.sign_file.with_extension("new"), self.store.data.path().join(file));
        std::fs::write(&new, path.display().to_string())?;
        Ok(std::fs::rename(new, &self.sign_file)?)
    }

    fn mend(&self) -> Result<()> {
        Ok(std::fs::remove_file(&self.sign_file)?)
    }

    /// Checks that the log has one failure, of this file. A thread of the server writes the log.
    async fn check_log(&self, file: &str) -> Result<()> {
        let is_sync_failure = |line: &&str| line.contains("database sync failed, writes disabled error=");
        let mut log_text = String::new();
        for _ in 0..100 {
            log_text = std::fs::read_to_string(&self.log)?;
            if log_text.lines().any(|line| is_sync_failure(&line)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let failures: Vec<&str> = log_text.lines().filter(is_sync_failure).collect();
        ensure!(failures.len() == 1 && failures[0].contains(file), "{log_text}");
        Ok(())
    }

    /// Sends these requests with a key, this many at the same time.
    async fn send(
        &self,
        server: &Arc<ServerFixture>,
        key: &str,
        paths: &[String],
        callers: usize,
    ) -> Result<Vec<ServerReply>> {
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

    /// Looks videos up; returns those whose transcripts were delivered.
    async fn look_up_all(
        &self,
        server: &Arc<ServerFixture>,
        videos: &[String],
        callers: usize,
    ) -> Result<Vec<String>> {
        let paths: Vec<String> = videos.iter().map(|video| format!("/api/transcript?v={video}")).collect();
        let mut delivered = Vec::new();
        for reply in self.send(server, &self.accounts.uncounted_key, &paths, callers).await? {
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

    /// Requests one archived video for credits; returns the number of delivered responses. The others must be rejected.
    async fn charge(&self, server: &Arc<ServerFixture>, count: usize, callers: usize) -> Result<usize> {
        let path = format!("/api/v1/transcript?video_id={}", self.videos[0]);
        let replies =
            self.send(server, &self.accounts.clients[0].account_key, &vec![path; count], callers).await?;
        let is_refused = |reply: &&ServerReply| reply.status == StatusCode::INTERNAL_SERVER_ERROR;
        let refused = replies.iter().filter(is_refused).count();
        let delivered = replies.iter().filter(|reply| reply.status == StatusCode::OK).count();
        ensure!(refused + delivered == count, "{replies:?}");
        Ok(delivered)
    }

    /// The number of charges of the account, after all holds have ended.
    async fn count_charges(&self, wallet: &WalletId) -> Result<usize> {
        let open = self.store.open().await?;
        let entries = open.ledger.entries(wallet, PageRequest::first()).await?.items;
        open.close().await;
        Ok(entries.iter().filter(|entry| entry.kind.is_spent()).count())
    }
}

/// The status of a request for a new key.
async fn create_key(server: &ServerFixture) -> Result<StatusCode> {
    Ok(server.send(Method::POST, "/api/keys", &[], "").await?.status)
}

/// The disk fails for the main database file.
async fn check_ledger_failure(callers: usize) -> Result<()> {
    let fixture = DiskFixture::new().await?;
    let account = &fixture.accounts.clients[0].account_wallet;
    let server = fixture.start()?;
    fixture.look_up_all(&server, &fixture.videos[..1], 1).await?;
    assert_eq!(fixture.charge(&server, BEFORE, callers).await?, BEFORE);
    fixture.fail("verbatim.db")?;
    // The charges of the failing commit have an unknown result: their responses are delivered.
    let unknown = fixture.charge(&server, callers, callers).await?;
    assert_eq!(fixture.charge(&server, AFTER, callers).await?, 0);
    fixture.mend()?;
    assert_eq!(fixture.charge(&server, AFTER, callers).await?, 0, "the server writes after a failed sync");
    assert_eq!(create_key(&server).await?, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(
        fixture.look_up_all(&server, &fixture.videos[..1], 1).await?.len(),
        1,
        "an archived transcript is missing"
    );
    fixture.check_log("verbatim.db").await?;
    drop(server);
    check_ledger(&fixture.store.data).await?;
    let charged = fixture.count_charges(account).await?;
    assert!((BEFORE..=BEFORE + unknown).contains(&charged), "{charged} charges, {unknown} unknown");

    let server = fixture.start()?;
    assert_eq!(fixture.charge(&server, AFTER, callers).await?, AFTER);
    drop(server);
    check_ledger(&fixture.store.data).await?;
    assert_eq!(fixture.count_charges(account).await?, charged + AFTER);
    Ok(())
}

/// The disk fails for the archive file.
async fn check_archive_failure(callers: usize) -> Result<()> {
    let fixture = DiskFixture::new().await?;
    let (before, after) = fixture.videos.split_at(BEFORE);
    let (refused, late) = after.split_at(AFTER);
    let server = fixture.start()?;
    assert_eq!(fixture.look_up_all(&server, before, callers).await?, before);
    fixture.fail("archive.db")?;
    assert_eq!(fixture.look_up_all(&server, refused, callers).await?, [""; 0]);
    fixture.mend()?;
    assert_eq!(
        fixture.look_up_all(&server, late, callers).await?,
        [""; 0],
        "the server writes after a failed sync"
    );
    assert_eq!(create_key(&server).await?, StatusCode::CREATED, "the main database file has no failure");
    assert_eq!(fixture.look_up_all(&server, before, callers).await?, before);
    fixture.check_log("archive.db").await?;
    drop(server);
    assert_eq!(
        check_ledger(&fixture.store.data).await?,
        WALLETS * before.len(),
        "a caller without a transcript was charged"
    );

    let server = fixture.start()?;
    assert_eq!(fixture.look_up_all(&server, late, callers).await?, late);
    assert_eq!(fixture.look_up_all(&server, before, callers).await?, before);
    drop(server);
    assert_eq!(check_ledger(&fixture.store.data).await?, WALLETS * (before.len() + late.len()));
    Ok(())
}
