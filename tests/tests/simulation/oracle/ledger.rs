//! Invariants of the ledger.

use std::{collections::BTreeMap, sync::Arc};

use transcript_core::{
    PageRequest, Timestamp,
    ids::WalletId,
    ledger::{Balance, Entry, EntryKind, audit},
};

use super::{Oracle, OracleFacts, now};

/// The wallet of the daily cap.
const SERVICE: &str = "service";
/// The wallet of the daily cap of accounts.
const ACCOUNTS_CAP: &str = "service-accounts";
/// Prefix of the wallets of visitors.
const VISITOR: &str = "visitor-";
/// Prefix of the wallets of their networks: a second leg, which is spent on failures too.
const NETWORK: &str = "network-";
/// Prefix of the memo of a lookup's payment; the video follows.
const MEMO: &str = "transcript ";

/// Entries of one hold in one wallet.
#[derive(Debug, Default)]
struct HoldCourse {
    held: Vec<u64>,
    ended: Vec<u64>,
}

/// Number of payments for each video.
#[derive(Debug, Default)]
struct ExpectedCharges {
    by_key: BTreeMap<(WalletId, String), u64>,
    by_keys: BTreeMap<String, u64>,
    by_service: BTreeMap<String, u64>,
}

impl Oracle {
    pub(super) fn wallets(&self) -> Vec<(Balance, Vec<Entry>)> {
        let balances = now(self.ledger.wallets(PageRequest::first())).items;
        let entries = |balance: &Balance| {
            let page = now(self.ledger.entries(&balance.wallet, PageRequest::first()));
            assert!(page.next.is_none(), "the entries of a simulation fit on one page");
            page.items
        };
        balances.into_iter().map(|balance| (balance.clone(), entries(&balance))).collect()
    }

    /// After every step: balances are the sums of their entries, no pool is above its limit, no hold ends
    /// twice, and only completed work is paid.
    pub(super) fn check_ledger(&self) {
        let mut charges = ExpectedCharges::default();
        for balance in now(self.ledger.wallets(PageRequest::first())).items {
            let entries = self.checked_entries(&balance);
            match is_account_wallet(&balance.wallet) {
                true => self.check_account(&balance.wallet, &entries),
                false => charges.count(&balance.wallet, &entries),
            }
        }
        self.check_charges(&charges);
    }

    /// The entries of a wallet, which are checked once per balance.
    fn checked_entries(&self, balance: &Balance) -> Arc<[Entry]> {
        if let Some((known, entries)) = self.facts().checked_wallets.get(&balance.wallet)
            && known == balance
        {
            return Arc::clone(entries);
        }
        let page = now(self.ledger.entries(&balance.wallet, PageRequest::first()));
        assert!(page.next.is_none(), "the entries of a simulation fit on one page");
        self.check_wallet(balance, &page.items);
        let entries: Arc<[Entry]> = page.items.into();
        let checked = (balance.clone(), Arc::clone(&entries));
        self.facts().checked_wallets.insert(balance.wallet.clone(), checked);
        entries
    }

    fn check_wallet(&self, balance: &Balance, entries: &[Entry]) {
        let wallet = &balance.wallet;
        match audit::compare(balance, entries) {
            Ok(differences) if differences.is_empty() => {}
            Ok(differences) => {
                self.report(format_args!("{wallet} differs from its entries: {differences:?}"))
            }
            Err(seq) => self.report(format_args!("{wallet}: entry {seq} overdraws the wallet")),
        }
        for pool in &balance.pools {
            let limit = match wallet.as_str() {
                SERVICE => self.limits.service,
                ACCOUNTS_CAP => self.limits.accounts,
                _ if is_account_wallet(wallet) => self.account_limit(wallet, pool),
                _ => self.limits.key,
            };
            if pool.used() > limit {
                self.report(format_args!("{wallet} uses {} of {limit} in {:?}", pool.used(), pool.pool));
            }
        }
        for kind in [EntryKind::Spent, EntryKind::Charged, EntryKind::Returned, EntryKind::Expired] {
            if entries.iter().any(|entry| entry.kind == kind) {
                self.reach(format_args!("{kind:?}"));
            }
        }
        let is_transfer =
            |entry: &&Entry| matches!(entry.kind, EntryKind::Granted | EntryKind::Revoked { .. });
        let transfers = entries.iter().filter(is_transfer);
        let transfers: Vec<&str> = transfers.map(|entry| entry.cause.as_str()).collect();
        for (cause, course) in courses(entries) {
            if transfers.contains(&cause.as_str()) {
                continue;
            }
            let (held, ended): (u64, u64) = (course.held.iter().sum(), course.ended.iter().sum());
            if course.held.len() != 1 || (ended != 0 && ended != held) {
                self.report(format_args!("{wallet}: unbalanced hold {cause}: {course:?}"));
            }
        }
    }

    fn check_charges(&self, charges: &ExpectedCharges) {
        let mut violations = Vec::new();
        let facts = self.facts();
        for ((wallet, video), count) in &charges.by_key {
            let allowed = facts.max_charges(wallet, video);
            if *count > allowed {
                violations.push(format!("{wallet} paid {count} times for {video}, allowed: {allowed}"));
            }
        }
        for (video, count) in &charges.by_keys {
            let supply_counts = facts.of_video(&facts.supply_counts, video);
            if *count > supply_counts {
                violations.push(format!("{video} was paid {count} times and supplied {supply_counts} times"));
            }
            if !facts.archived.iter().any(|archived| archived.transcript.video.to_string() == *video) {
                violations.push(format!("{video} was paid for and never archived"));
            }
        }
        for (video, count) in &charges.by_service {
            let fetches = facts.of_video(&facts.fetches, video);
            if *count > fetches {
                violations.push(format!("{video} cost the service {count} and was fetched {fetches} times"));
            }
        }
        drop(facts);
        violations.into_iter().for_each(|violation| self.report(violation));
    }

