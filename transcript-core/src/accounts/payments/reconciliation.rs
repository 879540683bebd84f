//! Periodic reconciliation of payments.
//! It covers events that were lost, or that the provider stopped repeating while the server was down.

use std::{collections::HashSet, time::Duration};

use super::{Payments, ProviderObject, STORE_POLICY, close::expire_unconfirmed};
use crate::{
    accounts::Order,
    directory::Account,
    error::{Error, ErrorKind, Result},
    page::PageRequest,
    retry::retry_store,
    time::{LEASE_MAX, Timestamp},
};

const HOUR: Duration = Duration::from_secs(3_600);

/// The interval of reconciliation. Another interval also changes how often old orders are checked.
pub const SWEEP_EVERY: Duration = Duration::from_secs(30 * 60);
/// After how many consecutive failures a run is aborted.
const FAILURES_MAX: u32 = 5;
/// How far back the first run reads refunds, and how much later runs overlap.
/// A provider may list a refund a little late.
const REFUND_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
const REFUND_OVERLAP: Duration = HOUR;
/// The age at which an order is first checked: its event should have arrived by then.
const ORDER_AGE_MIN: Duration = Duration::from_secs(600);
/// The age at which an order counts as never paid. Bank transfers take up to two weeks.
pub(super) const ORDER_AGE_MAX: Duration = Duration::from_secs(40 * 24 * 3_600);
/// The age at which an order without a page is given up: its request will not be repeated any more.
const UNOPENED_AGE_MAX: Duration = Duration::from_secs(2 * 24 * 3_600);
/// How long after its end a month without a paid renewal is checked.
const RENEWAL_AGE_MAX: Duration = Duration::from_secs(10 * 24 * 3_600);

impl Payments {
    /// Reconciles every unpaid order; an event may have been lost.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if stores or provider are unavailable: the next run checks the remaining
    /// orders. Otherwise the first error of an order; all other orders were checked.
    pub async fn reconcile_orders(&self) -> Result<()> {
        let mut page = PageRequest { limit: 100, ..PageRequest::first() };
        let mut failures = FailureCount::default();
        loop {
            let found = retry_store(STORE_POLICY, || self.deps.orders.list_open(page.clone())).await?;
            for order in found.items {
                failures.record(self.reconcile_order(&order).await)?;
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => return failures.finish(),
            }
        }
    }

    async fn reconcile_order(&self, order: &Order) -> Result<()> {
        let now = self.now();
        let age = now.since(order.created_at);
        let payment = order.payment.as_ref().filter(|name| self.owns(name));
        // A clock that was ahead and was corrected since wrote the order: its age is unknown.
        let is_ahead = order.created_at > now.plus(LEASE_MAX);
        if age < ORDER_AGE_MIN && !is_ahead || !is_due(order, age, now) {
            return Ok(());
        }
        if let Some(payment) = payment {
            self.reconcile(&ProviderObject::new(payment.clone())).await?;
            expire_unconfirmed(self, order, payment).await?;
        }
        let is_given_up = age > ORDER_AGE_MAX || order.payment.is_none() && age > UNOPENED_AGE_MAX;
        if is_given_up && let Some(order) = self.order(&order.id).await? {
            // After a concurrent change there is something to grant after all.
            self.expire(&order).await?;
        }
        Ok(())
    }

    /// Reconciles every plan whose paid month is over: its renewal may have been paid without an event.
    /// Cancels the subscriptions of blocked accounts.
    ///
    /// # Errors
    /// As [`Payments::reconcile_orders`].
    pub async fn reconcile_renewals(&self) -> Result<()> {
        let mut page = PageRequest::first();
        let mut failures = FailureCount::default();
        loop {
            let found = retry_store(STORE_POLICY, || self.deps.directory.accounts(page.clone())).await?;
            for account in found.items {
                if account.blocked {
                    failures.record(self.cancel_blocked(&account).await)?;
                }
                if let Some(subject) = self.lapsed_subscription(&account, self.now()) {
                    failures.record(self.reconcile(&subject).await)?;
                }
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => return failures.finish(),
            }
        }
    }

    /// Reconciles every payment that was refunded or disputed since the last run.
    /// `since` is the result of that run; the first run, and one after the clock was ahead and was corrected, go back a
    /// month. Returns the `since` of the next run.
    ///
    /// # Errors
    /// As [`Payments::reconcile_orders`]; the next run starts where this one did.
    pub async fn reconcile_refunds(&self, since: Option<Timestamp>) -> Result<Timestamp> {
        let now = self.now();
        let since = since.filter(|since| *since <= now).unwrap_or_else(|| now.minus(REFUND_AGE_MAX));
        let mut failures = FailureCount::default();
        let refunded = self.call_provider(self.provider()?.list_refunds(since)).await?;
        for subject in refunded.into_iter().collect::<HashSet<_>>() {
            failures.record(self.reconcile(&subject).await)?;
        }
        failures.finish()?;
        Ok(now.minus(REFUND_OVERLAP))
    }

    /// Cancels a blocked account's subscription, which it can no longer use.
    /// Reconciliation does it, because an operator's command may have no access to the provider.
    async fn cancel_blocked(&self, account: &Account) -> Result<()> {
        match account.subscription.as_ref().filter(|name| self.owns(name)) {
            Some(subscription) => {
                self.call_provider(self.provider()?.cancel_at_period_end(subscription)).await
            }
            None => Ok(()),
        }
    }

    /// The subscription of an account whose paid month ended recently.
    fn lapsed_subscription(&self, account: &Account, now: Timestamp) -> Option<ProviderObject> {
        let end = account
            .paid
            .map(|paid| paid.through)
            .filter(|end| *end <= now && now.since(*end) < RENEWAL_AGE_MAX)?;
        // Invoices are paid about an hour after their month began.
        (now.since(end) > HOUR).then_some(())?;
        let subscription = account.subscription.clone().filter(|name| self.owns(name))?;
        Some(ProviderObject { object: subscription, customer: account.customer.clone() })
    }

    pub(super) fn owns(&self, name: &str) -> bool {
        self.deps.provider.as_ref().is_some_and(|checkout| checkout.owns(name))
    }
}

/// Whether this run checks an order: the older it is, the more rarely it is checked.
fn is_due(order: &Order, age: Duration, now: Timestamp) -> bool {
    let every = match age.as_secs() / HOUR.as_secs() {
        0..6 => 1,
        6..48 => 4,
        _ => 24,
    };
    let run_number = now.since(Timestamp::from_millis(0)).as_secs() / SWEEP_EVERY.as_secs();
    let offset =
        order.id.as_str().bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    age > ORDER_AGE_MAX || run_number % every == offset % every
}

/// The failures of a run.
/// One item that fails does not stop the run; several in a row mean that a store or the provider is
/// unavailable.
#[derive(Debug, Default)]
struct FailureCount {
    consecutive: u32,
    first: Option<Error>,
}

impl FailureCount {
    /// Records the result of one item; fails if the run should be aborted.
    fn record(&mut self, result: Result<()>) -> Result<()> {
        let Err(error) = result else {
            self.consecutive = 0;
            return Ok(());
        };
        // Any other error concerns only this item.
        self.consecutive = if error.kind() == ErrorKind::Unavailable { self.consecutive + 1 } else { 0 };
        if self.consecutive >= FAILURES_MAX {
            return Err(error);
        }
        tracing::error!(%error, "payment reconciliation failed");
        self.first.get_or_insert(error);
        Ok(())
    }

    /// The result of the run.
    fn finish(self) -> Result<()> {
        self.first.map_or(Ok(()), Err)
    }
}
