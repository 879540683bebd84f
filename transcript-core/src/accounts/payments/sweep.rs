//! Asking about what no event told: events get lost, and a server may be away for longer than they are
//! repeated.

use std::{collections::HashSet, time::Duration};

use super::{PATIENCE, Payments, Subject};
use crate::{
    accounts::Order,
    directory::Account,
    engine::retry::persistently,
    error::{Error, ErrorKind, Result},
    page::PageRequest,
    time::Timestamp,
};

const HOUR: Duration = Duration::from_secs(3_600);

/// How often orders are swept. Whoever sweeps at another pace asks about old ones at another pace, too.
pub const SWEEP_EVERY: Duration = Duration::from_secs(30 * 60);
/// After how many failures in a row a sweep gives up.
const FAILURES_MAX: u32 = 5;
/// How far back the first sweep asks for money that went back, and how much each later one asks about again: what a
/// provider tells of may be a little late.
const RETURNED_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
const RETURNED_AGAIN: Duration = HOUR;
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
    /// sweep. The first fault, when something could not be settled; everything else was.
    pub async fn sweep_orders(&self) -> Result<()> {
        let mut page = PageRequest { limit: 100, ..PageRequest::first() };
        let mut failures = Failures::default();
        loop {
            let found = persistently(PATIENCE, || self.parts.orders.unsettled(page.clone())).await?;
            for order in found.items {
                failures.note(self.ask_about(&order).await)?;
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => return failures.end(),
            }
        }
    }

    async fn ask_about(&self, order: &Order) -> Result<()> {
        let age = self.now().since(order.created_at);
        let known = order.payment.as_ref().filter(|name| self.knows(name));
        if age < ORDER_AGE_MIN || !is_due(order, age, self.now()) {
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

    /// Asks about every plan whose paid month is over: its renewal may have been paid without an event. Lets the
    /// subscriptions of blocked accounts end with their month.
    ///
    /// # Errors
    /// As [`Payments::sweep_orders`].
    pub async fn sweep_plans(&self) -> Result<()> {
        let mut page = PageRequest::first();
        let mut failures = Failures::default();
        loop {
            let found = persistently(PATIENCE, || self.parts.directory.accounts(page.clone())).await?;
            for account in found.items {
                if account.blocked {
                    failures.note(self.stop(&account).await)?;
                }
                if let Some(subject) = self.lapsed(&account, self.now()) {
                    failures.note(self.follow(&subject).await)?;
                }
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => return failures.end(),
            }
        }
    }

    /// Asks about every payment of which money went back, or is contested, since the moment that the last sweep
    /// returned; the first goes back a month. Returns the moment for the next.
    ///
    /// # Errors
    /// As [`Payments::sweep_orders`]; the next sweep begins where this one did.
    pub async fn sweep_returned(&self, since: Option<Timestamp>) -> Result<Timestamp> {
        let now = self.now();
        let since = since.unwrap_or_else(|| now.minus(RETURNED_AGE_MAX));
        let mut failures = Failures::default();
        let returned = self.asked(self.checkout()?.returned(since)).await?;
        for subject in returned.into_iter().collect::<HashSet<_>>() {
            failures.note(self.follow(&subject).await)?;
        }
        failures.end()?;
        Ok(now.minus(RETURNED_AGAIN))
    }

    /// Lets a blocked account's subscription end: nobody pays for what they cannot use. It is the sweep that
    /// does so, since an operator's command may have no way to the provider.
    async fn stop(&self, account: &Account) -> Result<()> {
        match account.subscription.as_ref().filter(|name| self.knows(name)) {
            Some(subscription) => self.asked(self.checkout()?.stop(subscription)).await,
            None => Ok(()),
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

    pub(super) fn knows(&self, name: &str) -> bool {
        self.parts.checkout.as_ref().is_some_and(|checkout| checkout.knows(name))
    }
}

/// Whether it is this sweep's turn to ask about an order: the older it is, the more rarely it is asked about.
fn is_due(order: &Order, age: Duration, now: Timestamp) -> bool {
    let every = match age.as_secs() / HOUR.as_secs() {
        0..6 => 1,
        6..48 => 4,
        _ => 24,
    };
    let turn = now.since(Timestamp::from_millis(0)).as_secs() / SWEEP_EVERY.as_secs();
    let place =
        order.id.as_str().bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    age > ORDER_AGE_MAX || turn % every == place % every
}

/// What went wrong in a sweep: one thing that cannot be settled does not keep the others waiting; several in a
/// row mean that a store or the provider is away.
#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    first: Option<Error>,
}

impl Failures {
    /// Notes how one thing went; fails when the sweep had better give up.
    fn note(&mut self, result: Result<()>) -> Result<()> {
        let Err(error) = result else {
            self.in_a_row = 0;
            return Ok(());
        };
        // What fails for a reason of its own says nothing of the others.
        self.in_a_row = if error.kind() == ErrorKind::Unavailable { self.in_a_row + 1 } else { 0 };
        if self.in_a_row >= FAILURES_MAX {
            return Err(error);
        }
        tracing::error!(%error, "a payment cannot be settled");
        self.first.get_or_insert(error);
        Ok(())
    }

    /// How the sweep went.
    fn end(self) -> Result<()> {
        self.first.map_or(Ok(()), Err)
    }
}
