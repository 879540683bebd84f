//! The in-memory ledger.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use async_trait::async_trait;

use super::{SharedState, numbered, page_of};
use crate::{
    error::{Error, ErrorKind, Result, Retry},
    ids::{GrantId, HoldId, WalletId},
    ledger::{
        Balance, Entry, EntryKind, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        Leg, PeriodBalance, Pool, PoolBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest,
        Terms,
        allocate::{self, PoolShare, RevokedAmount},
    },
    page::{Page, PageRequest},
    time::Timestamp,
};

/// An in-memory [`Ledger`]. A clone is the same ledger.
#[derive(Clone, Debug, Default)]
pub struct MemoryLedger {
    state: SharedState<LedgerState>,
}

/// All data of the ledger.
#[derive(Debug, Default)]
struct LedgerState {
    wallets: BTreeMap<WalletId, WalletState>,
    holds: HashMap<HoldId, HoldRecord>,
    /// The open holds by expiry, for [`Ledger::expire`].
    open: BTreeSet<(Timestamp, HoldId)>,
    transfers: HashMap<GrantId, TransferRecord>,
    entries: u64,
}

#[derive(Debug, Default)]
struct WalletState {
    /// Every pool that was ever used, in order of first use.
    pools: Vec<PoolBalance>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct HoldRecord {
    legs: Vec<HeldLeg>,
    state: HoldState,
    memo: String,
}

#[derive(Debug)]
struct HeldLeg {
    wallet: WalletId,
    amount: u64,
    shares: Vec<PoolShare>,
}

/// Operation that used a grant or revocation ID.
#[derive(Debug)]
enum TransferRecord {
    /// `reclaimed` is the sum of what its revocations took and of their shortfalls.
    Grant { wallet: WalletId, amount: u64, reclaimed: u64 },
    /// The request, and its outcome.
    Revocation { grant: GrantId, amount: u64, outcome: RevokedAmount },
}

/// The origin of an [`Entry`].
struct EntryCause<'a> {
    at: Timestamp,
    cause: &'a str,
    memo: &'a str,
}

impl HeldLeg {
    fn matches(&self, leg: &Leg) -> bool {
        self.wallet == leg.wallet && self.amount == leg.amount
    }
}

impl WalletState {
    /// The stored balance of a pool, with the limit of this request.
    fn pool(&self, pool: &Pool) -> PoolBalance {
        let unused = PoolBalance::unused(pool.clone());
        let stored = self.pools.iter().find(|stored| stored.pool.is_same(pool));
        stored.map_or(unused, |stored| PoolBalance { pool: pool.clone(), ..stored.clone() })
    }

    /// The stored pool, created on first use.
    fn pool_mut(&mut self, pool: &Pool) -> &mut PoolBalance {
        let index = self.pools.iter().position(|stored| stored.pool.is_same(pool)).unwrap_or_else(|| {
            self.pools.push(PoolBalance::unused(pool.clone()));
            self.pools.len() - 1
        });
        &mut self.pools[index]
    }
}

impl LedgerState {
    fn balance(&self, wallet: &WalletId, terms: &Terms) -> Balance {
        let none = WalletState::default();
        let stored = self.wallets.get(wallet).unwrap_or(&none);
        let pools = terms.pools.iter().map(|pool| stored.pool(pool)).collect();
        Balance { wallet: wallet.clone(), pools }
    }

    fn balances(&self, legs: &[Leg]) -> Vec<Balance> {
        legs.iter().map(|leg| self.balance(&leg.wallet, &leg.terms)).collect()
    }

