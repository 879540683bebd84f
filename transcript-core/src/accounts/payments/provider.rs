//! The payment provider port: hosted checkout pages, and the state of payments.

use std::fmt;

use async_trait::async_trait;

use super::PaymentSnapshot;
use crate::{accounts::Order, debug_fields, error::Result, time::Timestamp};

/// A request for a checkout session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutRequest {
    /// The order, already stored.
    pub order: Order,
    /// The buyer's email address.
    pub email: String,
    /// The provider's id of the buyer, if known.
    pub customer: Option<String>,
    /// The provider's id of the buyer's subscription.
    /// Set when a plan is sold to an account that has one or had one.
    pub subscription: Option<String>,
}

/// A hosted payment page.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckoutSession {
    /// The page's URL. It lets its holder act for the buyer, so only the buyer receives it.
    pub url: String,
    /// The provider's id of the session, for later queries.
    pub payment: Option<String>,
    /// The provider's id of the buyer, if the provider has such ids.
    pub customer: Option<String>,
    /// Whether the page stays open for a day or longer. Otherwise a repeated request creates a new one.
    pub is_lasting: bool,
}

debug_fields!(CheckoutSession { payment, customer, is_lasting });

/// An unverified webhook request.
#[derive(Clone)]
pub struct WebhookRequest {
    /// The signature, if the request has one.
    pub signature: Option<String>,
    /// The raw body: the signature covers these bytes.
    pub body: Vec<u8>,
}

crate::debug_fields!(WebhookRequest |this| { bytes: this.body.len() });

/// An object at the provider that may have changed: a checkout session, an invoice, a payment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProviderObject {
    /// The provider's id of the object.
    pub object: String,
    /// The provider's id of the buyer, if the request named it.
    pub customer: Option<String>,
}

impl ProviderObject {
    /// Creates a reference to the object with this id.
    pub fn new(object: impl Into<String>) -> Self {
        Self { object: object.into(), customer: None }
    }
}

/// Outcome of the verification of a webhook request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// It comes from the provider, and concerns these objects; the list is often empty.
    Events(Vec<ProviderObject>),
    /// The signature is missing, wrong or too old.
    Rejected {
        /// The reason, for the log and for the person who configures the provider.
        /// It contains nothing of the request.
        reason: String,
    },
}

/// The port to a payment provider.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] if the provider is unreachable or rejects calls
/// at present, and with [`crate::ErrorKind::Unexpected`] if its response is invalid.
/// No error contains a key, a page's URL or personal data.
#[async_trait]
pub trait PaymentProvider: fmt::Debug + Send + Sync + 'static {
    /// Creates a hosted page on which an order can be paid.
    ///
    /// **Behaviour**
    /// - The order's id is the provider's idempotency key and is returned with the payment: a second call for
    ///   the same order creates no second session.
    /// - A buyer without an id at the provider gets one, once per account; it is returned.
    /// - If the buyer has a running subscription, the page changes that one, so that no account pays for two.
    ///   Of several open pages for plans of one buyer, only one remains payable.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] if the order's page was already used or is closed.
    async fn create_checkout(&self, sale: CheckoutRequest) -> Result<CheckoutSession>;

    /// Verifies a webhook request and returns its objects. Nothing else in it is trusted.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unexpected`] if it comes from the provider but cannot be parsed, though it should
    /// be: the provider must send it again, to a newer version of this program.
    async fn parse_webhook(&self, call: WebhookRequest, now: Timestamp) -> Result<WebhookOutcome>;

    /// The provider's present snapshots of an object, read on every call.
    ///
    /// **Behaviour**: empty for an object that is unknown or was not sold through this port.
    async fn snapshots(&self, subject: &ProviderObject) -> Result<Vec<PaymentSnapshot>>;

    /// Lists payments that were refunded or disputed since `since`; duplicates are possible.
    /// The list goes back as far as the provider has records. Empty for a provider whose events cannot be lost.
    async fn list_refunds(&self, since: Timestamp) -> Result<Vec<ProviderObject>> {
        let _ = since;
        Ok(Vec::new())
    }

    /// Cancels a subscription at the end of its paid month: it is not charged again.
    ///
    /// **Behaviour**: an ended or unknown subscription is success.
    async fn cancel_at_period_end(&self, subscription: &str) -> Result<()>;

    /// Opens a page on which a buyer manages the running subscription: cancellation, payment method and invoices.
    ///
    /// `return_url` is the page of this service to which the buyer returns. `None` if the provider has no such page.
    async fn open_portal(&self, customer: &str, return_url: &str) -> Result<Option<CheckoutSession>> {
        let _ = (customer, return_url);
        Ok(None)
    }

    /// Closes a checkout session by its id: it can no longer be paid.
    ///
    /// **Behaviour**: a paid, closed or unknown session is success, and so is the id of another kind of object. A
    /// payment in progress still arrives. [`PaymentProvider::snapshots`] returns the result.
    async fn expire_checkout(&self, payment: &str) -> Result<()>;

    /// Whether the id of a session, a subscription or a buyer can belong to this provider. Ids of another
    /// provider are ignored.
    fn owns(&self, name: &str) -> bool;
}
