//! Stripe's objects, with the fields that are used. Others are left, so that a new one breaks nothing.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{catalogue::plan_of, open::ORDER};

/// Texts that somebody attached to an object.
pub(super) type Metadata = BTreeMap<String, String>;

/// Another object: by its name, or whole where that was asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Link<T> {
    Id(String),
    Whole(Box<T>),
}

/// An object of which only the name is used.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
}

impl Link<Named> {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Whole(whole) => &whole.id,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) mode: String,
    /// `open`, `complete` or `expired`
    pub(super) status: Option<String>,
    /// `paid`, `unpaid` or `no_payment_required`
    pub(super) payment_status: String,
    pub(super) amount_total: Option<i64>,
    pub(super) currency: Option<String>,
    pub(super) client_reference_id: Option<String>,
    pub(super) url: Option<String>,
    pub(super) payment_intent: Option<Link<PaymentIntent>>,
    pub(super) subscription: Option<Link<Named>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PaymentIntent {
    pub(super) id: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) amount_received: Option<i64>,
    pub(super) currency: String,
    pub(super) latest_charge: Option<Link<Charge>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Charge {
    pub(super) amount_captured: i64,
    pub(super) amount_refunded: i64,
    pub(super) disputed: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Dispute {
    pub(super) status: String,
    pub(super) amount: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Subscription {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) customer: Link<Named>,
    pub(super) billing_cycle_anchor: i64,
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) items: List<SubscriptionItem>,
    pub(super) latest_invoice: Option<Link<Named>>,
    #[serde(default)]
    pub(super) cancel_at_period_end: bool,
    /// What changes it later, such as at the month's end.
    pub(super) schedule: Option<Link<Named>>,
}

impl Subscription {
    /// Whether nothing will be paid for it any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "canceled" | "incomplete_expired")
    }

    /// Whether a plan of ours is sold by it, or was. Operators may make one by hand.
    pub(super) fn is_ours(&self) -> bool {
        self.metadata.keys().any(|name| name.starts_with(ORDER))
            || self.items.data.iter().any(|item| plan_of(item.price.product.id()).is_some())
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SubscriptionItem {
    pub(super) id: String,
    pub(super) price: Price,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Price {
    pub(super) id: String,
    pub(super) product: Link<Named>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Invoice {
    pub(super) id: String,
    pub(super) status: Option<String>,
    pub(super) billing_reason: Option<String>,
    pub(super) created: i64,
    pub(super) parent: Option<InvoiceParent>,
    pub(super) lines: List<Line>,
    pub(super) payments: Option<List<InvoicePayment>>,
    pub(super) hosted_invoice_url: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct InvoiceParent {
    pub(super) subscription_details: Option<SubscriptionDetails>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SubscriptionDetails {
    pub(super) subscription: Link<Named>,
    /// The subscription's, as it was when the invoice was made out.
    pub(super) metadata: Option<Metadata>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) quantity: Option<i64>,
    pub(super) period: Period,
    pub(super) pricing: Option<Pricing>,
    pub(super) discount_amounts: Option<Vec<DiscountAmount>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Period {
    pub(super) start: i64,
    pub(super) end: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pricing {
    pub(super) price_details: Option<PriceDetails>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PriceDetails {
    pub(super) product: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct DiscountAmount {
    pub(super) amount: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct InvoicePayment {
    pub(super) status: String,
    pub(super) payment: AssociatedPayment,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct AssociatedPayment {
    pub(super) payment_intent: Option<Link<Named>>,
}

/// Which invoice a payment is for.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PaidInvoice {
    pub(super) invoice: Link<Named>,
}

/// A page of the portal.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PortalSession {
    pub(super) url: String,
}

/// How the portal is set up.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PortalConfiguration {
    pub(super) id: String,
    pub(super) metadata: Option<Metadata>,
}
