//! Packs of credits, paid at the fake.

use serde_json::json;
use transcript_core::{
    ErrorKind,
    accounts::{
        OrderState,
        payments::{Pack, ProviderObject, WebhookOutcome, WebhookRequest},
    },
    ids::OrderId,
};

use super::{
    fake::{now_s, sign},
    fixture::StripeFixture,
};

#[tokio::test]
async fn pack_paid_is_granted_once() {
    let fixture = StripeFixture::start().await;
    let url = fixture.buy("order-1", "5k").await;
    assert!(url.starts_with("https://checkout.stripe.example/c/pay/cs_"), "{url}");
    let session = fixture.stripe.object(&fixture.stripe.session("order-1"));
    assert_eq!((&session["amount_total"], &session["currency"]), (&json!(4_000), &json!("usd")));
    assert_eq!(session["success_url"], json!("https://v.example/checkout/order-1"));
    assert_eq!(fixture.account().await.customer.as_deref(), session["customer"].as_str());
    assert_eq!(fixture.buy("order-1", "5k").await, url, "the same order must have the same checkout URL");
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    assert_eq!(
        (fixture.purchased().await, fixture.order("order-1").await.state),
        (5_000, OrderState::Fulfilled)
    );
    let account = fixture.account().await;
    let again = fixture.payments.buy(&account, Pack::from_wire("5k").unwrap(), OrderId::new("order-1")).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
    fixture.buy("order-2", "1k").await;
    fixture.deliver(fixture.stripe.pay("order-2", now_s())).await;
    assert_eq!(
        (fixture.purchased().await, fixture.stripe.count("cus")),
        (6_000, 1),
        "one buyer must be one customer"
    );
}

#[tokio::test]
async fn delayed_payment_is_granted_on_arrival() {
    let fixture = StripeFixture::start().await;
    for order in ["order-1", "order-2", "order-3"] {
        fixture.buy(order, "1k").await;
    }
    fixture.deliver(fixture.stripe.pay_later("order-1")).await;
    fixture.deliver(fixture.stripe.pay_later("order-2")).await;
    assert_eq!(fixture.purchased().await, 0);
    fixture.deliver(fixture.stripe.complete_delayed("order-1", now_s())).await;
    fixture.deliver(fixture.stripe.fail("order-2")).await;
    fixture.deliver(fixture.stripe.expire("order-3")).await;
    assert_eq!(fixture.purchased().await, 1_000);
    for (order, state) in [
        ("order-1", OrderState::Fulfilled),
        ("order-2", OrderState::Expired),
        ("order-3", OrderState::Expired),
    ] {
        assert_eq!(fixture.order(order).await.state, state, "{order}");
    }
}

#[tokio::test]
async fn payment_with_other_amount_or_currency_grants_nothing() {
    let fixture = StripeFixture::start().await;
    for (order, field, value) in [
        ("order-1", "amount_total", json!(1_199)),
        ("order-2", "amount_total", json!(1_201)),
        ("order-3", "amount_total", json!(null)),
        ("order-4", "currency", json!("eur")),
        ("order-5", "currency", json!(null)),
    ] {
        fixture.buy(order, "1k").await;
        let events = fixture.stripe.pay(order, now_s());
        fixture.stripe.change(&fixture.stripe.session(order), field, value);
        fixture.deliver(events).await;
        assert_eq!(
            (fixture.purchased().await, fixture.order(order).await.state),
            (0, OrderState::Open),
            "{order}"
        );
    }
}

#[tokio::test]
async fn event_content_is_not_trusted() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "50k").await;
    let session = fixture.stripe.session("order-1");
    // Signed, but unpaid according to the checkout session.
    let object = json!({ "object": "checkout.session", "id": session, "payment_status": "paid", "status": "complete",
        "client_reference_id": "order-1", "amount_total": 25_000, "currency": "usd" });
    let body = json!({ "type": "checkout.session.completed", "data": { "object": object } }).to_string();
    let deliver_webhook = |signature: Option<String>, body: &str| {
        fixture.payments.handle_webhook(WebhookRequest { signature, body: body.as_bytes().to_vec() })
    };
    let secret = super::fake::SECRET;
    let outcome = deliver_webhook(Some(sign(&body, secret, now_s())), &body).await.unwrap();
    assert_eq!(outcome, WebhookOutcome::Events(vec![ProviderObject::new(session)]));
    assert_eq!(fixture.purchased().await, 0);
    fixture.stripe.pay("order-1", now_s());
    for (signature, body) in [
        (None, body.clone()),
        (Some(sign(&body, "whsec_other", now_s())), body.clone()),
        (Some(sign(&body, secret, now_s() - 301)), body.clone()),
        (Some(sign(&body, secret, now_s() + 400)), body.clone()),
        (Some(sign(&body, secret, now_s())), body.replace("paid", "Paid")),
    ] {
        assert!(matches!(deliver_webhook(signature, &body).await.unwrap(), WebhookOutcome::Rejected { .. }));
    }
    assert_eq!(fixture.purchased().await, 0);
    deliver_webhook(Some(sign(&body, secret, now_s() - 290)), &body).await.unwrap();
    assert_eq!(fixture.purchased().await, 50_000);
}

