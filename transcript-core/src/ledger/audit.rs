//! Audit: every balance must equal the sum of its entries.

use super::{Balance, Entry, EntryKind, Pool, PoolBalance};

/// Running sum of a wallet's entries; a wallet may have more of them than fit in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryTally {
    pools: Vec<PoolBalance>,
}

impl EntryTally {
    /// Adds the wallet's next entry.
    ///
    /// # Errors
    /// The entry's number if it takes more from a pool than the pool has, which no valid ledger contains. The tally is
    /// unusable afterwards.
    pub fn add(&mut self, entry: &Entry) -> Result<(), u64> {
        let index = self.pools.iter().position(|pool| pool.pool.is_same(&entry.pool)).unwrap_or_else(|| {
            self.pools.push(PoolBalance::unused(entry.pool.clone()));
            self.pools.len() - 1
        });
        self.pools.get_mut(index).and_then(|pool| apply(pool, entry)).ok_or(entry.seq)
    }

    /// Balances, one for each pool that the entries name, in order of first use.
    pub fn pools(&self) -> &[PoolBalance] {
        &self.pools
    }

    /// Compares a wallet's balance over all its pools with the tally; empty if they agree.
    pub fn differences(&self, balance: &Balance) -> Vec<BalanceMismatch> {
        let same = |a: &PoolBalance, b: &PoolBalance| {
            a.spent == b.spent && a.held == b.held && a.granted == b.granted
        };
        let mut differences = Vec::new();
        for stored in &balance.pools {
            let other = self.pools.iter().find(|pool| pool.pool.is_same(&stored.pool));
            let untouched = PoolBalance::unused(stored.pool.clone());
            if !same(stored, other.unwrap_or(&untouched)) {
                differences
                    .push(BalanceMismatch { stored: Some(stored.clone()), recomputed: other.cloned() });
            }
        }
        for pool in &self.pools {
            if !balance.pools.iter().any(|stored| stored.pool.is_same(&pool.pool)) {
                differences.push(BalanceMismatch { stored: None, recomputed: Some(pool.clone()) });
            }
        }
        differences
    }
}

fn tally(entries: &[Entry]) -> Result<EntryTally, u64> {
    let mut tally = EntryTally::default();
    entries.iter().try_for_each(|entry| tally.add(entry))?;
    Ok(tally)
}

fn apply(pool: &mut PoolBalance, entry: &Entry) -> Option<()> {
    let amount = entry.amount;
    match entry.kind {
        EntryKind::Held => pool.held = pool.held.checked_add(amount)?,
        EntryKind::Spent => {
            pool.held = pool.held.checked_sub(amount)?;
            pool.spent = pool.spent.checked_add(amount)?;
        }
        EntryKind::Charged => pool.spent = pool.spent.checked_add(amount)?,
        EntryKind::Returned | EntryKind::Expired => pool.held = pool.held.checked_sub(amount)?,
        EntryKind::Granted => pool.granted = pool.granted.checked_add(amount)?,
        EntryKind::Revoked { .. } => pool.granted = pool.granted.checked_sub(amount)?,
    }
    // Purchased credits can never be overdrawn, not even between two entries.
    (pool.pool != Pool::Purchased || pool.used() <= pool.granted).then_some(())
}

/// A difference between a balance and its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceMismatch {
    /// Balance in the ledger.
    pub stored: Option<PoolBalance>,
    /// Sum of the entries.
    pub recomputed: Option<PoolBalance>,
}

