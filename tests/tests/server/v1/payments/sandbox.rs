//! The sandbox: checkout pages without money, fulfilled by the same code as real payments.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{account_status, post, title};
use crate::server::{
    harness::{ServerFixture, ServerReply, audit_ledger, run, verbatim_with},
    platform::start_platform,
    v1::mail_client::{MailClient, create_account},
};

const VIDEO: &str = "dyke-walk-0";
const FAST: (&str, &str) = ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "10000");

/// Orders an item; returns the path and query of its checkout page.
async fn order(server: &ServerFixture, key: &str, path: &str, body: &str) -> Result<String> {
    let reply = post(server, key, path, body).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let url = reply.json()["checkout_url"].as_str().context("no address")?.to_owned();
    let page = url.strip_prefix(&format!("http://{}", server.address())).map(str::to_owned);
    page.with_context(|| format!("a page of another server: {url}"))
}

async fn submit(server: &ServerFixture, page: &str, action: &str) -> Result<ServerReply> {
    let (path, query) = page.split_once('?').context("no token")?;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    server.send(Method::POST, path, &form, format!("{query}&deed={action}")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_is_default_and_fulfills_orders() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let (url, ca_file) = (proxy.url(), proxy.ca_file().display().to_string());
    let settings = [("VERBATIM_UPSTREAM__PROXY", url.as_str()), ("VERBATIM_UPSTREAM__CA_FILE", &ca_file)];
    let server = ServerFixture::start(&data, &settings)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let page = order(&server, &key, "buy-credits", "{\"pack\": \"1k\"}").await?;
    let shown = server.get(&page).await?;
    assert_eq!((shown.status.as_u16(), title(&shown)), (200, "Test checkout".to_owned()));
    assert!(shown.text().contains("This is a test.") && !shown.text().contains("<script"));
    assert_eq!(account_status(&server, &key).await?, ("free".to_owned(), 200));
    let paid = submit(&server, &page, "pay").await?;
    assert_eq!(paid.status, 303, "{}", paid.text());
    // The redirect target is relative to the checkout page.
    let order_id = page.split('/').nth(2).context("no order")?;
    assert_eq!(paid.header("location"), format!("../{order_id}"));
    assert_eq!(title(&server.get(&format!("/checkout/{order_id}")).await?), "Paid");
    assert_eq!(account_status(&server, &key).await?, ("free".to_owned(), 1_200));
    let page = order(&server, &key, "subscribe", "{\"plan\": \"scale\"}").await?;
    assert_eq!(submit(&server, &page, "pay").await?.status, 303);
    assert_eq!(account_status(&server, &key).await?, ("scale".to_owned(), 51_000));
    let read = server.get_as(&key, &format!("/api/v1/transcript?video_id={VIDEO}")).await?;
    assert_eq!((read.status.as_u16(), read.header("x-credits-remaining")), (200, "50999"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_payment_repeated_is_fulfilled_once() -> Result<()> {
    let data = TempDir::new()?;
    let mut server = ServerFixture::start(&data, &[FAST])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let page = order(&server, &key, "buy-credits", "{\"pack\": \"10k\"}").await?;
    let later = order(&server, &key, "buy-credits", "{\"pack\": \"2k\"}").await?;
    let shared = Arc::new(server);
    let mut submissions = JoinSet::new();
    for _ in 0..50 {
        let (server, page) = (Arc::clone(&shared), page.clone());
        submissions.spawn(async move { submit(&server, &page, "pay").await });
    }
    while let Some(reply) = submissions.join_next().await {
        assert_eq!(reply??.status, 303);
    }
    server = Arc::into_inner(shared).context("the server is still in use")?;
    assert_eq!(account_status(&server, &key).await?.1, 10_200);
    ensure!(server.stop()?.success(), "the server did not end well");
    // The pages from before the restart are still valid.
    let server = ServerFixture::start(&data, &[FAST])?;
    for (page, credits) in [(&page, 10_200), (&later, 12_200), (&page, 12_200), (&later, 12_200)] {
        assert_eq!(submit(&server, page, "pay").await?.status, 303);
        assert_eq!(account_status(&server, &key).await?.1, credits);
    }
    for (cents, credits) in [(3_500, 7_200), (3_500, 2_200)] {
        assert_eq!(submit(&server, &page, &format!("refund&cents={cents}")).await?.status, 303);
        assert_eq!(account_status(&server, &key).await?.1, credits);
    }
    audit_ledger(data.path(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn sandbox_on_public_address_requires_setting() -> Result<()> {
    let data = TempDir::new()?;
    let public_url = ("VERBATIM_SERVER__BASE_URL", "https://v.example");
    let opened = ("VERBATIM_CHECKOUT__SANDBOX", "true");
    let server = ServerFixture::start(&data, &[public_url])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    for (path, body) in [("buy-credits", "{\"pack\": \"1k\"}"), ("subscribe", "{\"plan\": \"pro\"}")] {
        let reply = post(&server, &key, path, body).await?;
        assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (500, &json!(500)));
        let error = reply.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.ends_with("payments are not configured."), "{error}");
    }
    let event = server.send(Method::POST, "/api/v1/webhooks/stripe", &[], "{}").await?;
    assert_eq!((event.status.as_u16(), &event.json()["code"]), (404, &json!(404)));
    drop(server);
    let open = ServerFixture::start(&data, &[])?;
    let page = order(&open, &key, "buy-credits", "{\"pack\": \"1k\"}").await?;
    assert_eq!(title(&open.get(&page).await?), "Test checkout");
    for header in [("host", "v.example"), ("x-forwarded-for", "127.0.0.1"), ("via", "1.1 tunnel")] {
        // The host alone is refused before the page is.
        let refused = open.send(Method::GET, &page, &[header], "").await?;
        assert_eq!(refused.status, if header.0 == "host" { 421 } else { 403 });
    }
    drop(open);
    // With the sandbox disabled again, its pages are gone.
    let server = ServerFixture::start(&data, &[public_url])?;
    assert_eq!(server.get(&page).await?.status, 404);
    assert_eq!(submit(&server, &page, "pay").await?.status, 404);
    assert_eq!(account_status(&server, &key).await?.1, 200);

    let check_config = |settings: &[(&str, &str)]| {
        let output = run(verbatim_with(data.path(), settings, &["check-config"]), b"")?;
        Ok::<_, anyhow::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let warned = check_config(&[public_url])?;
    assert!(warned.contains("# payments: not configured: nothing is for sale\n"), "{warned}");
    assert!(warned.contains("# warning: stripe.secret_key is not set: payments are not configured\n"));
    assert!(check_config(&[])?.contains("# payments: sandbox: no money is taken"));
    assert!(check_config(&[opened])?.contains("# warning: checkout.sandbox is true"));
    let refused = run(verbatim_with(data.path(), &[public_url, opened], &["check-config"]), b"")?;
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && why.contains("checkout.sandbox: it is true, but server.base_url"),
        "{why}"
    );
    let keys =
        [("VERBATIM_STRIPE__SECRET_KEY", "sk_hush"), ("VERBATIM_STRIPE__WEBHOOK_SECRETS", "whsec_hush")];
    let stripe = check_config(&[public_url, keys[0], keys[1]])?;
    assert!(
        stripe.contains("# payments: Stripe; send its webhook events to https://v.example/api/v1/webhooks")
    );
    assert!(!stripe.contains("hush"), "{stripe}");
    Ok(())
}
