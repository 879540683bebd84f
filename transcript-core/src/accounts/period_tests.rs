//! Property test of credits across period boundaries, against a slow and simple oracle.
//!
//! The oracle walks the calendar day by day and adds up all events on every query.

use std::time::Duration;

use jiff::{ToSpan, civil};
use proptest::prelude::*;

use super::{AccountsOptions, EffectivePlan, PlanPayment, PlanState, apply_payments, usage::credits};
use crate::{
    directory::{Account, Plan},
    ids::{AccountId, GrantId, HoldId, WalletId},
    ledger::{GrantRequest, HoldOutcome, HoldRequest, Ledger, Leg},
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

/// The month of `anchor` that contains `now`, found by walking day by day.
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

/// The action of a step.
#[derive(Clone, Copy, Debug)]
enum PeriodAction {
    Spend(u64),
    Grant(u64),
    /// Pays for a month of the plan: the next one, or a first one.
    Pay,
}

/// How the clock moves before a step.
#[derive(Clone, Copy, Debug)]
enum PeriodStep {
    /// By this many milliseconds, also backwards.
    By(i64),
    /// To this many milliseconds from the end of the current period.
    ToEnd(i64),
    /// To this many days after the end of the last paid month: the renewal is late.
    Late(i64),
}

fn steps() -> impl Strategy<Value = Vec<(PeriodStep, PeriodAction)>> {
    let day = 86_400_000_i64;
    let movement = prop_oneof![
        3 => (-40 * day..40 * day).prop_map(PeriodStep::By),
        2 => (0..3 * day).prop_map(PeriodStep::By),
        3 => prop::sample::select(vec![-1, 0, 1, day]).prop_map(PeriodStep::ToEnd),
        1 => (0..9_i64).prop_map(PeriodStep::Late),
    ];
    let action = prop_oneof![
        4 => (1..30_u64).prop_map(PeriodAction::Spend),
        1 => (1..40_u64).prop_map(PeriodAction::Grant),
        2 => Just(PeriodAction::Pay),
    ];
    prop::collection::vec((movement, action), 1..30)
}

/// Used credits: the start of their month (`None` for purchased ones), the time of use, the amount.
type PeriodUsage = (Option<Timestamp>, Timestamp, u64);

/// All events, and the state that follows from them at any time.
#[derive(Debug)]
struct Oracle {
    anchor: Timestamp,
    /// The paid months, in the order of payment.
    paid: Vec<(Timestamp, Timestamp)>,
    used: Vec<PeriodUsage>,
    purchased: u64,
}

impl Oracle {
    /// The period at `now`, its credits and the plan state.
    fn period(&self, now: Timestamp) -> ((Timestamp, Timestamp), u64, PlanState) {
        match self.paid.last() {
            Some(paid) if now < paid.1 => (*paid, STARTER, PlanState::Paid),
            Some((_, through)) if now < through.plus(GRACE) => {
                (month(self.anchor, now), FREE, PlanState::Grace)
            }
            _ => (month(self.anchor, now), FREE, PlanState::Free),
        }
    }

    /// Plan credits left, purchased credits left, the total, and the start of the next period.
    fn credits(&self, now: Timestamp) -> (u64, u64, u64, Timestamp) {
        let ((start, end), plan, _) = self.period(now);
        let sum = |counts: &dyn Fn(&PeriodUsage) -> bool| -> u64 {
            self.used.iter().filter(|used| counts(used)).map(|(_, _, amount)| amount).sum()
        };
        let plan_left = plan.saturating_sub(sum(&|(of, _, _)| *of == Some(start)));
        let purchased_left = self.purchased - sum(&|(of, _, _)| of.is_none());
        let earlier = sum(&|(of, when, _)| of.is_none() && *when < start);
        (plan_left, purchased_left, plan + self.purchased - earlier, end)
    }

    fn spend(&mut self, amount: u64, now: Timestamp) -> bool {
        let (plan_left, purchased_left, _, _) = self.credits(now);
        if plan_left + purchased_left < amount {
            return false;
        }
        let ((start, _), _, _) = self.period(now);
        let first = amount.min(plan_left);
        self.used.push((Some(start), now, first));
        self.used.push((None, now, amount - first));
        true
    }

    /// The month that a payment at `now` pays for; `None` while the last one still runs.
    fn pay(&mut self, now: Timestamp) -> Option<PlanPayment> {
        let from = match self.paid.last() {
            Some((_, through)) if now < *through => return None,
            // Late, but within the grace: it pays the month that it is late for.
            Some((_, through)) if now < through.plus(GRACE) => *through,
            _ => now,
        };
        if month(self.anchor, from).0 != from || from < self.anchor {
            self.anchor = from;
        }
        let (_, through) = month(self.anchor, from);
        self.paid.push((from, through));
        let (plan, credits, refunded_credits) = (Plan::Starter, STARTER, 0);
        Some(PlanPayment { plan, credits, refunded_credits, from, through })
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
        prepaid_until: None,
    }
}

/// Anchors on days that are edge cases of month arithmetic.
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

async fn run_steps(anchor: Timestamp, steps: Vec<(PeriodStep, PeriodAction)>) -> Result<(), TestCaseError> {
    let (ledger, options) = (MemoryLedger::default(), options());
    let (mut account, mut payments) = (account(anchor), Vec::new());
    let mut oracle = Oracle { anchor, paid: Vec::new(), used: Vec::new(), purchased: 0 };
    let mut now = anchor;
    for (step, (movement, action)) in steps.into_iter().enumerate() {
        let (base, by) = match movement {
            PeriodStep::By(by) => (now, by),
            PeriodStep::ToEnd(by) => (oracle.period(now).0.1, by),
            PeriodStep::Late(days) => (oracle.paid.last().map_or(now, |paid| paid.1), days * 86_400_000),
        };
        now = Timestamp::from_millis(base.as_millis() + by).max(anchor);
        let effective_plan = EffectivePlan::new(&account, &options, now);
        match action {
            PeriodAction::Grant(amount) => {
                let (id, wallet) = (GrantId::new(format!("g{step}")), account.wallet.clone());
                let grant = GrantRequest { id, wallet, amount, now, memo: String::new() };
                let _ = ledger.grant(grant).await.unwrap();
                oracle.purchased += amount;
            }
            PeriodAction::Spend(amount) => {
                let leg = Leg { wallet: account.wallet.clone(), terms: effective_plan.terms(), amount };
                let request = HoldRequest {
                    id: HoldId::new(format!("h{step}")),
                    legs: vec![leg],
                    now,
                    expires_at: now.plus(DAY),
                    memo: String::new(),
                };
                let spent = matches!(ledger.spend(request).await.unwrap(), HoldOutcome::Held { .. });
                prop_assert_eq!(spent, oracle.spend(amount, now), "step {}: {} at {}", step, amount, now);
            }
            PeriodAction::Pay => {
                payments.extend(oracle.pay(now));
                account = apply_payments(&account, &payments, now);
            }
        }
        let effective_plan = EffectivePlan::new(&account, &options, now);
        let terms = effective_plan.terms();
        let found = ledger.balance_since(&account.wallet, &terms, effective_plan.period.start).await.unwrap();
        let found = credits(&effective_plan, &found);
        let (plan_left, purchased_left, total, resets_at) = oracle.credits(now);
        let expect = (plan_left + purchased_left, total, resets_at, oracle.period(now).2);
        prop_assert_eq!(
            (found.remaining, found.total, found.resets_at, effective_plan.state),
            expect,
            "step {}, {:?} at {}",
            step,
            action,
            now
        );
        prop_assert!(found.remaining <= found.total || effective_plan.plan_credits < STARTER);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn credits_random_history_matches_oracle(anchor in anchors(), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run_steps(anchor, steps))?;
    }
}
