//! Operator functions on accounts.

use super::{Accounts, CreditBalance, EffectivePlan, Email, Order, orders::list_all_for_account};
use crate::{
    directory::{Account, AccountRef, UpdateOutcome},
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, GrantId},
    ledger::{Entry, GrantOutcome, GrantRequest},
    page::{Page, PageRequest},
    retry::retry_store,
};

/// How often a change is retried after a concurrent change of the account.
const CHANGE_ATTEMPTS_MAX: u32 = 32;

/// An account for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// The account.
    pub account: Account,
    /// Its effective plan now.
    pub effective_plan: EffectivePlan,
    /// Its credits now.
    pub credits: CreditBalance,
}

/// All stored data of an account, for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountExport {
    /// The account, its plan and credits.
    pub view: AccountView,
    /// All ledger entries of its credits, oldest first.
    pub entries: Vec<Entry>,
    /// All its orders, oldest first.
    pub orders: Vec<Order>,
}

impl Accounts {
    /// Lists the accounts, oldest first.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn list(&self, page: PageRequest) -> Result<Page<AccountView>> {
        let accounts = self.clone();
        let work = async move {
            let page = accounts.retry_port(|| accounts.deps.directory.accounts(page.clone())).await?;
            let mut items = Vec::with_capacity(page.items.len());
            for account in page.items {
                items.push(accounts.view(account).await?);
            }
            Ok(Page { items, next: page.next })
        };
        self.deps.transcripts.task(work).await?
    }

    /// The account with this id or e-mail address (in any spelling).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such account; the errors of the ports.
    pub async fn show(&self, selector: &str) -> Result<AccountView> {
        let (accounts, selector) = (self.clone(), selector.to_owned());
        let work = async move { accounts.view(accounts.find(&selector).await?).await };
        self.deps.transcripts.task(work).await?
    }

    /// Adds credits that do not expire, once per `id`. Returns the account with its new credits.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Invalid`] for an amount of 0 or out of range, or a memo longer
    /// than 256 bytes; [`ErrorKind::Conflict`] if the id was used for another grant; the errors of the ports.
    pub async fn grant(&self, selector: &str, id: GrantId, amount: u64, memo: &str) -> Result<AccountView> {
        let (accounts, selector, memo) = (self.clone(), selector.to_owned(), memo.to_owned());
        let work = async move {
            let account = accounts.find(&selector).await?;
            let deps = &accounts.deps;
            let grant =
                GrantRequest { id, wallet: account.wallet.clone(), amount, now: deps.clock.now(), memo };
            match accounts.retry_port(|| deps.ledger.grant(grant.clone())).await? {
                GrantOutcome::Granted { .. } | GrantOutcome::Exists => accounts.view(account).await,
                GrantOutcome::Conflict => {
                    let message =
                        format!("grant {} exists for another account or amount; use a new id", grant.id);
                    Err(Error::new(ErrorKind::Conflict, Retry::Never, message))
                }
            }
        };
        self.deps.transcripts.task(work).await?
    }

    /// Blocks or unblocks an account. The key of a blocked account is rejected; its credits are kept.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the errors of the ports.
    pub async fn set_blocked(&self, selector: &str, blocked: bool) -> Result<Account> {
        let (accounts, selector) = (self.clone(), selector.to_owned());
        let work = async move {
            let id = accounts.find(&selector).await?.id;
            accounts.change_on_runtime(&id, |account| Account { blocked, ..account.clone() }).await
        };
        self.deps.transcripts.task(work).await?
    }

    /// Lists the ledger entries of an account's credits, oldest first.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the errors of the ports.
    pub async fn statement(&self, selector: &str, page: PageRequest) -> Result<Page<Entry>> {
        let (accounts, selector) = (self.clone(), selector.to_owned());
        let work = async move {
            let wallet = accounts.find(&selector).await?.wallet;
            accounts.retry_port(|| accounts.deps.ledger.entries(&wallet, page.clone())).await
        };
        self.deps.transcripts.task(work).await?
    }

    /// All stored data of an account.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the errors of the ports.
    pub async fn export(&self, selector: &str) -> Result<AccountExport> {
        let (accounts, selector) = (self.clone(), selector.to_owned());
        let work = async move {
            let view = accounts.view(accounts.find(&selector).await?).await?;
            let orders = accounts.orders_of(&view.account).await?;
            let (mut entries, mut page) = (Vec::new(), PageRequest::first());
            loop {
                let wallet = &view.account.wallet;
                let read = || accounts.deps.ledger.entries(wallet, page.clone());
                let found = accounts.retry_port(read).await?;
                entries.extend(found.items);
                match found.next {
                    Some(next) => page.after = Some(next),
                    None => return Ok(AccountExport { view, entries, orders }),
                }
            }
        };
        self.deps.transcripts.task(work).await?
    }

    /// Changes an account, with retries after concurrent changes; returns the stored account.
    ///
    /// `change` may be called several times, also on its own result: then it must return it unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such account; [`ErrorKind::Unavailable`] if every retry meets
    /// another concurrent change; the directory's errors.
    pub async fn change(
        &self,
        id: &AccountId,
        change: impl Fn(&Account) -> Account + Send + Sync + 'static,
    ) -> Result<Account> {
        let (accounts, id) = (self.clone(), id.clone());
        self.deps.transcripts.task(async move { accounts.change_on_runtime(&id, change).await }).await?
    }

    async fn change_on_runtime(
        &self,
        id: &AccountId,
        change: impl Fn(&Account) -> Account + Send + Sync,
    ) -> Result<Account> {
        let directory = &self.deps.directory;
        for _ in 0..CHANGE_ATTEMPTS_MAX {
            let selector = AccountRef::Id(id.clone());
            let read = || directory.account(&selector);
            let account = self.retry_port(read).await?.ok_or_else(account_not_found)?;
            let changed = change(&account);
            if changed == account {
                return Ok(account);
            }
            match self.retry_port(|| directory.update_account(changed.clone())).await? {
                UpdateOutcome::Changed(account) => return Ok(account),
                // A concurrent change, or an earlier try of this call that took effect: read again.
                UpdateOutcome::Stale => {}
                UpdateOutcome::Missing => return Err(account_not_found()),
            }
        }
        Err(Error::unavailable("the account was changed concurrently on every attempt: try again"))
    }

    async fn find(&self, selector: &str) -> Result<Account> {
        let selector = match Email::parse(selector) {
            Ok(email) => AccountRef::Email(email.as_str().to_owned()),
            Err(_) => AccountRef::Id(AccountId::new(selector.trim())),
        };
        self.retry_port(|| self.deps.directory.account(&selector)).await?.ok_or_else(account_not_found)
    }

    /// All orders of an account, oldest first.
    pub(super) async fn orders_of(&self, account: &Account) -> Result<Vec<Order>> {
        list_all_for_account(
            self.deps.orders.as_ref(),
            &account.id,
            self.deps.transcripts.options().request_policy(),
        )
        .await
    }

    /// Makes an idempotent store call with the retries of calls that a caller waits for.
    pub(super) async fn retry_port<T, F>(&self, call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        retry_store(self.deps.transcripts.options().request_policy(), call).await
    }

    async fn view(&self, account: Account) -> Result<AccountView> {
        let effective_plan = EffectivePlan::new(&account, self.options(), self.deps.clock.now());
        let credits = self.credits_on_runtime(&account).await?;
        Ok(AccountView { account, effective_plan, credits })
    }
}

#[cold]
pub(super) fn account_not_found() -> Error {
    Error::new(ErrorKind::NotFound, Retry::Never, "there is no such account")
}
