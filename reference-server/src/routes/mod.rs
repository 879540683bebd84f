//! The routes of both surfaces, the front page, the watch page, the pages of orders, and what operators ask.

mod asked;
mod bearer;
mod checkout;
mod docs;
pub(crate) mod health;
mod home;
mod html;
pub(crate) mod keys;
mod mcp;
pub(crate) mod query;
mod transcript;
pub(crate) mod v1;
mod watch;

pub(crate) use asked::asked_by_server;
pub(crate) use bearer::{bearer, proof};
pub(crate) use html::Dress;
pub(crate) use query::{Format, LookupQuery};
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
    bodies::{self, Bodies},
    config::WebOrigin,
    http::{CorsRule, Refusal, cors},
    human::Altcha,
};

/// What the routes work with.
#[derive(Clone, Debug)]
pub(crate) struct App {
    /// Surface A.
    pub(crate) lookup: Lookup,
    /// Surface B.
    pub(crate) accounts: Accounts,
    /// Who answers questions about videos.
    pub(crate) chat: Chat,
    /// What is sold on it.
    pub(crate) payments: Payments,
    /// The checkout in which nobody pays, where it is in use.
    pub(crate) sandbox: Option<Sandbox>,
    /// What can be sent as it is.
    pub(crate) bodies: Arc<Bodies>,
    /// What can be sent as it is to whoever pays.
    pub(crate) ready: Arc<v1::ReadyTranscripts>,
}

impl App {
    /// Routes over these, with no body ready yet.
    pub(crate) fn new(
        lookup: Lookup,
        accounts: Accounts,
        chat: Chat,
        payments: Payments,
        sandbox: Option<Sandbox>,
    ) -> Self {
        let lookup = lookup.with_human_check(Arc::new(Altcha));
        let bodies = Arc::new(Bodies::new(lookup.clone()));
        Self { lookup, accounts, chat, payments, sandbox, bodies, ready: Arc::default() }
    }
}

/// Every route. `cors_origins` are the origins whose pages may call `/api/keys`.
pub(crate) fn router(app: App, cors_origins: &[WebOrigin]) -> Router {
    let origins: Arc<[HeaderValue]> =
        cors_origins.iter().filter_map(|origin| HeaderValue::from_str(origin.as_str()).ok()).collect();
    let own = || CorsRule::own("GET, HEAD, OPTIONS");
    let listed = |methods| CorsRule::listed(methods, Arc::clone(&origins));
    let origins_of_mcp = mcp_origins(&app, &origins);
    let mcp = mcp::Endpoint::new(app.clone(), Arc::clone(&origins_of_mcp));
    Router::new()
        .route(bodies::PATH, with(get(transcript::look_up), CorsRule::open("GET, HEAD, OPTIONS")))
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
        .route("/checkout/{order}", with(get(checkout::back), own()))
        .route(
            "/checkout/{order}/sandbox",
            with(get(checkout::show).post(checkout::act), CorsRule::own("GET, HEAD, POST, OPTIONS")),
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

/// The origins whose pages may call `/mcp`: our own, and those that the operator lists.
fn mcp_origins(app: &App, listed: &[HeaderValue]) -> Arc<[HeaderValue]> {
    let own = Url::parse(&app.lookup.options().base_url).ok().map(|url| url.origin().ascii_serialization());
    let own = own.and_then(|origin| HeaderValue::from_str(&origin).ok());
    own.into_iter().chain(listed.iter().cloned()).collect()
}

/// A route with its CORS rule, which also names the methods that it has.
fn with(route: MethodRouter<App>, rule: CorsRule) -> MethodRouter<App> {
    let methods = rule.methods;
    route.fallback(move || wrong_method(methods)).layer(from_fn_with_state(rule, cors))
}

async fn not_found(uri: Uri) -> Response {
    // The bare prefix is no address below it.
    match uri.path().trim_end_matches('/') == v1::PREFIX {
        true => v1::unknown().await.into_response(),
        false => Refusal::new(StatusCode::NOT_FOUND, "There is nothing at this address.").into_response(),
    }
}

/// A refusal in the form of the surface that the path belongs to.
pub(crate) fn in_form_of(path: &str, refusal: Refusal) -> Response {
    let is_v1 = path.strip_prefix(v1::PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_v1 { v1::Denial::from(refusal).into_response() } else { refusal.into_response() }
}

async fn wrong_method(methods: &'static str) -> ([(http::HeaderName, &'static str); 1], Refusal) {
    let detail = format!("This address takes {methods} only.");
    ([(http::header::ALLOW, methods)], Refusal::new(StatusCode::METHOD_NOT_ALLOWED, detail))
}

#[cfg(test)]
mod tests;
