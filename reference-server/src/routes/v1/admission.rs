//! Admission and completion of calls that need a key.

use axum::response::{IntoResponse, Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use serde::Serialize;
use transcript_core::accounts::{
    RateLimitStatus, RequestGuard, StoredHeader, StoredResponse, V1Admission, V1Endpoint, V1Error, V1Request,
};

use super::{V1ErrorResponse, rate};
use crate::routes::{AppState, bearer::bearer};

/// Header `Idempotency-Key`.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

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
        Ok(V1Admission::Replayed(reply)) => Err(Box::new(stored_response(reply))),
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
    let mut response = outcome.map_or_else(IntoResponse::into_response, stored_response);
    response.headers_mut().extend(rate::fields(&rate));
    response
}

/// Stored response with a JSON body.
pub(crate) fn reply(status: StatusCode, body: &impl Serialize) -> StoredResponse {
    let header =
        |name: HeaderName, value: &str| StoredHeader { name: name.to_string(), value: value.to_owned() };
    StoredResponse {
        status: status.as_u16(),
        headers: vec![header(CONTENT_TYPE, "application/json; charset=utf-8")],
        // The wire types always serialize.
        body: serde_json::to_vec(body).unwrap_or_default(),
    }
}

/// HTTP response of a stored response.
fn stored_response(reply: StoredResponse) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers: HeaderMap = reply
        .headers
        .into_iter()
        .filter_map(|StoredHeader { name, value }| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        })
        .collect();
    (status, headers, reply.body).into_response()
}

/// Returns the idempotency key, if sent.
/// An unreadable value, and two headers with different values, give an empty text, which is rejected: the client relies
/// on the header.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let first = values.next()?;
    let is_one = values.all(|other| other == first);
    Some(first.to_str().ok().filter(|_| is_one).unwrap_or_default().to_owned())
}
