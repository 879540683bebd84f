//! Plan changes: on Stripe's portal, at the end of a month, by the operator, and after a price change.

use transcript_core::{
    Timestamp,
    accounts::{
        OrderState,
        payments::{OrderResolution, PortalOutcome, ProviderObject, SubscribeOutcome},
    },
    directory::Plan,
    ids::OrderId,
};

use super::{
    fake::{FakeEvent, MONTH_S, now_s},
    fixture::{StripeFixture, plans},
};

/// The form fields of the POST requests to this path.
fn posted_forms(fixture: &StripeFixture, path: &str) -> Vec<String> {
    let decoded = |fields: &str| {
        let pairs = url::form_urlencoded::parse(fields.as_bytes()).into_owned();
        pairs.map(|(name, value)| format!("{name}={value}\n")).collect::<String>()
    };
    let exchanges = fixture.stripe.exchanges();
    let found = exchanges.iter().filter(|exchange| exchange.method == "POST" && exchange.path == path);
    found.map(|exchange| decoded(&exchange.fields)).collect()
}

#[tokio::test]
async fn portal_offers_only_ordered_plan() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    let events = fixture.stripe.pay("order-1", now_s());
    // It is paid but the event is missing: the same plan is not sold twice, and no other plan is offered.
    fixture.subscribe("order-2", Plan::Starter).await;
    fixture.deliver(events).await;
    fixture.subscribe("order-3", Plan::Pro).await;
    let configurations = posted_forms(&fixture, "/v1/billing_portal/configurations");
    let changes = |text: &String| text.contains("features[subscription_update][enabled]=true");
    assert_eq!(configurations.iter().map(changes).collect::<Vec<_>>(), [false, true]);
    let pages = posted_forms(&fixture, "/v1/billing_portal/sessions");
    assert!(!pages[0].contains("flow_data"), "{pages:?}");
    let back = "flow_data[after_completion][redirect][return_url]=https://v.example/checkout/order-3\n";
    assert!(pages[1].contains("flow_data[after_completion][type]=redirect\n") && pages[1].contains(back));
    let used =
        |page: &String| page.lines().find(|line| line.starts_with("configuration=")).map(str::to_owned);
    assert_ne!(used(&pages[0]), used(&pages[1]));
}

#[tokio::test]
async fn portal_of_paid_plan_ends_it_and_offers_no_other() {
    let fixture = StripeFixture::start().await;
    let back = "https://v.example/account?hl=de";
    let open = async || fixture.payments.open_portal(&fixture.account().await, back).await.unwrap();
    assert_eq!(open().await, PortalOutcome::NoPage, "there is no subscription");
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let PortalOutcome::Opened(page) = open().await else { panic!("no page") };
    assert!(page.url.starts_with("https://billing.stripe.example/p/session/"), "{}", page.url);
    assert!(!page.is_lasting, "the URL is valid for minutes");
    let configurations = posted_forms(&fixture, "/v1/billing_portal/configurations");
    assert_eq!(configurations.len(), 1);
    let cancels = "features[subscription_cancel][enabled]=true\n";
    assert!(configurations[0].contains(cancels) && !configurations[0].contains("subscription_update"));
    let pages = posted_forms(&fixture, "/v1/billing_portal/sessions");
    let customer = fixture.account().await.customer.unwrap();
    assert!(!pages[0].contains("flow_data"), "{pages:?}");
    for field in [format!("customer={customer}\n"), format!("return_url={back}\n")] {
        assert!(pages[0].contains(&field), "{field}: {pages:?}");
    }
    fixture.deliver(fixture.stripe.cancel(&fixture.stripe.subscription("order-1"))).await;
    assert_eq!(open().await, PortalOutcome::NoPage, "it has ended");
}

/// The value of a field in the latest request for a portal page.
fn portal_field(fixture: &StripeFixture, name: &str) -> Option<String> {
    let pages = posted_forms(fixture, "/v1/billing_portal/sessions");
    let mut fields = pages.last()?.lines().filter_map(|line| line.split_once('='));
    fields.find(|(field, _)| *field == name).map(|(_, value)| value.to_owned())
}

