//! All endpoints of the admin API. The router and the document are made from this list.

use axum::{
    Router,
    routing::{MethodRouter, delete, get, patch, post},
};
use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;
use transcript_core::wire::v1::{AccountExport, StatementLine};

use super::{AdminState, accounts, jobs, keys, request::PageBody, server};
use crate::{
    api::V1ErrorResponse,
    operations::{AccountRow, AuditRow, JobRow, KeyRow, NewAccountRow},
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

/// An endpoint that takes no body and returns none.
const fn endpoint(
    method: &'static str,
    path: &'static str,
    handler: fn() -> MethodRouter<AdminState>,
    id: &'static str,
) -> AdminEndpoint {
    let response = (204, body::<()> as BodySchema);
    AdminEndpoint { method, path, handler, id, summary: "", request: None, response, is_list: false }
}

impl AdminEndpoint {
    const fn with_summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// The endpoint with this request body.
    const fn takes<T: JsonSchema>(self) -> Self {
        Self { request: Some(body::<T>), ..self }
    }

    /// The endpoint with this status and response body.
    const fn returns<T: JsonSchema>(self, status: u16) -> Self {
        Self { response: (status, body::<T>), ..self }
    }

    /// The endpoint with pages of these items as responses.
    const fn lists<T: JsonSchema>(self) -> Self {
        Self { is_list: true, ..self.returns::<PageBody<T>>(200) }
    }
}

const KEYS: &str = "/admin/keys";
const KEY: &str = "/admin/keys/{id}";
const ACCOUNTS: &str = "/admin/accounts";
const ACCOUNT: &str = "/admin/accounts/{account}";
const JOBS: &str = "/admin/jobs";

/// All endpoints; those of one path are neighbours.
pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    endpoint("get", KEYS, || get(keys::list), "listKeys")
        .with_summary("List the keys of the lookup API, oldest first")
        .lists::<KeyRow>(),
    endpoint("post", KEYS, || post(keys::create), "createKey")
        .with_summary("Create a key of the lookup API")
        .takes::<keys::NewKey>()
        .returns::<keys::NewKeyRow>(201),
    endpoint("patch", KEY, || patch(keys::change), "changeKey")
        .with_summary("Change the expiry or the quota of a key")
        .takes::<keys::KeyChange>(),
    endpoint("delete", KEY, || delete(keys::revoke), "revokeKey")
        .with_summary("Revoke a key of the lookup API"),
    endpoint("get", ACCOUNTS, || get(accounts::list), "listAccounts")
        .with_summary("List the accounts of the v1 API, oldest first")
        .lists::<AccountRow>(),
    endpoint("post", ACCOUNTS, || post(accounts::create), "createAccount")
        .with_summary("Create an account without an email address, and its key")
        .takes::<accounts::NewAccountRequest>()
        .returns::<NewAccountRow>(201),
    endpoint("get", ACCOUNT, || get(accounts::show), "showAccount")
        .with_summary("Show an account")
        .returns::<AccountRow>(200),
    endpoint("patch", ACCOUNT, || patch(accounts::change), "changeAccount")
        .with_summary("Block or unblock an account")
        .takes::<accounts::AccountChange>()
        .returns::<AccountRow>(200),
    endpoint("delete", ACCOUNT, || delete(accounts::delete), "deleteAccount")
        .with_summary("Erase an account: its address, keys and references at the payment provider")
        .takes::<accounts::DeleteRequest>()
        .returns::<accounts::DeletedAccount>(200),
    endpoint("post", "/admin/accounts/{account}/keys", || post(accounts::new_key), "replaceAccountKey")
        .with_summary("Replace all keys of an account by a new one")
        .returns::<NewAccountRow>(201),
    endpoint("post", "/admin/accounts/{account}/grants", || post(accounts::grant), "grantCredits")
        .with_summary("Grant credits, which do not expire, to an account")
        .takes::<accounts::NewGrant>()
        .returns::<AccountRow>(200),
    endpoint("get", "/admin/accounts/{account}/statement", || get(accounts::statement), "listStatement")
        .with_summary("List the ledger entries of an account, oldest first")
        .lists::<StatementLine>(),
    endpoint("get", "/admin/accounts/{account}/export", || get(accounts::export), "exportAccount")
        .with_summary("Return everything that is stored about an account")
        .returns::<AccountExport>(200),
    endpoint("get", JOBS, || get(jobs::list), "listJobs")
        .with_summary("List the jobs of all accounts that have not ended")
        .lists::<JobRow>(),
    endpoint("patch", JOBS, || patch(jobs::change_all), "changeAllJobs")
        .with_summary("Pause all jobs that have not ended, or resume all that the operator paused")
        .takes::<jobs::JobChange>()
        .returns::<jobs::ChangedJobs>(200),
    endpoint("patch", "/admin/jobs/{job}", || patch(jobs::change), "changeJob")
        .with_summary("Pause a job, or resume one that the operator paused")
        .takes::<jobs::JobChange>()
        .returns::<JobRow>(200),
    endpoint("post", "/admin/withdrawals", || post(server::withdraw), "withdrawVideo")
        .with_summary("Take a video down, or restore it")
        .takes::<server::WithdrawalRequest>()
        .returns::<server::WithdrawnVideo>(200),
    endpoint("post", "/admin/ledger-audits", || post(server::audit_ledger), "auditLedger")
        .with_summary("Recompute every balance of the ledger from its entries")
        .returns::<Value>(200),
    endpoint("get", "/admin/audit-log", || get(server::audit_log), "listAuditLog")
        .with_summary("List what operators did, newest first")
        .lists::<AuditRow>(),
    endpoint("get", "/admin/openapi.json", || get(server::open_api), "getAdminDocument")
        .with_summary("Return this document")
        .returns::<Value>(200),
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
