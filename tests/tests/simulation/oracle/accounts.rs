//! What must hold for accounts: one live key each, nobody pays twice or for nothing, no credit is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use transcript_core::{
    Timestamp,
    accounts::{Credits, Month, Standing},
    directory::{Account, AccountRef, Owner},
    ids::{AccountId, WalletId},
    ledger::{Entry, EntryKind, Pool, PoolBalance},
};

use super::{Oracle, now};

/// What is known of one account.
#[derive(Debug)]
pub(super) struct Known {
    id: AccountId,
    /// The largest limit that each bucket ever had.
    limits: BTreeMap<String, u64>,
    /// The digests of all keys that it ever had.
    keys: BTreeSet<Vec<u8>>,
    /// How its calls for transcripts ended: by what was asked for and, where there was one, the idempotency
    /// key. With one, all of them together may cost once.
    calls: BTreeMap<(String, Option<String>), Tally>,
    /// The grants that were acknowledged.
    grants: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    delivered: u64,
    open_ended: u64,
    under_way: u64,
}

impl Tally {
    /// How often the calls may have been charged by now.
    fn most(self, keyed: bool) -> u64 {
        let all = self.delivered + self.open_ended + self.under_way;
        if keyed { all.min(1) } else { all }
    }
}

/// How a call for a transcript ended, as far as its charge is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The transcript was delivered.
    Delivered,
    /// It was refused: free.
    Refused,
    /// Nobody knows: the caller left, or the process died.
    OpenEnded,
}

/// A call for a transcript with credits. Dropped without an end, it is open-ended.
#[derive(Debug)]
pub(crate) struct PaidCall {
    oracle: Arc<Oracle>,
    wallet: WalletId,
    what: (String, Option<String>),
    end: CallEnd,
}

impl PaidCall {
    pub(crate) fn begin(
        oracle: &Arc<Oracle>,
        wallet: &WalletId,
        memo: String,
        idempotency_key: Option<String>,
    ) -> Self {
        let call = Self {
            oracle: Arc::clone(oracle),
            wallet: wallet.clone(),
            what: (memo, idempotency_key),
            end: CallEnd::OpenEnded,
        };
        call.change(|tally| tally.under_way += 1);
        call
    }

    pub(crate) fn end(mut self, end: CallEnd) {
        self.end = end;
    }

    fn change(&self, change: impl FnOnce(&mut Tally)) {
        let mut facts = self.oracle.facts();
        if let Some(known) = facts.accounts.get_mut(&self.wallet) {
            change(known.calls.entry(self.what.clone()).or_default());
        }
    }
}

impl Drop for PaidCall {
    fn drop(&mut self) {
        let end = self.end;
        self.change(|tally| {
            tally.under_way -= 1;
            match end {
                CallEnd::Delivered => tally.delivered += 1,
                CallEnd::Refused => {}
                CallEnd::OpenEnded => tally.open_ended += 1,
            }
        });
        // A refusal leaves one call fewer to pay for: whoever was charged for it shows now.
        self.oracle.step("ledger.settle");
    }
}

impl Oracle {
    /// An account is made or changed: its buckets may have other limits from now on.
    pub(crate) fn account_changed(&self, account: &Account) {
        let mut facts = self.facts();
        let known = facts.accounts.entry(account.wallet.clone()).or_insert_with(|| Known {
            id: account.id.clone(),
            limits: BTreeMap::new(),
            keys: BTreeSet::new(),
            calls: BTreeMap::new(),
            grants: BTreeMap::new(),
        });
        if let Some(paid) = account.paid {
            let bucket = Month { start: paid.from, end: paid.through }.bucket();
            let limit = known.limits.entry(bucket).or_default();
            *limit = (*limit).max(paid.credits);
        }
    }

    /// A key of an account is made: every earlier one is dead.
    pub(crate) fn key_made(&self, digest: &[u8]) {
        let Some(Owner::Account { account, .. }) = now(self.directory.owner(digest)) else { return };
        let mut facts = self.facts();
        let Some(known) = facts.accounts.get_mut(&account.wallet) else { return };
        known.keys.insert(digest.to_vec());
        let keys = known.keys.clone();
        drop(facts);
        let live = keys.iter().filter(|digest| self.is_live(digest)).count();
        if live != 1 {
            self.wrong(format_args!("{} has {live} live keys", account.id));
        }
    }

    /// Whether a key opens something now.
    pub(crate) fn is_live(&self, digest: &[u8]) -> bool {
        now(self.directory.owner(digest)).is_some()
    }

    /// A grant was acknowledged.
    pub(crate) fn granted(&self, wallet: &WalletId, id: &str, amount: u64) {
        if let Some(known) = self.facts().accounts.get_mut(wallet) {
            known.grants.insert(id.to_owned(), amount);
        }
    }

