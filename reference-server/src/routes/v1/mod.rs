//! Routes of the v1 API (specification 4.4 to 4.12 and 7.2).
//!
//! Order of the checks of a call: path and method, key, replay, rate limit, parameters, credits, work. Every error is
//! `{error, code}`, including internal errors.

mod account;
pub(crate) mod admission;
pub(crate) mod body;
pub(crate) mod chat;
mod error;
mod payments;
pub(crate) mod rate;
mod register;
mod response_cache;
mod sse;
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

pub(crate) use body::BodyFields;
pub(crate) use error::V1ErrorResponse;
pub(crate) use response_cache::{PATH as TRANSCRIPT, V1ResponseCache, respond_cached};
pub(crate) use sse::wants_events;
pub(crate) use verify::weight;

use super::AppState;

/// Whether a transcript is from the archive: `HIT` or `MISS`.
pub(crate) const X_CACHE: HeaderName = HeaderName::from_static("x-cache");
/// Remaining credits (specification 4.16).
pub(crate) const X_CREDITS_REMAINING: HeaderName = HeaderName::from_static("x-credits-remaining");

/// Path prefix of the v1 API.
pub(crate) const PREFIX: &str = "/api/v1";

/// Routes below [`PREFIX`].
pub(super) fn routes() -> Router<AppState> {
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
        .layer(from_fn(panic_middleware))
}

/// Route with these methods, as listed in `Allow`.
/// HEAD is not supported, because its response would have to be charged.
pub(crate) fn only(methods: &'static str, route: MethodRouter<AppState>) -> MethodRouter<AppState> {
    let options = (StatusCode::NO_CONTENT, [(ALLOW, HeaderValue::from_static(methods))]);
    let wrong = move || std::future::ready(V1ErrorResponse::wrong_method(methods));
    route.options(move || std::future::ready(options)).head(wrong).fallback(wrong)
}

/// Response to an unknown path.
pub(super) async fn unknown() -> V1ErrorResponse {
    V1ErrorResponse::new(StatusCode::NOT_FOUND, "There is nothing at this address of the v1 API.")
}

/// Middleware of [`contain_panic`].
async fn panic_middleware(request: Request, next: Next) -> Response {
    contain_panic(next.run(request)).await
}

/// Converts a panic into a v1 error and forbids caching.
///
/// Responses belong to one caller, and some contain a key.
async fn contain_panic(answer: impl Future<Output = Response>) -> Response {
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    // The panic hook has logged the message and location.
    let mut answer = answer.unwrap_or_else(|_| V1ErrorResponse::fault().into_response());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
