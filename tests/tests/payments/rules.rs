//! Rules of sale and fulfillment.

use transcript_core::{
    ErrorKind,
    accounts::{
        OrderState,
        payments::{
            BuyOutcome, OrderResolution, Pack, ProviderObject, SubscribeOutcome, WebhookOutcome,
            WebhookRequest,
        },
    },
    directory::Plan,
    ids::OrderId,
};

use super::{
    fixture::{PaymentFixture, call, run_in_virtual_time},
    provider::day,
};

#[test]
fn order_is_stored_before_checkout() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let account = fixture.account().await;
        let sold = fixture.buy_once(&account, "5k", "one").await.unwrap();
        let order = fixture.order(sold.order.as_str()).await.unwrap();
        assert_eq!(sold.checkout_url, format!("https://pay.example/cs_{}", order.id));
        assert_eq!((order.credits, order.amount_minor, order.currency.as_str()), (5_000, 4_000, "usd"));
        assert_eq!((order.state, order.account.as_str()), (OrderState::Open, "ann"));
        assert_eq!(order.payment, Some(format!("cs_{}", order.id)));
        assert_eq!(fixture.account().await.customer.as_deref(), Some("cus_ann"));
        assert_eq!(fixture.end().await.purchased, 0, "credits were granted before payment");
        let other = fixture.buy_once(&account, "5k", "two").await.unwrap();
        assert_ne!(other.checkout_url, sold.checkout_url, "each purchase must be a separate order");
    });
}

#[test]
fn order_repeated_is_same_and_completed_is_conflict() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.buy("one", "1k").await;
        assert_eq!(fixture.buy("one", "1k").await, order);
        let account = fixture.account().await;
        let again = |pack| fixture.buy_once(&account, pack, "one");
        assert_eq!(again("2k").await.unwrap_err().kind(), ErrorKind::Conflict, "another pack");
        fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
        assert_eq!(again("1k").await.unwrap_err().kind(), ErrorKind::Conflict, "the order is paid");
    });
}

#[test]
fn payment_with_other_amount_grants_nothing() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let pack = fixture.buy("one", "1k").await;
        for amount in [1_199, 1_201, 0, u64::MAX] {
            fixture.deliver_all(&fixture.provider.pay_amount(&pack, 0, Some(amount))).await;
        }
        let plan = fixture.subscribe("two", Plan::Pro).await;
        fixture.deliver_all(&fixture.provider.pay_amount(&plan, 0, Some(900))).await;
        let end = fixture.end().await;
        assert_eq!((end.purchased, end.plan, end.paid_through()), (0, Plan::Free, None));
        assert!(end.orders.values().all(|(state, _)| *state == OrderState::Open));
        // The status must report the payment, and not that nothing was charged.
        for id in [pack, plan] {
            let status = fixture.payments().refreshed_status(&id).await.unwrap().unwrap();
            assert_eq!(status.resolution, OrderResolution::Unfulfilled { is_returned: false }, "{id}");
        }
    });
}

#[test]
fn plan_current_is_not_sold_and_other_changes_subscription() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.subscribe("one", Plan::Starter).await;
        fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
        let account = fixture.account().await;
        let payments = fixture.payments();
        let outcome = payments.subscribe(&account, Plan::Starter, OrderId::new("two")).await.unwrap();
        assert_eq!(outcome, SubscribeOutcome::AlreadySubscribed);
        let outcome = payments.subscribe(&account, Plan::Scale, OrderId::new("two")).await.unwrap();
        assert_eq!(outcome, SubscribeOutcome::NotForSale, "the plan has no price");
        let order = fixture.subscribe("two", Plan::Pro).await;
        fixture.advance_hours(10 * 24).await;
        fixture.deliver_all(&fixture.provider.pay(&order, 10)).await;
        let account = fixture.account().await;
        assert_eq!((account.plan, account.paid.map(|paid| paid.through)), (Plan::Pro, Some(day(40))));
        assert_eq!(fixture.provider.subscriptions(), 1, "a plan change created a second subscription");
        // After a month without renewal the same plan is for sale again.
        fixture.advance_hours(31 * 24).await;
        assert!(matches!(
            payments.subscribe(&account, Plan::Pro, OrderId::new("three")).await.unwrap(),
            SubscribeOutcome::Opened(_)
        ));
    });
}

#[test]
fn purchased_credits_survive_plan_refund() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let (pack, plan) = (fixture.buy("one", "1k").await, fixture.subscribe("two", Plan::Pro).await);
        fixture.deliver_all(&fixture.provider.pay(&pack, 0)).await;
        fixture.deliver_all(&fixture.provider.pay(&plan, 0)).await;
        fixture.deliver_all(&fixture.provider.refund(&plan, 2_900)).await;
        let end = fixture.end().await;
        assert_eq!((end.purchased, end.plan, end.paid_through()), (1_000, Plan::Free, None));
    });
}

