//! The links in the mails, and who opens them.

use std::sync::Arc;

use anyhow::Result;
use http::{Method, StatusCode};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::post::{Outbox, account, key_in, register, token};
use crate::server::harness::Server;

/// What scanners of mail send along.
const SCANNERS: [&[(&str, &str)]; 5] = [
    &[],
    &[("accept", "*/*"), ("user-agent", "a scanner")],
    &[("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")],
    &[("accept", "application/json")],
    &[("accept", "text/plain"), ("x-forwarded-for", "192.0.2.1"), ("x-http-method-override", "POST")],
];

#[tokio::test(flavor = "multi_thread")]
async fn a_scanner_that_opens_every_link_ends_no_live_key() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = Outbox::of(&data);
    let server = Server::start(&data, &[])?;
    let mut live = account(&server, &mut outbox, "ann@example.org").await?;
    for _ in 0..3 {
        assert_eq!(register(&server, "ann@example.org").await?.status, 200);
        let path = format!("/api/v1/verify?token={}", token(&outbox.next().await?)?);
        for headers in SCANNERS {
            for method in [Method::HEAD, Method::GET, Method::OPTIONS, Method::GET] {
                let reply = server.send(method, &path, headers, "").await?;
                assert!(!reply.text().contains("vba_"), "{}", reply.text());
            }
        }
        assert_eq!(server.get_as(&live, "/api/v1/me").await?.status, 200, "a scanner ended a live key");
        // The person comes after the scanner, and the link still works.
        let new = key_in(&server.send(Method::POST, &path, &[], "").await?)?;
        assert_eq!(server.get_as(&live, "/api/v1/me").await?.status, 401);
        live = new;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_verifications_at_once_one_key_lives() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = Outbox::of(&data);
    let server = Arc::new(Server::start(&data, &[])?);
    // One link opened by many at once, and two links of the same new address opened at once.
    for (email, links) in [("one@example.org", 1), ("two@example.org", 2)] {
        let mut tokens = Vec::new();
        for _ in 0..links {
            assert_eq!(register(&server, email).await?.status, 200);
            tokens.push(token(&outbox.next().await?)?);
        }
        let mut callers = JoinSet::new();
        for place in 0..16 {
            let (server, path) =
                (Arc::clone(&server), format!("/api/v1/verify?token={}", tokens[place % tokens.len()]));
            let method = if place % 4 < 2 { Method::GET } else { Method::POST };
            callers.spawn(async move { server.send(method, &path, &[], "").await });
        }
        let mut keys = Vec::new();
        while let Some(reply) = callers.join_next().await {
            let reply = reply??;
            match reply.status {
                StatusCode::OK => keys.push(key_in(&reply)?),
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
async fn of_many_rotations_at_once_one_wins() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = Outbox::of(&data);
    let server = Arc::new(Server::start(&data, &[])?);
    let key = account(&server, &mut outbox, "ann@example.org").await?;
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let (server, bearer) = (Arc::clone(&server), format!("Bearer {key}"));
        callers.spawn(async move {
            server.send(Method::POST, "/api/v1/rotate-key", &[("authorization", &bearer)], "").await
        });
    }
    let mut keys = Vec::new();
    while let Some(reply) = callers.join_next().await {
        let reply = reply??;
        match reply.status {
            StatusCode::OK => keys.push(key_in(&reply)?),
            status => assert_eq!(status, StatusCode::UNAUTHORIZED, "{}", reply.text()),
        }
    }
    assert_eq!(keys.len(), 1);
    assert_eq!(server.get_as(&keys[0], "/api/v1/me").await?.status, 200);
    Ok(())
}
