//! The audit: every balance must equal what its entries add up to.

use super::{Balance, Entry, EntryKind, Pool, PoolBalance};

/// The balances that a wallet's entries add up to, one per pool that they name, in order of first use.
///
/// # Errors
/// The number of the first entry that takes more out of a pool than it has: entries that no ledger
/// may contain.
pub fn recompute(entries: &[Entry]) -> Result<Vec<PoolBalance>, u64> {
    let mut pools: Vec<PoolBalance> = Vec::new();
    for entry in entries {
        let place = pools.iter().position(|pool| pool.pool.is_same(&entry.pool)).unwrap_or_else(|| {
            pools.push(PoolBalance::fresh(entry.pool.clone()));
            pools.len() - 1
        });
        apply(&mut pools[place], entry).ok_or(entry.seq)?;
    }
    Ok(pools)
}

fn apply(pool: &mut PoolBalance, entry: &Entry) -> Option<()> {
    let amount = entry.amount;
    match entry.kind {
        EntryKind::Held => pool.held = pool.held.checked_add(amount)?,
        EntryKind::Spent => {
            pool.held = pool.held.checked_sub(amount)?;
            pool.spent = pool.spent.checked_add(amount)?;
        }
        EntryKind::Returned | EntryKind::Expired => pool.held = pool.held.checked_sub(amount)?,
        EntryKind::Granted => pool.granted = pool.granted.checked_add(amount)?,
        EntryKind::Revoked { .. } => pool.granted = pool.granted.checked_sub(amount)?,
    }
    // What was bought can never be overdrawn, not even between two entries.
    (pool.pool != Pool::Purchased || pool.used() <= pool.granted).then_some(())
}

/// Where a balance and its entries disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the ledger says.
    pub stored: Option<PoolBalance>,
    /// What the entries add up to.
    pub recomputed: Option<PoolBalance>,
}

/// Compares a wallet's balance over all its pools with its entries; empty when they agree.
///
/// # Errors
/// As [`recompute`].
pub fn compare(balance: &Balance, entries: &[Entry]) -> Result<Vec<Difference>, u64> {
    let recomputed = recompute(entries)?;
    let same =
        |a: &PoolBalance, b: &PoolBalance| a.spent == b.spent && a.held == b.held && a.granted == b.granted;
    let mut differences = Vec::new();
    for stored in &balance.pools {
        let other = recomputed.iter().find(|pool| pool.pool.is_same(&stored.pool));
        let untouched = PoolBalance::fresh(stored.pool.clone());
        if !same(stored, other.unwrap_or(&untouched)) {
            differences.push(Difference { stored: Some(stored.clone()), recomputed: other.cloned() });
        }
    }
    for pool in &recomputed {
        if !balance.pools.iter().any(|stored| stored.pool.is_same(&pool.pool)) {
            differences.push(Difference { stored: None, recomputed: Some(pool.clone()) });
        }
    }
    Ok(differences)
}
