//! The official MCP client, in its own process.

use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    install::installed,
    server::harness::{ServerFixture, run_ok},
};

/// The protocol revision that the client chooses by default, and the previous one.
pub(crate) const REVISIONS: [(&str, &str); 2] = [("auto", "2026-07-28"), ("legacy", "2025-11-25")];

/// A tool call that reads one page.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool": tool, "arguments": arguments })
}

/// A tool call that reads every page of its result.
pub(crate) fn paged_call(tool: &str, arguments: Value) -> Value {
    json!({ "tool": tool, "arguments": arguments, "follow": true })
}

/// The address and headers with which the client reaches a server.
pub(crate) fn http_target(server: &ServerFixture, key: Option<&str>) -> Value {
    let headers = key.map_or(json!({}), |key| json!({ "Authorization": format!("Bearer {key}") }));
    json!({ "url": format!("http://{}/mcp", server.address()), "headers": headers })
}

/// Runs these calls in the client; returns the negotiated version, the tools and all results.
pub(crate) fn run_calls(target: &Value, mode: &str, calls: &[Value]) -> Result<Value> {
    let mut input = target.clone();
    input["mode"] = json!(mode);
    input["calls"] = json!(calls);
    let mut client = Command::new(installed("mcp")?);
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/mcp/client.py"));
    let report: Value = serde_json::from_str(&run_ok(client, input.to_string().as_bytes())?)?;
    ensure!(report["server"] == "verbatim", "{report}");
    Ok(report)
}

/// The pages of the result at an index.
pub(crate) fn pages(report: &Value, at: usize) -> &[Value] {
    report["results"][at].as_array().map_or(&[], Vec::as_slice)
}

/// The first page's text of the result at an index.
pub(crate) fn text(report: &Value, at: usize) -> &str {
    report["results"][at][0]["text"].as_str().unwrap_or_default()
}
