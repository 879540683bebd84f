//! What must hold in the ledger.

use std::{collections::BTreeMap, sync::Arc};

use transcript_core::{
    PageRequest, Timestamp,
    ids::WalletId,
    ledger::{Balance, Entry, EntryKind, audit},
};

use super::{Facts, Oracle, now};

/// The wallet of the daily cap.
const SERVICE: &str = "service";
/// What the wallets of visitors begin with.
const VISITOR: &str = "visitor-";
/// What those of their networks begin with: a second leg, which is spent in vain, too.
const NETWORK: &str = "network-";
/// What the memo of a look-up's payment begins with; the video follows.
const MEMO: &str = "transcript ";

/// What one hold did to one wallet.
#[derive(Debug, Default)]
struct Course {
    held: Vec<u64>,
    ended: Vec<u64>,
}

/// How often each video was paid for.
#[derive(Debug, Default)]
struct Charges {
    by_key: BTreeMap<(WalletId, String), u64>,
    by_keys: BTreeMap<String, u64>,
    by_service: BTreeMap<String, u64>,
}

impl Oracle {
    pub(super) fn wallets(&self) -> Vec<(Balance, Vec<Entry>)> {
        let balances = now(self.ledger.wallets(PageRequest::first())).items;
        let entries = |balance: &Balance| {
            let page = now(self.ledger.entries(&balance.wallet, PageRequest::first()));
            assert!(page.next.is_none(), "a simulation is short enough for one page");
            page.items
        };
        balances.into_iter().map(|balance| (balance.clone(), entries(&balance))).collect()
    }

    /// After every step: balances are the sums of their entries, nothing is above its limit, no hold
    /// ends twice, and nobody pays for what was not done.
    pub(super) fn check_books(&self) {
        let mut charges = Charges::default();
        for balance in now(self.ledger.wallets(PageRequest::first())).items {
            let entries = self.looked_through(&balance);
            match is_of_account(&balance.wallet) {
                true => self.check_account(&balance.wallet, &entries),
                false => charges.count(&balance.wallet, &entries),
            }
        }
        self.check_charges(&charges);
    }

    /// The entries of a wallet, which are looked through once for every balance that it comes to.
    fn looked_through(&self, balance: &Balance) -> Arc<[Entry]> {
        if let Some((known, entries)) = self.facts().books.get(&balance.wallet)
            && known == balance
        {
            return Arc::clone(entries);
        }
        let page = now(self.ledger.entries(&balance.wallet, PageRequest::first()));
        assert!(page.next.is_none(), "a simulation is short enough for one page");
        self.check_wallet(balance, &page.items);
        let entries: Arc<[Entry]> = page.items.into();
        let seen = (balance.clone(), Arc::clone(&entries));
        self.facts().books.insert(balance.wallet.clone(), seen);
        entries
    }

    fn check_wallet(&self, balance: &Balance, entries: &[Entry]) {
        let wallet = &balance.wallet;
        match audit::compare(balance, entries) {
            Ok(differences) if differences.is_empty() => {}
            Ok(differences) => self.wrong(format_args!("{wallet} is not its entries: {differences:?}")),
            Err(seq) => self.wrong(format_args!("{wallet}: entry {seq} takes more than there is")),
        }
        for pool in &balance.pools {
            let limit = match wallet.as_str() {
                SERVICE => self.limits.service,
                _ if is_of_account(wallet) => self.account_limit(wallet, pool),
                _ => self.limits.key,
            };
            if pool.used() > limit {
                self.wrong(format_args!("{wallet} uses {} of {limit} in {:?}", pool.used(), pool.pool));
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
                self.wrong(format_args!("{wallet}: the hold {cause} went wrong: {course:?}"));
            }
        }
    }

    fn check_charges(&self, charges: &Charges) {
        let mut wrongs = Vec::new();
        let facts = self.facts();
        for ((wallet, video), count) in &charges.by_key {
            let may = facts.may_be_charged(wallet, video);
            if *count > may {
                wrongs
                    .push(format!("{wallet} paid {count} times for {video}, with {may} look-ups to pay for"));
            }
        }
        for (video, count) in &charges.by_keys {
            let gifts = facts.of_video(&facts.gifts, video);
            if *count > gifts {
                wrongs.push(format!("{video} was paid {count} times and given {gifts} times"));
            }
            if !facts.kept.iter().any(|kept| kept.transcript.video.to_string() == *video) {
                wrongs.push(format!("{video} was paid for and never archived"));
            }
        }
        for (video, count) in &charges.by_service {
            let asks = facts.of_video(&facts.asks, video);
            if *count > asks {
                wrongs.push(format!("{video} cost the service {count}, and was asked for {asks} times"));
            }
        }
        drop(facts);
        wrongs.into_iter().for_each(|wrong| self.wrong(wrong));
    }

