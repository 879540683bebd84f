//! What a verified event is about. Nothing else of it is read: the thing itself is asked about.

use serde::Deserialize;
use transcript_core::accounts::payments::{Heard, Subject};

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

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Object,
}

/// The thing, whichever it is: its other fields differ from version to version.
#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    id: String,
    #[serde(default)]
    object: String,
    #[serde(default)]
    customer: Option<Name>,
    #[serde(default)]
    payment_intent: Option<Name>,
}

/// The name of another thing, which may come whole.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Id(String),
    Whole { id: String },
}

impl Name {
    fn id(self) -> String {
        match self {
            Self::Id(id) | Self::Whole { id } => id,
        }
    }
}

/// What the event in this body is about.
pub(super) fn subjects(body: &[u8]) -> Heard {
    // Stripe signed it, so it is of another kind (its "thin" events have no object), and not for us.
    let Ok(event) = serde_json::from_slice::<Event>(body) else { return Heard::About(Vec::new()) };
    let object = event.data.object;
    let name = match object.object.as_str() {
        "checkout.session" | "invoice" | "subscription" => Some(object.id),
        // What became of the money is told of the payment.
        "charge" | "refund" | "dispute" => object.payment_intent.map(Name::id),
        _ => None,
    };
    let customer = object.customer.map(Name::id).filter(|name| is_id(name));
    let is_ours = KINDS.iter().any(|kind| event.kind.starts_with(kind));
    let name = name.filter(|name| is_ours && is_id(name));
    Heard::About(name.map(|object| Subject { object, customer }).into_iter().collect())
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
        assert_eq!(subjects(body.as_bytes()), Heard::About(expect.into_iter().collect()), "{kind} {object}");
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
    fn a_name_that_is_none_is_left() {
        for id in ["", "../v1/charges", "cs_1/expire", "cs_1?x", "cs 1", "cs_\u{e9}", &"c".repeat(300)] {
            let id = serde_json::to_string(id).unwrap();
            let object = format!("{{\"object\": \"checkout.session\", \"id\": {id}}}");
            check("checkout.session.completed", &object, None);
        }
        check("checkout.session.completed", r#"{"object": "checkout.session"}"#, None);
    }

    #[test]
    fn what_is_no_such_event_is_about_nothing() {
        for body in
            ["", "{}", "[]", "null", "{\"type\": 7}", r#"{"object": "v2.core.event", "type": "x"}"#, "\u{0}"]
        {
            assert_eq!(subjects(body.as_bytes()), Heard::About(Vec::new()), "{body}");
        }
    }
}
