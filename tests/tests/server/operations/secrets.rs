//! Keys, tokens and texts occur in no log line and no metric, at any log level.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::ObservedServer;
use crate::server::{
    harness::{ServerFixture, ServerReply, borrow_settings},
    platform::{platform_settings, start_platform},
    v1::mail_client::{MailClient, key_from, register, token_from},
};

const VIDEO: &str = "dyke-walk-0";
const JSON: (&str, &str) = ("content-type", "application/json");

async fn post(server: &ServerFixture, key: &str, path: &str, body: &str) -> Result<ServerReply> {
    let bearer = format!("Bearer {key}");
    server.send(Method::POST, path, &[("authorization", &bearer), JSON], body.to_owned()).await
}

/// Sends requests of every kind; returns the secrets in them.
async fn send_secrets(server: &ServerFixture, outbox: &mut MailClient) -> Result<Vec<String>> {
    let mut secrets: Vec<String> = [
        "sheep keep the grass",
        "So the dyke holds",
        "ann-the-secret@example.org",
        "why does the grass stay short",
        "name-of-a-request-7712",
        "eyJhbGciOiJFUzI1NiJ9.c2VjcmV0",
        "vba_wrong-key-1234567890",
        "label-of-a-key",
    ]
    .map(str::to_owned)
    .into();
    let made = server.send(Method::POST, "/api/keys", &[JSON], "{\"label\":\"label-of-a-key\"}").await?;
    ensure!(made.status == 201, "{}", made.text());
    let key = made.json()["key"].as_str().unwrap_or_default().to_owned();
    let look_up = format!("/api/transcript?v={VIDEO}");
    for format in ["", "&format=text", "&format=md", "&format=srt", "&format=vtt"] {
        let reply = server.get_as(&key, &format!("{look_up}{format}")).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        ensure!(server.get(&format!("{look_up}{format}")).await?.status == 200);
    }
    server.get_as(&key, "/api/keys/me").await?;
    server.get(&format!("/watch/video_site/{VIDEO}")).await?;
    // Keys in wrong places.
    server.get(&format!("/api/transcript/{key}")).await?;
    server.get(&format!("{look_up}&key={key}")).await?;
    server
        .send(Method::GET, &look_up, &[("x-request-id", &key), ("cookie", &key), ("referer", &key)], "")
        .await?;
    let proof = [("x-verbatim-entitlement", "eyJhbGciOiJFUzI1NiJ9.c2VjcmV0")];
    server.send(Method::POST, "/api/keys", &proof, "").await?;

    let registered = register(server, "ann-the-secret@example.org").await?;
    ensure!(registered.status == 200, "{}", registered.text());
    let token = token_from(&outbox.next().await?)?;
    let verified = server.get(&format!("/api/v1/verify?token={token}")).await?;
    let account = key_from(&verified)?;
    for name in ["name-of-a-request-7712", ""] {
        let bearer = format!("Bearer {account}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend((!name.is_empty()).then_some(("idempotency-key", name)));
        let path = format!("/api/v1/transcript?video_id={VIDEO}");
        let reply = server.send(Method::GET, &path, &headers, "").await?;
        ensure!(reply.status == 200, "{}", reply.text());
    }
    let question = json!({ "video_id": VIDEO, "message": "why does the grass stay short?" }).to_string();
    let answer = post(server, &account, "/api/v1/chat", &question).await?;
    ensure!(answer.status == 200, "{}", answer.text());
    let order = post(server, &account, "/api/v1/buy-credits", "{\"pack\":\"1k\"}").await?;
    let page = order.json()["checkout_url"].as_str().unwrap_or_default().to_owned();
    let (_, order_token) = page.split_once("?token=").unwrap_or_default();
    ensure!(order_token.len() > 10, "{page}");
    let (_, path) = page.split_once(server.address()).unwrap_or_default();
    ensure!(server.get(path).await?.status == 200);
    post(server, "vba_wrong-key-1234567890", "/api/v1/rotate-key", "").await?;
    let rotated = post(server, &account, "/api/v1/rotate-key", "").await?;
    post(server, "", "/api/v1/webhooks/stripe", "{\"id\":\"evt_sheep keep the grass\"}").await?;
    secrets.extend([key, token, account, order_token.to_owned(), key_from(&rotated)?]);
    Ok(secrets)
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_absent_from_log_and_metrics() -> Result<()> {
    for format in ["json", "text"] {
        let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
        let data = TempDir::new()?;
        let mut settings = platform_settings(&proxy);
        settings.push(("VERBATIM_LOG__LEVEL".to_owned(), "trace".to_owned()));
        settings.push(("VERBATIM_LOG__FORMAT".to_owned(), format.to_owned()));
        let settings = borrow_settings(&settings);
        let mut observed = ObservedServer::start(&data, &settings).await?;
        let mut outbox = MailClient::new(&data);
        let secrets = send_secrets(&observed.server, &mut outbox).await?;
        let metrics = observed.get("/metrics").await?.text();
        assert!(observed.server.stop()?.success());
        let log = observed.log()?;
        for secret in &secrets {
            assert!(secret.len() > 10, "{secret:?} is too short for a secret");
            // The first characters of a key would identify it.
            let shown: String = secret.chars().take(16).collect();
            for (what, text) in [("the log", &log), ("the figures", &metrics)] {
                let line = text.lines().find(|line| line.contains(&shown));
                assert_eq!(line, None, "{what} has {secret:?}");
            }
        }
        // The log contains these requests, at the lowest level.
        assert!(log.contains("/api/v1/chat") && log.contains("/api/keys"), "{log}");
        assert!(log.contains("TRACE") || log.contains("DEBUG"), "{log}");
        if format == "json" {
            for line in log.lines() {
                let line: serde_json::Value = serde_json::from_str(line)?;
                assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
            }
        }
    }
    Ok(())
}
