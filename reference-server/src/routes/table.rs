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

/// An endpoint that is called by no other origin and is not in the document.
const fn endpoint(
    method: &'static Method,
    path: &'static str,
    handler: fn(&RouteDeps) -> MethodRouter<AppState>,
) -> Endpoint {
    Endpoint { method, path, origins: Own, handler, operation: None }
}

impl Endpoint {
    /// The endpoint for pages of these origins.
    const fn for_origins(self, origins: AllowedOrigins) -> Self {
        Self { origins, ..self }
    }

    /// The endpoint with this operation in the document.
    const fn with_operation(self, operation: fn(&DocumentOptions<'_>) -> Value) -> Self {
        Self { operation: Some(operation), ..self }
    }
}

/// All endpoints; those of one path are neighbours.
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    endpoint(GET, TRANSCRIPT_PATH, |_| get(transcript::look_up))
        .for_origins(Any)
        .with_operation(transcript::operation),
    endpoint(&Method::HEAD, TRANSCRIPT_PATH, |_| head(transcript::look_up))
        .for_origins(Any)
        .with_operation(transcript::head_operation),
    endpoint(POST, "/api/keys", |_| post(keys::create))
        .for_origins(Listed)
        .with_operation(keys::create_operation),
    endpoint(GET, "/api/keys/me", |_| get(keys::status))
        .for_origins(Listed)
        .with_operation(keys::status_operation),
    endpoint(GET, "/", |_| get(home::show)),
    endpoint(GET, "/assets/{name}", |_| get(home::asset)),
    endpoint(GET, "/watch/{platform}/{id}", |_| get(watch::page)).with_operation(watch::operation),
    endpoint(GET, "/watch/{platform}/{id}/challenge", |_| get(watch::transcribe::challenge)),
    endpoint(POST, "/watch/{platform}/{id}/transcribe", |_| post(watch::transcribe::transcribe)),
    endpoint(GET, "/checkout/{order}", |_| get(checkout::order_page))
        .with_operation(checkout::order_operation),
    endpoint(GET, SANDBOX, |_| get(checkout::sandbox_page)).with_operation(checkout::sandbox_operation),
    endpoint(POST, SANDBOX, |_| post(checkout::sandbox_action))
        .with_operation(checkout::sandbox_action_operation),
    endpoint(GET, "/health", |_| get(health::health)).with_operation(health::health_operation),
    endpoint(GET, "/version", |_| get(health::version)).with_operation(health::version_operation),
    endpoint(GET, "/openapi.json", |deps| documented(deps, get(docs::open_api)))
        .for_origins(Any)
        .with_operation(docs::open_api_operation),
    endpoint(GET, "/llms.txt", |deps| documented(deps, get(docs::llms_txt)))
        .for_origins(Any)
        .with_operation(docs::llms_txt_operation),
    endpoint(GET, "/docs", |deps| documented(deps, get(docs::overview)))
        .with_operation(docs::overview_operation),
    endpoint(GET, "/docs/{operation}", |deps| documented(deps, get(docs::operation_page)))
        .with_operation(docs::operation_page_operation),
    endpoint(POST, "/mcp", |deps| post(mcp::post).with_state(deps.mcp.clone())).for_origins(ListedAndOwn),
    endpoint(POST, "/api/v1/register", |_| post(register::register)).with_operation(register::operation),
    endpoint(GET, VERIFY, |_| get(verify::open)).with_operation(verify::open_operation),
    endpoint(POST, VERIFY, |_| post(verify::confirm)).with_operation(verify::confirm_operation),
    endpoint(GET, "/api/v1/me", |_| get(account::me)).with_operation(account::me_operation),
    endpoint(POST, "/api/v1/rotate-key", |_| post(account::rotate_key))
        .with_operation(account::rotate_key_operation),
    endpoint(GET, V1_TRANSCRIPT_PATH, |_| get(v1_transcript::transcript))
        .with_operation(v1_transcript::operation),
    endpoint(POST, "/api/v1/chat", |_| post(chat::chat)).with_operation(chat::operation),
    endpoint(POST, "/api/v1/subscribe", |_| post(payments::subscribe))
        .with_operation(payments::subscribe_operation),
    endpoint(POST, "/api/v1/buy-credits", |_| post(payments::buy_credits))
        .with_operation(payments::buy_credits_operation),
    endpoint(POST, "/api/v1/webhooks/stripe", |_| post(webhook::stripe)).with_operation(webhook::operation),
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