#[tokio::test]
async fn archived_price_and_configuration_are_replaced() {
    const PRICE: &str = "flow_data[subscription_update_confirm][items][0][price]";
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    fixture.subscribe("order-2", Plan::Pro).await;
    let price = portal_field(&fixture, PRICE).unwrap();
    fixture.stripe.change(&price, "active", false);
    fixture.stripe.discard_idempotency_keys();
    fixture.subscribe("order-3", Plan::Pro).await;
    assert_eq!(portal_field(&fixture, PRICE), None, "the page without a change");
    fixture.subscribe("order-4", Plan::Pro).await;
    assert!(portal_field(&fixture, PRICE).is_some_and(|new| new != price));

    let account = fixture.account().await;
    let open = async || fixture.payments.open_portal(&account, "https://v.example/account").await;
    assert!(matches!(open().await.unwrap(), PortalOutcome::Opened(_)));
    let configuration = portal_field(&fixture, "configuration").unwrap();
    fixture.stripe.change(&configuration, "active", false);
    fixture.stripe.discard_idempotency_keys();
    open().await.unwrap_err();
    assert!(matches!(open().await.unwrap(), PortalOutcome::Opened(_)));
    assert_ne!(portal_field(&fixture, "configuration"), Some(configuration));
    // A deleted customer says nothing about these objects: they are not searched for again.
    fixture.stripe.delete(account.customer.as_ref().unwrap());
    open().await.unwrap_err();
    let requests = fixture.stripe.exchanges().len();
    open().await.unwrap_err();
    assert_eq!(fixture.stripe.exchanges().len(), requests + 1);
}

#[tokio::test]
async fn portal_sessions_of_account_are_limited() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let account = fixture.account().await;
    let open = async || fixture.payments.open_portal(&account, "https://v.example/account").await.unwrap();
    for _ in 0..50 {
        assert!(matches!(open().await, PortalOutcome::Opened(_)));
    }
    assert!(matches!(open().await, PortalOutcome::Limited));
    // Orders count apart.
    fixture.buy("order-2", "1k").await;
}

