//! Payment operations: checkout, webhook, and the pages of orders.

use serde_json::{Value, json};
use transcript_core::{
    accounts::{AccountsOptions, payments::Pack},
    wire::v1::{BuyCreditsRequest, CreditsCheckout, PlanCheckout, SubscribeRequest, WebhookAck},
};

use super::{
    super::responses::{
        ResponseHeader, answer as plain_answer, cache_control, example, fault as plain_fault, header,
        json_body, text_body,
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
        "/api/v1/webhooks/stripe": { "post": webhook_operation() },
        "/checkout/{order}": { "get": order_page() },
        "/checkout/{order}/sandbox": { "get": show_sandbox(), "post": press_sandbox() }
    })
}

/// Error responses of both checkout operations.
fn error_responses(wrong: &[(&str, &str)]) -> Value {
    let mut responses = json!({
        "400": denial(
            400,
            "The body is missing, is not a JSON object, or a field is invalid; or the Idempotency-Key was used for \
             another request.",
            wrong,
            rate_limit(),
        ),
        "401": no_key(),
        "409": denial(
            409,
            "Another request with this Idempotency-Key is running, or its order is completed or a different one.",
            &[
                (
                    "busy",
                    "A request with this Idempotency-Key is still running. Retry in a few seconds.",
                ),
                (
                    "other",
                    "The order of this Idempotency-Key is paid, in payment, or a different one. Use a new key for a \
                     new order.",
                ),
            ],
            rate_limit(),
        ),
        "429": too_fast(),
        "500": denial(
            500,
            "Payments are not configured, or the provider or the storage is unavailable. Nothing was charged.",
            &[
                ("notConfigured", "This server sells nothing: payments are not configured."),
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

fn checkout_responses(description: &str, content: Value, errors: Value) -> Value {
    let mut headers = vec![replayed()];
    headers.extend(rate_limit());
    let mut responses = errors;
    responses["200"] = answer(description, content, headers);
    responses
}

fn body(content: Value) -> Value {
    json!({
        "description": format!("At most {BODY_MAX} bytes; unknown fields are rejected."),
        "required": true,
        "content": content
    })
}

fn subscribe(options: &AccountsOptions) -> Value {
    let errors = error_responses(&[
        ("missing", "body: it is missing: send JSON such as {\"plan\": …}"),
        ("plan", "plan: it must be one of starter, pro, scale"),
        ("has", "plan: this account has the plan pro already"),
        ("unsold", "plan: scale is not for sale here"),
    ]);
    let page = json_body::<PlanCheckout>(json!({
        "page": example("A checkout page of the provider", examples::plan_checkout(options))
    }));
    json!({
        "operationId": "subscribe",
        "tags": ["payments"],
        "summary": "Subscribe to a plan",
        "description": "Returns the address of a hosted checkout page. The plan begins with the first payment and \
                        renews until it is cancelled on that page. For an account with another plan \
                        the page changes the plan.",
        "security": key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": body(json_body::<SubscribeRequest>(json!({
            "pro": example("A plan", json!(SubscribeRequest { plan: "pro".to_owned() }))
        }))),
        "responses": checkout_responses("The address of the checkout page.", page, errors)
    })
}

fn buy_credits(options: &AccountsOptions) -> Value {
    let names = Pack::ALL.map(|pack| pack.name).join(", ");
    let unknown = format!("pack: it must be one of {names}");
    let errors = error_responses(&[
        ("missing", "body: it is missing: send JSON such as {\"pack\": …}"),
        ("pack", &unknown),
    ]);
    let page = json_body::<CreditsCheckout>(json!({
        "page": example("A checkout page of the provider", examples::credits_checkout(options))
    }));
    json!({
        "operationId": "buyCredits",
        "tags": ["payments"],
        "summary": "Buy a pack of credits",
        "description": "Returns the address of a hosted checkout page. The credits are added when the pack is paid, \
                        and do not expire.",
        "security": key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": body(json_body::<BuyCreditsRequest>(json!({
            "small": example("The smallest pack", json!(BuyCreditsRequest { pack: "1k".to_owned() }))
        }))),
        "responses": checkout_responses("The address of the checkout page.", page, errors)
    })
}

