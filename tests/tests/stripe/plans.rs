//! Plans, paid at the stand-in: months, renewals, changes, refunds.

use transcript_core::{
    Timestamp,
    accounts::{AccountsOptions, OrderState, PlanState, Standing},
    directory::{Account, Plan},
};
use verbatim::SystemClock;

use super::{
    fake::{MONTH_S, now_s},
    till::Till,
};

fn standing(account: &Account) -> (Plan, PlanState, u64) {
    use transcript_core::Clock as _;
    let standing = Standing::of(account, &AccountsOptions::default(), SystemClock::default().now());
    (standing.plan, standing.state, standing.plan_credits)
}

fn paid(account: &Account) -> (i64, i64, u64) {
    let paid = account.paid.unwrap();
    let seconds = |moment: Timestamp| moment.as_millis() / 1_000;
    (seconds(paid.from), seconds(paid.through), paid.credits)
}

#[tokio::test]
async fn a_plan_starts_when_its_invoice_is_paid_and_goes_on_with_the_next() {
    let till = Till::open().await;
    let url = till.subscribe("order-1", Plan::Starter).await;
    assert!(url.starts_with("https://checkout.stripe.example/"), "{url}");
    assert_eq!(standing(&till.account().await), (Plan::Free, PlanState::Free, 200));
    // It was paid so long ago that the month is over.
    let began = now_s() - MONTH_S - 3_600;
    till.deliver(till.stripe.pay("order-1", began)).await;
    let account = till.account().await;
    assert_eq!(standing(&account), (Plan::Starter, PlanState::Grace, 200), "the next month is not paid");
    assert_eq!(account.anchor.as_millis() / 1_000, began);
    assert_eq!((till.order("order-1").await.state, till.purchased().await), (OrderState::Fulfilled, 0));
    let subscription = till.stripe.subscription("order-1");
    till.deliver(till.stripe.renew(&subscription, began + MONTH_S, false)).await;
    assert_eq!(standing(&till.account().await), (Plan::Starter, PlanState::Grace, 200));
    let latest = till.stripe.object(&subscription)["latest_invoice"].as_str().unwrap().to_owned();
    let url = till.subscribe("order-2", Plan::Starter).await;
    assert_eq!(url, format!("https://invoice.stripe.example/i/{latest}"), "the overdue invoice can be paid");
    let paid_now = till.stripe.renew(&subscription, began + MONTH_S, true);
    till.deliver(paid_now).await;
    let account = till.account().await;
    assert_eq!(standing(&account), (Plan::Starter, PlanState::Paid, 2_000));
    assert_eq!(paid(&account), (began + MONTH_S, began + 2 * MONTH_S, 2_000));
    assert_eq!(account.anchor.as_millis() / 1_000, began, "months are counted as before");
    till.deliver(till.stripe.cancel(&subscription)).await;
    let account = till.account().await;
    assert_eq!((standing(&account).1, account.subscription), (PlanState::Paid, None), "until its month ends");
}

#[tokio::test]
async fn another_plan_changes_the_subscription_on_stripes_own_page() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    let began = now_s() - MONTH_S / 2;
    till.deliver(till.stripe.pay("order-1", began)).await;
    let subscription = till.stripe.subscription("order-1");
    let url = till.subscribe("order-2", Plan::Pro).await;
    assert!(url.starts_with("https://billing.stripe.example/p/session/"), "{url}");
    assert_eq!(till.order("order-2").await.payment.as_deref(), Some(subscription.as_str()));
    assert_eq!(
        standing(&till.account().await),
        (Plan::Starter, PlanState::Paid, 2_000),
        "nothing is paid yet"
    );
    let now = now_s();
    // What is left of the smaller plan is credited: the invoice comes to less than the price.
    till.deliver(till.stripe.exchange(&subscription, "pro", now, 450)).await;
    let account = till.account().await;
    assert_eq!((account.plan, account.anchor.as_millis() / 1_000), (Plan::Pro, now));
    let (from, through, credits) = paid(&account);
    assert_eq!((from, through), (began, now + MONTH_S));
    assert!((10_995..=11_005).contains(&credits), "half of one month, and a whole one: {credits}");
    assert_eq!(till.order("order-2").await.state, OrderState::Fulfilled);
    assert_eq!((till.stripe.count("sub"), till.stripe.count("price"), till.stripe.count("bpc")), (1, 2, 1));
    // Its money goes back: the smaller plan's month is still paid.
    let payment = till.stripe.payment("order-1");
    till.deliver(till.stripe.refund(&payment, 2_450)).await;
    let account = till.account().await;
    assert_eq!((account.plan, paid(&account)), (Plan::Starter, (began, began + MONTH_S, 2_000)));
    assert_eq!(till.order("order-2").await.state, OrderState::Refunded);
}

