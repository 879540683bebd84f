//! The provider's page on which a buyer manages the subscription of a plan.

use super::{CheckoutSession, Payments};
use crate::{accounts::orders::is_sandbox, directory::Account, error::Result};

/// Outcome of opening the provider's page for a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortalOutcome {
    /// The page is open.
    Opened(CheckoutSession),
    /// The account has no subscription that is renewed, or the provider has no such page.
    NoPage,
    /// The account reached its daily limit of payment pages.
    Limited,
}

impl Payments {
    /// Whether the account has a running subscription at the provider. That of the sandbox is never renewed.
    pub fn has_subscription(&self, account: &Account) -> bool {
        account.subscription.as_deref().is_some_and(|name| self.owns(name) && !is_sandbox(name))
    }

    /// Opens the provider's page on which the holder manages the subscription, and ends it.
    ///
    /// `return_url` is the page of this service to which the holder returns. The page is open for minutes only.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] if the limiter or the provider is unavailable.
    pub async fn open_portal(&self, account: &Account, return_url: &str) -> Result<PortalOutcome> {
        let customer = account.customer.as_ref().filter(|name| self.owns(name));
        let Some(customer) = customer.filter(|_| self.has_subscription(account)) else {
            return Ok(PortalOutcome::NoPage);
        };
        if self.check_page_limit("portal", &account.id, self.now()).await?.is_some() {
            return Ok(PortalOutcome::Limited);
        }
        let opened = self.call_provider(self.provider()?.open_portal(customer, return_url)).await?;
        Ok(opened.map_or(PortalOutcome::NoPage, PortalOutcome::Opened))
    }
}
