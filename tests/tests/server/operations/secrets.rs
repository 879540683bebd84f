//! Keys, tokens and texts occur in no log line, metric, error or command output, at any log level, keys in no
//! database, and texts in the archive and in stored replies only.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;

use super::{
    ObservedServer,
    secret_flows::{
        PROXY_PASSWORD, SERVICE_KEY, SentSecrets, TEXTS, VIDEO, call_tools, pay_at_stripe, pay_in_sandbox,
        run_commands, send_secrets, use_entitlement,
    },
};
use crate::{
    server::{
        harness::{borrow_settings, sqlite},
        keys::issuer::TestIssuer,
        platform::{platform_settings, start_platform},
        v1::mail_client::MailClient,
    },
    stripe::fake::{FakeStripe, KEY, SECRET},
};

/// Settings with passwords and keys, and the lowest log level.
fn settings(proxy: &ReplayProxy, issuer: &TestIssuer, format: &str) -> Vec<(String, String)> {
    let mut settings = platform_settings(proxy);
    let with_password = proxy.url().replace("http://", &format!("http://me:{PROXY_PASSWORD}@"));
    settings.retain(|(name, _)| name != "VERBATIM_UPSTREAM__PROXY");
    for (name, value) in [
        ("UPSTREAM__PROXY", with_password.as_str()),
        ("LOG__LEVEL", "trace"),
        ("LOG__FORMAT", format),
        ("ENTITLEMENT__KEYS", &issuer.key_set()),
        // A service that is not called: the video has captions.
        ("SPEECH__BASE_URL", "http://127.0.0.1:9/v1"),
        ("SPEECH__MODEL", "m"),
        ("SPEECH__API_KEY", SERVICE_KEY),
    ] {
        settings.push((format!("VERBATIM_{name}"), value.to_owned()));
    }
    settings
}

/// Fails if a text has a secret, or its first characters, which would identify a key.
fn check_text(what: &str, text: &str, secrets: &[String]) {
    for secret in secrets {
        assert!(secret.len() > 10, "{secret:?} is too short for a secret");
        let shown: String = secret.chars().take(16).collect();
        let line = text.lines().find(|line| line.contains(&shown));
        assert_eq!(line, None, "{what} has {secret:?}");
    }
}

/// Fails if a file of a database has one of these; returns whether any has `expect`.
fn check_database(data: &Path, file: &str, secrets: &[String], expect: &str) -> Result<bool> {
    let mut is_found = false;
    for name in [file.to_owned(), format!("{file}-wal"), format!("{file}-shm")] {
        let bytes = std::fs::read(data.join(&name)).unwrap_or_default();
        ensure!(name != file || !bytes.is_empty(), "{name} is empty");
        let has = |text: &[u8]| memchr::memmem::find(&bytes, text).is_some();
        for secret in secrets {
            let secret = secret.as_bytes();
            let length = secret.len().min(16);
            assert!(!has(&secret[..length]), "{name} has the start of {:?}", String::from_utf8_lossy(secret));
            assert!(
                !has(&secret[secret.len() - length..]),
                "{name} has {:?}",
                String::from_utf8_lossy(secret)
            );
        }
        is_found |= has(expect.as_bytes());
    }
    Ok(is_found)
}

/// Fails if a database has a key. The server may run, so that there are write-ahead logs.
fn check_keys(data: &Path, sent: &SentSecrets) -> Result<()> {
    for file in ["verbatim.db", "archive.db"] {
        check_database(data, file, &sent.keys, "")?;
    }
    Ok(())
}

/// Fails if a database has a text or an address that does not belong there. The server has stopped.
fn check_texts(data: &Path, sent: &SentSecrets) -> Result<()> {
    let texts = TEXTS.map(str::to_owned);
    check_database(data, "archive.db", &texts[2..], "")?;
    // Replies to requests with an `Idempotency-Key` are stored for a day. The rest of the database has no text.
    let copy = TempDir::new()?;
    std::fs::copy(data.join("verbatim.db"), copy.path().join("verbatim.db"))?;
    let statements = "SELECT count(*) FROM replies; DELETE FROM replies; VACUUM;";
    ensure!(sqlite(&copy.path().join("verbatim.db"), statements)? != "0\n", "no replies");
    // Mails go to the stored address.
    let has_account = check_database(
        copy.path(),
        "verbatim.db",
        &[&texts[..], &sent.replied].concat(),
        "ann-the-secret@example.org",
    )?;
    ensure!(has_account, "the copy has no account");
    Ok(())
}

/// Runs all flows with payments in the sandbox, or at Stripe, and searches everything that remains of them.
async fn check_flows(format: &str, stripe: Option<FakeStripe>) -> Result<()> {
    let (proxy, issuer) = (start_platform(&[VIDEO], Duration::ZERO)?, TestIssuer::new()?);
    let data = TempDir::new()?;
    let settings = settings(&proxy, &issuer, format);
    let mut settings = borrow_settings(&settings);
    if let Some(stripe) = &stripe {
        let stripe_settings = [
            ("VERBATIM_STRIPE__SECRET_KEY", KEY),
            ("VERBATIM_STRIPE__WEBHOOK_SECRETS", SECRET),
            ("VERBATIM_STRIPE__API_URL", stripe.url()),
        ];
        settings.extend(stripe_settings);
    }
    let mut observed = ObservedServer::start(&data, &settings).await?;
    let mut outbox = MailClient::new(&data);
    let mut sent = send_secrets(&observed.server, &mut outbox).await?;
    match &stripe {
        Some(stripe) => pay_at_stripe(&observed.server, stripe, &mut sent).await?,
        None => pay_in_sandbox(&observed.server, &mut sent).await?,
    }
    use_entitlement(&observed.server, &issuer, &mut sent).await?;
    tokio::task::block_in_place(|| call_tools(&observed.server, &mut sent))?;
    tokio::task::block_in_place(|| run_commands(&data, &settings, &mut sent))?;
    let metrics = observed.get("/metrics").await?.text();
    check_keys(data.path(), &sent)?;
    assert!(observed.server.stop()?.success());
    check_keys(data.path(), &sent)?;
    check_texts(data.path(), &sent)?;
    let (log, errors) = (observed.log()?, sent.errors.join("\n"));
    for (what, text) in [("the log", &log), ("the figures", &metrics), ("an error", &errors)] {
        check_text(what, text, &sent.all);
    }
    // The log contains these requests, at the lowest level.
    for part in ["/api/v1/chat", "/api/keys", "/mcp"] {
        assert!(log.contains(part) && (log.contains("TRACE") || log.contains("DEBUG")), "{part}: {log}");
    }
    if format == "json" {
        for line in log.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_absent_from_log_metrics_errors_and_databases() -> Result<()> {
    check_flows("json", None).await?;
    check_flows("text", Some(FakeStripe::start().await?)).await
}