    /// What may be used of a pool of an account.
    pub(super) fn account_limit(&self, wallet: &WalletId, pool: &PoolBalance) -> u64 {
        let Some(bucket) = pool.pool.bucket() else { return pool.granted };
        let facts = self.facts();
        let known = facts.accounts.get(wallet);
        let paid = known.and_then(|known| known.limits.get(bucket)).copied().unwrap_or(0);
        paid.max(self.limits.free_account)
    }

    /// After every step: each request was paid at most once, and nobody paid for what was not delivered.
    pub(super) fn check_account(&self, wallet: &WalletId, entries: &[Entry]) {
        let mut wrongs = Vec::new();
        let facts = self.facts();
        let Some(known) = facts.accounts.get(wallet) else { return };
        let (mut of_work, mut of_memo) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
        for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
            // What follows the last dash tells one attempt at a request from another.
            let work = entry.cause.rsplit_once('-').map_or(entry.cause.as_str(), |(work, _)| work);
            *of_work.entry(work).or_default() += entry.amount;
            *of_memo.entry(&entry.memo).or_default() += entry.amount;
        }
        for (work, paid) in of_work.into_iter().filter(|(_, paid)| *paid > 1) {
            wrongs.push(format!("{wallet} paid {paid} for one request, {work}"));
        }
        for (memo, paid) in of_memo {
            let calls = known.calls.iter().filter(|((what, _), _)| what == memo);
            let may: u64 = calls.map(|((_, key), tally)| tally.most(key.is_some())).sum();
            if paid > may {
                wrongs.push(format!("{wallet} paid {paid} for {memo}, with {may} calls to pay for"));
            }
        }
        let granted: BTreeMap<&str, u64> = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Granted)
            .map(|entry| (entry.cause.as_str(), entry.amount))
            .collect();
        for (id, amount) in &known.grants {
            if granted.get(id.as_str()) != Some(amount) {
                wrongs.push(format!("{wallet} was granted {amount} by {id}, and does not have them"));
            }
        }
        drop(facts);
        wrongs.into_iter().for_each(|wrong| self.wrong(wrong));
    }

    /// When nothing went wrong: every transcript that was delivered was paid for.
    pub(super) fn check_account_paid(&self, wallet: &WalletId, entries: &[Entry]) {
        let mut wrongs = Vec::new();
        let facts = self.facts();
        let Some(known) = facts.accounts.get(wallet) else { return };
        let mut delivered = BTreeMap::<&str, u64>::new();
        for ((memo, key), tally) in &known.calls {
            let times = if key.is_some() { tally.delivered.min(1) } else { tally.delivered };
            *delivered.entry(memo).or_default() += times;
        }
        for (memo, times) in delivered {
            let of_memo = |entry: &&Entry| entry.kind.is_spent() && entry.memo == memo;
            let paid: u64 = entries.iter().filter(of_memo).map(|entry| entry.amount).sum();
            if paid < times {
                wrongs.push(format!("{wallet} got {memo} {times} times and paid {paid}"));
            }
        }
        drop(facts);
        wrongs.into_iter().for_each(|wrong| self.wrong(wrong));
    }

    /// What an account was told of its credits is what its entries add up to. Only while nobody changes
    /// anything.
    pub(crate) fn check_credits(
        &self,
        wallet: &WalletId,
        told: Credits,
        options: &transcript_core::accounts::AccountsOptions,
        at: Timestamp,
    ) {
        let Some(id) = self.facts().accounts.get(wallet).map(|known| known.id.clone()) else { return };
        let Some(account) = now(self.directory.account(&AccountRef::Id(id))) else { return };
        let standing = Standing::of(&account, options, at);
        let entries = now(self.ledger.entries(wallet, transcript_core::PageRequest::first())).items;
        let bucket = standing.period.bucket();
        let (mut of_plan, mut bought, mut at_start) = (0_i128, 0_i128, 0_i128);
        for entry in &entries {
            let amount = i128::from(entry.amount);
            let change = match entry.kind {
                EntryKind::Held | EntryKind::Charged | EntryKind::Revoked { .. } => -amount,
                EntryKind::Returned | EntryKind::Expired | EntryKind::Granted => amount,
                EntryKind::Spent => 0,
            };
            match &entry.pool {
                Pool::Purchased => bought += change,
                pool if pool.bucket() == Some(&bucket) => of_plan += change,
                Pool::Allowance { .. } => {}
            }
            at_start += match (&entry.pool, entry.kind) {
                (Pool::Purchased, kind) if kind.is_spent() && entry.at < standing.period.start => -amount,
                (Pool::Purchased, EntryKind::Granted) => amount,
                (Pool::Purchased, EntryKind::Revoked { .. }) => -amount,
                _ => 0,
            };
        }
        let plan = i128::from(standing.plan_credits);
        let expect = ((plan + of_plan).max(0) + bought, plan + at_start, standing.period.end);
        let is = (i128::from(told.remaining), i128::from(told.total), told.resets_at);
        if is != expect {
            self.wrong(format_args!("{wallet} was told {is:?} of its credits, which are {expect:?}"));
        }
    }
}