    /// Changes a pool and writes the entry.
    fn apply_entry(
        &mut self,
        entry_cause: &EntryCause<'_>,
        wallet: &WalletId,
        pool: &Pool,
        kind: EntryKind,
        amount: u64,
    ) {
        let shortfall = matches!(kind, EntryKind::Revoked { shortfall } if shortfall > 0);
        if amount == 0 && !shortfall {
            return;
        }
        self.entries += 1;
        let seq = self.entries;
        let owner = self.wallets.entry(wallet.clone()).or_default();
        let stored = owner.pool_mut(pool);
        match kind {
            EntryKind::Held => {
                stored.pool = pool.clone();
                stored.held += amount;
            }
            EntryKind::Charged => {
                stored.pool = pool.clone();
                stored.spent += amount;
            }
            EntryKind::Spent => {
                stored.held -= amount;
                stored.spent += amount;
            }
            EntryKind::Returned | EntryKind::Expired => stored.held -= amount,
            EntryKind::Granted => stored.granted += amount,
            EntryKind::Revoked { .. } => stored.granted -= amount,
        }
        let pool = stored.pool.clone();
        let (cause, memo) = (entry_cause.cause.to_owned(), entry_cause.memo.to_owned());
        owner.entries.push(Entry {
            seq,
            at: entry_cause.at,
            wallet: wallet.clone(),
            pool,
            kind,
            amount,
            cause,
            memo,
        });
    }

    fn hold(&mut self, request: HoldRequest) -> HoldOutcome {
        let state = HoldState::Open { expires_at: request.expires_at };
        self.apply_legs(request, EntryKind::Held, state)
    }

    fn spend(&mut self, request: HoldRequest) -> HoldOutcome {
        let spent = request.legs.iter().map(|leg| leg.amount).collect();
        self.apply_legs(request, EntryKind::Charged, HoldState::Settled { spent })
    }

    /// Takes the amounts of all legs, or of none.
    ///
    /// `kind` is the kind of the entries, `state` the state of the hold.
    fn apply_legs(&mut self, request: HoldRequest, kind: EntryKind, state: HoldState) -> HoldOutcome {
        let affects = |hold: &HoldRecord| {
            hold.legs.iter().any(|held| request.legs.iter().any(|leg| leg.wallet == held.wallet))
        };
        self.expire(request.now, affects, usize::MAX);
        if let Some(known) = self.holds.get(&request.id) {
            let is_same = known.legs.len() == request.legs.len()
                && known.legs.iter().zip(&request.legs).all(|(held, leg)| held.matches(leg));
            return match is_same {
                true => {
                    HoldOutcome::Exists { state: known.state.clone(), balances: self.balances(&request.legs) }
                }
                false => HoldOutcome::Conflict,
            };
        }
        let mut legs = Vec::with_capacity(request.legs.len());
        for (leg, index) in request.legs.iter().zip(0..) {
            let balance = self.balance(&leg.wallet, &leg.terms);
            let Some(shares) = allocate::allocate(&balance.pools, leg.amount) else {
                return HoldOutcome::Insufficient { leg: index, balance };
            };
            legs.push(HeldLeg { wallet: leg.wallet.clone(), amount: leg.amount, shares });
        }
        let entry_cause = EntryCause { at: request.now, cause: request.id.as_str(), memo: &request.memo };
        for leg in &legs {
            for share in &leg.shares {
                self.apply_entry(&entry_cause, &leg.wallet, &share.pool, kind, share.amount);
            }
        }
        if let HoldState::Open { expires_at } = state {
            self.open.insert((expires_at, request.id.clone()));
        }
        self.holds.insert(request.id, HoldRecord { legs, state, memo: request.memo });
        HoldOutcome::Held { balances: self.balances(&request.legs) }
    }

