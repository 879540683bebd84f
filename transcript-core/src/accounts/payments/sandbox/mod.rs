//! The sandbox: a payment provider for tests. Its payments are simulated; everything else is real.
//!
//! It is a provider like any other: purchases are granted by the same steps, from the same kind of snapshots.
//! It stores its state in the orders themselves. Its page must be clearly marked as a test, and be open only
//! where it cannot be mistaken for a real shop (specification 13).

mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{
    CheckoutRequest, CheckoutSession, PaidInvoice, PaymentProvider, PaymentSnapshot, ProviderObject,
    STORE_POLICY, SubscriptionState, UPDATE_ATTEMPTS_MAX, WebhookOutcome, WebhookRequest, contention_error,
};
use crate::{
    accounts::{BillingMonth, Order, OrderItem, OrderState, OrderStore, orders::list_all_for_account},
    debug_fields,
    directory::SecretStore,
    error::Result,
    hex,
    ids::OrderId,
    retry::retry_store,
    time::{Clock, Random, Timestamp},
};
pub use state::{SandboxAction, SandboxStatus};
use state::{SandboxRecord, parse_order_id, payment_id};

/// The length of the secret that signs URLs, in bytes.
const SECRET_LENGTH: u32 = 32;
/// The largest number of replaced subscriptions that are followed back.
const PREDECESSORS_MAX: usize = 12;

/// Dependencies of [`Sandbox`].
#[derive(Clone, Debug)]
pub struct SandboxDeps {
    /// The orders.
    pub orders: Arc<dyn OrderStore>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The base URL of the service's pages, without a trailing slash.
    pub base_url: String,
}

/// The sandbox provider. Clones share one instance.
#[derive(Clone)]
pub struct Sandbox {
    deps: SandboxDeps,
    secret: Arc<[u8]>,
}

debug_fields!(Sandbox { deps });

/// An order for its sandbox page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxOrder {
    /// The order.
    pub order: Order,
    /// The status of its payment.
    pub status: SandboxStatus,
    /// The refunded amount, in the currency's smallest unit.
    pub returned_minor: u64,
}

impl Sandbox {
    /// Opens the sandbox; reads the secret that signs its URLs, or creates it at the first start.
    ///
    /// # Errors
    /// As [`SecretStore::get_or_create`].
    pub async fn open(deps: SandboxDeps, secrets: &dyn SecretStore, random: &dyn Random) -> Result<Self> {
        let secret = secrets.get_or_create("sandbox", random.bytes(SECRET_LENGTH)).await?;
        Ok(Self { deps, secret: secret.into() })
    }

    /// The URL of an order's page.
    pub fn page_url(&self, order: &OrderId) -> String {
        format!("{}/checkout/{order}/sandbox?token={}", self.deps.base_url, self.token(order))
    }

    /// The order for its page; `None` if the token does not match or the order is not a sandbox order.
    ///
    /// # Errors
    /// As [`OrderStore::order`].
    pub async fn show(&self, order: &OrderId, token: &str) -> Result<Option<SandboxOrder>> {
        if !self.is_token(order, token) {
            return Ok(None);
        }
        let found = self.find(order).await?;
        Ok(found.map(|(order, state)| SandboxOrder {
            order,
            status: state.status,
            returned_minor: state.returned,
        }))
    }

    /// Applies an action of the page to an order; returns the object to reconcile.
    ///
    /// `None` as for [`Sandbox::show`]. An action that is no longer possible changes nothing.
    ///
    /// # Errors
    /// As [`OrderStore::update`].
    pub async fn apply(
        &self,
        order: &OrderId,
        token: &str,
        action: SandboxAction,
    ) -> Result<Option<ProviderObject>> {
        if !self.is_token(order, token) {
            return Ok(None);
        }
        self.update_record(order, action).await
    }

    async fn update_record(&self, order: &OrderId, action: SandboxAction) -> Result<Option<ProviderObject>> {
        for _ in 0..UPDATE_ATTEMPTS_MAX {
            let Some((stored, state)) = self.find(order).await? else { return Ok(None) };
            let next = state.next(action, stored.amount_minor, self.deps.clock.now());
            let Some(next) = next else { return Ok(Some(ProviderObject::new(payment_id(order)))) };
            let changed = Order { payment: Some(next.encode(order)), ..stored.clone() };
            let update = || self.deps.orders.update(changed.clone(), stored.version);
            if retry_store(STORE_POLICY, update).await? {
                return Ok(Some(ProviderObject::new(payment_id(order))));
            }
        }
        Err(contention_error())
    }

