//! The backup and erasure commands of the guide, run unchanged: purchased, spent and archived data is restored, and the
//! text of a deleted video is erased.

use std::{os::unix::fs::MetadataExt as _, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests_postgres::Cluster;

use crate::server::{
    harness::{ServerFixture, binary, borrow_settings, psql, run, run_ok, verbatim_with, wait_until},
    platform::{platform_settings, start_platform},
    v1::mail_client::{MailClient, create_account, remaining_credits},
};

const GUIDE: &str = include_str!("../../../../docs/operations.md");
const GRANT: [&str; 6] = ["accounts", "grant", "ann@example.org", "500", "--id", "pack-1"];
const VIDEOS: [&str; 3] = ["dyke-walk-0", "dyke-walk-1", "dyke-walk-2"];

/// The commands of the guide with this name.
fn commands(name: &str) -> Result<&'static str> {
    let mark = format!("<!-- run: {name} -->\n```sh\n");
    let (_, rest) = GUIDE.split_once(&mark).with_context(|| format!("the guide has no {name}"))?;
    Ok(rest.split_once("```").context("the block has no end")?.0)
}

/// Runs them with these variables and the built command in `PATH`; returns their output.
fn run_commands(name: &str, variables: &[(&str, &str)]) -> Result<String> {
    let folder = binary().parent().context("no folder")?.display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH")?);
    let mut shell = Command::new("sh");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("VERBATIM_")) {
        shell.env_remove(name);
    }
    shell.args(["-eu", "-c", commands(name)?]).env("PATH", path).envs(variables.iter().copied());
    run_ok(shell, b"").with_context(|| name.to_owned())
}

/// The state that callers see: the account's credits, and the transcript of each video.
async fn read_state(server: &ServerFixture, key: &str) -> Result<(u64, Vec<Value>)> {
    let mut words = Vec::new();
    for video in VIDEOS {
        words.push(server.get(&format!("/api/transcript?v={video}")).await?.json()["transcript"].clone());
    }
    Ok((remaining_credits(server, key).await?, words))
}

/// Creates an account with a grant, spends credits and archives transcripts.
async fn create_data(server: &ServerFixture, data: &TempDir, settings: &[(&str, &str)]) -> Result<String> {
    let mut outbox = MailClient::new(data);
    let key = create_account(server, &mut outbox, "ann@example.org").await?;
    run_ok(verbatim_with(data.path(), settings, &GRANT), b"")?;
    for video in VIDEOS {
        let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={video}")).await?;
        ensure!(reply.status == 200, "{}", reply.text());
    }
    Ok(key)
}

