//! Results of a job as a ZIP file.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{call, delayed, serve, start_job, start_platform, videos, wait_for_status};
use crate::server::{
    harness::{ServerFixture, run_ok},
    v1::mail_client::{MailClient, create_account},
};

/// Reads a ZIP file with Python's library, and checks each file.
///
/// Readers of a stream, such as Java's, reject a file that is stored without compression before its length.
const READ_ZIP: &str = "
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as file:
    assert file.testzip() is None
    assert all(entry.compress_type == zipfile.ZIP_DEFLATED for entry in file.infolist()), file.infolist()
    print(json.dumps([[name, file.read(name).decode('utf-8', 'replace')] for name in file.namelist()]))
";

/// The names and contents of the files.
pub(super) async fn files(
    server: &ServerFixture,
    key: &str,
    id: &str,
    query: &str,
) -> Result<Vec<(String, String)>> {
    let reply = call(server, key, Method::GET, &format!("/{id}/results?{query}"), &Value::Null).await?;
    ensure!(reply.status == 200, "{query}: {}", reply.text());
    assert_eq!(reply.header("content-type"), "application/zip");
    assert_eq!(reply.header("content-disposition"), format!("attachment; filename=\"{id}.zip\""));
    let folder = TempDir::new()?;
    let path = folder.path().join("results.zip");
    std::fs::write(&path, &reply.body)?;
    let mut python = Command::new("python3");
    python.args(["-c", READ_ZIP]).arg(&path);
    Ok(serde_json::from_str(&run_ok(python, b"")?)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn job_files_have_each_transcript_in_order_and_failures() -> Result<()> {
    let mut videos = videos("zipped-", 300);
    videos[1] = "-wtIMTCHWuI".to_owned();
    let proxy = start_platform(&videos, &[&videos[1]], delayed(0))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[("VERBATIM_PLANS__FREE__CREDITS", "1000")])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let links = [&videos[..], &["=no link".to_owned()]].concat();
    let id = start_job(&server, &key, &links).await?;
    wait_for_status(&server, &key, &id, "completed").await?;
    let found = files(&server, &key, &id, "format=srt").await?;
    assert_eq!(found.len(), 300, "299 transcripts and the failures");
    let (failures, transcripts) = found.split_last().context("no files")?;
    let delivered = videos.iter().enumerate().filter(|(index, _)| *index != 1);
    for ((name, words), (index, video)) in transcripts.iter().zip(delivered) {
        assert_eq!(*name, format!("{:04}-A-walk-along-the-dyke-{video}.srt", index + 1));
        assert!(
            words.starts_with("1\n00:00:00,500 --> ") && words.contains(&format!("This is {video}.")),
            "{words}"
        );
    }
    assert_eq!(failures.0, "failures.csv");
    let rows: Vec<_> = failures.1.lines().collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(rows[0], "\u{FEFF}index,url,video_id,status,reason,message");
    let no_captions = format!("1,\"'{0}\",\"{0}\",failed,\"no_captions\",", videos[1]);
    assert!(rows[1].starts_with(&no_captions), "{rows:?}");
    assert!(rows[2].starts_with("300,\"'=no link\",\"\",failed,\"invalid_url\","), "no formula: {rows:?}");

    for (format, start, ending) in [
        ("vtt", "WEBVTT", "vtt"),
        ("md", "# ", "md"),
        ("text", "This is", "txt"),
        ("docx", "PK", "docx"),
        ("pdf", "%PDF-", "pdf"),
    ] {
        let found = files(&server, &key, &id, &format!("format={format}&limit=2&cursor=298")).await?;
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        let name =
            |number: usize| format!("{number:04}-A-walk-along-the-dyke-{}.{ending}", videos[number - 1]);
        assert_eq!(names, [&name(299), &name(300), "failures.csv"]);
        assert!(found[0].1.starts_with(start), "{format}: {:?}", found[0].1);
        assert_eq!(found[2].1.lines().count(), 1, "no failure in this part: {:?}", found[2].1);
    }
    for query in ["format=doc", "format=srt&limit=0", "Format=srt"] {
        let reply = call(&server, &key, Method::GET, &format!("/{id}/results?{query}"), &Value::Null).await?;
        assert_eq!(reply.status, 400, "{query}: {}", reply.text());
    }

    // Clients that disconnect in the middle.
    for _ in 0..5 {
        let mut stream = TcpStream::connect(server.address()).await?;
        let request = format!(
            "GET /api/v1/jobs/{id}/results?format=docx HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut start = [0; 1_000];
        stream.read_exact(&mut start).await?;
        assert!(start.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&start));
    }
    assert_eq!(files(&server, &key, &id, "format=text").await?.len(), 300);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_files_while_it_runs_list_what_is_missing() -> Result<()> {
    let videos = videos("midway-", 2);
    let proxy = start_platform(&videos[..1], &[], delayed(0))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[("VERBATIM_PLANS__FREE__CREDITS", "1")])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let first = start_job(&server, &key, &videos[..1]).await?;
    wait_for_status(&server, &key, &first, "completed").await?;
    let reply = call(&server, &key, Method::POST, "", &json!({ "urls": videos })).await?;
    let id = reply.json()["job_id"].as_str().context("no job_id")?.to_owned();
    wait_for_status(&server, &key, &id, "paused").await?;
    let found = files(&server, &key, &id, "format=srt").await?;
    let rows = format!(
        "0,\"{0}\",\"{0}\",queued,\"\",\"\"\n1,\"{1}\",\"{1}\",queued,\"\",\"\"\n",
        videos[0], videos[1]
    );
    let expected = format!("\u{FEFF}index,url,video_id,status,reason,message\n{rows}").replace('\n', "\r\n");
    assert_eq!(found, [("failures.csv".to_owned(), expected)]);
    Ok(())
}
