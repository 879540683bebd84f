//! `verbatim mcp`, as an assistant starts it.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
    time::timeout,
};

use super::{
    LONG, SHORT, archive,
    client::{REVISIONS, call, pages, text, told, whole},
    long_words, words,
};
use crate::server::{
    harness::{binary, run, verbatim},
    platform::{fetches, platform, settings},
};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the client starts the command over this archive, with these settings.
fn reach(data: &TempDir, settings: &[(String, String)]) -> Value {
    let settings: serde_json::Map<String, Value> =
        settings.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({ "command": binary(), "args": ["mcp", "--data", data.path()], "env": settings })
}

#[test]
fn both_revisions_work_on_the_users_own_archive() -> Result<()> {
    let proxy = platform(&["aaaaaaaaaaa"], Duration::ZERO)?;
    let data = archive()?;
    for (mode, version) in REVISIONS {
        let calls = [
            whole("get_transcript", json!({ "video": LONG, "max_chars": 5_000 })),
            call("search_transcript", json!({ "video": SHORT, "query": "NINE winters" })),
            call("ask_video", json!({ "video": SHORT, "question": "How long did the lighthouse take?" })),
            call("get_transcript", json!({ "video": "aaaaaaaaaaa", "timestamps": false })),
            call("list_languages", json!({ "video": "aaaaaaaaaaa" })),
            call("get_transcript", json!({ "video": "https://x.com/a/status/notanumber" })),
        ];
        let told = told(&reach(&data, &settings(&proxy)), mode, &calls)?;
        assert_eq!(told["version"], version);
        assert_eq!(words(pages(&told, 0)), long_words());
        assert!(text(&told, 1).contains("nine winters"), "{}", text(&told, 1));
        assert!(
            text(&told, 2).contains("nine winters") && text(&told, 2).contains("\n[0:01] https://"),
            "{}",
            text(&told, 2)
        );
        assert!(text(&told, 3).contains("\nThis is aaaaaaaaaaa."), "{}", text(&told, 3));
        assert!(text(&told, 4).contains("archived"), "{}", text(&told, 4));
        assert_eq!(told["results"][5][0]["isError"], true, "{told}");
    }
    // What was fetched for the first is archived for the second, and for the other commands.
    assert_eq!(fetches(&proxy, "aaaaaaaaaaa"), 1);
    let output = run(verbatim(data.path(), &["get", "aaaaaaaaaaa"]), b"")?;
    assert!(String::from_utf8(output.stdout)?.starts_with("This is aaaaaaaaaaa."));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_ends_nothing_and_the_end_of_input_does() -> Result<()> {
    let data = archive()?;
    let mut child = Command::new(binary())
        .args(["mcp", "--data"])
        .arg(data.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (mut input, output) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
    let mut lines = BufReader::new(output).lines();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let long = format!("{{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"{}\"}}", "x".repeat(1 << 20));
    let get = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "get_transcript", "arguments": { "video": SHORT } } });
    for line in [
        hello.to_string(),
        ready.to_string(),
        "{".to_owned(),
        "\u{0}\u{1b}[2J".to_owned(),
        long,
        get.to_string(),
    ] {
        input.write_all(format!("{line}\n").as_bytes()).await?;
    }
    let mut answers = Vec::new();
    while answers.last().is_none_or(|last: &Value| last["id"] != 2) {
        let line = timeout(PATIENCE, lines.next_line()).await??.context("it ended")?;
        answers.push(serde_json::from_str::<Value>(&line)?);
    }
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25", "{answers:?}");
    assert!(answers.last().is_some_and(|last| last.to_string().contains("nine winters")), "{answers:?}");
    drop(input);
    let status = timeout(PATIENCE, child.wait()).await??;
    ensure!(status.success(), "{status}");
    // An assistant that says nothing at all is no fault either.
    assert!(run(verbatim(data.path(), &["mcp"]), b"")?.status.success());
    Ok(())
}