#[tokio::test]
async fn portal_session_is_created_for_each_request() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
    let (account, order) = (fixture.account().await, OrderId::new("order-2"));
    let mut urls = Vec::new();
    for _ in 0..2 {
        match fixture.payments.subscribe(&account, Plan::Pro, order.clone()).await.unwrap() {
            SubscribeOutcome::Opened(sold) => {
                assert!(!sold.is_lasting, "the URL is valid for minutes");
                urls.push(sold.checkout_url);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_ne!(urls[0], urls[1]);
}

#[tokio::test]
async fn plan_set_by_operator_requires_its_price() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    let started_s = now_s() - MONTH_S / 2;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let subscription = fixture.stripe.subscription("order-1");
    fixture.stripe.create_price("pro", 2_899);
    fixture.deliver(fixture.stripe.exchange(&subscription, "pro", now_s(), 0)).await;
    assert_eq!(fixture.account().await.plan, Plan::Starter, "the price differs from the configured one");
    fixture.stripe.create_price("pro", 2_900);
    fixture.deliver(fixture.stripe.exchange(&subscription, "pro", now_s(), 450)).await;
    let account = fixture.account().await;
    let credits = account.paid.map(|paid| paid.credits).unwrap();
    assert_eq!(account.plan, Plan::Pro);
    assert!((10_995..=11_005).contains(&credits), "expected one and a half months: {credits}");
    let invoice = fixture.stripe.latest_invoice(&subscription);
    let order = fixture.order(&invoice).await;
    assert_eq!((order.state, order.amount_minor), (OrderState::Fulfilled, 2_900));
    // A full refund.
    fixture.deliver(fixture.stripe.refund(&fixture.stripe.payment_of_invoice(&invoice), 2_450)).await;
    assert_eq!(fixture.account().await.plan, Plan::Starter);
    assert_eq!(fixture.order(&invoice).await.state, OrderState::Refunded);
}

#[tokio::test]
async fn subscription_started_by_operator_is_plan() {
    let fixture = StripeFixture::start().await;
    fixture.buy("order-1", "1k").await;
    let customer = fixture.account().await.customer.unwrap();
    fixture.stripe.create_price("starter", 900);
    fixture.deliver(fixture.stripe.start_subscription(&customer, "starter", now_s())).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    // A payment of another shop's customer at the same Stripe account has no effect.
    fixture.deliver(fixture.stripe.start_subscription("cus_other", "starter", now_s())).await;
    assert_eq!(fixture.purchased().await, 0);
    // The plan can be changed like any other.
    let url = fixture.subscribe("order-2", Plan::Pro).await;
    assert!(url.starts_with("https://billing.stripe.example/"), "{url}");
}

#[tokio::test]
async fn new_price_without_confirmation_changes_nothing() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    let started_s = now_s() - MONTH_S - 3_600;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let subscription = fixture.stripe.subscription("order-1");
    // The plan's price has changed, and a subscribe request was made.
    let mut dearer = plans();
    dearer.pro.price_cents = Some(3_900);
    let later = fixture.process(dearer);
    let account = fixture.account().await;
    later.subscribe(&account, Plan::Pro, OrderId::new("order-2")).await.unwrap();
    fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, true)).await;
    let account = fixture.account().await;
    assert_eq!(account.paid.map(|paid| paid.through.as_millis() / 1_000), Some(started_s + 2 * MONTH_S));
    let renewal = fixture.order(&fixture.stripe.latest_invoice(&subscription)).await;
    assert_eq!((renewal.state, renewal.amount_minor), (OrderState::Fulfilled, 2_900));
    assert_eq!(fixture.order("order-2").await.state, OrderState::Open, "the new price was not paid");
}

#[tokio::test]
async fn overdue_invoice_is_paid_before_plan_change() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    let started_s = now_s() - MONTH_S - 3_600;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let subscription = fixture.stripe.subscription("order-1");
    fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, false)).await;
    let invoice = fixture.stripe.latest_invoice(&subscription);
    let owed = format!("https://invoice.stripe.example/i/{invoice}");
    for (status, order) in [("past_due", "order-2"), ("unpaid", "order-3"), ("incomplete", "order-4")] {
        fixture.stripe.change(&subscription, "status", status);
        assert_eq!(fixture.subscribe(order, Plan::Pro).await, owed, "{status}");
    }
    assert_eq!(fixture.stripe.count("cs"), 1, "a second subscription was started");
    // The order of the present plan is paid with the invoice; those of another plan are not.
    assert_eq!(fixture.subscribe("order-5", Plan::Starter).await, owed);
    fixture.stripe.change(&invoice, "status", "paid");
    fixture.stripe.change(&subscription, "status", "active");
    fixture.deliver(vec![FakeEvent::new("invoice.paid", &fixture.stripe.object(&invoice))]).await;
    for (order, state) in [
        (invoice.as_str(), OrderState::Fulfilled),
        ("order-5", OrderState::Fulfilled),
        ("order-2", OrderState::Open),
    ] {
        assert_eq!(fixture.order(order).await.state, state, "{order}");
    }
    assert_eq!(fixture.order(&invoice).await.charged_minor(), 900, "paid without a payment at Stripe");
    let order = fixture.order("order-5").await;
    assert_eq!((order.paid_with(), order.charged_minor()), (Some(OrderId::new(invoice)), 0));
}

