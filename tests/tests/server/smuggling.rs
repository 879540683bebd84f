//! Requests that two servers in a row could read differently: each gets one response and ends the connection, or is
//! read in the one way that the standard allows.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::harness::ServerFixture;

/// Hidden request: its response must never be sent.
const HIDDEN: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The statuses of all responses to these bytes, until the server closes the connection.
async fn statuses(server: &ServerFixture, bytes: &[u8]) -> Result<Vec<u16>> {
    let mut stream = TcpStream::connect(server.address()).await?;
    // The server may close the connection during the write.
    let _ = stream.write_all(bytes).await;
    let mut response = Vec::new();
    let _ = timeout(Duration::from_secs(15), stream.read_to_end(&mut response)).await.context("kept open")?;
    let text = String::from_utf8_lossy(&response);
    let statuses = text.split("HTTP/1.1 ").skip(1).filter_map(|part| part.get(..3)?.parse().ok());
    Ok(statuses.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_requests_are_refused() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let post = |headers: &str, body: &str| {
        format!("POST /api/keys HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n{body}")
    };
    let hidden_length = HIDDEN.len();
    for (what, bytes) in [
        ("two lengths", post("Content-Length: 0\r\nContent-Length: 40\r\n", HIDDEN)),
        ("a list of lengths", post("Content-Length: 0, 40\r\n", HIDDEN)),
        ("a signed length", post("Content-Length: +0\r\n", HIDDEN)),
        ("an encoding that is not chunked", post("Transfer-Encoding: gzip\r\n", HIDDEN)),
        ("chunked is not last", post("Transfer-Encoding: chunked, gzip\r\n", &format!("0\r\n\r\n{HIDDEN}"))),
        (
            "chunked in HTTP/1.0",
            format!("POST /api/keys HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"),
        ),
        ("obs-fold", format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n{HIDDEN}")),
        (
            "a space before the colon",
            format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX : a\r\n\r\n{HIDDEN}"),
        ),
        ("a CR in a header", format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n{HIDDEN}")),
        ("a NUL in a header", format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n{HIDDEN}")),
        ("HTTP/0.9", format!("GET /health\r\n{HIDDEN}")),
        ("HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        (
            "a chunk size that overflows",
            post("Transfer-Encoding: chunked\r\n", &format!("ffffffffffffffff1\r\n{HIDDEN}")),
        ),
        ("a chunk size with a sign", post("Transfer-Encoding: chunked\r\n", &format!("+0\r\n\r\n{HIDDEN}"))),
    ] {
        let statuses = statuses(&server, bytes.as_bytes()).await.context(what)?;
        let is_refused = statuses.is_empty() || (statuses.len() == 1 && (400..500).contains(&statuses[0]));
        ensure!(is_refused, "{what}: {statuses:?}");
    }
    for encoding in
        ["gzip, chunked", "identity, chunked", "chunked, chunked", "chunked\r\nTransfer-Encoding: chunked"]
    {
        let encoded = post(&format!("Transfer-Encoding: {encoding}\r\n"), &format!("0\r\n\r\n{HIDDEN}"));
        let statuses = statuses(&server, encoded.as_bytes()).await.context(encoding)?;
        ensure!(statuses == [501], "{encoding}: {statuses:?}");
    }
    // With both headers, chunks win (RFC 9112, 6.1): the hidden request is either a body or refused, never a request
    // whose beginning the length decides.
    let both = format!("Content-Length: {hidden_length}\r\nTransfer-Encoding: chunked\r\n");
    let statuses = statuses(&server, post(&both, &format!("0\r\n\r\n{HIDDEN}")).as_bytes()).await?;
    ensure!(statuses.len() <= 1, "a length and chunks: {statuses:?}");
    Ok(())
}

/// Forms that RFC 9112 allows servers to accept: an absolute address and lines that end with a bare LF.
#[tokio::test(flavor = "multi_thread")]
async fn absolute_form_and_bare_line_feeds_are_one_request() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    for (what, bytes) in [
        (
            "absolute form",
            "GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        ),
        ("bare LF", "GET /health HTTP/1.1\nHost: localhost\nConnection: close\n\n"),
    ] {
        let statuses = statuses(&server, bytes.as_bytes()).await.context(what)?;
        ensure!(statuses == [200], "{what}: {statuses:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chunked_bodies_are_bounded_in_every_part() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let chunked = |body: &str| {
        format!(
            "POST /api/keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
             Connection: close\r\n\r\n{body}"
        )
    };
    let trailers = |count: usize, bytes: usize| format!("X: {}\r\n", "t".repeat(bytes)).repeat(count);
    for (what, body, expect) in [
        ("a body", "2\r\n{}\r\n0\r\n\r\n".to_owned(), 201),
        ("trailers", format!("2\r\n{{}}\r\n0\r\n{}\r\n", trailers(2, 10)), 201),
        (
            "a body of many chunks",
            format!("{}0\r\n\r\n", "400\r\n".to_owned() + &" ".repeat(1024) + "\r\n"),
            201,
        ),
        ("a body above its limit", format!("ffff\r\n{}\r\n0\r\n\r\n", " ".repeat(0xffff)), 413),
        ("a long trailer", format!("2\r\n{{}}\r\n0\r\n{}\r\n", trailers(1, 1 << 20)), 400),
        ("many trailers", format!("2\r\n{{}}\r\n0\r\n{}\r\n", trailers(5_000, 10)), 400),
        ("a long extension", format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "e".repeat(1 << 20)), 400),
    ] {
        let statuses = statuses(&server, chunked(&body).as_bytes()).await.context(what)?;
        ensure!(statuses == [expect], "{what}: {statuses:?}");
    }
    Ok(())
}

/// A body that arrives too slowly gets 408 after ten seconds, whatever the rate of its bytes.
#[tokio::test(flavor = "multi_thread")]
async fn body_too_slow_gets_408() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let mut stream = TcpStream::connect(server.address()).await?;
    stream.write_all(b"POST /api/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n").await?;
    let (mut read, mut write) = stream.split();
    let mut response = vec![0; 12];
    let trickle = async {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        read = timeout(Duration::from_secs(60), read.read_exact(&mut response)) => { read??; }
        () = trickle => {}
    }
    ensure!(response == b"HTTP/1.1 408", "{}", String::from_utf8_lossy(&response));
    Ok(())
}
