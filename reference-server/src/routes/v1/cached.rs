//! `GET /api/v1/transcript` from the response cache: charged, without the router.

use axum::body::Body;
use http::{
    HeaderMap, HeaderValue, Method, Response,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY},
    request::Parts,
};
use http_body_util::Either;
use transcript_core::accounts::CachedCharge;

use super::{
    admission::{error_response, finish},
    contain_panic,
};
use crate::{
    api::{
        ContentEncoding, IDEMPOTENCY_KEY, JSON, ResponseBody, ResultOrigin, V1ErrorResponse, X_CACHE,
        X_CREDITS_REMAINING, bearer, rate_limit_headers,
    },
    response_cache::V1Body,
    state::AppState,
};

/// Charges the caller and returns the cached transcript that the query selects, before the router runs.
///
/// `None` if it is not cached; then nothing was charged.
pub(crate) async fn cached_transcript(
    app: &AppState,
    head: &Parts,
) -> Option<(Response<ResponseBody>, ResultOrigin)> {
    if head.method != Method::GET || head.headers.contains_key(IDEMPOTENCY_KEY) {
        return None;
    }
    // A caller that rejects all encodings gets the unencoded body, as on all v1 routes.
    let encoding = ContentEncoding::negotiate(&head.headers).unwrap_or(ContentEncoding::Identity);
    let found = app.bodies.v1_body(head.uri.query().unwrap_or_default(), encoding).await?;
    let origin = found.origin;
    let response = contain_panic(charge(app, found, encoding, &head.headers)).await;
    Some((response.map(Either::Right), origin))
}

/// Charges the caller for a body.
async fn charge(
    app: &AppState,
    found: V1Body,
    encoding: ContentEncoding,
    headers: &HeaderMap,
) -> Response<Body> {
    let bearer = bearer(headers);
    match app.accounts.charge_cached(bearer.as_deref(), &found.source.video).await {
        Ok(CachedCharge { rate, paid: Ok(left) }) => {
            let mut response = Response::new(Body::from(found.body.bytes()));
            let to = response.headers_mut();
            // Reserves once for these headers and those of every response.
            to.reserve(10);
            to.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            if let Some(encoding) = encoding.header() {
                to.insert(CONTENT_ENCODING, encoding);
            }
            to.insert(VARY, HeaderValue::from(ACCEPT_ENCODING));
            to.insert(X_CACHE, HeaderValue::from_static("HIT"));
            if let Some(left) = left {
                to.insert(X_CREDITS_REMAINING, HeaderValue::from(left));
            }
            to.extend(rate_limit_headers(&rate));
            response
        }
        Ok(CachedCharge { rate, paid: Err(error) }) => finish(rate, Err(V1ErrorResponse::from(error))),
        Err(error) => error_response(error, bearer.is_some()),
    }
}
