//! Events of jobs and attempts to send them, as a [`WebhookStore`](super::WebhookStore) stores them.

use crate::{
    accounts::jobs::{Job, JobStatus},
    ids::{AccountId, JobId},
    names::names,
    time::Timestamp,
};

/// Events of a job after which its pauses have no event: the end of a job always has one.
const PAUSES_MAX: u64 = 20;

/// What happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobEventKind {
    /// Every item has ended.
    Completed,
    /// It pauses.
    Paused,
    /// It was cancelled.
    Cancelled,
    /// Its list could not be read.
    Failed,
}

names!(JobEventKind, from_name {
    Completed = "job.completed",
    Paused = "job.paused",
    Cancelled = "job.cancelled",
    Failed = "job.failed",
});

/// The events of a job before a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// All events.
    pub all: u64,
    /// Events of a pause that are still to be sent.
    pub waiting_pauses: u64,
}

impl Job {
    /// The event of a change from an earlier state, after these events.
    ///
    /// `None` if the change has none, or the job has no callback address. An event of a pause that is still to be sent
    /// will show the newest state, so a second one is not needed.
    pub fn event_since(&self, before: JobStatus, counts: EventCounts) -> Option<JobEventKind> {
        if self.callback_url.is_none() || self.status == before {
            return None;
        }
        match self.status {
            JobStatus::Completed => Some(JobEventKind::Completed),
            JobStatus::Cancelled => Some(JobEventKind::Cancelled),
            JobStatus::Failed => Some(JobEventKind::Failed),
            JobStatus::Paused => {
                let is_new = counts.waiting_pauses == 0 && counts.all < PAUSES_MAX;
                is_new.then_some(JobEventKind::Paused)
            }
            JobStatus::Listing | JobStatus::Queued | JobStatus::Running => None,
        }
    }
}

/// An event of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobEvent {
    /// The job.
    pub job: JobId,
    /// The number of the event in its job, from 1.
    pub number: u64,
    /// What happened.
    pub kind: JobEventKind,
    /// When it happened.
    pub created_at: Timestamp,
}

impl JobEvent {
    /// The permanent id, the same for every attempt: the receiver of a repeat recognizes it.
    pub fn id(&self) -> String {
        let job = self.job.as_str();
        format!("evt_{}_{}", job.strip_prefix("job_").unwrap_or(job), self.number)
    }
}

/// An event that one process may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedEvent {
    /// The event.
    pub event: JobEvent,
    /// The account of its job.
    pub account: AccountId,
    /// The address of the receiver.
    pub callback_url: String,
    /// The number of the lease, from 1. A later lease ends an earlier one.
    pub lease: u32,
    /// The number of the attempt, from 1: it follows that of the last recorded one.
    pub attempt: u32,
}

/// An attempt to send an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAttempt {
    /// The number of the attempt, from 1.
    pub number: u32,
    /// When it ended.
    pub at: Timestamp,
    /// The status of the response; `None` without one.
    pub status: Option<u16>,
    /// Why it failed; `None` if the receiver accepted the event.
    pub error: Option<String>,
    /// When the next attempt is due; `None` if there is none.
    pub next_at: Option<Timestamp>,
}

/// How far the delivery of an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventState {
    /// It is still to be sent.
    Pending,
    /// The receiver accepted it.
    Delivered,
    /// It was given up.
    Abandoned,
}

names!(EventState {
    Pending = "pending",
    Delivered = "delivered",
    Abandoned = "abandoned",
});

/// An event with its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEventLog {
    /// The event.
    pub event: JobEvent,
    /// When the next attempt is due, or the lease of the present one ends; `None` if there is none.
    pub due_at: Option<Timestamp>,
    /// The attempts that have ended, the oldest first.
    pub attempts: Vec<WebhookAttempt>,
}

impl JobEventLog {
    /// How far its delivery is.
    pub fn state(&self) -> EventState {
        match (self.due_at, self.attempts.last()) {
            (Some(_), _) => EventState::Pending,
            (None, Some(WebhookAttempt { error: None, .. })) => EventState::Delivered,
            (None, _) => EventState::Abandoned,
        }
    }
}
