//! Lists refunded and disputed payments from the events that Stripe keeps for a month.
//!
//! It finds events that never arrived.

use serde_json::Value;
use transcript_core::{
    Timestamp,
    accounts::payments::{ProviderObject, WebhookOutcome},
};

use super::{
    StripeProvider,
    api::{StripeResult, is_id},
    event::subjects_of,
    form::StripeForm,
    objects::StripeList,
};

/// Types of events about refunds and disputes.
const KINDS: [&str; 10] = [
    "charge.dispute.closed",
    "charge.dispute.created",
    "charge.dispute.funds_reinstated",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.updated",
    "charge.refund.updated",
    "charge.refunded",
    "refund.created",
    "refund.failed",
    "refund.updated",
];
/// Events per page and maximum number of pages; older events are skipped with a log message.
const PAGE: usize = 100;
const PAGES_MAX: usize = 100;

impl StripeProvider {
    /// The payments of such events, the latest first.
    pub(super) async fn refunds_since(&self, since: Timestamp) -> StripeResult<Vec<ProviderObject>> {
        let mut found = Vec::new();
        let mut last = None;
        for _ in 0..PAGES_MAX {
            let seconds = since.as_millis().div_euclid(1_000);
            let mut query =
                StripeForm::new().with("created[gte]", seconds.to_string()).with("limit", PAGE.to_string());
            for (index, kind) in KINDS.iter().enumerate() {
                query = query.with(format!("types[{index}]"), *kind);
            }
            if let Some(last) = last {
                query = query.with("starting_after", last);
            }
            let page: StripeList<Value> = self.api.get("/v1/events", &query).await?;
            for event in &page.data {
                // An unreadable event is logged and does not block the others.
                if let Ok(WebhookOutcome::Events(subjects)) = subjects_of(event) {
                    found.extend(subjects);
                }
            }
            last = page
                .data
                .last()
                .and_then(|event| event["id"].as_str())
                .filter(|id| is_id(id))
                .map(str::to_owned);
            if last.is_none() || page.data.len() < PAGE {
                return Ok(found);
            }
        }
        tracing::warn!(
            events = PAGES_MAX * PAGE,
            "Stripe event limit reached; older refunds and disputes were skipped"
        );
        Ok(found)
    }
}
