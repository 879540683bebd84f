//! Credits across every boundary of time, beside an oracle that is slow and plain: it walks the calendar day by day,
//! and adds up everything that ever happened each time it is asked.

use std::time::Duration;

use jiff::{ToSpan, civil};
use proptest::prelude::*;

use super::{AccountsOptions, PlanPayment, PlanState, Standing, after_payments, usage::credits};
use crate::{
    directory::{Account, Plan},
    ids::{AccountId, GrantId, HoldId, WalletId},
    ledger::{Grant, HoldOutcome, HoldRequest, Ledger, Leg},
    memory::MemoryLedger,
    time::Timestamp,
};

const DAY: Duration = Duration::from_secs(24 * 3_600);
const GRACE: Duration = Duration::from_secs(7 * 24 * 3_600);
const FREE: u64 = 20;
const STARTER: u64 = 70;

fn at(text: &str) -> Timestamp {
    Timestamp::from_civil(text.parse().unwrap())
}

/// The month of `anchor` in which a moment lies, found by walking from day to day.
fn month(anchor: Timestamp, now: Timestamp) -> (Timestamp, Timestamp) {
    let first = anchor.civil();
    let (mut day, mut start) = (first.date(), anchor);
    loop {
        day = day.checked_add(1.day()).unwrap();
        let last_of_month = day.day() == day.days_in_month();
        if day.day() == first.day() || (last_of_month && day.day() < first.day()) {
            let next = Timestamp::from_civil(civil::DateTime::from_parts(day, first.time()));
            if now < next {
                return (start, next);
            }
            start = next;
        }
    }
}

/// What happens at a step.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Spend(u64),
    Grant(u64),
    /// A month of the plan is paid: the one that follows, or a first one.
    Pay,
}

/// Where the clock goes before a step.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// By so many milliseconds, also backwards.
    By(i64),
    /// To so many milliseconds beside the next end of a period.
    ToEnd(i64),
    /// To the end of the last paid month and so many days later: the renewal is late.
    Late(i64),
}

fn steps() -> impl Strategy<Value = Vec<(Move, Deed)>> {
    let day = 86_400_000_i64;
    let to = prop_oneof![
        3 => (-40 * day..40 * day).prop_map(Move::By),
        2 => (0..3 * day).prop_map(Move::By),
        3 => prop::sample::select(vec![-1, 0, 1, day]).prop_map(Move::ToEnd),
        1 => (0..9_i64).prop_map(Move::Late),
    ];
    let deed = prop_oneof![
        4 => (1..30_u64).prop_map(Deed::Spend),
        1 => (1..40_u64).prop_map(Deed::Grant),
        2 => Just(Deed::Pay),
    ];
    prop::collection::vec((to, deed), 1..30)
}

/// Credits that were used: of which month, or none for bought ones; when, and how many.
type Used = (Option<Timestamp>, Timestamp, u64);

/// Everything that ever happened, and what it makes of a moment.
#[derive(Debug)]
struct Oracle {
    anchor: Timestamp,
    /// The paid months, in the order in which they were paid.
    paid: Vec<(Timestamp, Timestamp)>,
    used: Vec<Used>,
    bought: u64,
}

impl Oracle {
    /// The period at a moment, its credits, and how the account stands.
    fn period(&self, now: Timestamp) -> ((Timestamp, Timestamp), u64, PlanState) {
        match self.paid.last() {
            Some(paid) if now < paid.1 => (*paid, STARTER, PlanState::Paid),
            Some((_, through)) if now < through.plus(GRACE) => {
                (month(self.anchor, now), FREE, PlanState::Grace)
            }
            _ => (month(self.anchor, now), FREE, PlanState::Free),
        }
    }

    /// What is left, of the plan and of what was bought; what there was in all; when the next period begins.
    fn credits(&self, now: Timestamp) -> (u64, u64, u64, Timestamp) {
        let ((start, end), plan, _) = self.period(now);
        let sum = |counts: &dyn Fn(&Used) -> bool| -> u64 {
            self.used.iter().filter(|used| counts(used)).map(|(_, _, amount)| amount).sum()
        };
        let of_plan = plan.saturating_sub(sum(&|(of, _, _)| *of == Some(start)));
        let of_bought = self.bought - sum(&|(of, _, _)| of.is_none());
        let earlier = sum(&|(of, when, _)| of.is_none() && *when < start);
        (of_plan, of_bought, plan + self.bought - earlier, end)
    }

