//! Effect of each ledger operation on rows: the one arithmetic of all stores.
//!
//! A store loads the rows that a [`LedgerStep`] needs ([`RowKeys`]), applies the step to them ([`LedgerRows`]), and
//! writes the changed rows ([`LedgerChanges`]). Nothing here waits, reads a clock or depends on a database.

mod rows;
mod step;
#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
mod transfers;

pub use rows::{
    EntryRow, HoldRow, HoldRowState, LegRow, PoolRow, ShareRow, TransferKind, TransferRow, bucket_name,
    cap_of, kind_from_name, kind_name, pool_from_row,
};
pub use step::{ExpireRequest, ExtendRequest, HoldStep, LedgerStep, RowKeys};

use super::{
    Balance, EntryKind, HoldOutcome, HoldRequest, HoldState, Leg, Pool, PoolBalance, SettleOutcome,
    SettleRequest, Terms, allocate,
};
use crate::{
    error::{Error, Result},
    ids::WalletId,
    time::Timestamp,
};

/// The rows of one or more steps, with their changes.
///
/// A pool without a row is unused. A step that fails with [`crate::ErrorKind::Corrupt`] leaves unusable rows; any other
/// failed step changes nothing.
#[derive(Debug, Default)]
pub struct LedgerRows {
    pools: Vec<PoolRow>,
    holds: Vec<HoldRow>,
    transfers: Vec<TransferRow>,
    entries: Vec<EntryRow>,
}

/// The changed rows of a step, to store.
#[derive(Debug, Default)]
pub struct LedgerChanges<'a> {
    /// New and changed pools; new ones in the order of their first use.
    pub pools: Vec<&'a PoolRow>,
    /// New and changed holds.
    pub holds: Vec<&'a HoldRow>,
    /// New and changed transfers.
    pub transfers: Vec<&'a TransferRow>,
    /// New entries, in order.
    pub entries: &'a [EntryRow],
}

/// The cause that an entry records.
struct EntryCause<'a> {
    at: Timestamp,
    cause: &'a str,
    memo: &'a str,
}

/// Returns a wallet's balance under these terms, from its rows.
pub fn balance(rows: &[PoolRow], wallet: &WalletId, terms: &Terms) -> Balance {
    let pools = terms.pools.iter().map(|pool| {
        let stored = rows.iter().find(|row| row.is(wallet.as_str(), bucket_name(pool)));
        let fresh = PoolBalance::unused(pool.clone());
        stored.map_or(fresh, |row| PoolBalance { pool: pool.clone(), ..row.balance() })
    });
    Balance { wallet: wallet.clone(), pools: pools.collect() }
}

impl LedgerRows {
    /// Creates a set of loaded rows.
    pub fn new(pools: Vec<PoolRow>, holds: Vec<HoldRow>, transfers: Vec<TransferRow>) -> Self {
        Self { pools, holds, transfers, entries: Vec::new() }
    }

