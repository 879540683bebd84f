//! Which payments were refunded or contested, from the events that Stripe keeps for a month: for those that never
//! arrived here.

use serde_json::Value;
use transcript_core::{
    Timestamp,
    accounts::payments::{Heard, Subject},
};

use super::{
    StripeCheckout,
    api::{Result, is_id},
    event::subjects_of,
    form::Form,
    objects::List,
};

/// The kinds that tell of money that went back, or may.
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
/// How many a page has, and how many pages are read: what is older is left, and told in the log.
const PAGE: usize = 100;
const PAGES_MAX: usize = 100;

impl StripeCheckout {
    /// The payments that events of these kinds are about, the latest first.
    pub(super) async fn returned_since(&self, since: Timestamp) -> Result<Vec<Subject>> {
        let mut found = Vec::new();
        let mut last = None;
        for _ in 0..PAGES_MAX {
            let seconds = since.as_millis().div_euclid(1_000);
            let mut query =
                Form::new().with("created[gte]", seconds.to_string()).with("limit", PAGE.to_string());
            for (place, kind) in KINDS.iter().enumerate() {
                query = query.with(format!("types[{place}]"), *kind);
            }
            if let Some(last) = last {
                query = query.with("starting_after", last);
            }
            let page: List<Value> = self.api.get("/v1/events", &query).await?;
            for event in &page.data {
                // One that cannot be read is told in the log, and keeps no other waiting.
                if let Ok(Heard::About(subjects)) = subjects_of(event) {
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
            "Stripe has more refunds and disputes than are asked about"
        );
        Ok(found)
    }
}
