//! Operator functions on accounts.

use std::sync::Arc;

use super::{
    AccountCredits, CreditBalance, EffectivePlan, Email, Order, OrderStore, Outbox, Session, SessionStore,
    call_context::CallContext,
    change_account::change_account,
    jobs::{Job, JobStore},
    orders::{list_all_for_account, refund_prefix},
};
use crate::{
    directory::{Account, AccountKey, AccountRef, Directory},
    error::{Error, ErrorKind, Result},
    ids::{AccountId, GrantId, WalletId},
    ledger::{
        Entry, EntryKind, GrantOutcome, GrantRequest, Pool, PoolBalance, RevokeOutcome, RevokeRequest, Terms,
    },
    page::{Page, PageRequest},
};

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

/// Purpose of the entry of a revoked grant.
const REVOKE_MEMO: &str = "taken back by the operator";
/// Pages of entries that are searched for a grant: of an account with more, only young grants are revoked.
const GRANT_PAGES_MAX: u32 = 1_000;

/// A grant among the entries of a wallet.
struct FoundGrant {
    id: GrantId,
    amount: u64,
    is_revoked: bool,
    /// Credits that were purchased after it and not refunded.
    purchased_since: u64,
}

/// A grant of an operator that was revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedGrant {
    /// The account with its credits now.
    pub view: AccountView,
    /// Credits that were taken back.
    pub taken: u64,
    /// Credits of the grant that were spent or held, and are not taken back.
    pub shortfall: u64,
    /// Whether the grant was revoked before, by an earlier call or an earlier try of this one.
    pub is_repeated: bool,
}

/// The stored data of an account, for its owner, without its ledger entries: [`AccountAdmin::statement`] lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountExport {
    /// The account, its plan and credits.
    pub view: AccountView,
    /// Its orders, oldest first, without the credit orders of payments for a second subscription.
    pub orders: Vec<Order>,
    /// Its live keys, oldest first; empty if the directory does not list them.
    pub keys: Vec<AccountKey>,
    /// Its browser sessions, the most recently used one first.
    pub sessions: Vec<Session>,
    /// Its jobs without their items, the newest first.
    pub jobs: Vec<Job>,
}

/// Operator functions on accounts: list, credit, block, change, export and erase.
///
/// Uses the directory, the orders, the outbox, the sessions and the ledger.
#[derive(Debug)]
pub struct AccountAdmin {
    pub(super) context: Arc<CallContext>,
    pub(super) credits: Arc<AccountCredits>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) orders: Arc<dyn OrderStore>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) jobs: Arc<dyn JobStore>,
    pub(super) sessions: Arc<dyn SessionStore>,
}

