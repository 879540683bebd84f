//! All endpoints. The router and the `OpenAPI` document are made from this list.

use std::sync::Arc;

use axum::{
    middleware::from_fn_with_state,
    routing::{MethodRouter, delete, get, head, post},
};
use http::Method;
use serde_json::Value;

#[cfg(feature = "mcp")]
use super::mcp;
use super::{
    RouteDeps, account as account_pages, checkout,
    docs::{self, CachedDocument},
    document::DocumentOptions,
    health, home, indexing, keys,
    page_origins::refuse_foreign_page,
    pricing, search, transcript,
    v1::{
        account, chat, jobs, payments, register, transcript as v1_transcript, verify, webhook, webhook_secret,
    },
    watch,
};
use crate::{
    api::{TRANSCRIPT_PATH, V1_CHAT_PATH, V1_TRANSCRIPT_PATH, WATCH_PATH},
    state::AppState,
};

/// One method of a path. HEAD is answered as GET, except on the v1 API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: &'static Method,
    /// The path, as a router pattern.
    pub(crate) path: &'static str,
    /// Origins whose pages may call; the same for all endpoints of a path.
    pub(super) origins: AllowedOrigins,
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
    #[cfg(feature = "mcp")]
    ListedAndOwn,
}

#[cfg(feature = "mcp")]
use AllowedOrigins::ListedAndOwn;
use AllowedOrigins::{Any, Listed, Own};

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
        .with_operation(transcript::document::operation),
    endpoint(&Method::HEAD, TRANSCRIPT_PATH, |_| head(transcript::look_up))
        .for_origins(Any)
        .with_operation(transcript::document::head_operation),
    endpoint(GET, "/api/search", |_| get(search::search))
        .for_origins(Listed)
        .with_operation(search::operation),
    endpoint(POST, "/api/keys", |deps| without_foreign_pages(deps, post(keys::create)))
        .for_origins(Listed)
        .with_operation(keys::create_operation),
    endpoint(GET, "/api/keys/me", |_| get(keys::status))
        .for_origins(Listed)
        .with_operation(keys::status_operation),
    endpoint(GET, "/", |deps| documented(deps, get(home::show))),
    endpoint(GET, "/pricing", |deps| documented(deps, get(pricing::show))),
    endpoint(GET, "/robots.txt", |deps| documented(deps, get(indexing::robots))),
    endpoint(GET, "/sitemap.xml", |_| get(indexing::sitemap)),
    endpoint(GET, indexing::SITE_FILE, |deps| documented(deps, get(indexing::site_file))),
    endpoint(GET, "/sitemaps/{file}", |_| get(indexing::sitemap_file)),
    endpoint(GET, "/assets/{name}", |_| get(home::asset)),
    endpoint(GET, "/favicon.ico", |_| get(home::favicon)),
    endpoint(GET, "/search", |_| get(search::page)),
    endpoint(GET, WATCH_PATH, |_| get(watch::page)).with_operation(watch::operation),
    endpoint(GET, QUESTION, |_| get(watch::question::page_of_answer)),
    endpoint(POST, QUESTION, |_| post(watch::question::answer)),
    #[cfg(feature = "documents")]
    endpoint(GET, "/watch/{platform}/{id}/docx", |_| get(watch::download::docx)),
    #[cfg(feature = "documents")]
    endpoint(GET, "/watch/{platform}/{id}/pdf", |_| get(watch::download::pdf)),
    endpoint(GET, "/watch/{platform}/{id}/challenge", |_| get(watch::transcribe::challenge)),
    endpoint(POST, "/watch/{platform}/{id}/transcribe", |_| post(watch::transcribe::transcribe)),
    endpoint(GET, "/checkout/{order}", |_| get(checkout::order_page))
        .with_operation(checkout::order_operation),
    endpoint(GET, SANDBOX, |_| get(checkout::sandbox_page)).with_operation(checkout::sandbox_operation),
    endpoint(POST, SANDBOX, |_| post(checkout::sandbox_action))
        .with_operation(checkout::sandbox_action_operation),
    endpoint(GET, "/register", |_| get(account_pages::sign_in::register_page)),
    endpoint(POST, "/register", |_| post(account_pages::sign_in::register)),
    endpoint(GET, "/sign-in", |_| get(account_pages::sign_in::sign_in_page)),
    endpoint(POST, "/sign-in", |_| post(account_pages::sign_in::sign_in)),
    endpoint(GET, "/sign-in/sent", |_| get(account_pages::sign_in::sent_page)),
    endpoint(GET, SIGN_IN_LINK, |_| get(account_pages::sign_in::confirm_page)),
    endpoint(POST, SIGN_IN_LINK, |_| post(account_pages::sign_in::confirm)),
    endpoint(POST, "/sign-out", |_| post(account_pages::sign_in::sign_out)),
    endpoint(GET, "/account", |_| get(account_pages::overview::show)),
    endpoint(GET, "/account/keys", |_| get(account_pages::keys::show)),
    endpoint(POST, "/account/keys/create", |_| post(account_pages::keys::create)),
    endpoint(POST, "/account/keys/rotate", |_| post(account_pages::keys::rotate)),
    endpoint(POST, "/account/keys/revoke", |_| post(account_pages::keys::revoke)),
    endpoint(GET, "/account/statement", |_| get(account_pages::statement::show)),
    endpoint(GET, "/account/statement.csv", |_| get(account_pages::statement::csv)),
    endpoint(GET, "/account/orders", |_| get(account_pages::orders::list)),
    endpoint(GET, "/account/orders/{order}", |_| get(account_pages::orders::receipt)),
    endpoint(GET, "/account/jobs", |_| get(account_pages::jobs::list)),
    endpoint(POST, "/account/jobs/cancel", |_| post(account_pages::jobs::cancel)),
    endpoint(GET, "/account/jobs/{job}", |_| get(account_pages::jobs::show)),
    endpoint(POST, "/account/buy", |_| post(account_pages::orders::buy)),
    endpoint(POST, "/account/subscribe", |_| post(account_pages::orders::subscribe)),
    endpoint(POST, "/account/subscription", |_| post(account_pages::orders::manage)),
    endpoint(GET, "/account/sessions", |_| get(account_pages::privacy::sessions)),
    endpoint(POST, "/account/sessions/revoke", |_| post(account_pages::privacy::revoke)),
    endpoint(GET, "/account/export", |_| get(account_pages::export::show)),
    endpoint(GET, "/account/delete", |_| get(account_pages::privacy::delete_page)),
    endpoint(POST, "/account/delete", |_| post(account_pages::privacy::delete)),
    endpoint(GET, "/account/deleted", |_| get(account_pages::privacy::deleted_page)),
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
    endpoint(GET, "/docs/guides/{guide}", |deps| documented(deps, get(docs::guide_page)))
        .with_operation(docs::guide_page_operation),
    #[cfg(feature = "mcp")]
    endpoint(POST, "/mcp", |deps| post(mcp::post).with_state(deps.mcp.clone())).for_origins(ListedAndOwn),
    endpoint(POST, "/api/v1/register", |deps| without_foreign_pages(deps, post(register::register)))
        .for_origins(Listed)
        .with_operation(register::operation),
    endpoint(GET, VERIFY, |_| get(verify::open)).with_operation(verify::open_operation),
    endpoint(POST, VERIFY, |_| post(verify::confirm)).with_operation(verify::confirm_operation),
    endpoint(GET, "/api/v1/me", |_| get(account::me)).with_operation(account::me_operation),
    endpoint(POST, "/api/v1/rotate-key", |_| post(account::rotate_key))
        .with_operation(account::rotate_key_operation),
    endpoint(GET, V1_TRANSCRIPT_PATH, |_| get(v1_transcript::transcript))
        .with_operation(v1_transcript::operation),
    endpoint(POST, V1_CHAT_PATH, |_| post(chat::chat)).with_operation(chat::operation),
    endpoint(POST, "/api/v1/subscribe", |_| post(payments::subscribe))
        .with_operation(payments::subscribe_operation),
    endpoint(POST, "/api/v1/buy-credits", |_| post(payments::buy_credits))
        .with_operation(payments::buy_credits_operation),
    endpoint(POST, "/api/v1/jobs", |_| post(jobs::create)).with_operation(jobs::document::create),
    endpoint(GET, "/api/v1/jobs", |_| get(jobs::list)).with_operation(jobs::document::list),
    endpoint(GET, JOB, |_| get(jobs::show)).with_operation(jobs::document::show),
    endpoint(&Method::DELETE, JOB, |_| delete(jobs::cancel)).with_operation(jobs::document::cancel),
    endpoint(GET, "/api/v1/jobs/{job}/results", |_| get(jobs::results))
        .with_operation(jobs::document::results),
    endpoint(GET, "/api/v1/jobs/{job}/deliveries", |_| get(jobs::deliveries))
        .with_operation(jobs::document::deliveries),
    endpoint(GET, "/api/v1/webhook-secret", |_| get(webhook_secret::show))
        .with_operation(webhook_secret::show_operation),
    endpoint(POST, "/api/v1/webhook-secret/rotate", |_| post(webhook_secret::rotate))
        .with_operation(webhook_secret::rotate_operation),
    endpoint(POST, "/api/v1/webhooks/stripe", |_| post(webhook::stripe)).with_operation(webhook::operation),
];

