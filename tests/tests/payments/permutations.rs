//! Events in any order and number, at any time after what they tell of, lead to the same end.

use transcript_core::{accounts::payments::Subject, directory::Plan, ids::OrderId};

use super::shop::{End, Shop, in_virtual_time};
use crate::simulation::{
    dice::Dice,
    weather::{Climate, Weather},
};

/// How many ways a history is told.
const SEEDS: u64 = 400;

/// One step of what happens at the provider.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pay(&'static str, i64),
    PayBeside(&'static str, i64),
    Renew(&'static str, i64),
    Refund(&'static str, u64),
    Dispute(&'static str),
    Expire(&'static str),
    Cancel(&'static str),
}

/// What is bought before anything happens: an order's id and its pack or plan.
type Bought = &'static [(&'static str, &'static str)];

async fn buy(shop: &Shop, bought: Bought) {
    for (id, what) in bought {
        match Plan::from_wire(what) {
            Some(plan) => shop.subscribe(id, plan).await,
            None => shop.buy(id, what).await,
        };
    }
}

fn happen(shop: &Shop, step: Step) -> Vec<Subject> {
    let provider = &shop.provider;
    match step {
        Step::Pay(order, on) => provider.pay(&OrderId::new(order), on),
        Step::PayBeside(order, on) => provider.pay_beside(&OrderId::new(order), on),
        Step::Renew(order, on) => provider.renew(&OrderId::new(order), on),
        Step::Refund(order, minor) => provider.refund(&OrderId::new(order), minor),
        Step::Dispute(order) => provider.dispute(&OrderId::new(order)),
        Step::Expire(order) => provider.expire(&OrderId::new(order)),
        Step::Cancel(order) => provider.cancel(&OrderId::new(order)),
    }
}

/// Everything that matters, without in how many parts credits were taken back: how many were, is in the
/// balance.
fn summed(mut end: End) -> End {
    for (_, parts) in end.orders.values_mut() {
        parts.drain(..parts.len().saturating_sub(1));
    }
    end
}

/// Each step's events at once and in order.
fn in_order(bought: Bought, steps: &[Step]) -> End {
    in_virtual_time(async {
        let shop = Shop::open().await;
        buy(&shop, bought).await;
        for step in steps {
            shop.deliver_all(&happen(&shop, *step)).await;
        }
        summed(shop.end().await)
    })
}

/// The same steps, with events late, repeated, swapped, several at once, and stores that are slow or fail.
fn in_disorder(bought: Bought, steps: &[Step], seed: u64) -> End {
    in_virtual_time(async {
        let (shop, dice) = (Shop::open().await, Dice::new(seed, 9));
        buy(&shop, bought).await;
        shop.gate.set_weather(Weather::Seeded(Box::new(Climate::drawn(seed))));
        let (mut waiting, mut steps) = (Vec::new(), steps.iter());
        loop {
            if waiting.is_empty() || dice.chance(400) {
                match steps.next() {
                    Some(step) => waiting.extend(happen(&shop, *step)),
                    None if waiting.is_empty() => break,
                    None => {}
                }
            }
            let mut together = Vec::new();
            for _ in 0..1 + dice.below(4) {
                if waiting.is_empty() {
                    break;
                }
                let place = dice.below(waiting.len() as u64) as usize;
                together.push(match dice.chance(300) {
                    true => waiting[place].clone(),
                    false => waiting.swap_remove(place),
                });
            }
            futures_util::future::join_all(together.iter().map(|subject| shop.deliver(subject))).await;
        }
        shop.gate.set_weather(Weather::Calm);
        summed(shop.end().await)
    })
}

fn check(bought: Bought, steps: &[Step]) -> End {
    let expect = in_order(bought, steps);
    for seed in 0..SEEDS {
        assert_eq!(in_disorder(bought, steps, seed), expect, "seed {seed}");
    }
    expect
}

#[test]
fn packs() {
    let end = check(
        &[("one", "1k"), ("two", "2k"), ("three", "5k")],
        &[
            Step::Expire("two"),
            Step::Pay("one", 0),
            Step::Pay("two", 0),
            Step::Refund("one", 500),
            Step::Refund("one", 100),
            Step::Refund("two", 2_000),
            Step::Expire("three"),
        ],
    );
    assert_eq!(end.purchased, 500);
}

#[test]
fn a_plan_and_its_renewals() {
    let steps = [Step::Pay("one", -40), Step::Renew("one", -10), Step::Dispute("one")];
    let end = check(&[("one", "starter")], &steps);
    assert_eq!((end.plan, end.blocked), (Plan::Starter, true));
}

#[test]
fn a_plan_that_is_refunded_in_part_and_cancelled() {
    let steps = [Step::Pay("one", -5), Step::Refund("one", 450), Step::Cancel("one")];
    let end = check(&[("one", "starter")], &steps);
    assert_eq!((end.plan, end.paid.map(|paid| paid.credits)), (Plan::Starter, Some(1_000)));
}

#[test]
fn an_upgrade_that_is_refunded() {
    let steps = [Step::Pay("one", -5), Step::Pay("two", -1), Step::Refund("two", 2_900)];
    let end = check(&[("one", "starter"), ("two", "pro")], &steps);
    assert_eq!(end.plan, Plan::Starter);
}

#[test]
fn a_plan_that_is_refunded_beside_a_pack() {
    let steps = [Step::Pay("one", 0), Step::Refund("two", 0), Step::Pay("two", 0), Step::Refund("one", 900)];
    let end = check(&[("one", "starter"), ("two", "1k")], &steps);
    assert_eq!((end.plan, end.purchased), (Plan::Free, 1_000));
}

#[test]
fn two_subscriptions_that_are_both_paid() {
    // Which of them is the account's plan depends on which is heard of first; what is given does not.
    let bought = &[("one", "starter"), ("two", "pro")];
    let steps = [Step::Pay("one", -5), Step::PayBeside("two", -3), Step::Refund("two", 290)];
    let given = |end: &End| end.purchased + end.paid.map_or(0, |paid| paid.credits);
    assert_eq!(given(&in_order(bought, &steps)), 2_000 + 9_000);
    for seed in 0..SEEDS {
        let end = in_disorder(bought, &steps, seed);
        assert_eq!(given(&end), 2_000 + 9_000, "seed {seed}: {end:?}");
    }
}
