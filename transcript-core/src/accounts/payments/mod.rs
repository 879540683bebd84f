//! Payments of the v1 API: sale of packs and plans, and fulfillment (specification 2.8, 13).
//!
//! An [`crate::accounts::Order`] is written before the buyer can pay, and the payment carries its id. Webhook
//! events are only hints: on every event the provider's present state is read, and the purchase is granted in
//! idempotent steps. So lost, repeated or reordered events are harmless, and so is a step that was interrupted.
//! A periodic reconciliation covers lost events.

mod close;
mod fulfillment;
mod keyed_coalescer;
mod matched_invoice;
mod order_status;
mod portal;
mod prepared_checkout;
mod price;
mod provider;
mod purchase;
mod receipt;
mod reconciliation;
mod sandbox;
mod snapshot;
mod subscription;

use std::{sync::Arc, time::Duration};

pub use order_status::{BuyerStatus, OrderResolution, OrderStatus};
pub use portal::PortalOutcome;
pub use prepared_checkout::PreparedCheckout;
pub use price::{CURRENCY, Pack};
pub use provider::{
    CheckoutRequest, CheckoutSession, PaymentProvider, ProviderObject, WebhookOutcome, WebhookRequest,
};
pub use purchase::{BuyOutcome, OpenedCheckout, OrderRequest, SubscribeOutcome};
pub use reconciliation::SWEEP_EVERY;
pub use sandbox::{Sandbox, SandboxAction, SandboxDeps, SandboxOrder, SandboxStatus};
pub use snapshot::{
    PaidInvoice, PaymentAmounts, PaymentProgress, PaymentSnapshot, PaymentState, SubscriptionState,
};

use keyed_coalescer::KeyedCoalescer;

use crate::{
    accounts::{Order, OrderStore, Outbox, PlanTable},
    directory::{Account, AccountRef, Directory},
    error::{Error, Result},
    ids::{AccountId, OrderId},
    ledger::Ledger,
    limits::RateLimiter,
    retry::{StorePolicy, retry_store, with_timeout},
    time::{Clock, Timestamp},
};

/// Timeout of one store call, and of the call with its repeats.
const STORE_POLICY: StorePolicy =
    StorePolicy { attempt: Duration::from_millis(2_500), total: Duration::from_secs(5) };
/// Timeout of one provider call; the provider's own timeouts are shorter.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(40);
/// How often a step restarts after a concurrent change of the same order or account.
const UPDATE_ATTEMPTS_MAX: u32 = 32;

/// Dependencies of [`Payments`].
#[derive(Clone, Debug)]
pub struct PaymentDeps {
    /// The orders.
    pub orders: Arc<dyn OrderStore>,
    /// The accounts.
    pub directory: Arc<dyn Directory>,
    /// The ledger of purchased credits.
    pub ledger: Arc<dyn Ledger>,
    /// The mail queue: receipts.
    pub outbox: Arc<dyn Outbox>,
    /// Limits the orders that an account may open.
    pub limiter: Arc<dyn RateLimiter>,
    /// The payment provider; `None`: nothing is sold.
    pub provider: Option<Arc<dyn PaymentProvider>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The plans and their prices. A plan without a price is not sold.
    pub plans: PlanTable,
}

/// Sale and fulfillment. Clones share one instance.
#[derive(Clone, Debug)]
pub struct Payments {
    deps: Arc<PaymentDeps>,
    coalescer: Arc<KeyedCoalescer>,
}

impl Payments {
    /// Creates payments with these dependencies.
    pub fn new(deps: PaymentDeps) -> Self {
        Self { deps: Arc::new(deps), coalescer: Arc::new(KeyedCoalescer::default()) }
    }

    /// The same payments with another provider and other plans. A call that began with the old ones ends with them.
    pub fn with_plans(&self, provider: Option<Arc<dyn PaymentProvider>>, plans: PlanTable) -> Self {
        let deps = PaymentDeps { provider, plans, ..PaymentDeps::clone(&self.deps) };
        Self { deps: Arc::new(deps), coalescer: Arc::clone(&self.coalescer) }
    }

    /// Whether anything can be sold.
    pub fn is_configured(&self) -> bool {
        self.deps.provider.is_some()
    }

    /// The plans and their prices.
    pub fn plans(&self) -> &PlanTable {
        &self.deps.plans
    }

    /// The stored order.
    ///
    /// # Errors
    /// As [`OrderStore::order`].
    pub async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        retry_store(STORE_POLICY, || self.deps.orders.order(id)).await
    }

    /// Closes every page on which an account's orders may still be paid, and grants earlier payments.
    /// Cancels a subscription that was fully refunded. Returns the account as it is then.
    ///
    /// Orders stay open if their payment is in progress or their page is unknown: see
    /// [`crate::accounts::AccountAdmin::provider_refs`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if stores or provider are unavailable: some pages may be closed.
    pub async fn close(&self, account: &Account) -> Result<Account> {
        close::close_pages(self, account).await
    }

    fn now(&self) -> Timestamp {
        self.deps.clock.now()
    }

    fn provider(&self) -> Result<&dyn PaymentProvider> {
        self.deps.provider.as_deref().ok_or_else(|| Error::invalid("payments are not configured"))
    }

    /// Makes one provider call, limited by its timeout.
    async fn call_provider<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        with_timeout(PROVIDER_TIMEOUT, call).await
    }

    async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
        let account_ref = AccountRef::Id(id.clone());
        retry_store(STORE_POLICY, || self.deps.directory.account(&account_ref)).await
    }

    async fn account_of_customer(&self, customer: &str) -> Result<Option<Account>> {
        let account_ref = AccountRef::Customer(customer.to_owned());
        retry_store(STORE_POLICY, || self.deps.directory.account(&account_ref)).await
    }

    /// Stores a changed order; `false` after a concurrent change.
    ///
    /// A retry after a call that took effect finds a newer version, so the stored order decides.
    async fn update(&self, changed: &Order, read: &Order) -> Result<bool> {
        let update = || self.deps.orders.update(changed.clone(), read.version);
        if retry_store(STORE_POLICY, update).await? {
            return Ok(true);
        }
        let stored = self.order(&read.id).await?;
        Ok(stored.is_some_and(|stored| {
            stored.version == read.version + 1
                && stored.state == changed.state
                && stored.payment == changed.payment
                && stored.refunded_credits == changed.refunded_credits
                && stored.returned_minor == changed.returned_minor
                && stored.paid_minor == changed.paid_minor
        }))
    }
}

/// Every attempt met a concurrent change. Nothing is lost: a retry reads the new state.
#[cold]
fn contention_error() -> Error {
    Error::unavailable("an order or account was changed concurrently on every attempt")
}
