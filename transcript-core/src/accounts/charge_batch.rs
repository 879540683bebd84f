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

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        ids::{AccountId, HoldId, WalletId},
        ledger::{GrantRequest, Ledger as _, Leg, Pool, Terms, rules::bucket_name},
        limits::RateLimiter as _,
        testing::{LimitModel, ledger::LedgerModel},
    };

    /// Stored rows, and the models of what they must contain.
    #[derive(Default)]
    struct BatchFixture {
        pools: Vec<PoolRow>,
        windows: Vec<SlidingWindow>,
        holds: HashSet<String>,
        ledger: LedgerModel,
        limiter: LimitModel,
    }

    /// A charge: account, hold id, amount, order of the pools, state of the key.
    type ChargeSpec = (u8, u8, u64, bool, u8);

    fn charge((account, id, amount, is_reversed, _): ChargeSpec, now: Timestamp) -> ChargeRequest {
        let month = Pool::Allowance { bucket: "month/1".to_owned(), limit: 12 };
        let mut pools = vec![month, Pool::Purchased];
        if is_reversed {
            pools.reverse();
        }
        let wallet = WalletId::new(format!("w{account}"));
        ChargeRequest {
            key_digest: Vec::new(),
            account: AccountId::new(format!("a{account}")),
            version: 1,
            limit_request: LimitRequest {
                bucket: format!("api/{account}"),
                max: 4,
                window_ms: 1_000,
                cost: 1,
            },
            spend: HoldRequest {
                id: HoldId::new(format!("h{id}")),
                legs: vec![Leg { wallet, terms: Terms { pools, resets_at: None }, amount }],
                now,
                expires_at: Timestamp::from_millis(now.as_millis() + 60_000),
                memo: "test".to_owned(),
            },
        }
    }

    impl BatchFixture {
        fn rows(&self, charge: &ChargeRequest, key: u8) -> ChargeRows {
            let leg = &charge.spend.legs[0];
            let stored = |pool: &Pool| {
                let mut rows = self.pools.iter();
                rows.find(|row| row.wallet == leg.wallet.as_str() && row.bucket == bucket_name(pool)).cloned()
            };
            ChargeRows {
                key_is_valid: key > 0,
                needs_separate_run: self.holds.contains(charge.spend.id.as_str()),
                window: self.windows.iter().find(|row| row.bucket == charge.limit_request.bucket).cloned(),
                pools: leg.terms.pools.iter().filter_map(stored).collect(),
            }
        }

        fn store(&mut self, batch: ChargeBatch) {
            for row in batch.pools {
                self.pools.retain(|old| (&old.wallet, &old.bucket) != (&row.wallet, &row.bucket));
                self.pools.push(PoolRow { touched: false, ..row });
            }
            for row in batch.windows.into_iter().chain(batch.moved_windows) {
                self.windows.retain(|old| old.bucket != row.bucket);
                self.windows.push(row);
            }
            self.holds.extend(batch.holds.into_iter().map(|row| row.id));
        }

        /// Charges one by one, as the models do it.
        async fn expected(&self, charge: &ChargeRequest, key: u8) -> ChargeOutcome {
            if key == 0 {
                return ChargeOutcome::Stale;
            }
            let counted = self.limiter.acquire(vec![charge.limit_request.clone()], charge.spend.now).await;
            match ChargeOutcome::allowed(counted.unwrap()) {
                Ok((remaining, reset_ms)) => {
                    let spent = self.ledger.spend(charge.spend.clone()).await.unwrap();
                    ChargeOutcome::Accepted { remaining, reset_ms, spent }
                }
                Err(limited) => limited,
            }
        }

        /// Runs a group and compares each outcome with the models.
        async fn check(&mut self, group: &[ChargeSpec], now: Timestamp) -> Result<(), TestCaseError> {
            let charges: Vec<ChargeRequest> = group.iter().map(|spec| charge(*spec, now)).collect();
            let rows = charges.iter().zip(group).map(|(charge, spec)| self.rows(charge, spec.4)).collect();
            let mut batch = ChargeBatch::decide(&charges, rows).unwrap();
            let mut ids = HashSet::new();
            for ((charge, spec), outcome) in
                charges.iter().zip(group).zip(std::mem::take(&mut batch.outcomes))
            {
                let id = charge.spend.id.as_str();
                let is_separate = spec.4 > 0 && (self.holds.contains(id) || !ids.insert(id));
                prop_assert_eq!(outcome.is_none(), is_separate, "{:?}", charge);
                let Some(outcome) = outcome else { continue };
                let expected = self.expected(charge, spec.4).await;
                prop_assert_eq!(format!("{outcome:?}"), format!("{expected:?}"), "{:?}", charge);
            }
            self.store(batch);
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn batch_matches_single_charges_of_models(
            groups in proptest::collection::vec(
                (proptest::collection::vec((0..3_u8, any::<u8>(), 0..5_u64, any::<bool>(), 0..8_u8), 1..10), 0..900_i64),
                1..12,
            )
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (mut fixture, mut now) = (BatchFixture::default(), 1_000);
                let granted = PoolRow { granted: 6, ..PoolRow::fresh("w0", &Pool::Purchased) };
                fixture.pools.push(granted);
                let grant = GrantRequest {
                    id: crate::ids::GrantId::new("g"),
                    wallet: WalletId::new("w0"),
                    amount: 6,
                    now: Timestamp::from_millis(0),
                    memo: String::new(),
                };
                fixture.ledger.grant(grant).await.unwrap();
                for (group, pause) in groups {
                    now += pause;
                    fixture.check(&group, Timestamp::from_millis(now)).await?;
                }
                Ok::<(), TestCaseError>(())
            })?;
        }
    }
}
