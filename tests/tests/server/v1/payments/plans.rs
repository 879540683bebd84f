//! Subscriptions: started, renewed, overdue, cancelled, disputed.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;

use super::{PurchaseFixture, post, title};
use crate::{
    server::v1::{account_pages::BrowserFixture, mail_client::MailClient},
    stripe::fake::{MONTH_S, now_s},
};

fn plan_with(plan: &str, credits: u64) -> (String, u64) {
    (plan.to_owned(), credits)
}

#[tokio::test(flavor = "multi_thread")]
async fn subscription_is_renewed_and_cancelled() -> Result<()> {
    let mut fixture = PurchaseFixture::start().await?;
    let order = fixture.subscribe("starter").await?;
    assert_eq!(fixture.status().await?, plan_with("free", 200));
    // It started so long ago that its first month is over.
    let started = now_s() - MONTH_S - 3_600;
    let first = fixture.stripe.pay(&order, started);
    fixture.deliver(&first).await?;
    assert_eq!(title(&fixture.server.get(&format!("/checkout/{order}")).await?), "Paid");
    assert_eq!(fixture.status().await?, plan_with("starter", 200), "the unpaid month has credits");
    let subscription = fixture.stripe.subscription(&order);
    fixture.deliver(&fixture.stripe.renew(&subscription, started + MONTH_S, false)).await?;
    assert_eq!(fixture.status().await?, plan_with("starter", 200));
    let renewed = fixture.stripe.renew(&subscription, started + MONTH_S, true);
    for events in [&renewed, &first, &renewed] {
        fixture.deliver(events).await?;
        assert_eq!(fixture.status().await?, plan_with("starter", 2_000));
    }
    let again = post(&fixture.server, &fixture.key, "subscribe", "{\"plan\": \"starter\"}").await?;
    assert_eq!((again.status.as_u16(), &again.json()["code"]), (400, &json!(400)));
    assert_eq!(again.json()["error"], "plan: this account has the plan starter already");
    fixture.restart(|_| Ok(()))?;
    // A cancelled subscription runs to the end of the paid period; old events change nothing.
    let cancelled = fixture.stripe.cancel(&subscription);
    for events in [&cancelled, &renewed, &cancelled] {
        fixture.deliver(events).await?;
        assert_eq!(fixture.status().await?, plan_with("starter", 2_000));
    }
    fixture.audit_ledger()
}

