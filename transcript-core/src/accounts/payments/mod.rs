//! Payments of Surface B: selling packs and plans, and giving what was paid for (specification 2.8, 4).
//!
//! An [`crate::accounts::Order`] is written before anyone is sent to pay, and its id goes with the payment.
//! What happens at the provider is heard of through events, which are only hints: whatever an event says,
//! the provider is asked how the thing stands now, and what was bought is given by steps that are safe to
//! repeat. So it does not matter how often, in which order, or where events arrive, nor where a step broke
//! off. A sweep asks about what no event told.

mod checkout;
mod close;
mod fact;
mod fulfil;
mod offer;
mod plan;
mod price;
mod sandbox;
mod seen;
mod sell;
mod sweep;
mod turns;

use std::{sync::Arc, time::Duration};

pub use checkout::{Checkout, CheckoutPage, Heard, Sale, Subject, WebhookCall};
pub use fact::{Money, PaidInvoice, PaymentFact, PaymentState, Progress, SubscriptionState};
pub use offer::Offer;
pub use price::{CURRENCY, Pack};
pub(in crate::accounts) use sandbox::is_sandbox;
pub use sandbox::{Sandbox, SandboxDeed, SandboxOrder, SandboxParts, SandboxStep};
pub use seen::{BuyerSeen, OrderFate, OrderSeen};
pub use sell::{BuyOutcome, Sold, SubscribeOutcome};
pub use sweep::SWEEP_EVERY;

use turns::Turns;

use crate::{
    accounts::{Order, Orders, PlanTable},
    directory::{Account, AccountRef, Directory},
    engine::retry::{Patience, bounded, persistently},
    error::{Error, Result},
    ids::{AccountId, OrderId},
    ledger::Ledger,
    limits::RateLimiter,
    time::{Clock, Timestamp},
};

/// How long one call of a store may take, and all its repeats.
const PATIENCE: Patience = Patience { attempt: Duration::from_millis(2_500), all: Duration::from_secs(5) };
/// How long one call of the provider may take; its own time-outs end it sooner.
const PROVIDER_MAX: Duration = Duration::from_secs(40);
/// How often a step begins again because somebody else changed the same order or account meanwhile.
const ROUNDS_MAX: u32 = 32;

/// What payments work with.
#[derive(Clone, Debug)]
pub struct PaymentParts {
    /// The orders.
    pub orders: Arc<dyn Orders>,
    /// The accounts.
    pub directory: Arc<dyn Directory>,
    /// Where bought credits are.
    pub ledger: Arc<dyn Ledger>,
    /// How many orders an account may open.
    pub limiter: Arc<dyn RateLimiter>,
    /// Whoever takes the money; none: nothing is sold.
    pub checkout: Option<Arc<dyn Checkout>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The plans and their prices. One without a price is not sold.
    pub plans: PlanTable,
}

/// Selling, and giving what was paid for. A clone is a handle to the same one.
#[derive(Clone, Debug)]
pub struct Payments {
    parts: Arc<PaymentParts>,
    turns: Arc<Turns>,
}

impl Payments {
    /// Payments with these parts.
    pub fn new(parts: PaymentParts) -> Self {
        Self { parts: Arc::new(parts), turns: Arc::new(Turns::default()) }
    }

    /// Whether anything can be sold.
    pub fn is_configured(&self) -> bool {
        self.parts.checkout.is_some()
    }

    /// An order, as far along as it is.
    ///
    /// # Errors
    /// As [`Orders::order`].
    pub async fn order(&self, id: &OrderId) -> Result<Option<Order>> {
        persistently(PATIENCE, || self.parts.orders.order(id)).await
    }

    fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    fn checkout(&self) -> Result<&dyn Checkout> {
        self.parts.checkout.as_deref().ok_or_else(|| Error::invalid("payments are not configured"))
    }

    /// Waits for one call of the provider, as long as it may take.
    async fn asked<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        bounded(PROVIDER_MAX, call).await
    }

    async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
        let who = AccountRef::Id(id.clone());
        persistently(PATIENCE, || self.parts.directory.account(&who)).await
    }

    async fn account_of_customer(&self, customer: &str) -> Result<Option<Account>> {
        let who = AccountRef::Customer(customer.to_owned());
        persistently(PATIENCE, || self.parts.directory.account(&who)).await
    }

    /// Stores a changed order; false when somebody else changed it meanwhile.
    ///
    /// A repeat whose first call took effect finds a newer version, so what is stored decides.
    async fn update(&self, changed: &Order, read: &Order) -> Result<bool> {
        let update = || self.parts.orders.update(changed.clone(), read.version);
        if persistently(PATIENCE, update).await? {
            return Ok(true);
        }
        let stored = self.order(&read.id).await?;
        Ok(stored.is_some_and(|stored| {
            stored.version == read.version + 1
                && stored.state == changed.state
                && stored.payment == changed.payment
                && stored.taken_back == changed.taken_back
        }))
    }
}

/// Others were faster every time: nothing is lost, and the next try finds what they did.
#[cold]
fn contended() -> Error {
    Error::unavailable("an order or an account was changed again and again meanwhile")
}
