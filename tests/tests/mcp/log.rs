//! The log of the MCP endpoint: no content of a request or a result is logged.

use anyhow::Result;
use http::Method;
use serde_json::json;

use super::{SHORT, archive};
use crate::server::harness::ServerFixture;

#[tokio::test(flavor = "multi_thread")]
async fn mcp_messages_are_logged_at_no_level() -> Result<()> {
    let data = archive()?;
    let log = data.path().join("log.txt");
    let mut server = ServerFixture::start_with_log(&data, &[("VERBATIM_LOG__LEVEL", "trace")], &log)?;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "search_transcript", "arguments": { "video": SHORT, "query": "nine winters" } } })
    .to_string();
    let headers = [("authorization", "Bearer vbk_hushhush"), ("content-type", "application/json")];
    let response = server.send(Method::POST, "/mcp", &headers, body).await?.text();
    // The shutdown flushes the log.
    server.stop()?;
    let written = std::fs::read_to_string(&log)?;
    assert!(response.contains("nine winters, because stone"), "{response}");
    assert!(written.contains("POST /mcp"), "{written}");
    for secret in ["winters", "lighthouse", "hushhush", SHORT] {
        assert!(!written.contains(secret), "{secret}: {written}");
    }
    Ok(())
}
