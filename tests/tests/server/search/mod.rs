//! Search of the archive: over HTTP, on the page and in the command, with files and with PostgreSQL.

mod index_files;
mod memory;

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    harness::{
        ServerFixture, binary, create_keys, import_example, run, run_ok, verbatim, verbatim_with, wait_until,
    },
    postgres::PostgresFixture,
};

const LIGHTHOUSE: &str = "https://youtu.be/L1ghth0use1";

/// Runs a command that must succeed; returns its output.
fn command(data: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Result<String> {
    run_ok(verbatim_with(data, settings, arguments), b"")
}

/// Archives one line of speech.
fn import(data: &Path, settings: &[(&str, &str)], id: &str, language: &str, line: &str) -> Result<()> {
    let file = data.join(format!("{id}.srt"));
    std::fs::write(&file, format!("1\n00:01:01,200 --> 00:01:06,000\n{line}\n"))?;
    let file = file.to_string_lossy().into_owned();
    let link = format!("https://youtu.be/{id}");
    command(data, settings, &["import", &file, "--video", &link, "--lang", language]).map(drop)
}

/// The ids of the hits.
async fn found(server: &ServerFixture, query: &str) -> Result<Vec<String>> {
    let reply = server.get(&format!("/api/search?q={query}")).await?;
    ensure!(reply.status == 200, "{query}: {}", reply.text());
    let body = reply.json();
    let hits = body["hits"].as_array().cloned().unwrap_or_default();
    Ok(hits.iter().filter_map(|hit| hit["videoId"].as_str().map(str::to_owned)).collect())
}

async fn wait_for(server: &ServerFixture, query: &str, ids: &[&str]) -> Result<()> {
    wait_until(&format!("{query} does not find {ids:?}"), async || Ok(found(server, query).await? == ids))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn search_finds_moments_of_archived_videos() -> Result<()> {
    let data = TempDir::new()?;
    // Archived before the server starts: the index is built in the background.
    import_example(&data, LIGHTHOUSE)?;
    let server = ServerFixture::start(&data, &[])?;
    wait_for(&server, "%22laid+when%22", &["L1ghth0use1"]).await?;
    // The server counts exactly once it knows that the build is complete, a moment after the video is found.
    let search = async || server.get("/api/search?q=stones+calm").await.map(|reply| reply.json());
    wait_until("the index is incomplete", async || Ok(search().await?["total"]["relation"] == "eq")).await?;
    let body = search().await?;
    let score = body["hits"][0]["score"].clone();
    assert!(score.is_number(), "{body}");
    let watch_url = format!("http://{}/watch/video_site/L1ghth0use1", server.address());
    assert_eq!(
        body,
        json!({
            "query": "stones calm",
            "total": { "value": 1, "relation": "eq" },
            "nextCursor": null,
            "hits": [{
                "platform": "video_site", "videoId": "L1ghth0use1", "title": null, "author": null,
                "language": "en", "watchUrl": watch_url, "score": score,
                "moments": [{
                    "start": 4.2, "end": 8.0,
                    "text": "It took nine winters, because stone can only be laid when the sea is calm.",
                    "matches": [[30, 35], [69, 73]],
                    "url": "https://www.youtube.com/watch?v=L1ghth0use1&t=4s"
                }]
            }]
        })
    );
    // A video that another process archives is found soon, and a withdrawn one is gone with the next response.
    import(data.path(), &[], "bbbbbbbbbbb", "de", "Die Leuchttürme am Meer.")?;
    wait_for(&server, "leuchtturm", &["bbbbbbbbbbb"]).await?;
    command(data.path(), &[], &["archive", "withdraw", "https://youtu.be/bbbbbbbbbbb"])?;
    assert_eq!(found(&server, "leuchtturm").await?, [] as [&str; 0]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_page_works_without_script() -> Result<()> {
    let data = TempDir::new()?;
    import_example(&data, LIGHTHOUSE)?;
    let server = ServerFixture::start(&data, &[])?;
    wait_for(&server, "lighthouse", &["L1ghth0use1"]).await?;
    let page = |path: &'static str| server.send(Method::GET, path, &[("accept", "text/html")], "");
    let empty = page("/search").await?;
    assert_eq!(empty.status, 200);
    assert!(empty.text().contains("name=\"q\""), "{}", empty.text());
    let shown = page("/search?q=LIGHTHOUSE").await?.text();
    assert!(shown.contains("<mark>lighthouse</mark>"), "{shown}");
    assert!(shown.contains("href=\"watch/video_site/L1ghth0use1?lang=en&amp;t=1\""), "{shown}");
    let suggestion = page("/search?q=lighthuose").await?.text();
    assert!(
        suggestion.contains("Did you mean") && suggestion.contains("search?q=lighthouse"),
        "{suggestion}"
    );
    let unfiltered = page("/search?q=lighthouse+lang:de").await?.text();
    assert!(
        unfiltered.contains("Videos without the filters: ")
            && unfiltered.contains("href=\"search?q=lighthouse\""),
        "{unfiltered}"
    );
    let hostile = page("/search?q=%3Cscript%3Ealert(1)%3C/script%3E%22%27").await?;
    assert_eq!(hostile.status, 200);
    assert!(!hostile.text().contains("<script>alert"), "{}", hostile.text());
    assert_eq!(page("/search?q=a&limit=900").await?.status, 400);
    for (path, name) in [
        ("/search?q=nine+winters&lang=english+please", "lang"),
        ("/search?q=nine+winters&cursor=s00000000f", "cursor"),
    ] {
        let refused = page(path).await?;
        let text = refused.text();
        assert_eq!(refused.status, 400);
        assert!(text.contains(&format!("the parameter {name} is invalid")), "{text}");
        assert!(text.contains("value=\"nine winters\""), "{text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_access_is_limited() -> Result<()> {
    let data = TempDir::new()?;
    let settings = [("VERBATIM_SEARCH__ACCESS", "keys"), ("VERBATIM_SEARCH__REQUESTS_PER_MINUTE", "3")];
    let server = ServerFixture::start(&data, &settings)?;
    let keys = create_keys(&data, 2)?;
    let refused = server.get("/api/search?q=sea").await?;
    assert_eq!((refused.status.as_u16(), refused.header("content-type")), (401, "application/problem+json"));
    assert!(refused.header("www-authenticate").starts_with("Bearer"), "{refused:?}");
    assert_eq!(server.get_as("vbk_unknown", "/api/search?q=sea").await?.status, 401);
    for _ in 0..3 {
        assert_eq!(server.get_as(&keys[0], "/api/search?q=sea").await?.status, 200);
    }
    let limited = server.get_as(&keys[0], "/api/search?q=sea").await?;
    assert_eq!(limited.status, 429);
    assert!(limited.header("retry-after").parse::<u64>()? <= 60);
    assert_eq!(server.get_as(&keys[1], "/api/search?q=sea").await?.status, 200, "each key has its limit");
    drop(server);
    let server = ServerFixture::start(&data, &[("VERBATIM_SEARCH__ACCESS", "off")])?;
    assert_eq!(server.get("/api/search?q=sea").await?.status, 404);
    assert_eq!(server.get("/search").await?.status, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_bad_parameters_are_problems_and_queries_never_fail() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[("VERBATIM_SEARCH__REQUESTS_PER_MINUTE", "1000")])?;
    for (query, name) in [
        ("", "q"),
        ("?q=a&q=b", "q"),
        ("?q=a&limit=0", "limit"),
        ("?q=a&limit=many", "limit"),
        ("?q=a&sort=size", "sort"),
        ("?q=a&platform=radio", "platform"),
        ("?q=a&lang=english+please", "lang"),
        ("?q=a&cursor=s00000000f", "cursor"),
        ("?q=%ff", "q"),
    ] {
        let reply = server.get(&format!("/api/search{query}")).await?;
        assert_eq!(reply.status, 400, "{query}");
        let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.starts_with(name), "{query}: {detail}");
    }
    let long = format!("/api/search?q={}", "x".repeat(10_000));
    assert!([400, 414, 431].contains(&server.get(&long).await?.status.as_u16()));
    for query in [
        "*",
        "%22",
        "-",
        "OR",
        "a*",
        "*a*",
        "%00%01%02",
        "%E2%80%8F%E2%80%AEabc",
        "(((((",
        "NEAR(a+b)",
        "a+AND+b",
        "title:x",
        "%27;drop+table",
        "a+%7C+b+%26+!c",
        "%5C",
        "%5Ba-z%5D%7B1,9%7D",
        "lang:xx",
        "before:never",
    ] {
        assert_eq!(server.get(&format!("/api/search?q={query}")).await?.status, 200, "{query}");
    }
    let operators = format!("/api/search?q={}", "a+OR+".repeat(190));
    assert_eq!(server.get(&operators).await?.status, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_on_every_replica_finds_what_one_archived() -> Result<()> {
    let fixture = PostgresFixture::new(None)?;
    let settings = fixture.settings();
    import(fixture.data.path(), &settings, "aaaaaaaaaaa", "en", "An old pier")?;
    let servers = [fixture.start_server()?, fixture.start_server()?];
    import(fixture.data.path(), &settings, "bbbbbbbbbbb", "en", "A new pier")?;
    for server in &servers {
        wait_for(server, "old+piers", &["aaaaaaaaaaa"]).await?;
        wait_for(server, "%22new+pier%22", &["bbbbbbbbbbb"]).await?;
    }
    command(fixture.data.path(), &settings, &["archive", "delete", "https://youtu.be/aaaaaaaaaaa", "--yes"])?;
    for server in &servers {
        assert_eq!(found(server, "old+pier").await?, [] as [&str; 0]);
    }
    // The index follows within a second: until then the comparison reports the deleted video.
    let check = || command(fixture.data.path(), &settings, &["search", "check"]);
    wait_until("the index still has the deleted video", async || {
        Ok(check().is_ok_and(|checked| checked.contains("Transcripts compared: 1. Differences: 0.")))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn search_command_prints_hits() -> Result<()> {
    let data = TempDir::new()?;
    import_example(&data, LIGHTHOUSE)?;
    let text = command(data.path(), &[], &["search", "nine", "winters"])?;
    assert!(text.starts_with("1 video\n\nYouTube L1ghth0use1 · en\n"), "{text}");
    assert!(text.contains("https://www.youtube.com/watch?v=L1ghth0use1&t=4s"), "{text}");
    let json = command(data.path(), &[], &["search", "winters", "--format", "json", "--limit", "1"])?;
    let body: Value = serde_json::from_str(&json)?;
    assert_eq!(body["hits"][0]["moments"][0]["matches"], json!([[13, 20]]), "{body}");
    assert!(json.ends_with("}\n"), "{json:?}");
    for nothing in [&["zzzzzz"][..], &["winters", "-nine"], &["zzzzzz", "--format", "json"]] {
        let ended = run(verbatim(data.path(), &[&["search"], nothing].concat()), b"")?;
        assert_eq!(ended.status.code(), Some(3), "{nothing:?}");
        if nothing.contains(&"json") {
            assert_eq!(serde_json::from_slice::<Value>(&ended.stdout)?["hits"], json!([]));
        }
    }
    let filtered = run(verbatim(data.path(), &["search", "winters", "--lang", "de"]), b"")?;
    let hint = String::from_utf8_lossy(&filtered.stderr).into_owned();
    assert!(hint.contains("Without the filters, winters has 1 video"), "{hint}");
    assert_eq!(run(verbatim(data.path(), &["search"]), b"")?.status.code(), Some(2));
    let long = run(verbatim(data.path(), &["search", &"x".repeat(1_001)]), b"")?;
    assert_eq!(long.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&long.stderr).contains("more than 1000 characters"), "{long:?}");
    let checked = command(data.path(), &[], &["search", "check"])?;
    assert_eq!(checked, "Transcripts compared: 1. Differences: 0.\n");
    assert_eq!(command(data.path(), &[], &["search", "rebuild"])?, "Built the index of 1 transcripts.\n");
    command(data.path(), &[], &["archive", "compact", "--older-than", "0s"])?;
    assert!(command(data.path(), &[], &["search", "winters"])?.starts_with("1 video\n"));
    Ok(())
}

#[test]
fn search_command_prints_command_of_next_page() -> Result<()> {
    let data = TempDir::new()?;
    let ids = ["aaaaaaaaaaa", "bbbbbbbbbbb"];
    for id in ids {
        import(data.path(), &[], id, "en", "The old pier")?;
    }
    let search = ["search", "-moon", "pier", "OR", "$HOME", "--limit", "1", "--sort", "date", "--lang", "en"];
    let first = run(verbatim(data.path(), &search), b"")?;
    let message = String::from_utf8(first.stderr)?;
    let next =
        message.lines().find_map(|line| line.strip_prefix("more: verbatim ")).context("no next page")?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec \"$0\" {next}")).arg(binary());
    let (first, second) = (String::from_utf8(first.stdout)?, run_ok(shell, b"").context(next.to_owned())?);
    assert!(ids.iter().all(|id| first.contains(id) != second.contains(id)), "{first}\n{second}");
    Ok(())
}
