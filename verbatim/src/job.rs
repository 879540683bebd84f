//! Background jobs of a process, which end when they are asked to.

use std::fmt;

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

/// A running job. Drop stops it at once; the next start continues with what is left.
#[derive(Debug)]
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

    /// Stops the job and waits for its end. Mails that are being sent are finished; another running call is dropped.
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
    pub(crate) async fn sleep(&mut self, pause: std::time::Duration) -> bool {
        tokio::select! {
            _ = &mut self.0 => true,
            () = tokio::time::sleep(pause) => false,
        }
    }

    /// Runs one round of the job in a task, so that a panic ends one round and not all.
    ///
    /// `None` if the job must end; the round was dropped then.
    pub(crate) async fn run<T: Send + 'static>(
        &mut self,
        round: impl Future<Output = T> + Send + 'static,
    ) -> Option<Result<T, tokio::task::JoinError>> {
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
}
