//! Tasks on the engine's runtimes.

use std::sync::Arc;

use tokio::{runtime::Handle, task::JoinSet};
use tracing::Instrument as _;

use super::{EngineInner, Transcripts, retry::RetryBudget, single_flight::ActivityGuard, stopped};
use crate::error::Result;

impl EngineInner {
    /// The runtime for a call from this thread: the caller runtime on its own threads, else the engine's.
    pub(super) fn current_runtime(&self) -> &Handle {
        let is_within = |caller_runtime: &&Handle| {
            Handle::try_current().is_ok_and(|current_runtime| current_runtime.id() == caller_runtime.id())
        };
        self.caller_runtime.as_ref().filter(is_within).unwrap_or(&self.runtime)
    }
}

impl Transcripts {
    /// Runs work on the runtime for calls from this thread, and waits for it through a channel.
    ///
    /// # Cancellation
    /// Dropping the future ends the work at its next await.
    pub(crate) async fn task<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        // Alone in a set, so that dropping this future aborts the work.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work.in_current_span(), self.inner.current_runtime());
        match tasks.join_next().await {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) | None => Err(stopped()),
        }
    }

    /// The engine's own runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.inner.runtime
    }

    /// Retry budget of store calls that a caller waits for.
    pub(crate) fn request_budget(&self) -> RetryBudget {
        self.inner.request_budget()
    }

    /// Retry budget of store calls that must not be lost: as long as a hold lasts.
    pub(crate) fn lease_budget(&self) -> RetryBudget {
        self.inner.lease_budget()
    }

    /// Runs work to its end on the engine's own runtime; [`Transcripts::close`] waits for it.
    pub(crate) fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        let running = ActivityGuard::begin(Arc::clone(&self.inner.flights));
        let work = async move {
            work.await;
            drop(running);
        };
        self.inner.runtime.spawn(work.in_current_span());
    }
}
