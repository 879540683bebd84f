use proptest::prelude::*;

use super::*;
use crate::{
    accounts::{AccountsOptions, PlanState, Standing},
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
    }
}

fn credits_of(plan: Plan) -> u64 {
    AccountsOptions::default().plans.of(plan).credits
}

fn payment(plan: Plan, from: Timestamp, through: Timestamp) -> PlanPayment {
    PlanPayment { plan, credits: credits_of(plan), credits_back: 0, from, through }
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
fn a_first_payment_begins_the_plan_and_its_months() {
    let account = after_payments(&free(), &[days(Starter, 10, 40)], day(10));
    assert_eq!((account.plan, account.anchor, period(&account)), (Starter, day(10), (10, 40, 2_000)));
    assert_eq!(after_payments(&account, &[days(Starter, 10, 40)], day(20)), account, "told again");
    assert_eq!(after_payments(&account, &[], day(41)), account, "it ends by itself");
}

#[test]
fn the_next_payment_opens_the_next_period_whole() {
    let first = after_payments(&free(), &[days(Pro, 10, 40)], day(10));
    let both = [days(Pro, 40, 70), days(Pro, 10, 40)];
    for now in [40, 45] {
        assert_eq!(period(&after_payments(&first, &both, day(now))), (40, 70, 10_000));
    }
    // Our clock is a little behind.
    let before = Timestamp::from_millis(day(40).as_millis() - HOUR_MS);
    assert_eq!(period(&after_payments(&first, &both, before)), (40, 70, 10_000));
    // What is paid long before it begins takes nothing away.
    let early = after_payments(&first, &both, day(30));
    assert_eq!((period(&early), early.anchor), ((10, 70, 20_000), day(40)));
    assert_eq!(after_payments(&early, &both[..1], day(50)), early, "though the first is no longer told");
    let next = after_payments(&early, &[days(Pro, 70, 100)], day(70));
    assert_eq!(period(&next), (70, 100, 10_000));
}

#[test]
fn months_keep_their_day_through_short_ones() {
    let months = ["2027-01-31T10:00:00", "2027-02-28T10:00:00", "2027-03-31T10:00:00"].map(at);
    let mut account = free();
    for pair in months.windows(2) {
        account = after_payments(&account, &[payment(Pro, pair[0], pair[1])], pair[0]);
        assert_eq!(account.anchor, months[0]);
        assert_eq!(Month::of(account.anchor, pair[0]), Month { start: pair[0], end: pair[1] });
    }
}

#[test]
fn another_plan_within_a_month_changes_its_credits_for_the_rest() {
    let starter = days(Starter, 10, 40);
    let changed = |changes: &[PlanPayment]| {
        let account = after_payments(&free(), &[&[starter], changes].concat(), day(39));
        (account.plan, account.anchor, period(&account))
    };
    assert_eq!(changed(&[days(Pro, 10, 40)]), (Pro, day(10), (10, 40, 10_000)));
    assert_eq!(changed(&[days(Pro, 25, 40)]), (Pro, day(10), (10, 40, 6_000)));
    assert_eq!(changed(&[days(Pro, 39, 40)]).2, (10, 40, 2_000 - 66 + 333));
    let there_and_back = [days(Pro, 25, 40), days(Starter, 25, 40)];
    assert_eq!(changed(&there_and_back).2.2, 6_000, "at one moment the larger one is told last");
    let half = [days(Pro, 20, 40), days(Starter, 30, 40)];
    assert_eq!(changed(&half).2, (10, 40, 2_000 / 3 + 3_333 + 667), "what each third is worth");
}

#[test]
fn a_month_that_begins_within_another_becomes_one_with_it() {
    let both = [days(Starter, 10, 40), days(Pro, 25, 55)];
    let account = after_payments(&free(), &both, day(25));
    assert_eq!((account.plan, account.anchor, period(&account)), (Pro, day(25), (10, 55, 1_000 + 10_000)));
    assert_eq!(after_payments(&account, &both, day(30)), account, "told again");
    assert_eq!(
        after_payments(&account, &both[1..], day(50)),
        account,
        "the first is over and no longer told"
    );
    let third = after_payments(&account, &[both[1], days(Scale, 40, 70)], day(46));
    assert_eq!(period(&third), (10, 70, 1_000 + 5_000 + 50_000), "the second month began within the first");
    assert_eq!(after_payments(&third, &[both[1], days(Scale, 40, 70)], day(50)), third, "told again");
    assert_eq!(after_payments(&third, &[days(Scale, 40, 70)], day(60)), third, "and again, alone");
    let whole = after_payments(&account, &[both[0], both[1], days(Scale, 40, 70)], day(39));
    assert_eq!(period(&whole), (10, 70, 1_000 + 5_000 + 50_000));
    let back = after_payments(&account, &both[..1], day(30));
    assert_eq!((back.plan, period(&back)), (Starter, (10, 40, 2_000)), "the money for the second went back");
}

#[test]
fn a_later_month_that_ends_earlier_takes_over() {
    let [begun, changed] = ["2026-08-30T18:00:00", "2026-08-31T09:00:00"].map(at);
    let [early, late] = ["2026-09-30T09:00:00", "2026-09-30T18:00:00"].map(at);
    let both = [payment(Starter, begun, late), payment(Pro, changed, early)];
    let account = after_payments(&free(), &both, changed);
    let paid = account.paid.unwrap();
    assert_eq!((account.plan, account.anchor, paid.from, paid.through), (Pro, changed, begun, early));
    // 15 of 744 hours on the smaller plan, and a month of the larger one.
    assert_eq!(paid.credits, 10_000 + 2_000 - 2_000 * 729 / 744);
    assert_eq!(after_payments(&account, &both, changed), account, "told again");
}

#[test]
fn what_a_refund_took_back_is_not_given() {
    let refunded = PlanPayment { credits_back: 500, ..days(Starter, 10, 40) };
    assert_eq!(period(&after_payments(&free(), &[refunded], day(11))), (10, 40, 1_500));
    let more = PlanPayment { credits_back: 9_999, ..days(Starter, 10, 40) };
    assert_eq!(period(&after_payments(&free(), &[more], day(11))), (10, 40, 0));
}

#[test]
fn what_is_no_payment_is_ignored() {
    let none = [days(Plan::Free, 10, 40), days(Pro, 40, 40), days(Pro, 40, 10)];
    assert_eq!(after_payments(&free(), &none, day(20)), free());
}

#[test]
fn a_plan_is_had_as_long_as_it_is_paid_and_its_rate_through_the_grace() {
    let options = AccountsOptions::default();
    let account = after_payments(&free(), &[days(Pro, 10, 40)], day(10));
    let standing = |account: &Account, now| {
        let standing = Standing::of(account, &options, now);
        let start = standing.period.start.as_millis() / DAY_MS;
        (standing.state, standing.plan, standing.requests_per_minute, standing.plan_credits, start)
    };
    let before = |moment: Timestamp| Timestamp::from_millis(moment.as_millis() - 1);
    assert_eq!(standing(&free(), day(9)), (PlanState::Free, Plan::Free, 10, 200, 5));
    assert_eq!(standing(&account, before(day(40))), (PlanState::Paid, Pro, 100, 10_000, 10));
    let (state, plan, rate, credits, start) = standing(&account, day(40));
    assert_eq!((state, plan, rate, credits), (PlanState::Grace, Pro, 100, 200));
    assert!(start <= 40);
    assert_eq!(standing(&account, before(day(47))).0, PlanState::Grace);
    assert_eq!(standing(&account, day(47)).0, PlanState::Free);
    let cancelled = Account { subscription: None, ..account.clone() };
    assert_eq!(standing(&cancelled, before(day(40))).0, PlanState::Paid);
    assert_eq!(standing(&cancelled, day(40)).0, PlanState::Free, "nothing is overdue");
    // A setting that changes later takes nothing from what was sold.
    let mut lowered = AccountsOptions::default();
    lowered.plans.pro.credits = 1;
    assert_eq!(Standing::of(&account, &lowered, day(20)).plan_credits, 10_000);
}

#[test]
fn a_late_payment_goes_on_in_the_bucket_of_its_month() {
    let options = AccountsOptions::default();
    let [first, second, third] =
        ["2027-01-31T10:00:00", "2027-02-28T10:00:00", "2027-03-31T10:00:00"].map(at);
    let account = after_payments(&free(), &[payment(Pro, first, second)], first);
    let late = second.plus(Duration::from_secs(3 * 24 * 3600));
    let grace = Standing::of(&account, &options, late);
    let account = after_payments(&account, &[payment(Pro, second, third)], late);
    let paid = Standing::of(&account, &options, late);
    assert_eq!((grace.state, paid.state), (PlanState::Grace, PlanState::Paid));
    assert_eq!(grace.period, paid.period);
    assert_eq!(grace.terms().pools[0].bucket(), paid.terms().pools[0].bucket());
}

/// Moments within a month of 30 days at which the plan changes, and to which.
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
    fn switching_gives_what_the_time_on_each_plan_is_worth(changes in changes(), rotate: usize) {
        let hour = |hour: i64| Timestamp::from_millis(hour * HOUR_MS);
        let mut payments = vec![payment(Starter, hour(0), hour(720))];
        payments.extend(changes.iter().map(|(at, plan)| payment(*plan, hour(*at), hour(720))));
        // The worth of the time on each plan, in credit hours.
        let mut worth = 0_i64;
        for (place, now) in payments.iter().enumerate() {
            let until = payments.get(place + 1).map_or(hour(720), |next| next.from);
            let hours = i64::try_from(until.since(now.from).as_secs() / 3_600).unwrap();
            worth += hours * i64::try_from(now.credits).unwrap();
        }
        let account = after_payments(&free(), &payments, hour(720));
        let credits = i64::try_from(account.paid.unwrap().credits).unwrap();
        let off = (credits - worth / 720).abs();
        prop_assert!(off <= 2 * i64::try_from(payments.len()).unwrap(), "{credits} for {worth}");
        prop_assert_eq!(account.paid.unwrap().from, hour(0), "the bucket stays, and what was used in it");
        // Neither order nor repetition matters, nor who heard of how many before.
        let turned = rotate % payments.len();
        payments.rotate_left(turned);
        let some = after_payments(&free(), &payments[turned..], hour(1));
        let again = after_payments(&some, &[payments.clone(), payments].concat(), hour(720));
        prop_assert_eq!(again, account);
    }

    #[test]
    fn overlapping_months_give_all_that_was_paid_and_not_refunded(starts in prop::collection::vec(1..30 * 24_i64, 1..5)) {
        // Each month begins within the one before, for which the provider pays the rest back.
        let (mut payments, mut from) = (vec![payment(Pro, day(0), day(30))], 0);
        let mut worth = 10_000_i64;
        for hours in starts {
            worth += 10_000 - 10_000 * (720 - hours) / 720;
            from += hours;
            let start = Timestamp::from_millis(from * HOUR_MS);
            payments.push(payment(Pro, start, start.plus(Duration::from_secs(30 * 24 * 3_600))));
        }
        let now = payments.last().unwrap().from;
        let account = after_payments(&free(), &payments, now);
        let paid = account.paid.unwrap();
        prop_assert_eq!((paid.from, paid.through), (day(0), payments.last().unwrap().through));
        let off = (i64::try_from(paid.credits).unwrap() - worth).abs();
        prop_assert!(off <= i64::try_from(payments.len()).unwrap(), "{} for {worth}", paid.credits);
        // One by one, as they are heard of.
        let mut step = free();
        for told in 1..=payments.len() {
            step = after_payments(&step, &payments[..told], payments[told - 1].from);
        }
        prop_assert_eq!(step, account);
    }
}
