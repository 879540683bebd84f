//! Routes of both APIs, the front page, the watch page, the order pages and the service endpoints.

mod bearer;
mod checkout;
mod docs;
pub(crate) mod health;
mod home;
mod html;
pub(crate) mod keys;
mod mcp;
mod peer_request;
pub(crate) mod query;
mod transcript;
pub(crate) mod v1;
mod watch;

pub(crate) use bearer::{bearer, proof};
pub(crate) use html::HtmlError;
pub(crate) use peer_request::register_peer_request;
pub(crate) use query::{LookupQuery, ResponseFormat};
pub(crate) use transcript::JSON;

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use http::{HeaderValue, StatusCode, Uri};
use transcript_core::{
    accounts::{
        Accounts,
        payments::{Payments, Sandbox},
    },
    chat::Chat,
    lookup::Lookup,
};
use url::Url;

use crate::{
    altcha::AltchaProvider,
    config::WebOrigin,
    http::{CorsRule, ProblemResponse, cors},
    response_cache::{self, ResponseCache},
};

/// Shared state of the routes.
#[derive(Clone, Debug)]
pub(crate) struct AppState {
    /// The lookup API.
    pub(crate) lookup: Lookup,
    /// The v1 API.
    pub(crate) accounts: Accounts,
    /// Chat about videos.
    pub(crate) chat: Chat,
    /// Plans and credit packs.
    pub(crate) payments: Payments,
    /// Sandbox checkout without real payments, if enabled.
    pub(crate) sandbox: Option<Sandbox>,
    /// Response cache of the lookup API.
    pub(crate) bodies: Arc<ResponseCache>,
    /// Response cache of the v1 API.
    pub(crate) ready: Arc<v1::V1ResponseCache>,
}

impl AppState {
    /// Creates the state with empty caches.
    pub(crate) fn new(
        lookup: Lookup,
        accounts: Accounts,
        chat: Chat,
        payments: Payments,
        sandbox: Option<Sandbox>,
    ) -> Self {
        let lookup = lookup.with_challenges(Arc::new(AltchaProvider));
        let bodies = Arc::new(ResponseCache::new(lookup.clone()));
        Self { lookup, accounts, chat, payments, sandbox, bodies, ready: Arc::default() }
    }
}

/// Router of all routes. `cors_origins` are the origins whose pages may call `/api/keys`.
pub(crate) fn router(app: AppState, cors_origins: &[WebOrigin]) -> Router {
    let origins: Arc<[HeaderValue]> =
        cors_origins.iter().filter_map(|origin| HeaderValue::from_str(origin.as_str()).ok()).collect();
    let own = || CorsRule::own("GET, HEAD, OPTIONS");
    let listed = |methods| CorsRule::listed(methods, Arc::clone(&origins));
    let origins_of_mcp = mcp_origins(&app, &origins);
    let mcp = mcp::McpEndpoint::new(app.clone(), Arc::clone(&origins_of_mcp));
    Router::new()
        .route(response_cache::PATH, with(get(transcript::look_up), CorsRule::open("GET, HEAD, OPTIONS")))
        .route("/api/keys", with(post(keys::create), listed("POST, OPTIONS")))
        .route("/api/keys/me", with(get(keys::status), listed("GET, HEAD, OPTIONS")))
        .route("/", with(get(home::show), own()))
        .route("/assets/{name}", with(get(home::asset), own()))
        .route("/watch/{platform}/{id}", with(get(watch::page), own()))
        .route("/watch/{platform}/{id}/challenge", with(get(watch::transcribe::challenge), own()))
        .route(
            "/watch/{platform}/{id}/transcribe",
            with(post(watch::transcribe::transcribe), CorsRule::own("POST, OPTIONS")),
        )
        .route("/checkout/{order}", with(get(checkout::order_page), own()))
        .route(
            "/checkout/{order}/sandbox",
            with(
                get(checkout::sandbox_page).post(checkout::sandbox_action),
                CorsRule::own("GET, HEAD, POST, OPTIONS"),
            ),
        )
        .route("/health", with(get(health::health), own()))
        .route("/version", with(get(health::version), own()))
        .merge(docs::routes(app.clone()))
        .route(
            "/mcp",
            with(post(mcp::post).with_state(mcp), CorsRule::listed("POST, OPTIONS", origins_of_mcp)),
        )
        .nest(v1::PREFIX, v1::routes())
        .fallback(not_found)
        .with_state(app)
}

/// Origins whose pages may call `/mcp`: the server's own, and those that the operator configured.
fn mcp_origins(app: &AppState, listed: &[HeaderValue]) -> Arc<[HeaderValue]> {
    let own = Url::parse(&app.lookup.options().base_url).ok().map(|url| url.origin().ascii_serialization());
    let own = own.and_then(|origin| HeaderValue::from_str(&origin).ok());
    own.into_iter().chain(listed.iter().cloned()).collect()
}

/// Adds the CORS rule, which also names the supported methods.
fn with(route: MethodRouter<AppState>, rule: CorsRule) -> MethodRouter<AppState> {
    let methods = rule.methods;
    route.fallback(move || wrong_method(methods)).layer(from_fn_with_state(rule, cors))
}

async fn not_found(uri: Uri) -> Response {
    // The v1 prefix itself is not nested, but gets the v1 error form.
    match uri.path().trim_end_matches('/') == v1::PREFIX {
        true => v1::unknown().await.into_response(),
        false => {
            ProblemResponse::new(StatusCode::NOT_FOUND, "There is nothing at this address.").into_response()
        }
    }
}

/// Error in the form of the API that the path belongs to.
pub(crate) fn in_form_of(path: &str, refusal: ProblemResponse) -> Response {
    let is_v1 = path.strip_prefix(v1::PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_v1 { v1::V1ErrorResponse::from(refusal).into_response() } else { refusal.into_response() }
}

async fn wrong_method(methods: &'static str) -> ([(http::HeaderName, &'static str); 1], ProblemResponse) {
    let detail = format!("This address takes {methods} only.");
    ([(http::header::ALLOW, methods)], ProblemResponse::new(StatusCode::METHOD_NOT_ALLOWED, detail))
}

#[cfg(test)]
mod tests;
