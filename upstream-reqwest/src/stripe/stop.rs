//! Ending a subscription with its month.

use super::{
    StripeCheckout,
    api::{Result, is_id},
    form::Form,
    objects::{Link, Named, Subscription},
};

impl StripeCheckout {
    /// Lets a subscription end when its month does.
    pub(super) async fn stop_renewing(&self, id: &str) -> Result<()> {
        if !is_id(id) {
            return Ok(());
        }
        let path = format!("/v1/subscriptions/{id}");
        let present: Subscription = match self.api.get(&path, &Form::new()).await {
            Err(fault) if fault.is_unknown() => return Ok(()),
            present => present?,
        };
        if present.cancel_at_period_end || present.is_over() {
            return Ok(());
        }
        // A change that waits for the month's end would renew it, and lets nobody end it before.
        if let Some(schedule) = present.schedule.as_ref().map(Link::id).filter(|id| is_id(id)) {
            let path = format!("/v1/subscription_schedules/{schedule}/release");
            let _: Named = self.api.post_anew(&path, &Form::new()).await?;
        }
        // Done once more it changes nothing. An old answer would not help: it may have been resumed since.
        let form = Form::new().with("cancel_at_period_end", "true");
        let _: Named = self.api.post_anew(&path, &form).await?;
        Ok(())
    }
}
