//! `POST /api/v1/subscribe` and `POST /api/v1/buy-credits`: checkout sessions for plans and packs.

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use transcript_core::{
    accounts::{
        RequestGuard, V1Endpoint,
        payments::{Pack, PreparedCheckout},
    },
    wire::v1::{BuyCreditsRequest, CreditsCheckout, PlanCheckout, SubscribeRequest},
};

use super::{
    BodyFields,
    admission::{EarlyResponse, admit_with_body, finish, reject},
    body::BODY_MAX,
    document::{self, DocumentOptions, examples, parameters},
};
use crate::{
    api::{V1ErrorResponse, reply},
    state::AppState,
};

/// Opens a checkout session for a plan.
pub(crate) async fn subscribe(
    State(app): State<AppState>,
    request: Request,
) -> Result<Response, EarlyResponse> {
    let (guard, plan) = admit_with_field(&app, V1Endpoint::Subscribe, request, "plan").await?;
    let rate = guard.rate();
    let outcome = async {
        let prepared = PreparedCheckout::for_plan(&app.payments, guard, &plan).await?;
        let body = PlanCheckout { success: true, checkout_url: prepared.checkout.checkout_url.clone() };
        prepared.deliver(reply(StatusCode::OK, &body)).await
    };
    Ok(finish(rate, outcome.await))
}

/// Opens a checkout session for a credit pack.
pub(crate) async fn buy_credits(
    State(app): State<AppState>,
    request: Request,
) -> Result<Response, EarlyResponse> {
    let (guard, pack) = admit_with_field(&app, V1Endpoint::BuyCredits, request, "pack").await?;
    let rate = guard.rate();
    let outcome = async {
        let (pack, prepared) = PreparedCheckout::for_pack(&app.payments, guard, &pack).await?;
        let body = CreditsCheckout {
            checkout_url: prepared.checkout.checkout_url.clone(),
            pack: pack.name.to_owned(),
            credits: pack.credits,
            // Prices are whole dollars, far below the precision limit of `f64`.
            price_usd: pack.price_usd as f64,
        };
        prepared.deliver(reply(StatusCode::OK, &body)).await
    };
    Ok(finish(rate, outcome.await))
}

/// Admits the call and reads the one field of its body, in the order of checks of every call.
async fn admit_with_field(
    app: &AppState,
    route: V1Endpoint,
    request: Request,
    field: &str,
) -> Result<(RequestGuard, String), EarlyResponse> {
    let (headers, guard, body) = admit_with_body(app, route, request, BODY_MAX).await?;
    match body.and_then(|body| text(&headers, &body, field)) {
        Ok(text) => Ok((guard, text)),
        Err(denial) => Err(reject(guard, denial).await),
    }
}

fn text(headers: &HeaderMap, body: &[u8], field: &str) -> Result<String, V1ErrorResponse> {
    BodyFields::parse(headers, body, &[field])?.text(field).map(str::to_owned)
}

/// Operation of `POST /api/v1/subscribe` in the `OpenAPI` document.
pub(crate) fn subscribe_operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.accounts;
    let errors = error_responses(&[
        ("missing", "body: it is missing: send JSON such as {\"plan\": …}"),
        ("plan", "plan: it must be one of starter, pro, scale"),
        ("has", "plan: this account has the plan pro already"),
        ("unsold", "plan: scale is not for sale here"),
    ]);
    let page = document::json_body::<PlanCheckout>(json!({
        "page": document::example("A checkout page of the provider", examples::plan_checkout(options))
    }));
    json!({
        "operationId": "subscribe",
        "tags": ["payments"],
        "summary": "Subscribe to a plan",
        "description": "Returns the address of a hosted checkout page. The plan begins with the first payment and \
                        renews until it is cancelled on that page. For an account with another plan \
                        the page changes the plan.",
        "security": document::key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": request_body(document::json_body::<SubscribeRequest>(json!({
            "pro": document::example("A plan", json!(SubscribeRequest { plan: "pro".to_owned() }))
        }))),
        "responses": checkout_responses("The address of the checkout page.", page, errors)
    })
}

/// Operation of `POST /api/v1/buy-credits` in the `OpenAPI` document.
pub(crate) fn buy_credits_operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.accounts;
    let names = Pack::ALL.map(|pack| pack.name).join(", ");
    let unknown = format!("pack: it must be one of {names}");
    let errors = error_responses(&[
        ("missing", "body: it is missing: send JSON such as {\"pack\": …}"),
        ("pack", &unknown),
    ]);
    let page = document::json_body::<CreditsCheckout>(json!({
        "page": document::example("A checkout page of the provider", examples::credits_checkout(options))
    }));
    json!({
        "operationId": "buyCredits",
        "tags": ["payments"],
        "summary": "Buy a pack of credits",
        "description": "Returns the address of a hosted checkout page. The credits are added when the pack is paid, \
                        and do not expire.",
        "security": document::key(),
        "parameters": [parameters::idempotency_key()],
        "requestBody": request_body(document::json_body::<BuyCreditsRequest>(json!({
            "small": document::example("The smallest pack", json!(BuyCreditsRequest { pack: "1k".to_owned() }))
        }))),
        "responses": checkout_responses("The address of the checkout page.", page, errors)
    })
}

fn request_body(content: Value) -> Value {
    json!({
        "description": format!("At most {BODY_MAX} bytes; unknown fields are rejected."),
        "required": true,
        "content": content
    })
}

fn checkout_responses(description: &str, content: Value, errors: Value) -> Value {
    let mut headers = vec![document::replayed()];
    headers.extend(document::rate_limit());
    let mut responses = errors;
    responses["200"] = document::answer(description, content, headers);
    responses
}

/// Error responses of both checkout operations.
fn error_responses(wrong: &[(&str, &str)]) -> Value {
    let mut responses = json!({
        "400": document::denial(
            400,
            "The body is missing, is not a JSON object, or a field is invalid; or the Idempotency-Key was used for \
             another request.",
            wrong,
            document::rate_limit(),
        ),
        "401": document::no_key(),
        "409": document::denial(
            409,
            "Another request with this Idempotency-Key is running, or its order is completed or a different one.",
            &[
                (
                    "busy",
                    "A request with this Idempotency-Key is still running. Retry in a second.",
                ),
                (
                    "other",
                    "The order of this Idempotency-Key is paid, in payment, or a different one. Use a new key for a \
                     new order.",
                ),
            ],
            document::rate_limit(),
        ),
        "429": document::too_fast(),
        "500": document::denial(
            500,
            "Payments are not configured, or the provider or the storage is unavailable. Nothing was charged.",
            &[
                ("notConfigured", "This server sells nothing: payments are not configured."),
                (
                    "away",
                    "The payment page could not be opened: nothing was charged, please try again in a moment.",
                ),
            ],
            document::rate_limit(),
        )
    });
    document::limited_body_denials(&mut responses, BODY_MAX);
    responses
}
