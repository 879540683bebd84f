//! All endpoints. The router and the `OpenAPI` document are made from this list.

use std::sync::Arc;

use axum::routing::{MethodRouter, get, head, post};
use http::Method;
use serde_json::Value;

use super::{
    RouteDeps, checkout,
    docs::{self, CachedDocument},
    document::DocumentOptions,
    health, home, keys, mcp, transcript,
    v1::{account, chat, payments, register, transcript as v1_transcript, verify, webhook},
    watch,
};
use crate::{
    api::{TRANSCRIPT_PATH, V1_TRANSCRIPT_PATH},
    state::AppState,
};

/// One method of a path. HEAD is answered as GET, except on the v1 API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    /// The method.
    pub(crate) method: &'static Method,
    /// The path, as a router pattern.
    pub(crate) path: &'static str,
    /// Origins whose pages may call; the same for all endpoints of a path.
    pub(super) origins: AllowedOrigins,
    /// The handler.
    pub(super) handler: fn(&RouteDeps) -> MethodRouter<AppState>,
    /// The operation in the document; `None` for what only web pages and assistants use.
    pub(crate) operation: Option<fn(&DocumentOptions<'_>) -> Value>,
}

/// Other origins whose pages may call an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedOrigins {
    /// No other origin.
    Own,
    /// Any origin.
    Any,
    /// Those of `server.cors_origins`.
    Listed,
    /// Those of `server.cors_origins`, and the server's own, which browsers name on POST.
    ListedAndOwn,
}

use AllowedOrigins::{Any, Listed, ListedAndOwn, Own};

const GET: &Method = &Method::GET;
const POST: &Method = &Method::POST;

const fn endpoint(
    method: &'static Method,
    path: &'static str,
    origins: AllowedOrigins,
    handler: fn(&RouteDeps) -> MethodRouter<AppState>,
    operation: Option<fn(&DocumentOptions<'_>) -> Value>,
) -> Endpoint {
    Endpoint { method, path, origins, handler, operation }
}

/// All endpoints; those of one path are neighbours.
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    endpoint(GET, TRANSCRIPT_PATH, Any, |_| get(transcript::look_up), Some(transcript::operation)),
    endpoint(
        &Method::HEAD,
        TRANSCRIPT_PATH,
        Any,
        |_| head(transcript::look_up),
        Some(transcript::head_operation),
    ),
    endpoint(POST, "/api/keys", Listed, |_| post(keys::create), Some(keys::create_operation)),
    endpoint(GET, "/api/keys/me", Listed, |_| get(keys::status), Some(keys::status_operation)),
    endpoint(GET, "/", Own, |_| get(home::show), None),
    endpoint(GET, "/assets/{name}", Own, |_| get(home::asset), None),
    endpoint(GET, "/watch/{platform}/{id}", Own, |_| get(watch::page), Some(watch::operation)),
    endpoint(GET, "/watch/{platform}/{id}/challenge", Own, |_| get(watch::transcribe::challenge), None),
    endpoint(POST, "/watch/{platform}/{id}/transcribe", Own, |_| post(watch::transcribe::transcribe), None),
    endpoint(GET, "/checkout/{order}", Own, |_| get(checkout::order_page), Some(checkout::order_operation)),
    endpoint(GET, SANDBOX, Own, |_| get(checkout::sandbox_page), Some(checkout::sandbox_operation)),
    endpoint(
        POST,
        SANDBOX,
        Own,
        |_| post(checkout::sandbox_action),
        Some(checkout::sandbox_action_operation),
    ),
    endpoint(GET, "/health", Own, |_| get(health::health), Some(health::health_operation)),
    endpoint(GET, "/version", Own, |_| get(health::version), Some(health::version_operation)),
    endpoint(
        GET,
        "/openapi.json",
        Any,
        |deps| documented(deps, get(docs::open_api)),
        Some(docs::open_api_operation),
    ),
    endpoint(
        GET,
        "/llms.txt",
        Any,
        |deps| documented(deps, get(docs::llms_txt)),
        Some(docs::llms_txt_operation),
    ),
    endpoint(GET, "/docs", Own, |deps| documented(deps, get(docs::overview)), Some(docs::overview_operation)),
    endpoint(
        GET,
        "/docs/{operation}",
        Own,
        |deps| documented(deps, get(docs::operation_page)),
        Some(docs::operation_page_operation),
    ),
    endpoint(POST, "/mcp", ListedAndOwn, |deps| post(mcp::post).with_state(deps.mcp.clone()), None),
    endpoint(POST, "/api/v1/register", Own, |_| post(register::register), Some(register::operation)),
    endpoint(GET, VERIFY, Own, |_| get(verify::open), Some(verify::open_operation)),
    endpoint(POST, VERIFY, Own, |_| post(verify::confirm), Some(verify::confirm_operation)),
    endpoint(GET, "/api/v1/me", Own, |_| get(account::me), Some(account::me_operation)),
    endpoint(
        POST,
        "/api/v1/rotate-key",
        Own,
        |_| post(account::rotate_key),
        Some(account::rotate_key_operation),
    ),
    endpoint(
        GET,
        V1_TRANSCRIPT_PATH,
        Own,
        |_| get(v1_transcript::transcript),
        Some(v1_transcript::operation),
    ),
    endpoint(POST, "/api/v1/chat", Own, |_| post(chat::chat), Some(chat::operation)),
    endpoint(
        POST,
        "/api/v1/subscribe",
        Own,
        |_| post(payments::subscribe),
        Some(payments::subscribe_operation),
    ),
    endpoint(
        POST,
        "/api/v1/buy-credits",
        Own,
        |_| post(payments::buy_credits),
        Some(payments::buy_credits_operation),
    ),
    endpoint(POST, "/api/v1/webhooks/stripe", Own, |_| post(webhook::stripe), Some(webhook::operation)),
];

const SANDBOX: &str = "/checkout/{order}/sandbox";
const VERIFY: &str = "/api/v1/verify";

/// Gives a handler of the documentation its document.
fn documented(deps: &RouteDeps, route: MethodRouter<Arc<CachedDocument>>) -> MethodRouter<AppState> {
    route.with_state(Arc::clone(&deps.document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_without_operation_are_pages_and_mcp() {
        let paths = ENDPOINTS.iter().filter(|endpoint| endpoint.operation.is_none());
        let expected = [
            "/",
            "/assets/{name}",
            "/watch/{platform}/{id}/challenge",
            "/watch/{platform}/{id}/transcribe",
            "/mcp",
        ];
        assert!(paths.map(|endpoint| endpoint.path).eq(expected));
    }

    #[test]
    fn endpoints_of_one_path_are_neighbours_with_equal_origins() {
        let groups: Vec<_> = ENDPOINTS.chunk_by(|one, next| one.path == next.path).collect();
        let paths: std::collections::HashSet<_> = groups.iter().map(|group| group[0].path).collect();
        assert_eq!(paths.len(), groups.len());
        assert!(groups.iter().all(|group| group.iter().all(|one| one.origins == group[0].origins)));
    }
}