    /// Returns the changes since loading; `None` if there are none.
    pub fn changes(&self) -> Option<LedgerChanges<'_>> {
        let changes = LedgerChanges {
            pools: self.pools.iter().filter(|row| row.touched).collect(),
            holds: self.holds.iter().filter(|row| row.touched).collect(),
            transfers: self.transfers.iter().filter(|row| row.touched).collect(),
            entries: &self.entries,
        };
        let nothing = changes.pools.is_empty() && changes.holds.is_empty() && changes.transfers.is_empty();
        (!nothing).then_some(changes)
    }

    fn balances(&self, legs: &[Leg]) -> Vec<Balance> {
        legs.iter().map(|leg| balance(&self.pools, &leg.wallet, &leg.terms)).collect()
    }

    /// Changes one pool and writes the entry.
    fn apply_entry(
        &mut self,
        step: &EntryCause<'_>,
        wallet: &str,
        pool: &Pool,
        kind: EntryKind,
        amount: u64,
    ) -> Result<()> {
        let shortfall = if let EntryKind::Revoked { shortfall } = kind { shortfall } else { 0 };
        if amount == 0 && shortfall == 0 {
            return Ok(());
        }
        let bucket = bucket_name(pool);
        let index = self.pools.iter().position(|row| row.is(wallet, bucket)).unwrap_or_else(|| {
            self.pools.push(PoolRow::fresh(wallet, pool));
            self.pools.len() - 1
        });
        let row = &mut self.pools[index];
        row.apply(kind, amount)
            .ok_or_else(|| Error::corrupt("a balance of the ledger contradicts its holds"))?;
        row.touched = true;
        if matches!(kind, EntryKind::Held | EntryKind::Charged) {
            row.cap = cap_of(pool);
        }
        self.entries.push(EntryRow {
            at: step.at.as_millis(),
            wallet: wallet.to_owned(),
            bucket: bucket.to_owned(),
            cap: row.cap,
            kind,
            amount,
            shortfall,
            cause: step.cause.to_owned(),
            memo: step.memo.to_owned(),
        });
        Ok(())
    }

    /// Holds, after expiring the overdue holds of the wallets: [`super::Ledger::hold`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if the rows contradict each other.
    pub fn hold(&mut self, request: &HoldRequest) -> Result<HoldOutcome> {
        self.apply_legs(request, EntryKind::Held, HoldRowState::Open)
    }

    /// Holds and settles in full: [`super::Ledger::spend`].
    ///
    /// # Errors
    /// As [`LedgerRows::hold`].
    pub fn spend(&mut self, request: &HoldRequest) -> Result<HoldOutcome> {
        self.apply_legs(request, EntryKind::Charged, HoldRowState::Closed)
    }

    /// Takes the amounts of all legs or none, with entries of this kind and a hold in this state.
    fn apply_legs(
        &mut self,
        request: &HoldRequest,
        kind: EntryKind,
        state: HoldRowState,
    ) -> Result<HoldOutcome> {
        self.expire_holds(request.now, u32::MAX, |leg| {
            request.legs.iter().any(|requested| requested.wallet.as_str() == leg.wallet)
        })?;
        if let Some(known) = self.holds.iter().find(|row| row.id == request.id.as_str()) {
            let same = known.legs.len() == request.legs.len()
                && known.legs.iter().zip(&request.legs).all(|(held, leg)| held.is_of(leg));
            return Ok(if same {
                HoldOutcome::Exists { state: known.state(), balances: self.balances(&request.legs) }
            } else {
                HoldOutcome::Conflict
            });
        }
        let mut legs = Vec::with_capacity(request.legs.len());
        for (leg, index) in request.legs.iter().zip(0..) {
            let balance = balance(&self.pools, &leg.wallet, &leg.terms);
            let Some(shares) = allocate::allocate(&balance.pools, leg.amount) else {
                return Ok(HoldOutcome::Insufficient { leg: index, balance });
            };
            legs.push((leg, shares));
        }
        let step = EntryCause { at: request.now, cause: request.id.as_str(), memo: &request.memo };
        for (leg, shares) in &legs {
            for share in shares {
                self.apply_entry(&step, leg.wallet.as_str(), &share.pool, kind, share.amount)?;
            }
        }
        let spent = |leg: &Leg| if state == HoldRowState::Closed { leg.amount } else { 0 };
        self.holds.push(HoldRow {
            id: request.id.as_str().to_owned(),
            state,
            expires_at: request.expires_at.as_millis(),
            memo: request.memo.clone(),
            legs: legs.into_iter().map(|(leg, shares)| LegRow::new(leg, shares, spent(leg))).collect(),
            touched: true,
        });
        Ok(HoldOutcome::Held { balances: self.balances(&request.legs) })
    }

    /// Settles a hold: [`super::Ledger::settle`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if the amounts do not fit the hold; [`crate::ErrorKind::Corrupt`] as
    /// [`LedgerRows::hold`].
    pub fn settle(&mut self, request: &SettleRequest) -> Result<SettleOutcome> {
        let Some(hold) = self.holds.iter_mut().find(|row| row.id == request.id.as_str()) else {
            return Ok(SettleOutcome::HoldNotFound);
        };
        if hold.state != HoldRowState::Open {
            return Ok(SettleOutcome::Exists { state: hold.state() });
        }
        if request.spent.len() != hold.legs.len() {
            return Err(Error::invalid("a settlement must have one amount for each leg of its hold"));
        }
        let mut settled = Vec::with_capacity(hold.legs.len());
        for (leg, spent) in hold.legs.iter().zip(&request.spent) {
            let shares = allocate::settle(&leg.shares(), *spent)
                .ok_or_else(|| Error::invalid("a settlement must not spend more than its leg holds"))?;
            settled.push((leg.wallet.clone(), shares));
        }
        for (leg, spent) in hold.legs.iter_mut().zip(&request.spent) {
            leg.spent = *spent;
        }
        hold.state = HoldRowState::Closed;
        hold.touched = true;
        let memo = hold.memo.clone();
        let step = EntryCause { at: request.now, cause: request.id.as_str(), memo: &memo };
        let mut balances = Vec::with_capacity(settled.len());
        for (wallet, shares) in settled {
            for share in &shares {
                self.apply_entry(&step, &wallet, &share.pool, EntryKind::Spent, share.spent)?;
                self.apply_entry(&step, &wallet, &share.pool, EntryKind::Returned, share.returned)?;
            }
            balances.push(self.stored_balance(wallet, shares.iter().map(|share| &share.pool)));
        }
        Ok(SettleOutcome::Settled { balances })
    }

    /// The balance of a wallet's pools, each with its last stored limit.
    fn stored_balance<'a>(&self, wallet: String, pools: impl Iterator<Item = &'a Pool>) -> Balance {
        let stored = |pool| self.pools.iter().find(|row| row.is(&wallet, bucket_name(pool)));
        let pools = pools.filter_map(stored).map(PoolRow::balance).collect();
        Balance { wallet: WalletId::new(wallet), pools }
    }

    /// Expires overdue holds, at most `limit`, the longest overdue first; returns their number:
    /// [`super::Ledger::expire`].
    ///
    /// # Errors
    /// As [`LedgerRows::hold`].
    pub fn expire(&mut self, now: Timestamp, limit: u32) -> Result<u32> {
        self.expire_holds(now, limit, |_| true)
    }

    /// Expires the overdue holds of the wallets of a step, which the step would do first; returns their number.
    ///
    /// A store uses it to write them before the step.
    ///
    /// # Errors
    /// As [`LedgerRows::hold`].
    pub fn expire_overdue(&mut self, keys: &RowKeys<'_>) -> Result<u32> {
        let now = Timestamp::from_millis(keys.now);
        self.expire_holds(now, u32::MAX, |leg| keys.wallets.contains(&leg.wallet.as_str()))
    }

    /// Expires the overdue holds with a matching leg, at most `limit`; returns their number.
    fn expire_holds(&mut self, now: Timestamp, limit: u32, matches: impl Fn(&LegRow) -> bool) -> Result<u32> {
        let mut holds = std::mem::take(&mut self.holds);
        holds.sort_by(|a, b| (a.expires_at, &a.id).cmp(&(b.expires_at, &b.id)));
        let overdue = holds.iter_mut().filter(|hold| hold.is_overdue(now) && hold.legs.iter().any(&matches));
        let mut count = 0;
        for hold in overdue.take(limit as usize) {
            let step = EntryCause { at: now, cause: &hold.id, memo: &hold.memo };
            for leg in &hold.legs {
                for share in leg.shares() {
                    self.apply_entry(&step, &leg.wallet, &share.pool, EntryKind::Expired, share.amount)?;
                }
            }
            hold.state = HoldRowState::Expired;
            hold.touched = true;
            count += 1;
        }
        self.holds = holds;
        Ok(count)
    }

    /// Extends an open hold: [`super::Ledger::extend`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] if there is no such hold.
    pub fn extend(&mut self, request: &ExtendRequest) -> Result<HoldState> {
        let unknown = || Error::not_found("the hold does not exist");
        let hold = self.holds.iter_mut().find(|row| row.id == request.id.as_str()).ok_or_else(unknown)?;
        let expires_at = request.expires_at.as_millis();
        if hold.state == HoldRowState::Open && expires_at > hold.expires_at {
            hold.expires_at = expires_at;
            hold.touched = true;
        }
        Ok(hold.state())
    }
}