#[test]
fn event_repeated_concurrently_and_after_restart_grants_once() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.buy("one", "10k").await;
        let subjects = fixture.provider.pay(&order, 0);
        for _ in 0..2 {
            let payments = fixture.payments();
            let calls = (0..50).map(|_| payments.handle_webhook(call(&subjects[0])));
            for outcome in futures_util::future::join_all(calls).await {
                assert!(matches!(outcome.unwrap(), WebhookOutcome::Events(_)));
            }
            fixture.restart();
        }
        assert_eq!(fixture.end().await.purchased, 10_000);
    });
}

#[test]
fn event_forged_or_unknown_changes_nothing() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.buy("one", "1k").await;
        let subjects = fixture.provider.pay(&order, 0);
        for signature in [None, Some("forged".to_owned())] {
            let forged = WebhookRequest { signature, ..call(&subjects[0]) };
            assert!(matches!(
                fixture.payments().handle_webhook(forged).await.unwrap(),
                WebhookOutcome::Rejected { .. }
            ));
        }
        for object in ["cs_other", "in_other", "sub_other", "", "\u{0}"] {
            fixture.deliver(&ProviderObject::new(object)).await;
        }
        assert_eq!(fixture.end().await.purchased, 0);
    });
}

#[test]
fn order_unpaid_expires_and_late_payment_is_fulfilled() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.buy("one", "1k").await;
        fixture.sweep().await;
        fixture.advance_hours(39 * 24).await;
        fixture.sweep().await;
        assert_eq!(fixture.order("one").await.unwrap().state, OrderState::Open, "the payment may be pending");
        fixture.advance_hours(2 * 24).await;
        fixture.sweep().await;
        assert_eq!(fixture.order("one").await.unwrap().state, OrderState::Expired);
        // A later payment is fulfilled all the same.
        fixture.deliver_all(&fixture.provider.pay(&order, 41)).await;
        assert_eq!(fixture.end().await.purchased, 1_000);
        assert_eq!(fixture.order("one").await.unwrap().id, OrderId::new("one"));
    });
}

#[test]
fn refund_and_dispute_after_erasure_are_recorded() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let (pack, plan) = (fixture.buy("one", "1k").await, fixture.subscribe("two", Plan::Pro).await);
        let unpaid = fixture.buy("three", "1k").await;
        for order in [&pack, &plan] {
            fixture.deliver_all(&fixture.provider.pay(order, 0)).await;
        }
        fixture.erase().await;
        let order = async |id: &OrderId| {
            let order = fixture.order(id.as_str()).await.unwrap();
            (order.state, order.returned_minor)
        };
        for (id, returned) in [(&pack, 1_200), (&plan, 290)] {
            fixture.deliver_all(&fixture.provider.refund(id, returned)).await;
            assert_eq!(order(id).await, (OrderState::Refunded, returned), "{id}");
            fixture.deliver_all(&fixture.provider.dispute(id)).await;
            assert_eq!(order(id).await, (OrderState::Disputed, returned), "{id}");
        }
        // A payment that was never granted is not recorded as one.
        fixture.deliver_all(&fixture.provider.pay(&unpaid, 0)).await;
        fixture.deliver_all(&fixture.provider.refund(&unpaid, 1_200)).await;
        assert_eq!(order(&unpaid).await, (OrderState::Open, 0));
    });
}

#[test]
fn plan_cancelled_can_be_ordered_again() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.subscribe("one", Plan::Starter).await;
        fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
        fixture.deliver_all(&fixture.provider.cancel(&order)).await;
        assert!(fixture.account().await.paid.is_some_and(|paid| paid.through == day(30)));
        fixture.subscribe("two", Plan::Starter).await;
    });
}

#[test]
fn order_id_older_than_one_day_is_new_request() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.buy("one", "1k").await;
        fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
        let account = fixture.account().await;
        fixture.advance_hours(22).await;
        let again = fixture.buy_once(&account, "1k", "one").await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict, "the request is the same");
        fixture.advance_hours(2).await;
        let other = fixture.buy("one", "2k").await;
        assert_ne!(other, order);
        assert_eq!(fixture.buy("one", "2k").await, other);
        fixture.deliver_all(&fixture.provider.pay(&other, 1)).await;
        assert_eq!(fixture.end().await.purchased, 3_000);
    });
}

#[test]
fn checkouts_per_account_are_limited_per_day() {
    run_in_virtual_time(async {
        let (fixture, mut opened) = (PaymentFixture::start().await, 0);
        let account = fixture.account().await;
        let retry_after_ms = loop {
            let pack = Pack::from_wire("1k").unwrap();
            match fixture.payments().buy(&account, pack, OrderId::new(format!("n{opened}"))).await.unwrap() {
                BuyOutcome::Opened(_) => opened += 1,
                BuyOutcome::Limited { retry_after_ms } => break retry_after_ms,
            }
        };
        assert_eq!(opened, 50);
        fixture.buy("n7", "1k").await;
        let limited = fixture.payments().subscribe(&account, Plan::Pro, OrderId::new("plan")).await.unwrap();
        assert!(matches!(limited, SubscribeOutcome::Limited { .. }), "{limited:?}");
        tokio::time::sleep(std::time::Duration::from_millis(retry_after_ms)).await;
        fixture.subscribe("plan", Plan::Pro).await;
    });
}
