//! Invariants of accounts: one live key each, at most one charge per delivery, no lost credit.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use transcript_core::{
    Timestamp,
    accounts::{BillingMonth, CreditBalance, EffectivePlan},
    directory::{Account, AccountRef, KeyOwner},
    ids::{AccountId, WalletId},
    ledger::{Entry, EntryKind, Pool, PoolBalance},
};

use super::{Oracle, now};

/// Recorded facts of one account.
#[derive(Debug)]
pub(super) struct KnownAccount {
    id: AccountId,
    /// The largest limit of each bucket so far.
    limits: BTreeMap<String, u64>,
    /// The digests of all keys so far.
    keys: BTreeSet<Vec<u8>>,
    /// Results of transcript calls, by memo, and by idempotency key and language. All calls with the same
    /// idempotency key and language together may cost once.
    calls: BTreeMap<(String, Option<String>), AccountTally>,
    /// The acknowledged grants.
    grants: BTreeMap<String, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct AccountTally {
    delivered: u64,
    open_ended: u64,
    running: u64,
}

impl AccountTally {
    /// The largest number of charges that these calls allow.
    fn max_charges(self, keyed: bool) -> u64 {
        let all = self.delivered + self.open_ended + self.running;
        if keyed { all.min(1) } else { all }
    }
}

impl KnownAccount {
    /// The largest number of languages that were requested with one idempotency key; at least 1.
    fn max_languages_of_key(&self) -> u64 {
        let mut counts = BTreeMap::new();
        for (memo, request) in self.calls.keys() {
            let key = request.as_deref().and_then(|request| request.split(' ').next());
            if key.is_some() {
                *counts.entry((memo, key)).or_insert(0) += 1;
            }
        }
        counts.into_values().max().unwrap_or(0).max(1)
    }
}

/// End of a transcript call, as far as its charge is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// The transcript was delivered.
    Delivered,
    /// An error: free.
    Refused,
    /// Unknown: the client disconnected, or the process crashed.
    OpenEnded,
}

/// A transcript call with credits. Drop without an end counts as open-ended.
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
        call.change(|tally| tally.running += 1);
        call
    }

    pub(crate) fn end(mut self, end: CallEnd) {
        self.end = end;
    }

    fn change(&self, change: impl FnOnce(&mut AccountTally)) {
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
            tally.running -= 1;
            match end {
                CallEnd::Delivered => tally.delivered += 1,
                CallEnd::Refused => {}
                CallEnd::OpenEnded => tally.open_ended += 1,
            }
        });
        // An error leaves one call fewer to pay for, so a wrong charge becomes visible now.
        self.oracle.step("ledger.settle");
    }
}

impl Oracle {
    /// Records a new or changed account, whose buckets may have other limits now.
    pub(crate) fn on_account_changed(&self, account: &Account) {
        let mut facts = self.facts();
        let known = facts.accounts.entry(account.wallet.clone()).or_insert_with(|| KnownAccount {
            id: account.id.clone(),
            limits: BTreeMap::new(),
            keys: BTreeSet::new(),
            calls: BTreeMap::new(),
            grants: BTreeMap::new(),
        });
        if let Some(paid) = account.paid {
            let bucket = BillingMonth { start: paid.from, end: paid.through }.bucket();
            let limit = known.limits.entry(bucket).or_default();
            *limit = (*limit).max(paid.credits);
        }
    }

    /// Records a new key of an account and checks that every earlier one is dead.
    pub(crate) fn on_key_created(&self, digest: &[u8]) {
        let Some(KeyOwner::Account { account, .. }) = now(self.directory.key_owner(digest)) else { return };
        let mut facts = self.facts();
        let Some(known) = facts.accounts.get_mut(&account.wallet) else { return };
        known.keys.insert(digest.to_vec());
        let keys = known.keys.clone();
        drop(facts);
        let live = keys.iter().filter(|digest| self.is_live(digest)).count();
        if live != 1 {
            self.report(format_args!("{} has {live} live keys", account.id));
        }
    }

    /// Whether a key is valid now.
    pub(crate) fn is_live(&self, digest: &[u8]) -> bool {
        now(self.directory.key_owner(digest)).is_some()
    }

