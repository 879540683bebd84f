//! Malformed input of any kind: an error response or a closed connection, never a panic, and the server keeps serving.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::harness::{ServerFixture, run_ok, verbatim};

/// Sends bytes over a new connection and reads until it is closed or idle for ten seconds.
async fn send_raw(server: &ServerFixture, bytes: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(server.address()).await?;
    // The server may close the connection during the write.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut response = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut response)).await;
    Ok(String::from_utf8_lossy(&response).into_owned())
}

/// The status of a raw response; 0 if the connection was closed without one.
fn status(response: &str) -> u16 {
    response
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_bytes_get_status_below_500_and_server_continues() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let request = |line: &str, rest: &str| format!("{line}\r\nHost: localhost\r\n{rest}\r\n").into_bytes();
    let long_header = format!("X-Long: {}\r\n", "a".repeat(200_000));
    let many_headers = "A: b\r\n".repeat(5_000);
    let mut cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("noise", (0..=255).cycle().take(4_096).collect()),
        ("half a request", b"GET /api/transcript?v=dyke".to_vec()),
        ("a raw NUL in the path", request("GET /api/\0transcript HTTP/1.1", "")),
        ("raw UTF-8 in the query", request("GET /api/transcript?v=\u{fc}\u{1f600} HTTP/1.1", "")),
        ("a long target", request(&format!("GET /api/transcript?url={} HTTP/1.1", "a".repeat(100_000)), "")),
        ("a long header", request("GET / HTTP/1.1", &long_header)),
        ("many headers", request("GET / HTTP/1.1", &many_headers)),
        ("two lengths", request("POST /api/keys HTTP/1.1", "Content-Length: 3\r\nContent-Length: 5\r\n")),
        ("a negative length", request("POST /api/keys HTTP/1.1", "Content-Length: -1\r\n")),
        (
            "length and chunks",
            request("POST /api/keys HTTP/1.1", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
        ),
        ("a broken chunk", request("POST /api/keys HTTP/1.1", "Transfer-Encoding: chunked\r\n\r\nzz\r\n")),
        ("an unknown method", request("BREW /api/transcript HTTP/1.1", "")),
        ("another version", request("GET / HTTP/3.7", "")),
        ("a proxy's request", request("GET http://other.example/api/transcript HTTP/1.1", "")),
        ("CONNECT", request("CONNECT other.example:443 HTTP/1.1", "")),
        ("a dotted path", request("GET /watch/../../etc/passwd HTTP/1.1", "")),
        ("a percent path", request("GET /watch/video_site/%00%ff%2e%2e HTTP/1.1", "")),
    ];
    for value in
        ["Bearer \u{ff}", "Bearer", "Bearer a b c", "\t", "Bearer vbk_000000000000000000000000000000000000"]
    {
        cases.push((
            "an odd key",
            request("GET /api/transcript?v=dyke-walk-0 HTTP/1.1", &format!("Authorization: {value}\r\n")),
        ));
    }
    for body in [
        "{",
        "[]",
        "null",
        "\"x\"",
        "{\"label\":1}",
        "{\"label\":\"\u{0}\"}",
        "{\"email\":{}}",
        "{\"label\":\"\\ud800\"}",
    ] {
        let head = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        cases.push(("an odd body", request("POST /api/keys HTTP/1.1", &format!("{head}\r\n{body}"))));
    }
    for (what, bytes) in cases {
        let response = send_raw(&server, &bytes).await.with_context(|| what.to_owned())?;
        assert!(status(&response) < 500, "{what}: {response}");
    }
    assert_eq!(server.get("/api/transcript?v=dyke-walk-0").await?.status, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_head_or_body_is_rejected() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let json_body = [("content-type", "application/json")];
    // The server rejects both while the client still sends; the response must arrive every time.
    for _ in 0..10 {
        let head =
            format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "a".repeat(1_000_000));
        assert_eq!(status(&send_raw(&server, head.as_bytes()).await?), 431);
        let body = format!("{{\"label\":\"{}\"}}", "a".repeat(2_000_000));
        assert_eq!(server.send(http::Method::POST, "/api/keys", &json_body, body).await?.status, 413);
    }
    // A proof of this size is invalid; if it does not fit into a request head, the request is rejected.
    for (bytes, status) in [(30_000, 201), (45_000, 431), (70_000, 431)] {
        let proof = "a".repeat(bytes);
        let response =
            server.send(http::Method::POST, "/api/keys", &[("x-verbatim-entitlement", &proof)], "").await?;
        assert_eq!(response.status, status, "{bytes}");
    }
    let other = [("content-type", "text/xml")];
    assert_eq!(server.send(http::Method::POST, "/api/keys", &other, "<a/>").await?.status, 415);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn request_body_compressed_is_415_in_form_of_api() -> Result<()> {
    const FORM: &str = "application/x-www-form-urlencoded";
    const JSON: &str = "application/json";
    let data = TempDir::new()?;
    let key = run_ok(verbatim(data.path(), &["accounts", "create", "shop", "--credits", "5"]), b"")?;
    let server = ServerFixture::start(&data, &[])?;
    let send = async |path: &str, kind: &str, coding: &str, body: &'static [u8]| {
        let headers =
            [("content-type", kind), ("content-encoding", coding), ("sec-fetch-site", "same-origin")];
        server.send_as(key.trim(), http::Method::POST, path, &headers, body).await
    };
    let gzip: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    for (path, kind, code, expect) in [
        ("/api/keys", JSON, "/status", 415),
        ("/mcp", JSON, "/error/code", -32600),
        ("/watch/video_site/dyke-walk-0/transcribe", JSON, "/status", 415),
        ("/watch/video_site/dyke-walk-0/ask", JSON, "/status", 415),
        ("/watch/video_site/dyke-walk-0/ask", FORM, "/status", 415),
        ("/api/v1/register", JSON, "/code", 415),
        ("/api/v1/verify", FORM, "/code", 415),
        ("/api/v1/chat", JSON, "/code", 415),
        ("/api/v1/jobs", JSON, "/code", 415),
        ("/api/v1/buy-credits", JSON, "/code", 415),
    ] {
        let reply = send(path, kind, "gzip", gzip).await?;
        let encodings = reply.header("accept-encoding");
        assert_eq!((reply.status.as_u16(), encodings), (415, "identity"), "{path}: {}", reply.text());
        assert_eq!(reply.json().pointer(code), Some(&expect.into()), "{path}: {}", reply.text());
    }
    for (path, kind, coding, body, expect) in [
        ("/register", FORM, "gzip", gzip, (415, "identity")),
        ("/api/keys", JSON, "identity, GZIP", b"{}", (415, "identity")),
        ("/api/keys", JSON, "Identity", b"{}", (201, "")),
        ("/api/keys", JSON, "gzip", b"", (201, "")),
        // The header is for errors of the coding only (RFC 9110, 12.5.3).
        ("/api/keys", "text/xml", "identity", b"<a/>", (415, "")),
    ] {
        let reply = send(path, kind, coding, body).await?;
        assert_eq!((reply.status.as_u16(), reply.header("accept-encoding")), expect, "{path} {coding}");
    }
    Ok(())
}

