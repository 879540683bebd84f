//! Compaction next to a running server, also when it is killed: responses do not change.

use std::process::Stdio;

use anyhow::Result;
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::harness::{ServerFixture, ServerReply, verbatim},
    json_of, run_expecting, stdout_of,
};

const VIDEOS: usize = 40;
/// Responses contain the base URL: with this one, two servers return the same bytes.
const BASE_URL: [(&str, &str); 1] = [("VERBATIM_SERVER__BASE_URL", "https://example.org")];

/// A data folder with imported transcripts of some minutes.
fn import_videos() -> Result<TempDir> {
    let (data, files) = (TempDir::new()?, TempDir::new()?);
    for number in 0..VIDEOS {
        let mut captions = String::from("WEBVTT\n");
        for index in 0..60 {
            let text = format!("and that is the {index}th thing that number {number} said about it");
            captions.push_str(&format!("\n{0:02}:00.000 --> {0:02}:59.500\n{text}\n", index));
        }
        std::fs::write(files.path().join(format!("compact-{number:03}.en.vtt")), captions)?;
    }
    let files = files.path().to_str().unwrap_or_default().to_owned();
    run_expecting(data.path(), &["import", &files], "", 0)?;
    Ok(data)
}

/// The responses for every video in every encoding.
async fn fetch_responses(server: &ServerFixture) -> Result<Vec<ServerReply>> {
    let mut responses = Vec::new();
    for number in 0..VIDEOS {
        for encoding in ["zstd", "br", "gzip", "identity"] {
            let path = format!("/api/transcript?v=compact-{number:03}");
            responses.push(server.send(Method::GET, &path, &[("accept-encoding", encoding)], "").await?);
        }
    }
    Ok(responses)
}

#[track_caller]
fn check_equal(before: &[ServerReply], after: &[ServerReply]) {
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
async fn compaction_next_to_running_server_changes_no_response() -> Result<()> {
    let data = import_videos()?;
    let running = ServerFixture::start(&data, &BASE_URL)?;
    let before = fetch_responses(&running).await?;
    let stats = json_of(data.path(), &["archive", "stats", "--json"])?;
    assert_eq!((&stats["transcripts"], &stats["compact"]), (&json!(VIDEOS), &json!(0)));

    // New transcripts are not compacted by default.
    assert_eq!(json_of(data.path(), &["archive", "compact", "--json"])?["compacted"], 0);
    run_expecting(data.path(), &["archive", "compact", "--older-than", "long"], "", 2)?;
    // Killed at several points of the work; the next round finds what was already compacted.
    for micros in [200, 60_000, 90_000, 120_000] {
        let mut command = verbatim(data.path(), &["archive", "compact", "--older-than", "0s"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        tokio::time::sleep(std::time::Duration::from_micros(micros)).await;
        child.kill()?;
        child.wait()?;
        check_equal(&before, &fetch_responses(&ServerFixture::start(&data, &BASE_URL)?).await?);
    }
    let done = json_of(data.path(), &["archive", "compact", "--older-than", "0s", "--json"])?;
    assert_eq!(
        (&done["damaged"], done["bytesAfter"].as_u64() <= done["bytesBefore"].as_u64()),
        (&json!([]), true)
    );
    let after = json_of(data.path(), &["archive", "stats", "--json"])?;
    assert_eq!((&after["transcripts"], &after["compact"]), (&json!(VIDEOS), &json!(VIDEOS)));
    assert!(after["bytes"].as_u64() < stats["bytes"].as_u64(), "{after} and before {stats}");
    check_equal(&before, &fetch_responses(&running).await?);
    check_equal(&before, &fetch_responses(&ServerFixture::start(&data, &BASE_URL)?).await?);
    let again = stdout_of(data.path(), &["archive", "compact", "--older-than", "0s"])?;
    assert_eq!(again, "0 transcripts compacted: 0 bytes became 0\n");
    Ok(())
}

#[test]
fn archive_list_prints_every_track() -> Result<()> {
    let data = import_videos()?;
    let listed = json_of(data.path(), &["archive", "list", "--json"])?;
    let names: Vec<_> = listed.as_array().into_iter().flatten().map(|row| row["videoId"].clone()).collect();
    assert_eq!(names, (0..VIDEOS).map(|number| json!(format!("compact-{number:03}"))).collect::<Vec<_>>());
    assert_eq!((&listed[7]["language"], &listed[7]["revision"]), (&json!("en"), &json!(1)));
    let table = stdout_of(data.path(), &["archive", "list"])?;
    assert_eq!(table.lines().count(), VIDEOS + 1, "{table}");
    assert!(table.lines().nth(8).is_some_and(|line| line.starts_with("video_site/compact-007")), "{table}");
    Ok(())
}
