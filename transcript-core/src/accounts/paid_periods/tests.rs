//! Tests of the paid period that results from payments.

use proptest::prelude::*;

use super::*;
use crate::{
    accounts::{AccountsOptions, EffectivePlan, PlanState},
    ids::{AccountId, WalletId},
};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

fn at(text: &str) -> Timestamp {
    Timestamp::from_civil(text.parse().unwrap())
}

fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(day * DAY_MS)
}

fn free() -> Account {
    Account {
        id: AccountId::new("a"),
        version: 1,
        email: "ann@example.org".to_owned(),
        wallet: WalletId::new("w"),
        plan: Plan::Free,
        anchor: day(5),
        paid: None,
        customer: None,
        subscription: Some("sub".to_owned()),
        blocked: false,
        prepaid_until: None,
    }
}

fn credits_of(plan: Plan) -> u64 {
    AccountsOptions::default().plans.terms(plan).credits
}

fn payment(plan: Plan, from: Timestamp, through: Timestamp) -> PlanPayment {
    PlanPayment { plan, credits: credits_of(plan), refunded_credits: 0, from, through }
}

fn days(plan: Plan, from: i64, through: i64) -> PlanPayment {
    payment(plan, day(from), day(through))
}

fn period(account: &Account) -> (i64, i64, u64) {
    let paid = account.paid.unwrap();
    (paid.from.as_millis() / DAY_MS, paid.through.as_millis() / DAY_MS, paid.credits)
}

use Plan::{Pro, Scale, Starter};

#[test]
fn payments_first_starts_plan_and_months() {
    let account = apply_payments(&free(), &[days(Starter, 10, 40)], day(10));
    assert_eq!((account.plan, account.anchor, period(&account)), (Starter, day(10), (10, 40, 2_000)));
    assert_eq!(apply_payments(&account, &[days(Starter, 10, 40)], day(20)), account, "applied again");
    assert_eq!(apply_payments(&account, &[], day(41)), account, "it expires without a write");
}

#[test]
fn payments_next_starts_next_period_in_full() {
    let first = apply_payments(&free(), &[days(Pro, 10, 40)], day(10));
    let both = [days(Pro, 40, 70), days(Pro, 10, 40)];
    for now in [40, 45] {
        assert_eq!(period(&apply_payments(&first, &both, day(now))), (40, 70, 10_000));
    }
    // This server's clock lags a little.
    let before = Timestamp::from_millis(day(40).as_millis() - HOUR_MS);
    assert_eq!(period(&apply_payments(&first, &both, before)), (40, 70, 10_000));
    // A payment long before its period shortens nothing.
    let early = apply_payments(&first, &both, day(30));
    assert_eq!((period(&early), early.anchor), ((10, 70, 20_000), day(40)));
    assert_eq!(apply_payments(&early, &both[..1], day(50)), early, "though the first is no longer listed");
    let next = apply_payments(&early, &[days(Pro, 70, 100)], day(70));
    assert_eq!(period(&next), (70, 100, 10_000));
}

#[test]
fn payments_months_keep_day_after_short_month() {
    let months = ["2027-01-31T10:00:00", "2027-02-28T10:00:00", "2027-03-31T10:00:00"].map(at);
    let mut account = free();
    for pair in months.windows(2) {
        account = apply_payments(&account, &[payment(Pro, pair[0], pair[1])], pair[0]);
        assert_eq!(account.anchor, months[0]);
        assert_eq!(BillingMonth::new(account.anchor, pair[0]), BillingMonth { start: pair[0], end: pair[1] });
    }
}

#[test]
fn payments_plan_change_prorates_rest_of_month() {
    let starter = days(Starter, 10, 40);
    let changed = |changes: &[PlanPayment]| {
        let account = apply_payments(&free(), &[&[starter], changes].concat(), day(39));
        (account.plan, account.anchor, period(&account))
    };
    assert_eq!(changed(&[days(Pro, 10, 40)]), (Pro, day(10), (10, 40, 10_000)));
    assert_eq!(changed(&[days(Pro, 25, 40)]), (Pro, day(10), (10, 40, 6_000)));
    assert_eq!(changed(&[days(Pro, 39, 40)]).2, (10, 40, 2_000 - 66 + 333));
    let two_changes = [days(Pro, 25, 40), days(Starter, 25, 40)];
    assert_eq!(changed(&two_changes).2.2, 6_000, "of two at one time the larger one counts last");
    let half = [days(Pro, 20, 40), days(Starter, 30, 40)];
    assert_eq!(changed(&half).2, (10, 40, 2_000 / 3 + 3_333 + 667), "the worth of each third");
}

