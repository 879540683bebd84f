//! Plans, paid at the fake: months, renewals, changes and refunds.

use serde_json::json;
use transcript_core::{
    Timestamp,
    accounts::{AccountsOptions, EffectivePlan, OrderState, PlanState},
    directory::{Account, Plan},
};
use verbatim::SystemClock;

use super::{
    fake::{FakeEvent, MONTH_S, now_s},
    fixture::StripeFixture,
};

fn effective_plan(account: &Account) -> (Plan, PlanState, u64) {
    use transcript_core::Clock as _;
    let effective_plan =
        EffectivePlan::new(account, &AccountsOptions::default(), SystemClock::default().now());
    (effective_plan.plan, effective_plan.state, effective_plan.plan_credits)
}

fn paid(account: &Account) -> (i64, i64, u64) {
    let paid = account.paid.unwrap();
    let seconds = |time: Timestamp| time.as_millis() / 1_000;
    (seconds(paid.from), seconds(paid.through), paid.credits)
}

#[tokio::test]
async fn plan_starts_and_continues_with_paid_invoices() {
    let fixture = StripeFixture::start().await;
    let url = fixture.subscribe("order-1", Plan::Starter).await;
    assert!(url.starts_with("https://checkout.stripe.example/"), "{url}");
    assert_eq!(effective_plan(&fixture.account().await), (Plan::Free, PlanState::Free, 200));
    // The paid month is already over.
    let started_s = now_s() - MONTH_S - 3_600;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let account = fixture.account().await;
    assert_eq!(effective_plan(&account), (Plan::Starter, PlanState::Grace, 200), "the next month is unpaid");
    assert_eq!(account.anchor.as_millis() / 1_000, started_s);
    assert_eq!((fixture.order("order-1").await.state, fixture.purchased().await), (OrderState::Fulfilled, 0));
    let subscription = fixture.stripe.subscription("order-1");
    fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, false)).await;
    assert_eq!(effective_plan(&fixture.account().await), (Plan::Starter, PlanState::Grace, 200));
    let latest = fixture.stripe.object(&subscription)["latest_invoice"].as_str().unwrap().to_owned();
    let url = fixture.subscribe("order-2", Plan::Starter).await;
    assert_eq!(url, format!("https://invoice.stripe.example/i/{latest}"), "expected the overdue invoice");
    let paid_now = fixture.stripe.renew(&subscription, started_s + MONTH_S, true);
    fixture.deliver(paid_now).await;
    let account = fixture.account().await;
    assert_eq!(effective_plan(&account), (Plan::Starter, PlanState::Paid, 2_000));
    assert_eq!(paid(&account), (started_s + MONTH_S, started_s + 2 * MONTH_S, 2_000));
    assert_eq!(account.anchor.as_millis() / 1_000, started_s, "a renewal must keep the anchor");
    fixture.deliver(fixture.stripe.cancel(&subscription)).await;
    let account = fixture.account().await;
    assert_eq!(
        (effective_plan(&account).1, account.subscription),
        (PlanState::Paid, None),
        "the month is paid"
    );
}

#[tokio::test]
async fn plan_change_uses_portal_and_prorates() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    let started_s = now_s() - MONTH_S / 2;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let subscription = fixture.stripe.subscription("order-1");
    let url = fixture.subscribe("order-2", Plan::Pro).await;
    assert!(url.starts_with("https://billing.stripe.example/p/session/"), "{url}");
    assert_eq!(fixture.order("order-2").await.payment.as_deref(), Some(subscription.as_str()));
    assert_eq!(
        effective_plan(&fixture.account().await),
        (Plan::Starter, PlanState::Paid, 2_000),
        "the change is not paid yet"
    );
    let now = now_s();
    // The unused part of the smaller plan is credited, so the invoice is below the price.
    fixture.deliver(fixture.stripe.exchange(&subscription, "pro", now, 450)).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, account.anchor.as_millis() / 1_000), (Plan::Pro, now));
    let (from, through, credits) = paid(&account);
    assert_eq!((from, through), (started_s, now + MONTH_S));
    assert!((10_995..=11_005).contains(&credits), "expected one and a half months: {credits}");
    let order = fixture.order("order-2").await;
    assert_eq!(
        (order.state, order.amount_minor, order.charged_minor()),
        (OrderState::Fulfilled, 2_900, 2_450)
    );
    assert_eq!(fixture.order("order-1").await.paid_minor, None, "the price");
    assert_eq!(
        (fixture.stripe.count("sub"), fixture.stripe.count("price"), fixture.stripe.count("bpc")),
        (1, 2, 1)
    );
    // After a refund the month of the smaller plan is still paid.
    let payment = fixture.stripe.payment("order-1");
    fixture.deliver(fixture.stripe.refund(&payment, 2_450)).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, paid(&account)), (Plan::Starter, (started_s, started_s + MONTH_S, 2_000)));
    let order = fixture.order("order-2").await;
    assert_eq!((order.state, order.returned_minor), (OrderState::Refunded, order.charged_minor()));
    assert_eq!(fixture.receipts().await, ["receipt-order-1", "receipt-order-2"]);
}

