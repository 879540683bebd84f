//! Runs each story with a fault or a crash at the n-th call of a store or of the provider, for n = 1, 2, …
//!
//! Each run must end in the same state as the run without a fault.

use futures_util::future::{BoxFuture, FutureExt};
use transcript_core::directory::Plan;

use super::{
    fixture::{PaymentFixture, PaymentResult, run_in_virtual_time},
    provider::day,
};
use crate::simulation::{
    fault_plan::{FaultPlan, InjectedFault, every_nth_call},
    store_gate::CrashPoint,
};

type FaultStory = for<'a> fn(&'a PaymentFixture) -> BoxFuture<'a, ()>;

/// Runs a story with a fault at the n-th call; returns its end state, and whether the fault was injected.
fn run_story(story: FaultStory, injected: Option<(u64, InjectedFault)>) -> (PaymentResult, bool) {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        match injected {
            Some((n, InjectedFault::Fault(fault))) => fixture.gate.set_faults(FaultPlan::Nth { n, fault }),
            Some((call, InjectedFault::Crash { after_effect })) => {
                fixture.gate.begin_life(Some(CrashPoint { call, after_effect }));
            }
            None => {}
        }
        story(&fixture).await;
        let fault_injected = fixture.gate.fault_injected() || fixture.process_count() > 1;
        fixture.gate.set_faults(FaultPlan::NoFaults);
        (fixture.end().await, fault_injected)
    })
}

/// Runs a story with later and later faults, until the fault comes after the last call; returns its end state.
fn check_story(story: FaultStory) -> PaymentResult {
    let (expect, _) = run_story(story, None);
    every_nth_call(2..=998, |n, injected| {
        let (end, fault_injected) = run_story(story, Some((n, injected)));
        assert_eq!(end, expect, "call {n}, {injected:?}");
        fault_injected
    });
    expect
}

#[test]
fn pack_paid_grants_credits() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.buy("one", "1k").await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.receipts), (1_000, vec!["receipt-one".to_owned()]));
}

#[test]
fn pack_partial_refunds_revoke_credits() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.buy("one", "1k").await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            for _ in 0..3 {
                fixture.deliver_all(&fixture.provider.refund(&order, 400)).await;
            }
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.orders["one"].1.clone()), (0, vec![333, 666, 1_000]));
    assert_eq!(end.receipts, ["receipt-one"], "refunds send no further receipt");
}

#[test]
fn pack_full_refund_after_many_partial_ones_revokes_all() {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        let order = fixture.buy("one", "1k").await;
        fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
        for _ in 0..101 {
            fixture.deliver_all(&fixture.provider.refund(&order, 2)).await;
        }
        let stored = fixture.order("one").await.unwrap();
        assert_eq!(
            (stored.refunded_credits.len(), stored.returned_minor),
            (100, 202),
            "the amount is stored"
        );
        fixture.deliver_all(&fixture.provider.refund(&order, 1_200 - 202)).await;
        let stored = fixture.order("one").await.unwrap();
        assert_eq!((stored.refunded_credits.last(), stored.returned_minor), (Some(&1_000), 1_200));
        assert_eq!(fixture.end().await.purchased, 0);
    });
}

#[test]
fn pack_refund_after_spend_leaves_shortfall() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.buy("one", "1k").await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.spend("hold", 700).await;
            fixture.deliver_all(&fixture.provider.refund(&order, 600)).await;
            fixture.deliver_all(&fixture.provider.refund(&order, 600)).await;
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.spent), (700, 700), "the spent part must be a shortfall");
}

#[test]
fn pack_paid_after_session_expired_grants_credits() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.buy("one", "2k").await;
            fixture.deliver_all(&fixture.provider.expire(&order)).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
        }
        .boxed()
    });
    assert_eq!(end.purchased, 2_000);
}

#[test]
fn dispute_blocks_account_once() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.buy("one", "1k").await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            let disputed = fixture.provider.dispute(&order);
            fixture.deliver_all(&disputed).await;
            assert!(fixture.account().await.blocked);
            fixture.unblock().await;
            fixture.deliver_all(&disputed).await;
            assert!(!fixture.account().await.blocked, "the operator's unblock must last");
            fixture.deliver_all(&fixture.provider.lose_dispute(&order)).await;
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.blocked), (0, false));
}

#[test]
fn plan_renewal_extends_paid_period() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Starter).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.advance_hours(30 * 24).await;
            fixture.deliver_all(&fixture.provider.renew(&order, 30)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through(), end.anchor), (Plan::Starter, Some(day(60)), day(0)));
    assert_eq!(end.purchased, 0);
}

#[test]
fn plan_change_refunded_restores_old_plan() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Starter).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            let order = fixture.subscribe("two", Plan::Pro).await;
            fixture.advance_hours(24).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 1)).await;
            let account = fixture.account().await;
            assert_eq!((account.plan, account.paid.map(|paid| paid.through)), (Plan::Pro, Some(day(31))));
            fixture.deliver_all(&fixture.provider.refund(&order, 2_900)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through()), (Plan::Starter, Some(day(30))));
}