#[tokio::test]
async fn pack_refunds_and_disputes_revoke_credits() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let payment = fixture.stripe.payment("order-1");
    for (cents, left) in [(400, 667), (400, 334)] {
        fixture.deliver(fixture.stripe.refund(&payment, cents)).await;
        assert_eq!(fixture.purchased().await, left);
    }
    assert_eq!(fixture.order("order-1").await.state, OrderState::Refunded);
    fixture.buy("order-2", "2k").await;
    fixture.deliver(fixture.stripe.pay("order-2", now_s())).await;
    let payment = fixture.stripe.payment("order-2");
    fixture.deliver(fixture.stripe.dispute(&payment, "warning_needs_response")).await;
    assert!(!fixture.account().await.blocked, "an inquiry must not block");
    fixture.deliver(fixture.stripe.dispute(&payment, "needs_response")).await;
    assert_eq!((fixture.account().await.blocked, fixture.purchased().await), (true, 2_334));
    fixture.deliver(fixture.stripe.dispute(&payment, "lost")).await;
    assert_eq!(
        (fixture.order("order-2").await.state, fixture.purchased().await),
        (OrderState::Disputed, 334)
    );
}

#[tokio::test]
async fn stripe_unavailable_event_succeeds_when_repeated() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    let events = fixture.stripe.pay("order-1", now_s());
    fixture.stripe.set_away(true);
    let event = events.last().unwrap();
    let call =
        || WebhookRequest { signature: Some(event.signature()), body: event.body.clone().into_bytes() };
    assert_eq!(fixture.payments.handle_webhook(call()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let account = fixture.account().await;
    let bought =
        fixture.payments.buy(&account, Pack::from_wire("1k").unwrap(), OrderId::new("order-2")).await;
    assert_eq!(bought.unwrap_err().kind(), ErrorKind::Unavailable);
    fixture.stripe.set_away(false);
    fixture.payments.handle_webhook(call()).await.unwrap();
    assert_eq!(fixture.purchased().await, 1_000);
    fixture.buy("order-2", "1k").await;
}

#[tokio::test]
async fn customer_deleted_at_stripe_is_created_again() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    let old = fixture.account().await.customer.unwrap();
    fixture.stripe.delete(&old);
    fixture.buy("order-2", "1k").await;
    let new = fixture.account().await.customer.unwrap();
    assert_ne!(old, new);
    fixture.deliver(fixture.stripe.pay("order-2", now_s())).await;
    assert_eq!(fixture.purchased().await, 1_000);
}

#[tokio::test]
async fn payment_of_other_shop_grants_nothing() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    let events = fixture.stripe.pay("order-1", now_s());
    fixture.stripe.change(&fixture.stripe.session("order-1"), "client_reference_id", "another-shops");
    fixture.deliver(events).await;
    assert_eq!((fixture.purchased().await, fixture.order("order-1").await.state), (0, OrderState::Open));
}

#[tokio::test]
async fn session_of_other_program_for_same_order_grants_nothing() {
    for metadata in [json!({}), json!({ "order": "order-1" }), json!({ "verbatim_order": "order-1" })] {
        let fixture = StripeFixture::start().await;
        fixture.buy("order-1", "1k").await;
        let own = fixture.stripe.session("order-1");
        let events = fixture.stripe.pay_elsewhere("order-1", metadata.clone(), now_s());
        let other = fixture.stripe.session("order-1");
        fixture.deliver(events).await;
        assert_eq!(fixture.purchased().await, 0, "{metadata}");
        // Nor does a refund of that payment, or the end of its page, change the order.
        fixture.deliver(fixture.stripe.refund(&fixture.stripe.payment("order-1"), 100)).await;
        fixture.stripe.change(&other, "payment_status", "unpaid");
        fixture.deliver(fixture.stripe.expire("order-1")).await;
        assert_eq!(fixture.order("order-1").await.state, OrderState::Open, "{metadata}");
        fixture.stripe.delete(&other);
        assert_eq!(fixture.stripe.session("order-1"), own);
        fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
        assert_eq!(fixture.purchased().await, 1_000, "{metadata}");
    }
}

#[tokio::test]
async fn open_sessions_expire_before_account_erasure() {
    let fixture = StripeFixture::start().await;
    for order in ["order-1", "order-2", "order-3"] {
        fixture.buy(order, "1k").await;
    }
    // One is paid without an event, another has a pending payment.
    fixture.stripe.pay("order-1", now_s());
    fixture.stripe.pay_later("order-2");
    let account = fixture.account().await;
    fixture.stripe.set_away(true);
    assert_eq!(fixture.payments.close(&account).await.unwrap_err().kind(), ErrorKind::Unavailable);
    fixture.stripe.set_away(false);
    assert_eq!(fixture.payments.close(&account).await.unwrap(), account);
    assert_eq!(fixture.stripe.object(&fixture.stripe.session("order-3"))["status"], json!("expired"));
    for (order, state) in
        [("order-1", OrderState::Fulfilled), ("order-2", OrderState::Open), ("order-3", OrderState::Expired)]
    {
        assert_eq!(fixture.order(order).await.state, state, "{order}");
    }
}