#[tokio::test(flavor = "multi_thread")]
async fn subscription_ended_with_month_leaves_free_plan() -> Result<()> {
    let fixture = PurchaseFixture::start().await?;
    let order = fixture.subscribe("pro").await?;
    let pack = fixture.buy("1k").await?;
    fixture.deliver(&fixture.stripe.pay(&pack, now_s())).await?;
    let mut events = fixture.stripe.pay(&order, now_s() - MONTH_S - 3_600);
    events.extend(fixture.stripe.cancel(&fixture.stripe.subscription(&order)));
    events.reverse();
    fixture.deliver(&events).await?;
    assert_eq!(fixture.status().await?, plan_with("free", 1_200), "purchased credits were lost");
    fixture.audit_ledger()
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_change_of_next_month_is_one_payment() -> Result<()> {
    let fixture = PurchaseFixture::start().await?;
    let mut browser = BrowserFixture::new(&fixture.server);
    browser.sign_in(&mut MailClient::new(&fixture.data), "ann%40example.org").await?;
    let pro = fixture.subscribe("pro").await?;
    // The next month begins in half an hour.
    let next_month = now_s() + 1_800;
    fixture.deliver(&fixture.stripe.pay(&pro, next_month - MONTH_S)).await?;
    let reply = post(&fixture.server, &fixture.key, "subscribe", "{\"plan\": \"starter\"}").await?;
    ensure!(reply.status == 200, "{}", reply.text());
    let list = browser.get("/account/orders").await?.text();
    assert!(list.contains("Nothing due before"), "{list}");
    let (_, rest) = list.split_once("account/orders/").context("no order")?;
    let order = rest.split('"').next().unwrap_or_default().to_owned();
    let page = browser.get(&format!("/checkout/{order}")).await?;
    assert_eq!(title(&page), "Nothing is due now");
    assert!(page.text().contains("the plan starter begins with the next month"), "{}", page.text());

    let subscription = fixture.stripe.subscription(&pro);
    fixture.stripe.switch(&subscription, "starter");
    fixture.deliver(&fixture.stripe.renew(&subscription, next_month, true)).await?;
    let invoice = fixture.stripe.latest_invoice(&subscription);
    let list = browser.get("/account/orders").await?.text();
    assert_eq!(list.matches("<td class=\"number\">$9.00</td>").count(), 1, "{list}");
    let receipt = browser.get(&format!("/account/orders/{order}")).await?;
    assert_eq!(receipt.status, 303);
    assert!(receipt.header("location").ends_with(&format!("account/orders/{invoice}")));
    for id in [&order, &invoice] {
        assert_eq!(title(&browser.get(&format!("/checkout/{id}")).await?), "Paid", "{id}");
    }
    let export = browser.get("/account/export").await?.json();
    let orders = export["orders"].as_array().context("no orders")?;
    let exported = orders.iter().find(|exported| exported["id"] == json!(order)).context("no such order")?;
    assert_eq!((&exported["paid_with"], &exported["amount_minor"]), (&json!(invoice), &json!(0)));
    fixture.audit_ledger()
}

#[tokio::test(flavor = "multi_thread")]
async fn dispute_blocks_account() -> Result<()> {
    let fixture = PurchaseFixture::start().await?;
    let order = fixture.buy("1k").await?;
    fixture.deliver(&fixture.stripe.pay(&order, now_s())).await?;
    fixture.deliver(&fixture.stripe.dispute(&fixture.stripe.payment(&order), "needs_response")).await?;
    let refused = fixture.server.get_as(&fixture.key, "/api/v1/me").await?;
    assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (401, &json!(401)));
    let blocked = post(&fixture.server, &fixture.key, "buy-credits", "{\"pack\": \"1k\"}").await?;
    assert_eq!(blocked.status, 401, "{}", blocked.text());
    assert_eq!(title(&fixture.server.get(&format!("/checkout/{order}")).await?), "Disputed");
    fixture.audit_ledger()
}

#[tokio::test(flavor = "multi_thread")]
async fn portal_session_repeated_request_gets_new_page() -> Result<()> {
    let fixture = PurchaseFixture::start().await?;
    let open_page = async |path: &str, body: &'static str| {
        let (path, headers) = (format!("/api/v1/{path}"), [("idempotency-key", "mine")]);
        let reply = fixture.server.send_as(&fixture.key, Method::POST, &path, &headers, body).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        let url = reply.json()["checkout_url"].as_str().context("no address")?.to_owned();
        Ok((url, reply.header("idempotent-replayed") == "true"))
    };
    // A checkout session is valid for a day: the response is replayed.
    let (first, again) = (
        open_page("buy-credits", "{\"pack\": \"1k\"}").await?,
        open_page("buy-credits", "{\"pack\": \"1k\"}").await?,
    );
    assert_eq!((&first.0, first.1, again.1), (&again.0, false, true));
    let order = fixture.subscribe("starter").await?;
    fixture.deliver(&fixture.stripe.pay(&order, now_s())).await?;
    // A page of the portal, on which the plan is changed, is valid for minutes.
    let (first, again) = (
        open_page("subscribe", "{\"plan\": \"pro\"}").await?,
        open_page("subscribe", "{\"plan\": \"pro\"}").await?,
    );
    assert!(first.0.starts_with("https://billing.stripe.example/"), "{first:?}");
    assert!(first.0 != again.0 && !first.1 && !again.1, "{first:?} {again:?}");
    Ok(())
}
