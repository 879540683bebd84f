//! What is sold, the events of the payment provider, and the pages that buyers see.

use serde_json::{Value, json};
use transcript_core::{
    accounts::{AccountsOptions, payments::Pack},
    wire::v1::{BuyCredits, CreditsCheckout, EventTaken, PlanCheckout, Subscribe},
};

use super::{
    super::responses::{
        Header, answer as plain_answer, cache_control, example, fault as plain_fault, header, json_body,
        text_body,
    },
    examples,
    operations::{key, replayed, too_fast},
    parameters,
    responses::{answer, body_denials, denial, no_key, rate_limit},
};
use crate::routes::v1::{body::BODY_MAX, webhook::EVENT_MAX};

/// The paths with their operations.
pub(super) fn paths(options: &AccountsOptions) -> Value {
    json!({
        "/api/v1/subscribe": { "post": subscribe(options) },
        "/api/v1/buy-credits": { "post": buy_credits(options) },
        "/api/v1/webhooks/stripe": { "post": event() },
        "/checkout/{order}": { "get": back() },
        "/checkout/{order}/sandbox": { "get": show_sandbox(), "post": press_sandbox() }
    })
}

/// What both ways of ordering answer beside the page's address.
fn refusals(wrong: &[(&str, &str)]) -> Value {
    let mut responses = json!({
        "400": denial(
            400,
            "The body is missing, is no JSON object, or its field is wrong; or the Idempotency-Key was used for \
             another request.",
            wrong,
            rate_limit(),
        ),
        "401": no_key(),
        "409": denial(
            409,
            "Another request with this Idempotency-Key is under way, or its order is another one or completed.",
            &[
                (
                    "busy",
                    "Another request with this Idempotency-Key is under way: please try again in a moment.",
                ),
                (
                    "other",
                    "The order of this Idempotency-Key is paid, is being paid, or is another one: take a new key for a \
                     new order.",
                ),
            ],
            rate_limit(),
        ),
        "429": too_fast(),
        "500": denial(
            500,
            "Nothing is sold here, or the provider or the storage is away. Nothing was charged.",
            &[
                ("notConfigured", "Nothing can be bought here: payments are not configured."),
                (
                    "away",
                    "The payment page could not be opened: nothing was charged, please try again in a moment.",
                ),
            ],
            rate_limit(),
        )
    });
    body_denials(&mut responses, BODY_MAX);
    responses
}

fn ordered(description: &str, content: Value, refusals: Value) -> Value {
    let mut headers = vec![replayed()];
    headers.extend(rate_limit());
    let mut responses = refusals;
    responses["200"] = answer(description, content, headers);
    responses
}

fn body(content: Value) -> Value {
    json!({
        "description": format!("At most {BODY_MAX} bytes; a field that is not known is refused."),
        "required": true,
        "content": content
    })
}

fn subscribe(options: &AccountsOptions) -> Value {
    let refusals = refusals(&[
        ("missing", "body: it is missing: send JSON such as {\"plan\": …}"),
        ("plan", "plan: it must be one of starter, pro, scale"),
        ("has", "plan: this account has the plan pro already"),
        ("unsold", "plan: scale is not for sale here"),
    ]);
    let page = json_body::<PlanCheckout>(json!({
        "page": example("A page of the provider", examples::plan_checkout(options))
    }));
    json!({
        "operationId": "subscribe",
        "tags": ["payments"],
        "summary": "Subscribe to a plan",
        "description": "Answers the address of a hosted page on which the plan is paid for. The plan begins when \
                        its first month is paid, and goes on until it is cancelled there. For an account that has \
                        another plan the page changes that one.",
        "security": key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": body(json_body::<Subscribe>(json!({
            "pro": example("A plan", json!(Subscribe { plan: "pro".to_owned() }))
        }))),
        "responses": ordered("Where the plan is paid for.", page, refusals)
    })
}

fn buy_credits(options: &AccountsOptions) -> Value {
    let names = Pack::ALL.map(|pack| pack.name).join(", ");
    let unknown = format!("pack: it must be one of {names}");
    let refusals =
        refusals(&[("missing", "body: it is missing: send JSON such as {\"pack\": …}"), ("pack", &unknown)]);
    let page = json_body::<CreditsCheckout>(json!({
        "page": example("A page of the provider", examples::credits_checkout(options))
    }));
    json!({
        "operationId": "buyCredits",
        "tags": ["payments"],
        "summary": "Buy a pack of credits",
        "description": "Answers the address of a hosted page on which the pack is paid for. The credits are added \
                        when it is paid, and do not expire.",
        "security": key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": body(json_body::<BuyCredits>(json!({
            "small": example("The smallest pack", json!(BuyCredits { pack: "1k".to_owned() }))
        }))),
        "responses": ordered("Where the pack is paid for.", page, refusals)
    })
}