impl AccountAdmin {
    /// Lists the accounts, oldest first.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn list(self: &Arc<Self>, page: PageRequest) -> Result<Page<AccountView>> {
        let admin = Arc::clone(self);
        let work = async move {
            let page = admin.context.retry_store(|| admin.directory.accounts(page.clone())).await?;
            let mut items = Vec::with_capacity(page.items.len());
            for account in page.items {
                items.push(admin.view(account).await?);
            }
            Ok(Page { items, next: page.next })
        };
        self.context.transcripts.task(work).await?
    }

    /// The account with this id, email address (in any spelling), or name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such account; the errors of the ports.
    pub async fn show(self: &Arc<Self>, selector: &str) -> Result<AccountView> {
        let (admin, selector) = (Arc::clone(self), selector.to_owned());
        let work = async move { admin.view(admin.find(&selector).await?).await };
        self.context.transcripts.task(work).await?
    }

    /// Adds credits that do not expire, once per `id`. Returns the account with its new credits.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Invalid`] for an empty id, an amount of 0 or out of range, or a memo
    /// longer than 256 bytes; [`ErrorKind::Conflict`] if the id was used for another grant; the errors of the ports.
    pub async fn grant(
        self: &Arc<Self>,
        selector: &str,
        id: GrantId,
        amount: u64,
        memo: &str,
    ) -> Result<AccountView> {
        self.grant_or_find(selector, id, amount, memo).await.map(|(view, _)| view)
    }

    /// As [`AccountAdmin::grant`]; also returns whether the grant was found: an earlier call made it, or an earlier
    /// try of this call, whose result was lost.
    ///
    /// # Errors
    /// As [`AccountAdmin::grant`].
    pub async fn grant_or_find(
        self: &Arc<Self>,
        selector: &str,
        id: GrantId,
        amount: u64,
        memo: &str,
    ) -> Result<(AccountView, bool)> {
        let (admin, selector, memo) = (Arc::clone(self), selector.to_owned(), memo.to_owned());
        let work = async move {
            if id == GrantId::operator_grant("") {
                return Err(Error::invalid("the id of a grant is empty"));
            }
            let account = admin.find(&selector).await?;
            let (wallet, now) = (account.wallet.clone(), admin.context.now());
            let grant = GrantRequest { id, wallet, amount, now, memo };
            let outcome = admin.context.retry_store(|| admin.credits.ledger.grant(grant.clone())).await?;
            match outcome {
                GrantOutcome::Granted { .. } => Ok((admin.view(account).await?, false)),
                GrantOutcome::Exists => Ok((admin.view(account).await?, true)),
                GrantOutcome::Conflict => {
                    let name = grant.id.operator_name().unwrap_or(grant.id.as_str());
                    Err(Error::conflict(format!(
                        "grant {name} exists for another account or amount; use a new id"
                    )))
                }
            }
        };
        self.context.transcripts.task(work).await?
    }

    /// Revokes an operator's grant, once: takes its credits back, as far as they are available.
    ///
    /// `name` is that of [`GrantId::operator_grant`].
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such account, or the account has no such grant;
    /// [`ErrorKind::Conflict`] for purchased credits, which a refund takes back, and if credits that were purchased
    /// after the grant would be taken; the errors of the ports.
    pub async fn revoke_grant(self: &Arc<Self>, selector: &str, name: &str) -> Result<RevokedGrant> {
        let (admin, selector, name) = (Arc::clone(self), selector.to_owned(), name.to_owned());
        let work = async move {
            let account = admin.find(&selector).await?;
            let found = admin.find_grant(&account.wallet, &name).await?;
            admin.check_revocable(&account.wallet, &found).await?;
            let (id, grant, amount) = (revocation_id(&found.id), found.id, found.amount);
            let revoke =
                RevokeRequest { id, grant, amount, now: admin.context.now(), memo: REVOKE_MEMO.to_owned() };
            let outcome = admin.context.retry_store(|| admin.credits.ledger.revoke(revoke.clone())).await?;
            let (taken, shortfall, is_repeated) = match outcome {
                RevokeOutcome::Revoked { taken, shortfall } => (taken, shortfall, false),
                RevokeOutcome::Exists { taken, shortfall } => (taken, shortfall, true),
                RevokeOutcome::GrantNotFound => return Err(grant_not_found()),
                RevokeOutcome::Conflict => {
                    return Err(Error::conflict(format!("the id {} has another use", revoke.id)));
                }
            };
            Ok(RevokedGrant { view: admin.view(account).await?, taken, shortfall, is_repeated })
        };
        self.context.transcripts.task(work).await?
    }

    /// Blocks or unblocks an account. The key of a blocked account is rejected; its credits are kept.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the errors of the ports.
    pub async fn set_blocked(self: &Arc<Self>, selector: &str, blocked: bool) -> Result<Account> {
        let (admin, selector) = (Arc::clone(self), selector.to_owned());
        let work = async move {
            let id = admin.find(&selector).await?.id;
            admin.change(&id, move |account| Account { blocked, ..account.clone() }).await
        };
        self.context.transcripts.task(work).await?
    }

    /// Lists the ledger entries of an account's credits, oldest first.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the errors of the ports.
    pub async fn statement(self: &Arc<Self>, selector: &str, page: PageRequest) -> Result<Page<Entry>> {
        let (admin, selector) = (Arc::clone(self), selector.to_owned());
        let work = async move {
            let wallet = admin.find(&selector).await?.wallet;
            admin.context.retry_store(|| admin.credits.ledger.entries(&wallet, page.clone())).await
        };
        self.context.transcripts.task(work).await?
    }

    /// The stored data of an account, without the ledger entries, which may be millions.
    ///
    /// # Errors
    /// The errors of the ports.
    pub async fn export_without_entries(self: &Arc<Self>, account: &Account) -> Result<AccountExport> {
        let (admin, account) = (Arc::clone(self), account.clone());
        self.context.transcripts.task(async move { admin.read_export(account).await }).await?
    }

    async fn read_export(&self, account: Account) -> Result<AccountExport> {
        let (context, id) = (&self.context, &account.id);
        let mut orders = self.orders_of(&account).await?;
        orders.retain(|order| !order.is_credit_order());
        let keys = match context.retry_store(|| self.directory.account_keys(id)).await {
            Err(error) if error.kind() == ErrorKind::Unsupported => Vec::new(),
            keys => keys?,
        };
        let sessions = context.retry_store(|| self.sessions.sessions(id, context.now())).await?;
        // About as many jobs of an account are stored as fit on a page.
        let jobs = context.retry_store(|| self.jobs.jobs_of(id, PageRequest::first())).await?.items;
        let view = self.view(account).await?;
        Ok(AccountExport { view, orders, keys, sessions, jobs })
    }

    /// Changes an account, with retries after concurrent changes; returns the stored account.
    ///
    /// `change` may be called several times, also on its own result: then it must return it unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if there is no such account; [`ErrorKind::Unavailable`] if every retry meets
    /// another concurrent change; the directory's errors.
    pub async fn change(
        self: &Arc<Self>,
        id: &AccountId,
        change: impl Fn(&Account) -> Account + Send + Sync + 'static,
    ) -> Result<Account> {
        let (admin, id) = (Arc::clone(self), id.clone());
        let work = async move {
            let policy = admin.context.transcripts.options().request_policy();
            let changed = change_account(admin.directory.as_ref(), policy, &id, change).await?;
            changed.ok_or_else(account_not_found)
        };
        self.context.transcripts.task(work).await?
    }

    /// The account with this address, id or name.
    pub(super) async fn find(&self, selector: &str) -> Result<Account> {
        let name = selector.trim();
        let references = match Email::parse(selector) {
            Ok(email) => vec![AccountRef::Email(email.as_str().to_owned())],
            Err(_) => vec![AccountRef::Id(AccountId::new(name)), AccountRef::Email(name.to_owned())],
        };
        for reference in references {
            if let Some(account) = self.context.retry_store(|| self.directory.account(&reference)).await? {
                return Ok(account);
            }
        }
        Err(account_not_found())
    }

    /// The grant of this name in a wallet. The newest entries are read first: a wrong grant is young, and refunds come
    /// before their purchase.
    async fn find_grant(&self, wallet: &WalletId, name: &str) -> Result<FoundGrant> {
        let (id, mut page) = (GrantId::operator_grant(name), PageRequest::first());
        let (mut revoked, mut purchased_since) = (Vec::<(GrantId, u64)>::new(), 0_u64);
        for _ in 0..GRANT_PAGES_MAX {
            let read = || self.credits.ledger.recent_entries(wallet, page.clone());
            let entries = self.context.retry_store(read).await?;
            for entry in entries.items {
                let (cause, amount) = (GrantId::new(entry.cause), entry.amount);
                match entry.kind {
                    EntryKind::Granted if cause == id || cause.as_str() == name => {
                        let revocation = revocation_id(&cause);
                        let is_revoked = revoked.iter().any(|(id, _)| *id == revocation);
                        return Ok(FoundGrant { id: cause, amount, is_revoked, purchased_since });
                    }
                    EntryKind::Granted if cause.operator_name().is_none() => {
                        let refunds = refund_prefix(cause.as_str());
                        let refunded = revoked.iter().filter(|(id, _)| id.as_str().starts_with(&refunds));
                        let kept = refunded.fold(amount, |kept, (_, amount)| kept.saturating_sub(*amount));
                        purchased_since = purchased_since.saturating_add(kept);
                    }
                    // A refund also returns the price of credits that were spent.
                    EntryKind::Revoked { shortfall } => {
                        revoked.push((cause, amount.saturating_add(shortfall)))
                    }
                    _ => {}
                }
            }
            match entries.next {
                Some(next) => page.after = Some(next),
                None => return Err(grant_not_found()),
            }
        }
        Err(grant_not_found())
    }

    /// Refuses to revoke a purchase, or to take credits that were purchased after a grant and not refunded. The credits
    /// of a wallet are one sum: those of the grant, and older ones, count as spent first.
    async fn check_revocable(&self, wallet: &WalletId, grant: &FoundGrant) -> Result<()> {
        let FoundGrant { id, amount, is_revoked, purchased_since } = grant;
        if id.operator_name().is_none() {
            return Err(Error::conflict(format!(
                "{id} is a purchase: refund it at the payment provider, which takes its credits back"
            )));
        }
        if *is_revoked || *purchased_since == 0 {
            return Ok(());
        }
        let terms = Terms { pools: vec![Pool::Purchased], resets_at: None };
        let balance = self.context.retry_store(|| self.credits.ledger.balance(wallet, &terms)).await?;
        let available: u64 = balance.pools.iter().map(PoolBalance::available).sum();
        if available < amount.saturating_add(*purchased_since) {
            return Err(Error::conflict(format!(
                "credits of this grant are spent or held, and the account has bought {purchased_since} since, which \
                 must not be taken: {available} are left"
            )));
        }
        Ok(())
    }

    /// All orders of an account, credit orders included, oldest first.
    pub(super) async fn orders_of(&self, account: &Account) -> Result<Vec<Order>> {
        let policy = self.context.transcripts.options().request_policy();
        list_all_for_account(self.orders.as_ref(), &account.id, policy).await
    }

    pub(super) async fn view(&self, account: Account) -> Result<AccountView> {
        let effective_plan = self.context.effective_plan(&account, self.context.now());
        let credits = self.credits.balance(&account).await?;
        Ok(AccountView { account, effective_plan, credits })
    }
}

fn revocation_id(grant: &GrantId) -> GrantId {
    GrantId::new(format!("revoke-{grant}"))
}

#[cold]
fn grant_not_found() -> Error {
    Error::not_found("the account has no grant with this id")
}

#[cold]
pub(super) fn account_not_found() -> Error {
    Error::not_found("there is no such account")
}
