//! The mail sender: takes mails from the outbox and passes them to the mailer.
//!
//! It leases a mail, creates its token, sends it and marks it as done. If it stops in between, the lease expires
//! and the mail is sent again, with another token that is also valid: a mail may be sent twice and is never
//! lost.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};

use super::{MailBranding, MailMessage, Mailer, OutboxNotifier, templates::LinkMail};
use crate::{
    accounts::{
        MailIntent, MailKind, OrderStore, Outbox, RETRY_PAUSE_MAX, SessionStore, SignInLink,
        outbox::RECEIPT_PREFIX, sessions::new_token,
    },
    debug_fields,
    directory::{Account, AccountRef, Directory, VerificationToken},
    error::{Error, Result, Retry},
    ids::OrderId,
    retry::{Backoff, StorePolicy, retry_store_persistently, with_timeout},
    tasks::LeaseLoop,
    time::{Clock, Random},
};

/// Concurrent sends: one that stalls does not delay the others.
const CONCURRENCY: u32 = 8;
/// Poll interval for mails without a notification: retries, and mails of a process that died.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// How long the stop waits for sends.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the mailer for one mail.
const SEND_TIMEOUT: Duration = Duration::from_secs(120);
/// Duration of a mail's lease: longer than all work on the mail can take.
const LEASE: Duration = Duration::from_secs(300);
/// Timeout of a store call, and timeouts of marking a mail as done.
const STORE_POLICY: StorePolicy =
    StorePolicy { attempt: Duration::from_secs(5), total: Duration::from_secs(60) };
/// The largest number of attempts per mail. With the pauses in between they take four hours.
const ATTEMPTS_MAX: u32 = 12;
/// The pause after the first attempt; it doubles each time: 15 s, 30 s, 1 min, …
const FIRST_PAUSE: Duration = Duration::from_secs(15);

/// Dependencies of [`MailSender`].
#[derive(Clone, Debug)]
pub struct MailSenderDeps {
    /// The queue of mails.
    pub outbox: Arc<dyn Outbox>,
    /// The store of accounts and tokens.
    pub directory: Arc<dyn Directory>,
    /// The orders of receipts.
    pub orders: Arc<dyn OrderStore>,
    /// The store of sign-in links.
    pub sessions: Arc<dyn SessionStore>,
    /// Sends the mails.
    pub mailer: Arc<dyn Mailer>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for the tokens.
    pub random: Arc<dyn Random>,
    /// The service's name and URL in the mails, and their texts.
    pub branding: MailBranding,
}

/// How an attempt to send a mail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailResult {
    /// The mailer accepted the mail.
    Sent,
    /// It is tried again.
    Failed,
    /// It was the last attempt: the mail is lost.
    Abandoned,
}

/// Receives the result of each attempt. It must not block.
pub type MailObserver = Arc<dyn Fn(MailResult) + Send + Sync>;

/// Sends the mails of the outbox. Several senders, in one process or many, send each mail once.
pub struct MailSender {
    deps: MailSenderDeps,
    notifier: OutboxNotifier,
    observer: MailObserver,
}

debug_fields!(MailSender { deps, notifier });

impl MailSender {
    /// Creates a sender that `notifier` wakes.
    pub fn new(deps: MailSenderDeps, notifier: OutboxNotifier) -> Self {
        Self { deps, notifier, observer: Arc::new(|_| ()) }
    }

    /// The sender with this observer.
    #[must_use]
    pub fn with_observer(self, observer: MailObserver) -> Self {
        Self { observer, ..self }
    }

