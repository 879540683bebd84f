//! Jobs for people: the holder of an account in a browser, and the operator.

use std::sync::Arc;

use super::{AccountJobs, Job, PauseReason};
use crate::{
    accounts::V1Error,
    directory::Account,
    error::{Error, ErrorKind, Result, Retry},
    ids::JobId,
    page::{Page, PageRequest},
};

impl AccountJobs {
    /// The newest jobs of an account.
    ///
    /// # Errors
    /// [`V1Error::Internal`].
    pub async fn newest(self: &Arc<Self>, account: &Account, limit: u32) -> Result<Vec<Job>, V1Error> {
        let (jobs, account) = (Arc::clone(self), account.id.clone());
        let work = async move {
            let page = PageRequest { limit, ..PageRequest::first() };
            let found = jobs.context.retry_store(|| jobs.store.jobs_of(&account, page.clone())).await;
            Ok(found.map_err(V1Error::from_store_error)?.items)
        };
        self.context.task(work).await
    }

    /// Cancels a job of an account: items that have not started cost nothing. A job that has ended is unchanged.
    ///
    /// # Errors
    /// [`V1Error::NotFound`], also for a job of another account; [`V1Error::Internal`].
    pub async fn cancel_for(self: &Arc<Self>, account: &Account, id: &str) -> Result<Job, V1Error> {
        let (jobs, account, id) = (Arc::clone(self), account.clone(), id.to_owned());
        self.context.task(async move { jobs.cancel_own(&account, &id).await }).await
    }

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
    /// [`ErrorKind::NotFound`]; the store's.
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
    /// [`ErrorKind::NotFound`]; the store's.
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
    Error::new(ErrorKind::NotFound, Retry::Never, "there is no such job")
}
