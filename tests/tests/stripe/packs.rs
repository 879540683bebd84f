//! Packs of credits, paid at the stand-in.

use serde_json::json;
use transcript_core::{
    ErrorKind,
    accounts::{
        OrderState,
        payments::{Heard, Pack, Subject, WebhookCall},
    },
    ids::OrderId,
};

use super::{
    fake::{now_s, sign},
    till::Till,
};

#[tokio::test]
async fn a_pack_is_paid_and_given_once() {
    let till = Till::open().await;
    let url = till.buy("order-1", "5k").await;
    assert!(url.starts_with("https://checkout.stripe.example/c/pay/cs_"), "{url}");
    let session = till.stripe.object(&till.stripe.session("order-1"));
    assert_eq!((&session["amount_total"], &session["currency"]), (&json!(4_000), &json!("usd")));
    assert_eq!(session["success_url"], json!("https://v.example/checkout/order-1"));
    assert_eq!(till.account().await.customer.as_deref(), session["customer"].as_str());
    assert_eq!(till.buy("order-1", "5k").await, url, "the same order is the same page");
    till.deliver(till.stripe.pay("order-1", now_s())).await;
    assert_eq!((till.purchased().await, till.order("order-1").await.state), (5_000, OrderState::Fulfilled));
    let account = till.account().await;
    let again = till.payments.buy(&account, Pack::from_wire("5k").unwrap(), OrderId::new("order-1")).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict);
    till.buy("order-2", "1k").await;
    till.deliver(till.stripe.pay("order-2", now_s())).await;
    assert_eq!((till.purchased().await, till.stripe.count("cus")), (6_000, 1), "one buyer has one name");
}

#[tokio::test]
async fn money_that_takes_days_is_given_when_it_arrives() {
    let till = Till::open().await;
    for order in ["order-1", "order-2", "order-3"] {
        till.buy(order, "1k").await;
    }
    till.deliver(till.stripe.pay_later("order-1")).await;
    till.deliver(till.stripe.pay_later("order-2")).await;
    assert_eq!(till.purchased().await, 0);
    till.deliver(till.stripe.arrive("order-1", now_s())).await;
    till.deliver(till.stripe.fail("order-2")).await;
    till.deliver(till.stripe.expire("order-3")).await;
    assert_eq!(till.purchased().await, 1_000);
    for (order, state) in [
        ("order-1", OrderState::Fulfilled),
        ("order-2", OrderState::Expired),
        ("order-3", OrderState::Expired),
    ] {
        assert_eq!(till.order(order).await.state, state, "{order}");
    }
}

#[tokio::test]
async fn another_amount_or_currency_gives_nothing() {
    let till = Till::open().await;
    for (order, field, value) in [
        ("order-1", "amount_total", json!(1_199)),
        ("order-2", "amount_total", json!(1_201)),
        ("order-3", "amount_total", json!(null)),
        ("order-4", "currency", json!("eur")),
        ("order-5", "currency", json!(null)),
    ] {
        till.buy(order, "1k").await;
        let events = till.stripe.pay(order, now_s());
        till.stripe.change(&till.stripe.session(order), field, value);
        till.deliver(events).await;
        assert_eq!((till.purchased().await, till.order(order).await.state), (0, OrderState::Open), "{order}");
    }
}

#[tokio::test]
async fn what_an_event_says_is_not_believed() {
    let till = Till::open().await;
    till.buy("order-1", "50k").await;
    let session = till.stripe.session("order-1");
    // Signed, but nobody has paid: the thing itself says so.
    let object = json!({ "object": "checkout.session", "id": session, "payment_status": "paid", "status": "complete",
        "client_reference_id": "order-1", "amount_total": 25_000, "currency": "usd" });
    let body = json!({ "type": "checkout.session.completed", "data": { "object": object } }).to_string();
    let hear = |signature: Option<String>, body: &str| {
        till.payments.hear(WebhookCall { signature, body: body.as_bytes().to_vec() })
    };
    let secret = super::fake::SECRET;
    let heard = hear(Some(sign(&body, secret, now_s())), &body).await.unwrap();
    assert_eq!(heard, Heard::About(vec![Subject::new(session)]));
    assert_eq!(till.purchased().await, 0);
    till.stripe.pay("order-1", now_s());
    for (signature, body) in [
        (None, body.clone()),
        (Some(sign(&body, "whsec_other", now_s())), body.clone()),
        (Some(sign(&body, secret, now_s() - 301)), body.clone()),
        (Some(sign(&body, secret, now_s() + 400)), body.clone()),
        (Some(sign(&body, secret, now_s())), body.replace("paid", "Paid")),
    ] {
        assert!(matches!(hear(signature, &body).await.unwrap(), Heard::Refused { .. }));
    }
    assert_eq!(till.purchased().await, 0);
    hear(Some(sign(&body, secret, now_s() - 290)), &body).await.unwrap();
    assert_eq!(till.purchased().await, 50_000);
}