    /// Sends mails, those left from before first, until `stop` resolves; then waits for the sends in progress.
    ///
    /// It waits for at most 30 seconds. Another sender repeats unfinished sends, also if it is dropped.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let sender = Arc::new(self);
        let sends = LeaseLoop {
            name: "mail",
            concurrency: CONCURRENCY,
            poll_interval: POLL_INTERVAL,
            store_timeout: STORE_POLICY.attempt,
            stop_timeout: STOP_TIMEOUT,
        };
        sends.run(|limit| Arc::clone(&sender).lease(limit), || sender.notifier.notified(), stop).await;
    }

    /// Leases due mails; returns the work on each.
    async fn lease(self: Arc<Self>, limit: u32) -> Result<Vec<impl Future<Output = ()> + Send + 'static>> {
        let now = self.deps.clock.now();
        let due = self.deps.outbox.lease_due(now, now.plus(LEASE), limit).await?;
        Ok(due.into_iter().map(|intent| Arc::clone(&self).handle(intent)).collect())
    }

    /// Sends one mail, and stores the outcome in the outbox.
    async fn handle(self: Arc<Self>, intent: MailIntent) {
        let sent = self.send(&intent).await;
        let (mail, attempt) = (intent.id.as_str(), intent.attempts);
        let pause = match &sent {
            Ok(()) => None,
            Err(error) => pause(attempt, error.retry()),
        };
        let result = match (&sent, pause) {
            (Ok(()), _) => {
                tracing::info!(mail, attempt, "mail sent");
                MailResult::Sent
            }
            (Err(error), Some(pause)) => {
                tracing::warn!(mail, attempt, %error, retry_s = pause.as_secs(), "mail send failed");
                MailResult::Failed
            }
            (Err(error), None) => {
                tracing::error!(mail, attempt, %error, "mail abandoned");
                MailResult::Abandoned
            }
        };
        (self.observer)(result);
        let retry_at = pause.map(|pause| self.deps.clock.now().plus(pause));
        let done = || self.deps.outbox.finish(&intent.id, retry_at);
        if let Err(error) = retry_store_persistently(STORE_POLICY, done).await {
            tracing::warn!(mail, %error, "mail outcome not stored");
        }
    }

    async fn send(&self, intent: &MailIntent) -> Result<()> {
        if intent.attempts > ATTEMPTS_MAX {
            // The earlier attempts ended without a stored outcome.
            return Err(Error::unexpected("the mail exceeded its attempt limit"));
        }
        let mail = self.write_mail(intent).await?;
        match tokio::time::timeout(SEND_TIMEOUT, self.deps.mailer.send(mail)).await {
            Ok(sent) => sent,
            Err(_) => Err(Error::unavailable("the mail server did not answer in time")),
        }
    }

    /// Writes the mail, with a new token if it has a link. The token is stored before the mail can be sent.
    async fn write_mail(&self, intent: &MailIntent) -> Result<MailMessage> {
        let Some(kind) = MailKind::from_name(&intent.kind) else {
            return Err(Error::unexpected("this version does not support this kind of mail"));
        };
        if kind == MailKind::Receipt {
            return self.write_receipt(intent).await;
        }
        // The account may have been created or deleted since the mail was queued; the kind follows its present state.
        let account_ref = AccountRef::Email(intent.to.clone());
        let (kind, token) = match (call_store(self.deps.directory.account(&account_ref)).await?, kind) {
            (Some(account), MailKind::SignIn) => (LinkMail::SignIn, self.issue_link(&account).await?),
            (Some(_), _) => (LinkMail::Recover, self.issue_token(&intent.to).await?),
            (None, _) => (LinkMail::Verify, self.issue_token(&intent.to).await?),
        };
        Ok(self.deps.branding.link_mail(kind, intent.language.as_deref(), intent.to.clone(), &token))
    }

    async fn write_receipt(&self, intent: &MailIntent) -> Result<MailMessage> {
        let order = intent.id.strip_prefix(RECEIPT_PREFIX).unwrap_or_default();
        let order = call_store(self.deps.orders.order(&OrderId::new(order))).await?;
        let order = order.ok_or_else(|| Error::unexpected("a receipt has no order"))?;
        Ok(self.deps.branding.receipt(intent.language.as_deref(), &order, intent.to.clone()))
    }

    async fn issue_link(&self, account: &Account) -> Result<String> {
        let (token, now) = (new_token(self.deps.random.as_ref()), self.deps.clock.now());
        let link = SignInLink {
            digest: Sha256::digest(token.as_bytes()).to_vec(),
            account: account.id.clone(),
            expires_at: now.plus(SignInLink::VALIDITY),
            now,
        };
        call_store(self.deps.sessions.put_link(link)).await?;
        Ok(token)
    }

    async fn issue_token(&self, email: &str) -> Result<String> {
        let token = new_token(self.deps.random.as_ref());
        let now = self.deps.clock.now();
        let stored = VerificationToken {
            digest: Sha256::digest(token.as_bytes()).to_vec(),
            email: email.to_owned(),
            expires_at: now.plus(VerificationToken::VALIDITY),
            now,
        };
        call_store(self.deps.directory.put_token(stored)).await?;
        Ok(token)
    }
}

/// Makes a store call. Its error does not concern the mail, so the mail is always retried.
async fn call_store<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    with_timeout(STORE_POLICY.attempt, call).await.map_err(|error| Error::unavailable(error.to_string()))
}

/// The pause after a failed attempt; `None` if there is no further attempt.
fn pause(attempt: u32, retry: Retry) -> Option<Duration> {
    let backoff = Backoff { first: FIRST_PAUSE, max: RETRY_PAUSE_MAX }.pause(attempt.saturating_sub(1), 1.0);
    let pause = match retry {
        Retry::Never => return None,
        Retry::Backoff => backoff,
        Retry::After(requested) => backoff.max(requested),
    };
    // Also if the mailer requests a longer one.
    (attempt < ATTEMPTS_MAX).then_some(pause.min(RETRY_PAUSE_MAX))
}

#[cfg(test)]
mod tests;
