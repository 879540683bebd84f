//! Compacting beside a running server, and being killed meanwhile: whoever looks up cannot tell.

use std::process::Stdio;

use anyhow::Result;
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::harness::{Reply, Server, verbatim},
    ends, told, told_json,
};

const VIDEOS: usize = 40;
/// Answers name it: that of a server is the same, wherever it listens.
const AT: [(&str, &str); 1] = [("VERBATIM_SERVER__BASE_URL", "https://example.org")];

/// A data folder with some imported transcripts of some minutes.
fn imported() -> Result<TempDir> {
    let (data, files) = (TempDir::new()?, TempDir::new()?);
    for number in 0..VIDEOS {
        let mut captions = String::from("WEBVTT\n");
        for place in 0..60 {
            let text = format!("and that is the {place}th thing that number {number} said about it");
            captions.push_str(&format!("\n{0:02}:00.000 --> {0:02}:59.500\n{text}\n", place));
        }
        std::fs::write(files.path().join(format!("compact-{number:03}.en.vtt")), captions)?;
    }
    let files = files.path().to_str().unwrap_or_default().to_owned();
    ends(data.path(), &["import", &files], "", 0)?;
    Ok(data)
}

/// Everything that a server says of every video, in every encoding.
async fn answers(server: &Server) -> Result<Vec<Reply>> {
    let mut answers = Vec::new();
    for number in 0..VIDEOS {
        for encoding in ["zstd", "br", "gzip", "identity"] {
            let path = format!("/api/transcript?v=compact-{number:03}");
            answers.push(server.send(Method::GET, &path, &[("accept-encoding", encoding)], "").await?);
        }
    }
    Ok(answers)
}

#[track_caller]
fn check(before: &[Reply], after: &[Reply]) {
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(after) {
        assert_eq!((before.status, &before.body), (after.status, &after.body));
        for name in ["etag", "content-encoding", "content-type", "cache-control", "vary"] {
            assert_eq!(before.header(name), after.header(name), "{name}");
        }
        assert!(before.status == 200 && before.header("etag").len() > 10, "{before:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compacting_beside_a_server_changes_no_byte() -> Result<()> {
    let data = imported()?;
    let running = Server::start(&data, &AT)?;
    let before = answers(&running).await?;
    let figures = told_json(data.path(), &["archive", "stats", "--json"])?;
    assert_eq!((&figures["transcripts"], &figures["compact"]), (&json!(VIDEOS), &json!(0)));

    // What was imported just now is young.
    assert_eq!(told_json(data.path(), &["archive", "compact", "--json"])?["compacted"], 0);
    ends(data.path(), &["archive", "compact", "--older-than", "long"], "", 2)?;
    // Killed at several places of the work; what it had done by then is found in the next round.
    for micros in [200, 60_000, 90_000, 120_000] {
        let mut command = verbatim(data.path(), &["archive", "compact", "--older-than", "0s"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        tokio::time::sleep(std::time::Duration::from_micros(micros)).await;
        child.kill()?;
        child.wait()?;
        check(&before, &answers(&Server::start(&data, &AT)?).await?);
    }
    let done = told_json(data.path(), &["archive", "compact", "--older-than", "0s", "--json"])?;
    assert_eq!(
        (&done["damaged"], done["bytesAfter"].as_u64() <= done["bytesBefore"].as_u64()),
        (&json!([]), true)
    );
    let after = told_json(data.path(), &["archive", "stats", "--json"])?;
    assert_eq!((&after["transcripts"], &after["compact"]), (&json!(VIDEOS), &json!(VIDEOS)));
    assert!(after["bytes"].as_u64() < figures["bytes"].as_u64(), "{after} and before {figures}");
    check(&before, &answers(&running).await?);
    check(&before, &answers(&Server::start(&data, &AT)?).await?);
    let again = told(data.path(), &["archive", "compact", "--older-than", "0s"])?;
    assert_eq!(again, "0 transcripts compacted: 0 bytes became 0\n");
    Ok(())
}

#[test]
fn what_is_archived_is_listed() -> Result<()> {
    let data = imported()?;
    let listed = told_json(data.path(), &["archive", "list", "--json"])?;
    let names: Vec<_> = listed.as_array().into_iter().flatten().map(|row| row["videoId"].clone()).collect();
    assert_eq!(names, (0..VIDEOS).map(|number| json!(format!("compact-{number:03}"))).collect::<Vec<_>>());
    assert_eq!((&listed[7]["language"], &listed[7]["revision"]), (&json!("en"), &json!(1)));
    let table = told(data.path(), &["archive", "list"])?;
    assert_eq!(table.lines().count(), VIDEOS + 1, "{table}");
    assert!(table.lines().nth(8).is_some_and(|line| line.starts_with("video_site/compact-007")), "{table}");
    Ok(())
}
