//! The loop that works on due items.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::task::{Id, JoinSet};

use super::{AccountJobs, ItemClaim};
use crate::{
    failure_log::FailureLog,
    retry::{deadline_after, is_over},
};

/// Pause between two looks at the store, if nothing is due and nothing wakes the runner.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the checks of paused jobs.
const PAUSE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the deletion of old jobs.
const DELETE_INTERVAL: Duration = Duration::from_secs(600);

/// Works on due items until `stop` resolves; then returns what this process has claimed.
///
/// `newest` returns the jobs with the newest settings. One process runs it once.
pub async fn run_jobs(
    newest: impl Fn() -> Arc<AccountJobs> + Send + Sync,
    stop: impl Future<Output = ()> + Send,
) {
    let mut runner = Runner { tasks: JoinSet::new(), claims: HashMap::new(), failures: FailureLog::new() };
    tokio::select! {
        () = runner.run(&newest) => {}
        () = stop => {}
    }
    runner.stop(&newest()).await;
}

#[derive(Debug)]
struct Runner {
    tasks: JoinSet<()>,
    /// The claims of the running tasks.
    claims: HashMap<Id, ItemClaim>,
    failures: FailureLog,
}

impl Runner {
    async fn run(&mut self, newest: &(impl Fn() -> Arc<AccountJobs> + Send + Sync)) {
        let (mut next_check, mut next_delete) =
            (deadline_after(Duration::ZERO), deadline_after(Duration::ZERO));
        loop {
            let jobs = newest();
            if is_over(next_check) {
                next_check = deadline_after(PAUSE_INTERVAL);
                self.report(jobs.check_pauses().await);
            }
            if is_over(next_delete) {
                next_delete = deadline_after(DELETE_INTERVAL);
                self.report(jobs.delete_old().await);
            }
            self.start_items(&jobs).await;
            let wake = Arc::clone(&jobs.wake);
            tokio::select! {
                Some(ended) = self.tasks.join_next_with_id() => self.forget(&ended.map(|(id, ())| id)),
                () = wake.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
            while let Some(ended) = self.tasks.try_join_next_with_id() {
                self.forget(&ended.map(|(id, ())| id));
            }
        }
    }

    /// Claims as many items as this process has free places for.
    async fn start_items(&mut self, jobs: &Arc<AccountJobs>) {
        let places = jobs.context.options.job_items_at_once as usize;
        let free = u32::try_from(places.saturating_sub(self.tasks.len())).unwrap_or(u32::MAX);
        if free == 0 {
            return;
        }
        let claimed = jobs.claim(free).await;
        let items = match claimed {
            Ok(items) => items,
            Err(error) => return self.report(Err(error)),
        };
        self.report(Ok(()));
        for item in items {
            let claim = item.claim.clone();
            let task = self.tasks.spawn(Arc::clone(jobs).work(item));
            self.claims.insert(task.id(), claim);
        }
    }

    /// Removes an ended task. The panic of one was logged; its claim expires.
    fn forget(&mut self, ended: &Result<Id, tokio::task::JoinError>) {
        let id = ended.as_ref().map_or_else(tokio::task::JoinError::id, |id| *id);
        self.claims.remove(&id);
    }

    fn report(&self, result: crate::error::Result<()>) {
        match result {
            Ok(()) => drop(self.failures.succeeded()),
            Err(error) => {
                if let Some(failures) = self.failures.failed() {
                    tracing::warn!(%error, failures, "job store call failed");
                }
            }
        }
    }

    async fn stop(mut self, jobs: &AccountJobs) {
        self.tasks.shutdown().await;
        jobs.give_up(self.claims.into_values()).await;
    }
}
