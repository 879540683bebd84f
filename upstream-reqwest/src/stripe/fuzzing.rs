//! Entry points of the fuzz targets.

use serde::de::DeserializeOwned;
use transcript_core::{
    accounts::{
        payments::WebhookOutcome,
        webhooks::{SIGNATURE_TOLERANCE, verify_signature},
    },
    time::Timestamp,
};

use super::{
    api::is_id,
    event,
    objects::{
        StripeCharge, StripeDispute, StripeInvoice, StripeInvoicePayment, StripeList, StripePaymentIntent,
        StripeSession, StripeSubscription,
    },
};

/// Whether a signature header is valid for a body.
pub fn is_signed(header: &str, body: &[u8], secret: &str, now: Timestamp) -> bool {
    verify_signature(Some(header), body, &[secret.to_owned()], now, SIGNATURE_TOLERANCE).is_ok()
}

/// Reads the subject of an event.
pub fn event(body: &[u8]) {
    if let Ok(WebhookOutcome::Events(subjects)) = event::webhook_subjects(body) {
        for subject in subjects {
            // Both become part of a URL.
            assert!(is_id(&subject.object) && subject.customer.as_deref().is_none_or(is_id), "{subject:?}");
        }
    }
}

/// Reads the objects of Stripe's responses.
pub fn objects(body: &[u8]) {
    fn read<T: DeserializeOwned>(body: &[u8]) -> bool {
        serde_json::from_slice::<T>(body).is_ok()
    }
    read::<StripeSession>(body);
    read::<StripePaymentIntent>(body);
    read::<StripeCharge>(body);
    read::<StripeInvoice>(body);
    read::<StripeList<StripeDispute>>(body);
    read::<StripeList<StripeInvoicePayment>>(body);
    if let Ok(subscription) = serde_json::from_slice::<StripeSubscription>(body) {
        subscription.is_over();
        subscription.is_ours();
    }
}