#[tokio::test]
async fn ending_subscription_opens_portal_without_confirmation() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    fixture.stripe.change(&fixture.stripe.subscription("order-1"), "cancel_at_period_end", true);
    let url = fixture.subscribe("order-2", Plan::Pro).await;
    assert!(url.starts_with("https://billing.stripe.example/p/session/"), "{url}");
}

#[tokio::test]
async fn second_plan_order_never_opens_second_subscription() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.subscribe("order-2", Plan::Pro).await;
    let status = |order: &str| fixture.stripe.object(&fixture.stripe.session(order))["status"].clone();
    assert_eq!((status("order-1"), status("order-2")), ("expired".into(), "open".into()));
    // It is paid and its event is late: the provider's state decides.
    let events = fixture.stripe.pay("order-2", now_s());
    let url = fixture.subscribe("order-3", Plan::Starter).await;
    assert!(url.starts_with("https://billing.stripe.example/"), "{url}");
    fixture.deliver(events).await;
    assert_eq!(fixture.account().await.plan, Plan::Pro);
    // Packs can be bought all the same.
    assert!(fixture.buy("order-4", "1k").await.starts_with("https://checkout.stripe.example/"));
}

#[tokio::test]
async fn plan_refunds_and_disputes_reduce_credits() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let payment = fixture.stripe.payment("order-1");
    fixture.deliver(fixture.stripe.refund(&payment, 290)).await;
    assert_eq!(effective_plan(&fixture.account().await), (Plan::Pro, PlanState::Paid, 9_000));
    assert_eq!(fixture.order("order-1").await.state, OrderState::Refunded);
    fixture.deliver(fixture.stripe.dispute(&payment, "under_review")).await;
    assert!(fixture.account().await.blocked);
    fixture.deliver(fixture.stripe.dispute(&payment, "lost")).await;
    assert_eq!(effective_plan(&fixture.account().await), (Plan::Free, PlanState::Free, 200));
}

#[tokio::test]
async fn refund_and_dispute_of_earlier_month_are_recorded() {
    for has_events in [true, false] {
        let fixture = StripeFixture::start().await;
        fixture.subscribe("order-1", Plan::Pro).await;
        let started_s = now_s() - MONTH_S - 60;
        fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
        let payment = fixture.stripe.payment("order-1");
        let subscription = fixture.stripe.subscription("order-1");
        fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, true)).await;
        let renewed = fixture.account().await;
        let reconcile = async |events: Vec<FakeEvent>| match has_events {
            true => fixture.deliver(events).await,
            false => {
                fixture.payments.reconcile_refunds(None).await.unwrap();
            }
        };
        reconcile(fixture.stripe.refund(&payment, 290)).await;
        let order = fixture.order("order-1").await;
        assert_eq!((order.state, order.returned_minor), (OrderState::Refunded, 290));
        assert_eq!(fixture.account().await, renewed, "the present month was not refunded");
        for status in ["under_review", "lost"] {
            reconcile(fixture.stripe.dispute(&payment, status)).await;
            let account = fixture.account().await;
            assert!(account.blocked, "{status}");
            assert_eq!(fixture.order("order-1").await.state, OrderState::Disputed);
            assert_eq!((effective_plan(&account), account.paid), (effective_plan(&renewed), renewed.paid));
        }
        assert_eq!(fixture.order("order-1").await.refunded_credits.last(), Some(&10_000));
    }
}

