//! Changes of accounts that other calls may change at the same time.

use crate::{
    directory::{Account, AccountRef, Directory, UpdateOutcome},
    error::{Error, Result},
    ids::AccountId,
    retry::{StorePolicy, retry_store},
};

/// How often a change is repeated after a concurrent change of the account.
const ATTEMPTS_MAX: u32 = 32;

/// Changes an account, with retries after concurrent changes; returns the stored account, `None` if there is none.
///
/// `change` may be called several times, also on its own result: then it must return it unchanged. The policy limits
/// each store call.
///
/// # Errors
/// [`crate::ErrorKind::Unavailable`] if every retry meets another concurrent change; the directory's errors.
pub(super) async fn change_account(
    directory: &dyn Directory,
    policy: StorePolicy,
    id: &AccountId,
    change: impl Fn(&Account) -> Account,
) -> Result<Option<Account>> {
    let reference = AccountRef::Id(id.clone());
    for _ in 0..ATTEMPTS_MAX {
        let Some(account) = retry_store(policy, || directory.account(&reference)).await? else {
            return Ok(None);
        };
        let changed = change(&account);
        if changed == account {
            return Ok(Some(account));
        }
        match retry_store(policy, || directory.update_account(changed.clone())).await? {
            UpdateOutcome::Changed(account) => return Ok(Some(account)),
            // A concurrent change, or an earlier try of this call that took effect: read again.
            UpdateOutcome::Stale => {}
            UpdateOutcome::Missing => return Ok(None),
        }
    }
    Err(Error::unavailable("the account was changed concurrently on every attempt: try again"))
}