#[tokio::test]
async fn first_invoice_paid_later_fulfills_both_orders() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    let events = fixture.stripe.pay("order-1", now_s() - 60);
    let subscription = fixture.stripe.subscription("order-1");
    let invoice = fixture.stripe.latest_invoice(&subscription);
    fixture.stripe.change(&invoice, "status", "open");
    fixture.stripe.change(&subscription, "status", "incomplete");
    let owed = format!("https://invoice.stripe.example/i/{invoice}");
    assert_eq!(fixture.subscribe("order-2", Plan::Starter).await, owed);
    fixture.stripe.change(&invoice, "status", "paid");
    fixture.stripe.change(&subscription, "status", "active");
    fixture.deliver(events).await;
    for order in ["order-1", "order-2"] {
        assert_eq!(fixture.order(order).await.state, OrderState::Fulfilled, "{order}");
    }
    assert_eq!(fixture.receipts().await, ["receipt-order-1"], "it is one payment");
    assert_eq!(fixture.order("order-2").await.paid_with(), Some(OrderId::new("order-1")));
}

#[tokio::test]
async fn open_invoice_of_ended_subscription_fulfills_its_order() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Starter).await;
    let started_s = now_s() - MONTH_S - 3_600;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let subscription = fixture.stripe.subscription("order-1");
    fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, false)).await;
    fixture.subscribe("order-2", Plan::Starter).await;
    fixture.stripe.cancel(&subscription);
    fixture.payments.close(&fixture.account().await).await.unwrap();
    assert_eq!(fixture.order("order-2").await.state, OrderState::Expired);
    let invoice = fixture.stripe.latest_invoice(&subscription);
    fixture.stripe.change(&invoice, "status", "paid");
    fixture.deliver(vec![FakeEvent::new("invoice.paid", &fixture.stripe.object(&invoice))]).await;
    assert_eq!(fixture.order("order-2").await.state, OrderState::Fulfilled);
}

#[tokio::test]
async fn refunded_plan_paid_again_later_is_granted() {
    let fixture = StripeFixture::start().await;
    let now = now_s();
    fixture.subscribe("order-1", Plan::Starter).await;
    fixture.deliver(fixture.stripe.pay("order-1", now - MONTH_S / 2)).await;
    let subscription = fixture.stripe.subscription("order-1");
    fixture.subscribe("order-2", Plan::Pro).await;
    fixture.deliver(fixture.stripe.exchange(&subscription, "pro", now, 450)).await;
    fixture.deliver(fixture.stripe.refund(&fixture.stripe.payment("order-1"), 2_450)).await;
    assert_eq!(fixture.account().await.plan, Plan::Starter);
    // The operator switches back, and later to Pro again: the metadata still names order-2.
    fixture.stripe.switch(&subscription, "starter");
    fixture.stripe.renew(&subscription, now + MONTH_S, true);
    fixture.stripe.exchange(&subscription, "pro", now + 41 * 86_400, 450);
    fixture.advance(41 * 86_400);
    fixture.payments.reconcile(&ProviderObject::new(subscription.clone())).await.unwrap();
    assert_eq!(fixture.account().await.plan, Plan::Pro);
    let order = async |id: &str| {
        let order = fixture.order(id).await;
        (order.state, order.returned_minor)
    };
    assert_eq!(order("order-2").await, (OrderState::Refunded, 2_450));
    assert_eq!(order(&fixture.stripe.latest_invoice(&subscription)).await, (OrderState::Fulfilled, 0));
}

#[tokio::test]
async fn unconfirmed_plan_order_expires_with_its_subscription() {
    for is_closing in [true, false] {
        let fixture = StripeFixture::start().await;
        fixture.subscribe("order-1", Plan::Starter).await;
        fixture.deliver(fixture.stripe.pay("order-1", now_s())).await;
        fixture.subscribe("order-2", Plan::Pro).await;
        let reconcile = async || match is_closing {
            true => {
                fixture.payments.close(&fixture.account().await).await.unwrap();
            }
            false => {
                fixture.advance(3_600);
                fixture.payments.reconcile_orders().await.unwrap();
            }
        };
        reconcile().await;
        assert_eq!(fixture.order("order-2").await.state, OrderState::Open, "it may still be confirmed");
        fixture.stripe.cancel(&fixture.stripe.subscription("order-1"));
        reconcile().await;
        assert_eq!(fixture.order("order-2").await.state, OrderState::Expired);
        assert_eq!(fixture.account().await.subscription, None, "nothing prevents the erasure");
    }
}