#[test]
fn payments_overlapping_months_merge() {
    let both = [days(Starter, 10, 40), days(Pro, 25, 55)];
    let account = apply_payments(&free(), &both, day(25));
    assert_eq!((account.plan, account.anchor, period(&account)), (Pro, day(25), (10, 55, 1_000 + 10_000)));
    assert_eq!(apply_payments(&account, &both, day(30)), account, "applied again");
    assert_eq!(
        apply_payments(&account, &both[1..], day(50)),
        account,
        "the first is over and no longer listed"
    );
    let third = apply_payments(&account, &[both[1], days(Scale, 40, 70)], day(46));
    assert_eq!(period(&third), (10, 70, 1_000 + 5_000 + 50_000), "the second month began within the first");
    assert_eq!(apply_payments(&third, &[both[1], days(Scale, 40, 70)], day(50)), third, "applied again");
    assert_eq!(apply_payments(&third, &[days(Scale, 40, 70)], day(60)), third, "and again, alone");
    let whole = apply_payments(&account, &[both[0], both[1], days(Scale, 40, 70)], day(39));
    assert_eq!(period(&whole), (10, 70, 1_000 + 5_000 + 50_000));
    let refunded = apply_payments(&account, &both[..1], day(30));
    assert_eq!((refunded.plan, period(&refunded)), (Starter, (10, 40, 2_000)), "the second was refunded");
}

#[test]
fn payments_later_month_ending_earlier_wins() {
    let [started, changed] = ["2026-08-30T18:00:00", "2026-08-31T09:00:00"].map(at);
    let [early, late] = ["2026-09-30T09:00:00", "2026-09-30T18:00:00"].map(at);
    let both = [payment(Starter, started, late), payment(Pro, changed, early)];
    let account = apply_payments(&free(), &both, changed);
    let paid = account.paid.unwrap();
    assert_eq!((account.plan, account.anchor, paid.from, paid.through), (Pro, changed, started, early));
    // 15 of 744 hours on the smaller plan, and a month of the larger one.
    assert_eq!(paid.credits, 10_000 + 2_000 - 2_000 * 729 / 744);
    assert_eq!(apply_payments(&account, &both, changed), account, "applied again");
}

#[test]
fn payments_refunded_credits_are_not_granted() {
    let refunded = PlanPayment { refunded_credits: 500, ..days(Starter, 10, 40) };
    assert_eq!(period(&apply_payments(&free(), &[refunded], day(11))), (10, 40, 1_500));
    let more = PlanPayment { refunded_credits: 9_999, ..days(Starter, 10, 40) };
    assert_eq!(period(&apply_payments(&free(), &[more], day(11))), (10, 40, 0));
}

#[test]
fn payments_invalid_periods_are_ignored() {
    let none = [days(Plan::Free, 10, 40), days(Pro, 40, 40), days(Pro, 40, 10)];
    assert_eq!(apply_payments(&free(), &none, day(20)), free());
}

#[test]
fn effective_plan_lasts_while_paid_and_rate_through_grace() {
    let options = AccountsOptions::default();
    let account = apply_payments(&free(), &[days(Pro, 10, 40)], day(10));
    let effective_plan = |account: &Account, now| {
        let effective_plan = EffectivePlan::new(account, &options, now);
        let start = effective_plan.period.start.as_millis() / DAY_MS;
        (
            effective_plan.state,
            effective_plan.plan,
            effective_plan.requests_per_minute,
            effective_plan.plan_credits,
            start,
        )
    };
    let before = |time: Timestamp| Timestamp::from_millis(time.as_millis() - 1);
    assert_eq!(effective_plan(&free(), day(9)), (PlanState::Free, Plan::Free, 10, 200, 5));
    assert_eq!(effective_plan(&account, before(day(40))), (PlanState::Paid, Pro, 100, 10_000, 10));
    let (state, plan, rate, credits, start) = effective_plan(&account, day(40));
    assert_eq!((state, plan, rate, credits), (PlanState::Grace, Pro, 100, 200));
    assert!(start <= 40);
    assert_eq!(effective_plan(&account, before(day(47))).0, PlanState::Grace);
    assert_eq!(effective_plan(&account, day(47)).0, PlanState::Free);
    let cancelled = Account { subscription: None, ..account.clone() };
    assert_eq!(effective_plan(&cancelled, before(day(40))).0, PlanState::Paid);
    assert_eq!(effective_plan(&cancelled, day(40)).0, PlanState::Free, "nothing is overdue");
    // A setting that changes later takes nothing from what was sold.
    let mut changed_options = AccountsOptions::default();
    changed_options.plans.pro.credits = 1;
    assert_eq!(EffectivePlan::new(&account, &changed_options, day(20)).plan_credits, 10_000);
}

