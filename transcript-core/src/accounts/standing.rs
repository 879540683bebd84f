//! What an account has at a moment: pure functions of the account, the settings and the time.

use super::{AccountsOptions, Month};
use crate::{
    directory::{Account, PaidPeriod, Plan},
    ledger::{Pool, Terms},
    time::Timestamp,
};

/// How an account stands with its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanState {
    /// The free plan, or one that ran out.
    Free,
    /// The plan is paid for now.
    Paid,
    /// The plan's next invoice is overdue: its rate limit stays, its credits do not.
    Grace,
}

/// What an account has at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The plan whose name is shown and whose rate limit applies; the free one once a paid one has run out.
    pub plan: Plan,
    /// How it stands with that plan.
    pub state: PlanState,
    /// Requests in any 60 seconds.
    pub requests_per_minute: u32,
    /// The period of the plan's credits; its end is the next reset.
    pub period: Month,
    /// The plan's credits for this period.
    pub plan_credits: u64,
}

impl Standing {
    /// What an account has at a moment.
    ///
    /// - While a period is paid for: the plan, and the credits that were sold with the period.
    /// - For `options.grace` after that, while there is a subscription that may yet be paid: the plan's name
    ///   and rate limit, and the free plan's credits in a month that begins where the paid period ended.
    /// - Otherwise the free plan.
    pub fn of(account: &Account, options: &AccountsOptions, now: Timestamp) -> Self {
        let free = options.plans.of(Plan::Free);
        let (state, period, plan_credits) = match account.paid.filter(|_| account.plan != Plan::Free) {
            Some(PaidPeriod { from, through, credits, .. }) if now < through => {
                (PlanState::Paid, Month { start: from, end: through }, credits)
            }
            Some(PaidPeriod { through, .. })
                if account.subscription.is_some() && now < through.plus(options.grace) =>
            {
                (PlanState::Grace, Month::of(account.anchor, now), free.credits)
            }
            _ => (PlanState::Free, Month::of(account.anchor, now), free.credits),
        };
        let plan = if state == PlanState::Free { Plan::Free } else { account.plan };
        let requests_per_minute = options.plans.of(plan).requests_per_minute;
        Self { plan, state, requests_per_minute, period, plan_credits }
    }

    /// The pools that may be spent: the plan's credits first, then what was bought.
    pub fn terms(&self) -> Terms {
        let plan = Pool::Allowance { bucket: self.period.bucket(), limit: self.plan_credits };
        Terms { pools: vec![plan, Pool::Purchased], resets_at: Some(self.period.end) }
    }
}
