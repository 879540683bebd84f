//! Closing open payment pages before an account is erased, so that no payment arrives without an owner.

use super::{Payments, ProviderObject, STORE_POLICY};
use crate::{
    accounts::{
        OrderState,
        orders::{Order, list_all_for_account},
    },
    directory::{Account, AccountRef, Plan, UpdateOutcome},
    error::Result,
    retry::retry_store,
};

impl Payments {
    /// Closes every page on which an account's orders may still be paid, and grants earlier payments.
    /// Cancels a subscription that was fully refunded. Returns the account as it is then.
    ///
    /// Orders stay open if their payment is in progress or their page is unknown: see
    /// [`crate::accounts::AccountAdmin::provider_refs`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if stores or provider are unavailable: some pages may be closed.
    pub async fn close(&self, account: &Account) -> Result<Account> {
        let orders = list_all_for_account(self.deps.orders.as_ref(), &account.id, STORE_POLICY).await?;
        for order in orders.iter().filter(|order| order.state == OrderState::Open) {
            self.close_order_page(order).await?;
        }
        // A payment that was granted here has changed the account.
        let id = AccountRef::Id(account.id.clone());
        let stored = retry_store(STORE_POLICY, || self.deps.directory.account(&id)).await?;
        self.cancel_refunded(stored.as_ref().unwrap_or(account)).await
    }

    async fn close_order_page(&self, order: &Order) -> Result<()> {
        let Some(payment) = order.payment.as_ref().filter(|name| self.owns(name)) else { return Ok(()) };
        self.call_provider(self.provider()?.expire_checkout(payment)).await?;
        self.reconcile(&ProviderObject::new(payment.clone())).await
    }

    /// Cancels the subscription of an account whose payments were all refunded.
    async fn cancel_refunded(&self, account: &Account) -> Result<Account> {
        let is_returned = account.plan == Plan::Free && account.paid.is_none();
        let subscription_to_cancel =
            account.subscription.as_ref().filter(|name| is_returned && self.owns(name));
        let Some(subscription) = subscription_to_cancel else { return Ok(account.clone()) };
        self.call_provider(self.provider()?.cancel_at_period_end(subscription)).await?;
        let ended = Account { subscription: None, ..account.clone() };
        match retry_store(STORE_POLICY, || self.deps.directory.update_account(ended.clone())).await? {
            UpdateOutcome::Changed(account) => Ok(account),
            // The erasure of the account detects the change.
            UpdateOutcome::Stale | UpdateOutcome::Missing => Ok(account.clone()),
        }
    }
}
