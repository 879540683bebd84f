//! The ledger in memory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use async_trait::async_trait;

use super::{Shared, numbered, page_of};
use crate::{
    error::{Error, ErrorKind, Result, Retry},
    ids::{GrantId, HoldId, WalletId},
    ledger::{
        Balance, BalanceSince, Entry, EntryKind, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState,
        Ledger, Leg, Pool, PoolBalance, Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
        allocate::{self, Share, TakenBack},
    },
    page::{Page, PageRequest},
    time::Timestamp,
};

/// A [`Ledger`] in memory. A clone is the same ledger.
#[derive(Clone, Debug, Default)]
pub struct MemoryLedger {
    books: Shared<Books>,
}

/// Everything that the ledger knows.
#[derive(Debug, Default)]
struct Books {
    wallets: BTreeMap<WalletId, Wallet>,
    holds: HashMap<HoldId, Hold>,
    /// The open holds by expiry: what [`Ledger::expire`] goes through.
    open: BTreeSet<(Timestamp, HoldId)>,
    transfers: HashMap<GrantId, Transfer>,
    entries: u64,
}

#[derive(Debug, Default)]
struct Wallet {
    /// Every pool that was ever used, in the order of first use.
    pools: Vec<PoolBalance>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Hold {
    legs: Vec<HeldLeg>,
    state: HoldState,
    memo: String,
}

#[derive(Debug)]
struct HeldLeg {
    wallet: WalletId,
    amount: u64,
    shares: Vec<Share>,
}

/// What a grant's id was used for.
#[derive(Debug)]
enum Transfer {
    /// `reclaimed` is what its revocations took and fell short of.
    Grant { wallet: WalletId, amount: u64, reclaimed: u64 },
    /// What was asked, and what came of it.
    Revocation { grant: GrantId, amount: u64, outcome: TakenBack },
}

/// One step, before it is an [`Entry`].
struct Step<'a> {
    at: Timestamp,
    cause: &'a str,
    memo: &'a str,
}

impl HeldLeg {
    fn is_of(&self, leg: &Leg) -> bool {
        self.wallet == leg.wallet && self.amount == leg.amount
    }
}

impl Wallet {
    /// What is stored of a pool, under the limit that is given now.
    fn pool(&self, pool: &Pool) -> PoolBalance {
        let fresh = PoolBalance::fresh(pool.clone());
        let stored = self.pools.iter().find(|stored| stored.pool.is_same(pool));
        stored.map_or(fresh, |stored| PoolBalance { pool: pool.clone(), ..stored.clone() })
    }

    /// The stored pool; it is made when it is used for the first time.
    fn pool_mut(&mut self, pool: &Pool) -> &mut PoolBalance {
        let place = self.pools.iter().position(|stored| stored.pool.is_same(pool)).unwrap_or_else(|| {
            self.pools.push(PoolBalance::fresh(pool.clone()));
            self.pools.len() - 1
        });
        &mut self.pools[place]
    }
}

impl Books {
    fn balance(&self, wallet: &WalletId, terms: &Terms) -> Balance {
        let none = Wallet::default();
        let stored = self.wallets.get(wallet).unwrap_or(&none);
        let pools = terms.pools.iter().map(|pool| stored.pool(pool)).collect();
        Balance { wallet: wallet.clone(), pools }
    }

    fn balances(&self, legs: &[Leg]) -> Vec<Balance> {
        legs.iter().map(|leg| self.balance(&leg.wallet, &leg.terms)).collect()
    }

    /// Takes one step: changes the pool and writes the entry.
    fn take(&mut self, step: &Step<'_>, wallet: &WalletId, pool: &Pool, kind: EntryKind, amount: u64) {
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
        let (cause, memo) = (step.cause.to_owned(), step.memo.to_owned());
        owner.entries.push(Entry {
            seq,
            at: step.at,
            wallet: wallet.clone(),
            pool,
            kind,
            amount,
            cause,
            memo,
        });
    }

    fn hold(&mut self, ask: HoldRequest) -> HoldOutcome {
        let state = HoldState::Open { expires_at: ask.expires_at };
        self.take_legs(ask, EntryKind::Held, state)
    }

    fn spend(&mut self, ask: HoldRequest) -> HoldOutcome {
        let spent = ask.legs.iter().map(|leg| leg.amount).collect();
        self.take_legs(ask, EntryKind::Charged, HoldState::Closed { spent })
    }

