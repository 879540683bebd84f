//! `POST /api/v1/webhooks/stripe`: webhook of the payment provider.
//!
//! The signature over the raw body is verified before the body is parsed. An event is acknowledged after it is fully
//! processed, so the provider repeats an interrupted one; processing is idempotent.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderName, StatusCode};
use transcript_core::{
    ErrorKind,
    accounts::payments::{WebhookOutcome, WebhookRequest},
    wire::v1::WebhookAck,
};

use super::{V1ErrorResponse, body::bytes};
use crate::{http::json, routes::AppState};

/// Limit of an event, in bytes. Events with several invoice lines have tens of kilobytes.
pub(crate) const EVENT_MAX: usize = 512 * 1024;
/// Time until the provider gets an error response.
/// The processing continues, and the event is sent again.
const PROCESSING_TIMEOUT: Duration = Duration::from_secs(8);
/// Header of the event's signature.
const SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

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
    let request =
        WebhookRequest { signature: signature(&parts.headers), body: bytes(body, EVENT_MAX).await? };
    let payments = app.payments.clone();
    // A separate task, so that a disconnect does not interrupt the processing.
    let work = tokio::spawn(async move { payments.handle_webhook(request).await });
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
    let mut values = headers.get_all(SIGNATURE).iter();
    let first = values.next()?;
    let is_one = values.next().is_none();
    Some(first.to_str().ok().filter(|_| is_one).unwrap_or_default().to_owned())
}
