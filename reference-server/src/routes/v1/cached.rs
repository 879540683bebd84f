//! `GET /api/v1/transcript` from the response cache: charged, without the router.

use axum::{body::Body, response::IntoResponse};
use http::{
    HeaderValue, Method, Response,
    header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY},
    request::Parts,
};
use http_body_util::Either;
use transcript_core::accounts::{CachedCharge, KnownCaller};

use super::admission::{error_response, finish};
use crate::{
    api::{
        ContentEncoding, IDEMPOTENCY_KEY, JSON, ResponseBody, ResultOrigin, V1ErrorResponse, X_CACHE,
        X_CREDITS_REMAINING, bearer, rate_limit_headers,
    },
    response_cache::{V1Body, V1Selection},
    state::AppState,
};

/// Charges the caller and returns the cached transcript that the query selects, before the router runs.
///
/// `None` if it is not cached, or may be prepaid; then nothing was charged.
pub(crate) async fn cached_transcript(
    app: &AppState,
    head: &Parts,
) -> Option<(Response<ResponseBody>, ResultOrigin)> {
    if head.method != Method::GET || head.headers.contains_key(IDEMPOTENCY_KEY) {
        return None;
    }
    // A caller that rejects all encodings gets the unencoded body, as on all v1 routes.
    let encoding = ContentEncoding::negotiate(&head.headers).unwrap_or(ContentEncoding::Identity);
    let selected = app.bodies.v1_selection(head.uri.query().unwrap_or_default()).await?;
    let bearer = bearer(&head.headers);
    let (response, origin) = match app.accounts.cached_charges.known_caller(bearer.as_deref()).await {
        // Only for a known key, so that other callers cause no work.
        Ok(caller) => {
            // The memory is reserved before the charge.
            match app.bodies.v1_body(&selected, encoding).await? {
                Ok(found) => {
                    let origin = found.origin;
                    (charge(app, caller, &selected, found, encoding).await?, origin)
                }
                Err(exhausted) => (V1ErrorResponse::from(exhausted).into_response(), ResultOrigin::Nothing),
            }
        }
        Err(error) => (error_response(error, bearer.is_some()), ResultOrigin::Nothing),
    };
    Some((response.map(Either::Right), origin))
}

/// Charges the caller for a body; `None` if it may be prepaid.
async fn charge(
    app: &AppState,
    caller: KnownCaller,
    selected: &V1Selection,
    found: V1Body,
    encoding: ContentEncoding,
) -> Option<Response<Body>> {
    Some(match app.accounts.cached_charges.charge(caller, &selected.source.video).await.transpose()? {
        Ok(CachedCharge { rate, paid: Ok(left) }) => {
            let mut response = Response::new(Body::from(found.body.bytes()));
            let to = response.headers_mut();
            // Reserves once for these headers and those of every response.
            to.reserve(10);
            to.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
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
        Ok(CachedCharge { rate, paid: Err(error) }) => finish(rate, Err(error)),
        Err(error) => error_response(error, true),
    })
}