    /// At the end, when all holds have settled or expired: nothing is held any more.
    pub(crate) fn check_nothing_held(&self, at: Timestamp) {
        now(self.ledger.expire(at, u32::MAX));
        self.facts().books.clear();
        self.check_books();
        for (balance, entries) in self.wallets() {
            if balance.pools.iter().any(|pool| pool.held != 0) {
                self.wrong(format_args!("{} still holds something: {balance:?}", balance.wallet));
            }
            for (cause, course) in courses(&entries) {
                if course.held.iter().sum::<u64>() != course.ended.iter().sum::<u64>() {
                    self.wrong(format_args!("the hold {cause} never ended: {course:?}"));
                }
            }
        }
    }

    /// When nothing went wrong: every look-up that brought something new was paid for.
    pub(crate) fn check_all_paid(&self) {
        let mut charges = Charges::default();
        for (balance, entries) in self.wallets() {
            match is_of_account(&balance.wallet) {
                true => self.check_account_paid(&balance.wallet, &entries),
                false => charges.count(&balance.wallet, &entries),
            }
        }
        let mut wrongs = Vec::new();
        for ((wallet, video), tally) in &self.facts().visits {
            let paid = charges.by_key.get(&(wallet.clone(), video.to_string())).copied().unwrap_or(0);
            if paid < tally.new {
                wrongs.push(format!("{wallet} got {video} new {} times and paid {paid} times", tally.new));
            }
        }
        wrongs.into_iter().for_each(|wrong| self.wrong(wrong));
    }

    /// A look-up that brought something new need not be paid for: its settlement was made impossible.
    pub(crate) fn forgive(&self, wallet: &WalletId, video: &transcript_core::video::VideoId) {
        if let Some(tally) = self.facts().visits.get_mut(&(wallet.clone(), video.clone())) {
            tally.new -= 1;
        }
    }

    /// How much a wallet has spent and returned in all its buckets, with the number of its holds.
    pub(crate) fn sums(&self, wallet: &WalletId) -> Sums {
        let entries = now(self.ledger.entries(wallet, PageRequest::first())).items;
        let sum = |kind| entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.amount).sum();
        Sums {
            held: sum(EntryKind::Held) + sum(EntryKind::Charged),
            spent: sum(EntryKind::Spent) + sum(EntryKind::Charged),
            returned: sum(EntryKind::Returned),
            expired: sum(EntryKind::Expired),
        }
    }
}

/// Whether a wallet is an account's of Surface B.
pub(super) fn is_of_account(wallet: &WalletId) -> bool {
    wallet.as_str().starts_with("account-")
}

/// What a wallet did, over all its buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) held: u64,
    pub(crate) spent: u64,
    pub(crate) returned: u64,
    pub(crate) expired: u64,
}

impl Charges {
    fn count(&mut self, wallet: &WalletId, entries: &[Entry]) {
        for entry in entries.iter().filter(|entry| entry.kind.is_spent()) {
            let video = entry.memo.strip_prefix(MEMO).unwrap_or("nothing").to_owned();
            let name = wallet.as_str();
            if name == SERVICE {
                *self.by_service.entry(video).or_default() += entry.amount;
            } else if !name.starts_with(NETWORK) {
                *self.by_keys.entry(video.clone()).or_default() += entry.amount;
                // Whose look-ups they were, only keys tell.
                if !name.starts_with(VISITOR) {
                    *self.by_key.entry((wallet.clone(), video)).or_default() += entry.amount;
                }
            }
        }
    }
}

impl Facts {
    fn of_video(&self, counts: &BTreeMap<transcript_core::video::VideoId, u64>, video: &str) -> u64 {
        counts.iter().filter(|(key, _)| key.to_string() == video).map(|(_, count)| count).sum()
    }

    /// How many look-ups of a video with a key may have been charged by now.
    fn may_be_charged(&self, wallet: &WalletId, video: &str) -> u64 {
        let of_both = |key: &(WalletId, transcript_core::video::VideoId)| {
            key.0 == *wallet && key.1.to_string() == video
        };
        let tallies = self.visits.iter().filter(|(key, _)| of_both(key));
        tallies.map(|(_, tally)| tally.new + tally.open_ended + tally.under_way).sum()
    }
}

fn courses(entries: &[Entry]) -> BTreeMap<String, Course> {
    let mut courses: BTreeMap<String, Course> = BTreeMap::new();
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
