//! The served `OpenAPI` document equals the file in the repository, and its paths and methods exist.
//!
//! `tests/conformance` checks that the document is valid and that the server conforms to it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::Value;
use tempfile::TempDir;

use super::harness::ServerFixture;

/// Where `UPDATE=1` writes the document, for the review of interface changes.
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

async fn fetch_document() -> Result<(TempDir, ServerFixture, Value)> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[("VERBATIM_SERVER__BASE_URL", "http://127.0.0.1:8080")])?;
    let reply = server.get("/openapi.json").await?;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), "application/json; charset=utf-8");
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    let document = reply.json();
    Ok((data, server, document))
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_document_equals_repository_file() -> Result<()> {
    let (_data, _server, document) = fetch_document().await?;
    let text = format!("{}\n", serde_json::to_string_pretty(&document)?);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(SNAPSHOT, &text)?;
    }
    let snapshot =
        if Path::new(SNAPSHOT).exists() { std::fs::read_to_string(SNAPSHOT)? } else { String::new() };
    let first = text.lines().zip(snapshot.lines()).position(|(new, old)| new != old);
    ensure!(
        text == snapshot,
        "the interface has changed (docs/openapi.json, line {}): run this test with UPDATE=1 and review \
         the file",
        first.map_or(text.lines().count().min(snapshot.lines().count()), |index| index + 1)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_paths_allow_documented_methods() -> Result<()> {
    let (_data, server, document) = fetch_document().await?;
    let paths = document["paths"].as_object().context("paths")?;
    assert!(paths.len() >= 7, "{:?}", paths.keys());
    for (path, item) in paths {
        let methods: Vec<_> = item.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let address = path
            .replace("{platform}", "video_site")
            .replace("{id}", "dQw4w9WgXcQ")
            .replace("{operation}", "getTranscript")
            .replace("{guide}", "quick-start")
            .replace("{order}", "order")
            .replace("{job}", "job");
        let reply = server.send(Method::OPTIONS, &address, &[], "").await?;
        assert_eq!(reply.status, 204, "{path}");
        let allowed = reply.header("allow").to_ascii_lowercase();
        let allowed: Vec<_> = allowed.split(", ").collect();
        for method in ["get", "head", "post", "put", "patch", "delete"] {
            // Charged endpoints do not accept HEAD.
            let has_heads = methods.contains(&"get") && !path.starts_with("/api/v1/");
            let documented = methods.contains(&method) || (method == "head" && has_heads);
            assert_eq!(allowed.contains(&method), documented, "{method} {path}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_common_errors_have_form_of_api() -> Result<()> {
    let (_data, server, document) = fetch_document().await?;
    for (path, item) in document["paths"].as_object().context("paths")? {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let responses = &operation["responses"];
            let kind =
                if path.starts_with("/api/v1/") { "application/json" } else { "application/problem+json" };
            for status in ["421", "431", "503"] {
                let content = &responses[status]["content"];
                ensure!(method == "head" || content[kind].is_object(), "{method} {path} {status}: {content}");
            }
            let wait = &responses["503"]["headers"]["Retry-After"];
            ensure!(wait["required"] == true, "{method} {path}: {wait}");
        }
    }
    for (path, field) in [("/api/v1/me", "code"), ("/api/keys/me", "status")] {
        let reply = server.send(Method::GET, path, &[("host", "evil.example")], "").await?;
        assert_eq!((reply.status.as_u16(), &reply.json()[field]), (421, &421.into()), "{path}");
    }
    Ok(())
}
