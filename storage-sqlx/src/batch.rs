//! The charges of a group, decided one after another on the rows that they share.

use std::collections::{HashMap, HashSet};

use transcript_core::{
    Timestamp,
    accounts::{ChargeOutcome, ChargeRequest},
    ledger::HoldRequest,
    limits::Take,
};

use crate::{
    books::{Books, EntryRow, HoldRow, PoolRow},
    error::Work,
    window::{self, Window},
};

/// How many pools the terms of an ordinary charge name at most.
const POOLS_MAX: usize = 2;

/// What can be decided in a group: a charge, or a spend by the ledger alone.
pub(crate) trait Asked {
    /// The credits.
    fn spend(&self) -> &HoldRequest;

    /// What else a charge asks for; none for a spend.
    fn charge(&self) -> Option<&ChargeRequest>;
}

impl Asked for ChargeRequest {
    fn spend(&self) -> &HoldRequest {
        &self.spend
    }

    fn charge(&self) -> Option<&ChargeRequest> {
        Some(self)
    }
}

/// What the database has for one charge.
#[derive(Debug)]
pub(crate) struct Found {
    /// Whether the key opens the account in the version that was told, where a key was.
    pub(crate) opens: bool,
    /// Whether its hold is known, or one of its wallet's is overdue.
    pub(crate) is_odd: bool,
    /// The window of its limit.
    pub(crate) window: Option<Window>,
    /// The pools of its wallet.
    pub(crate) pools: Vec<PoolRow>,
}

/// What became of the charges of a group, and what there is to store.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// In the order of the charges; none for those that must go their own way, once all of this is stored.
    pub(crate) outcomes: Vec<Option<ChargeOutcome>>,
    pub(crate) pools: Vec<PoolRow>,
    /// Windows whose end is as it was.
    pub(crate) windows: Vec<Window>,
    /// Windows that are new, or whose end has moved.
    pub(crate) moved: Vec<Window>,
    pub(crate) holds: Vec<HoldRow>,
    pub(crate) entries: Vec<EntryRow>,
    /// The moment of the last charge, in milliseconds.
    pub(crate) now: i64,
}

/// A limit's window, as those before have left it.
#[derive(Debug, Default)]
struct Taking {
    windows: Vec<Window>,
    /// The end that is stored.
    end: Option<i64>,
    is_taken: bool,
}

/// Whether a charge has the form that the statements of a group know.
fn is_ordinary(ask: &impl Asked) -> bool {
    let [leg] = ask.spend().legs.as_slice() else { return false };
    leg.terms.pools.len() <= POOLS_MAX && ask.charge().is_none_or(|charge| 0 < charge.take.cost)
}

impl Batch {
    /// Whether there is nothing to store.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_empty(&self) -> bool {
        self.pools.is_empty()
            && self.windows.is_empty()
            && self.moved.is_empty()
            && self.holds.is_empty()
            && self.entries.is_empty()
    }

    /// Decides the charges in their order. Each sees what those before it have left. A spend has no limit: what it is told
    /// of one means nothing.
    pub(crate) fn decide(asks: &[impl Asked], found: Vec<Found>) -> Work<Self> {
        let mut batch = Self { outcomes: Vec::with_capacity(asks.len()), ..Self::default() };
        let mut limits: HashMap<&str, Taking> = HashMap::with_capacity(asks.len());
        let mut wallets: HashMap<&str, Vec<PoolRow>> = HashMap::with_capacity(asks.len());
        let mut ids = HashSet::with_capacity(asks.len());
        for (ask, found) in asks.iter().zip(found) {
            if !found.opens {
                batch.outcomes.push(Some(ChargeOutcome::Stale));
                continue;
            }
            let spend = ask.spend();
            let is_new = ids.insert(spend.id.as_str());
            let leg = spend.legs.first().filter(|_| is_new && !found.is_odd && is_ordinary(ask));
            let Some(leg) = leg else {
                batch.outcomes.push(None);
                continue;
            };
            let (remaining, reset_ms) = match ask.charge() {
                None => (0, 0),
                Some(charge) => {
                    batch.now = spend.now.as_millis();
                    let limit = limits.entry(&charge.take.bucket).or_insert_with(|| Taking::of(found.window));
                    match limit.take(&charge.take, spend.now) {
                        Ok(left) => left,
                        Err(outcome) => {
                            batch.outcomes.push(Some(outcome));
                            continue;
                        }
                    }
                }
            };
            let pools = wallets.entry(leg.wallet.as_str()).or_default();
            for pool in found.pools {
                if !pools.iter().any(|known| known.bucket == pool.bucket) {
                    pools.push(pool);
                }
            }
            let mut books = Books::of_pools(std::mem::take(pools));
            let spent = books.spend(spend)?;
            let (left, holds, entries) = books.into_rows();
            *pools = left;
            batch.holds.extend(holds);
            batch.entries.extend(entries);
            batch.outcomes.push(Some(ChargeOutcome::Counted { remaining, reset_ms, spent }));
        }
        batch.pools = wallets.into_values().flatten().filter(|pool| pool.touched).collect();
        for limit in limits.into_values().filter(|limit| limit.is_taken) {
            for window in limit.windows {
                let to =
                    if limit.end == Some(window.ends_at) { &mut batch.windows } else { &mut batch.moved };
                to.push(window);
            }
        }
        Ok(batch)
    }
}

impl Taking {
    fn of(stored: Option<Window>) -> Self {
        let end = stored.as_ref().map(|window| window.ends_at);
        Self { windows: Vec::from_iter(stored), end, is_taken: false }
    }

    /// What is left of the limit and when it is whole again, or how the charge ends.
    fn take(&mut self, take: &Take, now: Timestamp) -> Result<(u32, u64), ChargeOutcome> {
        let left = ChargeOutcome::allowed(window::take(&mut self.windows, std::slice::from_ref(take), now))?;
        self.is_taken = true;
        Ok(left)
    }
}
