use Plan::{Free, Pro, Starter};

use proptest::prelude::*;

use super::*;
use crate::{
    accounts::{AccountsOptions, Standing, payments::Money},
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
    }
}

/// A paid month: plan, start, end, and how much of the 900 cents went back.
type Month = (Plan, i64, i64, u64);

fn credits(plan: Plan) -> u64 {
    if plan == Pro { 10_000 } else { 2_000 }
}

fn invoice((plan, start, end, returned_minor): Month) -> PaidInvoice {
    PaidInvoice {
        invoice: format!("in_{start}"),
        order: Some(OrderId::new("o")),
        first: true,
        plan,
        created_at: day(start),
        period_start: day(start),
        period_end: day(end),
        money: Money {
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
        item: Item::Plan(plan),
        credits: credits(plan),
        amount_minor: 900,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        taken_back: Vec::new(),
        created_at: day(0),
    }
}

fn subscription(name: &str, anchor: i64, months: &[Month]) -> SubscriptionState {
    SubscriptionState {
        subscription: name.to_owned(),
        customer: Some("cus_1".to_owned()),
        anchor: day(anchor),
        is_ended: false,
        replaces: None,
        invoices: months.iter().copied().map(invoice).collect(),
    }
}

/// An invoice of this subscription, and whether it was given already.
fn sold<'a>(invoice: &'a PaidInvoice, state: OrderState) -> Sold<'a> {
    let terms = order(invoice.plan);
    let record = Some(Order { state, ..terms.clone() });
    Sold { invoice, is_first: false, terms, sale: None, record, aside: None }
}

/// The account once this is heard for the first time.
fn heard(account: &Account, state: &SubscriptionState, now: i64) -> Account {
    heard_with(account, state, now, OrderState::Open)
}

/// The account once this is heard of what was given already.
fn again(account: &Account, state: &SubscriptionState, now: i64) -> Account {
    heard_with(account, state, now, OrderState::Fulfilled)
}

fn heard_with(account: &Account, state: &SubscriptionState, now: i64, is: OrderState) -> Account {
    let sold: Vec<Sold<'_>> = state.invoices.iter().map(|invoice| sold(invoice, is)).collect();
    after(account, state, &sold, day(now))
}

fn check(account: &Account, plan: Plan, paid: Option<(i64, i64, u64)>, anchor: i64) {
    let found = account.paid.map(|PaidPeriod { from, through, credits, .. }| (from, through, credits));
    let paid = paid.map(|(from, through, credits)| (day(from), day(through), credits));
    assert_eq!((account.plan, found, account.anchor), (plan, paid, day(anchor)));
}

#[test]
fn a_paid_month_starts_the_plan_and_the_next_one_goes_on() {
    let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    check(&account, Starter, Some((10, 40, 2_000)), 10);
    assert_eq!(account.subscription.as_deref(), Some("sub_1"));
    let next = subscription("sub_1", 10, &[(Starter, 40, 70, 0), (Starter, 10, 40, 0)]);
    let account = heard(&account, &next, 40);
    check(&account, Starter, Some((40, 70, 2_000)), 10);
    assert_eq!(heard(&account, &next, 41), account, "told again");
}

#[test]
fn old_news_never_shorten_what_is_paid() {
    let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 40, 70, 0)]), 41);
    for name in ["sub_1", "sub_0"] {
        for returned in [0, 900] {
            let old = subscription(name, 10, &[(Starter, 10, 40, returned)]);
            assert_eq!(heard(&account, &old, 75), account, "{name} {returned}");
        }
    }
}

#[test]
fn an_ended_subscription_is_paid_until_its_month_ends_and_then_no_more() {
    let mut state = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
    let account = heard(&free(), &state, 11);
    state.is_ended = true;
    let account = heard(&account, &state, 20);
    check(&account, Starter, Some((10, 40, 2_000)), 10);
    assert_eq!(account.subscription, None, "there is no grace for what will not be paid");
    assert_eq!(heard(&account, &state, 41), account);
    // Its money goes back as well, in whichever order it is heard.
    let returned = SubscriptionState { invoices: vec![invoice((Starter, 10, 40, 900))], ..state.clone() };
    let ended = again(&account, &returned, 21);
    check(&ended, Free, None, 0);
    assert_eq!(heard(&ended, &returned, 21), ended);
}