    /// Takes the amounts of all legs, or of none; `kind` is what the entries say, `state` how the hold is then.
    fn take_legs(&mut self, ask: HoldRequest, kind: EntryKind, state: HoldState) -> HoldOutcome {
        let names =
            |hold: &Hold| hold.legs.iter().any(|held| ask.legs.iter().any(|leg| leg.wallet == held.wallet));
        self.expire(ask.now, names, usize::MAX);
        if let Some(known) = self.holds.get(&ask.id) {
            let same = known.legs.len() == ask.legs.len()
                && known.legs.iter().zip(&ask.legs).all(|(held, leg)| held.is_of(leg));
            return match same {
                true => HoldOutcome::Known { state: known.state.clone(), balances: self.balances(&ask.legs) },
                false => HoldOutcome::Conflict,
            };
        }
        let mut legs = Vec::with_capacity(ask.legs.len());
        for (leg, place) in ask.legs.iter().zip(0..) {
            let balance = self.balance(&leg.wallet, &leg.terms);
            let Some(shares) = allocate::allocate(&balance.pools, leg.amount) else {
                return HoldOutcome::Refused { leg: place, balance };
            };
            legs.push(HeldLeg { wallet: leg.wallet.clone(), amount: leg.amount, shares });
        }
        let step = Step { at: ask.now, cause: ask.id.as_str(), memo: &ask.memo };
        for leg in &legs {
            for share in &leg.shares {
                self.take(&step, &leg.wallet, &share.pool, kind, share.amount);
            }
        }
        if let HoldState::Open { expires_at } = state {
            self.open.insert((expires_at, ask.id.clone()));
        }
        self.holds.insert(ask.id, Hold { legs, state, memo: ask.memo });
        HoldOutcome::Held { balances: self.balances(&ask.legs) }
    }

    fn settle(&mut self, ask: &Settle) -> Result<SettleOutcome> {
        let Some(hold) = self.holds.get_mut(&ask.id) else {
            return Ok(SettleOutcome::Unknown);
        };
        let HoldState::Open { expires_at } = hold.state else {
            return Ok(SettleOutcome::Known { state: hold.state.clone() });
        };
        if ask.spent.len() != hold.legs.len() {
            return Err(Error::invalid("a settlement has one figure for each leg of its hold"));
        }
        let mut settled = Vec::with_capacity(hold.legs.len());
        for (leg, spent) in hold.legs.iter().zip(&ask.spent) {
            let shares = allocate::settle(&leg.shares, *spent)
                .ok_or_else(|| Error::invalid("a settlement spends no more than its leg holds"))?;
            settled.push((leg.wallet.clone(), shares));
        }
        hold.state = HoldState::Closed { spent: ask.spent.clone() };
        let memo = hold.memo.clone();
        self.open.remove(&(expires_at, ask.id.clone()));
        let step = Step { at: ask.now, cause: ask.id.as_str(), memo: &memo };
        let mut balances = Vec::with_capacity(settled.len());
        for (wallet, shares) in settled {
            for share in &shares {
                self.take(&step, &wallet, &share.pool, EntryKind::Spent, share.spent);
                self.take(&step, &wallet, &share.pool, EntryKind::Returned, share.returned);
            }
            balances.push(self.last_seen(wallet, shares.iter().map(|share| &share.pool)));
        }
        Ok(SettleOutcome::Settled { balances })
    }

