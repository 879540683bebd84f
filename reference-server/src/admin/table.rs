//! All endpoints of the admin API. The router and the document are made from this list.

use axum::{
    Router,
    routing::{MethodRouter, delete, get, patch, post},
};
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;
use transcript_core::wire::v1::{AccountExport, StatementLine};

use super::{AdminState, accounts, jobs, keys, request::PageBody, server};
use crate::{
    api::V1ErrorResponse,
    operations::{AccountRow, AuditRow, JobRow, KeyRow, NewAccountRow, RevokedGrantRow},
};

pub(super) type BodySchema = fn(&mut SchemaGenerator) -> Schema;

/// One method of a path.
pub(super) struct AdminEndpoint {
    pub(super) method: &'static Method,
    pub(super) path: &'static str,
    handler: fn() -> MethodRouter<AdminState>,
    /// Name of the operation in the document.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    /// Details that the summary leaves out.
    pub(super) description: &'static str,
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
    method: &'static Method,
    path: &'static str,
    handler: fn() -> MethodRouter<AdminState>,
    id: &'static str,
) -> AdminEndpoint {
    let response = (204, body::<()> as BodySchema);
    let (summary, description) = ("", "");
    AdminEndpoint { method, path, handler, id, summary, description, request: None, response, is_list: false }
}