    fn settle(&mut self, request: &SettleRequest) -> Result<SettleOutcome> {
        let Some(hold) = self.holds.get_mut(&request.id) else {
            return Ok(SettleOutcome::HoldNotFound);
        };
        let HoldState::Open { expires_at } = hold.state else {
            return Ok(SettleOutcome::Exists { state: hold.state.clone() });
        };
        if request.spent.len() != hold.legs.len() {
            return Err(Error::invalid("a settlement must have one amount for each leg of its hold"));
        }
        let mut settled = Vec::with_capacity(hold.legs.len());
        for (leg, spent) in hold.legs.iter().zip(&request.spent) {
            let shares = allocate::settle(&leg.shares, *spent)
                .ok_or_else(|| Error::invalid("a settlement must not spend more than its leg holds"))?;
            settled.push((leg.wallet.clone(), shares));
        }
        hold.state = HoldState::Settled { spent: request.spent.clone() };
        let memo = hold.memo.clone();
        self.open.remove(&(expires_at, request.id.clone()));
        let entry_cause = EntryCause { at: request.now, cause: request.id.as_str(), memo: &memo };
        let mut balances = Vec::with_capacity(settled.len());
        for (wallet, shares) in settled {
            for share in &shares {
                self.apply_entry(&entry_cause, &wallet, &share.pool, EntryKind::Spent, share.spent);
                self.apply_entry(&entry_cause, &wallet, &share.pool, EntryKind::Returned, share.returned);
            }
            balances.push(self.last_balance(wallet, shares.iter().map(|share| &share.pool)));
        }
        Ok(SettleOutcome::Settled { balances })
    }

