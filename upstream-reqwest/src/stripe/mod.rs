//! Stripe as the port [`Checkout`]: hosted pages, signed events, and what Stripe says when it is asked again.
//!
//! Nothing of an event is believed but which thing it is about: that thing is read anew. Requests go to
//! Stripe's own host (or `stripe.api_url`) and never through the platforms' proxies. What is created carries
//! an idempotency key, so that a request whose answer was lost can be repeated.
//!
//! Stripe's objects are typed by hand, with the fields that are used: [0012](../docs/decisions) tells why.

mod api;
mod catalogue;
mod event;
mod facts;
mod form;
mod objects;
mod open;
mod options;
mod returned;
mod signature;
mod stop;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::payments::{Checkout, CheckoutPage, Heard, PaymentFact, Sale, Subject, WebhookCall},
};

use api::Api;
use catalogue::Catalogue;
pub use options::StripeOptions;

/// The version of Stripe's interface that is spoken, whatever the account's default is.
const API_VERSION: &str = "2026-08-26.dahlia";

/// Stripe.
#[derive(Debug)]
pub struct StripeCheckout {
    api: Api,
    options: StripeOptions,
    catalogue: Catalogue,
}

impl StripeCheckout {
    /// Stripe with these options; asks nobody.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong;
    /// [`transcript_core::ErrorKind::Unsupported`] when the system trusts no certificate at all.
    pub fn new(options: StripeOptions) -> Result<Self> {
        let api = Api::new(&options)?;
        Ok(Self { api, options, catalogue: Catalogue::default() })
    }
}

#[async_trait]
impl Checkout for StripeCheckout {
    async fn open(&self, sale: Sale) -> Result<CheckoutPage> {
        Ok(self.open_page(sale).await?)
    }

    async fn hear(&self, call: WebhookCall, now: Timestamp) -> Result<Heard> {
        let secrets = &self.options.webhook_secrets;
        let signature = call.signature.as_deref();
        Ok(match signature::verify(signature, &call.body, secrets, now) {
            Ok(()) => event::subjects(&call.body)?,
            Err(forged) => Heard::Refused { why: forged.to_string() },
        })
    }

    async fn facts(&self, subject: &Subject) -> Result<Vec<PaymentFact>> {
        Ok(self.facts_of(&subject.object).await?)
    }

    async fn returned(&self, since: Timestamp) -> Result<Vec<Subject>> {
        Ok(self.returned_since(since).await?)
    }

    async fn stop(&self, subscription: &str) -> Result<()> {
        Ok(self.stop_renewing(subscription).await?)
    }

    async fn close(&self, payment: &str) -> Result<()> {
        Ok(self.close_page(payment).await?)
    }

    fn knows(&self, name: &str) -> bool {
        let prefixes = ["cs_", "cus_", "in_", "pi_", "sub_"];
        api::is_id(name) && prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}
