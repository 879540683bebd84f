//! A disk that does not keep what is written: nobody is told that it did, and nothing more is written until the server
//! is started anew. What is archived is served all the same.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{
    harness::{Server, keys},
    killed::check_ledger,
    platform::{platform, settings},
    preload,
};

/// Whose allowances a look-up is charged to: the key's, and the service's of the day.
const WALLETS: usize = 2;
/// How many look-ups there are before the disk refuses.
const BEFORE: usize = 24;
/// How many more there are then.
const AFTER: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_refuses_who_writes_alone_is_not_believed_again() -> Result<()> {
    refuses(1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_refuses_who_writes_among_others_is_not_believed_again() -> Result<()> {
    refuses(BEFORE).await
}

/// So many look up at the same time.
async fn refuses(callers: usize) -> Result<()> {
    let videos: Vec<String> = (0..BEFORE + 2 * AFTER).map(|place| format!("refused-{place:03}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let proxy = platform(&names, Duration::from_millis(1))?;
    let data = TempDir::new()?;
    let (sign, log) = (data.path().join("refuses"), data.path().join("log"));
    let mut settings = settings(&proxy);
    settings.push(("VERBATIM_LIMITS__FREE_PER_MONTH".to_owned(), "1000".to_owned()));
    settings.push(("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR".to_owned(), "1000".to_owned()));
    let key = keys(&data, 1)?.remove(0);
    let mut among = settings.clone();
    let library = preload::library("disk/refuses.c", data.path())?;
    among.push(("LD_PRELOAD".to_owned(), library.display().to_string()));
    among.push(("DISK_REFUSES".to_owned(), sign.display().to_string()));

    let server = Arc::new(Server::start_with_log(&data, &pairs(&among), &log)?);
    let mut acknowledged = looked_up(&server, &key, &videos[..BEFORE], callers).await?;
    ensure!(acknowledged.len() == BEFORE, "{acknowledged:?}");
    assert_eq!(new_key(&server).await?, 201);
    std::fs::write(&sign, "")?;
    assert_eq!(new_key(&server).await?, 500);
    let refused = &videos[BEFORE..BEFORE + AFTER];
    assert_eq!(looked_up(&server, &key, refused, callers.min(AFTER)).await?, [""; 0]);
    std::fs::remove_file(&sign)?;
    assert_eq!(new_key(&server).await?, 500, "it is believed again");
    let late = &videos[BEFORE + AFTER..];
    assert_eq!(looked_up(&server, &key, late, callers.min(AFTER)).await?, [""; 0], "it is believed again");
    check_words(&server, &acknowledged).await?;
    let said = std::fs::read_to_string(&log)?;
    let told = |line: &&str| line.contains("ERROR the disk did not keep what was written");
    let told: Vec<_> = said.lines().filter(told).collect();
    assert_eq!(told.len(), 2, "each file's is told once: {said}");
    // Who writes alone is told by SQLite itself.
    let by_itself = told.iter().filter(|line| line.contains("code: 1034")).count();
    assert!(by_itself > 0 || callers > 1, "{said}");
    drop(server);

    assert_eq!(check_ledger(&data).await?, WALLETS * BEFORE, "whoever was refused paid");
    let server = Arc::new(Server::start(&data, &pairs(&settings))?);
    acknowledged.extend(looked_up(&server, &key, late, callers.min(AFTER)).await?);
    ensure!(acknowledged.len() == BEFORE + AFTER, "{acknowledged:?}");
    check_words(&server, &acknowledged).await?;
    drop(server);
    assert_eq!(check_ledger(&data).await?, WALLETS * (BEFORE + AFTER));
    Ok(())
}

fn pairs(settings: &[(String, String)]) -> Vec<(&str, &str)> {
    settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Looks these videos up with a key, so many at the same time; those of them whose words came.
async fn looked_up(
    server: &Arc<Server>,
    key: &str,
    videos: &[String],
    callers: usize,
) -> Result<Vec<String>> {
    let mut delivered = Vec::new();
    for videos in videos.chunks(callers) {
        let mut calls = JoinSet::new();
        for video in videos {
            let (server, key, video) = (Arc::clone(server), key.to_owned(), video.clone());
            calls.spawn(async move {
                let reply = server.get_as(&key, &format!("/api/transcript?v={video}")).await?;
                anyhow::Ok((reply.json(), video))
            });
        }
        while let Some(call) = calls.join_next().await {
            let (body, video) = call??;
            match &body["available"] {
                Value::Bool(true) => delivered.push(video),
                available => {
                    assert_eq!((available, &body["transcript"]), (&json!(false), &json!([])), "{body}")
                }
            }
        }
    }
    delivered.sort_unstable();
    Ok(delivered)
}

/// What a wish for a new key is answered.
async fn new_key(server: &Server) -> Result<StatusCode> {
    Ok(server.send(Method::POST, "/api/keys", &[], "").await?.status)
}

async fn check_words(server: &Server, videos: &[String]) -> Result<()> {
    for video in videos {
        let body = server.get(&format!("/api/transcript?v={video}")).await?.json();
        assert_eq!(body["transcript"][0]["text"], json!(format!("This is {video}.")), "{body}");
    }
    Ok(())
}
