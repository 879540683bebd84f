//! What is sold, what is not, and what is given for it.

use transcript_core::{
    ErrorKind,
    accounts::{
        OrderState,
        payments::{BuyOutcome, Heard, OrderFate, Pack, Subject, SubscribeOutcome, WebhookCall},
    },
    directory::Plan,
    ids::OrderId,
};

use super::{
    provider::day,
    shop::{Shop, call, in_virtual_time},
};

#[test]
fn an_order_is_written_before_anyone_is_sent_to_pay() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let account = shop.account().await;
        let sold = shop.payments_buy(&account, "5k", "one").await.unwrap();
        let order = shop.order(sold.order.as_str()).await.unwrap();
        assert_eq!(sold.checkout_url, format!("https://pay.example/cs_{}", order.id));
        assert_eq!((order.credits, order.amount_minor, order.currency.as_str()), (5_000, 4_000, "usd"));
        assert_eq!((order.state, order.account.as_str()), (OrderState::Open, "ann"));
        assert_eq!(order.payment, Some(format!("cs_{}", order.id)));
        assert_eq!(shop.account().await.customer.as_deref(), Some("cus_ann"));
        assert_eq!(shop.end().await.purchased, 0, "nothing is given before it is paid");
        let other = shop.payments_buy(&account, "5k", "two").await.unwrap();
        assert_ne!(other.checkout_url, sold.checkout_url, "each purchase is an order of its own");
    });
}

#[test]
fn a_repeated_request_is_one_order_and_a_completed_one_is_not_sold_again() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let order = shop.buy("one", "1k").await;
        assert_eq!(shop.buy("one", "1k").await, order);
        let account = shop.account().await;
        let again = |pack| shop.payments_buy(&account, pack, "one");
        assert_eq!(again("2k").await.unwrap_err().kind(), ErrorKind::Conflict, "another pack");
        shop.deliver_all(&shop.provider.pay(&order, 0)).await;
        assert_eq!(again("1k").await.unwrap_err().kind(), ErrorKind::Conflict, "it is paid");
    });
}

#[test]
fn another_amount_than_was_sold_gives_nothing() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let pack = shop.buy("one", "1k").await;
        for amount in [1_199, 1_201, 0, u64::MAX] {
            shop.deliver_all(&shop.provider.pay_amount(&pack, 0, Some(amount))).await;
        }
        let plan = shop.subscribe("two", Plan::Pro).await;
        shop.deliver_all(&shop.provider.pay_amount(&plan, 0, Some(900))).await;
        let end = shop.end().await;
        assert_eq!((end.purchased, end.plan, end.paid_through()), (0, Plan::Free, None));
        assert!(end.orders.values().all(|(state, _)| *state == OrderState::Open));
        // Whoever paid is told so, and not that nothing was charged.
        for id in [pack, plan] {
            let seen = shop.payments().seen(&id).await.unwrap().unwrap();
            assert_eq!(seen.fate, OrderFate::InVain { is_returned: false }, "{id}");
        }
    });
}

#[test]
fn the_plan_one_has_is_not_sold_again_and_another_changes_the_subscription() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let order = shop.subscribe("one", Plan::Starter).await;
        shop.deliver_all(&shop.provider.pay(&order, 0)).await;
        let account = shop.account().await;
        let payments = shop.payments();
        let outcome = payments.subscribe(&account, Plan::Starter, OrderId::new("two")).await.unwrap();
        assert_eq!(outcome, SubscribeOutcome::HasIt);
        let outcome = payments.subscribe(&account, Plan::Scale, OrderId::new("two")).await.unwrap();
        assert_eq!(outcome, SubscribeOutcome::NotSold, "it has no price");
        let order = shop.subscribe("two", Plan::Pro).await;
        shop.pass_hours(10 * 24).await;
        shop.deliver_all(&shop.provider.pay(&order, 10)).await;
        let account = shop.account().await;
        assert_eq!((account.plan, account.paid.map(|paid| paid.through)), (Plan::Pro, Some(day(40))));
        assert_eq!(shop.provider.subscriptions(), 1, "nobody pays for two");
        // Once the month is over without a renewal, the same plan can be paid again.
        shop.pass_hours(31 * 24).await;
        assert!(matches!(
            payments.subscribe(&account, Plan::Pro, OrderId::new("three")).await.unwrap(),
            SubscribeOutcome::Opened(_)
        ));
    });
}

