//! Jobs of accounts.

use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AdminResult, failure,
    request::{PageBody, RequestFields, page},
};
use crate::{
    api::{PathName, json, path_name},
    operations::{JobRow, Operations},
};

/// Change of a job, or of all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobChange {
    /// Whether the operator pauses it: videos that have started end, and nothing else starts.
    paused: bool,
}

/// Changed jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChangedJobs {
    /// Number of jobs that were changed.
    changed: u64,
}

pub(super) async fn list(operations: Operations, uri: Uri) -> AdminResult {
    let page = operations.list_jobs(page(uri.query())?).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &PageBody::<JobRow>::new(&page)))
}

pub(super) async fn change(
    operations: Operations,
    path: PathName,
    RequestFields(JobChange { paused }): RequestFields<JobChange>,
) -> AdminResult {
    let job = operations.set_job_paused(&path_name(path), paused).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &JobRow::from(&job)))
}

pub(super) async fn change_all(
    operations: Operations,
    RequestFields(JobChange { paused }): RequestFields<JobChange>,
) -> AdminResult {
    let changed = operations.set_all_jobs_paused(paused).await.map_err(failure)?;
    Ok(json(StatusCode::OK, &ChangedJobs { changed }))
}
