//! The ledger's arithmetic: which pool gives how much, as pure functions that every ledger can share.

use super::{Pool, PoolBalance};

/// What one pool gives to a leg of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The pool.
    pub pool: Pool,
    /// How much is held in it; never 0.
    pub amount: u64,
}

/// How a share ends when its hold is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledShare {
    /// The pool.
    pub pool: Pool,
    /// How much of the share is spent.
    pub spent: u64,
    /// How much of it is returned.
    pub returned: u64,
}

/// What a revocation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// How many credits it takes.
    pub taken: u64,
    /// How many it wants and does not find.
    pub shortfall: u64,
}

/// Takes an amount from pools in their order; none when all of them together cannot cover it.
///
/// A pool that gives nothing has no share, so an amount of 0 gives no shares.
///
/// ```
/// use transcript_core::ledger::{Pool, PoolBalance, allocate::allocate};
///
/// let month = Pool::Allowance { bucket: "month/2026-11".to_owned(), limit: 5 };
/// let bought = PoolBalance { granted: 10, ..PoolBalance::fresh(Pool::Purchased) };
/// let pools = [PoolBalance::fresh(month), bought];
///
/// let shares = allocate(&pools, 8).unwrap();
/// assert_eq!(shares.iter().map(|share| share.amount).collect::<Vec<_>>(), [5, 3]);
/// assert_eq!(allocate(&pools, 16), None);
/// ```
pub fn allocate(pools: &[PoolBalance], amount: u64) -> Option<Vec<Share>> {
    let mut rest = amount;
    let mut shares = Vec::new();
    for pool in pools {
        let amount = pool.available().min(rest);
        if amount > 0 {
            shares.push(Share { pool: pool.pool.clone(), amount });
            rest -= amount;
        }
    }
    (rest == 0).then_some(shares)
}

/// Spends a figure from the shares of a leg in the order in which they were held, and returns the rest;
/// none when the figure is above what the shares hold together.
pub fn settle(shares: &[Share], spent: u64) -> Option<Vec<SettledShare>> {
    let mut rest = spent;
    let mut settled = Vec::with_capacity(shares.len());
    for share in shares {
        let spent = share.amount.min(rest);
        rest -= spent;
        settled.push(SettledShare { pool: share.pool.clone(), spent, returned: share.amount - spent });
    }
    (rest == 0).then_some(settled)
}

/// How much of a grant a revocation takes back.
///
/// `reclaimed` is what earlier revocations of the same grant took and fell short of, together: a
/// shortfall counts as reclaimed, or a later revocation would collect it.
pub fn take_back(granted: u64, reclaimed: u64, wanted: u64, available: u64) -> TakenBack {
    let wanted = wanted.min(granted.saturating_sub(reclaimed));
    let taken = wanted.min(available);
    TakenBack { taken, shortfall: wanted - taken }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(bucket: &str, limit: u64, spent: u64, held: u64) -> PoolBalance {
        let pool = Pool::Allowance { bucket: bucket.to_owned(), limit };
        PoolBalance { pool, spent, held, granted: 0 }
    }

    #[test]
    fn pools_give_in_their_order() {
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
    fn a_figure_falls_on_the_shares_in_order() {
        let share = |bucket: &str, amount| Share { pool: pool(bucket, 9, 0, 0).pool, amount };
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
    fn a_grant_is_taken_back_once_and_only_as_far_as_it_is_there() {
        let check = |granted, reclaimed, wanted, available, taken, shortfall| {
            let expect = TakenBack { taken, shortfall };
            assert_eq!(take_back(granted, reclaimed, wanted, available), expect);
        };
        check(10, 0, 4, 10, 4, 0);
        check(10, 0, 40, 100, 10, 0);
        check(10, 0, 10, 3, 3, 7);
        check(10, 10, 5, 100, 0, 0);
        check(10, 8, 5, 0, 0, 2);
    }
}