#[test]
fn bought_credits_outlive_a_plan() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let (pack, plan) = (shop.buy("one", "1k").await, shop.subscribe("two", Plan::Pro).await);
        shop.deliver_all(&shop.provider.pay(&pack, 0)).await;
        shop.deliver_all(&shop.provider.pay(&plan, 0)).await;
        shop.deliver_all(&shop.provider.refund(&plan, 2_900)).await;
        let end = shop.end().await;
        assert_eq!((end.purchased, end.plan, end.paid_through()), (1_000, Plan::Free, None));
    });
}

#[test]
fn the_same_event_fifty_times_at_once_and_after_a_restart_grants_once() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let order = shop.buy("one", "10k").await;
        let subjects = shop.provider.pay(&order, 0);
        for _ in 0..2 {
            let payments = shop.payments();
            let calls = (0..50).map(|_| payments.hear(call(&subjects[0])));
            for heard in futures_util::future::join_all(calls).await {
                assert!(matches!(heard.unwrap(), Heard::About(_)));
            }
            shop.restart();
        }
        assert_eq!(shop.end().await.purchased, 10_000);
    });
}

#[test]
fn what_is_forged_or_unknown_changes_nothing() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let order = shop.buy("one", "1k").await;
        let subjects = shop.provider.pay(&order, 0);
        for signature in [None, Some("forged".to_owned())] {
            let forged = WebhookCall { signature, ..call(&subjects[0]) };
            assert!(matches!(shop.payments().hear(forged).await.unwrap(), Heard::Refused { .. }));
        }
        for object in ["cs_other", "in_other", "sub_other", "", "\u{0}"] {
            shop.deliver(&Subject::new(object)).await;
        }
        assert_eq!(shop.end().await.purchased, 0);
    });
}

#[test]
fn an_order_that_nobody_pays_is_given_up() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let order = shop.buy("one", "1k").await;
        shop.sweep().await;
        shop.pass_hours(39 * 24).await;
        shop.sweep().await;
        assert_eq!(shop.order("one").await.unwrap().state, OrderState::Open, "the money may be under way");
        shop.pass_hours(2 * 24).await;
        shop.sweep().await;
        assert_eq!(shop.order("one").await.unwrap().state, OrderState::Expired);
        // Should it be paid all the same, it is given.
        shop.deliver_all(&shop.provider.pay(&order, 41)).await;
        assert_eq!(shop.end().await.purchased, 1_000);
        assert_eq!(shop.order("one").await.unwrap().id, OrderId::new("one"));
    });
}

#[test]
fn a_plan_that_will_not_be_renewed_can_be_had_again() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let order = shop.subscribe("one", Plan::Starter).await;
        shop.deliver_all(&shop.provider.pay(&order, 0)).await;
        shop.deliver_all(&shop.provider.cancel(&order)).await;
        assert!(shop.account().await.paid.is_some_and(|paid| paid.through == day(30)));
        shop.subscribe("two", Plan::Starter).await;
    });
}

#[test]
fn an_id_that_is_older_than_replies_are_kept_is_another_request() {
    in_virtual_time(async {
        let shop = Shop::open().await;
        let order = shop.buy("one", "1k").await;
        shop.deliver_all(&shop.provider.pay(&order, 0)).await;
        let account = shop.account().await;
        shop.pass_hours(22).await;
        let again = shop.payments_buy(&account, "1k", "one").await;
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Conflict, "it is the same request");
        shop.pass_hours(2).await;
        let other = shop.buy("one", "2k").await;
        assert_ne!(other, order);
        assert_eq!(shop.buy("one", "2k").await, other);
        shop.deliver_all(&shop.provider.pay(&other, 1)).await;
        assert_eq!(shop.end().await.purchased, 3_000);
    });
}

#[test]
fn an_account_opens_so_many_pages_a_day() {
    in_virtual_time(async {
        let (shop, mut opened) = (Shop::open().await, 0);
        let account = shop.account().await;
        let retry_after_ms = loop {
            let pack = Pack::from_wire("1k").unwrap();
            match shop.payments().buy(&account, pack, OrderId::new(format!("n{opened}"))).await.unwrap() {
                BuyOutcome::Opened(_) => opened += 1,
                BuyOutcome::Limited { retry_after_ms } => break retry_after_ms,
            }
        };
        assert_eq!(opened, 50);
        shop.buy("n7", "1k").await;
        let limited = shop.payments().subscribe(&account, Plan::Pro, OrderId::new("plan")).await.unwrap();
        assert!(matches!(limited, SubscribeOutcome::Limited { .. }), "{limited:?}");
        tokio::time::sleep(std::time::Duration::from_millis(retry_after_ms)).await;
        shop.subscribe("plan", Plan::Pro).await;
    });
}
