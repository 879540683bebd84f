//! The in-memory order store.

use std::collections::{HashMap, hash_map::Entry};

use async_trait::async_trait;

use super::SharedState;
use crate::{
    accounts::{Order, OrderState, OrderStore},
    error::Result,
    ids::{AccountId, OrderId},
    page::{Page, PageRequest},
};

/// An in-memory [`OrderStore`]. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryOrders {
    orders: SharedState<HashMap<OrderId, Order>>,
}

#[async_trait]
impl OrderStore for MemoryOrders {
    async fn open(&self, order: Order) -> Result<()> {
        order.check_new()?;
        match self.orders.lock().entry(order.id.clone()) {
            Entry::Vacant(position) => {
                position.insert(order);
                Ok(())
            }
            Entry::Occupied(stored) => order.check_same(stored.get()),
        }
    }

    async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        Ok(self.orders.lock().get(id).cloned())
    }

    async fn update(&self, order: Order, expected_version: u64) -> Result<bool> {
        let mut orders = self.orders.lock();
        match orders.get_mut(&order.id) {
            Some(stored) if stored.version == expected_version => {
                *stored = Order { version: expected_version + 1, ..stored.with_progress_of(&order) };
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn list_open(&self, page: PageRequest) -> Result<Page<Order>> {
        Ok(self.page(&page, |order| order.state == OrderState::Open))
    }

    async fn list_for_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>> {
        Ok(self.page(&page, |order| order.account == *account))
    }
}

impl MemoryOrders {
    /// A page of the matching orders, oldest first.
    fn page(&self, page: &PageRequest, is_such: impl Fn(&Order) -> bool) -> Page<Order> {
        let orders = self.orders.lock();
        let such = orders.values().filter(|order| is_such(order));
        let mut such: Vec<(String, &Order)> = such.map(|order| (position(order), order)).collect();
        such.sort_by(|one, other| one.0.cmp(&other.0));
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let rest = such.into_iter().filter(|(position, _)| position.as_str() > after);
        let found = Page::cut(rest, page, |(position, _)| position.clone());
        Page { items: found.items.into_iter().map(|(_, order)| order.clone()).collect(), next: found.next }
    }
}

/// An order's position by age, as a sortable text.
fn position(order: &Order) -> String {
    format!("{:020}/{}", order.created_at.as_millis(), order.id)
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::orders_conformance!(Arc::new(super::MemoryOrders::default()));
}
