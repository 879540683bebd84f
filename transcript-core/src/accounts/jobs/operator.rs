//! Jobs of all accounts, for the operator.

use std::sync::Arc;

use super::{AccountJobs, Job, PauseReason};
use crate::{
    error::{Error, Result},
    ids::JobId,
    page::{Page, PageRequest},
};

impl AccountJobs {
    /// The jobs of all accounts that have not ended, in the order of their ids.
    ///
    /// # Errors
    /// The store's.
    pub async fn unfinished(self: &Arc<Self>, page: PageRequest) -> Result<Page<Job>> {
        let jobs = Arc::clone(self);
        let work = async move { jobs.context.retry_store(|| jobs.store.unfinished(page.clone())).await };
        self.context.transcripts.task(work).await?
    }

    /// Pauses a job for the operator; returns it. A job that has ended is unchanged.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`]; the store's.
    pub async fn pause(self: &Arc<Self>, id: &JobId) -> Result<Job> {
        let (jobs, id) = (Arc::clone(self), id.clone());
        let work = async move {
            let now = jobs.context.now();
            let paused = jobs.context.retry_store(|| jobs.store.pause(&id, now)).await?;
            paused.ok_or_else(no_job)
        };
        self.context.transcripts.task(work).await?
    }

    /// Ends the operator's pause of a job; returns the job. A job without such a pause is unchanged.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`]; the store's.
    pub async fn resume(self: &Arc<Self>, id: &JobId) -> Result<Job> {
        let (jobs, id) = (Arc::clone(self), id.clone());
        let work = async move {
            let now = jobs.context.now();
            jobs.context.retry_store(|| jobs.store.resume(&id, PauseReason::Operator, now)).await?;
            jobs.wake.notify_one();
            jobs.context.retry_store(|| jobs.store.job(&id)).await?.ok_or_else(no_job)
        };
        self.context.transcripts.task(work).await?
    }
}

#[cold]
fn no_job() -> Error {
    Error::not_found("there is no such job")
}
