//! Verification links in mails, opened by users and by mail scanners.

use std::sync::Arc;

use anyhow::Result;
use http::{Method, StatusCode};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::mail_client::{MailClient, create_account, key_from, register, token_from};
use crate::server::harness::ServerFixture;

/// Headers that mail scanners send.
const SCANNERS: [&[(&str, &str)]; 5] = [
    &[],
    &[("accept", "*/*"), ("user-agent", "a scanner")],
    &[("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")],
    &[("accept", "application/json")],
    &[("accept", "text/plain"), ("x-forwarded-for", "192.0.2.1"), ("x-http-method-override", "POST")],
];

#[tokio::test(flavor = "multi_thread")]
async fn verification_link_opened_by_scanner_keeps_live_key() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    let mut live = create_account(&server, &mut outbox, "ann@example.org").await?;
    for _ in 0..3 {
        assert_eq!(register(&server, "ann@example.org").await?.status, 200);
        let path = format!("/api/v1/verify?token={}", token_from(&outbox.next().await?)?);
        for headers in SCANNERS {
            for method in [Method::HEAD, Method::GET, Method::OPTIONS, Method::GET] {
                let reply = server.send(method, &path, headers, "").await?;
                assert!(!reply.text().contains("vba_"), "{}", reply.text());
            }
        }
        assert_eq!(server.get_as(&live, "/api/v1/me").await?.status, 200, "a scanner ended a live key");
        // The user opens the link after the scanner, and it still works.
        let new = key_from(&server.send(Method::POST, &path, &[], "").await?)?;
        assert_eq!(server.get_as(&live, "/api/v1/me").await?.status, 401);
        live = new;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_concurrent_redemptions_issue_one_key() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = Arc::new(ServerFixture::start(&data, &[])?);
    // Concurrent requests with one link, and with two links of one new address.
    for (email, links) in [("one@example.org", 1), ("two@example.org", 2)] {
        let mut tokens = Vec::new();
        for _ in 0..links {
            assert_eq!(register(&server, email).await?.status, 200);
            tokens.push(token_from(&outbox.next().await?)?);
        }
        let mut callers = JoinSet::new();
        for index in 0..16 {
            let (server, path) =
                (Arc::clone(&server), format!("/api/v1/verify?token={}", tokens[index % tokens.len()]));
            let method = if index % 4 < 2 { Method::GET } else { Method::POST };
            callers.spawn(async move { server.send(method, &path, &[], "").await });
        }
        let mut keys = Vec::new();
        while let Some(reply) = callers.join_next().await {
            let reply = reply??;
            match reply.status {
                StatusCode::OK => keys.push(key_from(&reply)?),
                StatusCode::BAD_REQUEST | StatusCode::CONFLICT => {}
                status => panic!("{status}: {}", reply.text()),
            }
        }
        assert_eq!(keys.len(), 1, "one redemption voids the address's other tokens");
        assert_eq!(server.get_as(&keys[0], "/api/v1/me").await?.status, 200);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_concurrent_requests_issue_one_key() -> Result<()> {
    let data = TempDir::new()?;
    let server = Arc::new(ServerFixture::start(&data, &[])?);
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let (server, key) = (Arc::clone(&server), key.clone());
        callers.spawn(async move { server.send_as(&key, Method::POST, "/api/v1/rotate-key", &[], "").await });
    }
    let mut keys = Vec::new();
    while let Some(reply) = callers.join_next().await {
        let reply = reply??;
        match reply.status {
            StatusCode::OK => keys.push(key_from(&reply)?),
            status => assert_eq!(status, StatusCode::UNAUTHORIZED, "{}", reply.text()),
        }
    }
    assert_eq!(keys.len(), 1);
    assert_eq!(server.get_as(&keys[0], "/api/v1/me").await?.status, 200);
    Ok(())
}
