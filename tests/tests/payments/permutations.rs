//! Events in any order and number, at any later time, lead to the same end state.

use transcript_core::{accounts::payments::ProviderObject, directory::Plan, ids::OrderId};

use super::fixture::{PaymentFixture, PaymentResult, run_in_virtual_time};
use crate::simulation::{
    fault_plan::{FaultPlan, FaultRates},
    seeded_rng::SeededRng,
};

/// Number of random event orders per history.
const SEEDS: u64 = 400;

/// One step at the provider.
#[derive(Clone, Copy, Debug)]
enum PaymentStep {
    Pay(&'static str, i64),
    PaySecond(&'static str, i64),
    Renew(&'static str, i64),
    Refund(&'static str, u64),
    Dispute(&'static str),
    Expire(&'static str),
    Cancel(&'static str),
}

/// Items ordered at the start: an order id with a pack or plan.
type BoughtItem = &'static [(&'static str, &'static str)];

async fn buy(fixture: &PaymentFixture, bought: BoughtItem) {
    for (id, what) in bought {
        match Plan::from_wire(what) {
            Some(plan) => fixture.subscribe(id, plan).await,
            None => fixture.buy(id, what).await,
        };
    }
}

fn perform(fixture: &PaymentFixture, step: PaymentStep) -> Vec<ProviderObject> {
    let provider = &fixture.provider;
    match step {
        PaymentStep::Pay(order, on) => provider.pay(&OrderId::new(order), on),
        PaymentStep::PaySecond(order, on) => provider.pay_second(&OrderId::new(order), on),
        PaymentStep::Renew(order, on) => provider.renew(&OrderId::new(order), on),
        PaymentStep::Refund(order, minor) => provider.refund(&OrderId::new(order), minor),
        PaymentStep::Dispute(order) => provider.dispute(&OrderId::new(order)),
        PaymentStep::Expire(order) => provider.expire(&OrderId::new(order)),
        PaymentStep::Cancel(order) => provider.cancel(&OrderId::new(order)),
    }
}

/// Keeps only the last revoked total of each order, because the number of revocations depends on the order
/// of events.
fn with_refund_totals(mut end: PaymentResult) -> PaymentResult {
    for (_, parts) in end.orders.values_mut() {
        parts.drain(..parts.len().saturating_sub(1));
    }
    end
}

/// Delivers the events of each step immediately and in order.
fn run_in_order(bought: BoughtItem, steps: &[PaymentStep]) -> PaymentResult {
    run_in_virtual_time(async {
        let fixture = PaymentFixture::start().await;
        buy(&fixture, bought).await;
        for step in steps {
            fixture.deliver_all(&perform(&fixture, *step)).await;
        }
        with_refund_totals(fixture.end().await)
    })
}

/// Delivers events late, repeated, swapped and concurrently, with stores that are slow or fail.
fn run_in_random_order(bought: BoughtItem, steps: &[PaymentStep], seed: u64) -> PaymentResult {
    run_in_virtual_time(async {
        let (fixture, rng) = (PaymentFixture::start().await, SeededRng::new(seed, 9));
        buy(&fixture, bought).await;
        fixture.gate.set_faults(FaultPlan::Seeded(Box::new(FaultRates::random(seed))));
        let (mut pending, mut steps) = (Vec::new(), steps.iter());
        loop {
            if pending.is_empty() || rng.chance(400) {
                match steps.next() {
                    Some(step) => pending.extend(perform(&fixture, *step)),
                    None if pending.is_empty() => break,
                    None => {}
                }
            }
            let mut batch = Vec::new();
            for _ in 0..1 + rng.below(4) {
                if pending.is_empty() {
                    break;
                }
                let index = rng.below(pending.len() as u64) as usize;
                batch.push(match rng.chance(300) {
                    true => pending[index].clone(),
                    false => pending.swap_remove(index),
                });
            }
            futures_util::future::join_all(batch.iter().map(|subject| fixture.deliver(subject))).await;
        }
        fixture.gate.set_faults(FaultPlan::NoFaults);
        with_refund_totals(fixture.end().await)
    })
}

fn check(bought: BoughtItem, steps: &[PaymentStep]) -> PaymentResult {
    let expect = run_in_order(bought, steps);
    for seed in 0..SEEDS {
        assert_eq!(run_in_random_order(bought, steps, seed), expect, "seed {seed}");
    }
    expect
}

#[test]
fn packs_any_event_order_same_end() {
    let end = check(
        &[("one", "1k"), ("two", "2k"), ("three", "5k")],
        &[
            PaymentStep::Expire("two"),
            PaymentStep::Pay("one", 0),
            PaymentStep::Pay("two", 0),
            PaymentStep::Refund("one", 500),
            PaymentStep::Refund("one", 100),
            PaymentStep::Refund("two", 2_000),
            PaymentStep::Expire("three"),
        ],
    );
    assert_eq!(end.purchased, 500);
}

#[test]
fn plan_renewals_any_event_order_same_end() {
    let steps = [PaymentStep::Pay("one", -40), PaymentStep::Renew("one", -10), PaymentStep::Dispute("one")];
    let end = check(&[("one", "starter")], &steps);
    assert_eq!((end.plan, end.blocked), (Plan::Starter, true));
}

#[test]
fn plan_refund_and_cancel_any_event_order_same_end() {
    let steps = [PaymentStep::Pay("one", -5), PaymentStep::Refund("one", 450), PaymentStep::Cancel("one")];
    let end = check(&[("one", "starter")], &steps);
    assert_eq!((end.plan, end.paid.map(|paid| paid.credits)), (Plan::Starter, Some(1_000)));
}

#[test]
fn upgrade_refund_any_event_order_same_end() {
    let steps = [PaymentStep::Pay("one", -5), PaymentStep::Pay("two", -1), PaymentStep::Refund("two", 2_900)];
    let end = check(&[("one", "starter"), ("two", "pro")], &steps);
    assert_eq!(end.plan, Plan::Starter);
}

#[test]
fn plan_refund_with_pack_any_event_order_same_end() {
    let steps = [
        PaymentStep::Pay("one", 0),
        PaymentStep::Refund("two", 0),
        PaymentStep::Pay("two", 0),
        PaymentStep::Refund("one", 900),
    ];
    let end = check(&[("one", "starter"), ("two", "1k")], &steps);
    assert_eq!((end.plan, end.purchased), (Plan::Free, 1_000));
}

#[test]
fn two_subscriptions_any_event_order_same_total_credits() {
    // The first event decides which one is the account's plan; the total of credits does not depend on it.
    let bought = &[("one", "starter"), ("two", "pro")];
    let steps =
        [PaymentStep::Pay("one", -5), PaymentStep::PaySecond("two", -3), PaymentStep::Refund("two", 290)];
    let total_credits = |end: &PaymentResult| end.purchased + end.paid.map_or(0, |paid| paid.credits);
    assert_eq!(total_credits(&run_in_order(bought, &steps)), 2_000 + 9_000);
    for seed in 0..SEEDS {
        let end = run_in_random_order(bought, &steps, seed);
        assert_eq!(total_credits(&end), 2_000 + 9_000, "seed {seed}: {end:?}");
    }
}
