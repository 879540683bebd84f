//! `GET /api/v1/transcript` from the response cache: charged, without the router.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY},
    request::Parts,
};
use transcript_core::{accounts::CachedCharge, video::VideoId};

use super::{
    admission::{error_response, finish},
    contain_panic,
};
use crate::{
    api::{
        ContentEncoding, IDEMPOTENCY_KEY, JSON, V1_TRANSCRIPT_PATH, V1ErrorResponse, X_CACHE,
        X_CREDITS_REMAINING, bearer, rate_limit_headers,
    },
    state::AppState,
};

/// Responds from the cache after charging the caller, before the router runs.
/// `None` if the response is not cached; then nothing was charged.
pub(crate) async fn respond_cached(app: &AppState, head: &Parts) -> Option<Response> {
    if head.uri.path() != V1_TRANSCRIPT_PATH
        || head.method != Method::GET
        || head.headers.contains_key(IDEMPOTENCY_KEY)
    {
        return None;
    }
    let known = app.ready.query(head.uri.query().unwrap_or_default())?;
    if app.bodies.changes().await? != known.changes {
        return None;
    }
    // A caller that rejects all encodings gets the unencoded body, as on all v1 routes.
    let encoding = ContentEncoding::negotiate(&head.headers).unwrap_or(ContentEncoding::Identity);
    let body = app.ready.body(known.content_sha256, encoding).await?;
    Some(contain_panic(answer(app, &known.video, encoding, body, &head.headers)).await)
}

async fn answer(
    app: &AppState,
    video: &VideoId,
    encoding: ContentEncoding,
    body: Bytes,
    headers: &HeaderMap,
) -> Response {
    let bearer = bearer(headers);
    match app.accounts.charge_cached(bearer.as_deref(), video).await {
        Ok(CachedCharge { rate, paid: Ok(left) }) => {
            let mut response = Response::new(Body::from(body));
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
        Ok(CachedCharge { rate, paid: Err(error) }) => {
            finish(rate, Err(V1ErrorResponse::from(error))).into_response()
        }
        Err(error) => error_response(error, bearer.is_some()),
    }
}