impl AdminEndpoint {
    const fn described(self, summary: &'static str, description: &'static str) -> Self {
        Self { summary, description, ..self }
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

const GET: &Method = &Method::GET;
const POST: &Method = &Method::POST;
const PATCH: &Method = &Method::PATCH;
const DELETE: &Method = &Method::DELETE;

const KEYS: &str = "/admin/keys";
const KEY: &str = "/admin/keys/{id}";
const ACCOUNTS: &str = "/admin/accounts";
const ACCOUNT: &str = "/admin/accounts/{account}";
const GRANT: &str = "/admin/accounts/{account}/grants/{grant}";
const JOBS: &str = "/admin/jobs";

/// All endpoints; those of one path are neighbours.
pub(super) const ENDPOINTS: &[AdminEndpoint] = &[
    endpoint(GET, KEYS, || get(keys::list), "listKeys")
        .described(
            "List the keys of the lookup API, oldest first",
            "Each has its quota, its requests and its new transcripts. Revoked keys are included.",
        )
        .lists::<KeyRow>(),
    endpoint(POST, KEYS, || post(keys::create), "createKey")
        .described("Create a key of the lookup API", "The response has the key, which is shown once.")
        .takes::<keys::NewKey>()
        .returns::<keys::NewKeyRow>(201),
    endpoint(PATCH, KEY, || patch(keys::change), "changeKey")
        .described(
            "Change the expiry or the quota of a key",
            "The change holds at once, also on other servers of the same storage.",
        )
        .takes::<keys::KeyChange>(),
    endpoint(DELETE, KEY, || delete(keys::revoke), "revokeKey")
        .described("Revoke a key of the lookup API", "The key is refused from then on."),
    endpoint(GET, ACCOUNTS, || get(accounts::list), "listAccounts")
        .described(
            "List the accounts of the v1 API, oldest first",
            "Each has its plan and its remaining credits.",
        )
        .lists::<AccountRow>(),
    endpoint(POST, ACCOUNTS, || post(accounts::create), "createAccount")
        .described(
            "Create an account without an email address, and its key",
            "The key is shown once. `ungranted` has the reason if the credits could not be granted.",
        )
        .takes::<accounts::NewAccountRequest>()
        .returns::<NewAccountRow>(201),
    endpoint(GET, ACCOUNT, || get(accounts::show), "showAccount")
        .described("Show an account", "`{account}` is an id, an email address or a name.")
        .returns::<AccountRow>(200),
    endpoint(PATCH, ACCOUNT, || patch(accounts::change), "changeAccount")
        .described(
            "Block or unblock an account",
            "The keys of a blocked account are refused; its credits are kept.",
        )
        .takes::<accounts::AccountChange>()
        .returns::<AccountRow>(200),
    endpoint(DELETE, ACCOUNT, || delete(accounts::delete), "deleteAccount")
        .described(
            "Erase an account: its address, keys and references at the payment provider",
            "409 with a subscription, or an order that may still be paid, unless `anyway` is true.",
        )
        .takes::<accounts::DeleteRequest>()
        .returns::<accounts::DeletedAccount>(200),
    endpoint(POST, "/admin/accounts/{account}/keys", || post(accounts::new_key), "replaceAccountKey")
        .described(
            "Replace all keys of an account by a new one",
            "All earlier keys are refused from then on. The response has the new key, which is shown once.",
        )
        .returns::<NewAccountRow>(201),
    endpoint(POST, "/admin/accounts/{account}/grants", || post(accounts::grant), "grantCredits")
        .described(
            "Grant credits, which do not expire, to an account",
            "A repeated grant with the same `id` has no effect, so the request can be repeated safely.",
        )
        .takes::<accounts::NewGrant>()
        .returns::<AccountRow>(200),
    endpoint(DELETE, GRANT, || delete(accounts::revoke_grant), "revokeGrant")
        .described(
            "Take the credits of a grant back, as far as they are available",
            "Credits that are spent or held are the `shortfall`. A repeated request has no effect. 409 for a purchase: \
             a refund at the payment provider takes its credits back. 409 also if credits of the grant are spent and \
             credits that were purchased since would be taken.",
        )
        .returns::<RevokedGrantRow>(200),
    endpoint(GET, "/admin/accounts/{account}/statement", || get(accounts::statement), "listStatement")
        .described(
            "List the ledger entries of an account, oldest first",
            "Every change of its credits is an entry.",
        )
        .lists::<StatementLine>(),
    endpoint(GET, "/admin/accounts/{account}/export", || get(accounts::export), "exportAccount")
        .described(
            "Return everything that is stored about an account",
            "The account, its keys, orders, jobs and sessions, and all entries of its ledger.",
        )
        .returns::<AccountExport>(200),
    endpoint(GET, JOBS, || get(jobs::list), "listJobs")
        .described(
            "List the jobs of all accounts that have not ended",
            "Each has its account and its progress.",
        )
        .lists::<JobRow>(),
    endpoint(PATCH, JOBS, || patch(jobs::change_all), "changeAllJobs")
        .described(
            "Pause all jobs that have not ended, or resume all that the operator paused",
            "Videos that have started end, and no others start.",
        )
        .takes::<jobs::JobChange>()
        .returns::<jobs::ChangedJobs>(200),
    endpoint(PATCH, "/admin/jobs/{job}", || patch(jobs::change), "changeJob")
        .described(
            "Pause a job, or resume one that the operator paused",
            "Videos that have started end, and no others start.",
        )
        .takes::<jobs::JobChange>()
        .returns::<JobRow>(200),
    endpoint(POST, "/admin/withdrawals", || post(server::withdraw), "withdrawVideo")
        .described(
            "Take a video down, or restore it",
            "Nothing of a withdrawn video is served or fetched. Every running server has the change.",
        )
        .takes::<server::WithdrawalRequest>()
        .returns::<server::WithdrawnVideo>(200),
    endpoint(POST, "/admin/ledger-audits", || post(server::audit_ledger), "auditLedger")
        .described(
            "Recompute every balance of the ledger from its entries",
            "The report lists each balance that differs from its entries. Nothing is changed.",
        )
        .returns::<Value>(200),
    endpoint(GET, "/admin/audit-log", || get(server::audit_log), "listAuditLog")
        .described(
            "List what operators did, newest first",
            "Each entry has the operator, the operation, what it concerned, and its result.",
        )
        .lists::<AuditRow>(),
    endpoint(GET, "/admin/openapi.json", || get(server::open_api), "getAdminDocument")
        .described("Return this document", "It has all operations of the admin API.")
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
