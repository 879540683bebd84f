//! The audit of the ledger, also while others write to it.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use transcript_core::{
    Result,
    ids::{Cursor, WalletId},
    ledger::{
        Balance, Entry, EntryKind, Ledger, Pool, Terms,
        audit::{Difference, Tally},
    },
    page::{PAGE_LIMIT, PageRequest},
};

use crate::Verbatim;

/// How often a wallet that others write to is read again before it is given up.
const READINGS_MAX: u32 = 100;
/// How many pools a ledger is asked for at once: as many as terms may have.
const POOLS_AT_ONCE: usize = 8;
/// The longest pause between two readings.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// How many wallets were checked.
    pub wallets: u64,
    /// How many entries were added up.
    pub entries: u64,
    /// How many holds were open.
    pub open_holds: u64,
    /// What all pools have spent, together.
    pub spent: u64,
    /// What all pools hold, together.
    pub held: u64,
    /// What was granted to all pools and not taken back, together.
    pub granted: u64,
    /// Where the ledger contradicts itself; empty when it does not.
    pub disagreements: Vec<Disagreement>,
}

/// A contradiction in one wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// A balance is not what its entries add up to.
    Balance {
        /// The wallet.
        wallet: WalletId,
        /// Both sides.
        difference: Difference,
    },
    /// An entry takes more out of a pool than there is.
    Entry {
        /// The wallet.
        wallet: WalletId,
        /// The entry's number.
        entry: u64,
    },
    /// A hold is open in the wallet, but neither a pool nor an entry knows of it.
    Baseless {
        /// The wallet.
        wallet: WalletId,
    },
    /// The wallet changed each time that it was read, so that nothing can be said about it.
    Restless {
        /// The wallet.
        wallet: WalletId,
    },
}

impl Verbatim {
    /// Checks that every balance of the ledger is what its entries add up to.
    ///
    /// Others may write at the same time: a balance counts only when no entry was added to its wallet
    /// since its entries were read. Wallets that appear meanwhile may be left out.
    ///
    /// # Errors
    /// The storage's faults.
    pub async fn audit(&self) -> Result<Audit> {
        let ledger = self.ledger();
        let mut audit = Audit::default();
        let mut open = HashSet::new();
        let mut page = PageRequest::first();
        loop {
            let wallets = ledger.wallets(page).await?;
            for balance in &wallets.items {
                audit.wallets += 1;
                let mut reading = Reading::new(ledger.as_ref(), balance);
                let mut found = reading.run().await?;
                if balance.pools.is_empty() && reading.entries == 0 {
                    found.disagreements.push(Disagreement::Baseless { wallet: balance.wallet.clone() });
                }
                audit.entries = audit.entries.saturating_add(reading.entries);
                open.extend(reading.open.into_keys());
                audit.take(found);
            }
            match wallets.next {
                Some(next) => page = PageRequest { after: Some(next), limit: PAGE_LIMIT },
                None => break,
            }
        }
        audit.open_holds = open.len() as u64;
        Ok(audit)
    }
}

impl Audit {
    fn take(&mut self, found: Found) {
        for pool in &found.balance.pools {
            self.spent = self.spent.saturating_add(pool.spent);
            self.held = self.held.saturating_add(pool.held);
            self.granted = self.granted.saturating_add(pool.granted);
        }
        self.disagreements.extend(found.disagreements);
    }
}

/// What was found in one wallet.
struct Found {
    balance: Balance,
    disagreements: Vec<Disagreement>,
}

/// The reading of one wallet.
struct Reading<'a> {
    ledger: &'a dyn Ledger,
    wallet: WalletId,
    /// The pools that the ledger has, beside those that entries name.
    pools: Vec<Pool>,
    tally: Tally,
    /// What each open hold still holds.
    open: HashMap<String, u64>,
    entries: u64,
    /// Where the last page of entries began, and the number of the last entry that was added up.
    page: Option<Cursor>,
    last: Option<u64>,
}

impl<'a> Reading<'a> {
    fn new(ledger: &'a dyn Ledger, balance: &Balance) -> Self {
        Self {
            ledger,
            wallet: balance.wallet.clone(),
            pools: balance.pools.iter().map(|pool| pool.pool.clone()).collect(),
            tally: Tally::default(),
            open: HashMap::new(),
            entries: 0,
            page: None,
            last: None,
        }
    }

