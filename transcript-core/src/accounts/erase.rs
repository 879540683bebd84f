//! Erasing an account: what prevents it, and what is deleted.

use std::sync::Arc;

use super::{
    AccountAdmin, Order, OrderState, admin::account_not_found, jobs::STORED_MAX, orders::is_sandbox,
};
use crate::{
    directory::{Account, EraseOutcome},
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, OrderId},
    time::Timestamp,
};

/// How often an erasure is repeated after a concurrent change of the account.
const ATTEMPTS_MAX: u32 = 8;

/// References of an account at the payment provider.
///
/// While one exists, the account is not erased: a later payment would have no owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderRefs {
    /// The running subscription, by the provider's id.
    pub subscription: Option<String>,
    /// The orders that may still be paid, oldest first.
    pub orders: Vec<OrderId>,
}

impl ProviderRefs {
    /// Whether the account has no such reference.
    pub fn is_empty(&self) -> bool {
        self.subscription.is_none() && self.orders.is_empty()
    }
}

impl AccountAdmin {
    /// The payment provider's references of an account.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn provider_refs(self: &Arc<Self>, account: &Account) -> Result<ProviderRefs> {
        let (admin, account) = (Arc::clone(self), account.clone());
        let work = async move {
            // Sandbox payments charge no money and end with the account.
            let is_real = |name: &String| !is_sandbox(name);
            let is_payable =
                |order: &Order| order.state == OrderState::Open && order.payment.as_ref().is_none_or(is_real);
            let orders = admin.orders_of(&account).await?.into_iter().filter(is_payable);
            let orders = orders.map(|order| order.id).collect();
            Ok(ProviderRefs { subscription: account.subscription.filter(is_real), orders })
        };
        self.context.transcripts.task(work).await?
    }

    /// Erases an account: its address, keys, tokens, sessions, queued mails, jobs and provider ids.
    ///
    /// The history of its credits and its orders stays, under ids that do not identify the person; remaining
    /// credits are lost. Stored responses expire within a day. The address can register again. Its jobs end first and
    /// are deleted last, job by job: if the process ends before that, the servers delete them.
    ///
    /// `account` is the version that the decision was based on: if it has changed since, nothing is deleted. A change
    /// during the call fails it only if it adds [`ProviderRefs`], or blocks the account. `force` also erases an account
    /// that has [`ProviderRefs`]. A later payment for it is logged, to be refunded.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Conflict`] if it has provider references, or has changed since it
    /// was read; the errors of the ports.
    pub async fn delete(self: &Arc<Self>, account: &Account, force: bool) -> Result<()> {
        let (admin, account) = (Arc::clone(self), account.clone());
        let work = async move {
            let mut version = admin.find(account.id.as_str()).await?.version;
            if version != account.version {
                return Err(changed());
            }
            admin.check_refs(&account, force).await?;
            let AccountAdmin { context, outbox, sessions, jobs, .. } = &*admin;
            let now = context.now();
            // Mails are cancelled, and sessions and jobs end first, so that a repeat after a failure still finds the
            // account. Then the servers delete the jobs, also if this process ends.
            context.retry_store(|| outbox.cancel_for_address(&account.email, now)).await?;
            context.retry_store(|| sessions.revoke_sessions(&account.id, None)).await?;
            context.retry_store(|| jobs.discard_for_account(&account.id)).await?;
            for _ in 0..ATTEMPTS_MAX {
                match admin.erase_version(&account, version, now).await? {
                    EraseOutcome::Erased => {
                        if let Err(error) = admin.delete_jobs(&account.id).await {
                            tracing::error!(account = %account.id, %error, "jobs of an erased account not deleted");
                        }
                        return Ok(());
                    }
                    EraseOutcome::Stale => {
                        let stored = admin.find(account.id.as_str()).await?;
                        if stored.blocked != account.blocked {
                            return Err(changed());
                        }
                        admin.check_refs(&stored, force).await?;
                        version = stored.version;
                    }
                    EraseOutcome::Missing => return Err(account_not_found()),
                }
            }
            Err(changed())
        };
        self.context.transcripts.task(work).await?
    }

    /// Deletes the jobs of an erased account, each in a transaction: the items of all may be half a million.
    async fn delete_jobs(&self, account: &AccountId) -> Result<()> {
        let context = &self.context;
        // A request that was admitted before may have created a job since.
        context.retry_store(|| self.jobs.discard_for_account(account)).await?;
        // Only discarded jobs ended before that time.
        let before = Timestamp::from_millis(1);
        for _ in 0..STORED_MAX {
            if context.retry_store(|| self.jobs.delete_ended(before, 1)).await? == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn check_refs(self: &Arc<Self>, account: &Account, force: bool) -> Result<()> {
        if !force && !self.provider_refs(account).await?.is_empty() {
            return Err(conflict("the account has a subscription, or orders that may still be paid"));
        }
        Ok(())
    }

    /// Erases a version of an account.
    pub(super) async fn erase_version(
        &self,
        account: &Account,
        version: u64,
        now: Timestamp,
    ) -> Result<EraseOutcome> {
        let mut is_retry = false;
        let erase = || {
            // An earlier try whose result was lost may have taken effect.
            let missing = match std::mem::replace(&mut is_retry, true) {
                true => EraseOutcome::Erased,
                false => EraseOutcome::Missing,
            };
            let erased = self.directory.erase_account(&account.id, version, now);
            async move {
                let erased = erased.await?;
                Ok(if erased == EraseOutcome::Missing { missing } else { erased })
            }
        };
        self.context.retry_store(erase).await
    }
}

#[cold]
fn changed() -> Error {
    conflict("the account has changed since it was read")
}

#[cold]
fn conflict(message: &str) -> Error {
    Error::new(ErrorKind::Conflict, Retry::Never, message)
}