const QUESTION: &str = "/watch/{platform}/{id}/ask";
const SANDBOX: &str = "/checkout/{order}/sandbox";
const JOB: &str = "/api/v1/jobs/{job}";
const SIGN_IN_LINK: &str = "/sign-in/confirm";
const VERIFY: &str = "/api/v1/verify";

/// Gives a handler the document, and the bodies that are made once.
fn documented(deps: &RouteDeps, route: MethodRouter<Arc<CachedDocument>>) -> MethodRouter<AppState> {
    route.with_state(Arc::clone(&deps.document))
}

/// Refuses the requests of other sites' pages.
fn without_foreign_pages(deps: &RouteDeps, route: MethodRouter<AppState>) -> MethodRouter<AppState> {
    route.route_layer(from_fn_with_state(deps.pages.clone(), refuse_foreign_page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_without_operation_are_pages_and_mcp() {
        let paths = ENDPOINTS.iter().filter(|endpoint| endpoint.operation.is_none());
        let expected = [
            "/",
            "/pricing",
            "/robots.txt",
            "/sitemap.xml",
            "/sitemaps/site.xml",
            "/sitemaps/{file}",
            "/assets/{name}",
            "/favicon.ico",
            "/search",
            "/watch/{platform}/{id}/ask",
            "/watch/{platform}/{id}/ask",
            "/watch/{platform}/{id}/docx",
            "/watch/{platform}/{id}/pdf",
            "/watch/{platform}/{id}/challenge",
            "/watch/{platform}/{id}/transcribe",
            "/register",
            "/register",
            "/sign-in",
            "/sign-in",
            "/sign-in/sent",
            "/sign-in/confirm",
            "/sign-in/confirm",
            "/sign-out",
            "/account",
            "/account/keys",
            "/account/keys/create",
            "/account/keys/rotate",
            "/account/keys/revoke",
            "/account/statement",
            "/account/statement.csv",
            "/account/orders",
            "/account/orders/{order}",
            "/account/jobs",
            "/account/jobs/cancel",
            "/account/jobs/{job}",
            "/account/buy",
            "/account/subscribe",
            "/account/subscription",
            "/account/sessions",
            "/account/sessions/revoke",
            "/account/export",
            "/account/delete",
            "/account/delete",
            "/account/deleted",
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
