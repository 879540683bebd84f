//! What is left of an account's credits (specification 2.7).

use super::{Accounts, Refused, Standing, Visit};
use crate::{
    directory::{Account, Plan},
    error::Result,
    ledger::{BalanceSince, Pool, PoolBalance},
    time::Timestamp,
};

/// An account's credits at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// The plan by which the account is treated.
    pub plan: Plan,
    /// What can be spent now.
    pub remaining: u64,
    /// The plan's credits for the period, and the purchased ones that it began with or that were added since,
    /// without what was taken back.
    pub total: u64,
    /// When the plan's credits come back.
    pub resets_at: Timestamp,
}

/// The account as its owner sees it (specification 2.7).
#[derive(Clone, PartialEq, Eq)]
pub struct Profile {
    /// The e-mail address.
    pub email: String,
    /// The credits.
    pub credits: Credits,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Whose address it is stays out of logs.
        f.debug_struct("Profile").field("credits", &self.credits).finish_non_exhaustive()
    }
}

impl Accounts {
    /// The account of a visitor.
    ///
    /// # Errors
    /// [`Refused::Internal`].
    pub async fn me(&self, visit: Visit) -> Result<Profile, Refused> {
        let account = visit.caller().account.clone();
        let credits = self.credits(&account).await.map_err(|error| Refused::store(&error))?;
        Ok(Profile { email: account.email, credits })
    }

    /// An account's credits now.
    ///
    /// # Errors
    /// The ledger's faults.
    pub async fn credits(&self, account: &Account) -> Result<Credits> {
        let (accounts, account) = (self.clone(), account.clone());
        self.parts.transcripts.task(async move { accounts.credits_here(&account).await }).await?
    }

    /// As [`Accounts::credits`], on the engine's runtime.
    pub(super) async fn credits_here(&self, account: &Account) -> Result<Credits> {
        let standing = Standing::of(account, self.options(), self.parts.clock.now());
        let (terms, since) = (standing.terms(), standing.period.start);
        let balance = || self.parts.ledger.balance_since(&account.wallet, &terms, since);
        let found = crate::engine::retry::persistently(self.parts.transcripts.patience(), balance).await?;
        Ok(credits(&standing, &found))
    }
}

/// The credits of an account that stands like this.
pub(super) fn credits(standing: &Standing, found: &BalanceSince) -> Credits {
    let purchased = found.balance.pools.iter().find(|pool| pool.pool == Pool::Purchased);
    let (granted, spent) = purchased.map_or((0, 0), |pool: &PoolBalance| (pool.granted, pool.spent));
    // What was spent before the period is no part of it.
    let earlier = spent.saturating_sub(found.purchased_spent);
    Credits {
        plan: standing.plan,
        remaining: found.balance.available(),
        total: standing.plan_credits.saturating_add(granted.saturating_sub(earlier)),
        resets_at: standing.period.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        accounts::{Month, PlanState},
        ids::WalletId,
        ledger::Balance,
    };

    /// Remaining and total of an account with a plan of 10 credits.
    fn figures(used: u64, [granted, spent, held, lately]: [u64; 4]) -> (u64, u64) {
        let (start, end) = (Timestamp::from_millis(0), Timestamp::from_millis(9));
        let standing = Standing {
            plan: Plan::Free,
            state: PlanState::Free,
            requests_per_minute: 1,
            period: Month { start, end },
            plan_credits: 10,
        };
        let pool = |pool, spent, held, granted| PoolBalance { pool, spent, held, granted };
        let terms = standing.terms();
        let pools = vec![
            pool(terms.pools[0].clone(), used, 0, 0),
            pool(terms.pools[1].clone(), spent, held, granted),
        ];
        let balance = Balance { wallet: WalletId::new("w"), pools };
        let credits = credits(&standing, &BalanceSince { balance, purchased_spent: lately });
        (credits.remaining, credits.total)
    }

    #[test]
    fn the_total_is_what_the_period_began_with_and_got() {
        assert_eq!(figures(0, [0, 0, 0, 0]), (10, 10));
        assert_eq!(figures(4, [0, 0, 0, 0]), (6, 10));
        // Of 100 that were bought 30 were spent: 10 of them lately.
        assert_eq!(figures(10, [100, 30, 0, 10]), (70, 10 + 80));
        assert_eq!(figures(10, [100, 30, 5, 10]), (65, 10 + 80));
        // A limit that was lowered below what is used leaves nothing, and owes nothing.
        assert_eq!(figures(12, [3, 0, 0, 0]), (3, 13));
    }
}