/// Compares a wallet's balance over all its pools with its entries; empty if they agree.
///
/// # Errors
/// The number of the first invalid entry; see [`EntryTally::add`].
pub fn compare(balance: &Balance, entries: &[Entry]) -> Result<Vec<BalanceMismatch>, u64> {
    Ok(tally(entries)?.differences(balance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Timestamp, ids::WalletId};

    fn bucket(limit: u64) -> Pool {
        Pool::Allowance { bucket: "day/2026-11-20".to_owned(), limit }
    }

    /// Entries numbered from 1.
    fn entries(steps: &[(Pool, EntryKind, u64)]) -> Vec<Entry> {
        let entry = |((pool, kind, amount), seq): (&(Pool, EntryKind, u64), u64)| Entry {
            seq,
            at: Timestamp::from_millis(0),
            wallet: WalletId::new("w"),
            pool: pool.clone(),
            kind: *kind,
            amount: *amount,
            cause: "cause".to_owned(),
            memo: String::new(),
        };
        steps.iter().zip(1..).map(entry).collect()
    }

    fn balance(pools: &[PoolBalance]) -> Balance {
        Balance { wallet: WalletId::new("w"), pools: pools.to_vec() }
    }

    use EntryKind::{Charged, Expired, Granted, Held, Returned, Revoked, Spent};

    #[test]
    fn audit_balance_is_sum_of_entries() {
        let entries = entries(&[
            (Pool::Purchased, Granted, 10),
            (bucket(5), Held, 4),
            (Pool::Purchased, Held, 6),
            (bucket(9), Spent, 3),
            (bucket(9), Returned, 1),
            (Pool::Purchased, Expired, 2),
            (Pool::Purchased, Revoked { shortfall: 9 }, 1),
        ]);
        let bought = PoolBalance { pool: Pool::Purchased, spent: 0, held: 4, granted: 9 };
        let day = PoolBalance { pool: bucket(5), spent: 3, held: 0, granted: 0 };
        assert_eq!(tally(&entries).unwrap().pools(), [bought.clone(), day.clone()]);
        assert_eq!(tally(&[]), Ok(EntryTally::default()));
        // An allowance's limit is not part of any entry, and an unused pool needs no entries.
        let unused = PoolBalance::unused(Pool::Allowance { bucket: "unused".to_owned(), limit: 3 });
        let stored = [PoolBalance { pool: bucket(7), ..day }, unused, bought];
        assert_eq!(compare(&balance(&stored), &entries), Ok(vec![]));
    }

    #[test]
    fn audit_charge_equals_hold_and_spend() {
        let separate = [
            (Pool::Purchased, Granted, 9),
            (bucket(5), Held, 3),
            (Pool::Purchased, Held, 2),
            (bucket(5), Spent, 3),
            (Pool::Purchased, Spent, 2),
        ];
        let at_once = [(Pool::Purchased, Granted, 9), (bucket(5), Charged, 3), (Pool::Purchased, Charged, 2)];
        let (separate, at_once) = (tally(&entries(&separate)), tally(&entries(&at_once)));
        assert!(at_once.as_ref().is_ok_and(|tally| tally.pools().len() == 2), "{at_once:?}");
        assert_eq!(at_once, separate);
    }

    #[test]
    fn audit_invalid_entry_is_reported() {
        let check = |steps: &[(Pool, EntryKind, u64)], expect: u64| {
            assert_eq!(tally(&entries(steps)), Err(expect), "{steps:?}");
        };
        check(&[(Pool::Purchased, Held, 1)], 1);
        check(&[(Pool::Purchased, Granted, 2), (Pool::Purchased, Held, 3)], 2);
        check(&[(Pool::Purchased, Granted, 2), (Pool::Purchased, Charged, 3)], 2);
        check(&[(bucket(5), Charged, 1), (bucket(5), Spent, 1)], 2);
        check(&[(bucket(5), Charged, 1), (bucket(5), Returned, 1)], 2);
        check(&[(bucket(5), Held, 1), (bucket(5), Spent, 2)], 2);
        check(&[(bucket(5), Held, 1), (bucket(5), Returned, 1), (bucket(5), Expired, 1)], 3);
        check(&[(Pool::Purchased, Granted, 1), (Pool::Purchased, Revoked { shortfall: 0 }, 2)], 2);
        let spent = [
            (Pool::Purchased, Granted, 2),
            (Pool::Purchased, Held, 2),
            (Pool::Purchased, Spent, 2),
            (Pool::Purchased, Revoked { shortfall: 0 }, 1),
        ];
        check(&spent, 4);
        check(&[(bucket(5), Held, u64::MAX), (bucket(5), Held, 1)], 2);
        check(&[(bucket(5), Charged, u64::MAX), (bucket(5), Charged, 1)], 2);
    }

    #[test]
    fn audit_difference_has_both_sides() {
        let entries = entries(&[(bucket(5), Held, 4), (Pool::Purchased, Granted, 1)]);
        let held = |held| PoolBalance { held, ..PoolBalance::unused(bucket(5)) };
        let bought = PoolBalance { granted: 1, ..PoolBalance::unused(Pool::Purchased) };
        let check = |stored: &[PoolBalance], expect: &[(Option<PoolBalance>, Option<PoolBalance>)]| {
            let differences = compare(&balance(stored), &entries).unwrap();
            let sides: Vec<_> = differences.into_iter().map(|one| (one.stored, one.recomputed)).collect();
            assert_eq!(sides, expect);
        };
        check(&[held(4), bought.clone()], &[]);
        check(&[held(3), bought.clone()], &[(Some(held(3)), Some(held(4)))]);
        check(std::slice::from_ref(&bought), &[(None, Some(held(4)))]);
        let elsewhere = Pool::Allowance { bucket: "elsewhere".to_owned(), limit: 1 };
        let ghost = PoolBalance { spent: 1, ..PoolBalance::unused(elsewhere) };
        check(&[held(4), bought, ghost.clone()], &[(Some(ghost), None)]);
    }
}
