//! Webhooks.

use serde::{Deserialize, Serialize};

use super::JobInfo;
#[cfg(feature = "openapi")]
use crate::accounts::webhooks::{EventState, JobEventKind};
use crate::{
    accounts::{
        jobs::{Job, JobView},
        webhooks::{JobEvent, JobEventLog, WebhookAttempt, WebhookSecret},
    },
    error::{Error, Result},
};

/// The body of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "An event of a job, as its callback address receives it.")
)]
pub struct WebhookEvent {
    /// The id of the event, the same in every attempt.
    pub id: String,
    /// What happened.
    #[cfg_attr(
        feature = "openapi",
        schemars(extend("enum" = JobEventKind::ALL.map(JobEventKind::as_str)))
    )]
    pub r#type: String,
    /// When it happened: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub created_at: String,
    /// The job when the event was sent, as its address shows it.
    pub job: JobInfo,
}

impl WebhookEvent {
    /// The event, with its job.
    pub fn new(event: &JobEvent, job: JobInfo) -> Self {
        Self {
            id: event.id(),
            r#type: event.kind.as_str().to_owned(),
            created_at: event.created_at.to_string(),
            job,
        }
    }

    /// The body of the event for a server with this address: a
    /// [`WebhookBody`](crate::accounts::webhooks::WebhookBody).
    ///
    /// # Errors
    /// Only if the serializer fails; no job causes that.
    pub fn body(event: &JobEvent, view: &JobView, base_url: &str) -> Result<Vec<u8>> {
        let body = serde_json::to_vec(&Self::new(event, JobInfo::new(view, base_url)));
        body.map_err(|error| Error::unexpected(format!("cannot serialize an event of a job: {error}")))
    }
}

/// The secret that signs the webhooks of an account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The secret that signs the webhooks of an account.", rename = "WebhookSecret")
)]
pub struct WebhookSecretInfo {
    /// True.
    pub success: bool,
    /// The secret: the key of the HMAC is this text.
    pub secret: String,
    /// When it was rotated; null for the first one.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub rotated_at: Option<String>,
    /// Until when the previous secret signs too; null if it does not.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub previous_valid_until: Option<String>,
}

crate::debug_fields!(WebhookSecretInfo { rotated_at });

impl From<&WebhookSecret> for WebhookSecretInfo {
    fn from(found: &WebhookSecret) -> Self {
        Self {
            success: true,
            secret: found.secret.clone(),
            rotated_at: found.rotated_at.map(|at| at.to_string()),
            previous_valid_until: found.previous_until.map(|until| until.to_string()),
        }
    }
}

/// The deliveries of a job's events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "The events of a job, and the attempts to send them.")
)]
pub struct JobDeliveries {
    /// True.
    pub success: bool,
    /// The id of the job.
    pub job_id: String,
    /// Where the events are sent; null: nowhere.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "uri")))]
    pub callback_url: Option<String>,
    /// The events, the oldest first.
    pub events: Vec<EventDelivery>,
}

/// An event, and the attempts to send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct EventDelivery {
    /// The id of the event.
    pub id: String,
    /// What happened.
    #[cfg_attr(
        feature = "openapi",
        schemars(extend("enum" = JobEventKind::ALL.map(JobEventKind::as_str)))
    )]
    pub r#type: String,
    /// When it happened: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub created_at: String,
    /// Whether the receiver has accepted it (`delivered`), it is still to be sent (`pending`), or it was given up
    /// (`abandoned`).
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = EventState::ALL.map(EventState::as_str))))]
    pub state: String,
    /// When the next attempt is due; null if there is none.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub next_attempt_at: Option<String>,
    /// The attempts that have ended, the oldest first.
    pub attempts: Vec<DeliveryAttempt>,
}

/// An attempt to send an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct DeliveryAttempt {
    /// The number of the attempt, from 1. One that a stopped server interrupted has none.
    pub attempt: u32,
    /// When it ended: RFC 3339, UTC.
    #[cfg_attr(feature = "openapi", schemars(extend("format" = "date-time")))]
    pub at: String,
    /// The status of the response; null without one.
    pub status: Option<u16>,
    /// Why it failed; null if the receiver accepted the event.
    pub error: Option<String>,
}

impl JobDeliveries {
    /// The deliveries of a job.
    pub fn new(job: &Job, log: &[JobEventLog]) -> Self {
        Self {
            success: true,
            job_id: job.id.as_str().to_owned(),
            callback_url: job.callback_url.clone(),
            events: log.iter().map(EventDelivery::from).collect(),
        }
    }
}

impl From<&JobEventLog> for EventDelivery {
    fn from(log: &JobEventLog) -> Self {
        let JobEventLog { event, due_at, attempts } = log;
        Self {
            id: event.id(),
            r#type: event.kind.as_str().to_owned(),
            created_at: event.created_at.to_string(),
            state: log.state().as_str().to_owned(),
            next_attempt_at: due_at.map(|at| at.to_string()),
            attempts: attempts.iter().map(DeliveryAttempt::from).collect(),
        }
    }
}

impl From<&WebhookAttempt> for DeliveryAttempt {
    fn from(attempt: &WebhookAttempt) -> Self {
        Self {
            attempt: attempt.number,
            at: attempt.at.to_string(),
            status: attempt.status,
            error: attempt.error.clone(),
        }
    }
}