#[tokio::test]
async fn refunds_and_disputes_of_a_pack() {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    till.deliver(till.stripe.pay("order-1", now_s())).await;
    let payment = till.stripe.payment("order-1");
    for (cents, left) in [(400, 667), (400, 334)] {
        till.deliver(till.stripe.refund(&payment, cents)).await;
        assert_eq!(till.purchased().await, left);
    }
    assert_eq!(till.order("order-1").await.state, OrderState::Refunded);
    till.buy("order-2", "2k").await;
    till.deliver(till.stripe.pay("order-2", now_s())).await;
    let payment = till.stripe.payment("order-2");
    till.deliver(till.stripe.dispute(&payment, "warning_needs_response")).await;
    assert!(!till.account().await.blocked, "an inquiry takes no money");
    till.deliver(till.stripe.dispute(&payment, "needs_response")).await;
    assert_eq!((till.account().await.blocked, till.purchased().await), (true, 2_334));
    till.deliver(till.stripe.dispute(&payment, "lost")).await;
    assert_eq!((till.order("order-2").await.state, till.purchased().await), (OrderState::Disputed, 334));
}

#[tokio::test]
async fn a_stripe_that_is_away_is_asked_again_by_the_next_event() {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    let events = till.stripe.pay("order-1", now_s());
    till.stripe.set_away(true);
    let event = events.last().unwrap();
    let call = || WebhookCall { signature: Some(event.signature()), body: event.body.clone().into_bytes() };
    assert_eq!(till.payments.hear(call()).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let account = till.account().await;
    let bought = till.payments.buy(&account, Pack::from_wire("1k").unwrap(), OrderId::new("order-2")).await;
    assert_eq!(bought.unwrap_err().kind(), ErrorKind::Unavailable);
    till.stripe.set_away(false);
    till.payments.hear(call()).await.unwrap();
    assert_eq!(till.purchased().await, 1_000);
    till.buy("order-2", "1k").await;
}

#[tokio::test]
async fn a_buyer_who_is_gone_at_stripe_gets_a_new_name() {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    let old = till.account().await.customer.unwrap();
    till.stripe.delete(&old);
    till.buy("order-2", "1k").await;
    let new = till.account().await.customer.unwrap();
    assert_ne!(old, new);
    till.deliver(till.stripe.pay("order-2", now_s())).await;
    assert_eq!(till.purchased().await, 1_000);
}

#[tokio::test]
async fn payments_of_other_shops_of_the_same_stripe_are_none_of_ours() {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    let events = till.stripe.pay("order-1", now_s());
    till.stripe.change(&till.stripe.session("order-1"), "client_reference_id", "another-shops");
    till.deliver(events).await;
    assert_eq!((till.purchased().await, till.order("order-1").await.state), (0, OrderState::Open));
}

#[tokio::test]
async fn pages_are_closed_before_an_account_is_erased() {
    let till = Till::open().await;
    for order in ["order-1", "order-2", "order-3"] {
        till.buy(order, "1k").await;
    }
    // The one is paid without anybody having heard, the money of the other is under way.
    till.stripe.pay("order-1", now_s());
    till.stripe.pay_later("order-2");
    let account = till.account().await;
    till.stripe.set_away(true);
    assert_eq!(till.payments.close(&account).await.unwrap_err().kind(), ErrorKind::Unavailable);
    till.stripe.set_away(false);
    assert_eq!(till.payments.close(&account).await.unwrap(), account);
    assert_eq!(till.stripe.object(&till.stripe.session("order-3"))["status"], json!("expired"));
    for (order, state) in
        [("order-1", OrderState::Fulfilled), ("order-2", OrderState::Open), ("order-3", OrderState::Expired)]
    {
        assert_eq!(till.order(order).await.state, state, "{order}");
    }
}
