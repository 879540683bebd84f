//! The in-memory ledger: maps of rows, over the shared rules.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use async_trait::async_trait;

use super::SharedState;
use crate::{
    error::Result,
    ids::{Cursor, HoldId, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, Pool, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
        rules::{
            self, ExpireRequest, ExtendRequest, HoldRow, HoldRowState, HoldStep, LedgerRows, LedgerStep,
            PoolRow, RowKeys, TransferRow,
        },
    },
    page::{Page, PageRequest},
    time::Timestamp,
};

/// An in-memory [`Ledger`]. A clone is the same ledger.
#[derive(Clone, Debug, Default)]
pub struct MemoryLedger {
    state: SharedState<LedgerState>,
}

/// All rows of the ledger.
#[derive(Debug, Default)]
struct LedgerState {
    wallets: BTreeMap<String, WalletState>,
    holds: HashMap<String, HoldRow>,
    /// The open holds by expiry.
    open: BTreeSet<(i64, String)>,
    transfers: HashMap<String, TransferRow>,
    /// Number of entries.
    entries: u64,
}

#[derive(Debug, Default)]
struct WalletState {
    /// Every pool that was ever used, in order of first use.
    pools: Vec<PoolRow>,
    entries: Vec<Entry>,
}

impl LedgerState {
    fn pools(&self, wallet: &str) -> &[PoolRow] {
        self.wallets.get(wallet).map_or(&[], |wallet| &wallet.pools)
    }

    fn entries(&self, wallet: &WalletId) -> &[Entry] {
        self.wallets.get(wallet.as_str()).map_or(&[], |wallet| &wallet.entries)
    }

    fn balance(&self, wallet: &WalletId, terms: &Terms) -> Balance {
        rules::balance(self.pools(wallet.as_str()), wallet, terms)
    }

    /// Ids of the open holds that are overdue, the longest overdue first.
    fn overdue(&self, now: i64) -> impl Iterator<Item = &str> {
        self.open.iter().take_while(move |(expires_at, _)| *expires_at <= now).map(|(_, id)| id.as_str())
    }

    fn shorten_holds(&mut self, latest: i64) {
        for (end, id) in self.open.split_off(&(latest.saturating_add(1), String::new())) {
            let hold = self.holds.get_mut(&id).filter(|hold| hold.legs.iter().any(|leg| leg.amount > 0));
            match hold {
                Some(hold) => {
                    hold.expires_at = latest;
                    self.open.insert((latest, id));
                }
                None => {
                    self.open.insert((end, id));
                }
            }
        }
    }

    fn load(&self, keys: &RowKeys<'_>) -> LedgerRows {
        let mut ids: BTreeSet<&str> = keys.hold.into_iter().collect();
        if !keys.wallets.is_empty() {
            let is_wanted =
                |hold: &HoldRow| hold.legs.iter().any(|leg| keys.wallets.contains(&leg.wallet.as_str()));
            ids.extend(self.overdue(keys.now).filter(|id| self.holds.get(*id).is_some_and(is_wanted)));
        }
        ids.extend(self.overdue(keys.now).take(keys.limit as usize));
        let holds: Vec<HoldRow> = ids.into_iter().filter_map(|id| self.holds.get(id)).cloned().collect();
        let transfers = keys.transfers.iter().filter_map(|id| self.transfers.get(*id));
        let transfers: Vec<TransferRow> = transfers.cloned().collect();
        let pools = keys.pools_with(&holds, &transfers).into_iter().filter_map(|(wallet, bucket)| {
            self.pools(wallet).iter().find(|pool| pool.bucket == bucket).cloned()
        });
        LedgerRows::new(pools.collect(), holds, transfers)
    }

    fn store(&mut self, rows: &LedgerRows) {
        let Some(changes) = rows.changes() else { return };
        for row in changes.pools {
            let row = PoolRow { touched: false, ..row.clone() };
            let pools = &mut self.wallets.entry(row.wallet.clone()).or_default().pools;
            match pools.iter_mut().find(|stored| stored.bucket == row.bucket) {
                Some(stored) => *stored = row,
                None => pools.push(row),
            }
        }
        for row in changes.entries {
            self.entries += 1;
            let wallet = self.wallets.entry(row.wallet.clone()).or_default();
            wallet.entries.push(row.entry(self.entries));
        }
        for row in changes.holds {
            if let Some(before) = self.holds.get(&row.id) {
                self.open.remove(&(before.expires_at, before.id.clone()));
            }
            if row.state == HoldRowState::Open {
                self.open.insert((row.expires_at, row.id.clone()));
            }
            self.holds.insert(row.id.clone(), HoldRow { touched: false, ..row.clone() });
        }
        for row in changes.transfers {
            self.transfers.insert(row.id.clone(), TransferRow { touched: false, ..row.clone() });
        }
    }
}

impl MemoryLedger {
    fn apply<S: LedgerStep>(&self, step: &S) -> Result<S::Outcome> {
        step.check()?;
        let mut state = self.state.lock();
        let mut rows = state.load(&step.keys());
        let outcome = step.apply(&mut rows)?;
        state.store(&rows);
        Ok(outcome)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        self.apply(&HoldStep { request, spend: false })
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        self.apply(&HoldStep { request, spend: true })
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.apply(&ExtendRequest { id: id.clone(), expires_at })
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.apply(&request)
    }

    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome> {
        self.apply(&grant)
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        self.apply(&request)
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        Ok(self.state.lock().balance(wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        terms.check()?;
        let state = self.state.lock();
        let spent = state
            .entries(wallet)
            .iter()
            .filter(|entry| entry.pool == Pool::Purchased && entry.kind.is_spent() && entry.at >= since);
        let purchased_spent = spent.map(|entry| entry.amount).sum();
        Ok(PeriodBalance { balance: state.balance(wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        self.apply(&ExpireRequest { now, limit })
    }

    async fn shorten_holds(&self, latest: Timestamp) -> Result<()> {
        self.state.lock().shorten_holds(latest.as_millis());
        Ok(())
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let after = Cursor::number(page.after.as_ref())?;
        let state = self.state.lock();
        let rest = state.entries(wallet).iter().filter(|entry| entry.seq > after).cloned();
        Ok(Page::cut(rest, &page, |entry| entry.seq.to_string()))
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let state = self.state.lock();
        let after = page.after.as_ref().map(|cursor| cursor.as_str());
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = state.wallets.range::<str, _>((start, Bound::Unbounded));
        let rest = rest.map(|(id, wallet)| Balance {
            wallet: WalletId::new(id.as_str()),
            pools: wallet.pools.iter().map(PoolRow::balance).collect(),
        });
        Ok(Page::cut(rest, &page, |balance| balance.wallet.as_str().to_owned()))
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::ledger_conformance!(Arc::new(super::MemoryLedger::default()));
}
