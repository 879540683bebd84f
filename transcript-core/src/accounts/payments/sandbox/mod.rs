//! A checkout of our own, for trying things out: nobody pays anything, and everything else is real.
//!
//! It is a provider like any other: what was bought is given by the same steps, from the same kind of facts.
//! It keeps what it knows in the orders themselves. Its page must be marked plainly as a test, and be open
//! only where nobody could mistake it for a shop (design 4, "Sandbox checkout").

mod state;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{
    Checkout, CheckoutPage, Heard, PATIENCE, PaidInvoice, PaymentFact, ROUNDS_MAX, Sale, Subject,
    SubscriptionState, WebhookCall, contended,
};
use crate::{
    accounts::{Item, Month, Order, OrderState, Orders, orders::all_of},
    directory::Secrets,
    engine::retry::persistently,
    error::Result,
    ids::OrderId,
    time::{Clock, Random, Timestamp},
};
pub use state::{SandboxDeed, SandboxStep};
use state::{State, name_of, order_of};

/// The length of the secret that signs addresses, in bytes.
const SECRET_LENGTH: u32 = 32;
/// How many subscriptions that took each other's place are followed back.
const PREDECESSORS_MAX: usize = 12;

/// What the sandbox works with.
#[derive(Clone, Debug)]
pub struct SandboxParts {
    /// The orders.
    pub orders: Arc<dyn Orders>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where the service's pages are, without a slash at its end.
    pub base_url: String,
}

/// The sandbox. A clone is a handle to the same one.
#[derive(Clone)]
pub struct Sandbox {
    parts: SandboxParts,
    secret: Arc<[u8]>,
}

/// Whether something has a name of the sandbox: nobody ever pays for it.
pub(in crate::accounts) fn is_sandbox(name: &str) -> bool {
    order_of(name).is_some()
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// An order as its page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxOrder {
    /// The order.
    pub order: Order,
    /// How far its payment is.
    pub step: SandboxStep,
    /// How much was given back, in the currency's smallest unit.
    pub returned_minor: u64,
}

impl Sandbox {
    /// Opens the sandbox; fetches the secret that signs its addresses, or makes it at the first start.
    ///
    /// # Errors
    /// As [`Secrets::secret`].
    pub async fn open(parts: SandboxParts, secrets: &dyn Secrets, random: &dyn Random) -> Result<Self> {
        let secret = secrets.secret("sandbox", random.bytes(SECRET_LENGTH)).await?;
        Ok(Self { parts, secret: secret.into() })
    }

    /// The address of an order's page.
    pub fn address(&self, order: &OrderId) -> String {
        format!("{}/checkout/{order}/sandbox?token={}", self.parts.base_url, self.token(order))
    }

    /// An order for its page; none when the token is not the order's, or the order is not of the sandbox.
    ///
    /// # Errors
    /// As [`Orders::order`].
    pub async fn show(&self, order: &OrderId, token: &str) -> Result<Option<SandboxOrder>> {
        if !self.is_token(order, token) {
            return Ok(None);
        }
        let found = self.find(order).await?;
        Ok(found.map(|(order, state)| SandboxOrder {
            order,
            step: state.step,
            returned_minor: state.returned,
        }))
    }

    /// Does something to an order on its page; returns the subject to follow then, and none as
    /// [`Sandbox::show`] does. What cannot be done any more is not done.
    ///
    /// # Errors
    /// As [`Orders::update`].
    pub async fn act(&self, order: &OrderId, token: &str, deed: SandboxDeed) -> Result<Option<Subject>> {
        if !self.is_token(order, token) {
            return Ok(None);
        }
        self.apply(order, deed).await
    }

    async fn apply(&self, order: &OrderId, deed: SandboxDeed) -> Result<Option<Subject>> {
        for _ in 0..ROUNDS_MAX {
            let Some((read, state)) = self.find(order).await? else { return Ok(None) };
            let after = state.after(deed, read.amount_minor, self.parts.clock.now());
            let Some(after) = after else { return Ok(Some(Subject::new(name_of(order)))) };
            let changed = Order { payment: Some(after.kept(order)), ..read.clone() };
            let update = || self.parts.orders.update(changed.clone(), read.version);
            if persistently(PATIENCE, update).await? {
                return Ok(Some(Subject::new(name_of(order))));
            }
        }
        Err(contended())
    }

