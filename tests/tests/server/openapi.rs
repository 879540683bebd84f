//! The served `OpenAPI` document: the one that is checked in, and about addresses that are there.
//!
//! Whether it is valid, and whether the server keeps to it, is the business of `tests/conformance`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::Value;
use tempfile::TempDir;

use super::harness::Server;

/// Where `UPDATE=1` writes the document, and where it is read by whoever reviews a change of the interface.
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

async fn served() -> Result<(TempDir, Server, Value)> {
    let data = TempDir::new()?;
    let server = Server::start(&data, &[("VERBATIM_SERVER__BASE_URL", "http://127.0.0.1:8080")])?;
    let reply = server.get("/openapi.json").await?;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    let document = reply.json();
    Ok((data, server, document))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_the_one_that_is_checked_in() -> Result<()> {
    let (_data, _server, document) = served().await?;
    let text = format!("{}\n", serde_json::to_string_pretty(&document)?);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(SNAPSHOT, &text)?;
    }
    let kept = if Path::new(SNAPSHOT).exists() { std::fs::read_to_string(SNAPSHOT)? } else { String::new() };
    let first = text.lines().zip(kept.lines()).position(|(new, old)| new != old);
    ensure!(
        text == kept,
        "the interface has changed (docs/openapi.json, line {}): run this test with UPDATE=1 and review \
         the file",
        first.map_or(text.lines().count().min(kept.lines().count()), |place| place + 1)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_has_the_methods_that_the_document_says() -> Result<()> {
    let (_data, server, document) = served().await?;
    let paths = document["paths"].as_object().context("paths")?;
    assert!(paths.len() >= 7, "{:?}", paths.keys());
    for (path, item) in paths {
        let methods: Vec<_> = item.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let address = path
            .replace("{platform}", "video_site")
            .replace("{id}", "dQw4w9WgXcQ")
            .replace("{operation}", "getTranscript")
            .replace("{order}", "order");
        let reply = server.send(Method::OPTIONS, &address, &[], "").await?;
        assert_eq!(reply.status, 204, "{path}");
        let allowed = reply.header("allow").to_ascii_lowercase();
        let allowed: Vec<_> = allowed.split(", ").collect();
        for method in ["get", "head", "post", "put", "patch", "delete"] {
            // Where answers are charged for, nobody gets their heads alone.
            let has_heads = methods.contains(&"get") && !path.starts_with("/api/v1/");
            let documented = methods.contains(&method) || (method == "head" && has_heads);
            assert_eq!(allowed.contains(&method), documented, "{method} {path}");
        }
    }
    Ok(())
}
