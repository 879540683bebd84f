//! Registration mails through a real mail server.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::Result;
use serde_json::json;
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{Timestamp, accounts::Outbox as _};

use super::{
    mail_client::{MailClient, register, token_from},
    smtpd::Smtpd,
};
use crate::server::harness::{ServerFixture, borrow_settings, run_ok, verbatim_with};

/// The settings for this mail server.
fn settings(smtpd: &Smtpd, url: &str, data: &TempDir) -> Result<Vec<(String, String)>> {
    let ca_file = data.path().join("mail-ca.pem");
    std::fs::write(&ca_file, &smtpd.authority)?;
    Ok(vec![
        ("VERBATIM_MAIL__SMTP_URL".to_owned(), url.to_owned()),
        ("VERBATIM_MAIL__FROM".to_owned(), "Verbatim <no-reply@v.example>".to_owned()),
        ("VERBATIM_UPSTREAM__CA_FILE".to_owned(), ca_file.display().to_string()),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn registration_is_mailed_with_tls_and_password() -> Result<()> {
    let mut smtpd = Smtpd::start(&["--tls", "starttls", "--user", "me", "--password", "p@ss"])?;
    let data = TempDir::new()?;
    let url = format!("smtp://me:p%40ss@localhost:{}?tls=required", smtpd.port);
    let settings = settings(&smtpd, &url, &data)?;
    let mut server = ServerFixture::start(&data, &borrow_settings(&settings))?;
    let reply = register(&server, "Ann@Example.org").await?;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["success"], json!(true));
    let mail = smtpd.line()?;
    assert_eq!((&mail["tls"], &mail["user"]), (&json!(true), &json!("me")));
    assert_eq!(mail["to"][0].as_str().map(str::to_lowercase).as_deref(), Some("ann@example.org"));
    let text = mail["data"].as_str().unwrap_or_default();
    assert!(text.contains(&format!("http://{}/api/v1/verify?token=", server.address())), "{text}");
    assert_eq!(token_from(text)?.len(), 64);
    assert!(server.stop()?.success());

    let command = verbatim_with(data.path(), &borrow_settings(&settings), &["check-config"]);
    let shown = run_ok(command, b"")?;
    let route =
        format!("# mail: SMTP server localhost, port {}, with STARTTLS (required), user me", smtpd.port);
    assert!(shown.contains(&route) && !shown.contains("p@ss") && !shown.contains("p%40ss"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn registration_with_stalled_mail_server_is_fast() -> Result<()> {
    let mut smtpd = Smtpd::start(&["--mode", "stall:greeting"])?;
    let data = TempDir::new()?;
    let settings = settings(&smtpd, &format!("smtp://localhost:{}", smtpd.port), &data)?;
    let server = ServerFixture::start(&data, &borrow_settings(&settings))?;
    let started = Instant::now();
    for n in 0..5 {
        let reply = register(&server, &format!("{n}@example.org")).await?;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    // Less than the timeout of one greeting.
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
    // The killed server has sent none of the mails; the next one sends all when their leases have expired.
    drop(server);
    smtpd.mode("accept")?;
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    let later = Timestamp::from_millis(4_000_000_000_000);
    let left = store.lease_due(later, Timestamp::from_millis(0), 10).await?;
    assert_eq!(left.len(), 5, "{left:?}");
    store.close().await;
    let server = ServerFixture::start(&data, &borrow_settings(&settings))?;
    let mut to = BTreeSet::new();
    for _ in 0..5 {
        to.extend(smtpd.line()?["to"][0].as_str().map(str::to_owned));
    }
    assert_eq!(to, (0..5).map(|n| format!("{n}@example.org")).collect());
    drop(server);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn registration_without_mail_server_writes_file() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    assert_eq!(register(&server, "ann@example.org").await?.status, 200);
    let mail = outbox.next().await?;
    assert!(mail.contains("\r\nTo: ann@example.org\r\n"), "{mail}");
    assert!(mail.starts_with("From: Verbatim <verbatim@localhost>\r\n"), "{mail}");
    assert_eq!(token_from(&mail)?.len(), 64);
    Ok(())
}