/// Requests archived transcripts for credits without end, so that the backup reads files in use.
async fn request_forever(server: &ServerFixture, key: &str) -> u64 {
    let mut count = 0;
    loop {
        let path = format!("/api/v1/transcript?video_id={}", VIDEOS[count as usize % VIDEOS.len()]);
        if server.get_as(key, &path).await.is_ok_and(|reply| reply.status == 200) {
            count += 1;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Backs up a working server, loses its data, and restores it.
async fn check_restore(
    data: &TempDir,
    settings: &[(&str, &str)],
    backup: impl Fn() -> Result<String> + Send + Sync,
    restore: impl Fn() -> Result<String> + Send + Sync,
    restored: &[(&str, &str)],
) -> Result<()> {
    let mut server = ServerFixture::start(data, settings)?;
    let key = create_data(&server, data, settings).await?;
    let before = read_state(&server, &key).await?;
    assert_eq!(before.0, 200 + 500 - 3);
    tokio::select! {
        count = request_forever(&server, &key) => anyhow::bail!("ended after {count}"),
        done = async { tokio::task::block_in_place(&backup) } => { done?; }
    }
    let after = read_state(&server, &key).await?;
    // Changes after the backup are lost with the machine.
    server.get_as(&key, &format!("/api/v1/transcript?video_id={}", VIDEOS[0])).await?;
    assert!(server.stop()?.success());

    let output = restore()?;
    assert!(output.contains("differences: 0") && output.contains("wallets checked"), "{output}");
    assert!(output.contains("3  videos with a transcript"), "{output}");
    let server = ServerFixture::start(data, restored)?;
    let now = read_state(&server, &key).await?;
    assert!((after.0..=before.0).contains(&now.0), "{} of {} and {}", now.0, before.0, after.0);
    assert_eq!(now.1, before.1, "the restored transcripts differ");
    assert!(
        now.1.iter().all(|words| words[1]["text"] == json!("The sheep keep the grass short.")),
        "{now:?}"
    );
    wait_until("the search does not find what was restored", async || {
        let found = server.get("/api/search?q=sheep").await?.json();
        Ok(found["hits"].as_array().is_some_and(|hits| hits.len() == VIDEOS.len()))
    })
    .await?;
    // A grant from before the backup is not repeated.
    run(verbatim_with(data.path(), restored, &GRANT), b"")?;
    assert_eq!(remaining_credits(&server, &key).await?, now.0);
    Ok(())
}

/// A user id without an account, as in the container image.
const SERVER_USER: u32 = 65_532;

fn folder(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_of_files_is_restored() -> Result<()> {
    let proxy = start_platform(&VIDEOS, Duration::ZERO)?;
    let (data, backup_folder) = (TempDir::new()?, TempDir::new()?);
    let settings = raise_rate_limit(platform_settings(&proxy));
    let settings = borrow_settings(&settings);
    let (data_path, backup_path) = (folder(data.path()), folder(backup_folder.path()));
    let variables = [("DATA", data_path.as_str()), ("BACKUP", &backup_path)];
    let restore = || {
        for name in ["verbatim.db", "archive.db"] {
            std::fs::write(data.path().join(name), "nothing is left")?;
            std::fs::write(data.path().join(format!("{name}-wal")), "of it")?;
        }
        // As root, the folder belongs to the user of the server.
        if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(data.path(), Some(SERVER_USER), Some(SERVER_USER))?;
        }
        let output = run_commands("sqlite restore", &variables)?;
        let owner = std::fs::metadata(data.path())?;
        for name in ["verbatim.db", "archive.db"] {
            let file = std::fs::metadata(data.path().join(name))?;
            assert_eq!(
                (file.uid(), file.gid(), file.mode() & 0o777),
                (owner.uid(), owner.gid(), 0o600),
                "{name}"
            );
        }
        Ok(output)
    };
    let backup = || {
        let output = run_commands("sqlite backup", &variables)?;
        ensure!(output.lines().filter(|line| *line == "ok").count() == 2, "{output}");
        Ok(output)
    };
    check_restore(&data, &settings, backup, restore, &settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_of_postgres_is_restored() -> Result<()> {
    let proxy = start_platform(&VIDEOS, Duration::ZERO)?;
    let (data, backup_folder) = (TempDir::new()?, TempDir::new()?);
    let (old, new) = (Cluster::shared().database()?, Cluster::shared().database()?);
    let with = |url: &str| {
        let mut settings = raise_rate_limit(platform_settings(&proxy));
        settings.push(("VERBATIM_STORAGE__URL".to_owned(), url.to_owned()));
        settings
    };
    let (before, after) = (with(&old.url), with(&new.url));
    let before = borrow_settings(&before);
    let after = borrow_settings(&after);
    let (data_path, backup_path) = (folder(data.path()), folder(backup_folder.path()));
    let variables = [
        ("BACKUP", backup_path.as_str()),
        ("URL", &old.url),
        ("NEW_URL", &new.url),
        ("VERBATIM_DATA", &data_path),
    ];
    let backup = || run_commands("postgres backup", &variables);
    let restore = || run_commands("postgres restore", &variables);
    check_restore(&data, &before, backup, restore, &after).await
}

/// Raises the rate limits of accounts and searches above what the test sends.
fn raise_rate_limit(mut settings: Vec<(String, String)>) -> Vec<(String, String)> {
    for name in ["VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "VERBATIM_SEARCH__REQUESTS_PER_MINUTE"] {
        settings.push((name.to_owned(), "100000".to_owned()));
    }
    settings
}

/// Delivers a transcript that is stored for replays, takes its video down, and erases what is left.
async fn check_erasure(
    data: &TempDir,
    settings: &[(&str, &str)],
    has_text: impl Fn() -> Result<bool>,
    erase: impl Fn(&str) -> Result<String>,
) -> Result<()> {
    let mut server = ServerFixture::start(data, settings)?;
    let key = create_account(&server, &mut MailClient::new(data), "ann@example.org").await?;
    let (path, headers) =
        (format!("/api/v1/transcript?video_id={}", VIDEOS[0]), [("idempotency-key", "once")]);
    for expected in [200_u16, 404] {
        let reply = server.send_as(&key, Method::GET, &path, &headers, "").await?;
        assert_eq!(reply.status, expected, "{}", reply.text());
        run_ok(verbatim_with(data.path(), settings, &["archive", "withdraw", VIDEOS[0]]), b"")?;
    }
    run_ok(verbatim_with(data.path(), settings, &["archive", "delete", VIDEOS[0], "--yes"]), b"")?;
    assert!(server.stop()?.success());
    assert!(has_text()?, "no response is stored");
    // Ids of other videos: a part of this one, and one that matches it as a pattern.
    for other in ["dyke-walk-", "dyke_walk_0"] {
        erase(other)?;
        assert!(has_text()?, "a response was deleted with those of {other}");
    }
    erase(VIDEOS[0])?;
    assert!(!has_text()?, "the text was not erased");
    let server = ServerFixture::start(data, settings)?;
    let reply = server.send_as(&key, Method::GET, &path, &headers, "").await?;
    assert_eq!(reply.status, 404, "{}", reply.text());
    Ok(())
}

/// Whether a file of a folder has words of the transcripts.
fn has_words(folder: &Path) -> Result<bool> {
    const WORDS: &[u8] = b"sheep keep the grass short";
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let found = match path.is_dir() {
            true => has_words(&path)?,
            false => std::fs::read(&path)?.windows(WORDS.len()).any(|part| part == WORDS),
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_in_files_leaves_no_text() -> Result<()> {
    let proxy = start_platform(&VIDEOS, Duration::ZERO)?;
    let data = TempDir::new()?;
    let settings = platform_settings(&proxy);
    let data_path = folder(data.path());
    let erase =
        |video: &str| run_commands("sqlite erasure", &[("DATA", data_path.as_str()), ("VIDEO", video)]);
    check_erasure(&data, &borrow_settings(&settings), || has_words(data.path()), erase).await
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_in_postgres_deletes_stored_responses() -> Result<()> {
    let proxy = start_platform(&VIDEOS, Duration::ZERO)?;
    let (data, database) = (TempDir::new()?, Cluster::shared().database()?);
    let mut settings = platform_settings(&proxy);
    settings.push(("VERBATIM_STORAGE__URL".to_owned(), database.url.clone()));
    let has_responses = || Ok(psql(&database.url, "SELECT count(*) FROM replies")?.trim() != "0");
    let erase =
        |video: &str| run_commands("postgres erasure", &[("URL", database.url.as_str()), ("VIDEO", video)]);
    check_erasure(&data, &borrow_settings(&settings), has_responses, erase).await
}
