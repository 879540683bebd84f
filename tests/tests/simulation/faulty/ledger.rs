//! A ledger behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, BalanceSince, Entry, Grant, GrantOutcome, HoldOutcome, HoldRequest, HoldState, Ledger,
        Revoke, RevokeOutcome, Settle, SettleOutcome, Terms,
    },
};

use super::nothing;
use crate::simulation::gate::Gate;

#[derive(Debug)]
pub(crate) struct FaultyLedger {
    pub(crate) inner: Arc<dyn Ledger>,
    pub(crate) gate: Arc<Gate>,
}

fn legs(ask: &HoldRequest) -> String {
    let legs: Vec<&str> = ask.legs.iter().map(|leg| leg.wallet.as_str()).collect();
    format!("{} {legs:?} {}", ask.id, ask.memo)
}

impl FaultyLedger {
    fn inner(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl Ledger for FaultyLedger {
    async fn hold(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        let (inner, what) = (self.inner(), legs(&ask));
        self.gate.pass("ledger.hold", || what, async move { inner.hold(ask).await }, nothing).await
    }

    async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        let (inner, what) = (self.inner(), legs(&ask));
        self.gate.pass("ledger.spend", || what, async move { inner.spend(ask).await }, nothing).await
    }

    async fn extend(&self, id: &HoldId, until: Timestamp) -> Result<HoldState> {
        let (inner, id) = (self.inner(), id.clone());
        let what = format!("{id} until {until}");
        self.gate.pass("ledger.extend", || what, async move { inner.extend(&id, until).await }, nothing).await
    }

    async fn settle(&self, ask: Settle) -> Result<SettleOutcome> {
        let (inner, what) = (self.inner(), format!("{} {:?}", ask.id, ask.spent));
        self.gate.pass("ledger.settle", || what, async move { inner.settle(ask).await }, nothing).await
    }

    async fn grant(&self, grant: Grant) -> Result<GrantOutcome> {
        let (inner, what) = (self.inner(), grant.id.to_string());
        self.gate.pass("ledger.grant", || what, async move { inner.grant(grant).await }, nothing).await
    }

    async fn revoke(&self, ask: Revoke) -> Result<RevokeOutcome> {
        let (inner, what) = (self.inner(), ask.id.to_string());
        self.gate.pass("ledger.revoke", || what, async move { inner.revoke(ask).await }, nothing).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        let (inner, wallet, terms) = (self.inner(), wallet.clone(), terms.clone());
        let what = wallet.to_string();
        let work = async move { inner.balance(&wallet, &terms).await };
        self.gate.pass("ledger.balance", || what, work, nothing).await
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<BalanceSince> {
        let (inner, wallet, terms) = (self.inner(), wallet.clone(), terms.clone());
        let what = wallet.to_string();
        let work = async move { inner.balance_since(&wallet, &terms, since).await };
        self.gate.pass("ledger.balance_since", || what, work, nothing).await
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        let inner = self.inner();
        let work = async move { inner.expire(now, limit).await };
        self.gate.pass("ledger.expire", || now.to_string(), work, nothing).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        let (inner, wallet) = (self.inner(), wallet.clone());
        let what = wallet.to_string();
        let work = async move { inner.entries(&wallet, page).await };
        self.gate.pass("ledger.entries", || what, work, nothing).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let inner = self.inner();
        self.gate.pass("ledger.wallets", String::new, async move { inner.wallets(page).await }, nothing).await
    }
}
