//! `GET /api/v1/me` and `POST /api/v1/rotate-key`.

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use transcript_core::{
    accounts::V1Endpoint,
    wire::v1::{AccountInfo, RotateKeyResponse},
};

use super::{
    V1ErrorResponse,
    admission::{admit, finish, reply},
};
use crate::routes::AppState;

/// Account of the caller.
pub(crate) async fn me(State(app): State<AppState>, headers: HeaderMap) -> Response {
    let guard = match admit(&app, V1Endpoint::Me, &headers, Vec::new()).await {
        Ok(guard) => guard,
        Err(answer) => return *answer,
    };
    let rate = guard.rate();
    let profile = app.accounts.me(guard).await.map_err(V1ErrorResponse::from);
    finish(rate, profile.map(|profile| reply(StatusCode::OK, &AccountInfo::from(&profile))))
}

/// Replaces the caller's key. The body is ignored.
pub(crate) async fn rotate_key(State(app): State<AppState>, headers: HeaderMap) -> Response {
    let guard = match admit(&app, V1Endpoint::RotateKey, &headers, Vec::new()).await {
        Ok(guard) => guard,
        Err(answer) => return *answer,
    };
    let rate = guard.rate();
    let key = app.accounts.rotate(guard).await.map_err(V1ErrorResponse::from);
    finish(rate, key.map(|key| reply(StatusCode::OK, &RotateKeyResponse::from(&key))))
}
