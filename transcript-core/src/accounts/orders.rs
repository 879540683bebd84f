//! Orders: what was sold, at what price, written before anyone is sent to pay.

use std::fmt;

use async_trait::async_trait;

use crate::{
    directory::Plan,
    engine::retry::{Patience, persistently},
    error::Result,
    ids::{AccountId, OrderId},
    page::{Page, PageRequest},
    time::Timestamp,
};

/// What is sold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A pack of credits, by its name (specification 2.8).
    Pack(String),
    /// A month of a plan, renewed until it is cancelled.
    Plan(Plan),
}

/// How far an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderState {
    /// Written; nobody has paid yet.
    Open,
    /// Paid, and what was sold was given.
    Fulfilled,
    /// The buyer did not pay in time.
    Expired,
    /// The money went back, in part or whole.
    Refunded,
    /// The buyer's bank contests the payment.
    Disputed,
}

impl OrderState {
    /// A lasting name, for storage.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Fulfilled => "fulfilled",
            Self::Expired => "expired",
            Self::Refunded => "refunded",
            Self::Disputed => "disputed",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Fulfilled, Self::Expired, Self::Refunded, Self::Disputed]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

/// What was sold to whom, at what price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its id: also the payment provider's idempotency key and the grant's id.
    pub id: OrderId,
    /// Counts its changes, from 1.
    pub version: u64,
    /// The buyer.
    pub account: AccountId,
    /// What is sold.
    pub item: Item,
    /// How many credits; for a plan, how many a month.
    pub credits: u64,
    /// The price in the currency's smallest unit: cents.
    pub amount_minor: u64,
    /// The currency's ISO 4217 code, in lower case: `usd`.
    pub currency: String,
    /// How far it is.
    pub state: OrderState,
    /// The payment provider's name for the checkout or payment, once it is known.
    pub payment: Option<String>,
    /// How many of the credits were to be taken back in all, after each refund: figures that grow. What
    /// each one takes is its difference to the one before.
    pub taken_back: Vec<u64>,
    /// When it was written.
    pub created_at: Timestamp,
}

/// The store of orders. Each method is one transaction, durable once acknowledged.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] when the store cannot be reached.
#[async_trait]
pub trait Orders: fmt::Debug + Send + Sync + 'static {
    /// Writes a new order.
    ///
    /// **Behaviour**: the same order again (buyer, item, credits, price and moment) is success and changes
    /// nothing, also when it was updated since.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the id is another order's; [`crate::ErrorKind::Invalid`] when
    /// its version is not 1.
    async fn open(&self, order: Order) -> Result<()>;

    /// An order.
    async fn order(&self, id: &OrderId) -> Result<Option<Order>>;

    /// Stores a changed order when the stored version is `expected_version`; its version becomes one
    /// more. Returns whether it did; false also for an unknown order.
    ///
    /// **Behaviour**: only state, payment and what was taken back change: what was sold, to whom and at
    /// what price stays as it was opened.
    async fn update(&self, order: Order, expected_version: u64) -> Result<bool>;

    /// The orders that are still [`OrderState::Open`], oldest first, page by page.
    async fn unsettled(&self, page: PageRequest) -> Result<Page<Order>>;

    /// The orders of one account, whatever their state, oldest first, page by page.
    async fn of_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>>;
}

/// All orders of an account, oldest first. A store that is away is asked again with patience.
pub(super) async fn all_of(
    orders: &dyn Orders,
    account: &AccountId,
    patience: Patience,
) -> Result<Vec<Order>> {
    let (mut all, mut page) = (Vec::new(), PageRequest::first());
    loop {
        let found = persistently(patience, || orders.of_account(account, page.clone())).await?;
        all.extend(found.items);
        match found.next {
            Some(next) => page.after = Some(next),
            None => return Ok(all),
        }
    }
}
