//! Audit of the ledger, also during writes by others.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use transcript_core::{
    Result,
    ids::{Cursor, WalletId},
    ledger::{
        Balance, Entry, EntryKind, Ledger, Pool, Terms,
        audit::{BalanceMismatch, EntryTally},
    },
    page::{PAGE_LIMIT, PageRequest},
};

/// Maximum number of reads of a wallet that changes during the audit.
const READS_MAX: u32 = 100;
/// Number of pools per balance call: the maximum of one `Terms`.
const POOLS_PER_CALL: usize = 8;
/// Longest pause between two reads.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// Number of checked wallets.
    pub wallets: u64,
    /// Number of added entries.
    pub entries: u64,
    /// Number of open holds.
    pub open_holds: u64,
    /// Spent amount over all pools.
    pub spent: u64,
    /// Held amount over all pools.
    pub held: u64,
    /// Granted and not revoked amount over all pools.
    pub granted: u64,
    /// Contradictions in the ledger; empty if there are none.
    pub disagreements: Vec<AuditFinding>,
}

/// A contradiction in one wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditFinding {
    /// A balance differs from the sum of its entries.
    Balance {
        /// The wallet.
        wallet: WalletId,
        /// The stored and the recomputed balance.
        difference: BalanceMismatch,
    },
    /// An entry takes more from a pool than is available.
    Overdraw {
        /// The wallet.
        wallet: WalletId,
        /// Number of the entry.
        entry: u64,
    },
    /// A hold is open in the wallet, but neither a pool nor an entry records it.
    OrphanHold {
        /// The wallet.
        wallet: WalletId,
    },
    /// The wallet changed during every read, so it could not be checked.
    Unstable {
        /// The wallet.
        wallet: WalletId,
    },
}

/// Implements [`crate::Verbatim::audit`].
pub(crate) async fn audit(ledger: &dyn Ledger) -> Result<AuditReport> {
    let mut audit = AuditReport::default();
    let mut open = HashSet::new();
    let mut page = PageRequest::first();
    loop {
        let wallets = ledger.wallets(page).await?;
        for balance in &wallets.items {
            audit.wallets += 1;
            let mut scan = WalletScan::new(ledger, balance);
            let mut found = scan.run().await?;
            if balance.pools.is_empty() && scan.entries == 0 {
                found.disagreements.push(AuditFinding::OrphanHold { wallet: balance.wallet.clone() });
            }
            audit.entries = audit.entries.saturating_add(scan.entries);
            open.extend(scan.open.into_keys());
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

impl AuditReport {
    fn take(&mut self, found: AuditedWallet) {
        for pool in &found.balance.pools {
            self.spent = self.spent.saturating_add(pool.spent);
            self.held = self.held.saturating_add(pool.held);
            self.granted = self.granted.saturating_add(pool.granted);
        }
        self.disagreements.extend(found.disagreements);
    }
}

/// Result for one wallet.
struct AuditedWallet {
    balance: Balance,
    disagreements: Vec<AuditFinding>,
}

struct WalletScan<'a> {
    ledger: &'a dyn Ledger,
    wallet: WalletId,
    /// Pools of the ledger, in addition to those that entries name.
    pools: Vec<Pool>,
    tally: EntryTally,
    /// Amount still held by each open hold.
    open: HashMap<String, u64>,
    entries: u64,
    /// Cursor of the last page of entries, and number of the last added entry.
    page: Option<Cursor>,
    last: Option<u64>,
}

impl<'a> WalletScan<'a> {
    fn new(ledger: &'a dyn Ledger, balance: &Balance) -> Self {
        Self {
            ledger,
            wallet: balance.wallet.clone(),
            pools: balance.pools.iter().map(|pool| pool.pool.clone()).collect(),
            tally: EntryTally::default(),
            open: HashMap::new(),
            entries: 0,
            page: None,
            last: None,
        }
    }

    /// Reads the entries, then the balance, then new entries.
    ///
    /// Without new entries the balance belongs to the entries that were read.
    async fn run(&mut self) -> Result<AuditedWallet> {
        let overdraw =
            |wallet: &WalletId, entry| vec![AuditFinding::Overdraw { wallet: wallet.clone(), entry }];
        if let Err(entry) = self.advance().await? {
            return Ok(AuditedWallet {
                balance: self.balance().await?,
                disagreements: overdraw(&self.wallet, entry),
            });
        }
        let mut pause = Duration::from_millis(1);
        let mut is_reread = false;
        for _ in 0..READS_MAX {
            let balance = self.balance().await?;
            match self.advance().await? {
                Ok(0) => {
                    let differences = self.tally.differences(&balance);
                    if !differences.is_empty() && !is_reread {
                        // An entry of another pool may have been stored after one with a higher number was read.
                        is_reread = true;
                        self.reset();
                        continue;
                    }
                    let wallet = || self.wallet.clone();
                    let disagreements = differences
                        .into_iter()
                        .map(|difference| AuditFinding::Balance { wallet: wallet(), difference })
                        .collect();
                    return Ok(AuditedWallet { balance, disagreements });
                }
                Ok(_) => tokio::time::sleep(pause).await,
                Err(entry) => {
                    return Ok(AuditedWallet { balance, disagreements: overdraw(&self.wallet, entry) });
                }
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        let wallet = self.wallet.clone();
        Ok(AuditedWallet {
            balance: self.balance().await?,
            disagreements: vec![AuditFinding::Unstable { wallet }],
        })
    }

    /// Discards everything read, to start again at the first entry.
    fn reset(&mut self) {
        (self.tally, self.entries) = (EntryTally::default(), 0);
        (self.page, self.last) = (None, None);
        self.open.clear();
    }

    /// Adds the entries that are not read yet; returns their number, or the first impossible entry.
    async fn advance(&mut self) -> Result<std::result::Result<u64, u64>> {
        let mut added = 0;
        loop {
            let page = PageRequest { after: self.page.clone(), limit: PAGE_LIMIT };
            let entries = self.ledger.entries(&self.wallet, page).await?;
            for entry in entries.items.iter().filter(|entry| self.last.is_none_or(|last| entry.seq > last)) {
                if let Err(entry) = self.tally.add(entry) {
                    return Ok(Err(entry));
                }
                track_hold(&mut self.open, entry);
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

    /// Balance of every pool that the ledger or the entries name.
    async fn balance(&self) -> Result<Balance> {
        let mut pools = self.pools.clone();
        for pool in self.tally.pools() {
            if !pools.iter().any(|known| known.is_same(&pool.pool)) {
                pools.push(pool.pool.clone());
            }
        }
        // A wallet gets one pool a day, and terms have a few, so the balance is read in parts. The parts belong
        // together, since a balance only counts if no entry was added after the entries were read.
        let mut balance = Balance { wallet: self.wallet.clone(), pools: Vec::new() };
        for pools in pools.chunks(POOLS_PER_CALL) {
            let terms = Terms { pools: pools.to_vec(), resets_at: None };
            balance.pools.extend(self.ledger.balance(&self.wallet, &terms).await?.pools);
        }
        Ok(balance)
    }
}

/// Tracks the amount that each open hold still holds.
fn track_hold(open: &mut HashMap<String, u64>, entry: &Entry) {
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
        // A charge is never held.
        EntryKind::Charged | EntryKind::Granted | EntryKind::Revoked { .. } => {}
    }
}

#[cfg(test)]
mod tests;
