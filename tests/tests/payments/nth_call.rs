//! For each story the n-th call of a store or of the provider goes wrong, for n = 1, 2, …, until the story
//! passes untouched: it ends as it does when all goes well. So it does when the process dies at any call.

use futures_util::future::{BoxFuture, FutureExt};
use transcript_core::directory::Plan;

use super::{
    provider::day,
    shop::{End, Shop, in_virtual_time},
};
use crate::simulation::{
    gate::CrashPoint,
    weather::{Trouble, Weather},
};

/// No story makes as many calls as this.
const CALLS_MAX: u64 = 1_000;

type Story = for<'a> fn(&'a Shop) -> BoxFuture<'a, ()>;

/// What goes wrong at one call.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Trouble(Trouble),
    Crash { after_effect: bool },
}

/// Plays a story with something wrong at the n-th call; how it ended, and whether it came to that call.
fn play(story: Story, wrong: Option<(u64, Wrong)>) -> (End, bool) {
    in_virtual_time(async {
        let shop = Shop::open().await;
        match wrong {
            Some((n, Wrong::Trouble(trouble))) => shop.gate.set_weather(Weather::Nth { n, trouble }),
            Some((call, Wrong::Crash { after_effect })) => {
                shop.gate.begin_life(Some(CrashPoint { call, after_effect }));
            }
            None => {}
        }
        story(&shop).await;
        let troubled = shop.gate.troubled() || shop.lives() > 1;
        shop.gate.set_weather(Weather::Calm);
        (shop.end().await, troubled)
    })
}

/// Plays a story again and again, until the trouble comes too late; returns how it ends.
fn check_story(story: Story) -> End {
    let (expect, _) = play(story, None);
    let crashes = [true, false].map(|after_effect| Wrong::Crash { after_effect });
    for wrong in Trouble::ALL.map(Wrong::Trouble).into_iter().chain(crashes) {
        let mut calls = 0;
        for n in 1..CALLS_MAX {
            let (end, troubled) = play(story, Some((n, wrong)));
            assert_eq!(end, expect, "call {n}, {wrong:?}");
            if !troubled {
                break;
            }
            calls = n;
        }
        assert!((2..CALLS_MAX - 1).contains(&calls), "a story makes calls, and ends: {calls}");
    }
    expect
}

#[test]
fn a_pack_is_paid() {
    let end = check_story(|shop| {
        async {
            let order = shop.buy("one", "1k").await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
        }
        .boxed()
    });
    assert_eq!(end.purchased, 1_000);
}

