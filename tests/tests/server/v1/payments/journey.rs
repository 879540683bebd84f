//! From an email address to purchased and spent credits, step by step as a user.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use http::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{PurchaseFixture, account_status, post, send_event, settings, start, title};
use crate::{
    server::{
        platform::start_platform,
        v1::{
            mail_client::{key_from, register, token_from},
            smtpd::Smtpd,
        },
    },
    stripe::{
        fake::{FakeStripe, SECRET, now_s},
        real::python,
    },
};

const VIDEO: &str = "dyke-walk-0";

#[tokio::test(flavor = "multi_thread")]
async fn purchase_register_verify_buy_and_spend() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let mut smtpd = Smtpd::start(&["--tls", "wrapper", "--user", "me", "--password", "hush"])?;
    let (stripe, data) = (FakeStripe::start().await?, TempDir::new()?);
    // The platforms and the mail server have different certificate authorities.
    let ca_file = data.path().join("ca.pem");
    std::fs::write(&ca_file, std::fs::read_to_string(proxy.ca_file())? + &smtpd.authority)?;
    let mut settings = settings(&stripe);
    for (name, value) in [
        ("VERBATIM_UPSTREAM__PROXY", proxy.url()),
        ("VERBATIM_UPSTREAM__CA_FILE", ca_file.display().to_string()),
        ("VERBATIM_MAIL__SMTP_URL", format!("smtps://me:hush@localhost:{}", smtpd.port)),
        ("VERBATIM_MAIL__FROM", "no-reply@v.example".to_owned()),
        ("VERBATIM_PLANS__FREE__CREDITS", "1".to_owned()),
    ] {
        settings.insert(name.to_owned(), value);
    }
    let server = start(&data, &settings)?;
    register(&server, "ann@example.org").await?;
    let mail = smtpd.line()?;
    let token = token_from(mail["data"].as_str().unwrap_or_default())?;
    let key = key_from(&server.get(&format!("/api/v1/verify?token={token}")).await?)?;
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    assert_eq!(server.get_as(&key, &path).await?.status, 200);
    let spent = server.get_as(&key, &path).await?;
    assert_eq!((spent.status.as_u16(), spent.header("x-credits-remaining")), (402, "0"));

    let bought = post(&server, &key, "buy-credits", "{\"pack\": \"1k\"}").await?;
    assert_eq!(bought.status, 200, "{}", bought.text());
    let body = bought.json();
    assert_eq!((&body["pack"], &body["credits"]), (&json!("1k"), &json!(1_000)));
    assert_eq!(body["price_usd"].as_f64(), Some(12.0));
    let session = body["checkout_url"].as_str().and_then(|url| url.rsplit('/').next()).context("no page")?;
    let session = stripe.object(session);
    let order = session["client_reference_id"].as_str().context("no order")?.to_owned();
    // The buyer returns to a page of this server.
    let return_path = format!("/checkout/{order}");
    assert_eq!(session["success_url"], json!(format!("http://{}{return_path}", server.address())));
    assert_eq!(title(&server.get(&return_path).await?), "Not paid yet");

    for event in stripe.pay(&order, now_s()) {
        // Signed by Stripe's own library.
        let signature = python(&["sign", SECRET], event.body.as_bytes())?;
        let webhook_reply = send_event(&server, signature.trim(), event.body).await?;
        assert_eq!((webhook_reply.status.as_u16(), webhook_reply.json()), (200, json!({ "received": true })));
    }
    assert_eq!(title(&server.get(&return_path).await?), "Paid");
    assert_eq!(account_status(&server, &key).await?, ("free".to_owned(), 1_000));
    let read = server.get_as(&key, &path).await?;
    assert_eq!((read.status.as_u16(), read.header("x-credits-remaining")), (200, "999"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn purchase_64_clients_spend_credits_to_zero() -> Result<()> {
    const CLIENTS: usize = 64;
    const REQUESTS_PER_CLIENT: usize = 17;
    const BOUGHT: usize = 1_000;
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let mut fixture = PurchaseFixture::start().await?;
    fixture.settings.insert("VERBATIM_PLANS__FREE__CREDITS".to_owned(), "0".to_owned());
    fixture.settings.extend(crate::server::platform::platform_settings(&proxy));
    fixture.restart(|_| Ok(()))?;
    let order = fixture.buy("1k").await?;
    fixture.deliver(&fixture.stripe.pay(&order, now_s())).await?;
    assert_eq!(fixture.status().await?.1, BOUGHT as u64);

    let fixture = Arc::new(fixture);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let fixture = Arc::clone(&fixture);
        clients.spawn(async move {
            let mut delivered = 0;
            for _ in 0..REQUESTS_PER_CLIENT {
                let path = format!("/api/v1/transcript?video_id={VIDEO}");
                let reply = fixture.server.get_as(&fixture.key, &path).await?;
                match reply.status {
                    StatusCode::OK => delivered += 1,
                    StatusCode::PAYMENT_REQUIRED => {}
                    status => bail!("{status}: {}", reply.text()),
                }
            }
            Ok(delivered)
        });
    }
    let mut delivered = 0;
    while let Some(client) = clients.join_next().await {
        delivered += client??;
    }
    assert_eq!((delivered, fixture.status().await?.1), (BOUGHT, 0));
    fixture.audit_ledger()
}
