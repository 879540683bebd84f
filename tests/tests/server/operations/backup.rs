//! The commands of the guide for backups, run as they stand there: what was bought, spent and archived comes back.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests_postgres::Cluster;

use crate::server::{
    harness::{Server, binary, borrowed, run, verbatim},
    platform::{platform, settings},
    v1::post::{Outbox, account, credits},
};

const GUIDE: &str = include_str!("../../../../docs/operations.md");
const VIDEOS: [&str; 3] = ["dyke-walk-0", "dyke-walk-1", "dyke-walk-2"];

/// The commands of the guide that have this name.
fn commands(name: &str) -> Result<&'static str> {
    let mark = format!("<!-- run: {name} -->\n```sh\n");
    let (_, rest) = GUIDE.split_once(&mark).with_context(|| format!("the guide has no {name}"))?;
    Ok(rest.split_once("```").context("no end")?.0)
}

/// Runs them, with these variables and the built command in the path; what they print.
fn perform(name: &str, variables: &[(&str, &str)]) -> Result<String> {
    let folder = binary().parent().context("no folder")?.display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH")?);
    let mut shell = Command::new("sh");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("VERBATIM_")) {
        shell.env_remove(name);
    }
    shell.args(["-eu", "-c", commands(name)?]).env("PATH", path).envs(variables.iter().copied());
    let output = run(shell, b"")?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{name}: {out}{err}");
    Ok(out.into_owned())
}

/// What callers see of what they have: the account's credits, and the words of each video.
async fn had(server: &Server, key: &str) -> Result<(u64, Vec<Value>)> {
    let mut words = Vec::new();
    for video in VIDEOS {
        words.push(server.get(&format!("/api/transcript?v={video}")).await?.json()["transcript"].clone());
    }
    Ok((credits(server, key).await?, words))
}

/// Buys, spends and archives.
async fn live(server: &Server, data: &TempDir, settings: &[(&str, &str)]) -> Result<String> {
    let mut outbox = Outbox::of(data);
    let key = account(server, &mut outbox, "ann@example.org").await?;
    let mut grant = verbatim(data.path(), &["accounts", "grant", "ann@example.org", "500", "--id", "pack-1"]);
    let granted = run(
        {
            grant.envs(settings.iter().copied());
            grant
        },
        b"",
    )?;
    ensure!(granted.status.success(), "{}", String::from_utf8_lossy(&granted.stderr));
    for video in VIDEOS {
        let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={video}")).await?;
        ensure!(reply.status == 200, "{}", reply.text());
    }
    Ok(key)
}

/// Asks for what is archived, for credits, until it is told to stop: so that the backup is taken of files in use.
async fn busy(server: &Server, key: &str) -> u64 {
    let mut count = 0;
    loop {
        let path = format!("/api/v1/transcript?video_id={}", VIDEOS[count as usize % VIDEOS.len()]);
        if server.get_as(key, &path).await.is_ok_and(|reply| reply.status == 200) {
            count += 1;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Backs a server up while it works, loses everything, and restores it.
async fn survives(
    data: &TempDir,
    settings: &[(&str, &str)],
    backup: impl Fn() -> Result<String> + Send + Sync,
    restore: impl Fn() -> Result<String> + Send + Sync,
    restored: &[(&str, &str)],
) -> Result<()> {
    let mut server = Server::start(data, settings)?;
    let key = live(&server, data, settings).await?;
    let before = had(&server, &key).await?;
    assert_eq!(before.0, 200 + 500 - 3);
    tokio::select! {
        count = busy(&server, &key) => anyhow::bail!("ended after {count}"),
        done = async { tokio::task::block_in_place(&backup) } => { done?; }
    }
    let after = had(&server, &key).await?;
    // What is done after a backup is lost with the machine.
    server.get_as(&key, &format!("/api/v1/transcript?video_id={}", VIDEOS[0])).await?;
    assert!(server.stop()?.success());

    let told = restore()?;
    assert!(told.contains("differences: 0") && told.contains("wallets checked"), "{told}");
    assert!(told.contains("3  videos with a transcript"), "{told}");
    let server = Server::start(data, restored)?;
    let now = had(&server, &key).await?;
    assert!((after.0..=before.0).contains(&now.0), "{} of {} and {}", now.0, before.0, after.0);
    assert_eq!(now.1, before.1, "the words");
    assert!(
        now.1.iter().all(|words| words[1]["text"] == json!("The sheep keep the grass short.")),
        "{now:?}"
    );
    // A grant that was made before is not made again.
    let mut again = verbatim(data.path(), &["accounts", "grant", "ann@example.org", "500", "--id", "pack-1"]);
    again.envs(restored.iter().copied());
    run(again, b"")?;
    assert_eq!(credits(&server, &key).await?, now.0);
    Ok(())
}

fn folder(path: &Path) -> String {
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_back() -> Result<()> {
    let proxy = platform(&VIDEOS, Duration::ZERO)?;
    let (data, kept) = (TempDir::new()?, TempDir::new()?);
    let settings = paced(settings(&proxy));
    let settings = borrowed(&settings);
    let (folder_of_data, folder_of_kept) = (folder(data.path()), folder(kept.path()));
    let variables = [("DATA", folder_of_data.as_str()), ("BACKUP", &folder_of_kept)];
    let restore = || {
        for name in ["verbatim.db", "archive.db"] {
            std::fs::write(data.path().join(name), "nothing is left")?;
            std::fs::write(data.path().join(format!("{name}-wal")), "of it")?;
        }
        perform("sqlite restore", &variables)
    };
    let backup = || {
        let told = perform("sqlite backup", &variables)?;
        ensure!(told.lines().filter(|line| *line == "ok").count() == 2, "{told}");
        Ok(told)
    };
    survives(&data, &settings, backup, restore, &settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_comes_back() -> Result<()> {
    let proxy = platform(&VIDEOS, Duration::ZERO)?;
    let (data, kept) = (TempDir::new()?, TempDir::new()?);
    let (old, new) = (Cluster::shared().database()?, Cluster::shared().database()?);
    let with = |url: &str| {
        let mut settings = paced(settings(&proxy));
        settings.push(("VERBATIM_STORAGE__URL".to_owned(), url.to_owned()));
        settings
    };
    let (before, after) = (with(&old.url), with(&new.url));
    let before = borrowed(&before);
    let after = borrowed(&after);
    let (folder_of_data, folder_of_kept) = (folder(data.path()), folder(kept.path()));
    let variables = [
        ("BACKUP", folder_of_kept.as_str()),
        ("URL", &old.url),
        ("NEW_URL", &new.url),
        ("VERBATIM_DATA", &folder_of_data),
    ];
    let backup = || perform("postgres backup", &variables);
    let restore = || perform("postgres restore", &variables);
    survives(&data, &before, backup, restore, &after).await
}

/// Accounts may ask as often as the test does.
fn paced(mut settings: Vec<(String, String)>) -> Vec<(String, String)> {
    settings.push(("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE".to_owned(), "100000".to_owned()));
    settings
}