    /// Closes the other pages for plans that a buyer opened, and did not use: nobody pays for two.
    async fn close_others(&self, own: &Order) -> Result<()> {
        let is_other = |order: &&Order| {
            order.state == OrderState::Open && order.id != own.id && matches!(order.item, Item::Plan(_))
        };
        let orders = all_of(self.parts.orders.as_ref(), &own.account, PATIENCE).await?;
        for other in orders.iter().filter(is_other) {
            self.apply(&other.id, SandboxDeed::Cancel).await?;
        }
        Ok(())
    }

    async fn find(&self, id: &OrderId) -> Result<Option<(Order, State)>> {
        let order = persistently(PATIENCE, || self.parts.orders.order(id)).await?;
        Ok(order.and_then(|order| State::of(&order).map(|state| (order, state))))
    }

    /// The subscription that an order began, with the months that were paid before in those whose place it
    /// took.
    async fn subscription(
        &self,
        order: &Order,
        state: &State,
        invoice: PaidInvoice,
    ) -> Result<SubscriptionState> {
        let mut invoices = vec![invoice];
        let mut before = state.replaces.clone();
        while let Some(name) = before.take().filter(|_| invoices.len() < PREDECESSORS_MAX) {
            let Some(id) = order_of(&name) else { break };
            let Some((order, state)) = self.find(&id).await? else { break };
            invoices.extend(state.invoice(&order));
            before = state.replaces;
        }
        let month = Month::of(Timestamp::from_millis(state.since), Timestamp::from_millis(state.since));
        Ok(SubscriptionState {
            subscription: name_of(&order.id),
            customer: None,
            anchor: month.start,
            // Nobody pays a second month here.
            is_ended: self.parts.clock.now() >= month.end,
            replaces: state.replaces.clone(),
            invoices,
        })
    }

    fn mac(&self, order: &OrderId) -> Option<Hmac<Sha256>> {
        // A key of any length is accepted.
        let mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        Some(mac.chain_update(b"sandbox checkout ").chain_update(order.as_str()))
    }

    fn token(&self, order: &OrderId) -> String {
        let bytes = self.mac(order).map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn is_token(&self, order: &OrderId, token: &str) -> bool {
        let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = token.as_bytes().chunks(2).map(digits).collect();
        // Compared in a time that tells nothing; a sign before a digit does not make a token.
        let is_hex = token.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes
            .filter(|_| is_hex)
            .is_some_and(|bytes| self.mac(order).is_some_and(|mac| mac.verify_slice(&bytes).is_ok()))
    }
}

#[async_trait]
impl Checkout for Sandbox {
    async fn open(&self, sale: Sale) -> Result<CheckoutPage> {
        let order = &sale.order;
        if matches!(order.item, Item::Plan(_)) {
            self.close_others(order).await?;
        }
        let state = State::opened(self.parts.clock.now(), sale.subscription.clone());
        // One that was opened before is as far as it is.
        let payment = order.payment.clone().unwrap_or_else(|| state.kept(&order.id));
        Ok(CheckoutPage {
            url: self.address(&order.id),
            payment: Some(payment),
            customer: None,
            is_lasting: true,
        })
    }

    async fn hear(&self, _: WebhookCall, _: Timestamp) -> Result<Heard> {
        Ok(Heard::Refused { why: "the sandbox makes no calls".to_owned() })
    }

    async fn facts(&self, subject: &Subject) -> Result<Vec<PaymentFact>> {
        let Some(order) = order_of(&subject.object) else { return Ok(Vec::new()) };
        let Some((order, state)) = self.find(&order).await? else { return Ok(Vec::new()) };
        Ok(vec![match state.invoice(&order) {
            Some(invoice) => PaymentFact::Subscription(self.subscription(&order, &state, invoice).await?),
            None => PaymentFact::Payment(state.payment(&order)),
        }])
    }

    async fn stop(&self, _: &str) -> Result<()> {
        // Nobody pays a second month here.
        Ok(())
    }

    async fn close(&self, payment: &str) -> Result<()> {
        match order_of(payment) {
            Some(order) => self.apply(&order, SandboxDeed::Cancel).await.map(drop),
            None => Ok(()),
        }
    }

    fn knows(&self, name: &str) -> bool {
        order_of(name).is_some()
    }
}
