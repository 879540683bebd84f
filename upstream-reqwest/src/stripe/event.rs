//! Extracts the object id of a verified event. All other data is read from the API.

use serde_json::Value;
use transcript_core::{
    Error, Result,
    accounts::payments::{ProviderObject, WebhookOutcome},
};

use super::api::is_id;

/// Prefixes of event types that can change a purchase; all others are acknowledged and ignored.
const KINDS: [&str; 7] = [
    "charge.dispute.",
    "charge.refund",
    "checkout.session.",
    "customer.subscription.",
    "invoice.paid",
    "invoice.payment_succeeded",
    "refund.",
];

/// The subject (the object to re-read) of the event in this body, whose signature was verified.
///
/// # Errors
/// [`transcript_core::ErrorKind::Unexpected`] when a relevant event has no readable subject. Stripe retries it for
/// days and notifies the operator: a newer version may read it.
pub(super) fn webhook_subjects(body: &[u8]) -> Result<WebhookOutcome> {
    let Ok(event) = serde_json::from_slice::<Value>(body) else {
        // A retry would send the same body.
        tracing::warn!(bytes = body.len(), "signed event is not JSON");
        return Ok(WebhookOutcome::Events(Vec::new()));
    };
    subjects_of(&event)
}

/// The subject of an event from a webhook or from the event list.
///
/// # Errors
/// As [`webhook_subjects`].
pub(super) fn subjects_of(event: &Value) -> Result<WebhookOutcome> {
    let nothing = Ok(WebhookOutcome::Events(Vec::new()));
    let kind = event["type"].as_str().unwrap_or_default();
    if !KINDS.iter().any(|start| kind.starts_with(start)) {
        return nothing;
    }
    let object = &event["data"]["object"];
    let object_id = match object["object"].as_str() {
        Some("checkout.session" | "invoice" | "subscription") => object_id(object),
        // Refunds and disputes are read from the payment. One without a payment was not created by this server.
        Some("charge" | "refund" | "dispute") if object["payment_intent"].is_null() => return nothing,
        Some("charge" | "refund" | "dispute") => object_id(&object["payment_intent"]),
        _ => None,
    };
    let Some(object_id) = object_id else {
        tracing::warn!(kind, "Stripe event has no readable subject");
        return Err(Error::unexpected("a Stripe event has no readable subject"));
    };
    let subject = ProviderObject { object: object_id, customer: self::object_id(&object["customer"]) };
    Ok(WebhookOutcome::Events(vec![subject]))
}

/// The id of an object that may be expanded.
fn object_id(thing: &Value) -> Option<String> {
    thing.as_str().or_else(|| thing["id"].as_str()).filter(|object_id| is_id(object_id)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, object: &str, expect: Option<(&str, Option<&str>)>) {
        let body =
            format!("{{\"object\": \"event\", \"type\": \"{kind}\", \"data\": {{\"object\": {object}}}}}");
        let expect = expect.map(|(object, customer)| ProviderObject {
            object: object.to_owned(),
            customer: customer.map(str::to_owned),
        });
        assert_eq!(
            webhook_subjects(body.as_bytes()).unwrap(),
            WebhookOutcome::Events(expect.into_iter().collect()),
            "{kind} {object}"
        );
    }

    #[test]
    fn event_has_one_subject_or_none() {
        let session =
            r#"{"object": "checkout.session", "id": "cs_1", "customer": "cus_1", "amount_total": 5}"#;
        for kind in ["completed", "async_payment_succeeded", "async_payment_failed", "expired"] {
            check(&format!("checkout.session.{kind}"), session, Some(("cs_1", Some("cus_1"))));
        }
        let invoice =
            r#"{"object": "invoice", "id": "in_1", "customer": {"id": "cus_1", "object": "customer"}}"#;
        check("invoice.paid", invoice, Some(("in_1", Some("cus_1"))));
        check("invoice.finalized", invoice, None);
        let subscription = r#"{"object": "subscription", "id": "sub_1", "customer": null}"#;
        check("customer.subscription.deleted", subscription, Some(("sub_1", None)));
        let charge = r#"{"object": "charge", "id": "ch_1", "payment_intent": "pi_1", "customer": null}"#;
        check("charge.refunded", charge, Some(("pi_1", None)));
        check("charge.succeeded", charge, None);
        let dispute = r#"{"object": "dispute", "id": "dp_1", "payment_intent": "pi_1"}"#;
        check("charge.dispute.created", dispute, Some(("pi_1", None)));
        let refund = r#"{"object": "refund", "id": "re_1", "payment_intent": null}"#;
        check("refund.updated", refund, None);
        check(
            "charge.refund.updated",
            r#"{"object": "refund", "payment_intent": "pi_9"}"#,
            Some(("pi_9", None)),
        );
        check("customer.created", r#"{"object": "customer", "id": "cus_1"}"#, None);
    }

    #[test]
    fn event_without_subject_is_error_for_retry() {
        for id in ["", "../v1/charges", "cs_1/expire", "cs_1?x", "cs 1", "cs_\u{e9}", &"c".repeat(300)] {
            let id = serde_json::to_string(id).unwrap();
            let object = format!("{{\"object\": \"checkout.session\", \"id\": {id}}}");
            unread("checkout.session.completed", &object);
        }
        for object in [
            r#"{"object": "checkout.session"}"#,
            r#"{"object": "checkout.session", "id": 7}"#,
            r#"{"object": "checkout.page", "id": "cs_1"}"#,
            r#"{"object": "refund", "payment_intent": 7}"#,
            "{}",
            "[]",
            "null",
            "7",
        ] {
            unread("checkout.session.completed", object);
        }
        // Unused fields may have any type.
        let odd = r#"{"object": "checkout.session", "id": "cs_1", "customer": 7}"#;
        check("checkout.session.completed", odd, Some(("cs_1", None)));
    }

    fn unread(kind: &str, object: &str) {
        let body = format!("{{\"type\": \"{kind}\", \"data\": {{\"object\": {object}}}}}");
        assert!(webhook_subjects(body.as_bytes()).is_err(), "{object}");
    }

    #[test]
    fn event_unknown_is_ignored() {
        for body in
            ["", "{}", "[]", "null", "{\"type\": 7}", r#"{"object": "v2.core.event", "type": "x"}"#, "\u{0}"]
        {
            assert_eq!(
                webhook_subjects(body.as_bytes()).unwrap(),
                WebhookOutcome::Events(Vec::new()),
                "{body}"
            );
        }
    }
}
