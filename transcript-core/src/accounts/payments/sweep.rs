//! Asking about what no event told: events get lost, and a server may be away for longer than they are
//! repeated.

use std::time::Duration;

use super::{PATIENCE, Payments, Subject};
use crate::{
    accounts::Order,
    directory::Account,
    engine::retry::persistently,
    error::{ErrorKind, Result},
    page::PageRequest,
    time::Timestamp,
};

const HOUR: Duration = Duration::from_secs(3_600);

/// How old an order is before it is asked about: by then its event should have come.
const ORDER_AGE_MIN: Duration = Duration::from_secs(600);
/// How old an order is when nobody will pay it any more. Bank transfers take up to two weeks.
const ORDER_AGE_MAX: Duration = Duration::from_secs(40 * 24 * 3_600);
/// How old an order without a page is when its opening will not be repeated any more.
const UNOPENED_AGE_MAX: Duration = Duration::from_secs(2 * 24 * 3_600);
/// For how long after its end a month is asked about whose next one was not paid.
const RENEWAL_AGE_MAX: Duration = Duration::from_secs(10 * 24 * 3_600);

impl Payments {
    /// Asks about every order that nobody has paid yet; an event may have been lost.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when stores or provider are away: what was not asked about is by the next
    /// sweep.
    pub async fn sweep_orders(&self) -> Result<()> {
        let mut page = PageRequest { limit: 100, ..PageRequest::first() };
        loop {
            let found = persistently(PATIENCE, || self.parts.orders.unsettled(page.clone())).await?;
            for order in found.items {
                self.tolerate(self.ask_about(&order).await)?;
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn ask_about(&self, order: &Order) -> Result<()> {
        let age = self.now().since(order.created_at);
        let known = order.payment.as_ref().filter(|name| self.knows(name));
        if age < ORDER_AGE_MIN {
            return Ok(());
        }
        if let Some(payment) = known {
            self.follow(&Subject::new(payment.clone())).await?;
        }
        let is_given_up = age > ORDER_AGE_MAX || order.payment.is_none() && age > UNOPENED_AGE_MAX;
        if is_given_up && let Some(order) = self.order(&order.id).await? {
            // Should somebody else change it meanwhile, there is something to give after all.
            self.end(&order).await?;
        }
        Ok(())
    }

    /// Asks about every plan whose paid month is over: its renewal may have been paid without an event.
    ///
    /// # Errors
    /// As [`Payments::sweep_orders`].
    pub async fn sweep_plans(&self) -> Result<()> {
        let mut page = PageRequest::first();
        loop {
            let found = persistently(PATIENCE, || self.parts.directory.accounts(page.clone())).await?;
            for account in found.items {
                if let Some(subject) = self.lapsed(&account, self.now()) {
                    self.tolerate(self.follow(&subject).await)?;
                }
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The subscription of an account whose paid month ended a short while ago.
    fn lapsed(&self, account: &Account, now: Timestamp) -> Option<Subject> {
        let end = account
            .paid
            .map(|paid| paid.through)
            .filter(|end| *end <= now && now.since(*end) < RENEWAL_AGE_MAX)?;
        // An invoice is paid about an hour after its month began.
        (now.since(end) > HOUR).then_some(())?;
        let subscription = account.subscription.clone().filter(|name| self.knows(name))?;
        Some(Subject { object: subscription, customer: account.customer.clone() })
    }

    fn knows(&self, name: &str) -> bool {
        self.parts.checkout.as_ref().is_some_and(|checkout| checkout.knows(name))
    }

    /// One thing that cannot be settled does not keep the others waiting; a store or a provider that is
    /// away would fail them all.
    fn tolerate(&self, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if error.kind() != ErrorKind::Unavailable => {
                tracing::error!(%error, "a payment cannot be settled");
                Ok(())
            }
            other => other,
        }
    }
}