#[test]
fn a_pack_is_refunded_in_parts() {
    let end = check_story(|shop| {
        async {
            let order = shop.buy("one", "1k").await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            for _ in 0..3 {
                shop.deliver_all(&shop.provider.refund(&order, 400)).await;
            }
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.orders["one"].1.clone()), (0, vec![333, 666, 1_000]));
}

#[test]
fn a_refund_of_what_was_partly_spent() {
    let end = check_story(|shop| {
        async {
            let order = shop.buy("one", "1k").await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            shop.spend("hold", 700).await;
            shop.deliver_all(&shop.provider.refund(&order, 600)).await;
            shop.deliver_all(&shop.provider.refund(&order, 600)).await;
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.spent), (700, 700), "what was spent is a shortfall");
}

#[test]
fn a_pack_whose_page_closed_is_paid_all_the_same() {
    let end = check_story(|shop| {
        async {
            let order = shop.buy("one", "2k").await;
            shop.deliver_all(&shop.provider.expire(&order)).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
        }
        .boxed()
    });
    assert_eq!(end.purchased, 2_000);
}

#[test]
fn a_dispute_blocks_once() {
    let end = check_story(|shop| {
        async {
            let order = shop.buy("one", "1k").await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            let disputed = shop.provider.dispute(&order);
            shop.deliver_all(&disputed).await;
            assert!(shop.account().await.blocked);
            shop.unblock().await;
            shop.deliver_all(&disputed).await;
            assert!(!shop.account().await.blocked, "the operator has decided");
            shop.deliver_all(&shop.provider.lose_dispute(&order)).await;
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.blocked), (0, false));
}

#[test]
fn a_plan_is_paid_and_renewed() {
    let end = check_story(|shop| {
        async {
            let order = shop.subscribe("one", Plan::Starter).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            shop.pass_hours(30 * 24).await;
            shop.deliver_all(&shop.provider.renew(&order, 30)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through(), end.anchor), (Plan::Starter, Some(day(60)), day(0)));
    assert_eq!(end.purchased, 0);
}

#[test]
fn a_plan_is_exchanged_and_the_new_month_refunded() {
    let end = check_story(|shop| {
        async {
            let order = shop.subscribe("one", Plan::Starter).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            let order = shop.subscribe("two", Plan::Pro).await;
            shop.pass_hours(24).await;
            shop.deliver_all(&shop.provider.pay(&order, 1)).await;
            let account = shop.account().await;
            assert_eq!((account.plan, account.paid.map(|paid| paid.through)), (Plan::Pro, Some(day(31))));
            shop.deliver_all(&shop.provider.refund(&order, 2_900)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through()), (Plan::Starter, Some(day(30))));
}

#[test]
fn a_plan_that_is_cancelled_and_refunded_in_part() {
    let end = check_story(|shop| {
        async {
            let order = shop.subscribe("one", Plan::Pro).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            shop.deliver_all(&shop.provider.cancel(&order)).await;
            shop.deliver_all(&shop.provider.refund(&order, 290)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid.map(|paid| paid.credits)), (Plan::Pro, Some(9_000)));
    assert_eq!((end.paid_through(), end.purchased), (Some(day(30)), 0));
}

#[test]
fn a_plan_is_refunded_and_disputed() {
    let end = check_story(|shop| {
        async {
            let order = shop.subscribe("one", Plan::Starter).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            shop.deliver_all(&shop.provider.dispute(&order)).await;
            shop.deliver_all(&shop.provider.lose_dispute(&order)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through(), end.blocked), (Plan::Free, None, true));
}

#[test]
fn a_month_that_was_paid_early_is_given_when_it_begins() {
    let end = check_story(|shop| {
        async {
            let order = shop.subscribe("one", Plan::Starter).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            shop.deliver_all(&shop.provider.renew(&order, 30)).await;
            assert_eq!(shop.account().await.paid.map(|paid| paid.through), Some(day(30)));
            shop.pass_hours(30 * 24 + 2).await;
            shop.sweep().await;
        }
        .boxed()
    });
    assert_eq!((end.paid_through(), end.paid.map(|paid| paid.credits)), (Some(day(60)), Some(2_000)));
}

#[test]
fn what_is_paid_beside_a_plan_is_given_as_credits_and_taken_back() {
    let end = check_story(|shop| {
        async {
            let one = shop.subscribe("one", Plan::Starter).await;
            let two = shop.subscribe("two", Plan::Pro).await;
            shop.deliver_all(&shop.provider.pay(&one, 0)).await;
            shop.deliver_all(&shop.provider.pay_beside(&two, 0)).await;
            shop.deliver_all(&shop.provider.refund(&two, 290)).await;
            // The plan's own money goes back: what was paid beside it stays.
            shop.deliver_all(&shop.provider.refund(&one, 900)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through(), end.purchased), (Plan::Free, None, 9_000));
}

#[test]
fn a_sweep_gives_what_no_event_told() {
    let end = check_story(|shop| {
        async {
            let (pack, plan) = (shop.buy("one", "1k").await, shop.subscribe("two", Plan::Pro).await);
            let left = shop.buy("three", "5k").await;
            shop.provider.pay(&pack, 0);
            shop.provider.pay(&plan, 0);
            shop.provider.expire(&left);
            shop.pass_hours(1).await;
            shop.sweep().await;
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.plan), (1_000, Plan::Pro));
    assert!(end.orders.values().all(|(state, _)| *state != transcript_core::accounts::OrderState::Open));
}

#[test]
fn a_sweep_ends_the_subscription_of_a_blocked_account_with_its_month() {
    let end = check_story(|shop| {
        async {
            let order = shop.subscribe("one", Plan::Starter).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            shop.sweep().await;
            assert!(!shop.provider.is_stopped());
            shop.deliver_all(&shop.provider.dispute(&order)).await;
            shop.sweep().await;
            assert!(shop.provider.is_stopped(), "nobody pays for what they cannot use");
        }
        .boxed()
    });
    assert_eq!((end.plan, end.blocked, end.paid_through()), (Plan::Starter, true, Some(day(30))));
}

#[test]
fn a_sweep_finds_a_renewal_that_no_event_told() {
    let end = check_story(|shop| {
        async {
            let order = shop.subscribe("one", Plan::Starter).await;
            shop.deliver_all(&shop.provider.pay(&order, 0)).await;
            shop.provider.renew(&order, 30);
            shop.pass_hours(30 * 24 + 2).await;
            shop.sweep().await;
        }
        .boxed()
    });
    assert_eq!(end.paid_through(), Some(day(60)));
}
