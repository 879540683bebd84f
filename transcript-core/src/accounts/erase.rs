//! Erasing an account: what stands in its way, and what goes.

use super::{Accounts, Order, OrderState, payments::is_sandbox};
use crate::{
    directory::{Account, Erased},
    error::{Error, ErrorKind, Result, Retry},
    ids::OrderId,
};

/// What ties an account to the payment provider: erased now, somebody would pay for whom nobody knows any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ties {
    /// The subscription that goes on, by the provider's name for it.
    pub subscription: Option<String>,
    /// The orders that may yet be paid, oldest first.
    pub orders: Vec<OrderId>,
}

impl Ties {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.subscription.is_none() && self.orders.is_empty()
    }
}

impl Accounts {
    /// What ties an account, as it was read, to the payment provider.
    ///
    /// # Errors
    /// The ports' faults.
    pub async fn ties(&self, account: &Account) -> Result<Ties> {
        let (accounts, account) = (self.clone(), account.clone());
        self.parts.transcripts.task(async move { accounts.ties_here(&account).await }).await?
    }

    /// Erases an account: its address, keys, tokens, mails that wait, and names at the payment provider. What
    /// was done with its credits and what it ordered stay, under names that say nothing of the person; credits
    /// that are left are lost. Stored replies end by themselves within a day. The address can register anew.
    ///
    /// `account` is as it was read, by whoever decided: it is erased as that, or not at all. `anyway` erases one
    /// that has [`Ties`], too. What is paid for it from then on is told in the log, to be refunded.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Conflict`] when it has ties, or has changed since it was read; the
    /// ports' faults.
    pub async fn delete(&self, account: &Account, anyway: bool) -> Result<()> {
        let (accounts, account) = (self.clone(), account.clone());
        let work = async move { accounts.delete_here(&account, anyway).await };
        self.parts.transcripts.task(work).await?
    }

    async fn delete_here(&self, account: &Account, anyway: bool) -> Result<()> {
        if !anyway && !self.ties_here(account).await?.is_empty() {
            return Err(conflict("the account has a subscription, or orders that may yet be paid"));
        }
        let (directory, now) = (&self.parts.directory, self.parts.clock.now());
        // First, so that whoever has to do it all again still finds the account.
        self.repeatedly(|| self.parts.outbox.forget(&account.email, now)).await?;
        let mut was_tried = false;
        let erase = || {
            // An earlier try that nobody heard of may have taken effect.
            let missing =
                if std::mem::replace(&mut was_tried, true) { Erased::Erased } else { Erased::Missing };
            async move {
                let erased = directory.erase_account(&account.id, account.version, now).await?;
                Ok(if erased == Erased::Missing { missing } else { erased })
            }
        };
        match self.repeatedly(erase).await? {
            Erased::Erased => Ok(()),
            Erased::Stale => Err(conflict("the account has changed since it was looked at")),
            Erased::Missing => Err(super::operate::no_account()),
        }
    }

    async fn ties_here(&self, account: &Account) -> Result<Ties> {
        // The sandbox's own charge nobody, and end with the account.
        let is_real = |name: &String| !is_sandbox(name);
        let may_be_paid =
            |order: &Order| order.state == OrderState::Open && order.payment.as_ref().is_none_or(is_real);
        let orders = self.orders_of(account).await?.into_iter().filter(may_be_paid);
        Ok(Ties {
            subscription: account.subscription.clone().filter(is_real),
            orders: orders.map(|order| order.id).collect(),
        })
    }
}

#[cold]
fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, message)
}
