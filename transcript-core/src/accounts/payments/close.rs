//! Before an account is erased: whoever still has a page open must not pay for nobody.

use super::{PATIENCE, Payments, Subject};
use crate::{
    accounts::{
        OrderState,
        orders::{Order, all_of},
    },
    directory::{Account, Changed, Plan},
    engine::retry::persistently,
    error::Result,
};

impl Payments {
    /// Closes every page on which an account's orders may yet be paid, and gives what was paid before. Lets a
    /// subscription end whose money went back whole. Returns the account, which has that one no more.
    ///
    /// Orders stay open whose money is under way, or whose page is not known: see
    /// [`crate::accounts::Accounts::ties`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`] when stores or provider are away: some pages may be closed.
    pub async fn close(&self, account: &Account) -> Result<Account> {
        let orders = all_of(self.parts.orders.as_ref(), &account.id, PATIENCE).await?;
        for order in orders.iter().filter(|order| order.state == OrderState::Open) {
            self.close_page(order).await?;
        }
        self.end_returned(account).await
    }

    async fn close_page(&self, order: &Order) -> Result<()> {
        let Some(payment) = order.payment.as_ref().filter(|name| self.knows(name)) else { return Ok(()) };
        self.asked(self.checkout()?.close(payment)).await?;
        self.follow(&Subject::new(payment.clone())).await
    }

    /// Lets a subscription end of which nothing is paid any more.
    async fn end_returned(&self, account: &Account) -> Result<Account> {
        let is_returned = account.plan == Plan::Free && account.paid.is_none();
        let known = account.subscription.as_ref().filter(|name| is_returned && self.knows(name));
        let Some(subscription) = known else { return Ok(account.clone()) };
        self.asked(self.checkout()?.stop(subscription)).await?;
        let ended = Account { subscription: None, ..account.clone() };
        match persistently(PATIENCE, || self.parts.directory.change_account(ended.clone())).await? {
            Changed::Changed(account) => Ok(account),
            // Whoever erases it hears of that.
            Changed::Stale | Changed::Missing => Ok(account.clone()),
        }
    }
}
