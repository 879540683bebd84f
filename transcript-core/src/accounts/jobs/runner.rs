//! The loop that works on due items and lists.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::task::{Id, JoinSet};

use super::{AccountJobs, ClaimLimits, worker::Claim};
use crate::{
    failure_log::FailureLog,
    ids::AccountId,
    retry::{deadline_after, is_over},
    video::Platform,
};

/// Pause between two looks at the store, if nothing is due and nothing wakes the runner.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the checks of paused jobs, if none is due any more, and of the deletion of a few old ones.
const PAUSE_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after a full round of checks, as a multiple of its duration: many jobs that stay paused must not load an
/// idle store all the time.
const ROUND_PAUSE: u32 = 3;
/// How long the stop waits for the store to take the claims back. The others expire.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);

/// Works on due items and lists until `stop` resolves; then returns what this process has claimed.
///
/// `newest` returns the jobs with the newest settings. One process runs it once.
pub async fn run_jobs(
    newest: impl Fn() -> Arc<AccountJobs> + Send + Sync,
    stop: impl Future<Output = ()> + Send,
) {
    let mut runner = Runner {
        tasks: JoinSet::new(),
        listing: JoinSet::new(),
        platforms: HashMap::new(),
        claims: HashMap::new(),
        accounts: HashMap::new(),
        failures: FailureLog::new(),
    };
    tokio::select! {
        () = runner.run(&newest) => {}
        () = stop => {}
    }
    runner.stop(&newest()).await;
}

#[derive(Debug)]
struct Runner {
    tasks: JoinSet<()>,
    /// The tasks that read a page of a list: at most one for each platform, whose requests for lists run one at a time.
    listing: JoinSet<()>,
    /// The platforms of the lists that are read.
    platforms: HashMap<Id, Platform>,
    /// The claims of the running tasks.
    claims: HashMap<Id, Claim>,
    /// The accounts of the running items.
    accounts: HashMap<Id, AccountId>,
    failures: FailureLog,
}

impl Runner {
    async fn run(&mut self, newest: &(impl Fn() -> Arc<AccountJobs> + Send + Sync)) {
        let now = deadline_after(Duration::ZERO);
        let (mut next_check, mut next_listing, mut next_deletion) = (now, now, now);
        loop {
            let jobs = newest();
            if is_over(next_check) {
                let started = deadline_after(Duration::ZERO);
                let checked = jobs.check_pauses().await;
                // Many paused jobs must not delay the one whose account has just paid.
                let has_more = matches!(checked, Ok(true));
                let pause =
                    if has_more { started.elapsed().saturating_mul(ROUND_PAUSE) } else { PAUSE_INTERVAL };
                next_check = deadline_after(pause.min(PAUSE_INTERVAL));
                self.report(checked.map(drop));
            }
            if is_over(next_deletion) {
                next_deletion = deadline_after(PAUSE_INTERVAL);
                self.report(jobs.delete_old().await);
            }
            if is_over(next_listing) {
                next_listing = deadline_after(POLL_INTERVAL);
                self.start_listing(&jobs).await;
            }
            self.start_items(&jobs).await;
            let wake = Arc::clone(&jobs.wake);
            tokio::select! {
                Some(ended) = self.tasks.join_next_with_id() => self.remove_task(&ended.map(|(id, ())| id)),
                Some(ended) = self.listing.join_next_with_id() => {
                    self.remove_task(&ended.map(|(id, ())| id));
                    next_listing = deadline_after(Duration::ZERO);
                }
                () = wake.notified() => next_listing = deadline_after(Duration::ZERO),
                () = tokio::time::sleep_until(next_check.min(deadline_after(POLL_INTERVAL))) => {}
            }
            while let Some(ended) = self.tasks.try_join_next_with_id() {
                self.remove_task(&ended.map(|(id, ())| id));
            }
        }
    }

    /// Claims as many items as this process has free places for.
    ///
    /// An account gets half of the places that others leave: its work may take half an hour, and each further account
    /// must find a place.
    async fn start_items(&mut self, jobs: &Arc<AccountJobs>) {
        let places = jobs.context.options.job_items_at_once;
        let running = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        let mut limits = ClaimLimits::new(places.saturating_sub(running), places);
        if limits.items == 0 {
            return;
        }
        self.accounts.values().for_each(|account| limits.add(account));
        let claimed = jobs.claim(limits).await;
        let items = match claimed {
            Ok(items) => items,
            Err(error) => return self.report(Err(error)),
        };
        self.report(Ok(()));
        for item in items {
            let (claim, account) = (Claim::Item(item.claim.clone()), item.account.clone());
            let task = self.tasks.spawn(Arc::clone(jobs).work(item));
            self.claims.insert(task.id(), claim);
            self.accounts.insert(task.id(), account);
        }
    }

    /// Claims a page of a list for each platform of which none is being read.
    async fn start_listing(&mut self, jobs: &Arc<AccountJobs>) {
        loop {
            let busy: Vec<Platform> = self.platforms.values().copied().collect();
            let listing = match jobs.claim_listing(&busy).await {
                Ok(Some(listing)) => listing,
                claimed => return self.report(claimed.map(drop)),
            };
            let (claim, platform) = (Claim::Listing(listing.claim.clone()), listing.list.list.platform());
            let task = self.listing.spawn(Arc::clone(jobs).read_page(listing));
            self.claims.insert(task.id(), claim);
            self.platforms.insert(task.id(), platform);
        }
    }

    /// Removes an ended task. The claim of one that panicked expires.
    fn remove_task(&mut self, ended: &Result<Id, tokio::task::JoinError>) {
        let id = match ended {
            Ok(id) => *id,
            Err(error) => {
                tracing::error!(%error, "job task panicked");
                error.id()
            }
        };
        self.claims.remove(&id);
        self.accounts.remove(&id);
        self.platforms.remove(&id);
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

    async fn stop(mut self, jobs: &Arc<AccountJobs>) {
        self.tasks.shutdown().await;
        self.listing.shutdown().await;
        let returns = self.claims.into_values().map(|claim| Arc::clone(jobs).give_up(claim));
        if !run_within(RETURN_TIMEOUT, returns).await {
            tracing::warn!("claims of jobs were not returned in time; they expire");
        }
    }
}

/// Runs calls at the same time; `false` if some did not end within the timeout, and were dropped.
async fn run_within(
    timeout: Duration,
    calls: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>,
) -> bool {
    let mut running = JoinSet::new();
    for call in calls {
        running.spawn(call);
    }
    let rest = async { while running.join_next().await.is_some() {} };
    tokio::time::timeout(timeout, rest).await.is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn returns_to_hanging_store_end_at_timeout() {
        let returns = run_within(RETURN_TIMEOUT, (0..32).map(|_| std::future::pending()));
        let late = RETURN_TIMEOUT + Duration::from_secs(1);
        assert!(matches!(tokio::time::timeout(late, returns).await, Ok(false)));
    }

    #[tokio::test(start_paused = true)]
    async fn returns_to_slow_store_run_at_the_same_time() {
        let returned = Arc::new(AtomicU32::new(0));
        let returns = (0..32).map(|index| {
            let returned = Arc::clone(&returned);
            async move {
                // One of them hangs, and delays no other.
                tokio::time::sleep(Duration::from_secs(if index == 0 { 3_600 } else { 4 })).await;
                returned.fetch_add(1, Relaxed);
            }
        });
        assert!(!run_within(RETURN_TIMEOUT, returns).await);
        assert_eq!(returned.load(Relaxed), 31);
    }
}
