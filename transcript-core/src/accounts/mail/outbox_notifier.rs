//! Wakes the mail sender when a mail is queued.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::{
    accounts::{MailIntent, Outbox},
    error::Result,
    time::Timestamp,
};

/// Wakes the mail sender of this process. Clones share one signal.
#[derive(Clone, Debug, Default)]
pub struct OutboxNotifier(Arc<Notify>);

impl OutboxNotifier {
    /// Wakes the sender; a busy sender checks the outbox once more afterwards.
    pub fn notify(&self) {
        self.0.notify_one();
    }

    /// Waits for a call of `notify` since the last wait.
    pub(super) async fn notified(&self) {
        self.0.notified().await;
    }
}

/// An outbox that wakes the sender when a mail is queued.
#[derive(Clone, Debug)]
pub struct NotifyingOutbox {
    outbox: Arc<dyn Outbox>,
    notifier: OutboxNotifier,
}

impl NotifyingOutbox {
    /// Wraps an outbox.
    pub fn new(outbox: Arc<dyn Outbox>, notifier: OutboxNotifier) -> Self {
        Self { outbox, notifier }
    }
}

#[async_trait]
impl Outbox for NotifyingOutbox {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        let queued = self.outbox.queue(intent, now).await;
        // A call that failed may have taken effect.
        self.notifier.notify();
        queued
    }

    async fn lease_due(&self, now: Timestamp, expires_at: Timestamp, limit: u32) -> Result<Vec<MailIntent>> {
        self.outbox.lease_due(now, expires_at, limit).await
    }

    async fn cancel_for_address(&self, to: &str, now: Timestamp) -> Result<u64> {
        self.outbox.cancel_for_address(to, now).await
    }

    async fn count_waiting(&self) -> Result<u64> {
        self.outbox.count_waiting().await
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        self.outbox.finish(id, retry_at).await
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    use crate::memory::MemoryOutbox;

    crate::outbox_conformance!(Arc::new(super::NotifyingOutbox::new(
        Arc::new(MemoryOutbox::default()),
        super::OutboxNotifier::default()
    )));
}
