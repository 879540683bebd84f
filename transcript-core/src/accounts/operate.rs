//! What operators do with accounts.

use super::{Accounts, Credits, Email, Order, Standing, orders::all_of};
use crate::{
    directory::{Account, AccountRef, Changed},
    engine::retry::persistently,
    error::{Error, ErrorKind, Result, Retry},
    ids::{AccountId, GrantId},
    ledger::{Entry, Grant, GrantOutcome},
    page::{Page, PageRequest},
};

/// How often a change is tried anew when somebody else changed the account first.
const CHANGES_MAX: u32 = 32;

/// An account as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// The account.
    pub account: Account,
    /// How it stands with its plan now.
    pub standing: Standing,
    /// Its credits now.
    pub credits: Credits,
}

/// Everything that is kept about an account, for its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountExport {
    /// The account.
    pub view: AccountView,
    /// Every step of its credits, oldest first.
    pub entries: Vec<Entry>,
    /// All that it ordered, oldest first.
    pub orders: Vec<Order>,
}

impl Accounts {
    /// The accounts, oldest first, page by page.
    ///
    /// # Errors
    /// The ports' faults.
    pub async fn list(&self, page: PageRequest) -> Result<Page<AccountView>> {
        let accounts = self.clone();
        let work = async move {
            let page = accounts.repeatedly(|| accounts.parts.directory.accounts(page.clone())).await?;
            let mut items = Vec::with_capacity(page.items.len());
            for account in page.items {
                items.push(accounts.view(account).await?);
            }
            Ok(Page { items, next: page.next })
        };
        self.parts.transcripts.task(work).await?
    }

    /// An account by its id or its e-mail address, in any spelling.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such account; the ports' faults.
    pub async fn show(&self, who: &str) -> Result<AccountView> {
        let (accounts, who) = (self.clone(), who.to_owned());
        let work = async move { accounts.view(accounts.find(&who).await?).await };
        self.parts.transcripts.task(work).await?
    }

    /// Adds credits that do not expire, once per `id`. Returns the account, with them in its credits.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Invalid`] for an amount of 0 or beyond bounds, or a memo longer
    /// than 256 bytes; [`ErrorKind::Conflict`] when the id was used for another grant; the ports' faults.
    pub async fn grant(&self, who: &str, id: GrantId, amount: u64, memo: &str) -> Result<AccountView> {
        let (accounts, who, memo) = (self.clone(), who.to_owned(), memo.to_owned());
        let work = async move {
            let account = accounts.find(&who).await?;
            let parts = &accounts.parts;
            let grant = Grant { id, wallet: account.wallet.clone(), amount, now: parts.clock.now(), memo };
            match accounts.repeatedly(|| parts.ledger.grant(grant.clone())).await? {
                GrantOutcome::Granted { .. } | GrantOutcome::Known => accounts.view(account).await,
                GrantOutcome::Conflict => {
                    let message =
                        format!("the grant {} was made before, to others or of another amount", grant.id);
                    Err(Error::new(ErrorKind::Conflict, Retry::Never, message))
                }
            }
        };
        self.parts.transcripts.task(work).await?
    }

    /// Blocks an account, or unblocks it: the key of a blocked one opens nothing; its credits are kept.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the ports' faults.
    pub async fn set_blocked(&self, who: &str, blocked: bool) -> Result<Account> {
        let (accounts, who) = (self.clone(), who.to_owned());
        let work = async move {
            let id = accounts.find(&who).await?.id;
            accounts.change_here(&id, |account| Account { blocked, ..account.clone() }).await
        };
        self.parts.transcripts.task(work).await?
    }

    /// Every step of an account's credits, oldest first, page by page.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the ports' faults.
    pub async fn statement(&self, who: &str, page: PageRequest) -> Result<Page<Entry>> {
        let (accounts, who) = (self.clone(), who.to_owned());
        let work = async move {
            let wallet = accounts.find(&who).await?.wallet;
            accounts.repeatedly(|| accounts.parts.ledger.entries(&wallet, page.clone())).await
        };
        self.parts.transcripts.task(work).await?
    }

    /// Everything that is kept about an account.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the ports' faults.
    pub async fn export(&self, who: &str) -> Result<AccountExport> {
        let (accounts, who) = (self.clone(), who.to_owned());
        let work = async move {
            let view = accounts.view(accounts.find(&who).await?).await?;
            let orders = accounts.orders_of(&view.account).await?;
            let (mut entries, mut page) = (Vec::new(), PageRequest::first());
            loop {
                let wallet = &view.account.wallet;
                let read = || accounts.parts.ledger.entries(wallet, page.clone());
                let found = accounts.repeatedly(read).await?;
                entries.extend(found.items);
                match found.next {
                    Some(next) => page.after = Some(next),
                    None => return Ok(AccountExport { view, entries, orders }),
                }
            }
        };
        self.parts.transcripts.task(work).await?
    }

    /// Changes an account, however often others change it meanwhile. `change` may be called several times,
    /// also on what it made itself: then it must change nothing more. Returns the account as it is stored.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is no such account; [`ErrorKind::Unavailable`] when others change it
    /// all the time; the directory's faults.
    pub async fn change(
        &self,
        id: &AccountId,
        change: impl Fn(&Account) -> Account + Send + Sync + 'static,
    ) -> Result<Account> {
        let (accounts, id) = (self.clone(), id.clone());
        self.parts.transcripts.task(async move { accounts.change_here(&id, change).await }).await?
    }

    async fn change_here(
        &self,
        id: &AccountId,
        change: impl Fn(&Account) -> Account + Send + Sync,
    ) -> Result<Account> {
        let directory = &self.parts.directory;
        for _ in 0..CHANGES_MAX {
            let who = AccountRef::Id(id.clone());
            let read = || directory.account(&who);
            let account = self.repeatedly(read).await?.ok_or_else(no_account)?;
            let changed = change(&account);
            if changed == account {
                return Ok(account);
            }
            match self.repeatedly(|| directory.change_account(changed.clone())).await? {
                Changed::Changed(account) => return Ok(account),
                // Others were first, or an earlier try of ours took effect unheard: read again and see.
                Changed::Stale => {}
                Changed::Missing => return Err(no_account()),
            }
        }
        Err(Error::unavailable("the account is changed by others all the time"))
    }

    async fn find(&self, who: &str) -> Result<Account> {
        let who = match Email::parse(who) {
            Ok(email) => AccountRef::Email(email.as_str().to_owned()),
            Err(_) => AccountRef::Id(AccountId::new(who.trim())),
        };
        self.repeatedly(|| self.parts.directory.account(&who)).await?.ok_or_else(no_account)
    }

    /// All that an account ordered, oldest first.
    pub(super) async fn orders_of(&self, account: &Account) -> Result<Vec<Order>> {
        all_of(self.parts.orders.as_ref(), &account.id, self.parts.transcripts.patience()).await
    }

    /// Makes a call of a store that may be repeated, for as long as somebody can be kept waiting.
    pub(super) async fn repeatedly<T, F>(&self, call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        persistently(self.parts.transcripts.patience(), call).await
    }

    async fn view(&self, account: Account) -> Result<AccountView> {
        let standing = Standing::of(&account, self.options(), self.parts.clock.now());
        let credits = self.credits_here(&account).await?;
        Ok(AccountView { account, standing, credits })
    }
}

#[cold]
pub(super) fn no_account() -> Error {
    Error::new(ErrorKind::NotFound, Retry::Never, "there is no such account")
}
