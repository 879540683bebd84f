//! What a verified event is about. Nothing else of it is read: the thing itself is asked about.

use serde_json::Value;
use transcript_core::{
    Error, Result,
    accounts::payments::{Heard, Subject},
};

use super::api::is_id;

/// The kinds of events that can change what somebody has bought; all others are heard and left.
const KINDS: [&str; 7] = [
    "charge.dispute.",
    "charge.refund",
    "checkout.session.",
    "customer.subscription.",
    "invoice.paid",
    "invoice.payment_succeeded",
    "refund.",
];

/// What the event in this body is about. Stripe signed it.
///
/// # Errors
/// [`transcript_core::ErrorKind::Unexpected`] when it is of a kind that matters and does not tell what it is about.
/// Stripe keeps it for days, tells the operator, and makes the call again: a newer version may read it.
pub(super) fn subjects(body: &[u8]) -> Result<Heard> {
    let Ok(event) = serde_json::from_slice::<Value>(body) else {
        // It would be the same the next time.
        tracing::warn!(bytes = body.len(), "a signed event is no JSON");
        return Ok(Heard::About(Vec::new()));
    };
    subjects_of(&event)
}

/// What an event is about, which Stripe sent or told.
///
/// # Errors
/// As [`subjects`].
pub(super) fn subjects_of(event: &Value) -> Result<Heard> {
    let nothing = Ok(Heard::About(Vec::new()));
    let kind = event["type"].as_str().unwrap_or_default();
    if !KINDS.iter().any(|start| kind.starts_with(start)) {
        return nothing;
    }
    let object = &event["data"]["object"];
    let name = match object["object"].as_str() {
        Some("checkout.session" | "invoice" | "subscription") => name(object),
        // What became of the money is told of the payment. One without is not of our making.
        Some("charge" | "refund" | "dispute") if object["payment_intent"].is_null() => return nothing,
        Some("charge" | "refund" | "dispute") => name(&object["payment_intent"]),
        _ => None,
    };
    let Some(name) = name else {
        tracing::warn!(kind, "an event of Stripe's does not tell what it is about");
        return Err(Error::unexpected("an event of Stripe's does not tell what it is about"));
    };
    let subject = Subject { object: name, customer: self::name(&object["customer"]) };
    Ok(Heard::About(vec![subject]))
}

/// The name of a thing, which may come whole.
fn name(thing: &Value) -> Option<String> {
    thing.as_str().or_else(|| thing["id"].as_str()).filter(|name| is_id(name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: &str, object: &str, expect: Option<(&str, Option<&str>)>) {
        let body =
            format!("{{\"object\": \"event\", \"type\": \"{kind}\", \"data\": {{\"object\": {object}}}}}");
        let expect = expect.map(|(object, customer)| Subject {
            object: object.to_owned(),
            customer: customer.map(str::to_owned),
        });
        assert_eq!(
            subjects(body.as_bytes()).unwrap(),
            Heard::About(expect.into_iter().collect()),
            "{kind} {object}"
        );
    }

    #[test]
    fn an_event_is_about_one_thing_or_none() {
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
    fn what_does_not_tell_what_it_is_about_has_to_come_again() {
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
        // What is not needed may be of any kind.
        let odd = r#"{"object": "checkout.session", "id": "cs_1", "customer": 7}"#;
        check("checkout.session.completed", odd, Some(("cs_1", None)));
    }

    fn unread(kind: &str, object: &str) {
        let body = format!("{{\"type\": \"{kind}\", \"data\": {{\"object\": {object}}}}}");
        assert!(subjects(body.as_bytes()).is_err(), "{object}");
    }

    #[test]
    fn what_is_no_such_event_is_about_nothing() {
        for body in
            ["", "{}", "[]", "null", "{\"type\": 7}", r#"{"object": "v2.core.event", "type": "x"}"#, "\u{0}"]
        {
            assert_eq!(subjects(body.as_bytes()).unwrap(), Heard::About(Vec::new()), "{body}");
        }
    }
}
