//! Accounts of the v1 API.

use std::sync::Arc;

use transcript_core::{
    Error, Page, PageRequest, Result,
    accounts::{AccountAdmin, AccountExport, AccountView, ProviderRefs, RevokedGrant},
    directory::{Account, api_key::ApiKey},
    ids::{AccountId, GrantId, OrderId},
    ledger::Entry,
};

use super::{Completed, Operation, Operations};
use crate::mail::delete_mails;

/// Largest grant, in credits.
pub(crate) const CREDITS_MAX: u64 = 1_000_000_000;
/// Longest memo of a grant, in bytes.
pub(crate) const MEMO_MAX: usize = 256;

/// An account with its new key, which is shown once.
#[derive(Debug)]
pub(crate) struct NewAccount {
    pub(crate) view: AccountView,
    pub(crate) key: ApiKey,
    /// Why its credits are not granted; `None` if they are, or if there are none.
    pub(crate) ungranted: Option<String>,
}

/// The name of the grant with which an account starts. It follows from the account, so that it is granted once.
pub(crate) fn start_grant_name(account: &AccountId) -> String {
    format!("start-{account}")
}

/// The error for a new account that cannot be shown after its grant failed: its key is lost.
///
/// An unexpected error: the admin API does not replace its message.
#[cold]
fn unshown(id: &AccountId, credits: u64, error: &Error) -> Error {
    let start = start_grant_name(id);
    Error::unexpected(format!(
        "the account {id} exists, but its key is lost and its credits are not granted: {error}. `verbatim accounts \
         new-key {id}` replaces the key, and `verbatim accounts grant {id} {credits} --id {start}` grants them once"
    ))
}

/// Outcome of deleting an account.
#[derive(Debug)]
pub(crate) enum DeleteOutcome {
    Deleted {
        /// What the operator has to know or do, one sentence each.
        notes: Vec<String>,
    },
    /// Nothing was deleted, for this reason.
    Refused(String),
}

impl Operations {
    fn admin(&self) -> Arc<AccountAdmin> {
        Arc::clone(&self.verbatim.accounts().admin)
    }

    /// Lists the accounts, oldest first.
    pub(crate) async fn list_accounts(&self, page: PageRequest) -> Result<Page<AccountView>> {
        let admin = self.admin();
        self.record_list("accounts.list", async move { admin.list(page).await }).await
    }

    pub(crate) async fn show_account(&self, selector: &str) -> Result<AccountView> {
        let view = self.admin().show(selector).await?;
        let operation = Operation::new("accounts.show").on(view.account.id.as_str());
        self.record(operation, async { Ok(Completed::done(view)) }).await
    }

    /// Creates an account without an email address, with these credits beside those of its plan.
    pub(crate) async fn create_account(&self, name: &str, credits: u64, memo: &str) -> Result<NewAccount> {
        let (admin, name, memo) = (self.admin(), name.to_owned(), memo.to_owned());
        let detail = (credits > 0).then(|| format!("{credits} credits"));
        let work = async move {
            if memo.len() > MEMO_MAX {
                return Err(Error::invalid(format!("the memo is longer than {MEMO_MAX} bytes")));
            }
            let (account, key) = admin.create(&name).await?;
            let id = account.id.as_str();
            let start = GrantId::operator_grant(start_grant_name(&account.id));
            // The account and its key exist now, also if the grant fails.
            let (view, ungranted) = match credits {
                0 => (admin.show(id).await?, None),
                _ => match admin.grant(id, start, credits, &memo).await {
                    Ok(view) => (view, None),
                    Err(error) => {
                        let view = admin.show(id).await.map_err(|_| unshown(&account.id, credits, &error))?;
                        (view, Some(error.to_string()))
                    }
                },
            };
            let subject = Some(id.to_owned());
            let refusal = ungranted.as_ref().map(|why| format!("its credits are not granted: {why}"));
            Ok(Completed { subject, refusal, ..Completed::done(NewAccount { view, key, ungranted }) })
        };
        self.record(Operation::new("accounts.create").with(detail), work).await
    }

