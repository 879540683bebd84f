//! `POST /api/v1/webhooks/stripe`: webhook of the payment provider.
//!
//! The signature over the raw body is verified before the body is parsed. An event is acknowledged after it is fully
//! processed, so the provider repeats an interrupted one; processing is idempotent.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use transcript_core::{
    ErrorKind,
    accounts::payments::{WebhookOutcome, WebhookRequest},
    headers::STRIPE_SIGNATURE,
    wire::v1::WebhookAck,
};

use super::{
    body::BODY_MAX,
    document::{self, DocumentOptions},
};
use crate::{
    api::{ENCODED_BODY, V1ErrorResponse, json, read_body},
    state::AppState,
};

/// Limit of an event, in bytes. Events with several invoice lines have tens of kilobytes.
const EVENT_MAX: usize = 512 * 1024;
/// Time until the provider gets an error response.
/// The processing continues, and the event is sent again.
const PROCESSING_TIMEOUT: Duration = Duration::from_secs(8);

/// Handles a Stripe event.
pub(crate) async fn stripe(
    State(app): State<AppState>,
    request: Request,
) -> Result<Response, V1ErrorResponse> {
    if !app.payments.is_configured() {
        let message = "This server accepts no events: payments are not configured.";
        return Err(V1ErrorResponse::new(StatusCode::NOT_FOUND, message));
    }
    let (parts, body) = request.into_parts();
    let signature = signature(&parts.headers);
    let body = read_body(&parts.headers, body, EVENT_MAX, &app.body_budget).await?;
    let payments = app.payments.clone();
    // A separate task, so that a disconnect does not interrupt the processing.
    let work = tokio::spawn(async move {
        let (body, _reserved) = body.into_parts();
        payments.handle_webhook(WebhookRequest { signature, body }).await
    });
    match tokio::time::timeout(PROCESSING_TIMEOUT, work).await {
        Ok(Ok(Ok(WebhookOutcome::Events(_)))) => Ok(json(StatusCode::OK, &WebhookAck { received: true })),
        Ok(Ok(Ok(WebhookOutcome::Rejected { reason: why }))) => {
            tracing::info!(%why, "webhook event rejected");
            Err(V1ErrorResponse::new(StatusCode::BAD_REQUEST, format!("The event was rejected: {why}.")))
        }
        Ok(Ok(Err(error))) => {
            match error.kind() {
                ErrorKind::Unavailable => {
                    tracing::warn!(%error, "webhook event deferred; the provider sends it again")
                }
                _ => tracing::error!(%error, "webhook event failed"),
            }
            Err(not_processed())
        }
        // The panic hook has logged the message and location.
        Ok(Err(_)) => Err(V1ErrorResponse::fault()),
        Err(_) => Err(not_processed()),
    }
}

fn not_processed() -> V1ErrorResponse {
    let message = "The event could not be processed. Send it again.";
    V1ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, message)
}

/// Returns the signature, if sent.
/// An unreadable or repeated header gives an empty text, which is never valid.
fn signature(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(STRIPE_SIGNATURE).iter();
    let first = values.next()?;
    let is_one = values.next().is_none();
    Some(first.to_str().ok().filter(|_| is_one).unwrap_or_default().to_owned())
}

/// Operation in the `OpenAPI` document.
pub(crate) fn operation(_: &DocumentOptions<'_>) -> Value {
    let mut responses = json!({
        "200": document::answer(
            "The event is processed.",
            document::json_body::<WebhookAck>(json!({ "taken": document::example("Always the same", json!(WebhookAck { received: true })) })),
            [],
        ),
        "400": document::denial(
            400,
            "The event's signature is missing, invalid or too old. The event was not read.",
            &[
                ("missing", "The event was rejected: the header Stripe-Signature is missing."),
                ("forged", "The event was rejected: the signature matches none of the signing secrets."),
                ("stale", "The event was rejected: the signature is 301 s old; at most 300 s are accepted."),
            ],
            [],
        ),
        "404": document::denial(
            404,
            "Payments are not configured.",
            &[("notConfigured", "This server accepts no events: payments are not configured.")],
            [],
        ),
        "500": document::denial(
            500,
            "The event could not be processed: the provider must send it again.",
            &[("again", "The event could not be processed. Send it again.")],
            [],
        )
    });
    document::body_denials(&mut responses, BODY_MAX);
    let large = format!("The body is too large: at most {EVENT_MAX} bytes are read.");
    responses["413"] = document::denial(413, "The event is too large.", &[("large", &large)], []);
    // The signature decides whether the body is an event, whatever its content type.
    responses["415"] = document::denial(415, "The event is compressed.", &[("encoded", ENCODED_BODY)], []);
    json!({
        "operationId": "takeStripeEvent",
        "tags": ["payments"],
        "summary": "Receive a Stripe event",
        "description": "For Stripe only. An event is a hint: the payment's state is read from Stripe on each event, so \
                        order and repetition of events do not matter. The signature covers the raw body and is at most \
                        300 seconds old.",
        "security": [],
        "parameters": [{
            "name": STRIPE_SIGNATURE,
            "in": "header",
            "required": true,
            "description": "Time of the event, and 1 to 16 signatures as `v1`. Other schemes are ignored.",
            "schema": { "type": "string", "maxLength": 4096, "pattern": "^t=[0-9]{1,12}(,v[0-9]+=[0-9a-f]+)+$" },
            "examples": { "signed": { "value": format!("t=1795132800,v1={0},v0={0}", "0".repeat(64)) } }
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
