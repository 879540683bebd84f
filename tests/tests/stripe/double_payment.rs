//! Double payments: prevented where possible; otherwise everything paid is fulfilled exactly once.

use transcript_core::{
    ErrorKind, Result,
    accounts::{
        OrderState,
        payments::{Pack, SubscribeOutcome},
    },
    directory::Plan,
    ids::OrderId,
};

use super::{
    fake::{MONTH_S, now_s},
    fixture::{StripeFixture, plans},
};

/// Number of checkout sessions for plans that can still be paid.
fn open_sessions(fixture: &StripeFixture, orders: &[&str]) -> usize {
    let opened = |order: &&&str| fixture.stripe.has_session(order);
    let is_open = |order: &&&str| fixture.stripe.object(&fixture.stripe.session(order))["status"] == "open";
    orders.iter().filter(opened).filter(is_open).count()
}

#[tokio::test]
async fn concurrent_plan_orders_leave_one_open_session() {
    let fixture = StripeFixture::start().await;
    let account = fixture.account().await;
    let subscribe = |order: &str, plan| fixture.payments.subscribe(&account, plan, OrderId::new(order));
    let (one, two) = tokio::join!(subscribe("order-1", Plan::Starter), subscribe("order-2", Plan::Pro));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(open_sessions(&fixture, &["order-1", "order-2"]), 1);
}

#[tokio::test]
async fn concurrent_servers_leave_at_most_one_open_session() {
    for _ in 0..5 {
        let fixture = StripeFixture::start().await;
        let account = fixture.account().await;
        let other = fixture.process(plans());
        let outcomes: (Result<SubscribeOutcome>, Result<SubscribeOutcome>) = tokio::join!(
            fixture.payments.subscribe(&account, Plan::Starter, OrderId::new("order-1")),
            other.subscribe(&account, Plan::Pro, OrderId::new("order-2")),
        );
        for outcome in [&outcomes.0, &outcomes.1] {
            assert!(
                outcome.as_ref().is_ok() || outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict)
            );
        }
        assert!(open_sessions(&fixture, &["order-1", "order-2"]) <= 1);
        // Each may have closed the session of the other: the account can still subscribe.
        fixture.subscribe("order-3", Plan::Starter).await;
        assert_eq!(open_sessions(&fixture, &["order-1", "order-2", "order-3"]), 1);
    }
}

#[tokio::test]
async fn session_paid_during_next_order_stays_only_one() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.stripe.pay_on_expire("order-1");
    let url = fixture.subscribe("order-2", Plan::Pro).await;
    assert!(
        url.starts_with("https://billing.stripe.example/"),
        "the paid subscription must be changed: {url}"
    );
    assert_eq!((open_sessions(&fixture, &["order-1", "order-2"]), fixture.stripe.count("sub")), (0, 1));
}

/// A fixture with two paid subscriptions, of which the first one is the account's plan.
/// The month of the second one begins at this time, in seconds.
async fn start_with_two_subscriptions(second_paid_s: i64) -> (StripeFixture, String, String) {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.subscribe("order-2", Plan::Pro).await;
    // The second checkout expired the first session. The first one is paid all the same.
    let (one, two) = (fixture.stripe.pay("order-1", now_s()), fixture.stripe.pay("order-2", second_paid_s));
    fixture.deliver(one).await;
    fixture.deliver(two).await;
    let [one, two] = ["order-1", "order-2"].map(|order| fixture.stripe.payment(order));
    (fixture, one, two)
}

#[tokio::test]
async fn two_paid_subscriptions_are_both_fulfilled() {
    let (fixture, _, two) = start_with_two_subscriptions(now_s()).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    assert_eq!(fixture.purchased().await, 10_000, "the second payment must become credits");
    assert_eq!(fixture.order("order-2").await.state, OrderState::Fulfilled);
    // Refunded in part, then in full.
    for (cents, left) in [(290, 9_000), (2_610, 0)] {
        fixture.deliver(fixture.stripe.refund(&two, cents)).await;
        assert_eq!(fixture.purchased().await, left);
    }
    let account = fixture.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    assert_eq!(fixture.order("order-2").await.state, OrderState::Refunded);
}

#[tokio::test]
async fn refund_of_one_subscription_keeps_other() {
    let (fixture, one, _) = start_with_two_subscriptions(now_s()).await;
    fixture.deliver(fixture.stripe.refund(&one, 900)).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, account.paid, fixture.purchased().await), (Plan::Free, None, 10_000));
    fixture.deliver(fixture.stripe.cancel(&fixture.stripe.subscription("order-1"))).await;
    // From its next month the other subscription is the plan, and its first month is not granted again.
    let (subscription, started_s) = (fixture.stripe.subscription("order-2"), now_s());
    fixture.deliver(fixture.stripe.renew(&subscription, started_s, true)).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Pro, Some(10_000)));
    assert_eq!((account.subscription, fixture.purchased().await), (Some(subscription), 10_000));
}

#[tokio::test]
async fn refund_of_earlier_month_revokes_its_lasting_credits() {
    let started_s = now_s() - MONTH_S - 60;
    let (fixture, _, earlier) = start_with_two_subscriptions(started_s).await;
    let subscription = fixture.stripe.subscription("order-2");
    fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, true)).await;
    assert_eq!(fixture.purchased().await, 20_000);
    fixture.deliver(fixture.stripe.refund(&earlier, 2_900)).await;
    assert_eq!(fixture.purchased().await, 10_000);
    assert_eq!(fixture.order("order-2").await.state, OrderState::Refunded);
}

#[tokio::test]
async fn refund_of_exchanged_month_revokes_credits() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    let started_s = now_s() - MONTH_S / 2;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let subscription = fixture.stripe.subscription("order-1");
    let first = fixture.stripe.payment("order-1");
    fixture.subscribe("order-2", Plan::Pro).await;
    fixture.deliver(fixture.stripe.exchange(&subscription, "pro", now_s(), 450)).await;
    let credits = async || fixture.account().await.paid.map(|paid| paid.credits).unwrap();
    let before = credits().await;
    fixture.deliver(fixture.stripe.refund(&first, 225)).await;
    assert_eq!(credits().await, before - 500);
    fixture.deliver(fixture.stripe.refund(&fixture.stripe.payment("order-1"), 245)).await;
    assert_eq!(credits().await, before - 500 - 1_000);
}

#[tokio::test]
async fn pending_payment_is_not_requested_again() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    let session = fixture.stripe.session("order-1");
    fixture.deliver(fixture.stripe.pay_later("order-1")).await;
    let account = fixture.account().await;
    let again = || fixture.payments.buy(&account, Pack::from_wire("1k").unwrap(), OrderId::new("order-1"));
    assert_eq!(again().await.unwrap_err().kind(), ErrorKind::Conflict);
    // Stripe discards idempotency keys after a day.
    fixture.stripe.discard_idempotency_keys();
    assert_eq!(again().await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((fixture.stripe.count("cs"), fixture.order("order-1").await.payment), (1, Some(session)));
    fixture.deliver(fixture.stripe.complete_delayed("order-1", now_s())).await;
    assert_eq!(fixture.purchased().await, 1_000);
    // Paid without an event: the provider is read before a checkout session is created.
    fixture.buy("order-2", "1k").await;
    fixture.stripe.pay("order-2", now_s());
    let paid = fixture.payments.buy(&account, Pack::from_wire("1k").unwrap(), OrderId::new("order-2")).await;
    assert_eq!((paid.unwrap_err().kind(), fixture.purchased().await), (ErrorKind::Conflict, 2_000));
}
