//! Tasks that outlive the call that started them.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::{JoinError, JoinSet},
    time::sleep,
};
use tracing::Instrument as _;

use crate::{error::Result, failure_log::FailureLog, retry::with_timeout};

/// Number of pieces of work that run. A clone counts with the original.
#[derive(Clone, Debug, Default)]
pub struct ActivityCount(Arc<watch::Sender<usize>>);

impl ActivityCount {
    /// Counts work until the guard is dropped.
    pub fn begin(&self) -> ActivityGuard {
        self.0.send_modify(|count| *count += 1);
        ActivityGuard(self.clone())
    }

    /// Waits until nothing runs.
    pub async fn wait_until_idle(&self) {
        // The sender is in `self`, so this cannot fail here.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// Starts background tasks on a runtime and counts the running ones. A clone counts with the original.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundTasks {
    runtime: Handle,
    active: ActivityCount,
}

/// Work of one type for every task. The runtime's code for a task is compiled for each type of work.
pub(crate) fn boxed<T>(
    work: impl Future<Output = T> + Send + 'static,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(work)
}

/// Work that [`ActivityCount::wait_until_idle`] waits for; drop ends it.
#[derive(Debug)]
pub struct ActivityGuard(ActivityCount);

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

impl BackgroundTasks {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self { runtime, active: ActivityCount::default() }
    }

    /// The runtime of the tasks.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Counts work that runs elsewhere.
    pub(crate) fn begin(&self) -> ActivityGuard {
        self.active.begin()
    }

    /// Runs work to its end.
    pub(crate) fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        let running = self.begin();
        let work = async move {
            work.await;
            drop(running);
        };
        // Log lines of the work carry the span of the request that started it.
        self.runtime.spawn(boxed(work.in_current_span()));
    }

    /// Waits until nothing runs.
    pub(crate) async fn wait_until_idle(&self) {
        self.active.wait_until_idle().await;
    }
}

/// Leases work from a store and does it in tasks: work that hangs or panics delays no other.
#[derive(Debug)]
pub(crate) struct LeaseLoop {
    /// The first word of the log lines, such as `mail`.
    pub(crate) name: &'static str,
    /// The largest number of tasks at the same time.
    pub(crate) concurrency: u32,
    /// Pause between two leases if nothing wakes the loop.
    pub(crate) poll_interval: Duration,
    /// Timeout of a lease.
    pub(crate) store_timeout: Duration,
    /// How long the stop waits for the tasks. Others repeat what it interrupts when the leases expire.
    pub(crate) stop_timeout: Duration,
}

impl LeaseLoop {
    /// Does the work that `lease` returns, up to its limit, until `stop` resolves; then waits for the tasks.
    ///
    /// `wake` ends the pause before the next lease.
    pub(crate) async fn run<L, W, T>(
        &self,
        lease: impl Fn(u32) -> L,
        wake: impl Fn() -> W,
        stop: impl Future<Output = ()>,
    ) where
        L: Future<Output = Result<Vec<T>>>,
        W: Future<Output = ()>,
        T: Future<Output = ()> + Send + 'static,
    {
        let (running, stopped) = oneshot::channel();
        let mut tasks = JoinSet::new();
        let limit = async {
            stop.await;
            drop(running);
            sleep(self.stop_timeout).await;
        };
        tokio::select! {
            () = self.run_rounds(&mut tasks, lease, wake, stopped) => {}
            () = limit => tracing::warn!(tasks = tasks.len(), "{} tasks interrupted", self.name),
        }
        tasks.shutdown().await;
    }

    async fn run_rounds<L, W, T>(
        &self,
        tasks: &mut JoinSet<()>,
        lease: impl Fn(u32) -> L,
        wake: impl Fn() -> W,
        mut stopped: oneshot::Receiver<()>,
    ) where
        L: Future<Output = Result<Vec<T>>>,
        W: Future<Output = ()>,
        T: Future<Output = ()> + Send + 'static,
    {
        let failures = FailureLog::new();
        let permits =
            |running: usize| self.concurrency.saturating_sub(u32::try_from(running).unwrap_or(u32::MAX));
        loop {
            let limit = permits(tasks.len());
            let leased = match limit {
                0 => Ok(Vec::new()),
                _ => with_timeout(self.store_timeout, lease(limit)).await,
            };
            match leased {
                Ok(leased) => {
                    failures.succeeded();
                    leased.into_iter().for_each(|work| drop(tasks.spawn(work)));
                }
                Err(error) => {
                    if let Some(failures) = failures.failed() {
                        tracing::warn!(%error, failures, "{} lease failed", self.name);
                    }
                }
            }
            let has_permit = permits(tasks.len()) > 0;
            tokio::select! {
                _ = &mut stopped => break,
                // At full concurrency, neither a wake-up nor the timer matters.
                () = wake(), if has_permit => {}
                () = sleep(self.poll_interval), if has_permit => {}
                Some(ended) = tasks.join_next() => self.log_panic(ended),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            self.log_panic(ended);
        }
    }

    /// Logs a task that panicked. Its work stays leased, and is repeated when the lease expires.
    fn log_panic(&self, ended: Result<(), JoinError>) {
        if let Err(error) = ended {
            tracing::error!(%error, "{} task panicked", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::{failure_log::tests::WarningCounter, retry::deadline_after};

    const LOOP: LeaseLoop = LeaseLoop {
        name: "test",
        concurrency: 2,
        poll_interval: Duration::from_secs(1),
        store_timeout: Duration::from_secs(5),
        stop_timeout: Duration::from_secs(5),
    };

    /// Stops a loop after ten seconds, in which each lease returns one task. The number of leases, and the seconds.
    async fn run<T>(work: impl Fn(u32) -> T + Sync) -> (u32, u64)
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let (leases, started) = (AtomicU32::new(0), deadline_after(Duration::ZERO));
        let lease = |_: u32| std::future::ready(Ok(vec![work(leases.fetch_add(1, Ordering::Relaxed))]));
        LOOP.run(lease, std::future::pending::<()>, sleep(Duration::from_secs(10))).await;
        (leases.into_inner(), started.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn lease_loop_stop_waits_for_tasks_until_timeout() {
        // Tasks begin after 0, 1, 4, 5, 8 and 9 seconds.
        assert_eq!(run(|_| sleep(Duration::from_secs(4))).await, (6, 13));
        assert_eq!(run(|_| std::future::pending()).await, (2, 15));
    }

    #[tokio::test(start_paused = true)]
    async fn lease_loop_stop_does_not_wait_longer_for_hanging_store() {
        let started = deadline_after(Duration::ZERO);
        let (slow, lease) = (LeaseLoop { store_timeout: Duration::from_secs(60), ..LOOP }, |_: u32| {
            std::future::pending::<Result<Vec<std::future::Ready<()>>>>()
        });
        slow.run(lease, std::future::pending::<()>, async {}).await;
        assert_eq!(started.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn lease_loop_panicked_task_is_logged_and_frees_its_permit() {
        let counter = WarningCounter::default();
        let warnings = Arc::clone(&counter.0);
        let _subscribed = tracing::subscriber::set_default(counter);
        let work = |number: u32| async move {
            assert!(number >= 3, "a defect");
            sleep(Duration::from_secs(1)).await;
        };
        let (leases, _) = run(work).await;
        assert!(leases > 3, "{leases}");
        assert_eq!(warnings.load(Ordering::Relaxed), 3);
    }
}
