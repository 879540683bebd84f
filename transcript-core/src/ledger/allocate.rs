//! Divides amounts over pools: pure functions that all ledger implementations share.

use super::{Pool, PoolBalance};

/// Part of a hold that one pool covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolShare {
    /// The pool.
    pub pool: Pool,
    /// Held amount; never 0.
    pub amount: u64,
}

/// Division of a share when its hold is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledShare {
    /// The pool.
    pub pool: Pool,
    /// Spent part of the share.
    pub spent: u64,
    /// Returned part of the share.
    pub returned: u64,
}

/// Result of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevokedAmount {
    /// Revoked credits.
    pub taken: u64,
    /// Requested credits that are not available.
    pub shortfall: u64,
}

/// Divides an amount over pools in their order; `None` if all of them together cannot cover it.
///
/// A pool that contributes nothing has no share, so an amount of 0 has no shares.
///
/// ```
/// use transcript_core::ledger::{Pool, PoolBalance, allocate::allocate};
///
/// let month = Pool::Allowance { bucket: "month/2026-11".to_owned(), limit: 5 };
/// let bought = PoolBalance { granted: 10, ..PoolBalance::unused(Pool::Purchased) };
/// let pools = [PoolBalance::unused(month), bought];
///
/// let shares = allocate(&pools, 8).unwrap();
/// assert_eq!(shares.iter().map(|share| share.amount).collect::<Vec<_>>(), [5, 3]);
/// assert_eq!(allocate(&pools, 16), None);
/// ```
pub fn allocate(pools: &[PoolBalance], amount: u64) -> Option<Vec<PoolShare>> {
    let mut rest = amount;
    let mut shares = Vec::new();
    for pool in pools {
        let amount = pool.available().min(rest);
        if amount > 0 {
            shares.push(PoolShare { pool: pool.pool.clone(), amount });
            rest -= amount;
        }
    }
    (rest == 0).then_some(shares)
}

/// Spends an amount from the shares of a leg in their order and returns the rest.
///
/// `None` if the amount exceeds the sum of the shares.
pub fn settle(shares: &[PoolShare], spent: u64) -> Option<Vec<SettledShare>> {
    let mut rest = spent;
    let mut settled = Vec::with_capacity(shares.len());
    for share in shares {
        let spent = share.amount.min(rest);
        rest -= spent;
        settled.push(SettledShare { pool: share.pool.clone(), spent, returned: share.amount - spent });
    }
    (rest == 0).then_some(settled)
}

/// Computes how much of a grant a revocation takes.
///
/// `reclaimed` is the sum of what earlier revocations of the same grant took and of their shortfalls. A shortfall
/// counts as reclaimed, because a later revocation would otherwise collect it.
pub fn revoke_amount(granted: u64, reclaimed: u64, wanted: u64, available: u64) -> RevokedAmount {
    let wanted = wanted.min(granted.saturating_sub(reclaimed));
    let taken = wanted.min(available);
    RevokedAmount { taken, shortfall: wanted - taken }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(bucket: &str, limit: u64, spent: u64, held: u64) -> PoolBalance {
        let pool = Pool::Allowance { bucket: bucket.to_owned(), limit };
        PoolBalance { pool, spent, held, granted: 0 }
    }

    #[test]
    fn allocate_uses_pools_in_order() {
        let pools = [pool("a", 5, 1, 1), pool("b", 2, 2, 0), pool("c", 1, 3, 0), pool("d", 9, 0, 0)];
        let check = |amount: u64, expect: Option<&[(&str, u64)]>| {
            let shares = allocate(&pools, amount);
            let shares: Option<Vec<_>> = shares.as_ref().map(|shares| {
                shares.iter().map(|share| (share.pool.bucket().unwrap(), share.amount)).collect()
            });
            assert_eq!(shares.as_deref(), expect, "{amount}");
        };
        check(0, Some(&[]));
        check(3, Some(&[("a", 3)]));
        check(4, Some(&[("a", 3), ("d", 1)]));
        check(12, Some(&[("a", 3), ("d", 9)]));
        check(13, None);
        check(u64::MAX, None);
    }

    #[test]
    fn settle_spends_shares_in_order() {
        let share = |bucket: &str, amount| PoolShare { pool: pool(bucket, 9, 0, 0).pool, amount };
        let shares = [share("a", 3), share("b", 2)];
        let check = |spent: u64, expect: Option<&[(u64, u64)]>| {
            let settled = settle(&shares, spent);
            let settled: Option<Vec<_>> =
                settled.map(|all| all.iter().map(|one| (one.spent, one.returned)).collect());
            assert_eq!(settled.as_deref(), expect, "{spent}");
        };
        check(0, Some(&[(0, 3), (0, 2)]));
        check(4, Some(&[(3, 0), (1, 1)]));
        check(5, Some(&[(3, 0), (2, 0)]));
        check(6, None);
    }

    #[test]
    fn revoke_amount_is_limited_by_grant_and_balance() {
        let check = |granted, reclaimed, wanted, available, taken, shortfall| {
            let expect = RevokedAmount { taken, shortfall };
            assert_eq!(revoke_amount(granted, reclaimed, wanted, available), expect);
        };
        check(10, 0, 4, 10, 4, 0);
        check(10, 0, 40, 100, 10, 0);
        check(10, 0, 10, 3, 3, 7);
        check(10, 10, 5, 100, 0, 0);
        check(10, 8, 5, 0, 0, 2);
    }
}
