//! Orders: item and price, written before the payment.

use std::fmt;

use async_trait::async_trait;

use crate::{
    directory::Plan,
    error::{Error, Result},
    ids::{AccountId, OrderId},
    names::names,
    page::{Page, PageRequest},
    retry::{StorePolicy, retry_store},
    time::Timestamp,
};

/// The suffix of the ids of credit orders.
pub(super) const CREDIT_ORDER_SUFFIX: &str = "-beside";
/// Prefix of the ids and stored states of the payment sandbox.
pub(super) const SANDBOX_PREFIX: &str = "sandbox-";

/// The prefix of the ids of the revocations after refunds of an order.
pub(super) fn refund_prefix(order_id: &str) -> String {
    format!("{order_id}-back-")
}

/// Whether an id belongs to the payment sandbox, so that no money is paid for it.
pub(super) fn is_sandbox(name: &str) -> bool {
    name.starts_with(SANDBOX_PREFIX)
}

/// The item of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderItem {
    /// A pack of credits, by its name (specification 2.8).
    Pack(String),
    /// A month of a plan, renewed until it is cancelled.
    Plan(Plan),
}

/// State of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderState {
    /// Written; not paid yet.
    Open,
    /// Paid, and the credits or the plan were granted.
    Fulfilled,
    /// The buyer did not pay in time.
    Expired,
    /// The payment was refunded, in part or in full.
    Refunded,
    /// The buyer's bank contests the payment.
    Disputed,
}

names!(OrderState, from_name {
    Open = "open",
    Fulfilled = "fulfilled",
    Expired = "expired",
    Refunded = "refunded",
    Disputed = "disputed",
});

/// A sale: item, buyer and price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The id: also the payment provider's idempotency key and the grant's id.
    pub id: OrderId,
    /// Counts the changes, from 1.
    pub version: u64,
    /// The buyer.
    pub account: AccountId,
    /// The item.
    pub item: OrderItem,
    /// The credits; for a plan, per month.
    pub credits: u64,
    /// The price in the currency's smallest unit: cents.
    pub amount_minor: u64,
    /// The currency's ISO 4217 code, in lower case: `usd`.
    pub currency: String,
    /// The state.
    pub state: OrderState,
    /// The payment provider's id of the checkout or payment, once known. See also [`Order::paid_with`].
    pub payment: Option<String>,
    /// The total of credits to take back after each refund; the totals grow.
    /// A refund takes back the difference to the previous total.
    pub refunded_credits: Vec<u64>,
    /// The amount that was returned to the buyer, in the currency's smallest unit; it grows.
    /// 0 also for refunds before it was recorded.
    pub returned_minor: u64,
    /// The amount that the buyer paid, if it is not the price: a credit at the provider paid the rest.
    /// `None` also for invoices without a payment at the provider, and for payments before it was recorded.
    /// 0 if the payment of another order paid it.
    pub paid_minor: Option<u64>,
    /// When it was written.
    pub created_at: Timestamp,
    /// Tag of the language of its receipt and pages; `None`: the service's first language. A renewal has that of its
    /// plan's order.
    pub language: Option<String>,
}

impl Order {
    /// Checks an order that a store is to open.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if its version is not 1.
    pub fn check_new(&self) -> Result<()> {
        match self.version {
            1 => Ok(()),
            _ => Err(Error::invalid("a new order must have version 1")),
        }
    }

    /// Checks that the stored order with the same id is this sale, whatever its progress.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if it is another one.
    pub fn check_same(&self, stored: &Self) -> Result<()> {
        match self.with_progress_of(stored) == *stored {
            true => Ok(()),
            false => Err(Error::conflict("the order id belongs to another order")),
        }
    }

    /// This sale with the progress of `other`: version, state, payment, paid amount and refunds.
    pub(crate) fn with_progress_of(&self, other: &Self) -> Self {
        Self {
            version: other.version,
            state: other.state,
            payment: other.payment.clone(),
            refunded_credits: other.refunded_credits.clone(),
            returned_minor: other.returned_minor,
            paid_minor: other.paid_minor,
            ..self.clone()
        }
    }

    /// The order whose payment paid this one, too; `None` for any other order.
    ///
    /// That order has the receipt, the amounts and the refunds of the payment.
    pub fn paid_with(&self) -> Option<OrderId> {
        // The paid amount of a payment is never stored as 0.
        self.payment.as_ref().filter(|_| self.paid_minor == Some(0)).map(|id| OrderId::new(id.clone()))
    }

    /// This order, paid by the payment of another one.
    pub(super) fn with_payment_of(&self, other: &OrderId) -> Self {
        let (payment, paid_minor) = (Some(other.to_string()), Some(0));
        Self { state: OrderState::Fulfilled, payment, paid_minor, ..self.clone() }
    }

    /// Whether it is a credit order: the second order of a payment, whose first one is shown to the buyer.
    pub(super) fn is_credit_order(&self) -> bool {
        self.id.as_str().ends_with(CREDIT_ORDER_SUFFIX)
    }

    /// The amount that the buyer paid or is to pay, in the currency's smallest unit.
    pub fn charged_minor(&self) -> u64 {
        self.paid_minor.unwrap_or(self.amount_minor)
    }

    /// The address of a page of this service in the order's language: with the parameter `hl`, unless the language is
    /// unknown or no tag.
    pub fn page_in_language(&self, address: String) -> String {
        let is_tag = |tag: &&str| {
            !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        match self.language.as_deref().filter(is_tag) {
            Some(tag) => {
                let separator = if address.contains('?') { '&' } else { '?' };
                format!("{address}{separator}hl={tag}")
            }
            None => address,
        }
    }
}

/// The store of orders. Each method is one transaction, durable once acknowledged.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the store cannot be reached.
#[async_trait]
pub trait OrderStore: fmt::Debug + Send + Sync + 'static {
    /// Writes a new order.
    ///
    /// **Behaviour**: the same order again (buyer, item, credits, price and time) is success and changes
    /// nothing, also if it was updated since.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the id belongs to another order; [`crate::ErrorKind::Invalid`] if
    /// its version is not 1.
    async fn open(&self, order: Order) -> Result<()>;

    /// The order with this id.
    async fn order(&self, id: &OrderId) -> Result<Option<Order>>;

    /// Stores a changed order if the stored version is `expected_version`, and increments its version.
    /// Returns whether it was stored; `false` also for an unknown order.
    ///
    /// **Behaviour**: only state, payment, refunded credits, returned and paid amount change. Item, buyer and price
    /// stay as they were opened.
    async fn update(&self, order: Order, expected_version: u64) -> Result<bool>;

    /// Lists the orders that are [`OrderState::Open`], oldest first.
    async fn list_open(&self, page: PageRequest) -> Result<Page<Order>>;

    /// Lists the orders of one account in any state, oldest first.
    async fn list_for_account(&self, account: &AccountId, page: PageRequest) -> Result<Page<Order>>;
}

/// All orders of an account, oldest first, with retries.
pub(super) async fn list_all_for_account(
    orders: &dyn OrderStore,
    account: &AccountId,
    policy: StorePolicy,
) -> Result<Vec<Order>> {
    let (mut all, mut page) = (Vec::new(), PageRequest::first());
    loop {
        let found = retry_store(policy, || orders.list_for_account(account, page.clone())).await?;
        all.extend(found.items);
        match found.next {
            Some(next) => page.after = Some(next),
            None => return Ok(all),
        }
    }
}