#[test]
fn plan_cancelled_partial_refund_reduces_credits() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Pro).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.deliver_all(&fixture.provider.cancel(&order)).await;
            fixture.deliver_all(&fixture.provider.refund(&order, 290)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid.map(|paid| paid.credits)), (Plan::Pro, Some(9_000)));
    assert_eq!((end.paid_through(), end.purchased), (Some(day(30)), 0));
}

#[test]
fn plan_refund_that_fails_later_restores_no_plan() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Pro).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.deliver_all(&fixture.provider.refund(&order, 2_900)).await;
            fixture.deliver_all(&fixture.provider.fail_refunds(&order)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid, end.purchased), (Plan::Free, None, 0));
    assert_eq!(end.orders["one"].1, [10_000]);
}

#[test]
fn plan_partial_refund_that_fails_later_restores_no_credits() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Pro).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.deliver_all(&fixture.provider.refund(&order, 290)).await;
            fixture.deliver_all(&fixture.provider.fail_refunds(&order)).await;
            // The next month is another payment, which was not refunded.
            fixture.advance_hours(30 * 24).await;
            assert_eq!(fixture.account().await.paid.map(|paid| paid.credits), Some(9_000));
            fixture.deliver_all(&fixture.provider.renew(&order, 30)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid.map(|paid| paid.credits)), (Plan::Pro, Some(10_000)));
    assert_eq!(end.orders["one"].1, [1_000]);
}

#[test]
fn plan_lost_dispute_ends_plan_and_blocks_account() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Starter).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.deliver_all(&fixture.provider.dispute(&order)).await;
            fixture.deliver_all(&fixture.provider.lose_dispute(&order)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through(), end.blocked), (Plan::Free, None, true));
}

#[test]
fn month_paid_early_starts_at_its_beginning() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Starter).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.deliver_all(&fixture.provider.renew(&order, 30)).await;
            assert_eq!(fixture.account().await.paid.map(|paid| paid.through), Some(day(30)));
            fixture.advance_hours(30 * 24 + 2).await;
            fixture.sweep().await;
        }
        .boxed()
    });
    assert_eq!((end.paid_through(), end.paid.map(|paid| paid.credits)), (Some(day(60)), Some(2_000)));
}

#[test]
fn second_subscription_becomes_credits_and_refund_revokes_them() {
    let end = check_story(|fixture| {
        async {
            let one = fixture.subscribe("one", Plan::Starter).await;
            let two = fixture.subscribe("two", Plan::Pro).await;
            fixture.deliver_all(&fixture.provider.pay(&one, 0)).await;
            fixture.deliver_all(&fixture.provider.pay_second(&two, 0)).await;
            fixture.deliver_all(&fixture.provider.refund(&two, 290)).await;
            // A refund of the plan does not affect the other payment.
            fixture.deliver_all(&fixture.provider.refund(&one, 900)).await;
        }
        .boxed()
    });
    assert_eq!((end.plan, end.paid_through(), end.purchased), (Plan::Free, None, 9_000));
}

#[test]
fn sweep_fulfills_orders_without_events() {
    let end = check_story(|fixture| {
        async {
            let (pack, plan) = (fixture.buy("one", "1k").await, fixture.subscribe("two", Plan::Pro).await);
            let left = fixture.buy("three", "5k").await;
            fixture.provider.pay(&pack, 0);
            fixture.provider.pay(&plan, 0);
            fixture.provider.expire(&left);
            fixture.advance_hours(1).await;
            fixture.sweep().await;
        }
        .boxed()
    });
    assert_eq!((end.purchased, end.plan), (1_000, Plan::Pro));
    assert!(end.orders.values().all(|(state, _)| *state != transcript_core::accounts::OrderState::Open));
}

#[test]
fn sweep_ends_subscription_of_blocked_account() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Starter).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.sweep().await;
            assert!(!fixture.provider.is_ending());
            fixture.deliver_all(&fixture.provider.dispute(&order)).await;
            fixture.sweep().await;
            assert!(fixture.provider.is_ending(), "the subscription of a blocked account is still renewed");
        }
        .boxed()
    });
    assert_eq!((end.plan, end.blocked, end.paid_through()), (Plan::Starter, true, Some(day(30))));
}

#[test]
fn sweep_finds_renewal_without_event() {
    let end = check_story(|fixture| {
        async {
            let order = fixture.subscribe("one", Plan::Starter).await;
            fixture.deliver_all(&fixture.provider.pay(&order, 0)).await;
            fixture.provider.renew(&order, 30);
            fixture.advance_hours(30 * 24 + 2).await;
            fixture.sweep().await;
        }
        .boxed()
    });
    assert_eq!(end.paid_through(), Some(day(60)));
}
