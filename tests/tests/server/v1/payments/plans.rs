//! Subscriptions: begun, renewed, overdue, cancelled, disputed.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;

use super::{Shop, post, title};
use crate::stripe::fake::{MONTH_S, now_s};

fn is(plan: &str, credits: u64) -> (String, u64) {
    (plan.to_owned(), credits)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_is_renewed_and_cancelled() -> Result<()> {
    let mut shop = Shop::open().await?;
    let order = shop.subscribe("starter").await?;
    assert_eq!(shop.me().await?, is("free", 200));
    // It began so long ago that its first month is over.
    let began = now_s() - MONTH_S - 3_600;
    let first = shop.stripe.pay(&order, began);
    shop.deliver(&first).await?;
    assert_eq!(title(&shop.server.get(&format!("/checkout/{order}")).await?), "Paid");
    assert_eq!(shop.me().await?, is("starter", 200), "the next month is not paid");
    let subscription = shop.stripe.subscription(&order);
    shop.deliver(&shop.stripe.renew(&subscription, began + MONTH_S, false)).await?;
    assert_eq!(shop.me().await?, is("starter", 200));
    let renewed = shop.stripe.renew(&subscription, began + MONTH_S, true);
    for events in [&renewed, &first, &renewed] {
        shop.deliver(events).await?;
        assert_eq!(shop.me().await?, is("starter", 2_000));
    }
    let again = post(&shop.server, &shop.key, "subscribe", "{\"plan\": \"starter\"}").await?;
    assert_eq!((again.status.as_u16(), &again.json()["code"]), (400, &json!(400)));
    assert_eq!(again.json()["error"], "plan: this account has the plan starter already");
    shop.restart(|_| Ok(()))?;
    // Cancelled, it goes on until what is paid for ends; and old events bring nothing back.
    let cancelled = shop.stripe.cancel(&subscription);
    for events in [&cancelled, &renewed, &cancelled] {
        shop.deliver(events).await?;
        assert_eq!(shop.me().await?, is("starter", 2_000));
    }
    shop.audited()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_ended_with_its_month_leaves_the_free_plan() -> Result<()> {
    let shop = Shop::open().await?;
    let order = shop.subscribe("pro").await?;
    let pack = shop.buy("1k").await?;
    shop.deliver(&shop.stripe.pay(&pack, now_s())).await?;
    let mut events = shop.stripe.pay(&order, now_s() - MONTH_S - 3_600);
    events.extend(shop.stripe.cancel(&shop.stripe.subscription(&order)));
    events.reverse();
    shop.deliver(&events).await?;
    assert_eq!(shop.me().await?, is("free", 1_200), "what was bought stays");
    shop.audited()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_closes_the_account() -> Result<()> {
    let shop = Shop::open().await?;
    let order = shop.buy("1k").await?;
    shop.deliver(&shop.stripe.pay(&order, now_s())).await?;
    shop.deliver(&shop.stripe.dispute(&shop.stripe.payment(&order), "needs_response")).await?;
    let refused = shop.server.get_as(&shop.key, "/api/v1/me").await?;
    assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (401, &json!(401)));
    let blocked = post(&shop.server, &shop.key, "buy-credits", "{\"pack\": \"1k\"}").await?;
    assert_eq!(blocked.status, 401, "{}", blocked.text());
    assert_eq!(title(&shop.server.get(&format!("/checkout/{order}")).await?), "Disputed");
    shop.audited()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_minutes_is_made_anew_for_whoever_asks_again() -> Result<()> {
    let shop = Shop::open().await?;
    let bearer = format!("Bearer {}", shop.key);
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "mine")];
    let ask = async |path: &str, body: &'static str| {
        let reply = shop.server.send(Method::POST, &format!("/api/v1/{path}"), &headers, body).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        let url = reply.json()["checkout_url"].as_str().context("no address")?.to_owned();
        Ok((url, reply.header("idempotent-replayed") == "true"))
    };
    // A checkout is there for a day: the reply is repeated.
    let (first, again) =
        (ask("buy-credits", "{\"pack\": \"1k\"}").await?, ask("buy-credits", "{\"pack\": \"1k\"}").await?);
    assert_eq!((&first.0, first.1, again.1), (&again.0, false, true));
    let order = shop.subscribe("starter").await?;
    shop.deliver(&shop.stripe.pay(&order, now_s())).await?;
    // A page of the portal, on which the plan is changed, is good for minutes.
    let (first, again) =
        (ask("subscribe", "{\"plan\": \"pro\"}").await?, ask("subscribe", "{\"plan\": \"pro\"}").await?);
    assert!(first.0.starts_with("https://billing.stripe.example/"), "{first:?}");
    assert!(first.0 != again.0 && !first.1 && !again.1, "{first:?} {again:?}");
    Ok(())
}
