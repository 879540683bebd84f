//! Jobs of accounts.

use std::sync::Arc;

use transcript_core::{
    Error, ErrorKind, Page, PageRequest, Result,
    accounts::jobs::{AccountJobs, Job, JobStatus, PauseReason},
    ids::JobId,
};

use super::{Completed, Operation, Operations};

/// Prefix of the ids of jobs.
const ID_PREFIX: &str = "job_";

impl Operations {
    fn jobs(&self) -> Arc<AccountJobs> {
        Arc::clone(&self.verbatim.accounts().jobs)
    }

    /// Lists the jobs of all accounts that have not ended, in the order of their ids.
    pub(crate) async fn list_jobs(&self, page: PageRequest) -> Result<Page<Job>> {
        let jobs = self.jobs();
        self.record_list("jobs.list", async move { jobs.unfinished(page).await }).await
    }

    /// Pauses a job, or ends the operator's pause; returns it. A job that has ended is unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] without such a job.
    pub(crate) async fn set_job_paused(&self, id: &str, is_paused: bool) -> Result<Job> {
        if !id.starts_with(ID_PREFIX) || id.len() > 100 {
            let message = format!("no job has the id {id:?}");
            return Err(Error::not_found(message));
        }
        let (jobs, job) = (self.jobs(), JobId::new(id));
        let operation = Operation::new(name(is_paused)).on(id);
        let work = async move {
            let job = if is_paused { jobs.pause(&job).await? } else { jobs.resume(&job).await? };
            let refusal = job.status.has_ended().then(|| "it has ended".to_owned());
            Ok(Completed { refusal, ..Completed::done(job) })
        };
        self.record(operation, work).await
    }

    /// Pauses all jobs that have not ended, or ends the operator's pause of all; returns the number of changed ones.
    pub(crate) async fn set_all_jobs_paused(&self, is_paused: bool) -> Result<u64> {
        let jobs = self.jobs();
        let operation = Operation::new(name(is_paused)).with(Some("all".to_owned()));
        let work = async move {
            let (mut count, mut page) = (0, PageRequest::first());
            loop {
                let found = jobs.unfinished(page.clone()).await?;
                for job in found.items.iter().filter(|job| is_paused_by_operator(job) != is_paused) {
                    let changed = match is_paused {
                        true => jobs.pause(&job.id).await,
                        false => jobs.resume(&job.id).await,
                    };
                    match changed {
                        Ok(_) => count += 1,
                        // It was deleted in between.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
                match found.next {
                    Some(next) => page.after = Some(next),
                    None => return Ok(Completed::done(count)),
                }
            }
        };
        self.record(operation, work).await
    }
}

fn name(is_paused: bool) -> &'static str {
    if is_paused { "jobs.pause" } else { "jobs.resume" }
}

fn is_paused_by_operator(job: &Job) -> bool {
    job.status == JobStatus::Paused && job.pause_reason == Some(PauseReason::Operator)
}
