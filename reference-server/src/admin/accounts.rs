//! Accounts of the v1 API.

use std::sync::Arc;

use axum::response::IntoResponse;
use http::{StatusCode, Uri, header::CONTENT_TYPE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transcript_core::wire::v1::StatementLine;

use super::{
    AdminResult, failure,
    request::{PageBody, RequestFields, page},
};
use crate::{
    api::{JSON, PathName, V1ErrorResponse, json, path_name},
    operations::{
        AccountRow, CREDITS_MAX, DeleteOutcome, MEMO_MAX, NewAccountRow, Operations, RevokedGrantRow,
    },
    routes::ExportBody,
};

/// A new account.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAccountRequest {
    /// Name of the account: 1 to 100 visible characters on one line, without `@`.
    #[schemars(length(min = 1), regex(pattern = "^[^@]*$"))]
    name: String,
    /// Number of credits, which do not expire, beside those of the free plan.
    #[serde(default)]
    #[schemars(range(max = CREDITS_MAX))]
    credits: u64,
    /// Reason for the credits, shown in the account's statement: at most 256 bytes.
    #[serde(default = "from_operator")]
    #[schemars(length(max = MEMO_MAX))]
    memo: String,
}

/// A grant of credits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewGrant {
    /// Number of credits.
    #[schemars(range(min = 1, max = CREDITS_MAX))]
    credits: u64,
    /// Name of the grant: a repeated grant with this name has no effect, so a request can be repeated safely.
    #[schemars(length(min = 1))]
    id: String,
    /// Reason, shown in the account's statement: at most 256 bytes.
    #[serde(default = "from_operator")]
    #[schemars(length(max = MEMO_MAX))]
    memo: String,
}

/// Change of an account.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountChange {
    /// Whether the account is blocked: its keys are refused.
    blocked: bool,
}

/// A deletion.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteRequest {
    /// Deletes the account despite a subscription, or an order that may still be paid.
    #[serde(default)]
    anyway: bool,
}

/// A deleted account.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DeletedAccount {
    /// What the operator has to know or do.
    notes: Vec<String>,
}

fn from_operator() -> String {
    "from the operator".to_owned()
}

pub(super) async fn list(operations: Operations, uri: Uri) -> AdminResult {
    let page = operations.list_accounts(page(uri.query())?).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &PageBody::<AccountRow>::new(&page)))
}

pub(super) async fn create(
    operations: Operations,
    RequestFields(NewAccountRequest { name, credits, memo }): RequestFields<NewAccountRequest>,
) -> AdminResult {
    check_credits(0, credits)?;
    let new = operations.create_account(&name, credits, &memo).await.map_err(failure)?;
    Ok(json(StatusCode::CREATED, &NewAccountRow::from(&new)))
}

pub(super) async fn show(operations: Operations, path: PathName) -> AdminResult {
    let view = operations.show_account(&path_name(path)).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &AccountRow::from(&view)))
}

pub(super) async fn change(
    operations: Operations,
    path: PathName,
    RequestFields(AccountChange { blocked }): RequestFields<AccountChange>,
) -> AdminResult {
    let account = operations.set_account_blocked(&path_name(path), blocked).await.map_err(failure)?;
    let view = operations.verbatim().accounts().admin.show(account.id.as_str()).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &AccountRow::from(&view)))
}

pub(super) async fn new_key(operations: Operations, path: PathName) -> AdminResult {
    let new = operations.issue_account_key(&path_name(path)).await.map_err(failure)?;
    Ok(json(StatusCode::CREATED, &NewAccountRow::from(&new)))
}

pub(super) async fn grant(
    operations: Operations,
    path: PathName,
    RequestFields(NewGrant { credits, id, memo }): RequestFields<NewGrant>,
) -> AdminResult {
    check_credits(1, credits)?;
    let granted = operations.grant_or_find(&path_name(path), &id, credits, &memo).await;
    let (view, _) = granted.map_err(failure)?;
    Ok(json(StatusCode::OK, &AccountRow::from(&view)))
}

pub(super) async fn revoke_grant(operations: Operations, path: PathName<(String, String)>) -> AdminResult {
    let (account, grant) = path_name(path);
    let revoked = operations.revoke_grant(&account, &grant).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &RevokedGrantRow::from(&revoked)))
}

pub(super) async fn statement(operations: Operations, path: PathName, uri: Uri) -> AdminResult {
    let page = operations.account_statement(&path_name(path), page(uri.query())?).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &PageBody::<StatementLine>::new(&page)))
}

pub(super) async fn export(operations: Operations, path: PathName) -> AdminResult {
    let export = operations.export_account(&path_name(path)).await.map_err(failure)?;
    let admin = Arc::clone(&operations.verbatim().accounts().admin);
    let body = ExportBody::new(admin, &export).map_err(failure)?;
    Ok(([(CONTENT_TYPE, JSON)], body.into_body()).into_response())
}

pub(super) async fn delete(
    operations: Operations,
    path: PathName,
    RequestFields(DeleteRequest { anyway }): RequestFields<DeleteRequest>,
) -> AdminResult {
    let view = operations.show_account(&path_name(path)).await.map_err(failure)?;
    match operations.delete_account(&view.account, anyway).await.map_err(failure)? {
        DeleteOutcome::Deleted { notes } => Ok(json(StatusCode::OK, &DeletedAccount { notes })),
        DeleteOutcome::Refused(why) => {
            let message =
                format!("Nothing was deleted: {why} ({{\"anyway\": true}} deletes it nevertheless).");
            Err(V1ErrorResponse::new(StatusCode::CONFLICT, message))
        }
    }
}

fn check_credits(min: u64, credits: u64) -> Result<(), V1ErrorResponse> {
    if (min..=CREDITS_MAX).contains(&credits) {
        return Ok(());
    }
    Err(V1ErrorResponse::bad("credits", format!("give a number from {min} to {CREDITS_MAX}")))
}
