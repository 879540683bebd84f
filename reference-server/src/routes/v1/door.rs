//! The way in and out of every call that needs a key.

use axum::response::{IntoResponse, Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use serde::Serialize;
use transcript_core::accounts::{Call, Entry, Header, RateState, Refused, Reply, Route, Visit};

use super::{Denial, rate};
use crate::routes::{App, bearer::bearer};

/// The name under which a request may be repeated.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Lets a call in: key, then the reply to repeat, then the rate limit. `body` is what an idempotency key is
/// bound to: the query, where there is no body.
///
/// # Errors
/// The answer that ends the call here.
pub(crate) async fn enter(
    app: &App,
    route: Route,
    headers: &HeaderMap,
    body: Vec<u8>,
) -> Result<Visit, Box<Response>> {
    let bearer = bearer(headers);
    let came_with_one = bearer.is_some();
    let call = Call { route, bearer, idempotency_key: idempotency_key(headers), body };
    match app.accounts.enter(call).await {
        Ok(Entry::Admitted(visit)) => Ok(visit),
        Ok(Entry::Replayed(reply)) => Err(Box::new(sent(reply))),
        Err(denied) => Err(Box::new(refused(denied, came_with_one))),
    }
}

/// What is said to a call that is not let in.
pub(crate) fn refused(refused: Refused, came_with_a_key: bool) -> Response {
    let is_stranger = matches!(refused, Refused::Unauthorized(_));
    let mut response = Denial::from(refused).into_response();
    if is_stranger && came_with_a_key {
        // RFC 6750: only a request that brought something is told that something was wrong with it.
        let challenge = "Bearer realm=\"verbatim\", error=\"invalid_token\"";
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    response
}

/// Ends a call that was let in, before anything was done: gives back what it took.
pub(crate) async fn turn_away(visit: Visit, denial: Denial) -> Denial {
    visit.refuse(Refused::BadRequest(String::new())).await;
    denial
}

/// The answer of a call that was let in, with what is left of its account's rate limit.
pub(crate) fn out(rate: RateState, outcome: Result<Reply, Denial>) -> Response {
    let mut response = outcome.map_or_else(IntoResponse::into_response, sent);
    response.headers_mut().extend(rate::fields(&rate));
    response
}

/// A reply with this body as JSON.
pub(crate) fn reply(status: StatusCode, body: &impl Serialize) -> Reply {
    let header = |name: HeaderName, value: &str| Header { name: name.to_string(), value: value.to_owned() };
    Reply {
        status: status.as_u16(),
        headers: vec![header(CONTENT_TYPE, "application/json; charset=utf-8")],
        // Every body here is a structure of texts, numbers and lists, which always becomes JSON.
        body: serde_json::to_vec(body).unwrap_or_default(),
    }
}

/// A reply as it is sent.
fn sent(reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers: HeaderMap = reply
        .headers
        .into_iter()
        .filter_map(|Header { name, value }| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        })
        .collect();
    (status, headers, reply.body).into_response()
}

/// The idempotency key, where one came. One that is no text, or that came twice with different texts, is an
/// empty text, which is refused: whoever sent it relies on it.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let first = values.next()?;
    let is_one = values.all(|other| other == first);
    Some(first.to_str().ok().filter(|_| is_one).unwrap_or_default().to_owned())
}