    /// The balance of pools, each with the limit of its last use.
    fn last_balance<'a>(&self, wallet: WalletId, pools: impl Iterator<Item = &'a Pool>) -> Balance {
        let stored = self.wallets.get(&wallet);
        let pools =
            pools.filter_map(|pool| stored?.pools.iter().find(|used| used.pool.is_same(pool)).cloned());
        Balance { pools: pools.collect(), wallet }
    }

    /// Expires overdue holds that are `wanted`, the longest overdue first; returns their number.
    fn expire(&mut self, now: Timestamp, wanted: impl Fn(&HoldRecord) -> bool, limit: usize) -> u32 {
        let overdue: Vec<(Timestamp, HoldId)> = self
            .open
            .iter()
            .take_while(|(expires_at, _)| *expires_at <= now)
            .filter(|(_, id)| self.holds.get(id).is_some_and(&wanted))
            .take(limit)
            .cloned()
            .collect();
        let mut count = 0;
        for due in overdue {
            self.open.remove(&due);
            let Some(mut hold) = self.holds.remove(&due.1) else { continue };
            let entry_cause = EntryCause { at: now, cause: due.1.as_str(), memo: &hold.memo };
            for leg in &hold.legs {
                for share in &leg.shares {
                    self.apply_entry(
                        &entry_cause,
                        &leg.wallet,
                        &share.pool,
                        EntryKind::Expired,
                        share.amount,
                    );
                }
            }
            hold.state = HoldState::Expired;
            self.holds.insert(due.1, hold);
            count += 1;
        }
        count
    }

    fn extend(&mut self, id: &HoldId, new_expiry: Timestamp) -> Result<HoldState> {
        let unknown = || Error::new(ErrorKind::NotFound, Retry::Never, "the hold does not exist");
        let hold = self.holds.get_mut(id).ok_or_else(unknown)?;
        if let HoldState::Open { expires_at } = hold.state
            && new_expiry > expires_at
        {
            hold.state = HoldState::Open { expires_at: new_expiry };
            self.open.remove(&(expires_at, id.clone()));
            self.open.insert((new_expiry, id.clone()));
        }
        Ok(hold.state.clone())
    }

    fn grant(&mut self, request: GrantRequest) -> Result<GrantOutcome> {
        match self.transfers.get(&request.id) {
            Some(TransferRecord::Grant { wallet, amount, .. })
                if *wallet == request.wallet && *amount == request.amount =>
            {
                return Ok(GrantOutcome::Exists);
            }
            Some(_) => return Ok(GrantOutcome::Conflict),
            None => {}
        }
        let granted =
            self.wallets.get(&request.wallet).map_or(0, |wallet| wallet.pool(&Pool::Purchased).granted);
        if granted.saturating_add(request.amount) > i64::MAX as u64 {
            return Err(Error::invalid("a grant would exceed the limit of a wallet: 2^63 - 1 credits"));
        }
        let entry_cause = EntryCause { at: request.now, cause: request.id.as_str(), memo: &request.memo };
        self.apply_entry(&entry_cause, &request.wallet, &Pool::Purchased, EntryKind::Granted, request.amount);
        let balance = self.last_balance(request.wallet.clone(), std::iter::once(&Pool::Purchased));
        self.transfers.insert(
            request.id,
            TransferRecord::Grant { wallet: request.wallet, amount: request.amount, reclaimed: 0 },
        );
        Ok(GrantOutcome::Granted { balance })
    }

    fn revoke(&mut self, request: RevokeRequest) -> RevokeOutcome {
        match self.transfers.get(&request.id) {
            Some(TransferRecord::Revocation { grant, amount, outcome })
                if *grant == request.grant && *amount == request.amount =>
            {
                return RevokeOutcome::Exists { taken: outcome.taken, shortfall: outcome.shortfall };
            }
            Some(_) => return RevokeOutcome::Conflict,
            None => {}
        }
        let Some(TransferRecord::Grant { wallet, amount, reclaimed }) =
            self.transfers.get_mut(&request.grant)
        else {
            return RevokeOutcome::GrantNotFound;
        };
        let wallet = wallet.clone();
        let available =
            self.wallets.get(&wallet).map_or(0, |stored| stored.pool(&Pool::Purchased).available());
        let outcome = allocate::revoke_amount(*amount, *reclaimed, request.amount, available);
        let RevokedAmount { taken, shortfall } = outcome;
        *reclaimed += taken + shortfall;
        let entry_cause = EntryCause { at: request.now, cause: request.id.as_str(), memo: &request.memo };
        self.apply_entry(&entry_cause, &wallet, &Pool::Purchased, EntryKind::Revoked { shortfall }, taken);
        self.transfers.insert(
            request.id,
            TransferRecord::Revocation { grant: request.grant, amount: request.amount, outcome },
        );
        RevokeOutcome::Revoked { taken, shortfall }
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        Ok(self.state.lock().hold(request))
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        Ok(self.state.lock().spend(request))
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.state.lock().extend(id, expires_at)
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.state.lock().settle(&request)
    }

    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome> {
        grant.check()?;
        self.state.lock().grant(grant)
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        request.check()?;
        Ok(self.state.lock().revoke(request))
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        Ok(self.state.lock().balance(wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        terms.check()?;
        let state = self.state.lock();
        let entries = state.wallets.get(wallet).map_or(&[][..], |wallet| &wallet.entries);
        let spent = entries
            .iter()
            .filter(|entry| entry.pool == Pool::Purchased && entry.kind.is_spent() && entry.at >= since);
        let purchased_spent = spent.map(|entry| entry.amount).sum();
        Ok(PeriodBalance { balance: state.balance(wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        Ok(self.state.lock().expire(now, |_| true, limit as usize))
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let after = numbered(page.after.as_ref())?;
        let state = self.state.lock();
        let entries = state.wallets.get(wallet).map_or(&[][..], |wallet| &wallet.entries);
        let rest = entries.iter().filter(|entry| entry.seq > after).cloned();
        Ok(page_of(rest, page.size(), |entry| entry.seq.to_string()))
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let state = self.state.lock();
        let after = page.after.as_ref().map(|cursor| WalletId::new(cursor.as_str()));
        let start = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = state.wallets.range::<WalletId, _>((start, Bound::Unbounded));
        let rest = rest.map(|(id, wallet)| Balance { wallet: id.clone(), pools: wallet.pools.clone() });
        Ok(page_of(rest, page.size(), |balance| balance.wallet.as_str().to_owned()))
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::ledger_conformance!(Arc::new(super::MemoryLedger::default()));
}
