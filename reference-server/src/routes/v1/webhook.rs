//! `POST /api/v1/webhooks/stripe`: the payment provider says that something happened.
//!
//! The signature over the raw body is checked before anything of it is read. An event is acknowledged when
//! all that follows from it is done, so that one which broke off is sent again; doing it again changes nothing.

use std::time::Duration;

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderName, StatusCode};
use transcript_core::{
    ErrorKind,
    accounts::payments::{Heard, WebhookCall},
    wire::v1::EventTaken,
};

use super::{Denial, body::bytes};
use crate::{http::json, routes::App};

/// The largest event that is read, in bytes. Those of a few lines of an invoice have tens of kilobytes.
pub(crate) const EVENT_MAX: usize = 512 * 1024;
/// How long the provider is kept waiting. The work goes on after that, and the event is sent again.
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// What an event is signed with.
const SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");

/// Takes an event of Stripe.
pub(crate) async fn stripe(State(app): State<App>, request: Request) -> Result<Response, Denial> {
    if !app.payments.is_configured() {
        let message = "No events are taken here: payments are not configured.";
        return Err(Denial::new(StatusCode::NOT_FOUND, message));
    }
    let (parts, body) = request.into_parts();
    let call = WebhookCall { signature: signature(&parts.headers), body: bytes(body, EVENT_MAX).await? };
    let payments = app.payments.clone();
    // In a task of its own: a provider that hangs up does not break it off half way.
    let work = tokio::spawn(async move { payments.hear(call).await });
    match tokio::time::timeout(ANSWER_MAX, work).await {
        Ok(Ok(Ok(Heard::About(_)))) => Ok(json(StatusCode::OK, &EventTaken { received: true })),
        Ok(Ok(Ok(Heard::Refused { why }))) => {
            tracing::info!(%why, "an event was refused");
            Err(Denial::new(StatusCode::BAD_REQUEST, format!("The event is not believed: {why}.")))
        }
        Ok(Ok(Err(error))) => {
            match error.kind() {
                ErrorKind::Unavailable => {
                    tracing::warn!(%error, "an event could not be followed; it is sent again")
                }
                _ => tracing::error!(%error, "an event could not be followed"),
            }
            Err(not_done())
        }
        // The panic hook has logged what and where.
        Ok(Err(_)) => Err(Denial::fault()),
        Err(_) => Err(not_done()),
    }
}

fn not_done() -> Denial {
    let message = "What the event is about could not be settled now: please send it again.";
    Denial::new(StatusCode::INTERNAL_SERVER_ERROR, message)
}

/// The signature, where one came. One that is no text, or that came twice, is none that is valid.
fn signature(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(SIGNATURE).iter();
    let first = values.next()?;
    let is_one = values.next().is_none();
    Some(first.to_str().ok().filter(|_| is_one).unwrap_or_default().to_owned())
}