    /// Replaces the key of an account.
    pub(crate) async fn issue_account_key(&self, selector: &str) -> Result<NewAccount> {
        let (admin, id) = (self.admin(), self.account_id(selector).await?);
        let operation = Operation::new("accounts.new-key").on(id.as_str());
        let work = async move {
            let (_, key) = admin.issue_key(&id).await?;
            Ok(Completed::done(NewAccount { view: admin.show(&id).await?, key, ungranted: None }))
        };
        self.record(operation, work).await
    }

    /// Grants credits, once for each name of a grant; also returns whether the grant was found, as
    /// [`AccountAdmin::grant_or_find`] does.
    pub(crate) async fn grant_or_find(
        &self,
        selector: &str,
        grant: &str,
        credits: u64,
        memo: &str,
    ) -> Result<(AccountView, bool)> {
        let (admin, id, memo) = (self.admin(), self.account_id(selector).await?, memo.to_owned());
        let detail = Some(format!("{credits} credits, grant {grant}"));
        let grant = GrantId::operator_grant(grant);
        let operation = Operation::new("accounts.grant").on(id.as_str()).with(detail);
        let work = async move {
            let value = admin.grant_or_find(&id, grant, credits, &memo).await?;
            // Also true if the store repeated the grant after it lost the result: nothing was refused.
            let note = value.1.then_some("existed before or repeated");
            Ok(Completed { note, ..Completed::done(value) })
        };
        self.record(operation, work).await
    }

    /// Takes the credits of a grant back, once, as [`AccountAdmin::revoke_grant`] does.
    pub(crate) async fn revoke_grant(&self, selector: &str, grant: &str) -> Result<RevokedGrant> {
        let (admin, id, grant) = (self.admin(), self.account_id(selector).await?, grant.to_owned());
        let detail = Some(format!("grant {grant}"));
        let operation = Operation::new("accounts.revoke-grant").on(id.as_str()).with(detail);
        let work = async move {
            let revoked = admin.revoke_grant(&id, &grant).await?;
            let note = revoked.is_repeated.then_some("revoked before or repeated");
            Ok(Completed { note, ..Completed::done(revoked) })
        };
        self.record(operation, work).await
    }

    /// Blocks or unblocks an account.
    pub(crate) async fn set_account_blocked(&self, selector: &str, blocked: bool) -> Result<Account> {
        let (admin, id) = (self.admin(), self.account_id(selector).await?);
        let name = if blocked { "accounts.block" } else { "accounts.unblock" };
        let operation = Operation::new(name).on(id.as_str());
        self.record(operation, async move { Ok(Completed::done(admin.set_blocked(&id, blocked).await?)) })
            .await
    }

    /// Lists the ledger entries of an account, oldest first.
    pub(crate) async fn account_statement(&self, selector: &str, page: PageRequest) -> Result<Page<Entry>> {
        let (admin, id) = (self.admin(), self.account_id(selector).await?);
        let operation = Operation::new("accounts.statement").on(id.as_str());
        self.record(operation, async move { Ok(Completed::done(admin.statement(&id, page).await?)) }).await
    }

    /// What is stored about an account, without the ledger entries, which may be millions.
    pub(crate) async fn export_account(&self, selector: &str) -> Result<AccountExport> {
        let (admin, id) = (self.admin(), self.account_id(selector).await?);
        let operation = Operation::new("accounts.export").on(id.as_str());
        let work = async move {
            let account = admin.show(&id).await?.account;
            Ok(Completed::done(admin.export_without_entries(&account).await?))
        };
        self.record(operation, work).await
    }

    /// Erases an account as it was read; with `anyway` despite a subscription or an order that may still be paid.
    pub(crate) async fn delete_account(&self, account: &Account, anyway: bool) -> Result<DeleteOutcome> {
        let (this, account) = (self.clone(), account.clone());
        let detail = anyway.then(|| "anyway".to_owned());
        let operation = Operation::new("accounts.delete").on(account.id.as_str()).with(detail);
        let work = async move {
            let outcome = this.delete_in_task(account, anyway).await?;
            let refusal = match &outcome {
                DeleteOutcome::Deleted { .. } => None,
                DeleteOutcome::Refused(why) => Some(why.clone()),
            };
            Ok(Completed { refusal, ..Completed::done(outcome) })
        };
        self.record(operation, work).await
    }

