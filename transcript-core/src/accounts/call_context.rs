//! What all parts of the v1 API share: the engine with its runtime and timeouts, clock, randomness and settings.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{AccountsOptions, EffectivePlan, V1Error};
use crate::{
    directory::Account,
    engine::Transcripts,
    error::Result,
    retry::{retry_store, with_timeout},
    time::{Clock, Random, Timestamp},
};

/// Runs calls on the engine's runtime, and store calls with the engine's timeouts and retries.
#[derive(Debug)]
pub(super) struct CallContext {
    pub(super) transcripts: Transcripts,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) options: AccountsOptions,
}

impl CallContext {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn random_id(&self, prefix: &str) -> String {
        crate::ids::random_id(self.random.as_ref(), prefix)
    }

    pub(super) fn effective_plan(&self, account: &Account, now: Timestamp) -> EffectivePlan {
        EffectivePlan::new(account, &self.options, now)
    }

    /// Runs `work` on the engine's runtime, so that any executor may await it. A store error becomes
    /// [`V1Error::Internal`].
    ///
    /// # Cancellation
    /// Dropping the future stops the work at its next await.
    pub(super) async fn task<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, V1Error>> + Send + 'static,
    ) -> Result<T, V1Error> {
        match self.transcripts.task(work).await {
            Ok(outcome) => outcome,
            Err(error) => Err(V1Error::from_store_error(error)),
        }
    }

    /// Runs `work` on the engine's runtime; `None` if the runtime ends first.
    ///
    /// # Cancellation
    /// Once polled, the work continues to its end, also when the future is dropped.
    pub(super) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.transcripts.background().detach(async move {
            // Fails only if the caller has left.
            let _ = sender.send(work.await);
        });
        receiver.await.ok()
    }

    /// Makes one store call, limited by the store timeout.
    pub(super) async fn call_store<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T, V1Error> {
        let timeout = self.transcripts.options().store_timeout;
        with_timeout(timeout, call).await.map_err(V1Error::from_store_error)
    }

    /// Makes an idempotent store call, with the retries of calls that a caller waits for.
    pub(super) async fn retry_store<T, F>(&self, call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        retry_store(self.transcripts.options().request_policy(), call).await
    }
}
