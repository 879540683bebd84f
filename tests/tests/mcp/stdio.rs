//! `verbatim mcp` over standard input and output.

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
    client::{REVISIONS, call, paged_call, pages, run_calls, text},
    long_words, words,
};
use crate::server::{
    harness::{binary, run, verbatim},
    platform::{fetch_count, platform_settings, start_platform},
};

/// Timeout of every step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The command with which the client reaches this archive under these settings.
fn target(data: &TempDir, settings: &[(String, String)]) -> Value {
    let settings: serde_json::Map<String, Value> =
        settings.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({ "command": binary(), "args": ["mcp", "--data", data.path()], "env": settings })
}

#[test]
fn mcp_stdio_both_revisions_use_local_archive() -> Result<()> {
    let proxy = start_platform(&["aaaaaaaaaaa"], Duration::ZERO)?;
    let data = archive()?;
    for (mode, version) in REVISIONS {
        let calls = [
            paged_call("get_transcript", json!({ "video": LONG, "max_chars": 5_000 })),
            call("search_transcript", json!({ "video": SHORT, "query": "NINE winters" })),
            call("ask_video", json!({ "video": SHORT, "question": "How long did the lighthouse take?" })),
            call("get_transcript", json!({ "video": "aaaaaaaaaaa", "timestamps": false })),
            call("list_languages", json!({ "video": "aaaaaaaaaaa" })),
            call("get_transcript", json!({ "video": "https://x.com/a/status/notanumber" })),
            call("search_archive", json!({ "query": "winter NINE", "limit": 3 })),
            call("search_archive", json!({ "query": "lighthuose" })),
            call("search_archive", json!({ "query": "winter NINE", "lang": "", "cursor": "" })),
            call("search_archive", json!({ "query": "winter NINE", "cursor": "x" })),
            call("search_archive", json!({ "query": "winter NINE", "lang": "de" })),
            call("search_archive", json!({ "query": "😂" })),
        ];
        let report = run_calls(&target(&data, &platform_settings(&proxy)), mode, &calls)?;
        assert_eq!(report["version"], version);
        assert_eq!(words(pages(&report, 0)), long_words());
        let passages = text(&report, 1);
        let shown = "in the order of the video";
        assert!(passages.contains("nine winters") && passages.contains(shown), "{passages}");
        assert!(
            text(&report, 2).contains("nine winters") && text(&report, 2).contains("\n[0:01] https://"),
            "{}",
            text(&report, 2)
        );
        assert!(text(&report, 3).contains("\nThis is aaaaaaaaaaa."), "{}", text(&report, 3));
        assert!(text(&report, 4).contains("archived"), "{}", text(&report, 4));
        assert_eq!(report["results"][5][0]["isError"], true, "{report}");
        let found = text(&report, 6);
        assert!(found.contains("1 of 1 video found") && found.contains("nine winters"), "{found}");
        assert!(text(&report, 7).contains("Did the user mean “lighthouse”?"), "{}", text(&report, 7));
        assert!(text(&report, 8).contains("nine winters"), "{}", text(&report, 8));
        assert!(text(&report, 9).starts_with("cursor: not a cursor of this search"), "{}", text(&report, 9));
        let unfiltered = "Without the filters, “winter NINE” matches in 1 video.\n";
        assert!(text(&report, 10).contains(unfiltered), "{}", text(&report, 10));
        assert!(text(&report, 11).starts_with("query: it has no word"), "{}", text(&report, 11));
    }
    // The transcript fetched for the first revision is archived for the second one and for the other commands.
    assert_eq!(fetch_count(&proxy, "aaaaaaaaaaa"), 1);
    let output = run(verbatim(data.path(), &["get", "aaaaaaaaaaa"]), b"")?;
    assert!(String::from_utf8(output.stdout)?.starts_with("This is aaaaaaaaaaa."));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_stdio_invalid_messages_are_rejected_and_eof_exits() -> Result<()> {
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
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } })
    .to_string();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let long = |length: usize| {
        format!("{{\"method\": \"{}\", \"jsonrpc\": \"2.0\", \"id\": {length}}}", "x".repeat(length))
    };
    let get = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "get_transcript", "arguments": { "video": SHORT } } });
    let mut get = get.to_string();
    // The largest message: the line end does not count.
    get.push_str(&" ".repeat((64 << 10) - get.len()));
    for line in [
        hello.clone(),
        ready.to_string(),
        "{".to_owned(),
        "\u{0}\u{1b}[2J".to_owned(),
        long(70_000),
        format!("\u{FEFF}{}", long(70_001)),
        long(3 << 20),
        get,
    ] {
        input.write_all(format!("{line}\n").as_bytes()).await?;
    }
    let mut responses = Vec::new();
    while responses.last().is_none_or(|last: &Value| last["id"] != 2) {
        let line = timeout(TIMEOUT, lines.next_line()).await??.context("the output ended")?;
        responses.push(serde_json::from_str::<Value>(&line)?);
    }
    let welcome = responses.iter().find(|response| response["id"] == 1).context("no response")?;
    assert_eq!(welcome["result"]["protocolVersion"], "2025-11-25", "{responses:?}");
    assert!(responses.last().is_some_and(|last| last.to_string().contains("nine winters")), "{responses:?}");
    let errors: Vec<_> = responses.iter().filter(|response| response["error"].is_object()).collect();
    let codes: Vec<_> =
        errors.iter().map(|response| (response["error"]["code"].as_i64(), response["id"].as_u64())).collect();
    let (syntax, size) = (Some(-32_700), Some(-32_600));
    let expect = [(syntax, None), (syntax, None), (size, Some(70_000)), (size, Some(70_001)), (size, None)];
    assert_eq!(codes, expect, "{responses:?}");
    // A line without an end is read too.
    input.write_all(b"{").await?;
    drop(input);
    let last = timeout(TIMEOUT, lines.next_line()).await??.context("the output ended")?;
    assert!(last.contains("-32700"), "{last}");
    let status = timeout(TIMEOUT, child.wait()).await??;
    ensure!(status.success(), "{status}");
    let output = run(verbatim(data.path(), &["mcp"]), hello.as_bytes())?;
    assert!(String::from_utf8(output.stdout)?.contains("2025-11-25"));
    // Empty input is not an error either.
    assert!(run(verbatim(data.path(), &["mcp"]), b"")?.status.success());
    Ok(())
}
