//! Many repeated events, and the sweep without events.

use serde_json::json;
use transcript_core::{
    ErrorKind, Timestamp,
    accounts::{
        OrderState,
        payments::{WebhookOutcome, WebhookRequest},
    },
    directory::Plan,
};

use super::{
    fake::{FakeEvent, MONTH_S, SECRET, now_s, sign},
    fixture::{StripeFixture, plans},
};
use crate::simulation::seeded_rng::SeededRng;

fn call(event: &FakeEvent) -> WebhookRequest {
    WebhookRequest { signature: Some(event.signature()), body: event.body.clone().into_bytes() }
}

#[tokio::test]
async fn events_repeated_50_times_on_two_servers_count_once() {
    for seed in 0..3 {
        let (fixture, rng) = (StripeFixture::start().await, SeededRng::new(seed, 1));
        let started_s = now_s() - MONTH_S - 60;
        fixture.buy("order-1", "5k").await;
        fixture.subscribe("order-2", Plan::Starter).await;
        let mut events = fixture.stripe.pay("order-1", started_s);
        events.extend(fixture.stripe.pay("order-2", started_s));
        let subscription = fixture.stripe.subscription("order-2");
        events.extend(fixture.stripe.renew(&subscription, started_s + MONTH_S, true));
        events.extend(fixture.stripe.refund(&fixture.stripe.payment("order-1"), 1_000));
        let other = fixture.process(plans());
        for _ in 0..2 {
            let mut storm: Vec<&FakeEvent> = events.iter().flat_map(|event| [event; 50]).collect();
            let mut calls = Vec::new();
            while !storm.is_empty() {
                let event = storm.swap_remove(rng.below(storm.len() as u64) as usize);
                let server = if rng.chance(500) { &fixture.payments } else { &other };
                calls.push(server.handle_webhook(call(event)));
            }
            for outcome in futures_util::future::join_all(calls).await {
                assert!(matches!(outcome.unwrap(), WebhookOutcome::Events(_)));
            }
            // Once more in a new process.
            let restarted = fixture.process(plans());
            for event in events.iter().rev() {
                restarted.handle_webhook(call(event)).await.unwrap();
            }
            let account = fixture.account().await;
            assert_eq!(fixture.purchased().await, 3_750, "seed {seed}");
            assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
            assert_eq!(account.paid.map(|paid| paid.from.as_millis() / 1_000), Some(started_s + MONTH_S));
        }
    }
}

#[tokio::test]
async fn sweep_failing_order_does_not_delay_others() {
    let fixture = StripeFixture::start().await;
    for order in ["order-1", "order-2", "order-3"] {
        fixture.buy(order, "1k").await;
        fixture.stripe.pay(order, now_s());
    }
    fixture.stripe.change(&fixture.stripe.session("order-1"), "mode", 7);
    fixture.advance(700);
    let swept = fixture.payments.reconcile_orders().await;
    assert_eq!(swept.unwrap_err().kind(), ErrorKind::Unexpected, "the failure must be reported");
    assert_eq!(fixture.purchased().await, 2_000);
    assert_eq!(fixture.order("order-1").await.state, OrderState::Open);
    fixture.stripe.change(&fixture.stripe.session("order-1"), "mode", "payment");
    fixture.payments.reconcile_orders().await.unwrap();
    assert_eq!(fixture.purchased().await, 3_000);
}

#[tokio::test]
async fn sweep_ends_subscription_of_blocked_account() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let subscription = fixture.stripe.subscription("order-1");
    fixture.stripe.schedule(&subscription);
    fixture.payments.reconcile_renewals().await.unwrap();
    let ends = || fixture.stripe.object(&subscription)["cancel_at_period_end"].clone();
    assert_eq!(ends(), json!(false));
    fixture.block().await;
    fixture.payments.reconcile_renewals().await.unwrap();
    assert_eq!(ends(), json!(true), "a scheduled plan change must not prevent it");
    // The buyer reverts it while still blocked.
    fixture.stripe.change(&subscription, "cancel_at_period_end", false);
    fixture.payments.reconcile_renewals().await.unwrap();
    assert_eq!(ends(), json!(true));
    assert_eq!(fixture.account().await.plan, Plan::Pro, "the current month is paid");
}

#[tokio::test]
async fn signed_unreadable_event_is_not_acknowledged() {
    let fixture = StripeFixture::start().await;
    let deliver_webhook = |body: String| {
        let signature = Some(sign(&body, SECRET, now_s()));
        fixture.payments.handle_webhook(WebhookRequest { signature, body: body.into_bytes() })
    };
    let body = json!({ "type": "checkout.session.completed", "data": { "object": { "object": "checkout.session" } } });
    assert_eq!(deliver_webhook(body.to_string()).await.unwrap_err().kind(), ErrorKind::Unexpected);
    // An event that can never be read is acknowledged.
    for body in ["", "{", "{}", r#"{"type": "v1.billing.meter.error_report_triggered"}"#] {
        assert_eq!(
            deliver_webhook(body.to_owned()).await.unwrap(),
            WebhookOutcome::Events(Vec::new()),
            "{body}"
        );
    }
}

#[tokio::test]
async fn sweep_finds_refunds_and_disputes_without_events() {
    let fixture = StripeFixture::start().await;
    for order in ["order-1", "order-2", "order-3"] {
        fixture.buy(order, "1k").await;
        fixture.deliver(fixture.stripe.pay(order, now_s())).await;
    }
    let first = fixture.payments.reconcile_refunds(None).await.unwrap();
    assert_eq!(fixture.purchased().await, 3_000, "no refund yet");
    // More refunds than one page holds, all of one payment.
    for _ in 0..120 {
        fixture.stripe.refund(&fixture.stripe.payment("order-1"), 5);
    }
    fixture.stripe.dispute(&fixture.stripe.payment("order-2"), "needs_response");
    let next = fixture.payments.reconcile_refunds(Some(first)).await.unwrap();
    assert_eq!(fixture.purchased().await, 2_500, "half of the first order was refunded");
    assert_eq!(fixture.order("order-1").await.state, OrderState::Refunded);
    assert_eq!(fixture.order("order-2").await.state, OrderState::Disputed);
    assert!(fixture.account().await.blocked, "a dispute must block until the operator decides");
    // A repeated sweep changes nothing, also from the beginning.
    fixture.payments.reconcile_refunds(Some(next)).await.unwrap();
    fixture.payments.reconcile_refunds(None).await.unwrap();
    assert_eq!(fixture.purchased().await, 2_500);
    // The clock was a day ahead, and was corrected since.
    fixture.stripe.refund(&fixture.stripe.payment("order-3"), 600);
    let ahead = Timestamp::from_millis((now_s() + 86_400) * 1_000);
    let next = fixture.payments.reconcile_refunds(Some(ahead)).await.unwrap();
    assert!(next < ahead);
    assert_eq!(fixture.purchased().await, 2_000, "half of the third order was refunded");
    // While Stripe is unavailable the sweep position does not advance.
    fixture.stripe.set_away(true);
    assert_eq!(
        fixture.payments.reconcile_refunds(Some(next)).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
}
