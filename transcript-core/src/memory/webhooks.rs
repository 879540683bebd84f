//! The in-memory store of events.

use async_trait::async_trait;

use super::{
    MemoryJobs,
    jobs::{StoredJob, find},
};
use crate::{
    accounts::{
        WAITING_MAX,
        jobs::JobStatus,
        limit_due,
        webhooks::{
            EventCounts, JobEvent, JobEventKind, JobEventLog, LeasedEvent, SecretGeneration, WebhookAttempt,
            WebhookStore,
        },
    },
    error::Result,
    ids::{AccountId, JobId},
    time::Timestamp,
};

#[derive(Debug)]
pub(super) struct StoredEvent {
    log: JobEventLog,
    /// The number of leases.
    leases: u32,
    is_leased: bool,
}

impl StoredEvent {
    fn is_due(&self, now: Timestamp) -> bool {
        self.log.due_at.is_some_and(|due| due <= now)
    }

    fn is_in_transit(&self, now: Timestamp) -> bool {
        self.is_leased && self.log.due_at.is_some_and(|due| due > now)
    }

    /// Ends its delivery: it is not sent.
    pub(super) fn discard(&mut self) {
        self.is_leased = false;
        self.log.due_at = None;
    }
}

impl StoredJob {
    /// Records the event of a change from an earlier state.
    pub(super) fn record_event(&mut self, before: JobStatus, now: Timestamp) {
        let is_waiting = |stored: &&StoredEvent| {
            stored.log.event.kind == JobEventKind::Paused && stored.log.due_at.is_some()
        };
        let counts = EventCounts {
            all: self.events.len() as u64,
            waiting_pauses: self.events.iter().filter(is_waiting).count() as u64,
        };
        let Some(kind) = self.job.event_since(before, counts) else { return };
        let event = JobEvent { job: self.job.id.clone(), number: counts.all + 1, kind, created_at: now };
        let log = JobEventLog { event, due_at: Some(now), attempts: Vec::new() };
        self.events.push(StoredEvent { log, leases: 0, is_leased: false });
    }
}

#[async_trait]
impl WebhookStore for MemoryJobs {
    async fn lease_events(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> Result<Vec<LeasedEvent>> {
        let mut jobs = self.jobs.lock();
        for stored in jobs.iter_mut().flat_map(|stored| &mut stored.events) {
            stored.log.due_at = stored.log.due_at.map(|due| limit_due(due, now));
        }
        let in_transit = |stored: &&StoredJob| stored.events.iter().any(|event| event.is_in_transit(now));
        let mut busy: Vec<AccountId> =
            jobs.iter().filter(in_transit).map(|stored| stored.job.account.clone()).collect();
        let mut due: Vec<(&AccountId, &Option<String>, &mut StoredEvent)> = Vec::new();
        for StoredJob { job, events, .. } in jobs.iter_mut() {
            let found = events.iter_mut().filter(|event| event.is_due(now));
            due.extend(found.map(|event| (&job.account, &job.callback_url, event)));
        }
        due.sort_by_key(|(_, _, event)| (event.leases > 0, event.log.due_at));
        let mut leased = Vec::new();
        for (account, url, stored) in due {
            let Some(url) = url else { continue };
            if leased.len() >= limit as usize || busy.contains(account) {
                continue;
            }
            busy.push(account.clone());
            stored.leases = stored.leases.saturating_add(1);
            stored.is_leased = true;
            stored.log.due_at = Some(lease_until);
            leased.push(LeasedEvent {
                event: stored.log.event.clone(),
                account: account.clone(),
                callback_url: url.clone(),
                lease: stored.leases,
                attempt: stored.log.attempts.last().map_or(1, |last| last.number.saturating_add(1)),
            });
        }
        Ok(leased)
    }

    async fn end_attempt(&self, leased: &LeasedEvent, attempt: WebhookAttempt) -> Result<bool> {
        let mut jobs = self.jobs.lock();
        let events = find(&mut jobs, &leased.event.job).map(|stored| &mut stored.events);
        let mut events = events.into_iter().flatten();
        let Some(stored) = events.find(|stored| stored.log.event.number == leased.event.number) else {
            return Ok(false);
        };
        if !stored.is_leased || stored.leases != leased.lease {
            return Ok(false);
        }
        stored.is_leased = false;
        stored.log.due_at = attempt.next_at;
        stored.log.attempts.push(attempt);
        Ok(true)
    }

    async fn events(&self, job: &JobId) -> Result<Vec<JobEventLog>> {
        let mut jobs = self.jobs.lock();
        let events = find(&mut jobs, job).map(|stored| stored.events.iter().map(|event| event.log.clone()));
        Ok(events.into_iter().flatten().collect())
    }

    async fn count_waiting_events(&self) -> Result<u64> {
        let jobs = self.jobs.lock();
        let waiting =
            jobs.iter().flat_map(|stored| &stored.events).filter(|event| event.log.due_at.is_some());
        Ok((waiting.count() as u64).min(WAITING_MAX))
    }

    async fn secret_generation(&self, account: &AccountId) -> Result<SecretGeneration> {
        Ok(self.secrets.lock().get(account).copied().unwrap_or(SecretGeneration::FIRST))
    }

    async fn rotate_secret(&self, account: &AccountId, now: Timestamp) -> Result<SecretGeneration> {
        let mut secrets = self.secrets.lock();
        let generation = secrets.entry(account.clone()).or_insert(SecretGeneration::FIRST);
        *generation = generation.next(now);
        Ok(*generation)
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::webhooks_conformance!(Arc::new(super::MemoryJobs::default()));
}
