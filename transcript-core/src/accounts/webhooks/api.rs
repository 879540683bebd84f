//! The log of a job's deliveries.

use std::sync::Arc;

use super::{AccountWebhooks, JobEventLog};
use crate::{
    accounts::{RequestGuard, V1Error, jobs::Job},
    directory::Account,
};

impl AccountWebhooks {
    /// The events of a job of the request's account, with the attempts to send them, the oldest first.
    ///
    /// # Errors
    /// [`V1Error::NotFound`], also for a job of another account; [`V1Error::Internal`].
    pub async fn deliveries(
        self: &Arc<Self>,
        guard: RequestGuard,
        id: &str,
    ) -> Result<(Job, Vec<JobEventLog>), V1Error> {
        self.deliveries_for(&guard.caller().account, id).await
    }

    /// A job of an account with its events and the attempts to send them.
    ///
    /// # Errors
    /// As [`AccountWebhooks::deliveries`].
    pub async fn deliveries_for(
        self: &Arc<Self>,
        account: &Account,
        id: &str,
    ) -> Result<(Job, Vec<JobEventLog>), V1Error> {
        let (webhooks, account, id) = (Arc::clone(self), account.clone(), id.to_owned());
        let work = async move {
            let job = webhooks.jobs.own_job(&account, &id).await?;
            let found = webhooks.context.retry_store(|| webhooks.store.events(&job.id)).await;
            Ok((job, found.map_err(V1Error::from_store_error)?))
        };
        self.context.task(work).await
    }
}
