//! An order store behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result,
    accounts::{Order, OrderStore},
    ids::{AccountId, OrderId},
};

use super::nothing;
use crate::simulation::store_gate::StoreGate;

#[derive(Debug)]
pub(crate) struct FaultyOrders {
    pub(crate) inner: Arc<dyn OrderStore>,
    pub(crate) gate: Arc<StoreGate>,
}

impl FaultyOrders {
    fn inner(&self) -> Arc<dyn OrderStore> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl OrderStore for FaultyOrders {
    async fn open(&self, order: Order) -> Result<()> {
        let (inner, what) = (self.inner(), order.id.to_string());
        self.gate.pass("orders.open", || what, async move { inner.open(order).await }, nothing).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        let (inner, id) = (self.inner(), id.clone());
        let what = id.to_string();
        self.gate.pass("orders.order", || what, async move { inner.order(&id).await }, nothing).await
    }

    async fn update(&self, order: Order, expected_version: u64) -> Result<bool> {
        let (inner, what) = (self.inner(), format!("{} {:?} {expected_version}", order.id, order.state));
        let work = async move { inner.update(order, expected_version).await };
        self.gate.pass("orders.update", || what, work, nothing).await
    }

    async fn list_open(&self, page: PageRequest) -> Result<Page<Order>> {
        let inner = self.inner();
        let work = async move { inner.list_open(page).await };
        self.gate.pass("orders.unsettled", String::new, work, nothing).await
    }

    async fn list_for_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>> {
        let (inner, account) = (self.inner(), account.clone());
        let what = account.to_string();
        let work = async move { inner.list_for_account(&account, page).await };
        self.gate.pass("orders.of_account", || what, work, nothing).await
    }
}
