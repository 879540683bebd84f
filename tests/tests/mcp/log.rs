//! The log of the MCP endpoint: no content of a request or a result is logged.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{SHORT, archive};
use crate::server::harness::verbatim;

#[test]
fn mcp_messages_are_logged_at_no_level() -> Result<()> {
    let data = archive()?;
    let log = data.path().join("log.txt");
    let mut command = verbatim(data.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("VERBATIM_LOG__LEVEL", "trace").stdout(Stdio::piped()).stderr(File::create(&log)?);
    let mut child = command.spawn()?;
    let mut first = String::new();
    BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut first)?;
    let address = first.trim().rsplit_once("http://").context("no address")?.1;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "search_transcript", "arguments": { "video": SHORT, "query": "nine winters" } } })
    .to_string();
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer vbk_hushhush\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    // The shutdown flushes the log.
    std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
    child.wait()?;
    let written = std::fs::read_to_string(&log)?;
    assert!(response.contains("nine winters, because stone"), "{response}");
    assert!(written.contains("POST /mcp"), "{written}");
    for secret in ["winters", "lighthouse", "hushhush", SHORT] {
        assert!(!written.contains(secret), "{secret}: {written}");
    }
    Ok(())
}
