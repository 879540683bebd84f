//! Webhook events: concurrent, reordered, repeated after a restart, forged, lost, and during a Stripe outage.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::{PurchaseFixture, age_orders, post, send_event, title};
use crate::{
    server::harness::wait_until,
    stripe::fake::{FakeExchange, SECRET, now_s, sign},
};

#[tokio::test(flavor = "multi_thread")]
async fn events_concurrent_reordered_and_repeated_fulfill_once() -> Result<()> {
    let fixture = Arc::new(PurchaseFixture::start().await?);
    let order = fixture.buy("5k").await?;
    let mut events = fixture.stripe.pay(&order, now_s());
    events.reverse();
    let mut senders = JoinSet::new();
    for number in 0..50 {
        let (fixture, event) = (Arc::clone(&fixture), events[number % events.len()].clone());
        senders.spawn(async move { send_event(&fixture.server, &event.signature(), event.body).await });
    }
    while let Some(reply) = senders.join_next().await {
        let reply = reply??;
        ensure!(reply.status == 200, "{}", reply.text());
    }
    assert_eq!(fixture.status().await?, ("free".to_owned(), 5_200));
    let Some(mut fixture) = Arc::into_inner(fixture) else { anyhow::bail!("the server is still in use") };
    fixture.restart(|_| Ok(()))?;
    fixture.deliver(&events).await?;
    assert_eq!(fixture.status().await?, ("free".to_owned(), 5_200));
    // The refund arrives before the repeated payment events, and more than once.
    let refund = fixture.stripe.refund(&fixture.stripe.payment(&order), 2_000);
    for events in [&refund, &events, &refund] {
        fixture.deliver(events).await?;
    }
    assert_eq!(fixture.status().await?, ("free".to_owned(), 2_700));
    assert_eq!(title(&fixture.server.get(&format!("/checkout/{order}")).await?), "Refunded");
    fixture.audit_ledger()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_forged_stale_or_changed_change_nothing() -> Result<()> {
    let fixture = PurchaseFixture::start().await?;
    let order = fixture.buy("50k").await?;
    let events = fixture.stripe.pay(&order, now_s());
    let event = events.last().cloned().ok_or_else(|| anyhow::anyhow!("no event"))?;
    let body = || event.body.clone();
    for (signature, body, begins) in [
        (sign(&event.body, "whsec_other", now_s()), body(), "the signature matches none of"),
        (sign(&event.body, SECRET, now_s() - 310), body(), "the signature is 31"),
        (sign(&event.body, SECRET, now_s() + 400), body(), "the signature is "),
        (event.signature(), body().replacen("cs_", "cs_x", 1), "the signature matches none of"),
        (event.signature(), format!("{} ", event.body), "the signature matches none of"),
        (event.signature().replace("v1=", "v0="), body(), "the header Stripe-Signature is malformed"),
        (format!("t={}", now_s()), body(), "the header Stripe-Signature is malformed"),
        (String::new(), body(), "the header Stripe-Signature is malformed"),
        ("nonsense".to_owned(), String::new(), "the header Stripe-Signature is malformed"),
    ] {
        let reply = send_event(&fixture.server, &signature, body).await?;
        let body_json = reply.json();
        assert_eq!((reply.status.as_u16(), &body_json["code"]), (400, &json!(400)), "{signature}");
        let error = body_json["error"].as_str().unwrap_or_default();
        assert!(error.starts_with(&format!("The event was rejected: {begins}")), "{signature}: {error}");
    }
    let unsigned =
        fixture.server.send(Method::POST, "/api/v1/webhooks/stripe", &[], event.body.clone()).await?;
    assert_eq!(unsigned.json()["error"], "The event was rejected: the header Stripe-Signature is missing.");
    let (path, encoded) = ("/api/v1/webhooks/stripe", [("content-encoding", "gzip")]);
    let refused = fixture.server.send(Method::POST, path, &encoded, event.body.clone()).await?;
    assert_eq!((refused.status.as_u16(), refused.header("accept-encoding")), (415, "identity"));
    let huge = "x".repeat(2 << 20);
    // The server may close the connection before the whole body is sent.
    if let Ok(refused) = send_event(&fixture.server, &sign(&huge, SECRET, now_s()), huge).await {
        assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (413, &json!(413)));
    }
    // Invalid events cause no request to Stripe. The reconciliation of a starting server only requests the event list.
    let is_query = |exchange: &&FakeExchange| exchange.method == Method::GET && exchange.path != "/v1/events";
    let query_count = fixture.stripe.exchanges().iter().filter(is_query).count();
    assert_eq!((fixture.status().await?.1, query_count), (200, 0));

    // The valid event, three times with the same bytes.
    let signature = event.signature();
    for _ in 0..3 {
        let reply = send_event(&fixture.server, &signature, event.body.clone()).await?;
        assert_eq!((reply.status.as_u16(), fixture.status().await?.1), (200, 50_200));
    }
    // Signed events of types that the server does not use, and events without content.
    for body in
        ["{}", "[]", "\u{0}", "{\"type\": \"customer.created\", \"data\": {\"object\": {\"id\": \"cus_1\"}}}"]
    {
        let reply = send_event(&fixture.server, &sign(body, SECRET, now_s()), body.to_owned()).await?;
        assert_eq!(reply.status, 200, "{body}");
    }
    fixture.audit_ledger()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_lost_order_is_fulfilled_by_page_or_reconciliation() -> Result<()> {
    let mut fixture = PurchaseFixture::start().await?;
    // The buyer returns, and the page queries Stripe.
    let order = fixture.buy("1k").await?;
    fixture.stripe.pay(&order, now_s());
    let page = fixture.server.get(&format!("/checkout/{order}")).await?;
    assert_eq!((page.status.as_u16(), title(&page)), (200, "Paid".to_owned()));
    assert_eq!(fixture.status().await?.1, 1_200);
    // No buyer returns: the reconciliation of the next start queries Stripe, as the event is overdue.
    let order = fixture.buy("2k").await?;
    fixture.stripe.pay(&order, now_s());
    fixture.restart(|data| age_orders(data, 2 * 3_600 * 1_000))?;
    wait_until("the order was not reconciled", async || Ok(fixture.status().await?.1 == 3_200)).await?;
    // A server starts, serves and stops during a Stripe outage.
    fixture.buy("5k").await?;
    fixture.stripe.set_away(true);
    fixture.restart(|data| age_orders(data, 2 * 3_600 * 1_000))?;
    assert_eq!(fixture.status().await?.1, 3_200);
    let started = Instant::now();
    ensure!(fixture.server.stop()?.success(), "the server did not end well");
    ensure!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    fixture.audit_ledger()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_during_stripe_outage_are_processed_later() -> Result<()> {
    let fixture = PurchaseFixture::start().await?;
    let order = fixture.buy("1k").await?;
    let events = fixture.stripe.pay(&order, now_s());
    fixture.stripe.set_away(true);
    let event = &events[0];
    let reply = send_event(
        &fixture.server,
        &events[events.len() - 1].signature(),
        events[events.len() - 1].body.clone(),
    )
    .await?;
    assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (500, &json!(500)), "{}", event.kind);
    let bought = post(&fixture.server, &fixture.key, "buy-credits", "{\"pack\": \"1k\"}").await?;
    assert_eq!((bought.status.as_u16(), &bought.json()["code"]), (500, &json!(500)));
    let error = bought.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.starts_with("The payment page could not be opened: nothing was charged"), "{error}");
    // The page shows the stored state.
    assert_eq!(title(&fixture.server.get(&format!("/checkout/{order}")).await?), "Not paid yet");
    assert_eq!(fixture.status().await?.1, 200);
    fixture.stripe.set_away(false);
    fixture.deliver(&events).await?;
    assert_eq!(fixture.status().await?.1, 1_200);
    fixture.audit_ledger()
}
