//! Examples of webhooks.

use serde_json::Value;
use transcript_core::{
    accounts::{
        AccountsOptions,
        webhooks::{EventState, JobEventKind},
    },
    wire::v1::{DeliveryAttempt, EventDelivery, JobDeliveries, WebhookEvent, WebhookSecretInfo},
};

use super::{jobs, value};

const CALLBACK: &str = "https://hooks.example.org/verbatim";
const CREATED: &str = "2026-11-22T09:04:00Z";

pub(crate) fn event(options: &AccountsOptions) -> Value {
    value(WebhookEvent {
        id: event_id(),
        r#type: JobEventKind::Completed.as_str().to_owned(),
        created_at: CREATED.to_owned(),
        job: jobs::completed(options, CALLBACK),
    })
}

pub(crate) fn deliveries() -> Value {
    let failed = DeliveryAttempt {
        attempt: 1,
        at: "2026-11-22T09:04:01Z".to_owned(),
        status: Some(500),
        error: Some("the host answered with status 500".to_owned()),
    };
    let delivered =
        DeliveryAttempt { attempt: 2, at: "2026-11-22T09:04:11Z".to_owned(), status: Some(204), error: None };
    let event = EventDelivery {
        id: event_id(),
        r#type: JobEventKind::Completed.as_str().to_owned(),
        created_at: CREATED.to_owned(),
        state: EventState::Delivered.as_str().to_owned(),
        next_attempt_at: None,
        attempts: vec![failed, delivered],
    };
    value(JobDeliveries {
        success: true,
        job_id: jobs::id(),
        callback_url: Some(CALLBACK.to_owned()),
        events: vec![event],
    })
}

pub(crate) fn secret() -> Value {
    value(WebhookSecretInfo {
        success: true,
        secret: format!("vbw_{}", "0".repeat(64)),
        rotated_at: None,
        previous_valid_until: None,
    })
}

pub(crate) fn rotated_secret() -> Value {
    value(WebhookSecretInfo {
        success: true,
        secret: format!("vbw_{}", "1".repeat(64)),
        rotated_at: Some("2026-11-22T09:00:00Z".to_owned()),
        previous_valid_until: Some("2026-11-23T09:00:00Z".to_owned()),
    })
}

fn event_id() -> String {
    format!("evt_{}_1", "0".repeat(32))
}