#[test]
fn an_upgrade_counts_months_anew_and_forgets_nothing_that_was_used() {
    let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    let months = [(Starter, 10, 40, 0), (Pro, 25, 55, 0)];
    let upgraded = heard(&account, &subscription("sub_1", 25, &months), 25);
    check(&upgraded, Pro, Some((10, 55, 11_000)), 25);
    assert_eq!(heard(&free(), &subscription("sub_1", 25, &months), 25).paid, upgraded.paid, "heard at once");
}

#[test]
fn a_refund_takes_back_in_proportion_and_ends_the_plan_when_it_is_whole() {
    let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    let part = subscription("sub_1", 10, &[(Starter, 10, 40, 300)]);
    let account = heard(&account, &part, 12);
    check(&account, Starter, Some((10, 40, 1_334)), 10);
    assert_eq!(heard(&account, &part, 13), account, "told again");
    let whole = subscription("sub_1", 10, &[(Starter, 10, 40, 900)]);
    let ended = heard(&account, &whole, 12);
    check(&ended, Free, None, 0);
    assert_eq!(heard(&ended, &whole, 12), ended, "told again");
    // An upgrade whose money went back leaves the month below it.
    let months = [(Starter, 10, 40, 0), (Pro, 20, 50, 0)];
    let account = heard(&free(), &subscription("sub_1", 20, &months), 21);
    let months = [(Starter, 10, 40, 0), (Pro, 20, 50, 900)];
    check(&heard(&account, &subscription("sub_1", 20, &months), 21), Starter, Some((10, 40, 2_000)), 20);
}

#[test]
fn what_goes_back_of_any_month_of_a_stretch_counts_whenever_it_does() {
    let mut months = [(Starter, 10, 40, 0), (Pro, 25, 55, 0)];
    let mut account = heard(&free(), &subscription("sub_1", 25, &months), 25);
    check(&account, Pro, Some((10, 55, 11_000)), 25);
    // In parts, of the one and of the other, before and after the first month is over.
    for (month, returned, now, credits) in
        [(0, 300, 26, 10_334), (1, 450, 27, 5_334), (0, 900, 45, 5_000), (1, 600, 46, 3_334)]
    {
        months[month].3 = returned;
        let state = subscription("sub_1", 25, &months);
        account = again(&account, &state, now);
        check(&account, Pro, Some((10, 55, credits)), 25);
        assert_eq!(again(&account, &state, now + 1), account, "told again");
    }
}

#[test]
fn a_beginning_that_went_back_still_begins_what_follows() {
    let months = [(Starter, 10, 40, 900), (Pro, 20, 50, 900), (Starter, 30, 60, 0)];
    let account = heard(&free(), &subscription("sub_1", 30, &months), 31);
    check(&account, Starter, Some((10, 60, 2_000)), 30);
}

#[test]
fn as_long_as_a_plan_runs_no_other_subscription_touches_it() {
    let one = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
    let account = heard(&free(), &one, 10);
    for (from, end, returned) in [(12, 42, 0), (10, 40, 0), (12, 42, 900), (10, 40, 900)] {
        let two = subscription("sub_2", from, &[(Pro, from, end, returned)]);
        assert_eq!(heard(&account, &two, 13), account, "{from} {end} {returned}");
        // Nor does it when the first one ended, but it is noted: nobody may forget that it goes on.
        let stopped = Account { subscription: None, ..account.clone() };
        let noted = Account { subscription: Some("sub_2".to_owned()), ..account.clone() };
        assert_eq!(heard(&stopped, &two, 13), noted, "{from} {end} {returned}");
    }
    // Its own money goes back, though another one is the account's by now.
    let noted = Account { subscription: Some("sub_2".to_owned()), ..account.clone() };
    let back = subscription("sub_1", 10, &[(Starter, 10, 40, 900)]);
    let back = SubscriptionState { is_ended: true, ..back };
    let ended = again(&noted, &back, 13);
    assert_eq!((ended.plan, ended.paid, ended.subscription.as_deref()), (Free, None, Some("sub_2")));
    // Once it has run out, the other one counts, whichever was heard of before.
    let two = subscription("sub_2", 12, &[(Pro, 42, 72, 0)]);
    check(&heard(&account, &two, 42), Pro, Some((42, 72, 10_000)), 12);
    check(&heard(&noted, &two, 42), Pro, Some((42, 72, 10_000)), 12);
    // The month that was given beside the plan is not given again.
    let both = subscription("sub_2", 41, &[(Pro, 12, 42, 0), (Pro, 41, 71, 0)]);
    let mut sold: Vec<Sold<'_>> = both.invoices.iter().map(|one| sold(one, OrderState::Open)).collect();
    sold[0].aside = Some(Order { state: OrderState::Fulfilled, ..order(Pro) });
    check(&after(&account, &both, &sold, day(41)), Pro, Some((41, 71, 10_000)), 41);
}

