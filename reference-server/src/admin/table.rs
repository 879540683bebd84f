//! All endpoints of the admin API. The router and the document are made from this list.

use axum::{
    Router,
    routing::{MethodRouter, delete, get, patch, post},
};
use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;
use transcript_core::wire::{
    lookup::CreateKeyResponse,
    v1::{AccountExport, StatementLine},
};

use super::{AdminState, accounts, keys, request::PageBody, server};
use crate::{
    api::V1ErrorResponse,
    operations::{AccountRow, AuditRow, KeyRow, NewAccountRow},
};

/// The schema of a body.
pub(super) type BodySchema = fn(&mut SchemaGenerator) -> Schema;

/// One method of a path.
pub(super) struct AdminEndpoint {
    /// The method, in lower case.
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    handler: fn() -> MethodRouter<AdminState>,
    /// Name of the operation in the document.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// The request body.
    pub(super) request: Option<BodySchema>,
    /// Status and body of the response; no body for 204.
    pub(super) response: (u16, BodySchema),
    /// Whether it returns a page, with the parameters of pages.
    pub(super) is_list: bool,
}

fn body<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn endpoint(
    (method, path): (&'static str, &'static str),
    handler: fn() -> MethodRouter<AdminState>,
    (id, summary): (&'static str, &'static str),
    request: Option<BodySchema>,
    response: (u16, BodySchema),
) -> AdminEndpoint {
    AdminEndpoint { method, path, handler, id, summary, request, response, is_list: false }
}

const fn list(
    path: &'static str,
    handler: fn() -> MethodRouter<AdminState>,
    name: (&'static str, &'static str),
    response: BodySchema,
) -> AdminEndpoint {
    AdminEndpoint { is_list: true, ..endpoint(("get", path), handler, name, None, (200, response)) }
}

const KEYS: &str = "/admin/keys";
const KEY: &str = "/admin/keys/{id}";
const ACCOUNTS: &str = "/admin/accounts";
const ACCOUNT: &str = "/admin/accounts/{account}";

/// All endpoints; those of one path are neighbours.
pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    list(
        KEYS,
        || get(keys::list),
        ("listKeys", "List the keys of the lookup API, oldest first"),
        body::<PageBody<KeyRow>>,
    ),
    endpoint(
        ("post", KEYS),
        || post(keys::create),
        ("createKey", "Create a key of the lookup API"),
        Some(body::<keys::NewKey>),
        (201, body::<CreateKeyResponse>),
    ),
    endpoint(
        ("patch", KEY),
        || patch(keys::change),
        ("changeKey", "Change the expiry or the quota of a key"),
        Some(body::<keys::KeyChange>),
        (204, body::<()>),
    ),
    endpoint(
        ("delete", KEY),
        || delete(keys::revoke),
        ("revokeKey", "Revoke a key of the lookup API"),
        None,
        (204, body::<()>),
    ),
    list(
        ACCOUNTS,
        || get(accounts::list),
        ("listAccounts", "List the accounts of the v1 API, oldest first"),
        body::<PageBody<AccountRow>>,
    ),
    endpoint(
        ("post", ACCOUNTS),
        || post(accounts::create),
        ("createAccount", "Create an account without an e-mail address, and its key"),
        Some(body::<accounts::NewAccountRequest>),
        (201, body::<NewAccountRow>),
    ),
    endpoint(
        ("get", ACCOUNT),
        || get(accounts::show),
        ("showAccount", "Show an account"),
        None,
        (200, body::<AccountRow>),
    ),
    endpoint(
        ("patch", ACCOUNT),
        || patch(accounts::change),
        ("changeAccount", "Block or unblock an account"),
        Some(body::<accounts::AccountChange>),
        (200, body::<AccountRow>),
    ),
    endpoint(
        ("delete", ACCOUNT),
        || delete(accounts::delete),
        ("deleteAccount", "Erase an account: its address, keys and references at the payment provider"),
        Some(body::<accounts::DeleteRequest>),
        (200, body::<accounts::DeletedAccount>),
    ),
    endpoint(
        ("post", "/admin/accounts/{account}/keys"),
        || post(accounts::new_key),
        ("replaceAccountKey", "Replace the key of an account"),
        None,
        (201, body::<NewAccountRow>),
    ),
    endpoint(
        ("post", "/admin/accounts/{account}/grants"),
        || post(accounts::grant),
        ("grantCredits", "Grant credits, which do not expire, to an account"),
        Some(body::<accounts::NewGrant>),
        (200, body::<AccountRow>),
    ),
    list(
        "/admin/accounts/{account}/statement",
        || get(accounts::statement),
        ("listStatement", "List the ledger entries of an account, oldest first"),
        body::<PageBody<StatementLine>>,
    ),
    endpoint(
        ("get", "/admin/accounts/{account}/export"),
        || get(accounts::export),
        ("exportAccount", "Return everything that is stored about an account"),
        None,
        (200, body::<AccountExport>),
    ),
    endpoint(
        ("post", "/admin/withdrawals"),
        || post(server::withdraw),
        ("withdrawVideo", "Take a video down, or restore it"),
        Some(body::<server::WithdrawalRequest>),
        (200, body::<server::WithdrawnVideo>),
    ),
    endpoint(
        ("post", "/admin/ledger-audits"),
        || post(server::audit_ledger),
        ("auditLedger", "Recompute every balance of the ledger from its entries"),
        None,
        (200, body::<Value>),
    ),
    list(
        "/admin/audit-log",
        || get(server::audit_log),
        ("listAuditLog", "List what operators did, newest first"),
        body::<PageBody<AuditRow>>,
    ),
    endpoint(
        ("get", "/admin/openapi.json"),
        || get(server::open_api),
        ("getAdminDocument", "Return this document"),
        None,
        (200, body::<Value>),
    ),
];

/// Routes of all endpoints. Other methods of a path are refused with 405.
pub(super) fn routes() -> Router<AdminState> {
    let mut routes = Router::new();
    for path in ENDPOINTS.chunk_by(|one, next| one.path == next.path) {
        let mut route = MethodRouter::new();
        for endpoint in path {
            route = route.merge((endpoint.handler)());
        }
        let Some(first) = path.first() else { continue };
        routes = routes.route(first.path, route.fallback(wrong_method));
    }
    routes
}

async fn wrong_method() -> V1ErrorResponse {
    let message = "This address does not take this method. GET /admin/openapi.json describes the admin API.";
    V1ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, message)
}
