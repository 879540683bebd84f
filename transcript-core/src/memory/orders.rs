//! Orders in memory.

use std::collections::{HashMap, hash_map::Entry};

use async_trait::async_trait;

use super::{Shared, page_of};
use crate::{
    accounts::{Order, OrderState, Orders},
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, OrderId},
    page::{Page, PageRequest},
};

/// [`Orders`] in memory. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryOrders {
    orders: Shared<HashMap<OrderId, Order>>,
}

#[async_trait]
impl Orders for MemoryOrders {
    async fn open(&self, order: Order) -> Result<()> {
        if order.version != 1 {
            return Err(Error::invalid("an order is opened with version 1"));
        }
        match self.orders.lock().entry(order.id.clone()) {
            Entry::Vacant(place) => {
                place.insert(order);
                Ok(())
            }
            Entry::Occupied(stored) if with_progress_of(&order, stored.get()) == *stored.get() => Ok(()),
            Entry::Occupied(_) => {
                Err(Error::new(ErrorKind::Conflict, Retry::Never, "the order's id is another order's"))
            }
        }
    }

    async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        Ok(self.orders.lock().get(id).cloned())
    }

    async fn update(&self, order: Order, expected_version: u64) -> Result<bool> {
        let mut orders = self.orders.lock();
        match orders.get_mut(&order.id) {
            Some(stored) if stored.version == expected_version => {
                *stored = Order { version: expected_version + 1, ..with_progress_of(stored, &order) };
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn unsettled(&self, page: PageRequest) -> Result<Page<Order>> {
        Ok(self.page(&page, |order| order.state == OrderState::Open))
    }

    async fn of_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>> {
        Ok(self.page(&page, |order| order.account == *account))
    }
}

impl MemoryOrders {
    /// A page of such orders, oldest first.
    fn page(&self, page: &PageRequest, is_such: impl Fn(&Order) -> bool) -> Page<Order> {
        let orders = self.orders.lock();
        let such = orders.values().filter(|order| is_such(order));
        let mut such: Vec<(String, &Order)> = such.map(|order| (place(order), order)).collect();
        such.sort_by(|one, other| one.0.cmp(&other.0));
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let rest = such.into_iter().filter(|(place, _)| place.as_str() > after);
        let found = page_of(rest, page.size(), |(place, _)| place.clone());
        Page { items: found.items.into_iter().map(|(_, order)| order.clone()).collect(), next: found.next }
    }
}

/// An order's place among all, by age, as a text that sorts the same way.
fn place(order: &Order) -> String {
    format!("{:020}/{}", order.created_at.as_millis(), order.id)
}

/// An order as it was sold, as far along as another one is.
fn with_progress_of(sold: &Order, along: &Order) -> Order {
    Order {
        version: along.version,
        state: along.state,
        payment: along.payment.clone(),
        taken_back: along.taken_back.clone(),
        ..sold.clone()
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::orders_conformance!(Arc::new(super::MemoryOrders::default()));
}
