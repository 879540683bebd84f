//! Cancels a subscription at the end of its period.

use super::{
    StripeProvider,
    api::{StripeResult, is_id},
    form::StripeForm,
    objects::{Expandable, ObjectRef, StripeSubscription},
};

impl StripeProvider {
    /// Cancels a subscription at the end of its period.
    pub(super) async fn cancel_renewal(&self, id: &str) -> StripeResult<()> {
        if !is_id(id) {
            return Ok(());
        }
        let path = format!("/v1/subscriptions/{id}");
        let current: StripeSubscription = match self.api.get(&path, &StripeForm::new()).await {
            Err(fault) if fault.is_unknown() => return Ok(()),
            current => current?,
        };
        if current.cancel_at_period_end || current.is_over() {
            return Ok(());
        }
        // A scheduled change would renew the subscription and prevents a cancellation.
        if let Some(schedule) = current.schedule.as_ref().map(Expandable::id).filter(|id| is_id(id)) {
            let path = format!("/v1/subscription_schedules/{schedule}/release");
            let _: ObjectRef = self.api.post_unkeyed(&path, &StripeForm::new()).await?;
        }
        // The request is idempotent, so it needs no idempotency key. With a key, Stripe would return its stored
        // response even if the subscription was resumed since.
        let form = StripeForm::new().with("cancel_at_period_end", "true");
        let _: ObjectRef = self.api.post_unkeyed(&path, &form).await?;
        Ok(())
    }
}
