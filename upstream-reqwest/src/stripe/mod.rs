//! Stripe as a [`PaymentProvider`]: hosted pages, signed events, and snapshots of Stripe's state.
//!
//! Of an event only the object id is used: the object is then read from the API. Requests go to Stripe's own host (or
//! `stripe.api_url`) and never through the platforms' proxies. Requests that create something carry an idempotency
//! key, so that they can be repeated when a response is lost.
//!
//! Stripe's objects are hand-written types with the used fields only (decision 0012).

mod api;
mod cancel;
mod catalog;
mod event;
mod form;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod objects;
mod options;
mod refunds;
mod sessions;
mod snapshots;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{
        payments::{
            CheckoutRequest, CheckoutSession, PaymentProvider, PaymentSnapshot, ProviderObject,
            WebhookOutcome, WebhookRequest,
        },
        webhooks::{SIGNATURE_TOLERANCE, verify_signature},
    },
    headers::STRIPE_SIGNATURE,
};

use api::StripeApi;
use catalog::StripeCatalog;
pub use options::StripeOptions;

/// Version of Stripe's API, sent with every request, whatever the account's default is.
const API_VERSION: &str = "2026-08-26.dahlia";

/// The payment provider Stripe.
#[derive(Debug)]
pub struct StripeProvider {
    api: StripeApi,
    options: StripeOptions,
    catalog: StripeCatalog,
}

impl StripeProvider {
    /// Creates a provider with these options; sends no request.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when an option is wrong;
    /// [`transcript_core::ErrorKind::Unsupported`] when the system has no trusted certificates.
    pub fn new(options: StripeOptions) -> Result<Self> {
        let api = StripeApi::new(&options)?;
        Ok(Self { api, options, catalog: StripeCatalog::default() })
    }
}

#[async_trait]
impl PaymentProvider for StripeProvider {
    async fn create_checkout(&self, sale: CheckoutRequest) -> Result<CheckoutSession> {
        Ok(self.create_page(sale).await?)
    }

    async fn parse_webhook(&self, call: WebhookRequest, now: Timestamp) -> Result<WebhookOutcome> {
        let secrets = &self.options.webhook_secrets;
        let signature = call.signature.as_deref();
        Ok(match verify_signature(signature, &call.body, secrets, now, SIGNATURE_TOLERANCE) {
            Ok(()) => event::webhook_subjects(&call.body)?,
            Err(forged) => WebhookOutcome::Rejected { reason: forged.message(STRIPE_SIGNATURE) },
        })
    }

    async fn snapshots(&self, subject: &ProviderObject) -> Result<Vec<PaymentSnapshot>> {
        Ok(self.read_snapshots(&subject.object).await?)
    }

    async fn list_refunds(&self, since: Timestamp) -> Result<Vec<ProviderObject>> {
        Ok(self.refunds_since(since).await?)
    }

    async fn cancel_at_period_end(&self, subscription: &str) -> Result<()> {
        Ok(self.cancel_renewal(subscription).await?)
    }

    async fn open_portal(&self, customer: &str, return_url: &str) -> Result<Option<CheckoutSession>> {
        Ok(Some(self.manage_page(customer, return_url).await?))
    }

    async fn expire_checkout(&self, payment: &str) -> Result<()> {
        Ok(self.close_page(payment).await?)
    }

    fn owns(&self, name: &str) -> bool {
        let prefixes = ["cs_", "cus_", "in_", "pi_", "sub_"];
        api::is_id(name) && prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}