    /// Reads entries, then the balance, then entries again: when there are no new ones, the balance is
    /// the one that belongs to those that were read.
    async fn run(&mut self) -> Result<Found> {
        let impossible =
            |wallet: &WalletId, entry| vec![Disagreement::Entry { wallet: wallet.clone(), entry }];
        if let Err(entry) = self.advance().await? {
            return Ok(Found {
                balance: self.balance().await?,
                disagreements: impossible(&self.wallet, entry),
            });
        }
        let mut pause = Duration::from_millis(1);
        let mut is_read_anew = false;
        for _ in 0..READINGS_MAX {
            let balance = self.balance().await?;
            match self.advance().await? {
                Ok(0) => {
                    let differences = self.tally.differences(&balance);
                    if !differences.is_empty() && !is_read_anew {
                        // An entry of another pool may have been stored after one with a higher number was read.
                        is_read_anew = true;
                        self.forget();
                        continue;
                    }
                    let wallet = || self.wallet.clone();
                    let disagreements = differences
                        .into_iter()
                        .map(|difference| Disagreement::Balance { wallet: wallet(), difference })
                        .collect();
                    return Ok(Found { balance, disagreements });
                }
                Ok(_) => tokio::time::sleep(pause).await,
                Err(entry) => {
                    return Ok(Found { balance, disagreements: impossible(&self.wallet, entry) });
                }
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        let wallet = self.wallet.clone();
        Ok(Found { balance: self.balance().await?, disagreements: vec![Disagreement::Restless { wallet }] })
    }

    /// Forgets what was read, so that it is read anew from the first entry.
    fn forget(&mut self) {
        (self.tally, self.entries) = (Tally::default(), 0);
        (self.page, self.last) = (None, None);
        self.open.clear();
    }

    /// Adds up the entries that were not read yet; returns how many, or the first impossible one.
    async fn advance(&mut self) -> Result<std::result::Result<u64, u64>> {
        let mut added = 0;
        loop {
            let page = PageRequest { after: self.page.clone(), limit: PAGE_LIMIT };
            let entries = self.ledger.entries(&self.wallet, page).await?;
            for entry in entries.items.iter().filter(|entry| self.last.is_none_or(|last| entry.seq > last)) {
                if let Err(entry) = self.tally.add(entry) {
                    return Ok(Err(entry));
                }
                follow(&mut self.open, entry);
                added += 1;
            }
            if let Some(entry) = entries.items.last() {
                self.last = self.last.max(Some(entry.seq));
            }
            // The last page is read again the next time: it may have grown.
            match entries.next {
                Some(next) => self.page = Some(next),
                None => break,
            }
        }
        self.entries = self.entries.saturating_add(added);
        Ok(Ok(added))
    }

    /// The balance of every pool that the ledger or the entries name.
    async fn balance(&self) -> Result<Balance> {
        let mut pools = self.pools.clone();
        for pool in self.tally.pools() {
            if !pools.iter().any(|known| known.is_same(&pool.pool)) {
                pools.push(pool.pool.clone());
            }
        }
        // A wallet gets a pool a day, and terms have a few: it is asked for in parts. They belong together, since a
        // balance only counts where no entry came since.
        let mut balance = Balance { wallet: self.wallet.clone(), pools: Vec::new() };
        for pools in pools.chunks(POOLS_AT_ONCE) {
            let terms = Terms { pools: pools.to_vec(), resets_at: None };
            balance.pools.extend(self.ledger.balance(&self.wallet, &terms).await?.pools);
        }
        Ok(balance)
    }
}

/// Follows what a hold still holds, for as long as it is open.
fn follow(open: &mut HashMap<String, u64>, entry: &Entry) {
    match entry.kind {
        EntryKind::Held => {
            let held = open.entry(entry.cause.clone()).or_default();
            *held = held.saturating_add(entry.amount);
        }
        EntryKind::Spent | EntryKind::Returned | EntryKind::Expired => {
            if let Some(held) = open.get_mut(&entry.cause) {
                *held = held.saturating_sub(entry.amount);
                if *held == 0 {
                    open.remove(&entry.cause);
                }
            }
        }
        // What is charged is held no longer.
        EntryKind::Charged | EntryKind::Granted | EntryKind::Revoked { .. } => {}
    }
}

#[cfg(test)]
mod tests;
