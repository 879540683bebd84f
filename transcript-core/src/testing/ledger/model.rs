//! The independent oracle of the ledger: a journal of single credits.
//!
//! It moves one credit at a time and keeps only the journal; every balance, state and entry is counted from its lines.
//! It is slow, and it uses none of the arithmetic of the stores ([`crate::ledger::rules`]): a test of the tree forbids
//! the import.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::{
    error::{Error, ErrorKind, Result, Retry},
    ids::{Cursor, GrantId, HoldId, WalletId},
    ledger::{
        Balance, Entry, EntryKind, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        Leg, PeriodBalance, Pool, PoolBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest,
        Terms,
    },
    page::{Page, PageRequest},
    time::Timestamp,
};

/// Reference implementation of [`Ledger`] for small amounts.
#[derive(Debug, Default)]
pub struct LedgerModel(Mutex<Journal>);

#[derive(Debug, Default)]
struct Journal {
    lines: Vec<Line>,
    operations: u64,
}

/// A line of the journal; the lines of one operation have one number.
#[derive(Clone, Debug)]
struct Line {
    operation: u64,
    at: Timestamp,
    /// Id of the hold, grant or revocation.
    cause: String,
    memo: String,
    fact: Fact,
}

#[derive(Clone, Debug)]
enum Fact {
    Hold {
        legs: Vec<(WalletId, u64)>,
        expires_at: Timestamp,
    },
    Extended {
        expires_at: Timestamp,
    },
    Settled {
        spent: Vec<u64>,
    },
    Expired,
    Grant {
        wallet: WalletId,
        amount: u64,
    },
    Revocation {
        grant: GrantId,
        amount: u64,
    },
    /// One credit. A credit that a revocation misses is `Revoked` with a shortfall of 1.
    Credit {
        wallet: WalletId,
        pool: Pool,
        kind: EntryKind,
    },
}

/// A hold, as its lines describe it.
struct ModelHold {
    legs: Vec<(WalletId, u64)>,
    memo: String,
    state: HoldState,
}

const TAKEN: EntryKind = EntryKind::Revoked { shortfall: 0 };
const MISSING: EntryKind = EntryKind::Revoked { shortfall: 1 };

impl Journal {
    fn begin(&mut self) {
        self.operations += 1;
    }

    fn write(&mut self, at: Timestamp, cause: &str, memo: &str, fact: Fact) {
        let (cause, memo) = (cause.to_owned(), memo.to_owned());
        self.lines.push(Line { operation: self.operations, at, cause, memo, fact });
    }

    /// The single credits of a wallet, in order.
    fn credits(&self, wallet: &WalletId) -> impl Iterator<Item = (&Line, &Pool, EntryKind)> {
        self.lines.iter().filter_map(move |line| match &line.fact {
            Fact::Credit { wallet: owner, pool, kind } if owner == wallet => Some((line, pool, *kind)),
            _ => None,
        })
    }

    /// Counts a pool credit by credit; the limit is that of `pool`.
    fn pool_balance(&self, wallet: &WalletId, pool: &Pool) -> PoolBalance {
        let mut count = PoolBalance { pool: pool.clone(), spent: 0, held: 0, granted: 0 };
        for (_, _, kind) in self.credits(wallet).filter(|(_, used, _)| used.bucket() == pool.bucket()) {
            match kind {
                EntryKind::Held => count.held += 1,
                EntryKind::Charged => count.spent += 1,
                EntryKind::Spent => {
                    count.held -= 1;
                    count.spent += 1;
                }
                EntryKind::Returned | EntryKind::Expired => count.held -= 1,
                EntryKind::Granted => count.granted += 1,
                TAKEN => count.granted -= 1,
                EntryKind::Revoked { .. } => {}
            }
        }
        count
    }

    /// Whether the pool has one more credit.
    fn has_credit(&self, wallet: &WalletId, pool: &Pool) -> bool {
        let count = self.pool_balance(wallet, pool);
        let total = match pool {
            Pool::Allowance { limit, .. } => *limit,
            Pool::Purchased => count.granted,
        };
        count.spent + count.held < total
    }

    fn balance(&self, wallet: &WalletId, terms: &Terms) -> Balance {
        let pools = terms.pools.iter().map(|pool| self.pool_balance(wallet, pool)).collect();
        Balance { wallet: wallet.clone(), pools }
    }

    fn balances(&self, legs: &[Leg]) -> Vec<Balance> {
        legs.iter().map(|leg| self.balance(&leg.wallet, &leg.terms)).collect()
    }