    /// Closes the buyer's other unused pages for plans, so that no buyer pays for two.
    async fn close_others(&self, current: &Order) -> Result<()> {
        let is_other = |order: &&Order| {
            order.state == OrderState::Open
                && order.id != current.id
                && matches!(order.item, OrderItem::Plan(_))
        };
        let orders = list_all_for_account(self.deps.orders.as_ref(), &current.account, STORE_POLICY).await?;
        for other in orders.iter().filter(is_other) {
            self.update_record(&other.id, SandboxAction::Cancel).await?;
        }
        Ok(())
    }

    async fn find(&self, id: &OrderId) -> Result<Option<(Order, SandboxRecord)>> {
        let order = retry_store(STORE_POLICY, || self.deps.orders.order(id)).await?;
        Ok(order.and_then(|order| SandboxRecord::from_order(&order).map(|state| (order, state))))
    }

    /// The subscription that an order started, with the paid months of the subscriptions that it replaced.
    async fn subscription(
        &self,
        order: &Order,
        state: &SandboxRecord,
        invoice: PaidInvoice,
    ) -> Result<SubscriptionState> {
        let mut invoices = vec![invoice];
        let mut predecessor = state.replaces.clone();
        while let Some(name) = predecessor.take().filter(|_| invoices.len() < PREDECESSORS_MAX) {
            let Some(id) = parse_order_id(&name) else { break };
            let Some((order, state)) = self.find(&id).await? else { break };
            invoices.extend(state.invoice(&order));
            predecessor = state.replaces;
        }
        let month =
            BillingMonth::new(Timestamp::from_millis(state.since), Timestamp::from_millis(state.since));
        Ok(SubscriptionState {
            subscription: payment_id(&order.id),
            customer: None,
            anchor: month.start,
            // The sandbox renews nothing.
            is_ended: self.deps.clock.now() >= month.end,
            replaces: state.replaces.clone(),
            invoices,
        })
    }

    fn mac(&self, order: &OrderId) -> Option<Hmac<Sha256>> {
        // HMAC accepts a key of any length.
        let mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        Some(mac.chain_update(b"sandbox checkout ").chain_update(order.as_str()))
    }

    fn token(&self, order: &OrderId) -> String {
        self.mac(order).map(|mac| hex::encode(&mac.finalize().into_bytes())).unwrap_or_default()
    }

    fn is_token(&self, order: &OrderId, token: &str) -> bool {
        // Compared in constant time.
        let mac = self.mac(order).zip(hex::decode(token));
        mac.is_some_and(|(mac, bytes)| mac.verify_slice(&bytes).is_ok())
    }
}

#[async_trait]
impl PaymentProvider for Sandbox {
    async fn create_checkout(&self, request: CheckoutRequest) -> Result<CheckoutSession> {
        let order = &request.order;
        if matches!(order.item, OrderItem::Plan(_)) {
            self.close_others(order).await?;
        }
        let state = SandboxRecord::new(self.deps.clock.now(), request.subscription.clone());
        // A session that was opened before keeps its state.
        let payment = order.payment.clone().unwrap_or_else(|| state.encode(&order.id));
        Ok(CheckoutSession {
            url: order.page_in_language(self.page_url(&order.id)),
            payment: Some(payment),
            customer: None,
            is_lasting: true,
        })
    }

    async fn parse_webhook(&self, _: WebhookRequest, _: Timestamp) -> Result<WebhookOutcome> {
        Ok(WebhookOutcome::Rejected { reason: "the sandbox sends no webhooks".to_owned() })
    }

    async fn snapshots(&self, subject: &ProviderObject) -> Result<Vec<PaymentSnapshot>> {
        let Some(order) = parse_order_id(&subject.object) else { return Ok(Vec::new()) };
        let Some((order, state)) = self.find(&order).await? else { return Ok(Vec::new()) };
        Ok(vec![match state.invoice(&order) {
            Some(invoice) => PaymentSnapshot::Subscription(self.subscription(&order, &state, invoice).await?),
            None => PaymentSnapshot::Payment(state.payment(&order)),
        }])
    }

    async fn cancel_at_period_end(&self, _: &str) -> Result<()> {
        // The sandbox renews nothing.
        Ok(())
    }

    async fn expire_checkout(&self, payment: &str) -> Result<()> {
        match parse_order_id(payment) {
            Some(order) => self.update_record(&order, SandboxAction::Cancel).await.map(drop),
            None => Ok(()),
        }
    }

    fn owns(&self, name: &str) -> bool {
        parse_order_id(name).is_some()
    }
}
