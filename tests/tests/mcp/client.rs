//! The official MCP client, in its own process.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::server::harness::ServerFixture;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/mcp");

/// The protocol revision that the client chooses by default, and the previous one.
pub(crate) const REVISIONS: [(&str, &str); 2] = [("auto", "2026-07-28"), ("legacy", "2025-11-25")];

/// The Python that has the client. The first call installs it.
fn python() -> Result<&'static PathBuf> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let installed = PYTHON.get_or_init(|| {
        let output = Command::new(format!("{FOLDER}/install.sh")).stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    installed.as_ref().context("cannot install the MCP test client")
}

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
    let mut child = Command::new(python()?)
        .arg(format!("{FOLDER}/client.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no pipe")?.write_all(input.to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout)?;
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