/// Links of pages are relative, so they grow with the path. A long one gets the error without a page.
#[tokio::test(flavor = "multi_thread")]
async fn error_response_of_deep_path_stays_small() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    for (path, expect, is_page) in
        [("/a".repeat(16), 404, true), ("/a".repeat(17), 404, false), ("/a".repeat(15_000), 404, false)]
    {
        let slashes = path.matches('/').count();
        let response = server.send(http::Method::GET, &path, &[("accept", "text/html")], "").await?;
        assert_eq!(response.status, expect, "{slashes} slashes");
        let text = response.text();
        assert_eq!(text.contains("<!DOCTYPE html>"), is_page, "{slashes} slashes");
        assert!(text.len() < 64 * 1024, "{slashes} slashes: {} bytes", text.len());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn request_with_wrong_host_or_excessive_length_is_rejected_early() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    for (head, expect) in [
        ("GET /health HTTP/1.1\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", 400),
        ("GET http://localhost/health HTTP/1.1\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: localhost\r\n", 200),
        // A name of another site that was made to point here.
        ("GET /health HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n", 421),
        ("POST /mcp HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET /api/v1/me HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET /health HTTP/1.0\r\n", 200),
        (
            "POST /api/keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999999999\r\n",
            413,
        ),
    ] {
        let mut stream = TcpStream::connect(server.address()).await?;
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await?;
        let mut response = vec![0; 12];
        // A request that waits for its body gets another status.
        tokio::time::timeout(Duration::from_secs(60), stream.read_exact(&mut response)).await??;
        let response = String::from_utf8(response)?;
        assert!(response.ends_with(&expect.to_string()), "{head}: {response}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_do_not_delay_other_clients() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(server.address()).await?;
        stream.write_all(b"GET /api/transcript?v=dyke-walk-0 HTTP/1.1\r\nHost:").await?;
        slow.push(stream);
    }
    let last = slow.last_mut().context("no client")?;
    tokio::select! {
        response = server.get("/api/transcript?v=dyke-walk-0") => assert_eq!(response?.status, 200),
        closed = last.read_u8() => bail!("a slow client was disconnected first: {closed:?}"),
    }
    Ok(())
}