#[tokio::test]
async fn plan_change_at_period_end_fulfills_its_order() {
    let fixture = StripeFixture::start().await;
    fixture.subscribe("order-1", Plan::Pro).await;
    let started_s = now_s() - MONTH_S;
    fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
    let subscription = fixture.stripe.subscription("order-1");
    fixture.stripe.create_price("starter", 900);
    fixture.subscribe("order-2", Plan::Starter).await;
    fixture.stripe.switch(&subscription, "starter");
    fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, true)).await;
    let account = fixture.account().await;
    assert_eq!((account.plan, account.paid.map(|paid| paid.credits)), (Plan::Starter, Some(2_000)));
    let (order, invoice) = (fixture.order("order-2").await, fixture.stripe.latest_invoice(&subscription));
    assert_eq!((order.state, order.charged_minor()), (OrderState::Fulfilled, 0));
    assert_eq!(order.paid_with(), Some(OrderId::new(invoice.clone())));
    // One payment has one receipt, and one refund.
    assert_eq!(fixture.receipts().await, [format!("receipt-{invoice}"), "receipt-order-1".to_owned()]);
    fixture.deliver(fixture.stripe.refund(&fixture.stripe.payment_of_invoice(&invoice), 900)).await;
    assert_eq!(fixture.order(&invoice).await.returned_minor, 900);
    assert_eq!(fixture.order("order-2").await, order);
}

#[tokio::test]
async fn order_of_cheaper_plan_is_due_next_month() {
    for (present, ordered, is_cheaper) in
        [(Plan::Pro, Plan::Starter, true), (Plan::Starter, Plan::Pro, false)]
    {
        let fixture = StripeFixture::start().await;
        fixture.subscribe("order-1", present).await;
        let started_s = now_s() - 86_400;
        fixture.deliver(fixture.stripe.pay("order-1", started_s)).await;
        fixture.subscribe("order-2", ordered).await;
        let at = Timestamp::from_millis((started_s + MONTH_S) * 1_000);
        let expected = match is_cheaper {
            true => OrderResolution::StartsNextMonth { at },
            false => OrderResolution::Unchanged,
        };
        let id = OrderId::new("order-2");
        for status in
            [fixture.payments.stored_status(&id).await, fixture.payments.refreshed_status(&id).await]
        {
            let status = status.unwrap().unwrap();
            assert_eq!((status.order.state, status.resolution), (OrderState::Open, expected), "{present:?}");
        }
    }
}

#[tokio::test]
async fn first_payment_seen_after_renewal_has_receipt() {
    for is_event_late in [true, false] {
        let fixture = StripeFixture::start().await;
        fixture.subscribe("order-1", Plan::Starter).await;
        let started_s = now_s() - MONTH_S - 60;
        let first = fixture.stripe.pay("order-1", started_s);
        let subscription = fixture.stripe.subscription("order-1");
        fixture.deliver(fixture.stripe.renew(&subscription, started_s + MONTH_S, true)).await;
        let renewed = fixture.account().await.paid.map(|paid| (paid.through, paid.credits));
        assert!(renewed.is_some_and(|(_, credits)| credits == 2_000), "{renewed:?}");
        assert_eq!(fixture.order("order-1").await.state, OrderState::Open);
        match is_event_late {
            true => fixture.deliver(first).await,
            false => {
                fixture.advance(3_600);
                fixture.payments.reconcile_orders().await.unwrap();
            }
        }
        let order = fixture.order("order-1").await;
        assert_eq!((order.state, order.charged_minor()), (OrderState::Fulfilled, 900), "{is_event_late}");
        let renewal = format!("receipt-{}", fixture.stripe.latest_invoice(&subscription));
        assert_eq!(fixture.receipts().await, [renewal, "receipt-order-1".to_owned()], "{is_event_late}");
        let paid = fixture.account().await.paid.map(|paid| (paid.through, paid.credits));
        assert_eq!(paid, renewed, "{is_event_late}");
    }
}