fn webhook_operation() -> Value {
    let mut responses = json!({
        "200": answer(
            "The event is processed.",
            json_body::<WebhookAck>(json!({ "taken": example("Always the same", json!(WebhookAck { received: true })) })),
            [],
        ),
        "400": denial(
            400,
            "The event's signature is missing, invalid or too old. The event was not read.",
            &[
                ("missing", "The event was rejected: the header Stripe-Signature is missing."),
                ("forged", "The event was rejected: the signature matches none of stripe.webhook_secrets."),
                ("stale", "The event was rejected: the signature is 301 s old; at most 300 s are accepted."),
            ],
            [],
        ),
        "404": denial(
            404,
            "Payments are not configured.",
            &[("notConfigured", "This server accepts no events: payments are not configured.")],
            [],
        ),
        "500": denial(
            500,
            "The event could not be processed: the provider must send it again.",
            &[("again", "The event could not be processed. Send it again.")],
            [],
        )
    });
    body_denials(&mut responses, BODY_MAX);
    let large = format!("The body is too large: at most {EVENT_MAX} bytes are read.");
    responses["413"] = denial(413, "The event is too large.", &[("large", &large)], []);
    if let Some(responses) = responses.as_object_mut() {
        // The signature decides whether the body is an event, whatever its content type.
        responses.remove("415");
    }
    json!({
        "operationId": "takeStripeEvent",
        "tags": ["payments"],
        "summary": "Receive a Stripe event",
        "description": "For Stripe only. An event is a hint: the payment's state is read from Stripe on each event, so \
                        order and repetition of events do not matter. The signature covers the raw body and is at most \
                        300 seconds old.",
        "security": [],
        "parameters": [{
            "name": "Stripe-Signature",
            "in": "header",
            "required": true,
            "description": "Time and signature of the event.",
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

/// HTML page that must not be cached.
fn page(description: &str, title: &str, headers: impl IntoIterator<Item = ResponseHeader>) -> Value {
    let text = format!("<!DOCTYPE html><html lang=\"en\"><head><title>{title}</title></head></html>");
    let body = text_body(&json!({ "page": { "value": text } }));
    let headers = std::iter::once(cache_control(&["no-store"])).chain(headers);
    plain_answer(description, json!({ "text/html": body }), headers)
}

fn no_such_order() -> Value {
    page("Unknown order, or its page is closed.", "No such order", [])
}

fn unavailable() -> Value {
    page("The storage or the provider is unavailable.", "That did not work", [])
}

fn order_page() -> Value {
    json!({
        "operationId": "getOrderPage",
        "tags": ["payments"],
        "summary": "Show an order in the browser",
        "description": "The page to which the checkout page returns, after a payment or a cancellation.",
        "security": [],
        "parameters": [parameters::order()],
        "responses": {
            "200": page("The status of the order.", "Paid", []),
            "404": no_such_order(),
            "500": plain_fault(),
            "503": unavailable()
        }
    })
}

fn show_sandbox() -> Value {
    json!({
        "operationId": "getSandboxPage",
        "tags": ["payments"],
        "summary": "Show a sandbox order in the browser",
        "description": "The test checkout, without real payments. It is enabled on a loopback address, or by the \
                        operator. GET changes nothing.",
        "security": [],
        "parameters": [parameters::order(), parameters::page_token()],
        "responses": {
            "200": page("The order, with buttons for its actions.", "Test checkout", []),
            "404": no_such_order(),
            "500": plain_fault(),
            "503": unavailable()
        }
    })
}

fn press_sandbox() -> Value {
    let location =
        header("Address of the next page.", json!({ "type": "string", "format": "uri-reference" }));
    json!({
        "operationId": "pressSandboxButton",
        "tags": ["payments"],
        "summary": "Act on a sandbox order",
        "description": "Sent by the buttons of the page. An action that is no longer possible is ignored.",
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
                            "description": "The action."
                        },
                        "cents": {
                            "type": "string",
                            "pattern": "^[1-9][0-9]{0,8}$",
                            "description": "Amount of a refund, in US cents."
                        }
                    }
                },
                "examples": { "pay": { "value": { "token": "0".repeat(64), "deed": "pay" } } }
            } }
        },
        "responses": {
            "303": page("The action is done.", "Done", [("Location", location)]),
            "400": page("Unknown action.", "That did not work", []),
            "404": no_such_order(),
            "408": page("The form did not arrive in time.", "That did not work", []),
            "413": page("The form is too large.", "That did not work", []),
            "500": plain_fault(),
            "503": unavailable()
        }
    })
}
