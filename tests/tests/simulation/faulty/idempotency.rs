//! An idempotency store behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result,
    accounts::{IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredResponse},
    ids::Holder,
};

use super::nothing;
use crate::simulation::store_gate::StoreGate;

#[derive(Debug)]
pub(crate) struct FaultyIdempotencyStore {
    pub(crate) inner: Arc<dyn IdempotencyStore>,
    pub(crate) gate: Arc<StoreGate>,
}

impl FaultyIdempotencyStore {
    fn inner(&self) -> Arc<dyn IdempotencyStore> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl IdempotencyStore for FaultyIdempotencyStore {
    async fn begin(&self, attempt: IdempotencyAttempt) -> Result<IdempotencyState> {
        let (inner, what) = (self.inner(), format!("{} by {}", attempt.key, attempt.holder));
        self.gate.pass("idempotency.begin", || what, async move { inner.begin(attempt).await }, nothing).await
    }

    async fn complete(&self, key: &str, holder: &Holder, reply: StoredResponse) -> Result<()> {
        let (inner, key, holder) = (self.inner(), key.to_owned(), holder.clone());
        let what = format!("{key} by {holder}");
        let work = async move { inner.complete(&key, &holder, reply).await };
        self.gate.pass("idempotency.complete", || what, work, nothing).await
    }

    async fn release(&self, key: &str, holder: &Holder) -> Result<()> {
        let (inner, key, holder) = (self.inner(), key.to_owned(), holder.clone());
        let what = format!("{key} by {holder}");
        let work = async move { inner.release(&key, &holder).await };
        self.gate.pass("idempotency.release", || what, work, nothing).await
    }
}
