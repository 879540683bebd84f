//! Where the engine's calls run.

use tokio::{runtime::Handle, task::JoinSet};
use tracing::Instrument as _;

use super::{EngineInner, Transcripts, stopped};
use crate::{
    error::{Error, ErrorCause, Result},
    tasks::{BackgroundTasks, boxed},
};

impl EngineInner {
    /// The runtime that this thread runs: the caller runtime or the engine's; `None` on any other thread.
    fn entered_runtime(&self) -> Option<&Handle> {
        let entered = Handle::try_current().ok()?;
        let known = self.caller_runtime.iter().chain([self.tasks.runtime()]);
        known.into_iter().find(|runtime| runtime.id() == entered.id())
    }

    /// The runtime for a call from this thread: the caller runtime on its own threads, else the engine's.
    pub(super) fn current_runtime(&self) -> &Handle {
        self.entered_runtime().unwrap_or(self.tasks.runtime())
    }
}

impl Transcripts {
    /// Runs work on the runtime for calls from this thread: in place if the thread runs it, else in a task.
    ///
    /// # Errors
    /// Unavailable if the runtime ends first.
    ///
    /// # Cancellation
    /// Dropping the future ends the work at its next await.
    pub(crate) async fn task<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        if self.inner.entered_runtime().is_some() {
            // Boxed, so that the futures of callers stay small.
            return Ok(Box::pin(work).await);
        }
        // Alone in a set, so that dropping this future aborts the work.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(boxed(work.in_current_span()), self.inner.tasks.runtime());
        match tasks.join_next().await {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) if error.is_panic() => {
                Err(Error::unexpected("the task panicked").with_cause(Some(ErrorCause::new(error))))
            }
            Some(Err(_)) | None => Err(stopped()),
        }
    }

    /// Tasks on the engine's own runtime; [`Transcripts::close`] waits for them.
    pub(crate) fn background(&self) -> &BackgroundTasks {
        &self.inner.tasks
    }
}
