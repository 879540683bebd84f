//! `POST /api/v1/subscribe` and `POST /api/v1/buy-credits`: checkout sessions for plans and packs.

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use transcript_core::{
    accounts::{RequestGuard, V1Endpoint},
    wire::v1::{CreditsCheckout, PlanCheckout},
};

use super::{
    BodyFields, V1ErrorResponse,
    admission::{IDEMPOTENCY_KEY, admit, finish, reject, reply},
    body::{BODY_MAX, bytes},
};
use crate::routes::AppState;

/// Opens a checkout session for a plan.
pub(crate) async fn subscribe(State(app): State<AppState>, request: Request) -> Response {
    let (guard, plan) = match admit_with_field(&app, V1Endpoint::Subscribe, request, "plan").await {
        Ok(admitted) => admitted,
        Err(answer) => return *answer,
    };
    let rate = guard.rate();
    let outcome = match app.payments.prepare_plan(guard, &plan).await {
        Ok(prepared) => {
            let body = PlanCheckout { success: true, checkout_url: prepared.checkout.checkout_url.clone() };
            prepared.deliver(reply(StatusCode::OK, &body)).await
        }
        Err(refused) => Err(refused),
    };
    finish(rate, outcome.map_err(V1ErrorResponse::from))
}

/// Opens a checkout session for a credit pack.
pub(crate) async fn buy_credits(State(app): State<AppState>, request: Request) -> Response {
    let (guard, pack) = match admit_with_field(&app, V1Endpoint::BuyCredits, request, "pack").await {
        Ok(admitted) => admitted,
        Err(answer) => return *answer,
    };
    let rate = guard.rate();
    let outcome = match app.payments.prepare_pack(guard, &pack).await {
        Ok((pack, prepared)) => {
            let body = CreditsCheckout {
                checkout_url: prepared.checkout.checkout_url.clone(),
                pack: pack.name.to_owned(),
                credits: pack.credits,
                // Prices are whole dollars, far below the precision limit of `f64`.
                price_usd: pack.price_usd as f64,
            };
            prepared.deliver(reply(StatusCode::OK, &body)).await
        }
        Err(refused) => Err(refused),
    };
    finish(rate, outcome.map_err(V1ErrorResponse::from))
}

/// Admits the call and reads the one field of its body, in the order of checks of every call.
async fn admit_with_field(
    app: &AppState,
    route: V1Endpoint,
    request: Request,
    field: &str,
) -> Result<(RequestGuard, String), Box<Response>> {
    let (mut parts, body) = request.into_parts();
    let read = bytes(body, BODY_MAX).await;
    if read.is_err() {
        // Without a body there is nothing to bind the key to. The body's error is returned after authentication.
        parts.headers.remove(IDEMPOTENCY_KEY);
    }
    let guard = admit(app, route, &parts.headers, read.as_deref().unwrap_or_default().to_vec()).await?;
    match read.and_then(|body| text(&parts.headers, &body, field)) {
        Ok(text) => Ok((guard, text)),
        Err(denial) => {
            let rate = guard.rate();
            Err(Box::new(finish(rate, Err(reject(guard, denial).await))))
        }
    }
}

fn text(headers: &HeaderMap, body: &[u8], field: &str) -> Result<String, V1ErrorResponse> {
    BodyFields::parse(headers, body, &[field])?.text(field).map(str::to_owned)
}
