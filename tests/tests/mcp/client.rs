//! The official client, in a process of its own.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::server::harness::Server;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/mcp");

/// The revision that the client chooses where it may, and the one before it.
pub(super) const REVISIONS: [(&str, &str); 2] = [("auto", "2026-07-28"), ("legacy", "2025-11-25")];

/// The Python that has the client. The first caller has it installed.
fn python() -> Result<&'static PathBuf> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let installed = PYTHON.get_or_init(|| {
        let output = Command::new(format!("{FOLDER}/install.sh")).stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    installed.as_ref().context("the client of the tests cannot be installed")
}

/// A call of a tool.
pub(super) fn call(tool: &str, arguments: Value) -> Value {
    json!({ "tool": tool, "arguments": arguments })
}

/// The same, of whose answer every page is read.
pub(super) fn whole(tool: &str, arguments: Value) -> Value {
    json!({ "tool": tool, "arguments": arguments, "follow": true })
}

/// How the client reaches a server, with a key where one is given.
pub(super) fn over_http(server: &Server, key: Option<&str>) -> Value {
    let headers = key.map_or(json!({}), |key| json!({ "Authorization": format!("Bearer {key}") }));
    json!({ "url": format!("http://{}/mcp", server.address()), "headers": headers })
}

/// What the client tells of these calls: the version that it and the server speak, the tools, and all results.
pub(super) fn told(reach: &Value, mode: &str, calls: &[Value]) -> Result<Value> {
    let mut order = reach.clone();
    order["mode"] = json!(mode);
    order["calls"] = json!(calls);
    let mut child = Command::new(python()?)
        .arg(format!("{FOLDER}/client.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no pipe")?.write_all(order.to_string().as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(told["server"] == "verbatim", "{told}");
    Ok(told)
}

/// The pages of the result at a place.
pub(super) fn pages(told: &Value, at: usize) -> &[Value] {
    told["results"][at].as_array().map_or(&[], Vec::as_slice)
}

/// The text of the result at a place.
pub(super) fn text(told: &Value, at: usize) -> &str {
    told["results"][at][0]["text"].as_str().unwrap_or_default()
}
