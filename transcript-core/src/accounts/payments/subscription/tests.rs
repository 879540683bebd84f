//! Tests of applying subscription snapshots to an account.

use Plan::{Free, Pro, Starter};

use proptest::prelude::*;

use super::*;
use crate::{
    accounts::{AccountsOptions, EffectivePlan, payments::PaymentAmounts},
    directory::PaidPeriod,
    ids::WalletId,
};

fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(day * 86_400_000)
}

fn free() -> Account {
    Account {
        id: AccountId::new("a"),
        version: 1,
        email: "ann@example.org".to_owned(),
        wallet: WalletId::new("w"),
        plan: Free,
        anchor: day(0),
        paid: None,
        customer: Some("cus_1".to_owned()),
        subscription: None,
        blocked: false,
        prepaid_until: None,
    }
}

/// A paid month: plan, start, end, and the refunded part of its 900 cents.
type TestMonth = (Plan, i64, i64, u64);

fn credits(plan: Plan) -> u64 {
    if plan == Pro { 10_000 } else { 2_000 }
}

fn invoice((plan, start, end, returned_minor): TestMonth) -> PaidInvoice {
    PaidInvoice {
        invoice: format!("in_{start}"),
        order: Some(OrderId::new("o")),
        is_first_payment: true,
        plan,
        created_at: day(start),
        period_start: day(start),
        period_end: day(end),
        money: PaymentAmounts {
            amount_minor: 900,
            currency: "usd".to_owned(),
            paid_minor: 900,
            returned_minor,
            disputed: false,
        },
    }
}

fn order(plan: Plan) -> Order {
    Order {
        id: OrderId::new("o"),
        version: 1,
        account: AccountId::new("a"),
        item: OrderItem::Plan(plan),
        credits: credits(plan),
        amount_minor: 900,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        refunded_credits: Vec::new(),
        returned_minor: 0,
        paid_minor: None,
        language: None,
        created_at: day(0),
    }
}

fn subscription(name: &str, anchor: i64, months: &[TestMonth]) -> SubscriptionState {
    SubscriptionState {
        subscription: name.to_owned(),
        customer: Some("cus_1".to_owned()),
        anchor: day(anchor),
        is_ended: false,
        replaces: None,
        invoices: months.iter().copied().map(invoice).collect(),
    }
}

fn matched<'a>(invoice: &'a PaidInvoice, state: OrderState) -> MatchedInvoice<'a> {
    let terms = order(invoice.plan);
    let record = Some(Order { state, ..terms.clone() });
    MatchedInvoice { invoice, is_first: false, terms, sale: None, record, credit_order: None }
}

/// The account after a snapshot whose invoices are not recorded yet.
fn apply(account: &Account, state: &SubscriptionState, now: i64) -> Account {
    apply_with_state(account, state, now, OrderState::Open)
}

/// The account after a snapshot whose invoices are recorded.
fn reapply(account: &Account, state: &SubscriptionState, now: i64) -> Account {
    apply_with_state(account, state, now, OrderState::Fulfilled)
}

fn apply_with_state(
    account: &Account,
    state: &SubscriptionState,
    now: i64,
    record_state: OrderState,
) -> Account {
    let matched_invoices: Vec<MatchedInvoice<'_>> =
        state.invoices.iter().map(|invoice| matched(invoice, record_state)).collect();
    apply_subscription(account, state, &matched_invoices, day(now))
}

fn check(account: &Account, plan: Plan, paid: Option<(i64, i64, u64)>, anchor: i64) {
    let found = account.paid.map(|PaidPeriod { from, through, credits, .. }| (from, through, credits));
    let paid = paid.map(|(from, through, credits)| (day(from), day(through), credits));
    assert_eq!((account.plan, found, account.anchor), (plan, paid, day(anchor)));
}

