//! Plans that are changed: on Stripe's portal, at the month's end, by the operator, and after a price changed.

use transcript_core::{
    accounts::{OrderState, payments::SubscribeOutcome},
    directory::Plan,
    ids::OrderId,
};

use super::{
    fake::{MONTH_S, now_s},
    till::{Till, plans},
};

/// The forms of the requests that were made to this address.
fn posted(till: &Till, path: &str) -> Vec<String> {
    let decoded = |fields: &str| {
        let pairs = url::form_urlencoded::parse(fields.as_bytes()).into_owned();
        pairs.map(|(name, value)| format!("{name}={value}\n")).collect::<String>()
    };
    let exchanges = till.stripe.exchanges();
    let found = exchanges.iter().filter(|exchange| exchange.method == "POST" && exchange.path == path);
    found.map(|exchange| decoded(&exchange.fields)).collect()
}

#[tokio::test]
async fn no_plan_is_picked_on_the_portal_but_the_one_that_was_ordered() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    let events = till.stripe.pay("order-1", now_s());
    // It is paid and not heard of: the same plan is not sold twice, and others are not offered.
    till.subscribe("order-2", Plan::Starter).await;
    till.deliver(events).await;
    till.subscribe("order-3", Plan::Pro).await;
    let configurations = posted(&till, "/v1/billing_portal/configurations");
    let changes = |text: &String| text.contains("features[subscription_update][enabled]=true");
    assert_eq!(configurations.iter().map(changes).collect::<Vec<_>>(), [false, true]);
    let pages = posted(&till, "/v1/billing_portal/sessions");
    assert!(!pages[0].contains("flow_data"), "{pages:?}");
    let back = "flow_data[after_completion][redirect][return_url]=https://v.example/checkout/order-3\n";
    assert!(pages[1].contains("flow_data[after_completion][type]=redirect\n") && pages[1].contains(back));
    let used =
        |page: &String| page.lines().find(|line| line.starts_with("configuration=")).map(str::to_owned);
    assert_ne!(used(&pages[0]), used(&pages[1]));
}

#[tokio::test]
async fn a_page_of_the_portal_is_made_anew_for_whoever_asks_again() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    till.deliver(till.stripe.pay("order-1", now_s())).await;
    let (account, order) = (till.account().await, OrderId::new("order-2"));
    let mut urls = Vec::new();
    for _ in 0..2 {
        match till.payments.subscribe(&account, Plan::Pro, order.clone()).await.unwrap() {
            SubscribeOutcome::Opened(sold) => {
                assert!(!sold.is_lasting, "it is good for minutes");
                urls.push(sold.checkout_url);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_ne!(urls[0], urls[1]);
}

#[tokio::test]
async fn a_plan_that_the_operator_picks_is_given_for_what_it_costs() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    let began = now_s() - MONTH_S / 2;
    till.deliver(till.stripe.pay("order-1", began)).await;
    let subscription = till.stripe.subscription("order-1");
    till.stripe.offer("pro", 2_899);
    till.deliver(till.stripe.exchange(&subscription, "pro", now_s(), 0)).await;
    assert_eq!(till.account().await.plan, Plan::Starter, "that is not what it costs");
    till.stripe.offer("pro", 2_900);
    till.deliver(till.stripe.exchange(&subscription, "pro", now_s(), 450)).await;
    let account = till.account().await;
    let credits = account.paid.map(|paid| paid.credits).unwrap();
    assert_eq!(account.plan, Plan::Pro);
    assert!((10_995..=11_005).contains(&credits), "half of one month, and a whole one: {credits}");
    let invoice = till.stripe.latest_invoice(&subscription);
    let order = till.order(&invoice).await;
    assert_eq!((order.state, order.amount_minor), (OrderState::Fulfilled, 2_900));
    // Its money goes back.
    till.deliver(till.stripe.refund(&till.stripe.payment_of_invoice(&invoice), 2_450)).await;
    assert_eq!(till.account().await.plan, Plan::Starter);
    assert_eq!(till.order(&invoice).await.state, OrderState::Refunded);
}

#[tokio::test]
async fn a_subscription_that_the_operator_starts_is_a_plan() {
    let till = Till::open().await;
    till.buy("order-1", "1k").await;
    let customer = till.account().await.customer.unwrap();
    till.stripe.offer("starter", 900);
    till.deliver(till.stripe.start_by_hand(&customer, "starter", now_s())).await;
    let account = till.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    // Whoever pays at the same Stripe for something of another shop gets nothing here.
    till.deliver(till.stripe.start_by_hand("cus_other", "starter", now_s())).await;
    assert_eq!(till.purchased().await, 0);
    // The plan can be changed like any other.
    let url = till.subscribe("order-2", Plan::Pro).await;
    assert!(url.starts_with("https://billing.stripe.example/"), "{url}");
}

#[tokio::test]
async fn a_price_that_nobody_confirmed_changes_nothing() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Pro).await;
    let began = now_s() - MONTH_S - 3_600;
    till.deliver(till.stripe.pay("order-1", began)).await;
    let subscription = till.stripe.subscription("order-1");
    // The plan costs more by now, and somebody looks at its page.
    let mut dearer = plans();
    dearer.pro.price_cents = Some(3_900);
    let later = till.process(dearer);
    let account = till.account().await;
    later.subscribe(&account, Plan::Pro, OrderId::new("order-2")).await.unwrap();
    till.deliver(till.stripe.renew(&subscription, began + MONTH_S, true)).await;
    let account = till.account().await;
    assert_eq!(account.paid.map(|paid| paid.through.as_millis() / 1_000), Some(began + 2 * MONTH_S));
    let renewal = till.order(&till.stripe.latest_invoice(&subscription)).await;
    assert_eq!((renewal.state, renewal.amount_minor), (OrderState::Fulfilled, 2_900));
    assert_eq!(till.order("order-2").await.state, OrderState::Open, "nobody paid that");
}

#[tokio::test]
async fn what_is_owed_is_paid_before_another_plan_begins() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Starter).await;
    let began = now_s() - MONTH_S - 3_600;
    till.deliver(till.stripe.pay("order-1", began)).await;
    let subscription = till.stripe.subscription("order-1");
    till.deliver(till.stripe.renew(&subscription, began + MONTH_S, false)).await;
    let invoice = till.stripe.latest_invoice(&subscription);
    let owed = format!("https://invoice.stripe.example/i/{invoice}");
    for (status, order) in [("past_due", "order-2"), ("unpaid", "order-3"), ("incomplete", "order-4")] {
        till.stripe.change(&subscription, "status", status);
        assert_eq!(till.subscribe(order, Plan::Pro).await, owed, "{status}");
    }
    assert_eq!(till.stripe.count("cs"), 1, "no second subscription is begun");
}

#[tokio::test]
async fn a_change_that_waits_for_the_months_end_is_an_order_that_was_paid() {
    let till = Till::open().await;
    till.subscribe("order-1", Plan::Pro).await;
    let began = now_s() - MONTH_S;
    till.deliver(till.stripe.pay("order-1", began)).await;
    let subscription = till.stripe.subscription("order-1");
    till.stripe.offer("starter", 900);
    till.subscribe("order-2", Plan::Starter).await;
    till.stripe.switch(&subscription, "starter");
    till.deliver(till.stripe.renew(&subscription, began + MONTH_S, true)).await;
    let account = till.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    assert_eq!(till.order("order-2").await.state, OrderState::Fulfilled);
}
