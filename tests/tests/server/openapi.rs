//! The served `OpenAPI` document equals the file in the repository, and its paths and methods exist.
//!
//! `tests/conformance` checks that the document is valid and that the server conforms to it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::harness::{ServerFixture, import_example};

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

/// Whether a header's value is one that its schema lists, if it lists some.
fn is_listed(schema: &Value, value: &str) -> bool {
    let listed = schema["enum"].as_array().or(schema["examples"].as_array());
    let is_value = |one: &Value| one.as_str() == Some(value);
    listed.is_none_or(|all| all.iter().any(is_value))
        && (schema["const"].is_null() || is_value(&schema["const"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_watch_page_has_sent_statuses_and_headers() -> Result<()> {
    let data = TempDir::new()?;
    import_example(&data, "dQw4w9WgXcQ")?;
    let server = ServerFixture::start(&data, &[])?;
    let document = server.get("/openapi.json").await?.json();
    let operation = &document["paths"]["/watch/{platform}/{id}"]["get"];
    let page = "/watch/video_site/dQw4w9WgXcQ";
    let first = server.get(page).await?;
    for (query, header, status) in [
        ("?lang=en&translated=true&src=mcp_other", ("accept-encoding", "gzip"), "200"),
        ("?t=1", ("accept-encoding", "gzip"), "303"),
        ("", ("if-none-match", first.header("etag")), "304"),
    ] {
        let reply = server.send(Method::GET, &format!("{page}{query}"), &[header], "").await?;
        ensure!(reply.status.as_str() == status, "{query}: {reply:?}");
        let documented = operation["responses"][status]["headers"].as_object().context(status)?;
        for name in ["etag", "vary", "location", "content-encoding", "cache-control"] {
            let (known, sent) = (|one: &&String| one.eq_ignore_ascii_case(name), reply.header(name));
            let header = documented.keys().find(known).map(|name| &documented[name]);
            let is_sent = header.is_some_and(|header| is_listed(&header["schema"], sent));
            ensure!(sent.is_empty() || is_sent, "{query}: {name}: {sent}: {header:?}");
        }
        for (name, _) in documented.iter().filter(|(_, header)| header["required"] == true) {
            ensure!(!reply.header(name).is_empty(), "{query}: {name}");
        }
    }
    let parameters = operation["parameters"].as_array().context("parameters")?;
    for name in ["src", "lang", "translated", "t"] {
        assert!(parameters.iter().any(|one| one["name"] == name && one["in"] == "query"), "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_promises_no_more_than_is_sent() -> Result<()> {
    let (_data, _server, document) = fetch_document().await?;
    let paths = &document["paths"];
    assert!(paths["/api/transcript"]["head"]["responses"]["402"].is_null(), "HEAD needs no allowance");
    let refused_key = &paths["/api/keys"]["post"]["responses"]["429"];
    assert_eq!(refused_key["headers"]["Retry-After"]["required"], false, "there may be no time of a retry");
    // Lines and files have no page: the largest number is that of 32 bits.
    let results = paths["/api/v1/jobs/{job}/results"]["get"]["parameters"].as_array().context("results")?;
    let limit = results.iter().find(|one| one["name"] == "limit").context("limit")?;
    assert_eq!(limit["schema"], json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }));
    for status in ["200", "400", "409", "429", "500"] {
        let headers = &paths["/api/v1/verify"]["get"]["responses"][status]["headers"];
        assert_eq!(headers["Vary"]["schema"]["const"], "accept, accept-language", "{status}");
    }
    let confirm = &paths["/api/v1/verify"]["post"];
    for status in ["200", "400", "408", "413", "415", "429", "500"] {
        let response = &confirm["responses"][status];
        assert_eq!(response["headers"]["Vary"]["schema"]["const"], "accept, accept-language", "{status}");
        assert!(response["content"]["text/html"].is_object(), "browsers get a page: {status}");
    }
    let form = &confirm["requestBody"]["content"]["application/x-www-form-urlencoded"]["schema"];
    assert_eq!(form["properties"]["form"]["type"], "string", "the page sends it: {form}");
    let cached = &paths["/api/v1/transcript"]["get"]["responses"]["200"]["headers"];
    assert_eq!(cached["Vary"]["schema"]["const"], "accept-encoding");
    assert!(cached["Content-Encoding"].is_object(), "a cached transcript is compressed");
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
            ensure!((wait["required"] == true) != path.starts_with("/api/v1/"), "{method} {path}: {wait}");
        }
    }
    for (path, field) in [("/api/v1/me", "code"), ("/api/keys/me", "status")] {
        let reply = server.send(Method::GET, path, &[("host", "evil.example")], "").await?;
        assert_eq!((reply.status.as_u16(), &reply.json()[field]), (421, &421.into()), "{path}");
    }
    Ok(())
}