    async fn delete_in_task(&self, account: Account, anyway: bool) -> Result<DeleteOutcome> {
        let (admin, mut notes) = (self.admin(), Vec::new());
        let account = match self.verbatim.payments().close(&account).await {
            Ok(account) => account,
            Err(error) if anyway => {
                notes.push(format!("its open checkout sessions could not be closed: {error}"));
                account
            }
            Err(error) => {
                return Ok(DeleteOutcome::Refused(format!(
                    "its open checkout sessions could not be closed: {error}; try again once the payment provider is \
                     reachable"
                )));
            }
        };
        let refs = admin.provider_refs(&account).await?;
        if !refs.is_empty() && !anyway {
            return Ok(DeleteOutcome::Refused(obstacles(&refs)));
        }
        // What can fail comes before the erasure, because a repeat after an error must find the account.
        let mut payable = Vec::with_capacity(refs.orders.len());
        for order in &refs.orders {
            payable.push(self.payable_order(order).await?);
        }
        let mut mails = self.delete_outbox_mails(&account.email).await?;
        // The account as read: a change since then makes the deletion fail.
        admin.delete(&account, anyway).await?;
        notes.push(format!("{}: deleted", account.id));
        if let Some(subscription) = &refs.subscription {
            notes.push(format!(
                "the subscription {subscription} continues: cancel it at the payment provider"
            ));
        }
        notes.extend(payable);
        // A mail that was in transit may have been written since.
        match self.delete_outbox_mails(&account.email).await {
            Ok(count) => mails += count,
            Err(error) => notes.push(error.to_string()),
        }
        match mails {
            0 => {}
            1 => notes.push("1 mail to it was deleted from the outbox folder".to_owned()),
            mails => notes.push(format!("{mails} mails to it were deleted from the outbox folder")),
        }
        Ok(DeleteOutcome::Deleted { notes })
    }

    /// Deletes the mails to an address from the outbox folder. Returns their number.
    async fn delete_outbox_mails(&self, email: &str) -> Result<usize> {
        let (folder, email) = (self.outbox_folder.clone(), email.to_owned());
        let deleted = tokio::task::spawn_blocking(move || delete_mails(&folder, &email)).await;
        deleted.unwrap_or_else(|_| Err(std::io::Error::other("the deletion ended early"))).map_err(|error| {
            let folder = self.outbox_folder.display();
            Error::unexpected(format!("some of its mails in {folder} could not be deleted: {error}"))
        })
    }

    /// What to do about an order of a deleted account that may still be paid.
    async fn payable_order(&self, order: &OrderId) -> Result<String> {
        let payment = self.verbatim.payments().order(order).await?.and_then(|order| order.payment);
        // The sandbox stores a token after the name.
        let payment = payment.as_deref().and_then(|name| name.split(' ').next()).unwrap_or("unknown");
        Ok(format!(
            "the order {order} may still be paid (payment {payment}): the server's log reports it; refund it then"
        ))
    }

    /// The id of an account, which the audit log has in place of an address.
    async fn account_id(&self, selector: &str) -> Result<String> {
        Ok(self.admin().show(selector).await?.account.id.to_string())
    }
}

/// The reasons why an account cannot be deleted, with the remedies.
fn obstacles(refs: &ProviderRefs) -> String {
    let mut reasons = Vec::new();
    if let Some(subscription) = &refs.subscription {
        reasons.push(format!(
            "its subscription {subscription} would continue to charge a customer without an account; cancel it at the \
             payment provider first"
        ));
    }
    match refs.orders.as_slice() {
        [] => {}
        [order] => reasons.push(format!(
            "its order {order} may still be paid; wait until its checkout session has expired, within a day or two, or \
             expire it at the payment provider"
        )),
        orders => reasons.push(format!(
            "{} of its orders may still be paid, the first is {}; wait until their checkout sessions have expired, \
             within a day or two, or expire them at the payment provider",
            orders.len(),
            orders[0]
        )),
    }
    reasons.join("; and ")
}