#[test]
fn the_next_month_may_be_heard_of_a_moment_before_it_begins() {
    let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 10);
    let next = subscription("sub_1", 10, &[(Starter, 40, 70, 0)]);
    let sold: Vec<Sold<'_>> = next.invoices.iter().map(|one| sold(one, OrderState::Open)).collect();
    let before = Timestamp::from_millis(day(40).as_millis() - 1_000);
    check(&after(&account, &next, &sold, before), Starter, Some((40, 70, 2_000)), 10);
}

#[test]
fn a_successor_goes_on_with_what_it_replaces() {
    let one = subscription("sub_1", 10, &[(Starter, 10, 40, 0)]);
    let two = subscription("sub_2", 25, &[(Pro, 25, 55, 0), (Starter, 10, 40, 0)]);
    let two = SubscriptionState { replaces: Some("sub_1".to_owned()), ..two };
    let account = heard(&heard(&free(), &one, 13), &two, 25);
    check(&account, Pro, Some((10, 55, 11_000)), 25);
    assert_eq!(account.subscription.as_deref(), Some("sub_2"));
}

#[test]
fn what_goes_back_once_its_month_is_over_opens_no_other_month() {
    let options = AccountsOptions::default();
    let account = heard(&free(), &subscription("sub_1", 10, &[(Starter, 10, 40, 0)]), 11);
    let grace = Standing::of(&account, &options, day(41));
    let ended = again(&account, &subscription("sub_1", 10, &[(Starter, 10, 40, 900)]), 41);
    assert_eq!((ended.plan, ended.paid), (Free, None));
    assert_eq!(
        Standing::of(&ended, &options, day(41)).terms(),
        grace.terms(),
        "what was used in it stays used"
    );
    // The same goes for a renewal that is given in that month, and goes back with all that was before it.
    let months = [(Starter, 10, 40, 0), (Starter, 40, 70, 0)];
    let renewed = again(&account, &subscription("sub_1", 10, &months), 42);
    let months = [(Starter, 10, 40, 900), (Starter, 40, 70, 900)];
    let ended = again(&renewed, &subscription("sub_1", 10, &months), 43);
    assert_eq!(Standing::of(&ended, &options, day(43)).terms(), grace.terms());
}

proptest! {
    #[test]
    fn a_plan_whose_money_went_back_whole_leaves_the_month_before_it(
        begun in 1..200_i64,
        changed in prop::option::of(1..30_i64),
        waited in 0..30_i64,
        parts in prop::collection::vec(1..900_u64, 0..3),
    ) {
        let options = AccountsOptions::default();
        let mut months = vec![(Starter, begun, begun + 30, 0)];
        months.extend(changed.map(|later| (Pro, begun + later, begun + later + 30, 0)));
        let anchor = months.last().unwrap().1;
        let now = anchor + waited;
        let mut account = free();
        for told in 1..=months.len() {
            account = heard(&account, &subscription("sub_1", months[told - 1].1, &months[..told]), months[told - 1].1);
        }
        prop_assert!(account.paid.is_some());
        for returned in parts.into_iter().chain([900]) {
            for month in &mut months {
                month.3 = month.3.max(returned);
            }
            account = again(&account, &subscription("sub_1", anchor, &months), now);
        }
        let (before, after) = (Standing::of(&free(), &options, day(now)), Standing::of(&account, &options, day(now)));
        prop_assert_eq!(after.terms(), before.terms(), "the same bucket, with what was used in it");
        prop_assert_eq!(after, before);
    }
}