    /// At the end, when all holds are settled or expired: no amount is held.
    pub(crate) fn check_nothing_held(&self, at: Timestamp) {
        now(self.ledger.expire(at, u32::MAX));
        self.facts().checked_wallets.clear();
        self.check_ledger();
        for (balance, entries) in self.wallets() {
            if balance.pools.iter().any(|pool| pool.held != 0) {
                self.report(format_args!("{} still has holds: {balance:?}", balance.wallet));
            }
            for (cause, course) in courses(&entries) {
                if course.held.iter().sum::<u64>() != course.ended.iter().sum::<u64>() {
                    self.report(format_args!("the hold {cause} never ended: {course:?}"));
                }
            }
        }
    }

    /// In runs without faults: every lookup with a new transcript was paid for.
    pub(crate) fn check_all_paid(&self) {
        let mut charges = ExpectedCharges::default();
        for (balance, entries) in self.wallets() {
            match is_account_wallet(&balance.wallet) {
                true => self.check_account_paid(&balance.wallet, &entries),
                false => charges.count(&balance.wallet, &entries),
            }
        }
        let mut violations = Vec::new();
        for ((wallet, video), tally) in &self.facts().lookups {
            let paid = charges.by_key.get(&(wallet.clone(), video.to_string())).copied().unwrap_or(0);
            if paid < tally.new {
                violations
                    .push(format!("{wallet} got {video} new {} times and paid {paid} times", tally.new));
            }
        }
        violations.into_iter().for_each(|violation| self.report(violation));
    }

    /// Excludes one new transcript from [`Self::check_all_paid`]: its settle was made impossible.
    pub(crate) fn allow_unpaid(&self, wallet: &WalletId, video: &transcript_core::video::VideoId) {
        if let Some(tally) = self.facts().lookups.get_mut(&(wallet.clone(), video.clone())) {
            tally.new -= 1;
        }
    }

    /// Amounts of a wallet over all its buckets.
    pub(crate) fn sums(&self, wallet: &WalletId) -> WalletSums {
        let entries = now(self.ledger.entries(wallet, PageRequest::first())).items;
        let sum = |kind| entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.amount).sum();
        WalletSums {
            held: sum(EntryKind::Held) + sum(EntryKind::Charged),
            spent: sum(EntryKind::Spent) + sum(EntryKind::Charged),
            returned: sum(EntryKind::Returned),
            expired: sum(EntryKind::Expired),
        }
    }
}

/// Whether a wallet belongs to an account of the v1 API.
pub(super) fn is_account_wallet(wallet: &WalletId) -> bool {
    wallet.as_str().starts_with("account-")
}

/// Amounts of a wallet, over all its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalletSums {
    pub(crate) held: u64,
    pub(crate) spent: u64,
    pub(crate) returned: u64,
    pub(crate) expired: u64,
}

impl ExpectedCharges {
    fn count(&mut self, wallet: &WalletId, entries: &[Entry]) {
        for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
            let video = entry.memo.strip_prefix(MEMO).unwrap_or("nothing").to_owned();
            let name = wallet.as_str();
            if name == SERVICE {
                *self.by_service.entry(video).or_default() += entry.amount;
            } else if !name.starts_with(NETWORK) && name != ACCOUNTS_CAP {
                *self.by_keys.entry(video.clone()).or_default() += entry.amount;
                // Only the wallets of keys identify the caller of a lookup.
                if !name.starts_with(VISITOR) {
                    *self.by_key.entry((wallet.clone(), video)).or_default() += entry.amount;
                }
            }
        }
    }
}

impl OracleFacts {
    fn of_video(&self, counts: &BTreeMap<transcript_core::video::VideoId, u64>, video: &str) -> u64 {
        counts.iter().filter(|(key, _)| key.to_string() == video).map(|(_, count)| count).sum()
    }

    /// The largest number of charges for lookups of a video with a key.
    fn max_charges(&self, wallet: &WalletId, video: &str) -> u64 {
        let is_match = |key: &(WalletId, transcript_core::video::VideoId)| {
            key.0 == *wallet && key.1.to_string() == video
        };
        let tallies = self.lookups.iter().filter(|(key, _)| is_match(key));
        tallies.map(|(_, tally)| tally.new + tally.open_ended + tally.running).sum()
    }
}

fn courses(entries: &[Entry]) -> BTreeMap<String, HoldCourse> {
    let mut courses: BTreeMap<String, HoldCourse> = BTreeMap::new();
    for entry in entries {
        let course = courses.entry(entry.cause.clone()).or_default();
        match entry.kind {
            EntryKind::Held => course.held.push(entry.amount),
            EntryKind::Spent | EntryKind::Returned | EntryKind::Expired => course.ended.push(entry.amount),
            EntryKind::Charged => {
                course.held.push(entry.amount);
                course.ended.push(entry.amount);
            }
            EntryKind::Granted | EntryKind::Revoked { .. } => {}
        }
    }
    courses
}
