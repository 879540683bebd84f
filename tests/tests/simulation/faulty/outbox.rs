//! An outbox behind the gate.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result, Timestamp,
    accounts::{MailIntent, Outbox},
};

use super::nothing;
use crate::simulation::store_gate::StoreGate;

#[derive(Debug)]
pub(crate) struct FaultyOutbox {
    pub(crate) inner: Arc<dyn Outbox>,
    pub(crate) gate: Arc<StoreGate>,
}

impl FaultyOutbox {
    fn inner(&self) -> Arc<dyn Outbox> {
        Arc::clone(&self.inner)
    }
}

#[async_trait]
impl Outbox for FaultyOutbox {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        let (inner, what) = (self.inner(), intent.id.clone());
        self.gate.pass("outbox.queue", || what, async move { inner.queue(intent, now).await }, nothing).await
    }

    async fn lease_due(&self, now: Timestamp, expires_at: Timestamp, limit: u32) -> Result<Vec<MailIntent>> {
        let inner = self.inner();
        let work = async move { inner.lease_due(now, expires_at, limit).await };
        self.gate.pass("outbox.due", String::new, work, nothing).await
    }

    async fn cancel_for_address(&self, to: &str, now: Timestamp) -> Result<u64> {
        let (inner, to) = (self.inner(), to.to_owned());
        let work = async move { inner.cancel_for_address(&to, now).await };
        self.gate.pass("outbox.forget", String::new, work, nothing).await
    }

    async fn count_waiting(&self) -> Result<u64> {
        let inner = self.inner();
        let work = async move { inner.count_waiting().await };
        self.gate.pass("outbox.waiting", String::new, work, nothing).await
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        let (inner, id) = (self.inner(), id.to_owned());
        let what = id.clone();
        let work = async move { inner.finish(&id, retry_at).await };
        self.gate.pass("outbox.done", || what, work, nothing).await
    }
}
