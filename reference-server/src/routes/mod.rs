//! Routes of both APIs, the front page, the watch page, the order pages and the service endpoints.

mod account;
mod archived;
mod checkout;
mod docs;
pub(crate) mod document;
pub(crate) mod health;
mod home;
mod html;
mod indexing;
mod keys;
#[cfg(feature = "mcp")]
mod mcp;
mod page_origins;
mod peer_request;
mod pricing;
pub(crate) mod readiness;
mod search;
mod table;
mod transcript;
mod v1;
mod watch;

pub(crate) use account::export::ExportBody;
pub(crate) use archived::{archived, cached};
pub(crate) use html::HtmlError;
pub(crate) use peer_request::register_peer_request;
pub(crate) use readiness::{Readiness, ReadinessState};
pub(crate) use table::ENDPOINTS;

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::MethodRouter,
};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header::ALLOW};
#[cfg(feature = "mcp")]
use url::Url;

#[cfg(feature = "mcp")]
use crate::mcp::PassageCache;
use crate::{
    api::{CorsRule, ProblemResponse, V1_PREFIX, V1ErrorResponse, cors},
    config::WebOrigin,
    state::AppState,
};
use docs::{BuildDocument, CachedDocument};
use page_origins::PageOrigins;
use table::{AllowedOrigins, Endpoint};

/// Prefix of the admin API, which has a separate listener.
const ADMIN_PREFIX: &str = "/admin";

/// What handlers have besides the shared state.
#[derive(Debug)]
struct RouteDeps {
    #[cfg(feature = "mcp")]
    mcp: mcp::McpEndpoint,
    document: Arc<CachedDocument>,
    pages: PageOrigins,
}

/// Router of all routes.
///
/// `cors_origins` are the origins whose pages may call `/api/keys`, `/api/v1/register`, `/api/search` and `/mcp`.
/// `document` builds the `OpenAPI` document.
pub(crate) fn router(
    app: AppState,
    #[cfg(feature = "mcp")] passages: PassageCache,
    cors_origins: &[WebOrigin],
    document: BuildDocument,
) -> Router {
    let listed: Arc<[HeaderValue]> =
        cors_origins.iter().filter_map(|origin| HeaderValue::from_str(origin.as_str()).ok()).collect();
    #[cfg(feature = "mcp")]
    let of_mcp = mcp_origins(&app, &listed);
    let deps = RouteDeps {
        #[cfg(feature = "mcp")]
        mcp: mcp::McpEndpoint::new(app.clone(), passages, Arc::clone(&of_mcp)),
        document: Arc::new(CachedDocument::new(app.clone(), document)),
        pages: PageOrigins::new(app.clone(), Arc::clone(&listed)),
    };
    let (mut routes, mut of_v1) = (Router::new(), Router::new());
    // The endpoints of a path are neighbours.
    for endpoints in ENDPOINTS.chunk_by(|one, next| one.path == next.path) {
        let Some(first) = endpoints.first() else { continue };
        let route = endpoints
            .iter()
            .fold(MethodRouter::new(), |route, endpoint| route.merge((endpoint.handler)(&deps)));
        let methods = allowed_methods(endpoints);
        let v1_path = first.path.strip_prefix(V1_PREFIX);
        let route = match v1_path {
            Some(_) => v1_methods(methods, route),
            None => route.options(move || no_content(methods)).fallback(move || wrong_method(methods)),
        };
        let rule = match first.origins {
            AllowedOrigins::Own => None,
            AllowedOrigins::Any => Some(CorsRule::open(methods)),
            AllowedOrigins::Listed => Some(CorsRule::listed(methods, Arc::clone(&listed))),
            #[cfg(feature = "mcp")]
            AllowedOrigins::ListedAndOwn => Some(CorsRule::listed(methods, Arc::clone(&of_mcp))),
        };
        let route = match rule {
            Some(rule) => route.layer(from_fn_with_state(rule, cors)),
            None => route,
        };
        match v1_path {
            Some(path) => of_v1 = of_v1.route(path, route),
            None => routes = routes.route(first.path, route),
        }
    }
    routes.nest(V1_PREFIX, v1::finish_router(of_v1)).fallback(not_found).with_state(app)
}

/// Adds the responses to other methods of a path of the v1 API.
///
/// HEAD is not supported, because its response would have to be charged.
fn v1_methods(methods: &'static str, route: MethodRouter<AppState>) -> MethodRouter<AppState> {
    let wrong = move || std::future::ready(V1ErrorResponse::wrong_method(methods));
    route.options(move || no_content(methods)).head(wrong).fallback(wrong)
}

/// Returns the value of `Allow` for the endpoints of one path.
fn allowed_methods(endpoints: &[Endpoint]) -> &'static str {
    let has = |method| endpoints.iter().any(|endpoint| endpoint.method == method);
    let is_v1 = endpoints.iter().any(|endpoint| endpoint.path.starts_with(V1_PREFIX));
    match (has(Method::GET), has(Method::POST), is_v1) {
        (true, false, false) => "GET, HEAD, OPTIONS",
        (true, true, false) => "GET, HEAD, POST, OPTIONS",
        (true, false, true) if has(Method::DELETE) => "GET, DELETE, OPTIONS",
        (true, false, true) => "GET, OPTIONS",
        (true, true, true) => "GET, POST, OPTIONS",
        (false, _, _) => "POST, OPTIONS",
    }
}

/// Origins whose pages may call `/mcp`: the server's own, and those that the operator configured.
#[cfg(feature = "mcp")]
fn mcp_origins(app: &AppState, listed: &[HeaderValue]) -> Arc<[HeaderValue]> {
    let own = Url::parse(&app.lookup.options().base_url).ok().map(|url| url.origin().ascii_serialization());
    let own = own.and_then(|origin| HeaderValue::from_str(&origin).ok());
    own.into_iter().chain(listed.iter().cloned()).collect()
}

async fn no_content(methods: &'static str) -> (StatusCode, [(HeaderName, &'static str); 1]) {
    (StatusCode::NO_CONTENT, [(ALLOW, methods)])
}

async fn not_found(uri: Uri) -> Response {
    // The v1 prefix itself is not nested, but gets the v1 error form.
    match uri.path().trim_end_matches('/') == V1_PREFIX {
        true => v1::unknown().await.into_response(),
        false => {
            ProblemResponse::new(StatusCode::NOT_FOUND, "There is nothing at this address.").into_response()
        }
    }
}

/// Error in the form of the API that the path belongs to.
pub(crate) fn in_form_of(path: &str, refusal: ProblemResponse) -> Response {
    let is_below =
        |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // The admin API has the errors of the v1 API.
    if is_below(V1_PREFIX) || is_below(ADMIN_PREFIX) {
        V1ErrorResponse::from(refusal).into_response()
    } else {
        refusal.into_response()
    }
}

async fn wrong_method(methods: &'static str) -> ([(HeaderName, &'static str); 1], ProblemResponse) {
    let detail = format!("This address takes {methods} only.");
    ([(ALLOW, methods)], ProblemResponse::new(StatusCode::METHOD_NOT_ALLOWED, detail))
}

#[cfg(test)]
mod tests;