fn event() -> Value {
    let mut responses = json!({
        "200": answer(
            "All that follows from the event is done.",
            json_body::<EventTaken>(json!({ "taken": example("Always the same", json!(EventTaken { received: true })) })),
            [],
        ),
        "400": denial(
            400,
            "The event is not known to come from Stripe, or not now. Nothing of it was read.",
            &[
                ("missing", "The event is not believed: the header Stripe-Signature is missing."),
                ("forged", "The event is not believed: the signature is of none of stripe.webhook_secrets."),
                ("stale", "The event is not believed: the signature is 301 s old: at most 300 are believed."),
            ],
            [],
        ),
        "404": denial(
            404,
            "Nothing is sold here.",
            &[("notConfigured", "No events are taken here: payments are not configured.")],
            [],
        ),
        "500": denial(
            500,
            "What the event is about could not be settled: it is to be sent again.",
            &[("again", "What the event is about could not be settled now: please send it again.")],
            [],
        )
    });
    body_denials(&mut responses, BODY_MAX);
    let large = format!("The body is too large: at most {EVENT_MAX} bytes are read.");
    responses["413"] = denial(413, "The event is too large.", &[("large", &large)], []);
    if let Some(responses) = responses.as_object_mut() {
        // The signature says whether it is an event, whatever its type is said to be.
        responses.remove("415");
    }
    json!({
        "operationId": "takeStripeEvent",
        "tags": ["payments"],
        "summary": "Take an event of Stripe",
        "description": "For Stripe alone. An event is only a hint: what it is about is asked after anew, so it does \
                        not matter in which order events come, or how often. The signature is over the raw body and \
                        at most 300 seconds old.",
        "security": [],
        "parameters": [{
            "name": "Stripe-Signature",
            "in": "header",
            "required": true,
            "description": "When the event was signed, and with what.",
            "schema": { "type": "string", "pattern": "^t=[0-9]{1,12},v1=[0-9a-f]{64}$" },
            "examples": { "signed": { "value": format!("t=1795132800,v1={}", "0".repeat(64)) } }
        }],
        "requestBody": {
            "description": format!("At most {EVENT_MAX} bytes."),
            "required": true,
            "content": {
                "application/json": {
                    "schema": { "type": "object", "description": "Stripe's event object." },
                    "examples": { "completed": { "value": {
                        "id": "evt_1",
                        "object": "event",
                        "type": "checkout.session.completed",
                        "data": { "object": { "id": "cs_1", "object": "checkout.session" } }
                    } } }
                }
            }
        },
        "responses": responses
    })
}

/// A page for people, which nobody on the way keeps.
fn page(description: &str, title: &str, headers: impl IntoIterator<Item = Header>) -> Value {
    let text = format!("<!DOCTYPE html><html lang=\"en\"><head><title>{title}</title></head></html>");
    let body = text_body(&json!({ "page": { "value": text } }));
    let headers = std::iter::once(cache_control(&["no-store"])).chain(headers);
    plain_answer(description, json!({ "text/html": body }), headers)
}

fn no_such_order() -> Value {
    page("There is no such order, or its page is closed.", "No such order", [])
}

fn not_now() -> Value {
    page("The storage or the provider is away.", "That did not work", [])
}

fn back() -> Value {
    json!({
        "operationId": "getOrderPage",
        "tags": ["payments"],
        "summary": "See how an order stands, as a person",
        "description": "Where buyers come back to from the payment page, whether they paid or not.",
        "security": [],
        "parameters": [parameters::order()],
        "responses": {
            "200": page("How the order stands.", "Paid", []),
            "404": no_such_order(),
            "500": plain_fault(),
            "503": not_now()
        }
    })
}

fn show_sandbox() -> Value {
    json!({
        "operationId": "getSandboxPage",
        "tags": ["payments"],
        "summary": "See an order in the sandbox, as a person",
        "description": "The test checkout, in which nobody pays. It is open while the service is on its own \
                        machine, or where the operator opened it. Looking changes nothing.",
        "security": [],
        "parameters": [parameters::order(), parameters::page_token()],
        "responses": {
            "200": page("The order, and buttons for what can be done with it.", "Test checkout", []),
            "404": no_such_order(),
            "500": plain_fault(),
            "503": not_now()
        }
    })
}

fn press_sandbox() -> Value {
    let location =
        header("Where the browser goes on.", json!({ "type": "string", "format": "uri-reference" }));
    json!({
        "operationId": "pressSandboxButton",
        "tags": ["payments"],
        "summary": "Do something to an order in the sandbox",
        "description": "What the buttons of the page send. What cannot be done any more is not done.",
        "security": [],
        "parameters": [parameters::order()],
        "requestBody": {
            "description": format!("At most {BODY_MAX} bytes."),
            "required": true,
            "content": { "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["token", "deed"],
                    "properties": {
                        "token": parameters::page_token()["schema"],
                        "deed": {
                            "type": "string",
                            "enum": ["pay", "pay-later", "cancel", "arrive", "fail", "refund"],
                            "description": "What is done."
                        },
                        "cents": {
                            "type": "string",
                            "pattern": "^[1-9][0-9]{0,8}$",
                            "description": "How much a refund gives back, in US cents."
                        }
                    }
                },
                "examples": { "pay": { "value": { "token": "0".repeat(64), "deed": "pay" } } }
            } }
        },
        "responses": {
            "303": page("It is done.", "Done", [("Location", location)]),
            "400": page("No button of the page sends that.", "That did not work", []),
            "404": no_such_order(),
            "408": page("The form did not arrive in time.", "That did not work", []),
            "413": page("The form is too large.", "That did not work", []),
            "500": plain_fault(),
            "503": not_now()
        }
    })
}
