//! `POST /api/v1/subscribe` and `POST /api/v1/buy-credits`: pages on which plans and packs are paid for.

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::{HeaderMap, StatusCode};
use transcript_core::{
    accounts::{Route, Visit},
    wire::v1::{CreditsCheckout, PlanCheckout},
};

use super::{
    Denial, Fields,
    body::{BODY_MAX, bytes},
    door::{IDEMPOTENCY_KEY, enter, out, reply, turn_away},
};
use crate::routes::App;

/// A page on which a plan is paid for.
pub(crate) async fn subscribe(State(app): State<App>, request: Request) -> Response {
    let (visit, plan) = match asked(&app, Route::Subscribe, request, "plan").await {
        Ok(asked) => asked,
        Err(answer) => return *answer,
    };
    let rate = visit.rate();
    let outcome = match app.payments.offer_plan(visit, &plan).await {
        Ok(offer) => {
            let body = PlanCheckout { success: true, checkout_url: offer.sold.checkout_url.clone() };
            offer.deliver(reply(StatusCode::OK, &body)).await
        }
        Err(refused) => Err(refused),
    };
    out(rate, outcome.map_err(Denial::from))
}

/// A page on which a pack of credits is paid for.
pub(crate) async fn buy_credits(State(app): State<App>, request: Request) -> Response {
    let (visit, pack) = match asked(&app, Route::BuyCredits, request, "pack").await {
        Ok(asked) => asked,
        Err(answer) => return *answer,
    };
    let rate = visit.rate();
    let outcome = match app.payments.offer_pack(visit, &pack).await {
        Ok((pack, offer)) => {
            let body = CreditsCheckout {
                checkout_url: offer.sold.checkout_url.clone(),
                pack: pack.name.to_owned(),
                credits: pack.credits,
                // Whole dollars, far below where that loses any.
                price_usd: pack.price_usd as f64,
            };
            offer.deliver(reply(StatusCode::OK, &body)).await
        }
        Err(refused) => Err(refused),
    };
    out(rate, outcome.map_err(Denial::from))
}

/// Who asks, and the one field of the body, checked in the order of every call.
async fn asked(
    app: &App,
    route: Route,
    request: Request,
    field: &str,
) -> Result<(Visit, String), Box<Response>> {
    let (mut parts, body) = request.into_parts();
    let read = bytes(body, BODY_MAX).await;
    if read.is_err() {
        // Nothing was read that it could be bound to. What is wrong is told after what is wrong with the key.
        parts.headers.remove(IDEMPOTENCY_KEY);
    }
    let visit = enter(app, route, &parts.headers, read.as_deref().unwrap_or_default().to_vec()).await?;
    match read.and_then(|body| text(&parts.headers, &body, field)) {
        Ok(text) => Ok((visit, text)),
        Err(denial) => {
            let rate = visit.rate();
            Err(Box::new(out(rate, Err(turn_away(visit, denial).await))))
        }
    }
}

fn text(headers: &HeaderMap, body: &[u8], field: &str) -> Result<String, Denial> {
    Fields::of(headers, body, &[field])?.text(field).map(str::to_owned)
}
