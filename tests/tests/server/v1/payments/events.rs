//! Events: many at once, in any order, again after a restart, forged, lost, and while Stripe is away.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::{Shop, age_orders, hear, post, title};
use crate::stripe::fake::{Exchange, SECRET, now_s, sign};

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_in_any_order_and_again_after_a_restart_give_once() -> Result<()> {
    let shop = Arc::new(Shop::open().await?);
    let order = shop.buy("5k").await?;
    let mut events = shop.stripe.pay(&order, now_s());
    events.reverse();
    let mut senders = JoinSet::new();
    for number in 0..50 {
        let (shop, event) = (Arc::clone(&shop), events[number % events.len()].clone());
        senders.spawn(async move { hear(&shop.server, &event.signature(), event.body).await });
    }
    while let Some(reply) = senders.join_next().await {
        let reply = reply??;
        ensure!(reply.status == 200, "{}", reply.text());
    }
    assert_eq!(shop.me().await?, ("free".to_owned(), 5_200));
    let Some(mut shop) = Arc::into_inner(shop) else { anyhow::bail!("somebody still sends") };
    shop.restart(|_| Ok(()))?;
    shop.deliver(&events).await?;
    assert_eq!(shop.me().await?, ("free".to_owned(), 5_200));
    // The refund comes before what it is a refund of is heard again, and more than once.
    let refund = shop.stripe.refund(&shop.stripe.payment(&order), 2_000);
    for events in [&refund, &events, &refund] {
        shop.deliver(events).await?;
    }
    assert_eq!(shop.me().await?, ("free".to_owned(), 2_700));
    assert_eq!(title(&shop.server.get(&format!("/checkout/{order}")).await?), "Refunded");
    shop.audited()
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_stale_and_changed_events_change_nothing() -> Result<()> {
    let shop = Shop::open().await?;
    let order = shop.buy("50k").await?;
    let events = shop.stripe.pay(&order, now_s());
    let event = events.last().cloned().ok_or_else(|| anyhow::anyhow!("no event"))?;
    let body = || event.body.clone();
    for (signature, body, begins) in [
        (sign(&event.body, "whsec_other", now_s()), body(), "the signature is of none of"),
        (sign(&event.body, SECRET, now_s() - 310), body(), "the signature is 31"),
        (sign(&event.body, SECRET, now_s() + 400), body(), "the signature is "),
        (event.signature(), body().replacen("cs_", "cs_x", 1), "the signature is of none of"),
        (event.signature(), format!("{} ", event.body), "the signature is of none of"),
        (event.signature().replace("v1=", "v0="), body(), "the header Stripe-Signature is malformed"),
        (format!("t={}", now_s()), body(), "the header Stripe-Signature is malformed"),
        (String::new(), body(), "the header Stripe-Signature is malformed"),
        ("nonsense".to_owned(), String::new(), "the header Stripe-Signature is malformed"),
    ] {
        let reply = hear(&shop.server, &signature, body).await?;
        let told = reply.json();
        assert_eq!((reply.status.as_u16(), &told["code"]), (400, &json!(400)), "{signature}");
        let error = told["error"].as_str().unwrap_or_default();
        assert!(error.starts_with(&format!("The event is not believed: {begins}")), "{signature}: {error}");
    }
    let unsigned = shop.server.send(Method::POST, "/api/v1/webhooks/stripe", &[], event.body.clone()).await?;
    assert_eq!(
        unsigned.json()["error"],
        "The event is not believed: the header Stripe-Signature is missing."
    );
    let huge = "x".repeat(2 << 20);
    // The connection may be closed before the whole body was sent.
    if let Ok(refused) = hear(&shop.server, &sign(&huge, SECRET, now_s()), huge).await {
        assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (413, &json!(413)));
    }
    // Nobody asked Stripe for anything because of them; the sweep of a server that begins asks for lost events.
    let is_asked = |exchange: &&Exchange| exchange.method == Method::GET && exchange.path != "/v1/events";
    let asked = shop.stripe.exchanges().iter().filter(is_asked).count();
    assert_eq!((shop.me().await?.1, asked), (200, 0));

    // The true one, and the very same bytes again.
    let signature = event.signature();
    for _ in 0..3 {
        let reply = hear(&shop.server, &signature, event.body.clone()).await?;
        assert_eq!((reply.status.as_u16(), shop.me().await?.1), (200, 50_200));
    }
    // Signed, and about nothing that matters here, or nothing at all.
    for body in
        ["{}", "[]", "\u{0}", "{\"type\": \"customer.created\", \"data\": {\"object\": {\"id\": \"cus_1\"}}}"]
    {
        let reply = hear(&shop.server, &sign(body, SECRET, now_s()), body.to_owned()).await?;
        assert_eq!(reply.status, 200, "{body}");
    }
    shop.audited()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_event_loses_nothing() -> Result<()> {
    let mut shop = Shop::open().await?;
    // The buyer comes back: the page asks.
    let order = shop.buy("1k").await?;
    shop.stripe.pay(&order, now_s());
    let page = shop.server.get(&format!("/checkout/{order}")).await?;
    assert_eq!((page.status.as_u16(), title(&page)), (200, "Paid".to_owned()));
    assert_eq!(shop.me().await?.1, 1_200);
    // Nobody comes back: the sweep of the next start asks, once the event should have come.
    let order = shop.buy("2k").await?;
    shop.stripe.pay(&order, now_s());
    shop.restart(|data| age_orders(data, 2 * 3_600 * 1_000))?;
    let until = Instant::now() + Duration::from_secs(30);
    while shop.me().await?.1 != 3_200 {
        ensure!(Instant::now() < until, "the sweep never came");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A server whose Stripe is away starts, serves and stops all the same.
    shop.buy("5k").await?;
    shop.stripe.set_away(true);
    shop.restart(|data| age_orders(data, 2 * 3_600 * 1_000))?;
    assert_eq!(shop.me().await?.1, 3_200);
    let began = Instant::now();
    ensure!(shop.server.stop()?.success(), "the server did not end well");
    ensure!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    shop.audited()
}

#[tokio::test(flavor = "multi_thread")]
async fn while_stripe_is_away_nothing_is_charged_and_nothing_is_lost() -> Result<()> {
    let shop = Shop::open().await?;
    let order = shop.buy("1k").await?;
    let events = shop.stripe.pay(&order, now_s());
    shop.stripe.set_away(true);
    let event = &events[0];
    let reply =
        hear(&shop.server, &events[events.len() - 1].signature(), events[events.len() - 1].body.clone())
            .await?;
    assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (500, &json!(500)), "{}", event.kind);
    let bought = post(&shop.server, &shop.key, "buy-credits", "{\"pack\": \"1k\"}").await?;
    assert_eq!((bought.status.as_u16(), &bought.json()["code"]), (500, &json!(500)));
    let error = bought.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.starts_with("The payment page could not be opened: nothing was charged"), "{error}");
    // The page shows what is known.
    assert_eq!(title(&shop.server.get(&format!("/checkout/{order}")).await?), "Not paid yet");
    assert_eq!(shop.me().await?.1, 200);
    shop.stripe.set_away(false);
    shop.deliver(&events).await?;
    assert_eq!(shop.me().await?.1, 1_200);
    shop.audited()
}
