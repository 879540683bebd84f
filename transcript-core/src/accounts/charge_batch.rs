//! Effect of a group of charges: decided in order, on the rows loaded for all of them.
//!
//! The rules are those of single operations: [`crate::ledger::rules`] and [`crate::limits::rules`].

use std::collections::{HashMap, HashSet};

use super::{ChargeOutcome, ChargeRequest};
use crate::{
    error::Result,
    ledger::{
        HoldRequest,
        rules::{EntryRow, HoldRow, LedgerRows, PoolRow},
    },
    limits::{
        LimitRequest,
        rules::{self, SlidingWindow},
    },
    time::Timestamp,
};

/// The most pools in the terms of an ordinary charge.
const POOLS_MAX: usize = 2;

/// An item of a group: a charge, or a spend of the ledger.
pub trait ChargeItem {
    /// Returns the spend of credits.
    fn spend(&self) -> &HoldRequest;

    /// Returns the charge with key and rate limit. `None` for a spend without them.
    fn charge(&self) -> Option<&ChargeRequest>;
}

impl ChargeItem for ChargeRequest {
    fn spend(&self) -> &HoldRequest {
        &self.spend
    }

    fn charge(&self) -> Option<&ChargeRequest> {
        Some(self)
    }
}

/// The rows that the database loaded for one charge.
#[derive(Debug)]
pub struct ChargeRows {
    /// Whether the key is live and its account has the expected version. True without a key.
    pub key_is_valid: bool,
    /// Whether its hold id exists already, or a hold of its wallet is overdue.
    pub needs_separate_run: bool,
    /// The window of its limit.
    pub window: Option<SlidingWindow>,
    /// The pools of its wallet.
    pub pools: Vec<PoolRow>,
}

/// Outcomes of a group of charges, and the rows to store.
#[derive(Debug, Default)]
pub struct ChargeBatch {
    /// In the order of the charges. `None` for a charge that must run separately, after this batch.
    pub outcomes: Vec<Option<ChargeOutcome>>,
    /// Changed pools, in no order.
    pub pools: Vec<PoolRow>,
    /// Windows whose end did not change.
    pub windows: Vec<SlidingWindow>,
    /// Windows that are new, or whose end changed.
    pub moved_windows: Vec<SlidingWindow>,
    /// New holds.
    pub holds: Vec<HoldRow>,
    /// New entries, in order.
    pub entries: Vec<EntryRow>,
    /// Time of the last charge, in milliseconds.
    pub now: i64,
}

/// The window of a rate limit, with the charges that the batch has decided so far.
#[derive(Debug, Default)]
struct WindowUpdate {
    windows: Vec<SlidingWindow>,
    /// The end of the stored window.
    end: Option<i64>,
    is_changed: bool,
}

/// Whether the statements of a group support this charge.
fn is_supported(item: &impl ChargeItem) -> bool {
    let [leg] = item.spend().legs.as_slice() else { return false };
    leg.terms.pools.len() <= POOLS_MAX && item.charge().is_none_or(|charge| 0 < charge.limit_request.cost)
}

impl ChargeBatch {
    /// Whether the batch changes no row.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
            && self.windows.is_empty()
            && self.moved_windows.is_empty()
            && self.holds.is_empty()
            && self.entries.is_empty()
    }

    /// Decides the charges in order. Each sees the result of those before it.
    ///
    /// A spend without a charge has no rate limit: `remaining` and `reset_ms` of its outcome are 0.
    ///
    /// # Errors
    /// As [`LedgerRows::hold`].
    pub fn decide(items: &[impl ChargeItem], rows: Vec<ChargeRows>) -> Result<Self> {
        let mut batch = Self { outcomes: Vec::with_capacity(items.len()), ..Self::default() };
        let mut limits: HashMap<&str, WindowUpdate> = HashMap::with_capacity(items.len());
        let mut wallets: HashMap<&str, Vec<PoolRow>> = HashMap::with_capacity(items.len());
        let mut ids = HashSet::with_capacity(items.len());
        for (item, rows) in items.iter().zip(rows) {
            if !rows.key_is_valid {
                batch.outcomes.push(Some(ChargeOutcome::Stale));
                continue;
            }
            let spend = item.spend();
            let is_new = ids.insert(spend.id.as_str());
            let leg = spend.legs.first().filter(|_| is_new && !rows.needs_separate_run && is_supported(item));
            let Some(leg) = leg else {
                batch.outcomes.push(None);
                continue;
            };
            let (remaining, reset_ms) = match item.charge() {
                None => (0, 0),
                Some(charge) => {
                    batch.now = spend.now.as_millis();
                    let limit = limits
                        .entry(&charge.limit_request.bucket)
                        .or_insert_with(|| WindowUpdate::from_stored(rows.window));
                    match limit.take(&charge.limit_request, spend.now) {
                        Ok(left) => left,
                        Err(outcome) => {
                            batch.outcomes.push(Some(outcome));
                            continue;
                        }
                    }
                }
            };
            let pools = wallets.entry(leg.wallet.as_str()).or_default();
            for pool in rows.pools {
                if !pools.iter().any(|known| known.bucket == pool.bucket) {
                    pools.push(pool);
                }
            }
            let mut ledger = LedgerRows::new(std::mem::take(pools), Vec::new(), Vec::new());
            let spent = ledger.spend(spend)?;
            let (left, holds, entries) = ledger.into_rows();
            *pools = left;
            batch.holds.extend(holds);
            batch.entries.extend(entries);
            batch.outcomes.push(Some(ChargeOutcome::Accepted { remaining, reset_ms, spent }));
        }
        batch.pools = wallets.into_values().flatten().filter(|pool| pool.touched).collect();
        for limit in limits.into_values().filter(|limit| limit.is_changed) {
            for window in limit.windows {
                let to = if limit.end == Some(window.ends_at) {
                    &mut batch.windows
                } else {
                    &mut batch.moved_windows
                };
                to.push(window);
            }
        }
        Ok(batch)
    }
}

impl WindowUpdate {
    fn from_stored(stored: Option<SlidingWindow>) -> Self {
        let end = stored.as_ref().map(|window| window.ends_at);
        Self { windows: Vec::from_iter(stored), end, is_changed: false }
    }

    /// Counts a request in the window.
    ///
    /// Returns the remaining count and the reset time, or the charge's outcome if it is rejected.
    fn take(&mut self, take: &LimitRequest, now: Timestamp) -> Result<(u32, u64), ChargeOutcome> {
        let left = ChargeOutcome::allowed(rules::take(&mut self.windows, std::slice::from_ref(take), now))?;
        self.is_changed = true;
        Ok(left)
    }
}
