//! The in-memory outbox.

use async_trait::async_trait;

use super::SharedState;
use crate::{
    accounts::{MailIntent, Outbox, WAITING_MAX, limit_due},
    error::Result,
    time::Timestamp,
};

/// An in-memory [`Outbox`]. A clone is the same outbox.
#[derive(Clone, Debug, Default)]
pub struct MemoryOutbox {
    /// Every mail that was ever queued, in that order.
    mails: SharedState<Vec<QueuedMail>>,
}

#[derive(Debug)]
struct QueuedMail {
    intent: MailIntent,
    /// When it is due: a lease moves that to its own end. `None` once it is done.
    due: Option<Timestamp>,
}

#[async_trait]
impl Outbox for MemoryOutbox {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        let mut mails = self.mails.lock();
        if mails.iter().all(|mail| mail.intent.id != intent.id) {
            mails.push(QueuedMail { intent, due: Some(now) });
        }
        Ok(())
    }

    async fn lease_due(&self, now: Timestamp, until: Timestamp, limit: u32) -> Result<Vec<MailIntent>> {
        let mut mails = self.mails.lock();
        for mail in mails.iter_mut() {
            mail.due = mail.due.map(|due| limit_due(due, now));
        }
        let mut due: Vec<&mut QueuedMail> =
            mails.iter_mut().filter(|mail| mail.due.is_some_and(|due| due <= now)).collect();
        due.sort_by_key(|mail| mail.due);
        due.truncate(limit as usize);
        let lease = |mail: &mut QueuedMail| {
            mail.due = Some(until);
            mail.intent.attempts = mail.intent.attempts.saturating_add(1);
            mail.intent.clone()
        };
        Ok(due.into_iter().map(lease).collect())
    }

    async fn cancel_for_address(&self, to: &str, _now: Timestamp) -> Result<u64> {
        let mut mails = self.mails.lock();
        let mut count = 0;
        for mail in mails.iter_mut().filter(|mail| mail.due.is_some() && mail.intent.to == to) {
            mail.due = None;
            mail.intent.to.clear();
            count += 1;
        }
        Ok(count)
    }

    async fn count_waiting(&self) -> Result<u64> {
        let mails = self.mails.lock();
        Ok((mails.iter().filter(|mail| mail.due.is_some()).count() as u64).min(WAITING_MAX))
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        let mut mails = self.mails.lock();
        if let Some(mail) = mails.iter_mut().find(|mail| mail.intent.id == id && mail.due.is_some()) {
            mail.due = retry_at;
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::outbox_conformance!(Arc::new(super::MemoryOutbox::default()));
}