#[tokio::test]
async fn a_subscription_that_cannot_be_changed_at_once_is_shown_whole() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    till.deliver(till.stripe.pay("order-1", now_s())).await;
    till.stripe.change(&till.stripe.subscription("order-1"), "cancel_at_period_end", true);
    let url = till.subscribe("order-2", Plan::Pro).await;
    assert!(url.starts_with("https://billing.stripe.example/p/session/"), "{url}");
}

#[tokio::test]
async fn nobody_is_sent_to_pay_for_two_subscriptions() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    till.subscribe("order-2", Plan::Pro).await;
    let status = |order: &str| till.stripe.object(&till.stripe.session(order))["status"].clone();
    assert_eq!((status("order-1"), status("order-2")), ("expired".into(), "open".into()));
    // It is paid, and the event is late: Stripe knows already.
    let events = till.stripe.pay("order-2", now_s());
    let url = till.subscribe("order-3", Plan::Starter).await;
    assert!(url.starts_with("https://billing.stripe.example/"), "{url}");
    till.deliver(events).await;
    assert_eq!(till.account().await.plan, Plan::Pro);
    // Packs are bought beside it.
    assert!(till.buy("order-4", "1k").await.starts_with("https://checkout.stripe.example/"));
}

#[tokio::test]
async fn refunds_and_disputes_of_a_plan() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Pro).await;
    till.deliver(till.stripe.pay("order-1", now_s())).await;
    let payment = till.stripe.payment("order-1");
    till.deliver(till.stripe.refund(&payment, 290)).await;
    assert_eq!(standing(&till.account().await), (Plan::Pro, PlanState::Paid, 9_000));
    assert_eq!(till.order("order-1").await.state, OrderState::Refunded);
    till.deliver(till.stripe.dispute(&payment, "under_review")).await;
    assert!(till.account().await.blocked);
    till.deliver(till.stripe.dispute(&payment, "lost")).await;
    assert_eq!(standing(&till.account().await), (Plan::Free, PlanState::Free, 200));
}

#[tokio::test]
async fn a_plan_that_is_paid_with_another_amount_is_not_given() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Pro).await;
    let events = till.stripe.pay("order-1", now_s());
    let invoice = till.stripe.object(&till.stripe.subscription("order-1"))["latest_invoice"].clone();
    let invoice = invoice.as_str().unwrap();
    for (field, value) in [("amount", 2_899), ("amount", 900), ("quantity", 2)] {
        let mut lines = till.stripe.object(invoice)["lines"].clone();
        let whole = lines["data"][0].clone();
        lines["data"][0][field] = value.into();
        till.stripe.change(invoice, "lines", lines.clone());
        till.deliver(events.clone()).await;
        assert_eq!(standing(&till.account().await), (Plan::Free, PlanState::Free, 200), "{field} {value}");
        lines["data"][0] = whole;
        till.stripe.change(invoice, "lines", lines);
    }
    till.stripe.change(invoice, "status", "open");
    till.deliver(events.clone()).await;
    assert_eq!(till.account().await.plan, Plan::Free, "it is not paid");
    till.stripe.change(invoice, "status", "paid");
    till.deliver(events).await;
    assert_eq!(till.account().await.plan, Plan::Pro);
}
