//! Admission and completion of calls that need a key.

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header::WWW_AUTHENTICATE};
use transcript_core::accounts::{
    RateLimitStatus, RequestGuard, StoredResponse, V1Admission, V1Endpoint, V1Error, V1Request,
};

use crate::{
    api::{
        RequestBody, TOKEN_NEEDED, V1ErrorResponse, bearer, idempotency_key, into_response,
        rate_limit_headers, read_body,
    },
    state::AppState,
};

/// The response that ends a call before its work: an error, or a replay.
#[derive(Debug)]
pub(crate) struct EarlyResponse(Box<Response>);

impl From<Response> for EarlyResponse {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl IntoResponse for EarlyResponse {
    fn into_response(self) -> Response {
        *self.0
    }
}

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
) -> Result<RequestGuard, EarlyResponse> {
    let bearer = bearer(headers);
    let has_credential = bearer.is_some();
    let mut call = V1Request { route, bearer, idempotency_key: idempotency_key(headers), body };
    let malformed = call.take_malformed_key();
    let guard = admitted(app.accounts.admission.admit(call).await, has_credential)?;
    reject_malformed(guard, malformed).await
}

/// Admits a call with a body of at most `body_max` bytes, which is read after the key is authenticated.
///
/// Also returns the request's headers and its body. The error of a body that cannot be read is returned with the guard:
/// the call counts, and is then rejected.
///
/// # Errors
/// The response that ends the call.
pub(crate) async fn admit_with_body(
    app: &AppState,
    route: V1Endpoint,
    request: Request,
    body_max: usize,
) -> Result<(HeaderMap, RequestGuard, Result<RequestBody, V1ErrorResponse>), EarlyResponse> {
    let (parts, body) = request.into_parts();
    let bearer = bearer(&parts.headers);
    let caller = app.accounts.admission.authenticate(bearer.as_deref()).await;
    let caller = caller.map_err(|error| error_response(error, bearer.is_some()))?;
    let body = read_body(&parts.headers, body, body_max, &app.account_budget).await;
    let body = body.map_err(V1ErrorResponse::from);
    let mut call = V1Request {
        route,
        bearer: None,
        // Without a body there is nothing to bind the key to.
        idempotency_key: idempotency_key(&parts.headers).filter(|_| body.is_ok()),
        body: body.as_deref().unwrap_or_default().to_vec(),
    };
    let malformed = call.take_malformed_key();
    let guard = admitted(app.accounts.admission.admit_caller(caller, call).await, true)?;
    let guard = reject_malformed(guard, malformed).await?;
    Ok((parts.headers, guard, body))
}

/// Rejects a call with a malformed idempotency key. It has counted, so its response has the rate limit headers.
async fn reject_malformed(
    guard: RequestGuard,
    malformed: Option<V1Error>,
) -> Result<RequestGuard, EarlyResponse> {
    match malformed {
        None => Ok(guard),
        Some(error) => Err(reject(guard, error.into()).await),
    }
}

fn admitted(
    outcome: Result<V1Admission, V1Error>,
    has_credential: bool,
) -> Result<RequestGuard, EarlyResponse> {
    match outcome {
        Ok(V1Admission::Admitted(guard)) => Ok(*guard),
        Ok(V1Admission::Replayed(reply)) => Err(into_response(reply).into()),
        Err(error) => Err(error_response(error, has_credential).into()),
    }
}

/// Response to a call that is not admitted.
pub(crate) fn error_response(error: V1Error, has_credential: bool) -> Response {
    let is_unauthorized = matches!(error, V1Error::Unauthorized(_));
    let mut response = V1ErrorResponse::from(error).into_response();
    if is_unauthorized && !has_credential {
        // RFC 6750: a request without credentials gets no error code.
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(TOKEN_NEEDED));
    }
    response
}

/// Rejects an admitted call before any work: releases its hold and idempotency lease.
pub(crate) async fn reject(guard: RequestGuard, denial: V1ErrorResponse) -> EarlyResponse {
    let rate = guard.rate();
    guard.reject(V1Error::BadRequest(String::new())).await;
    finish(rate, Err(denial)).into()
}

/// Response of an admitted call, with the account's rate limit headers.
pub(crate) fn finish<E: Into<V1ErrorResponse>>(
    rate: RateLimitStatus,
    outcome: Result<StoredResponse, E>,
) -> Response {
    let mut response = outcome.map_or_else(|error| error.into().into_response(), into_response);
    response.headers_mut().extend(rate_limit_headers(&rate));
    response
}