#[test]
fn subscription_paid_month_starts_plan_and_next_continues() {
    let account = apply(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    check(&account, Starter, Some((10, 40, 2_000)), 10);
    assert_eq!(account.subscription.as_deref(), Some("sub_1"));
    let next = subscription("sub_1", 10, &[(Starter, 40, 70, 0), (Starter, 10, 40, 0)]);
    let account = apply(&account, &next, 40);
    check(&account, Starter, Some((40, 70, 2_000)), 10);
    assert_eq!(apply(&account, &next, 41), account, "applied again");
}

#[test]
fn subscription_outdated_snapshot_never_shortens_paid_period() {
    let account = apply(&free(), &subscription("sub_1", 10, &[(Starter, 40, 70, 0)]), 41);
    for name in ["sub_1", "sub_0"] {
        for returned in [0, 900] {
            let old = subscription(name, 10, &[(Starter, 10, 40, returned)]);
            assert_eq!(apply(&account, &old, 75), account, "{name} {returned}");
        }
    }
}

#[test]
fn subscription_ended_runs_to_end_of_month() {
    let mut state = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
    let account = apply(&free(), &state, 11);
    state.is_ended = true;
    let account = apply(&account, &state, 20);
    check(&account, Starter, Some((10, 40, 2_000)), 10);
    assert_eq!(account.subscription, None, "an ended subscription has no grace");
    assert_eq!(apply(&account, &state, 41), account);
    // Its payment is refunded as well, in any order of the snapshots.
    let returned = SubscriptionState { invoices: vec![invoice((Starter, 10, 40, 900))], ..state.clone() };
    let ended = reapply(&account, &returned, 21);
    check(&ended, Free, None, 0);
    assert_eq!(apply(&ended, &returned, 21), ended);
}

#[test]
fn subscription_upgrade_moves_anchor_and_keeps_used_credits() {
    let account = apply(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    let months = [(Starter, 10, 40, 0), (Pro, 25, 55, 0)];
    let upgraded = apply(&account, &subscription("sub_1", 25, &months), 25);
    check(&upgraded, Pro, Some((10, 55, 11_000)), 25);
    assert_eq!(
        apply(&free(), &subscription("sub_1", 25, &months), 25).paid,
        upgraded.paid,
        "applied at once"
    );
}

#[test]
fn subscription_refund_is_proportional_and_full_refund_ends_plan() {
    let account = apply(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    let part = subscription("sub_1", 10, &[(Starter, 10, 40, 300)]);
    let account = apply(&account, &part, 12);
    check(&account, Starter, Some((10, 40, 1_334)), 10);
    assert_eq!(apply(&account, &part, 13), account, "applied again");
    let whole = subscription("sub_1", 10, &[(Starter, 10, 40, 900)]);
    let ended = apply(&account, &whole, 12);
    check(&ended, Free, None, 0);
    assert_eq!(apply(&ended, &whole, 12), ended, "applied again");
    // A fully refunded upgrade leaves the month below it.
    let months = [(Starter, 10, 40, 0), (Pro, 20, 50, 0)];
    let account = apply(&free(), &subscription("sub_1", 20, &months), 21);
    let months = [(Starter, 10, 40, 0), (Pro, 20, 50, 900)];
    check(&apply(&account, &subscription("sub_1", 20, &months), 21), Starter, Some((10, 40, 2_000)), 20);
}

#[test]
fn subscription_refund_of_any_month_counts_at_any_time() {
    let mut months = [(Starter, 10, 40, 0), (Pro, 25, 55, 0)];
    let mut account = apply(&free(), &subscription("sub_1", 25, &months), 25);
    check(&account, Pro, Some((10, 55, 11_000)), 25);
    // Partial refunds of both, before and after the first month is over.
    for (month, returned, now, credits) in
        [(0, 300, 26, 10_334), (1, 450, 27, 5_334), (0, 900, 45, 5_000), (1, 600, 46, 3_334)]
    {
        months[month].3 = returned;
        let state = subscription("sub_1", 25, &months);
        account = reapply(&account, &state, now);
        check(&account, Pro, Some((10, 55, credits)), 25);
        assert_eq!(reapply(&account, &state, now + 1), account, "applied again");
    }
}

#[test]
fn subscription_refunded_first_month_still_starts_period() {
    let months = [(Starter, 10, 40, 900), (Pro, 20, 50, 900), (Starter, 30, 60, 0)];
    let account = apply(&free(), &subscription("sub_1", 30, &months), 31);
    check(&account, Starter, Some((10, 60, 2_000)), 30);
}

#[test]
fn subscription_other_subscription_leaves_running_plan() {
    let one = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
    let account = apply(&free(), &one, 10);
    for (from, end, returned) in [(12, 42, 0), (10, 40, 0), (12, 42, 900), (10, 40, 900)] {
        let two = subscription("sub_2", from, &[(Pro, from, end, returned)]);
        assert_eq!(apply(&account, &two, 13), account, "{from} {end} {returned}");
        // An ended first subscription changes nothing either, but the second one is stored, because it continues.
        let without_first = Account { subscription: None, ..account.clone() };
        let with_second = Account { subscription: Some("sub_2".to_owned()), ..account.clone() };
        assert_eq!(apply(&without_first, &two, 13), with_second, "{from} {end} {returned}");
    }
    // A refund of the first subscription counts, though the account has the other one by now.
    let with_second = Account { subscription: Some("sub_2".to_owned()), ..account.clone() };
    let refunded = subscription("sub_1", 10, &[(Starter, 10, 40, 900)]);
    let refunded = SubscriptionState { is_ended: true, ..refunded };
    let ended = reapply(&with_second, &refunded, 13);
    assert_eq!((ended.plan, ended.paid, ended.subscription.as_deref()), (Free, None, Some("sub_2")));
    // After the period has ended, the other subscription counts, in either order of the snapshots.
    let two = subscription("sub_2", 12, &[(Pro, 42, 72, 0)]);
    check(&apply(&account, &two, 42), Pro, Some((42, 72, 10_000)), 12);
    check(&apply(&with_second, &two, 42), Pro, Some((42, 72, 10_000)), 12);
    // The month that was granted as credits is not granted again.
    let both = subscription("sub_2", 41, &[(Pro, 12, 42, 0), (Pro, 41, 71, 0)]);
    let mut matched_invoices: Vec<MatchedInvoice<'_>> =
        both.invoices.iter().map(|one| matched(one, OrderState::Open)).collect();
    matched_invoices[0].credit_order = Some(Order { state: OrderState::Fulfilled, ..order(Pro) });
    check(&apply_subscription(&account, &both, &matched_invoices, day(41)), Pro, Some((41, 71, 10_000)), 41);
}

#[test]
fn subscription_next_month_may_arrive_before_it_begins() {
    let account = apply(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 10);
    let next = subscription("sub_1", 10, &[(Starter, 40, 70, 0)]);
    let matched_invoices: Vec<MatchedInvoice<'_>> =
        next.invoices.iter().map(|one| matched(one, OrderState::Open)).collect();
    let before = Timestamp::from_millis(day(40).as_millis() - 1_000);
    check(
        &apply_subscription(&account, &next, &matched_invoices, before),
        Starter,
        Some((40, 70, 2_000)),
        10,
    );
}

#[test]
fn subscription_successor_continues_replaced_one() {
    let one = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
    let two = subscription("sub_2", 25, &[(Pro, 25, 55, 0), (Starter, 10, 40, 0)]);
    let two = SubscriptionState { replaces: Some("sub_1".to_owned()), ..two };
    let account = apply(&apply(&free(), &one, 13), &two, 25);
    check(&account, Pro, Some((10, 55, 11_000)), 25);
    assert_eq!(account.subscription.as_deref(), Some("sub_2"));
}

#[test]
fn subscription_late_refund_starts_no_other_month() {
    let options = AccountsOptions::default();
    let account = apply(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    let grace = EffectivePlan::new(&account, &options, day(41));
    let ended = reapply(&account, &subscription("sub_1", 10, &[(Starter, 10, 40, 900)]), 41);
    assert_eq!((ended.plan, ended.paid), (Free, None));
    assert_eq!(
        EffectivePlan::new(&ended, &options, day(41)).terms(),
        grace.terms(),
        "used credits stay used"
    );
    // So does a renewal that was applied in that month, and was refunded with all months before it.
    let months = [(Starter, 10, 40, 0), (Starter, 40, 70, 0)];
    let renewed = reapply(&account, &subscription("sub_1", 10, &months), 42);
    let months = [(Starter, 10, 40, 900), (Starter, 40, 70, 900)];
    let ended = reapply(&renewed, &subscription("sub_1", 10, &months), 43);
    assert_eq!(EffectivePlan::new(&ended, &options, day(43)).terms(), grace.terms());
}

proptest! {
    #[test]
    fn subscription_full_refund_restores_previous_month(
        start_day in 1..200_i64,
        upgrade_after in prop::option::of(1..30_i64),
        wait_days in 0..30_i64,
        parts in prop::collection::vec(1..900_u64, 0..3),
    ) {
        let options = AccountsOptions::default();
        let mut months = vec![(Starter, start_day, start_day + 30, 0)];
        months.extend(upgrade_after.map(|later| (Pro, start_day + later, start_day + later + 30, 0)));
        let anchor = months.last().unwrap().1;
        let now = anchor + wait_days;
        let mut account = free();
        for count in 1..=months.len() {
            account = apply(&account, &subscription("sub_1", months[count - 1].1, &months[..count]), months[count - 1].1);
        }
        prop_assert!(account.paid.is_some());
        for returned in parts.into_iter().chain([900]) {
            for month in &mut months {
                month.3 = month.3.max(returned);
            }
            account = reapply(&account, &subscription("sub_1", anchor, &months), now);
        }
        let (before, after) = (EffectivePlan::new(&free(), &options, day(now)), EffectivePlan::new(&account, &options, day(now)));
        prop_assert_eq!(after.terms(), before.terms(), "the same bucket, with its used credits");
        prop_assert_eq!(after, before);
    }
}