    /// The pool with the limit of its last hold or spend.
    fn last_known(&self, wallet: &WalletId, pool: &Pool) -> Pool {
        let is_use = |kind| matches!(kind, EntryKind::Held | EntryKind::Charged);
        let uses =
            self.credits(wallet).filter(|(_, used, kind)| is_use(*kind) && used.bucket() == pool.bucket());
        uses.last().map_or(pool.clone(), |(_, used, _)| used.clone())
    }

    /// The balances of these pools, each once, with their last known limits.
    fn last_balance<'a>(&self, wallet: &WalletId, pools: impl Iterator<Item = &'a Pool>) -> Balance {
        let mut found: Vec<PoolBalance> = Vec::new();
        for pool in pools {
            if !found.iter().any(|known| known.pool.bucket() == pool.bucket()) {
                found.push(self.pool_balance(wallet, &self.last_known(wallet, pool)));
            }
        }
        Balance { wallet: wallet.clone(), pools: found }
    }

    fn hold(&self, id: &HoldId) -> Option<ModelHold> {
        let mut hold: Option<ModelHold> = None;
        for line in self.lines.iter().filter(|line| line.cause == id.as_str()) {
            let state = match &line.fact {
                Fact::Hold { legs, expires_at } => {
                    let state = HoldState::Open { expires_at: *expires_at };
                    hold = Some(ModelHold { legs: legs.clone(), memo: line.memo.clone(), state });
                    continue;
                }
                Fact::Extended { expires_at } => HoldState::Open { expires_at: *expires_at },
                Fact::Settled { spent } => HoldState::Settled { spent: spent.clone() },
                Fact::Expired => HoldState::Expired,
                _ => continue,
            };
            if let Some(hold) = &mut hold {
                hold.state = state;
            }
        }
        hold
    }

    /// The pools of the credits that a hold took from a wallet, one for each credit.
    fn held(&self, id: &str, wallet: &WalletId) -> Vec<Pool> {
        let credits =
            self.credits(wallet).filter(|(line, _, kind)| line.cause == id && *kind == EntryKind::Held);
        credits.map(|(_, pool, _)| pool.clone()).collect()
    }

    /// Holds, or spends at once, credit by credit.
    fn take(&mut self, request: &HoldRequest, kind: EntryKind) -> HoldOutcome {
        let touches = |hold: &ModelHold| {
            hold.legs.iter().any(|(wallet, _)| request.legs.iter().any(|leg| leg.wallet == *wallet))
        };
        self.expire(request.now, u32::MAX, touches);
        let legs: Vec<_> = request.legs.iter().map(|leg| (leg.wallet.clone(), leg.amount)).collect();
        if let Some(known) = self.hold(&request.id) {
            if known.legs != legs {
                return HoldOutcome::Conflict;
            }
            return HoldOutcome::Exists { state: known.state, balances: self.balances(&request.legs) };
        }
        let (start, cause) = (self.lines.len(), request.id.as_str());
        self.begin();
        self.write(request.now, cause, &request.memo, Fact::Hold { legs, expires_at: request.expires_at });
        for (leg, index) in request.legs.iter().zip(0..) {
            for _ in 0..leg.amount {
                let Some(pool) = leg.terms.pools.iter().find(|pool| self.has_credit(&leg.wallet, pool))
                else {
                    self.lines.truncate(start);
                    let balance = self.balance(&leg.wallet, &leg.terms);
                    return HoldOutcome::Insufficient { leg: index, balance };
                };
                let fact = Fact::Credit { wallet: leg.wallet.clone(), pool: pool.clone(), kind };
                self.write(request.now, cause, &request.memo, fact);
            }
        }
        if kind == EntryKind::Charged {
            let spent = request.legs.iter().map(|leg| leg.amount).collect();
            self.write(request.now, cause, &request.memo, Fact::Settled { spent });
        }
        HoldOutcome::Held { balances: self.balances(&request.legs) }
    }

    fn settle(&mut self, request: &SettleRequest) -> Result<SettleOutcome> {
        let Some(hold) = self.hold(&request.id) else { return Ok(SettleOutcome::HoldNotFound) };
        let HoldState::Open { .. } = hold.state else {
            return Ok(SettleOutcome::Exists { state: hold.state });
        };
        let fits = request.spent.len() == hold.legs.len()
            && request.spent.iter().zip(&hold.legs).all(|(spent, (_, amount))| spent <= amount);
        if !fits {
            return Err(Error::invalid("the amounts do not fit the hold"));
        }
        let cause = request.id.as_str();
        self.begin();
        self.write(request.now, cause, &hold.memo, Fact::Settled { spent: request.spent.clone() });
        let mut balances = Vec::new();
        for ((wallet, _), spent) in hold.legs.iter().zip(&request.spent) {
            let held = self.held(cause, wallet);
            for (pool, index) in held.iter().zip(0..) {
                let kind = if index < *spent { EntryKind::Spent } else { EntryKind::Returned };
                let fact = Fact::Credit { wallet: wallet.clone(), pool: self.last_known(wallet, pool), kind };
                self.write(request.now, cause, &hold.memo, fact);
            }
            balances.push(self.last_balance(wallet, held.iter()));
        }
        Ok(SettleOutcome::Settled { balances })
    }

    /// Expires overdue holds that match, at most `limit`, the longest overdue first; returns their number.
    fn expire(&mut self, now: Timestamp, limit: u32, matches: impl Fn(&ModelHold) -> bool) -> u32 {
        let mut overdue = Vec::new();
        for line in self.lines.iter().filter(|line| matches!(line.fact, Fact::Hold { .. })) {
            let id = HoldId::new(line.cause.as_str());
            let Some(hold) = self.hold(&id).filter(&matches) else { continue };
            if let HoldState::Open { expires_at } = hold.state
                && expires_at <= now
            {
                overdue.push((expires_at, id, hold));
            }
        }
        overdue.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let mut count = 0;
        for (_, id, hold) in overdue.into_iter().take(limit as usize) {
            self.begin();
            self.write(now, id.as_str(), &hold.memo, Fact::Expired);
            for (wallet, _) in &hold.legs {
                for pool in self.held(id.as_str(), wallet) {
                    let (wallet, pool) = (wallet.clone(), self.last_known(wallet, &pool));
                    let fact = Fact::Credit { wallet, pool, kind: EntryKind::Expired };
                    self.write(now, id.as_str(), &hold.memo, fact);
                }
            }
            count += 1;
        }
        count
    }

    fn extend(&mut self, id: &HoldId, new_expiry: Timestamp) -> Result<HoldState> {
        let Some(hold) = self.hold(id) else {
            return Err(Error::new(ErrorKind::NotFound, Retry::Never, "the hold does not exist"));
        };
        match hold.state {
            HoldState::Open { expires_at } if new_expiry > expires_at => {
                self.begin();
                self.write(new_expiry, id.as_str(), &hold.memo, Fact::Extended { expires_at: new_expiry });
                Ok(HoldState::Open { expires_at: new_expiry })
            }
            state => Ok(state),
        }
    }

    /// The grant or revocation with this id.
    fn transfer(&self, id: &GrantId) -> Option<Fact> {
        let mut facts = self.lines.iter().filter(|line| line.cause == id.as_str()).map(|line| &line.fact);
        facts.find(|fact| matches!(fact, Fact::Grant { .. } | Fact::Revocation { .. })).cloned()
    }

    fn grant(&mut self, request: &GrantRequest) -> GrantOutcome {
        match self.transfer(&request.id) {
            Some(Fact::Grant { wallet, amount })
                if (&wallet, amount) == (&request.wallet, request.amount) =>
            {
                return GrantOutcome::Exists;
            }
            Some(_) => return GrantOutcome::Conflict,
            None => {}
        }
        let (at, cause, memo) = (request.now, request.id.as_str(), request.memo.as_str());
        let wallet = &request.wallet;
        self.begin();
        self.write(at, cause, memo, Fact::Grant { wallet: wallet.clone(), amount: request.amount });
        for _ in 0..request.amount {
            let (wallet, pool) = (wallet.clone(), Pool::Purchased);
            self.write(at, cause, memo, Fact::Credit { wallet, pool, kind: EntryKind::Granted });
        }
        GrantOutcome::Granted { balance: self.last_balance(wallet, std::iter::once(&Pool::Purchased)) }
    }

    /// Number of credits of this kind that a revocation moved or missed.
    fn revoked(&self, id: &str, kind: EntryKind) -> u64 {
        let mut count = 0;
        for line in self.lines.iter().filter(|line| line.cause == id) {
            count += u64::from(matches!(&line.fact, Fact::Credit { kind: moved, .. } if *moved == kind));
        }
        count
    }

    /// Number of credits of a grant that its revocations took or missed.
    fn reclaimed(&self, of_grant: &GrantId) -> u64 {
        let is_of = |line: &&Line| matches!(&line.fact, Fact::Revocation { grant, .. } if grant == of_grant);
        let causes = self.lines.iter().filter(is_of).map(|line| line.cause.as_str());
        causes.map(|cause| self.revoked(cause, TAKEN) + self.revoked(cause, MISSING)).sum()
    }

    fn revoke(&mut self, request: &RevokeRequest) -> RevokeOutcome {
        let (at, cause, memo) = (request.now, request.id.as_str(), request.memo.as_str());
        match self.transfer(&request.id) {
            Some(Fact::Revocation { grant, amount })
                if (&grant, amount) == (&request.grant, request.amount) =>
            {
                let (taken, shortfall) = (self.revoked(cause, TAKEN), self.revoked(cause, MISSING));
                return RevokeOutcome::Exists { taken, shortfall };
            }
            Some(_) => return RevokeOutcome::Conflict,
            None => {}
        }
        let Some(Fact::Grant { wallet, amount: granted }) = self.transfer(&request.grant) else {
            return RevokeOutcome::GrantNotFound;
        };
        self.begin();
        let (grant, amount) = (request.grant.clone(), request.amount);
        self.write(at, cause, memo, Fact::Revocation { grant, amount });
        for _ in 0..amount {
            if self.reclaimed(&request.grant) == granted {
                break;
            }
            let kind = if self.has_credit(&wallet, &Pool::Purchased) { TAKEN } else { MISSING };
            let fact = Fact::Credit { wallet: wallet.clone(), pool: Pool::Purchased, kind };
            self.write(at, cause, memo, fact);
        }
        RevokeOutcome::Revoked { taken: self.revoked(cause, TAKEN), shortfall: self.revoked(cause, MISSING) }
    }

    /// The entries of a wallet: each run of equal credits of one operation is one entry.
    fn entries(&self, wallet: &WalletId) -> Vec<Entry> {
        let mut entries: Vec<(u64, Entry)> = Vec::new();
        for (line, pool, moved) in self.credits(wallet) {
            let (taken, missing) = if moved == MISSING { (0, 1) } else { (1, 0) };
            if let Some((operation, entry)) = entries.last_mut()
                && *operation == line.operation
                && entry.pool == *pool
                && std::mem::discriminant(&entry.kind) == std::mem::discriminant(&moved)
            {
                entry.amount += taken;
                if let EntryKind::Revoked { shortfall } = &mut entry.kind {
                    *shortfall += missing;
                }
                continue;
            }
            let (wallet, pool) = (wallet.clone(), pool.clone());
            let (cause, memo) = (line.cause.clone(), line.memo.clone());
            let seq = entries.len() as u64 + 1;
            let entry = Entry { seq, at: line.at, wallet, pool, kind: moved, amount: taken, cause, memo };
            entries.push((line.operation, entry));
        }
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

impl LedgerModel {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Ledger for LedgerModel {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        Ok(self.journal().take(&request, EntryKind::Held))
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        Ok(self.journal().take(&request, EntryKind::Charged))
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.journal().extend(id, expires_at)
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.journal().settle(&request)
    }

    async fn grant(&self, request: GrantRequest) -> Result<GrantOutcome> {
        request.check()?;
        Ok(self.journal().grant(&request))
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        request.check()?;
        Ok(self.journal().revoke(&request))
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        Ok(self.journal().balance(wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        terms.check()?;
        let journal = self.journal();
        let mut purchased_spent = 0;
        for (line, pool, kind) in journal.credits(wallet) {
            let is_spent = matches!(kind, EntryKind::Spent | EntryKind::Charged);
            purchased_spent += u64::from(is_spent && *pool == Pool::Purchased && line.at >= since);
        }
        Ok(PeriodBalance { balance: journal.balance(wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        Ok(self.journal().expire(now, limit, |_| true))
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let after = Cursor::number(page.after.as_ref())?;
        let entries = self.journal().entries(wallet);
        let rest = entries.into_iter().filter(|entry| entry.seq > after);
        Ok(Page::cut(rest, &page, |entry| entry.seq.to_string()))
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let journal = self.journal();
        let owner = |line: &Line| match &line.fact {
            Fact::Credit { wallet, .. } => Some(wallet.clone()),
            _ => None,
        };
        let mut wallets: Vec<WalletId> = journal.lines.iter().filter_map(owner).collect();
        wallets.sort();
        wallets.dedup();
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let rest = wallets.iter().filter(|wallet| wallet.as_str() > after);
        let rest =
            rest.map(|wallet| journal.last_balance(wallet, journal.credits(wallet).map(|(_, pool, _)| pool)));
        Ok(Page::cut(rest, &page, |balance| balance.wallet.as_str().to_owned()))
    }
}
