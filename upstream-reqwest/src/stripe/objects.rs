//! Stripe's objects, with the used fields only.
//!
//! Unknown fields are ignored, so that new ones break nothing.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{catalog::plan_for_product, sessions::ORDER};

/// Metadata of an object.
pub(super) type StripeMetadata = BTreeMap<String, String>;

/// A reference to another object: its id, or the object itself if expanded.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Expandable<T> {
    Id(String),
    Whole(Box<T>),
}

/// An object of which only the id is used.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ObjectRef {
    pub(super) id: String,
}

impl Expandable<ObjectRef> {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Whole(whole) => &whole.id,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeList<T> {
    pub(super) data: Vec<T>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeSession {
    pub(super) id: String,
    /// `payment`, `subscription` or `setup`
    pub(super) mode: String,
    /// Whether real money was paid.
    pub(super) livemode: Option<bool>,
    /// `open`, `complete` or `expired`
    pub(super) status: Option<String>,
    /// `paid`, `unpaid` or `no_payment_required`
    pub(super) payment_status: String,
    pub(super) amount_total: Option<i64>,
    pub(super) currency: Option<String>,
    pub(super) client_reference_id: Option<String>,
    pub(super) metadata: Option<StripeMetadata>,
    pub(super) url: Option<String>,
    pub(super) payment_intent: Option<Expandable<StripePaymentIntent>>,
    pub(super) subscription: Option<Expandable<ObjectRef>>,
    /// The first invoice of the subscription.
    pub(super) invoice: Option<Expandable<ObjectRef>>,
}

impl StripeSession {
    /// The order, if this server created the session.
    ///
    /// A visitor of any payment link of the account chooses its reference, but never its metadata.
    pub(super) fn order(&self) -> Option<&str> {
        let reference = self.client_reference_id.as_deref()?;
        let named = self.metadata.as_ref()?.get(ORDER)?;
        let is_sale = matches!(self.mode.as_str(), "payment" | "subscription");
        (is_sale && named == reference).then_some(reference)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripePaymentIntent {
    pub(super) id: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) metadata: StripeMetadata,
    pub(super) latest_charge: Option<Expandable<StripeCharge>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeCharge {
    pub(super) amount_captured: i64,
    pub(super) amount_refunded: i64,
    pub(super) disputed: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeDispute {
    pub(super) status: String,
    pub(super) amount: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeSubscription {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) customer: Expandable<ObjectRef>,
    pub(super) billing_cycle_anchor: i64,
    #[serde(default)]
    pub(super) metadata: StripeMetadata,
    pub(super) items: StripeList<StripeSubscriptionItem>,
    pub(super) latest_invoice: Option<Expandable<ObjectRef>>,
    #[serde(default)]
    pub(super) cancel_at_period_end: bool,
    /// A scheduled change, such as a downgrade at the end of the period.
    pub(super) schedule: Option<Expandable<ObjectRef>>,
}

impl StripeSubscription {
    /// Whether no more payments will occur.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "canceled" | "incomplete_expired")
    }

    /// Whether the subscription is for a plan of this server, by its metadata or its product.
    ///
    /// Operators may create a subscription manually, without this metadata.
    pub(super) fn is_ours(&self) -> bool {
        self.metadata.keys().any(|name| name.starts_with(ORDER))
            || self.items.data.iter().any(|item| plan_for_product(item.price.product.id()).is_some())
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeSubscriptionItem {
    pub(super) id: String,
    pub(super) price: StripePrice,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripePrice {
    pub(super) id: String,
    pub(super) product: Expandable<ObjectRef>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeInvoice {
    pub(super) id: String,
    pub(super) status: Option<String>,
    pub(super) billing_reason: Option<String>,
    pub(super) created: i64,
    pub(super) parent: Option<StripeInvoiceParent>,
    pub(super) lines: StripeList<StripeInvoiceLine>,
    pub(super) payments: Option<StripeList<StripeInvoicePayment>>,
    pub(super) hosted_invoice_url: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeInvoiceParent {
    pub(super) subscription_details: Option<StripeSubscriptionDetails>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeSubscriptionDetails {
    pub(super) subscription: Expandable<ObjectRef>,
    /// The subscription's metadata at invoice time.
    pub(super) metadata: Option<StripeMetadata>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeInvoiceLine {
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) quantity: Option<i64>,
    pub(super) period: StripePeriod,
    pub(super) pricing: Option<StripePricing>,
    pub(super) discount_amounts: Option<Vec<StripeDiscountAmount>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct StripePeriod {
    pub(super) start: i64,
    pub(super) end: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripePricing {
    pub(super) price_details: Option<StripePriceDetails>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripePriceDetails {
    pub(super) product: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct StripeDiscountAmount {
    pub(super) amount: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeInvoicePayment {
    pub(super) status: String,
    pub(super) payment: StripeAssociatedPayment,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripeAssociatedPayment {
    pub(super) payment_intent: Option<Expandable<ObjectRef>>,
}

/// The invoice of a payment.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripePaidInvoice {
    pub(super) invoice: Expandable<ObjectRef>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripePortalSession {
    pub(super) url: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StripePortalConfiguration {
    pub(super) id: String,
    pub(super) metadata: Option<StripeMetadata>,
}