    /// Records an acknowledged grant.
    pub(crate) fn on_granted(&self, wallet: &WalletId, id: &str, amount: u64) {
        if let Some(known) = self.facts().accounts.get_mut(wallet) {
            known.grants.insert(id.to_owned(), amount);
        }
    }

    pub(super) fn account_limit(&self, wallet: &WalletId, pool: &PoolBalance) -> u64 {
        let Some(bucket) = pool.pool.bucket() else { return pool.granted };
        let facts = self.facts();
        let known = facts.accounts.get(wallet);
        let paid = known.and_then(|known| known.limits.get(bucket)).copied().unwrap_or(0);
        paid.max(self.limits.free_account)
    }

    /// After every step: each request was paid at most once, and only delivered transcripts were paid.
    pub(super) fn check_account(&self, wallet: &WalletId, entries: &[Entry]) {
        let mut violations = Vec::new();
        let facts = self.facts();
        let Some(known) = facts.accounts.get(wallet) else { return };
        let (mut of_work, mut of_memo) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
        for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
            // The part after the last dash identifies the attempt at a request, or the item of a job.
            let work = match entry.cause.rsplit_once('-') {
                Some((work, _)) if work != "job" => work,
                _ => entry.cause.as_str(),
            };
            *of_work.entry(work).or_default() += entry.amount;
            *of_memo.entry(&entry.memo).or_default() += entry.amount;
        }
        let languages = known.max_languages_of_key();
        for (work, paid) in of_work.into_iter().filter(|(_, paid)| *paid > languages) {
            violations.push(format!("{wallet} paid {paid} for one request, {work}"));
        }
        for (memo, paid) in of_memo {
            let calls = known.calls.iter().filter(|((what, _), _)| what == memo);
            let allowed: u64 = calls.map(|((_, key), tally)| tally.max_charges(key.is_some())).sum();
            if paid > allowed {
                violations.push(format!("{wallet} paid {paid} for {memo}, allowed: {allowed}"));
            }
        }
        let granted: BTreeMap<&str, u64> = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Granted)
            .map(|entry| (entry.cause.as_str(), entry.amount))
            .collect();
        for (id, amount) in &known.grants {
            if granted.get(id.as_str()) != Some(amount) {
                violations.push(format!("{wallet} lacks the {amount} credits granted by {id}"));
            }
        }
        drop(facts);
        violations.into_iter().for_each(|violation| self.report(violation));
    }

    /// In runs without faults: every delivered transcript was paid for.
    pub(super) fn check_account_paid(&self, wallet: &WalletId, entries: &[Entry]) {
        let mut violations = Vec::new();
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
                violations.push(format!("{wallet} got {memo} {times} times and paid {paid}"));
            }
        }
        drop(facts);
        violations.into_iter().for_each(|violation| self.report(violation));
    }

    /// Checks that reported credits are the sum of the entries. Valid only while nothing changes the account.
    pub(crate) fn check_credits(
        &self,
        wallet: &WalletId,
        reported: CreditBalance,
        options: &transcript_core::accounts::AccountsOptions,
        at: Timestamp,
    ) {
        let Some(id) = self.facts().accounts.get(wallet).map(|known| known.id.clone()) else { return };
        let Some(account) = now(self.directory.account(&AccountRef::Id(id))) else { return };
        let effective_plan = EffectivePlan::new(&account, options, at);
        let entries = now(self.ledger.entries(wallet, transcript_core::PageRequest::first())).items;
        let bucket = effective_plan.period.bucket();
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
                (Pool::Purchased, kind) if kind.is_spent() && entry.at < effective_plan.period.start => {
                    -amount
                }
                (Pool::Purchased, EntryKind::Granted) => amount,
                (Pool::Purchased, EntryKind::Revoked { .. }) => -amount,
                _ => 0,
            };
        }
        let plan = i128::from(effective_plan.plan_credits);
        let expect = ((plan + of_plan).max(0) + bought, plan + at_start, effective_plan.period.end);
        let is = (i128::from(reported.remaining), i128::from(reported.total), reported.resets_at);
        if is != expect {
            self.report(format_args!("{wallet} has {expect:?} credits, reported: {is:?}"));
        }
    }
}
