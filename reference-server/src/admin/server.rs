//! The archive, the ledger and the audit log.

use axum::extract::State;
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transcript_core::video::VideoLink;

use super::{
    AdminResult, AdminState, document, failure,
    request::{PageBody, RequestFields, page},
};
use crate::{
    api::json,
    operations::{AuditRow, Operations, audit_report_json},
    response_cache::EXPIRE,
};

/// Withdrawal of a video.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WithdrawalRequest {
    /// Link to the video, or a YouTube id.
    #[schemars(length(min = 1, max = VideoLink::LENGTH_MAX))]
    link: String,
    /// Whether the video is withdrawn; false restores it.
    #[serde(default = "yes")]
    withdrawn: bool,
}

/// A video that was withdrawn or restored.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WithdrawnVideo {
    /// The video: platform and id.
    video: String,
    /// Whether it is withdrawn now.
    withdrawn: bool,
    /// Whether it was withdrawn before.
    was_withdrawn: bool,
}

fn yes() -> bool {
    true
}

pub(super) async fn withdraw(
    State(state): State<AdminState>,
    operations: Operations,
    RequestFields(WithdrawalRequest { link, withdrawn }): RequestFields<WithdrawalRequest>,
) -> AdminResult {
    let done = operations.withdraw(&link, withdrawn).await;
    // Also after an error, whose outcome may be unknown.
    state.bodies.require_reading();
    let done = done.map_err(failure)?;
    // Afterwards every running server serves the change.
    tokio::time::sleep(EXPIRE).await;
    let body = WithdrawnVideo { video: done.video.to_string(), withdrawn, was_withdrawn: done.was_withdrawn };
    Ok(json(StatusCode::OK, &body))
}

pub(super) async fn audit_ledger(operations: Operations) -> AdminResult {
    let report = operations.audit_ledger().await.map_err(failure)?;
    Ok(json(StatusCode::OK, &audit_report_json(&report)))
}

pub(super) async fn audit_log(operations: Operations, uri: Uri) -> AdminResult {
    let page = operations.audit_log(page(uri.query())?).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &PageBody::<AuditRow>::new(&page)))
}

pub(super) async fn open_api() -> AdminResult {
    Ok(json(StatusCode::OK, &document::document()))
}
