//! Background jobs of a process, which end when they are asked to.

use std::{fmt, time::Duration};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinError, JoinHandle, JoinSet},
    time::sleep,
};
use transcript_core::{FailureLog, Result};

/// A running job. Drop stops it at once; the next start continues with what is left.
#[derive(Debug)]
#[must_use = "dropping it stops the job"]
pub struct JobHandle {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl JobHandle {
    /// Starts a job, which ends when the receiver resolves.
    pub(crate) fn start<F>(runtime: &Handle, job: impl FnOnce(Stopped) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        Self { stop: Some(stop), task: runtime.spawn(job(Stopped(stopped))) }
    }

    /// Stops the job and waits for its end.
    ///
    /// A mail that is being sent has 30 seconds, a webhook five; another running call is dropped.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        // A panic was logged where it happened.
        let _ = (&mut self.task).await;
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The request that a job ends.
pub(crate) struct Stopped(oneshot::Receiver<()>);

impl fmt::Debug for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopped")
    }
}

impl Stopped {
    /// Waits until the job must end.
    #[cfg(feature = "accounts")]
    pub(crate) async fn wait(self) {
        // An error means that the handle was dropped, which ends the job too.
        let _ = self.0.await;
    }

    /// Waits; returns whether the job must end.
    pub(crate) async fn sleep(&mut self, pause: Duration) -> bool {
        tokio::select! {
            _ = &mut self.0 => true,
            () = sleep(pause) => false,
        }
    }

    /// Runs one round of the job in a task, so that a panic ends one round and not all.
    ///
    /// `None` if the job must end; the round was dropped then.
    pub(crate) async fn run<T: Send + 'static>(
        &mut self,
        round: impl Future<Output = T> + Send + 'static,
    ) -> Option<Result<T, JoinError>> {
        let mut tasks = JoinSet::new();
        tasks.spawn(round);
        tokio::select! {
            _ = &mut self.0 => {
                tasks.shutdown().await;
                None
            }
            ended = tasks.join_next() => ended,
        }
    }

    /// Runs a round at once and after each pause, until the job must end.
    pub(crate) async fn repeat<F>(
        mut self,
        name: &'static str,
        pause: Duration,
        round: impl Fn() -> F + Send + Sync,
    ) where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (mut wait, log) = (Duration::ZERO, RoundLog::new(name));
        while !self.sleep(wait).await {
            let Some(ended) = self.run(round()).await else { break };
            log.record(&ended);
            wait = pause;
        }
    }
}

/// The log of a job's rounds. A lasting failure is logged when it begins, once a minute, and when it ends.
#[derive(Debug)]
pub(crate) struct RoundLog {
    name: &'static str,
    failures: FailureLog,
}

impl RoundLog {
    /// The log of the job with this name, with which its lines begin.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, failures: FailureLog::new() }
    }

    /// Logs how a round ended. A panic is always logged.
    pub(crate) fn record<T>(&self, ended: &Result<Result<T>, JoinError>) {
        let name = self.name;
        match ended {
            Ok(Ok(_)) => {
                if let Some(failures) = self.failures.succeeded() {
                    tracing::info!(failures, "{name} works again");
                }
            }
            Ok(Err(error)) => {
                if let Some(failures) = self.failures.failed() {
                    tracing::warn!(%error, failures, "{name} failed; it is repeated");
                }
            }
            Err(error) => tracing::error!(%error, "{name} panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[expect(unused_must_use, reason = "the compiler warns of a handle that is dropped at once")]
    async fn job_handle_must_be_kept() {
        let (running, ended) = oneshot::channel::<()>();
        JobHandle::start(&Handle::current(), |_| async move {
            let _running = running;
            std::future::pending::<()>().await;
        });
        ended.await.unwrap_err();
    }
}