#[test]
fn payments_late_payment_uses_bucket_of_its_month() {
    let options = AccountsOptions::default();
    let [first, second, third] =
        ["2027-01-31T10:00:00", "2027-02-28T10:00:00", "2027-03-31T10:00:00"].map(at);
    let account = apply_payments(&free(), &[payment(Pro, first, second)], first);
    let late = second.plus(Duration::from_secs(3 * 24 * 3600));
    let grace = EffectivePlan::new(&account, &options, late);
    let account = apply_payments(&account, &[payment(Pro, second, third)], late);
    let paid = EffectivePlan::new(&account, &options, late);
    assert_eq!((grace.state, paid.state), (PlanState::Grace, PlanState::Paid));
    assert_eq!(grace.period, paid.period);
    assert_eq!(grace.terms().pools[0].bucket(), paid.terms().pools[0].bucket());
}

/// Times within a month of 30 days at which the plan changes, with the new plan.
fn changes() -> impl Strategy<Value = Vec<(i64, Plan)>> {
    let plan = prop::sample::select(vec![Starter, Pro, Scale]);
    prop::collection::vec((1..30 * 24_i64, plan), 0..6).prop_map(|mut changes| {
        changes.sort_by_key(|(hour, _)| *hour);
        changes.dedup_by_key(|(hour, _)| *hour);
        changes
    })
}

proptest! {
    #[test]
    fn payments_switching_gives_prorated_credits(changes in changes(), rotate: usize) {
        let hour = |hour: i64| Timestamp::from_millis(hour * HOUR_MS);
        let mut payments = vec![payment(Starter, hour(0), hour(720))];
        payments.extend(changes.iter().map(|(at, plan)| payment(*plan, hour(*at), hour(720))));
        // The worth of the time on each plan, in credit hours.
        let mut worth = 0_i64;
        for (index, now) in payments.iter().enumerate() {
            let end = payments.get(index + 1).map_or(hour(720), |next| next.from);
            let hours = i64::try_from(end.since(now.from).as_secs() / 3_600).unwrap();
            worth += hours * i64::try_from(now.credits).unwrap();
        }
        let account = apply_payments(&free(), &payments, hour(720));
        let credits = i64::try_from(account.paid.unwrap().credits).unwrap();
        let difference = (credits - worth / 720).abs();
        prop_assert!(difference <= 2 * i64::try_from(payments.len()).unwrap(), "{credits} for {worth}");
        prop_assert_eq!(account.paid.unwrap().from, hour(0), "the bucket and its used credits stay");
        // Neither order nor repetition matters, nor how many payments were applied before.
        let rotation = rotate % payments.len();
        payments.rotate_left(rotation);
        let partial = apply_payments(&free(), &payments[rotation..], hour(1));
        let again = apply_payments(&partial, &[payments.clone(), payments].concat(), hour(720));
        prop_assert_eq!(again, account);
    }

    #[test]
    fn payments_overlapping_months_give_all_unrefunded_credits(starts in prop::collection::vec(1..30 * 24_i64, 1..5)) {
        // Each month begins within the previous one, whose rest the provider refunds.
        let (mut payments, mut from) = (vec![payment(Pro, day(0), day(30))], 0);
        let mut worth = 10_000_i64;
        for hours in starts {
            worth += 10_000 - 10_000 * (720 - hours) / 720;
            from += hours;
            let start = Timestamp::from_millis(from * HOUR_MS);
            payments.push(payment(Pro, start, start.plus(Duration::from_secs(30 * 24 * 3_600))));
        }
        let now = payments.last().unwrap().from;
        let account = apply_payments(&free(), &payments, now);
        let paid = account.paid.unwrap();
        prop_assert_eq!((paid.from, paid.through), (day(0), payments.last().unwrap().through));
        let difference = (i64::try_from(paid.credits).unwrap() - worth).abs();
        prop_assert!(difference <= i64::try_from(payments.len()).unwrap(), "{} for {worth}", paid.credits);
        // One by one, as they are reported.
        let mut account_so_far = free();
        for count in 1..=payments.len() {
            account_so_far = apply_payments(&account_so_far, &payments[..count], payments[count - 1].from);
        }
        prop_assert_eq!(account_so_far, account);
    }
}
