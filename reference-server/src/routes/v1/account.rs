//! `GET /api/v1/me` and `POST /api/v1/rotate-key`.

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use transcript_core::{
    accounts::V1Endpoint,
    wire::v1::{AccountInfo, RotateKeyResponse},
};

use super::{
    admission::{EarlyResponse, admit, finish},
    document::{self, DocumentOptions, examples},
};
use crate::{api::reply, state::AppState};

/// Account of the caller.
pub(crate) async fn me(State(app): State<AppState>, headers: HeaderMap) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::Me, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let profile = app.accounts.credits.profile(guard).await;
    Ok(finish(rate, profile.map(|profile| reply(StatusCode::OK, &AccountInfo::from(&profile)))))
}

/// Replaces the caller's key. The body is ignored.
pub(crate) async fn rotate_key(
    State(app): State<AppState>,
    headers: HeaderMap,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::RotateKey, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let key = app.accounts.keys.rotate(guard).await;
    Ok(finish(rate, key.map(|key| reply(StatusCode::OK, &RotateKeyResponse::from(&key)))))
}

/// Operation of `GET /api/v1/me` in the `OpenAPI` document.
pub(crate) fn me_operation(options: &DocumentOptions<'_>) -> Value {
    let options = options.accounts;
    json!({
        "operationId": "getAccount",
        "tags": ["accounts"],
        "summary": "Get the plan and credits of an account",
        "description": "The call is free. It counts toward the account's rate limit.",
        "security": document::key(),
        "responses": document::keyed(json!({
            "200": document::answer(
                "The account.",
                document::json_body::<AccountInfo>(json!({ "free": document::example("A new account", examples::me(options)) })),
                document::rate_limit(),
            )
        }))
    })
}

/// Operation of `POST /api/v1/rotate-key` in the `OpenAPI` document.
pub(crate) fn rotate_key_operation(_: &DocumentOptions<'_>) -> Value {
    json!({
        "operationId": "rotateKey",
        "tags": ["accounts"],
        "summary": "Replace the key of the request",
        "description": "Replaces the key of the request, which stops working at once; other keys of the account keep \
                        working. Of two concurrent calls one succeeds, the other gets 401. \
                        There is no body. Idempotency-Key is ignored: responses with a key are never stored.",
        "security": document::key(),
        "responses": document::keyed(json!({
            "200": document::answer(
                "The new key, shown only once.",
                document::json_body::<RotateKeyResponse>(json!({ "rotated": document::example("A new key", examples::rotated()) })),
                document::rate_limit(),
            )
        }))
    })
}
