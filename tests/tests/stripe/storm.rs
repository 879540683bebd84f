//! Events in a storm, and what the sweep does when there are none.

use serde_json::json;
use transcript_core::{
    ErrorKind,
    accounts::{
        OrderState,
        payments::{Heard, WebhookCall},
    },
    directory::Plan,
};

use super::{
    fake::{Event, MONTH_S, SECRET, now_s, sign},
    till::{Till, plans},
};
use crate::simulation::dice::Dice;

fn call(event: &Event) -> WebhookCall {
    WebhookCall { signature: Some(event.signature()), body: event.body.clone().into_bytes() }
}

#[tokio::test]
async fn fifty_of_each_event_at_once_in_any_order_on_two_servers_and_after_a_restart() {
    for seed in 0..3 {
        let (till, dice) = (Till::open().await, Dice::new(seed, 1));
        let began = now_s() - MONTH_S - 60;
        till.buy("order-1", "5k").await;
        till.subscribe("order-2", Plan::Starter).await;
        let mut events = till.stripe.pay("order-1", began);
        events.extend(till.stripe.pay("order-2", began));
        let subscription = till.stripe.subscription("order-2");
        events.extend(till.stripe.renew(&subscription, began + MONTH_S, true));
        events.extend(till.stripe.refund(&till.stripe.payment("order-1"), 1_000));
        let other = till.process(plans());
        for _ in 0..2 {
            let mut storm: Vec<&Event> = events.iter().flat_map(|event| [event; 50]).collect();
            let mut calls = Vec::new();
            while !storm.is_empty() {
                let event = storm.swap_remove(dice.below(storm.len() as u64) as usize);
                let server = if dice.chance(500) { &till.payments } else { &other };
                calls.push(server.hear(call(event)));
            }
            for heard in futures_util::future::join_all(calls).await {
                assert!(matches!(heard.unwrap(), Heard::About(_)));
            }
            // And once more in processes that know nothing of it.
            let anew = till.process(plans());
            for event in events.iter().rev() {
                anew.hear(call(event)).await.unwrap();
            }
            let account = till.account().await;
            assert_eq!(till.purchased().await, 3_750, "seed {seed}");
            assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
            assert_eq!(account.paid.map(|paid| paid.from.as_millis() / 1_000), Some(began + MONTH_S));
        }
    }
}

#[tokio::test]
async fn one_order_that_cannot_be_settled_keeps_no_other_waiting() {
    let till = Till::open().await;
    for order in ["order-1", "order-2", "order-3"] {
        till.buy(order, "1k").await;
        till.stripe.pay(order, now_s());
    }
    till.stripe.change(&till.stripe.session("order-1"), "mode", 7);
    till.pass(700);
    let swept = till.payments.sweep_orders().await;
    assert_eq!(swept.unwrap_err().kind(), ErrorKind::Unexpected, "it is told");
    assert_eq!(till.purchased().await, 2_000);
    assert_eq!(till.order("order-1").await.state, OrderState::Open);
    till.stripe.change(&till.stripe.session("order-1"), "mode", "payment");
    till.payments.sweep_orders().await.unwrap();
    assert_eq!(till.purchased().await, 3_000);
}

#[tokio::test]
async fn the_subscription_of_a_blocked_account_ends_with_its_month() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Pro).await;
    till.deliver(till.stripe.pay("order-1", now_s())).await;
    let subscription = till.stripe.subscription("order-1");
    till.stripe.schedule(&subscription);
    till.payments.sweep_plans().await.unwrap();
    let ends = || till.stripe.object(&subscription)["cancel_at_period_end"].clone();
    assert_eq!(ends(), json!(false));
    till.block().await;
    till.payments.sweep_plans().await.unwrap();
    assert_eq!(ends(), json!(true), "also where it was to be another plan then");
    // The buyer takes that back, and is still blocked.
    till.stripe.change(&subscription, "cancel_at_period_end", false);
    till.payments.sweep_plans().await.unwrap();
    assert_eq!(ends(), json!(true));
    assert_eq!(till.account().await.plan, Plan::Pro, "until then it is paid");
}

#[tokio::test]
async fn a_signed_event_that_cannot_be_read_has_to_come_again() {
    let till = Till::open().await;
    let hear = |body: String| {
        let signature = Some(sign(&body, SECRET, now_s()));
        till.payments.hear(WebhookCall { signature, body: body.into_bytes() })
    };
    let body = json!({ "type": "checkout.session.completed", "data": { "object": { "object": "checkout.session" } } });
    assert_eq!(hear(body.to_string()).await.unwrap_err().kind(), ErrorKind::Unexpected);
    // Where it would be the same the next time, it is enough that it came.
    for body in ["", "{", "{}", r#"{"type": "v1.billing.meter.error_report_triggered"}"#] {
        assert_eq!(hear(body.to_owned()).await.unwrap(), Heard::About(Vec::new()), "{body}");
    }
}

#[tokio::test]
async fn a_sweep_finds_refunds_and_disputes_of_which_no_event_came() {
    let till = Till::open().await;
    for order in ["order-1", "order-2", "order-3"] {
        till.buy(order, "1k").await;
        till.deliver(till.stripe.pay(order, now_s())).await;
    }
    let first = till.payments.sweep_returned(None).await.unwrap();
    assert_eq!(till.purchased().await, 3_000, "nothing went back");
    // More refunds than a page has, all of one payment.
    for _ in 0..120 {
        till.stripe.refund(&till.stripe.payment("order-1"), 5);
    }
    till.stripe.dispute(&till.stripe.payment("order-2"), "needs_response");
    let next = till.payments.sweep_returned(Some(first)).await.unwrap();
    assert_eq!(till.purchased().await, 2_500, "half of the first order went back");
    assert_eq!(till.order("order-1").await.state, OrderState::Refunded);
    assert_eq!(till.order("order-2").await.state, OrderState::Disputed);
    assert!(till.account().await.blocked, "until the operator decides");
    // What was asked about before changes nothing more, also from the beginning.
    till.payments.sweep_returned(Some(next)).await.unwrap();
    till.payments.sweep_returned(None).await.unwrap();
    assert_eq!(till.purchased().await, 2_500);
    // While Stripe is away nothing is passed over.
    till.stripe.set_away(true);
    assert_eq!(till.payments.sweep_returned(Some(next)).await.unwrap_err().kind(), ErrorKind::Unavailable);
}
