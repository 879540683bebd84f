//! The routes of Surface B, the v1 API (specification 4 "Surface B", 7; design 4).
//!
//! Each call's checks come in one order: address and method, key, repeated reply, rate limit, parameters,
//! credits, work. Everything that goes wrong is told as `{error, code}`, also a defect of ours.

mod account;
pub(crate) mod body;
pub(crate) mod chat;
mod denial;
pub(crate) mod door;
mod events;
mod payments;
pub(crate) mod rate;
mod ready;
mod register;
mod transcript;
mod verify;
pub(crate) mod webhook;

use std::panic::AssertUnwindSafe;

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use futures_util::FutureExt;
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{ALLOW, CACHE_CONTROL},
};

pub(crate) use body::Fields;
pub(crate) use denial::Denial;
pub(crate) use events::wants_events;
pub(crate) use ready::{PATH as TRANSCRIPT, ReadyTranscripts, charged};
pub(crate) use verify::weight;

use super::App;

/// Whether a transcript came from the archive: `HIT` or `MISS`.
pub(crate) const X_CACHE: HeaderName = HeaderName::from_static("x-cache");
/// The credits that are left (specification 4, response headers).
pub(crate) const X_CREDITS_REMAINING: HeaderName = HeaderName::from_static("x-credits-remaining");

/// Where all of it lies.
pub(crate) const PREFIX: &str = "/api/v1";

/// Every address below [`PREFIX`].
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/register", only("POST, OPTIONS", post(register::register)))
        .route("/verify", only("GET, POST, OPTIONS", get(verify::open).post(verify::confirm)))
        .route("/me", only("GET, OPTIONS", get(account::me)))
        .route("/rotate-key", only("POST, OPTIONS", post(account::rotate_key)))
        .route("/transcript", only("GET, OPTIONS", get(transcript::transcript)))
        .route("/chat", only("POST, OPTIONS", post(chat::chat)))
        .route("/subscribe", only("POST, OPTIONS", post(payments::subscribe)))
        .route("/buy-credits", only("POST, OPTIONS", post(payments::buy_credits)))
        .route("/webhooks/stripe", only("POST, OPTIONS", post(webhook::stripe)))
        .fallback(unknown)
        .layer(from_fn(contain))
}

/// A route that has these methods, as `Allow` lists them, and no others: HEAD is none of them, since what it
/// answered would have to be charged.
pub(crate) fn only(methods: &'static str, route: MethodRouter<App>) -> MethodRouter<App> {
    let options = (StatusCode::NO_CONTENT, [(ALLOW, HeaderValue::from_static(methods))]);
    let wrong = move || std::future::ready(Denial::wrong_method(methods));
    route.options(move || std::future::ready(options)).head(wrong).fallback(wrong)
}

/// An address that is none.
pub(super) async fn unknown() -> Denial {
    Denial::new(StatusCode::NOT_FOUND, "There is nothing at this address of the v1 API.")
}

/// See [`contained`].
async fn contain(request: Request, next: Next) -> Response {
    contained(next.run(request)).await
}

/// Answers a defect of ours in the form of this surface, and has nobody on the way keep anything: answers are
/// one caller's own, and some have a key in them.
async fn contained(answer: impl Future<Output = Response>) -> Response {
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    // The panic hook has logged what and where.
    let mut answer = answer.unwrap_or_else(|_| Denial::fault().into_response());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
