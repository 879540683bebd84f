//! `/api/v1/webhook-secret`: the secret that signs the webhooks of an account.

use axum::{extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use transcript_core::{accounts::V1Endpoint, wire::v1::WebhookSecretInfo};

use super::{
    admission::{EarlyResponse, admit, finish},
    document::{self, DocumentOptions, examples},
};
use crate::{api::reply, state::AppState};

/// Shows the secret.
pub(crate) async fn show(State(app): State<AppState>, headers: HeaderMap) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::WebhookSecret, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let secret = app.accounts.webhooks.secret(guard).await;
    Ok(finish(rate, secret.map(|secret| reply(StatusCode::OK, &WebhookSecretInfo::from(&secret)))))
}

/// Replaces the secret. The body is ignored.
pub(crate) async fn rotate(
    State(app): State<AppState>,
    headers: HeaderMap,
) -> Result<Response, EarlyResponse> {
    let guard = admit(&app, V1Endpoint::RotateWebhookSecret, &headers, Vec::new()).await?;
    let rate = guard.rate();
    let secret = app.accounts.webhooks.rotate_secret(guard).await;
    Ok(finish(rate, secret.map(|secret| reply(StatusCode::OK, &WebhookSecretInfo::from(&secret)))))
}

/// Operation of `GET /api/v1/webhook-secret` in the `OpenAPI` document.
pub(crate) fn show_operation(_: &DocumentOptions<'_>) -> Value {
    let description = "It signs the header `Verbatim-Signature` of each webhook. Every account has one. The call is \
                       free. It counts toward the account's rate limit.";
    operation(
        ("getWebhookSecret", "Get the secret that signs webhooks", description),
        ("first", "A secret that was not rotated", examples::webhooks::secret()),
    )
}

/// Operation of `POST /api/v1/webhook-secret/rotate` in the `OpenAPI` document.
pub(crate) fn rotate_operation(_: &DocumentOptions<'_>) -> Value {
    let description = "For a day the old secret signs too: the header has two signatures. A second rotation ends the \
                       first secret at once. There is no body. Idempotency-Key is ignored: responses with a secret are \
                       never stored.";
    operation(
        ("rotateWebhookSecret", "Replace the secret that signs webhooks", description),
        ("rotated", "A new secret", examples::webhooks::rotated_secret()),
    )
}

fn operation(
    (id, summary, description): (&str, &str, &str),
    (name, title, body): (&str, &str, Value),
) -> Value {
    let body = document::json_body::<WebhookSecretInfo>(json!({ name: document::example(title, body) }));
    json!({
        "operationId": id,
        "tags": ["jobs"],
        "summary": summary,
        "description": description,
        "security": document::key(),
        "responses": document::keyed(json!({
            "200": document::answer("The secret.", body, document::rate_limit())
        }))
    })
}
