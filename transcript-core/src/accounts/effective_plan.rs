//! The effective plan of an account: pure functions of account, settings and time.

use super::{AccountsOptions, BillingMonth};
use crate::{
    directory::{Account, PaidPeriod, Plan},
    ledger::{Pool, Terms},
    time::Timestamp,
};

/// The payment state of an account's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanState {
    /// The free plan, also after a paid one ran out.
    Free,
    /// The current period is paid.
    Paid,
    /// The plan's next invoice is overdue: its rate limit stays, its credits do not.
    Grace,
}

/// Plan, credits and limits of an account at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectivePlan {
    /// The plan that is shown and whose rate limit applies; the free one after a paid one ran out.
    pub plan: Plan,
    /// The payment state of that plan.
    pub state: PlanState,
    /// Requests in any 60 seconds.
    pub requests_per_minute: u32,
    /// The period of the plan's credits; they reset at its end.
    pub period: BillingMonth,
    /// The plan's credits for this period.
    pub plan_credits: u64,
}

impl EffectivePlan {
    /// Computes the effective plan at `now`.
    ///
    /// - During a paid period: the plan, and the credits that were sold with the period.
    /// - For `options.grace` after it, while a subscription may still be paid: the plan's name and rate limit, and
    ///   the free plan's credits in a month that begins at the end of the paid period.
    /// - Otherwise: the free plan.
    pub fn new(account: &Account, options: &AccountsOptions, now: Timestamp) -> Self {
        let free = options.plans.terms(Plan::Free);
        let (state, period, plan_credits) = match account.paid.filter(|_| account.plan != Plan::Free) {
            Some(PaidPeriod { from, through, credits, .. }) if now < through => {
                (PlanState::Paid, BillingMonth { start: from, end: through }, credits)
            }
            Some(PaidPeriod { through, .. })
                if account.subscription.is_some() && now < through.plus(options.grace) =>
            {
                (PlanState::Grace, BillingMonth::new(account.anchor, now), free.credits)
            }
            _ => (PlanState::Free, BillingMonth::new(account.anchor, now), free.credits),
        };
        let plan = if state == PlanState::Free { Plan::Free } else { account.plan };
        let requests_per_minute = options.plans.terms(plan).requests_per_minute;
        Self { plan, state, requests_per_minute, period, plan_credits }
    }

    /// The pools that may be spent: the plan's credits first, then purchased credits.
    pub fn terms(&self) -> Terms {
        let plan = Pool::Allowance { bucket: self.period.bucket(), limit: self.plan_credits };
        Terms { pools: vec![plan, Pool::Purchased], resets_at: Some(self.period.end) }
    }
}