#[tokio::test]
async fn plan_refund_that_fails_later_restores_nothing() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let payment = fixture.stripe.payment("order-1");
    for (refund, expect) in
        [(290, (Plan::Pro, PlanState::Paid, 9_000)), (2_610, (Plan::Free, PlanState::Free, 200))]
    {
        fixture.deliver(fixture.stripe.refund(&payment, refund)).await;
        assert_eq!(effective_plan(&fixture.account().await), expect);
        let charge = fixture.stripe.object(&payment)["latest_charge"].as_str().unwrap().to_owned();
        let returned = fixture.stripe.object(&charge)["amount_refunded"].clone();
        fixture.stripe.change(&charge, "amount_refunded", 0);
        let failed = FakeEvent::new(
            "refund.failed",
            &json!({
                "id": "re_test9", "object": "refund", "charge": charge, "payment_intent": payment, "status": "failed",
            }),
        );
        fixture.deliver(vec![failed]).await;
        assert_eq!(effective_plan(&fixture.account().await), expect, "the buyer would have plan and money");
        fixture.stripe.change(&charge, "amount_refunded", returned);
    }
    let order = fixture.order("order-1").await;
    assert_eq!((order.state, order.returned_minor), (OrderState::Refunded, 2_900));
}

#[tokio::test]
async fn payments_of_deleted_customer_still_count() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let old = fixture.account().await.customer.unwrap();
    fixture.stripe.delete(&old);
    fixture.buy("order-2", "1k").await;
    let new = fixture.account().await.customer;
    assert_ne!(new, Some(old));
    let payment = fixture.stripe.payment("order-1");
    fixture.deliver(fixture.stripe.dispute(&payment, "needs_response")).await;
    assert!(fixture.account().await.blocked);
    assert_eq!(fixture.order("order-1").await.state, OrderState::Disputed);
    fixture.deliver(fixture.stripe.cancel(&fixture.stripe.subscription("order-1"))).await;
    let account = fixture.account().await;
    assert_eq!((account.subscription.clone(), account.customer.clone()), (None, new));
    assert_eq!(effective_plan(&account), (Plan::Pro, PlanState::Paid, 10_000));
    fixture.deliver(fixture.stripe.dispute(&payment, "lost")).await;
    assert_eq!(effective_plan(&fixture.account().await), (Plan::Free, PlanState::Free, 200));
}

#[tokio::test]
async fn plan_of_other_customer_is_not_granted() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    fixture.subscribe("order-2", Plan::Pro).await;
    let events = fixture.stripe.pay("order-2", now_s());
    fixture.stripe.change(&fixture.stripe.subscription("order-2"), "customer", "cus_other");
    fixture.deliver(events).await;
    let account = fixture.account().await;
    assert_eq!((effective_plan(&account), account.subscription), ((Plan::Free, PlanState::Free, 200), None));
    assert_eq!(fixture.order("order-2").await.state, OrderState::Open);
}

#[tokio::test]
async fn plan_paid_with_other_amount_is_not_granted() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    let events = fixture.stripe.pay("order-1", now_s());
    let invoice = fixture.stripe.object(&fixture.stripe.subscription("order-1"))["latest_invoice"].clone();
    let invoice = invoice.as_str().unwrap();
    for (field, value) in [("amount", 2_899), ("amount", 900), ("quantity", 2)] {
        let mut lines = fixture.stripe.object(invoice)["lines"].clone();
        let whole = lines["data"][0].clone();
        lines["data"][0][field] = value.into();
        fixture.stripe.change(invoice, "lines", lines.clone());
        fixture.deliver(events.clone()).await;
        assert_eq!(
            effective_plan(&fixture.account().await),
            (Plan::Free, PlanState::Free, 200),
            "{field} {value}"
        );
        lines["data"][0] = whole;
        fixture.stripe.change(invoice, "lines", lines);
    }
    fixture.stripe.change(invoice, "status", "open");
    fixture.deliver(events.clone()).await;
    assert_eq!(fixture.account().await.plan, Plan::Free, "the invoice is unpaid");
    fixture.stripe.change(invoice, "status", "paid");
    fixture.deliver(events).await;
    assert_eq!(fixture.account().await.plan, Plan::Pro);
}
