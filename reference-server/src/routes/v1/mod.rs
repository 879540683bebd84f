//! Routes of the v1 API (specification 4.4 to 4.12 and 7.2).
//!
//! Order of the checks of a call: path and method, key, replay, rate limit, parameters, credits, work. Every error is
//! `{error, code}`, including internal errors.

pub(super) mod account;
mod admission;
mod body;
mod cached;
pub(super) mod chat;
pub(super) mod document;
pub(super) mod jobs;
pub(super) mod payments;
pub(super) mod register;
mod sse;
pub(super) mod transcript;
pub(super) mod verify;
pub(super) mod webhook;
pub(super) mod webhook_secret;

use std::panic::AssertUnwindSafe;

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};

pub(super) use body::{BODY_MAX, BodyFields};
pub(super) use cached::cached_transcript;

use crate::{api::V1ErrorResponse, state::AppState};

/// Adds what all routes below the prefix of the v1 API share.
pub(super) fn finish_router(routes: Router<AppState>) -> Router<AppState> {
    routes.fallback(unknown).layer(from_fn(panic_middleware))
}

/// Response to an unknown path.
pub(super) async fn unknown() -> V1ErrorResponse {
    V1ErrorResponse::new(StatusCode::NOT_FOUND, "There is nothing at this address of the v1 API.")
}

/// Converts a panic into a v1 error and forbids caching.
///
/// Responses belong to one caller, and some contain a key.
async fn panic_middleware(request: Request, next: Next) -> Response {
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    // The panic hook has logged the message and location.
    let mut answer = answer.unwrap_or_else(|_| V1ErrorResponse::fault().into_response());
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
