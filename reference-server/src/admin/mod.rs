//! The admin API: the operations of operators over HTTP, on a separate listener.
//!
//! Every request needs an admin token, which is checked before its body is read. There is no CORS: a web page can send
//! no token from another origin.

mod accounts;
mod document;
mod jobs;
mod keys;
mod request;
mod server;
mod table;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, WWW_AUTHENTICATE},
};
use transcript_core::{Error, ErrorKind};

use crate::{
    api::{ByteBudget, INVALID_TOKEN, ProblemResponse, TOKEN_NEEDED, V1ErrorResponse, bearer},
    operations::{Operations, authenticate},
    response_cache::ResponseCache,
};

/// State of the routes.
#[derive(Clone, Debug)]
pub(crate) struct AdminState {
    /// The operations; each request performs them as its own operator.
    pub(crate) operations: Operations,
    /// Memory of large request bodies.
    pub(crate) body_budget: ByteBudget,
    /// Response cache of the main listener, which a withdrawal concerns.
    pub(crate) bodies: Arc<ResponseCache>,
}

/// Result of a handler.
type AdminResult = Result<Response, V1ErrorResponse>;

/// Routes of the admin listener.
pub(crate) fn router(state: AdminState) -> Router {
    table::routes()
        .fallback(not_found)
        .layer(from_fn_with_state(state.clone(), authenticated))
        .with_state(state)
}

/// Passes a request of an operator on, with their operations; 401 without a live token.
async fn authenticated(State(state): State<AdminState>, mut request: Request, next: Next) -> Response {
    let refusal = |challenge, message: &str| {
        let challenge = [(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))];
        (challenge, V1ErrorResponse::new(StatusCode::UNAUTHORIZED, message)).into_response()
    };
    let Some(credential) = bearer(request.headers()) else {
        return refusal(TOKEN_NEEDED, "This needs an admin token: send it as Authorization: Bearer <token>.");
    };
    let operator = match authenticate(state.operations.verbatim(), &credential).await {
        Ok(Some(operator)) => operator,
        Ok(None) => {
            tracing::warn!("request with an invalid admin token refused");
            return refusal(INVALID_TOKEN, "This is no admin token of this server, or it was revoked.");
        }
        Err(error) => return failure(error).into_response(),
    };
    request.extensions_mut().insert(state.operations.for_operator(operator));
    let mut response = next.run(request).await;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn not_found() -> V1ErrorResponse {
    let message = "There is nothing at this address. GET /admin/openapi.json describes the admin API.";
    V1ErrorResponse::new(StatusCode::NOT_FOUND, message)
}

/// The response for the error of an operation.
fn failure(error: Error) -> V1ErrorResponse {
    let status = match error.kind() {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Unavailable => {
            tracing::error!(%error, "admin operation failed");
            let message = "The service could not reach its storage. Try again in a moment.";
            return ProblemResponse::new(StatusCode::SERVICE_UNAVAILABLE, message).into();
        }
        _ => {
            tracing::error!(%error, "admin operation failed");
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    // Operators see the message: it contains no secret.
    V1ErrorResponse::new(status, error.message())
}

#[cfg(test)]
mod tests;
