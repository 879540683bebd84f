//! Responses with archived transcripts and their pages that are sent before the router runs.

use std::time::Instant;

use http::{Method, Request, Response, Uri, request::Parts};
use http_body_util::Either;

use super::{v1, watch};
use crate::{
    api::{ResponseBody, ResultOrigin, TRANSCRIPT_PATH, V1_TRANSCRIPT_PATH},
    response_cache::CachedRoute,
    state::AppState,
};

/// Returns the response to the request of a transcript or its page if it is cached. It never waits.
pub(crate) fn cached<B>(
    app: &AppState,
    request: &Request<B>,
    now: Instant,
) -> Option<Response<ResponseBody>> {
    let ready = match lookup_query(request.method(), request.uri()) {
        Some(query) => app.bodies.get((CachedRoute::Lookup, query), request.headers(), request.method(), now),
        None => watch::cached_page(app, request, now),
    };
    Some(ready?.map(Either::Left))
}

/// Returns the response to a request for an archived transcript, and its origin, without the router.
///
/// `None` means that the router must respond.
pub(crate) async fn archived(
    app: &AppState,
    head: &Parts,
    now: Instant,
) -> Option<(Response<ResponseBody>, ResultOrigin)> {
    if head.uri.path() == V1_TRANSCRIPT_PATH {
        return v1::cached_transcript(app, head).await;
    }
    let query = lookup_query(&head.method, &head.uri)?;
    app.bodies.build_archived(query, &head.headers, &head.method, now).await
}

/// Query of a lookup; `None` for other requests.
fn lookup_query<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    let is_lookup = uri.path() == TRANSCRIPT_PATH && matches!(*method, Method::GET | Method::HEAD);
    uri.query().filter(|_| is_lookup)
}
