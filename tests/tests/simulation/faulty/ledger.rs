//! A ledger behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
    },
    test_doubles::LedgerWrapper,
};

use super::nothing;
use crate::simulation::store_gate::StoreGate;

#[derive(Debug)]
pub(crate) struct FaultyLedger {
    pub(crate) inner: Arc<dyn Ledger>,
    pub(crate) gate: Arc<StoreGate>,
}

fn legs(request: &HoldRequest) -> String {
    let legs: Vec<&str> = request.legs.iter().map(|leg| leg.wallet.as_str()).collect();
    format!("{} {legs:?} {}", request.id, request.memo)
}

impl FaultyLedger {
    fn store(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl LedgerWrapper for FaultyLedger {
    fn inner(&self) -> &dyn Ledger {
        self.inner.as_ref()
    }

    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        let (inner, what) = (self.store(), legs(&request));
        self.gate.pass("ledger.hold", || what, async move { inner.hold(request).await }, nothing).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        let (inner, what) = (self.store(), legs(&request));
        self.gate.pass("ledger.spend", || what, async move { inner.spend(request).await }, nothing).await
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        let (inner, id) = (self.store(), id.clone());
        let what = format!("{id} until {expires_at}");
        self.gate
            .pass("ledger.extend", || what, async move { inner.extend(&id, expires_at).await }, nothing)
            .await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        let (inner, what) = (self.store(), format!("{} {:?}", request.id, request.spent));
        self.gate.pass("ledger.settle", || what, async move { inner.settle(request).await }, nothing).await
    }

    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome> {
        let (inner, what) = (self.store(), grant.id.to_string());
        self.gate.pass("ledger.grant", || what, async move { inner.grant(grant).await }, nothing).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        let (inner, what) = (self.store(), request.id.to_string());
        self.gate.pass("ledger.revoke", || what, async move { inner.revoke(request).await }, nothing).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        let (inner, wallet, terms) = (self.store(), wallet.clone(), terms.clone());
        let what = wallet.to_string();
        let work = async move { inner.balance(&wallet, &terms).await };
        self.gate.pass("ledger.balance", || what, work, nothing).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        let (inner, wallet, terms) = (self.store(), wallet.clone(), terms.clone());
        let what = wallet.to_string();
        let work = async move { inner.balance_since(&wallet, &terms, since).await };
        self.gate.pass("ledger.balance_since", || what, work, nothing).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        let inner = self.store();
        let work = async move { inner.expire(now, limit).await };
        self.gate.pass("ledger.expire", || now.to_string(), work, nothing).await
    }

    async fn shorten_holds(&self, latest: Timestamp) -> Result<()> {
        let inner = self.store();
        let work = async move { inner.shorten_holds(latest).await };
        self.gate.pass("ledger.shorten_holds", || latest.to_string(), work, nothing).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let (inner, wallet) = (self.store(), wallet.clone());
        let what = wallet.to_string();
        let work = async move { inner.entries(&wallet, page).await };
        self.gate.pass("ledger.entries", || what, work, nothing).await
    }

    async fn recent_entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let (inner, wallet) = (self.store(), wallet.clone());
        let what = wallet.to_string();
        let work = async move { inner.recent_entries(&wallet, page).await };
        self.gate.pass("ledger.recent_entries", || what, work, nothing).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let inner = self.store();
        self.gate.pass("ledger.wallets", String::new, async move { inner.wallets(page).await }, nothing).await
    }
}
