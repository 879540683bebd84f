//! The port to whoever takes the money: a hosted checkout page, and what came of it.

use std::fmt;

use async_trait::async_trait;

use super::PaymentFact;
use crate::{accounts::Order, error::Result, time::Timestamp};

/// An order that is about to be paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sale {
    /// What is sold, at what price. It is stored already.
    pub order: Order,
    /// The buyer's e-mail address.
    pub email: String,
    /// The provider's name for the buyer, where it is known.
    pub customer: Option<String>,
    /// The provider's name for the buyer's present subscription, where a plan is sold to somebody who has
    /// had one.
    pub subscription: Option<String>,
}

/// Where a buyer goes to pay.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckoutPage {
    /// The page's address. Whoever has it may act for the buyer, so it is told to nobody else.
    pub url: String,
    /// The provider's name for what was opened, by which it can be asked about.
    pub payment: Option<String>,
    /// The provider's name for the buyer, where it knows buyers.
    pub customer: Option<String>,
    /// Whether the page is there for a day or longer. One that is not is made anew for whoever asks again.
    pub is_lasting: bool,
}

impl fmt::Debug for CheckoutPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckoutPage")
            .field("payment", &self.payment)
            .field("customer", &self.customer)
            .field("is_lasting", &self.is_lasting)
            .finish_non_exhaustive()
    }
}

/// A call that claims to come from the provider, as it arrived.
#[derive(Clone)]
pub struct WebhookCall {
    /// What it is signed with, where a signature came.
    pub signature: Option<String>,
    /// The body, byte by byte: it is what was signed.
    pub body: Vec<u8>,
}

impl fmt::Debug for WebhookCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookCall").field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Something at the provider that may have changed: a checkout, an invoice, a payment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The provider's name for it.
    pub object: String,
    /// The provider's name for the buyer, where the call told it.
    pub customer: Option<String>,
}

impl Subject {
    /// What has this name at the provider.
    pub fn new(object: impl Into<String>) -> Self {
        Self { object: object.into(), customer: None }
    }
}

/// What a call turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It comes from the provider, and is about these; often about none that matters here.
    About(Vec<Subject>),
    /// It is not known to come from the provider, or not now.
    Refused {
        /// Why, for the log and for whoever sets the provider up. It quotes nothing of the call.
        why: String,
    },
}

/// Whoever takes the money.
///
/// Every method fails with [`crate::ErrorKind::Unavailable`] when the provider cannot be reached or does
/// not want to be asked now, and with [`crate::ErrorKind::Unexpected`] when it answers what it should not.
/// No error names a key, a page's address or a person.
#[async_trait]
pub trait Checkout: fmt::Debug + Send + Sync + 'static {
    /// Opens a page on which an order can be paid.
    ///
    /// **Behaviour**
    /// - The order's id is the provider's idempotency key and comes back with the payment: opening an order
    ///   again opens nothing new.
    /// - A buyer without a name at the provider gets one, once for each account, which is returned.
    /// - Where the buyer has a subscription that goes on, the page changes that one: nobody pays for two. Of
    ///   several pages for plans that one buyer opens, one is left that can be paid.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Conflict`] when the order's page was used already, or is closed.
    async fn open(&self, sale: Sale) -> Result<CheckoutPage>;

    /// Verifies a call, and tells what it is about. Nothing else in it is believed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unexpected`] when it comes from the provider and cannot be read, though it should
    /// be: it has to be made again, for a newer version of this program.
    async fn hear(&self, call: WebhookCall, now: Timestamp) -> Result<Heard>;

    /// What the provider says of something now, read anew with every call.
    ///
    /// **Behaviour**: none for what is unknown, or was not sold through this port.
    async fn facts(&self, subject: &Subject) -> Result<Vec<PaymentFact>>;

    /// The payments of which money went back or is contested since a moment, as far back as the provider
    /// remembers; each perhaps more than once. Only where an event can be lost: else there are none.
    async fn returned(&self, since: Timestamp) -> Result<Vec<Subject>> {
        let _ = since;
        Ok(Vec::new())
    }

    /// Lets a subscription end when its paid month does: nothing is charged for it any more.
    ///
    /// **Behaviour**: one that has ended, or is unknown, is success.
    async fn stop(&self, subscription: &str) -> Result<()>;

    /// Closes a page, by the provider's name for what was opened: nobody can pay on it any more.
    ///
    /// **Behaviour**: one that is paid or closed already, or unknown, is success, and so is what is no page: money
    /// that is under way arrives all the same. [`Checkout::facts`] tells what it came to.
    async fn close(&self, payment: &str) -> Result<()>;

    /// Whether this name of a checkout, a subscription or a buyer can be one of this provider's: what another
    /// provider left behind means nothing to it.
    fn knows(&self, name: &str) -> bool;
}
