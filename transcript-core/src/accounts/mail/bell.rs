//! The bell by which a queued mail wakes its sender.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::{
    accounts::{MailIntent, Outbox},
    error::Result,
    ids::Holder,
    time::Timestamp,
};

/// Tells the sender of this process that there is something to send. A clone is the same bell.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// Wakes the sender; when it is busy, it looks again once more.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Waits until it was rung since the last wait.
    pub(super) async fn rung(&self) {
        self.0.notified().await;
    }
}

/// An outbox that rings when a mail was queued.
#[derive(Clone, Debug)]
pub struct RingingOutbox {
    outbox: Arc<dyn Outbox>,
    bell: Bell,
}

impl RingingOutbox {
    /// This outbox, with this bell.
    pub fn new(outbox: Arc<dyn Outbox>, bell: Bell) -> Self {
        Self { outbox, bell }
    }
}

#[async_trait]
impl Outbox for RingingOutbox {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        let queued = self.outbox.queue(intent, now).await;
        // A call that failed may have taken effect.
        self.bell.ring();
        queued
    }

    async fn due(
        &self,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MailIntent>> {
        self.outbox.due(holder, now, until, limit).await
    }

    async fn forget(&self, to: &str, now: Timestamp) -> Result<u64> {
        self.outbox.forget(to, now).await
    }

    async fn waiting(&self) -> Result<u64> {
        self.outbox.waiting().await
    }

    async fn done(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        self.outbox.done(id, retry_at).await
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    use crate::memory::MemoryOutbox;

    crate::outbox_conformance!(Arc::new(super::RingingOutbox::new(
        Arc::new(MemoryOutbox::default()),
        super::Bell::default()
    )));
}