    /// The balance of pools, each with the limit that was last seen.
    fn last_seen<'a>(&self, wallet: WalletId, pools: impl Iterator<Item = &'a Pool>) -> Balance {
        let stored = self.wallets.get(&wallet);
        let pools =
            pools.filter_map(|pool| stored?.pools.iter().find(|used| used.pool.is_same(pool)).cloned());
        Balance { pools: pools.collect(), wallet }
    }

    /// Expires overdue holds that are `wanted`, the longest overdue first; returns how many.
    fn expire(&mut self, now: Timestamp, wanted: impl Fn(&Hold) -> bool, limit: usize) -> u32 {
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
            let step = Step { at: now, cause: due.1.as_str(), memo: &hold.memo };
            for leg in &hold.legs {
                for share in &leg.shares {
                    self.take(&step, &leg.wallet, &share.pool, EntryKind::Expired, share.amount);
                }
            }
            hold.state = HoldState::Expired;
            self.holds.insert(due.1, hold);
            count += 1;
        }
        count
    }

    fn extend(&mut self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        let unknown = || Error::new(ErrorKind::NotFound, Retry::Never, "there is no such hold");
        let hold = self.holds.get_mut(id).ok_or_else(unknown)?;
        if let HoldState::Open { expires_at } = hold.state
            && until > expires_at
        {
            hold.state = HoldState::Open { expires_at: until };
            self.open.remove(&(expires_at, id.clone()));
            self.open.insert((until, id.clone()));
        }
        Ok(hold.state.clone())
    }

    fn grant(&mut self, ask: Grant) -> Result<GrantOutcome> {
        match self.transfers.get(&ask.id) {
            Some(Transfer::Grant { wallet, amount, .. })
                if *wallet == ask.wallet && *amount == ask.amount =>
            {
                return Ok(GrantOutcome::Known);
            }
            Some(_) => return Ok(GrantOutcome::Conflict),
            None => {}
        }
        let granted = self.wallets.get(&ask.wallet).map_or(0, |wallet| wallet.pool(&Pool::Purchased).granted);
        if granted.saturating_add(ask.amount) > i64::MAX as u64 {
            return Err(Error::invalid("a wallet has room for 2^63 credits"));
        }
        let step = Step { at: ask.now, cause: ask.id.as_str(), memo: &ask.memo };
        self.take(&step, &ask.wallet, &Pool::Purchased, EntryKind::Granted, ask.amount);
        let balance = self.last_seen(ask.wallet.clone(), std::iter::once(&Pool::Purchased));
        self.transfers
            .insert(ask.id, Transfer::Grant { wallet: ask.wallet, amount: ask.amount, reclaimed: 0 });
        Ok(GrantOutcome::Granted { balance })
    }

    fn revoke(&mut self, ask: Revoke) -> RevokeOutcome {
        match self.transfers.get(&ask.id) {
            Some(Transfer::Revocation { grant, amount, outcome })
                if *grant == ask.grant && *amount == ask.amount =>
            {
                return RevokeOutcome::Known { taken: outcome.taken, shortfall: outcome.shortfall };
            }
            Some(_) => return RevokeOutcome::Conflict,
            None => {}
        }
        let Some(Transfer::Grant { wallet, amount, reclaimed }) = self.transfers.get_mut(&ask.grant) else {
            return RevokeOutcome::UnknownGrant;
        };
        let wallet = wallet.clone();
        let available =
            self.wallets.get(&wallet).map_or(0, |stored| stored.pool(&Pool::Purchased).available());
        let outcome = allocate::take_back(*amount, *reclaimed, ask.amount, available);
        let TakenBack { taken, shortfall } = outcome;
        *reclaimed += taken + shortfall;
        let step = Step { at: ask.now, cause: ask.id.as_str(), memo: &ask.memo };
        self.take(&step, &wallet, &Pool::Purchased, EntryKind::Revoked { shortfall }, taken);
        self.transfers.insert(ask.id, Transfer::Revocation { grant: ask.grant, amount: ask.amount, outcome });
        RevokeOutcome::Revoked { taken, shortfall }
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        ask.check()?;
        Ok(self.books.lock().hold(ask))
    }

    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        ask.check()?;
        Ok(self.books.lock().spend(ask))
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        self.books.lock().extend(id, until)
    }

    async fn settle(&self, ask: Settle) -> Result<SettleOutcome> {
        self.books.lock().settle(&ask)
    }

    async fn grant(&self, grant: Grant) -> Result<GrantOutcome> {
        grant.check()?;
        self.books.lock().grant(grant)
    }

    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome> {
        ask.check()?;
        Ok(self.books.lock().revoke(ask))
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        Ok(self.books.lock().balance(wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        terms.check()?;
        let books = self.books.lock();
        let entries = books.wallets.get(wallet).map_or(&[][..], |wallet| &wallet.entries);
        let spent = entries
            .iter()
            .filter(|entry| entry.pool == Pool::Purchased && entry.kind.is_spent() && entry.at >= since);
        let purchased_spent = spent.map(|entry| entry.amount).sum();
        Ok(BalanceSince { balance: books.balance(wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        Ok(self.books.lock().expire(now, |_| true, limit as usize))
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let after = numbered(page.after.as_ref())?;
        let books = self.books.lock();
        let entries = books.wallets.get(wallet).map_or(&[][..], |wallet| &wallet.entries);
        let rest = entries.iter().filter(|entry| entry.seq > after).cloned();
        Ok(page_of(rest, page.size(), |entry| entry.seq.to_string()))
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let books = self.books.lock();
        let after = page.after.as_ref().map(|cursor| WalletId::new(cursor.as_str()));
        let start = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = books.wallets.range::<WalletId, _>((start, Bound::Unbounded));
        let rest = rest.map(|(id, wallet)| Balance { wallet: id.clone(), pools: wallet.pools.clone() });
        Ok(page_of(rest, page.size(), |balance| balance.wallet.as_str().to_owned()))
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::ledger_conformance!(Arc::new(super::MemoryLedger::default()));
}
