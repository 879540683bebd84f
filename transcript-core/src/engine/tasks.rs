//! Running things on the engine's own runtimes, whoever waits for them.

use std::sync::Arc;

use tokio::{runtime::Handle, task::JoinSet};
use tracing::Instrument as _;

use super::{Inner, Transcripts, errands::Running, retry::Patience, stopped};
use crate::error::Result;

impl Inner {
    /// The runtime for what is asked for from here: the one beside our own for what is asked from within it.
    pub(super) fn here(&self) -> &Handle {
        let is_within = |beside: &&Handle| Handle::try_current().is_ok_and(|here| here.id() == beside.id());
        self.beside.as_ref().filter(is_within).unwrap_or(&self.runtime)
    }
}

impl Transcripts {
    /// Runs something on the runtime for what is asked for from here, and waits for it through a channel.
    ///
    /// # Cancellation
    /// Dropping the future ends the work at its next await.
    pub(crate) async fn task<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        // Alone in a set, so that dropping this future ends the work.
        let mut alone = JoinSet::new();
        alone.spawn_on(work.in_current_span(), self.inner.here());
        match alone.join_next().await {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) | None => Err(stopped()),
        }
    }

    /// The engine's own runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.inner.runtime
    }

    /// How long calls of stores are repeated while a caller waits.
    pub(crate) fn patience(&self) -> Patience {
        self.inner.brief()
    }

    /// How long calls of stores are repeated for what must not be lost: as long as a hold lasts.
    pub(crate) fn long_patience(&self) -> Patience {
        self.inner.long()
    }

    /// Runs something to its end on the engine's own runtime; [`Transcripts::close`] waits for it.
    pub(crate) fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        let running = Running::begin(Arc::clone(&self.inner.errands));
        let work = async move {
            work.await;
            drop(running);
        };
        self.inner.runtime.spawn(work.in_current_span());
    }
}
