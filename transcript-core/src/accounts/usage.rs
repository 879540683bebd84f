//! The credit balance of an account (specification 2.7).

use std::sync::Arc;

use super::{AccountCredits, EffectivePlan, RequestGuard, V1Error};
use crate::{
    debug_fields,
    directory::{Account, Plan},
    error::Result,
    ledger::{PeriodBalance, Pool, PoolBalance},
    time::Timestamp,
};

/// The credits of an account at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditBalance {
    /// The effective plan.
    pub plan: Plan,
    /// The credits that can be spent now.
    pub remaining: u64,
    /// The plan's credits for the period plus the purchased ones.
    ///
    /// Purchased credits are those at the start of the period or added since, without revoked ones.
    pub total: u64,
    /// When the plan's credits renew.
    pub resets_at: Timestamp,
}

/// The account for its owner (specification 2.7).
#[derive(Clone, PartialEq, Eq)]
pub struct Profile {
    /// The email address.
    pub email: String,
    /// The credits.
    pub credits: CreditBalance,
}

// Addresses stay out of logs.
debug_fields!(Profile { credits });

impl AccountCredits {
    /// The account of a request.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn profile(self: &Arc<Self>, guard: RequestGuard) -> Result<Profile, V1Error> {
        let (account_credits, account) = (Arc::clone(self), guard.caller().account.clone());
        let work = async move {
            let balance = account_credits.balance(&account).await;
            let credits = balance.map_err(V1Error::from_store_error)?;
            Ok(Profile { email: account.email, credits })
        };
        self.context.task(work).await
    }

    /// The credits of an account now.
    pub(super) async fn balance(&self, account: &Account) -> Result<CreditBalance> {
        let effective_plan = self.context.effective_plan(account, self.context.now());
        let (terms, since) = (effective_plan.terms(), effective_plan.period.start);
        let balance = || self.ledger.balance_since(&account.wallet, &terms, since);
        Ok(credits(&effective_plan, &self.context.retry_store(balance).await?))
    }
}

/// Computes the credits of an account from its plan and ledger balance.
pub(super) fn credits(effective_plan: &EffectivePlan, found: &PeriodBalance) -> CreditBalance {
    let purchased = found.balance.pools.iter().find(|pool| pool.pool == Pool::Purchased);
    let (granted, spent) = purchased.map_or((0, 0), |pool: &PoolBalance| (pool.granted, pool.spent));
    // Purchased credits spent before the period do not count.
    let spent_before = spent.saturating_sub(found.purchased_spent);
    CreditBalance {
        plan: effective_plan.plan,
        remaining: found.balance.available(),
        total: effective_plan.plan_credits.saturating_add(granted.saturating_sub(spent_before)),
        resets_at: effective_plan.period.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        accounts::{BillingMonth, PlanState},
        ids::WalletId,
        ledger::Balance,
    };

    /// Remaining and total of an account with a plan of 10 credits.
    fn remaining_and_total(used: u64, [granted, spent, held, spent_in_period]: [u64; 4]) -> (u64, u64) {
        let (start, end) = (Timestamp::from_millis(0), Timestamp::from_millis(9));
        let effective_plan = EffectivePlan {
            plan: Plan::Free,
            state: PlanState::Free,
            requests_per_minute: 1,
            period: BillingMonth { start, end },
            plan_credits: 10,
        };
        let pool = |pool, spent, held, granted| PoolBalance { pool, spent, held, granted };
        let terms = effective_plan.terms();
        let pools = vec![
            pool(terms.pools[0].clone(), used, 0, 0),
            pool(terms.pools[1].clone(), spent, held, granted),
        ];
        let balance = Balance { wallet: WalletId::new("w"), pools };
        let credits = credits(&effective_plan, &PeriodBalance { balance, purchased_spent: spent_in_period });
        (credits.remaining, credits.total)
    }

    #[test]
    fn credit_balance_total_counts_period_start_and_grants() {
        assert_eq!(remaining_and_total(0, [0, 0, 0, 0]), (10, 10));
        assert_eq!(remaining_and_total(4, [0, 0, 0, 0]), (6, 10));
        // Of 100 purchased credits 30 were spent, 10 of them in this period.
        assert_eq!(remaining_and_total(10, [100, 30, 0, 10]), (70, 10 + 80));
        assert_eq!(remaining_and_total(10, [100, 30, 5, 10]), (65, 10 + 80));
        // A limit lowered below the used credits leaves 0 and creates no debt.
        assert_eq!(remaining_and_total(12, [3, 0, 0, 0]), (3, 13));
    }
}