    fn spend(&mut self, amount: u64, now: Timestamp) -> bool {
        let (of_plan, of_bought, _, _) = self.credits(now);
        if of_plan + of_bought < amount {
            return false;
        }
        let ((start, _), _, _) = self.period(now);
        let first = amount.min(of_plan);
        self.used.push((Some(start), now, first));
        self.used.push((None, now, amount - first));
        true
    }

    /// The month that a payment pays for now; none where the last one goes on.
    fn pay(&mut self, now: Timestamp) -> Option<PlanPayment> {
        let from = match self.paid.last() {
            Some((_, through)) if now < *through => return None,
            // Late, but not too late: the month that it is late for.
            Some((_, through)) if now < through.plus(GRACE) => *through,
            _ => now,
        };
        if month(self.anchor, from).0 != from || from < self.anchor {
            self.anchor = from;
        }
        let (_, through) = month(self.anchor, from);
        self.paid.push((from, through));
        let (plan, credits, credits_back) = (Plan::Starter, STARTER, 0);
        Some(PlanPayment { plan, credits, credits_back, from, through })
    }
}

fn options() -> AccountsOptions {
    let mut options = AccountsOptions { grace: GRACE, ..AccountsOptions::default() };
    options.plans.free.credits = FREE;
    options.plans.starter.credits = STARTER;
    options
}

fn account(anchor: Timestamp) -> Account {
    Account {
        id: AccountId::new("a"),
        version: 1,
        email: "ann@example.org".to_owned(),
        wallet: WalletId::new("w"),
        plan: Plan::Free,
        anchor,
        paid: None,
        customer: None,
        subscription: Some("sub".to_owned()),
        blocked: false,
    }
}

/// Days on which months are hard to count.
fn anchors() -> impl Strategy<Value = Timestamp> {
    prop::sample::select(vec![
        at("2027-01-31T10:00:00"),
        at("2027-01-30T00:00:00"),
        at("2028-01-29T23:59:59.999"),
        at("2028-02-29T12:00:00"),
        at("2027-12-31T23:59:59.999"),
        at("2027-02-28T00:00:00"),
        at("2027-08-31T06:30:00.5"),
        at("2027-03-01T00:00:00"),
    ])
}

async fn play(anchor: Timestamp, steps: Vec<(Move, Deed)>) -> Result<(), TestCaseError> {
    let (ledger, options) = (MemoryLedger::default(), options());
    let (mut account, mut payments) = (account(anchor), Vec::new());
    let mut oracle = Oracle { anchor, paid: Vec::new(), used: Vec::new(), bought: 0 };
    let mut now = anchor;
    for (place, (to, deed)) in steps.into_iter().enumerate() {
        let (base, by) = match to {
            Move::By(by) => (now, by),
            Move::ToEnd(by) => (oracle.period(now).0.1, by),
            Move::Late(days) => (oracle.paid.last().map_or(now, |paid| paid.1), days * 86_400_000),
        };
        now = Timestamp::from_millis(base.as_millis() + by).max(anchor);
        let standing = Standing::of(&account, &options, now);
        match deed {
            Deed::Grant(amount) => {
                let (id, wallet) = (GrantId::new(format!("g{place}")), account.wallet.clone());
                ledger.grant(Grant { id, wallet, amount, now, memo: String::new() }).await.unwrap();
                oracle.bought += amount;
            }
            Deed::Spend(amount) => {
                let leg = Leg { wallet: account.wallet.clone(), terms: standing.terms(), amount };
                let ask = HoldRequest {
                    id: HoldId::new(format!("h{place}")),
                    legs: vec![leg],
                    now,
                    expires_at: now.plus(DAY),
                    memo: String::new(),
                };
                let spent = matches!(ledger.spend(ask).await.unwrap(), HoldOutcome::Held { .. });
                prop_assert_eq!(spent, oracle.spend(amount, now), "step {}: {} at {}", place, amount, now);
            }
            Deed::Pay => {
                payments.extend(oracle.pay(now));
                account = after_payments(&account, &payments, now);
            }
        }
        let standing = Standing::of(&account, &options, now);
        let terms = standing.terms();
        let found = ledger.balance_since(&account.wallet, &terms, standing.period.start).await.unwrap();
        let told = credits(&standing, &found);
        let (of_plan, of_bought, total, resets_at) = oracle.credits(now);
        let expect = (of_plan + of_bought, total, resets_at, oracle.period(now).2);
        prop_assert_eq!(
            (told.remaining, told.total, told.resets_at, standing.state),
            expect,
            "step {}, {:?} at {}",
            place,
            deed,
            now
        );
        prop_assert!(told.remaining <= told.total || standing.plan_credits < STARTER);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn credits_are_what_the_calendar_and_the_deeds_make_of_them(anchor in anchors(), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(play(anchor, steps))?;
    }
}
