//! An idempotency store that loses completed responses: broken on purpose, see [`super::mutation`].

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result,
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredResponse},
    ids::Holder,
};

/// Reports a completed key as new.
#[derive(Debug)]
pub(crate) struct LossyIdempotencyStore(pub(crate) Arc<dyn IdempotencyStore>);

#[async_trait]
impl IdempotencyStore for LossyIdempotencyStore {
    async fn begin(&self, attempt: IdempotencyAttempt) -> Result<IdempotencyState> {
        Ok(match self.0.begin(attempt).await? {
            IdempotencyState::Completed(_) => IdempotencyState::New,
            other => other,
        })
    }

    async fn complete(&self, key: &str, holder: &Holder, reply: StoredResponse) -> Result<()> {
        // The second attempt with a key finds the response of the first one.
        let _ = self.0.complete(key, holder, reply).await;
        Ok(())
    }

    async fn release(&self, key: &str, holder: &Holder) -> Result<()> {
        self.0.release(key, holder).await
    }
}
