//! Who pays twice, at once or in turn: nobody should, and if so everything that was paid is given, once.

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
    till::{Till, plans},
};

/// How many pages for plans can be paid.
fn open_pages(till: &Till, orders: &[&str]) -> usize {
    let opened = |order: &&&str| till.stripe.has_session(order);
    let is_open = |order: &&&str| till.stripe.object(&till.stripe.session(order))["status"] == "open";
    orders.iter().filter(opened).filter(is_open).count()
}

#[tokio::test]
async fn two_plans_that_are_wanted_at_once_are_one_page() {
    let till = Till::open().await;
    let account = till.account().await;
    let subscribe = |order: &str, plan| till.payments.subscribe(&account, plan, OrderId::new(order));
    let (one, two) = tokio::join!(subscribe("order-1", Plan::Starter), subscribe("order-2", Plan::Pro));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(open_pages(&till, &["order-1", "order-2"]), 1);
}

#[tokio::test]
async fn two_servers_leave_one_page_at_the_most() {
    for _ in 0..5 {
        let till = Till::open().await;
        let account = till.account().await;
        let other = till.process(plans());
        let told: (Result<SubscribeOutcome>, Result<SubscribeOutcome>) = tokio::join!(
            till.payments.subscribe(&account, Plan::Starter, OrderId::new("order-1")),
            other.subscribe(&account, Plan::Pro, OrderId::new("order-2")),
        );
        for outcome in [&told.0, &told.1] {
            assert!(
                outcome.as_ref().is_ok() || outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict)
            );
        }
        assert!(open_pages(&till, &["order-1", "order-2"]) <= 1);
    }
}

#[tokio::test]
async fn a_page_that_is_paid_while_another_opens_is_the_only_one() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    till.stripe.pay_when_closed("order-1");
    let url = till.subscribe("order-2", Plan::Pro).await;
    assert!(url.starts_with("https://billing.stripe.example/"), "it changes what was paid: {url}");
    assert_eq!((open_pages(&till, &["order-1", "order-2"]), till.stripe.count("sub")), (0, 1));
}

/// A till whose buyer paid for two subscriptions, and was given the first of them.
async fn with_two() -> (Till, String, String) {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    till.subscribe("order-2", Plan::Pro).await;
    // The first page was closed when the second one opened. It is paid all the same.
    let now = now_s();
    let (one, two) = (till.stripe.pay("order-1", now), till.stripe.pay("order-2", now));
    till.deliver(one).await;
    till.deliver(two).await;
    let [one, two] = ["order-1", "order-2"].map(|order| till.stripe.payment(order));
    (till, one, two)
}

#[tokio::test]
async fn two_subscriptions_that_are_both_paid_are_both_given() {
    let (till, _, two) = with_two().await;
    let account = till.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    assert_eq!(till.purchased().await, 10_000, "what was paid beside it");
    assert_eq!(till.order("order-2").await.state, OrderState::Fulfilled);
    // Its money goes back: in part, then whole.
    for (cents, left) in [(290, 9_000), (2_610, 0)] {
        till.deliver(till.stripe.refund(&two, cents)).await;
        assert_eq!(till.purchased().await, left);
    }
    let account = till.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    assert_eq!(till.order("order-2").await.state, OrderState::Refunded);
}

#[tokio::test]
async fn the_money_of_one_subscription_goes_back_and_the_other_one_stays() {
    let (till, one, _) = with_two().await;
    till.deliver(till.stripe.refund(&one, 900)).await;
    let account = till.account().await;
    assert_eq!((account.plan, account.paid, till.purchased().await), (Plan::Free, None, 10_000));
    till.deliver(till.stripe.cancel(&till.stripe.subscription("order-1"))).await;
    // From its next month on the other one is the plan, and nothing of it is given again.
    let (subscription, began) = (till.stripe.subscription("order-2"), now_s());
    till.deliver(till.stripe.renew(&subscription, began, true)).await;
    let account = till.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Pro, Some(10_000)));
    assert_eq!((account.subscription, till.purchased().await), (Some(subscription), 10_000));
}

#[tokio::test]
async fn what_goes_back_of_a_month_that_was_exchanged_is_taken_back() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    let began = now_s() - MONTH_S / 2;
    till.deliver(till.stripe.pay("order-1", began)).await;
    let subscription = till.stripe.subscription("order-1");
    let first = till.stripe.payment("order-1");
    till.subscribe("order-2", Plan::Pro).await;
    till.deliver(till.stripe.exchange(&subscription, "pro", now_s(), 450)).await;
    let credits = async || till.account().await.paid.map(|paid| paid.credits).unwrap();
    let before = credits().await;
    till.deliver(till.stripe.refund(&first, 225)).await;
    assert_eq!(credits().await, before - 500);
    till.deliver(till.stripe.refund(&till.stripe.payment("order-1"), 245)).await;
    assert_eq!(credits().await, before - 500 - 1_000);
}

#[tokio::test]
async fn money_that_is_under_way_is_not_asked_for_again() {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    let session = till.stripe.session("order-1");
    till.deliver(till.stripe.pay_later("order-1")).await;
    let account = till.account().await;
    let again = || till.payments.buy(&account, Pack::from_wire("1k").unwrap(), OrderId::new("order-1"));
    assert_eq!(again().await.unwrap_err().kind(), ErrorKind::Conflict);
    // Stripe forgets its idempotency keys after a day.
    till.stripe.forget_replies();
    assert_eq!(again().await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((till.stripe.count("cs"), till.order("order-1").await.payment), (1, Some(session)));
    till.deliver(till.stripe.arrive("order-1", now_s())).await;
    assert_eq!(till.purchased().await, 1_000);
    // Paid, and nobody heard: that is asked about before anything is opened.
    till.buy("order-2", "1k").await;
    till.stripe.pay("order-2", now_s());
    let paid = till.payments.buy(&account, Pack::from_wire("1k").unwrap(), OrderId::new("order-2")).await;
    assert_eq!((paid.unwrap_err().kind(), till.purchased().await), (ErrorKind::Conflict, 2_000));
}
