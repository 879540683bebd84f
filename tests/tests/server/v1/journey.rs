//! From an email address to transcripts, step by step as a user.

use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    mail_client::{key_from, register, token_from},
    smtpd::Smtpd,
};
use crate::server::{
    harness::{ServerFixture, ServerReply, create_keys},
    platform::{fetch_count, start_platform},
};

const VIDEO: &str = "dyke-walk-0";

fn names(reply: &ServerReply) -> Vec<String> {
    reply.json().as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn account_register_verify_read_and_rotate() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let mut smtpd = Smtpd::start(&["--tls", "wrapper", "--user", "me", "--password", "hush"])?;
    let data = TempDir::new()?;
    // The platforms and the mail server have different certificate authorities.
    let ca_file = data.path().join("ca.pem");
    std::fs::write(&ca_file, std::fs::read_to_string(proxy.ca_file())? + &smtpd.authority)?;
    let server = ServerFixture::start(
        &data,
        &[
            ("VERBATIM_UPSTREAM__PROXY", &proxy.url()),
            ("VERBATIM_UPSTREAM__CA_FILE", &ca_file.display().to_string()),
            ("VERBATIM_MAIL__SMTP_URL", &format!("smtps://me:hush@localhost:{}", smtpd.port)),
            ("VERBATIM_MAIL__FROM", "no-reply@v.example"),
        ],
    )?;

    let registered = register(&server, "Ann@Example.org").await?;
    assert_eq!(
        (registered.status.as_u16(), names(&registered)),
        (200, vec!["message".into(), "success".into()])
    );
    let mail = smtpd.line()?;
    let token = token_from(mail["data"].as_str().unwrap_or_default())?;
    let verified = server.get(&format!("/api/v1/verify?token={token}")).await?;
    assert_eq!(names(&verified), ["api_key", "credits", "plan", "success"]);
    let body = verified.json();
    assert_eq!(
        (&body["success"], &body["credits"], &body["plan"]),
        (&json!(true), &json!(200), &json!("free"))
    );
    let key = key_from(&verified)?;

    let me = server.get_as(&key, "/api/v1/me").await?;
    let expect = ["credits_remaining", "credits_total", "email", "plan", "resets_at"];
    assert_eq!(
        (names(&me).as_slice(), &me.json()["email"]),
        (&expect.map(str::to_owned)[..], &json!("ann@example.org"))
    );

    for (index, cache) in ["MISS", "HIT"].into_iter().enumerate() {
        let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
        assert_eq!((reply.status.as_u16(), reply.header("x-cache")), (200, cache), "{}", reply.text());
        assert_eq!(reply.header("x-credits-remaining"), (199 - index).to_string());
        let body = reply.json();
        assert_eq!((&body["video_id"], &body["title"]), (&json!(VIDEO), &json!("A walk along the dyke")));
        assert_eq!((&body["language"], &body["is_generated"]), (&json!("en"), &json!(false)));
        let first = json!({ "text": format!("This is {VIDEO}."), "start": 0.5, "duration": 2.5 });
        assert_eq!((&body["segments"][0], body["segments"].as_array().map(Vec::len)), (&first, Some(3)));
    }
    assert_eq!(fetch_count(&proxy, VIDEO), 1);

    let rotated = server.send_as(&key, Method::POST, "/api/v1/rotate-key", &[], "").await?;
    assert_eq!(names(&rotated), ["api_key", "success"]);
    let new = key_from(&rotated)?;
    assert_eq!(server.get_as(&key, "/api/v1/me").await?.status, 401);
    assert_eq!(server.get_as(&new, "/api/v1/me").await?.json()["credits_remaining"], json!(198));

    // A second registration replaces a lost key: the credits stay, and the old key ends with the confirmation.
    assert_eq!(register(&server, "ann@example.org").await?.text(), registered.text());
    let mail = smtpd.line()?;
    let body = format!("token={}", token_from(mail["data"].as_str().unwrap_or_default())?);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let recovered = server.send(Method::POST, "/api/v1/verify", &form, body).await?;
    assert_eq!((&recovered.json()["credits"], recovered.status.as_u16()), (&json!(198), 200));
    assert_eq!(server.get_as(&new, "/api/v1/me").await?.status, 401);
    assert_eq!(server.get_as(&key_from(&recovered)?, "/api/v1/me").await?.status, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_one_api_are_rejected_by_other() -> Result<()> {
    let data = TempDir::new()?;
    let mut outbox = super::mail_client::MailClient::new(&data);
    let server = ServerFixture::start(&data, &[])?;
    let account = super::mail_client::create_account(&server, &mut outbox, "ann@example.org").await?;
    let lookup = create_keys(&data, 1)?.remove(0);

    for path in ["/api/v1/me", &format!("/api/v1/transcript?video_id={VIDEO}")] {
        let reply = server.get_as(&lookup, path).await?;
        assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (401, &json!(401)));
        assert!(
            reply.json()["error"].as_str().is_some_and(|text| text.contains("lookup API")),
            "{}",
            reply.text()
        );
    }
    let reply = server.get_as(&account, &format!("/api/transcript?v={VIDEO}")).await?;
    let body: Value = reply.json();
    assert_eq!(
        (reply.status.as_u16(), &body["failureReason"]),
        (200, &json!("needs_verification")),
        "{body}"
    );
    assert_eq!(body["key"], json!(null));
    assert_eq!(server.get_as(&account, "/api/keys/me").await?.status, 401);
    assert_eq!(super::mail_client::remaining_credits(&server, &account).await?, 200);
    Ok(())
}
