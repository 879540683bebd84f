//! Admission and completion of calls that need a key.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header::WWW_AUTHENTICATE};
use transcript_core::accounts::{
    RateLimitStatus, RequestGuard, StoredResponse, V1Admission, V1Endpoint, V1Error, V1Request,
};

use crate::{
    api::{V1ErrorResponse, bearer, idempotency_key, into_response, rate_limit_headers},
    state::AppState,
};

/// Admits a call: authentication, replay of a stored response, rate limit.
/// `body` is bound to the idempotency key; for a GET it is the query.
///
/// # Errors
/// The response that ends the call.
pub(crate) async fn admit(
    app: &AppState,
    route: V1Endpoint,
    headers: &HeaderMap,
    body: Vec<u8>,
) -> Result<RequestGuard, Box<Response>> {
    let bearer = bearer(headers);
    let has_credential = bearer.is_some();
    let call = V1Request { route, bearer, idempotency_key: idempotency_key(headers), body };
    match app.accounts.admit(call).await {
        Ok(V1Admission::Admitted(guard)) => Ok(guard),
        Ok(V1Admission::Replayed(reply)) => Err(Box::new(into_response(reply))),
        Err(error) => Err(Box::new(error_response(error, has_credential))),
    }
}

/// Response to a call that is not admitted.
pub(crate) fn error_response(error: V1Error, has_credential: bool) -> Response {
    let is_unauthorized = matches!(error, V1Error::Unauthorized(_));
    let mut response = V1ErrorResponse::from(error).into_response();
    if is_unauthorized && has_credential {
        // RFC 6750: a request without credentials gets no error code.
        let challenge = "Bearer realm=\"verbatim\", error=\"invalid_token\"";
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    response
}

/// Rejects an admitted call before any work: releases its hold and idempotency lease.
pub(crate) async fn reject(guard: RequestGuard, denial: V1ErrorResponse) -> V1ErrorResponse {
    guard.reject(V1Error::BadRequest(String::new())).await;
    denial
}

/// Response of an admitted call, with the account's rate limit headers.
pub(crate) fn finish(rate: RateLimitStatus, outcome: Result<StoredResponse, V1ErrorResponse>) -> Response {
    let mut response = outcome.map_or_else(IntoResponse::into_response, into_response);
    response.headers_mut().extend(rate_limit_headers(&rate));
    response
}
