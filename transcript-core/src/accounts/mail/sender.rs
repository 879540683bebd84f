//! Who takes mails from the outbox to the mailer.
//!
//! A mail is leased, its token is made, it is sent, and then it is done. Whatever ends in between leaves a
//! lease behind that runs out, and the mail is sent again, with another token that is as good: a mail may be
//! sent twice, and is never lost.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use super::{Bell, Letterhead, Mail, MailKind, Mailer};
use crate::{
    accounts::{MailIntent, Outbox},
    directory::{AccountRef, Directory, Token},
    engine::retry::{Patience, bounded, persistently},
    error::{Error, Result, Retry},
    ids::{Holder, random_name},
    time::{Clock, Random},
};

/// How many mails are sent at the same time: one that stalls holds up no other.
const AT_ONCE: usize = 8;
/// How often it is looked for mails that nobody rang for: those to be tried again, and those of a process
/// that is gone.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long the mailer may take for one mail.
const SENDING_MAX: Duration = Duration::from_secs(120);
/// How long a mail is leased: longer than everything that is done with it may take.
const LEASE: Duration = Duration::from_secs(300);
/// How long a store is waited for, and how long it is told again that a mail is done.
const STORE: Patience = Patience { attempt: Duration::from_secs(5), all: Duration::from_secs(60) };
/// How often a mail is tried. With the pauses in between that takes four hours.
const ATTEMPTS_MAX: u32 = 12;
/// The pause after the first attempt; each further one is twice as long: 15 s, 30 s, 1 min, …
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// No pause is longer, whatever the mailer asks for.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);
/// How long a verification token is good for.
const TOKEN_LIFE: Duration = Duration::from_secs(24 * 3_600);
/// The random bytes of a token: 256 bits.
const TOKEN_BYTES: u32 = 32;

/// What a sender works with.
#[derive(Clone, Debug)]
pub struct SenderParts {
    /// Where the mails come from.
    pub outbox: Arc<dyn Outbox>,
    /// Where the tokens go.
    pub directory: Arc<dyn Directory>,
    /// Where the mails go.
    pub mailer: Arc<dyn Mailer>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Randomness for the tokens.
    pub random: Arc<dyn Random>,
    /// Who writes.
    pub letterhead: Letterhead,
}

/// Sends what is in the outbox. Several of them, in one process or many, send each mail once.
#[derive(Debug)]
pub struct MailSender {
    parts: SenderParts,
    bell: Bell,
    holder: Holder,
}

/// A sender at work. Dropping it ends it at once: what it was sending is sent again by the next one.
#[derive(Debug)]
pub struct RunningSender {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl RunningSender {
    /// Takes no more mails, and waits for those that are on their way.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        // An end by a panic was logged where it happened.
        let _ = (&mut self.task).await;
    }
}

impl Drop for RunningSender {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl MailSender {
    /// A sender that is woken by `bell`.
    pub fn new(parts: SenderParts, bell: Bell) -> Self {
        let holder = Holder::new(random_name(parts.random.as_ref(), "sender"));
        Self { parts, bell, holder }
    }

    /// Begins to send, on this runtime: first what was left from before.
    pub fn start(self, runtime: &Handle) -> RunningSender {
        let (stop, stopped) = oneshot::channel();
        RunningSender { stop: Some(stop), task: runtime.spawn(Arc::new(self).run(stopped)) }
    }

    async fn run(self: Arc<Self>, mut stopped: oneshot::Receiver<()>) {
        let mut sending = JoinSet::new();
        loop {
            for intent in self.lease(AT_ONCE - sending.len()).await {
                sending.spawn(Arc::clone(&self).handle(intent));
            }
            tokio::select! {
                _ = &mut stopped => break,
                // With no room for another mail, neither the bell nor the time is of interest.
                () = self.bell.rung(), if sending.len() < AT_ONCE => {}
                () = tokio::time::sleep(LOOK_EVERY), if sending.len() < AT_ONCE => {}
                Some(ended) = sending.join_next() => note(ended),
            }
        }
        while let Some(ended) = sending.join_next().await {
            note(ended);
        }
    }

    /// Leases mails that are due; none when the store is away.
    async fn lease(&self, limit: usize) -> Vec<MailIntent> {
        let Some(limit) = u32::try_from(limit).ok().filter(|limit| *limit > 0) else { return Vec::new() };
        let now = self.parts.clock.now();
        let due = self.parts.outbox.due(&self.holder, now, now.plus(LEASE), limit);
        bounded(STORE.attempt, due).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the queue of mails cannot be read; it is tried again");
            Vec::new()
        })
    }

    /// Sends one mail, and says in the outbox what came of it.
    async fn handle(self: Arc<Self>, intent: MailIntent) {
        let sent = self.send(&intent).await;
        let (mail, attempt) = (intent.id.as_str(), intent.attempts);
        let pause = match &sent {
            Ok(()) => None,
            Err(error) => pause(attempt, error.retry()),
        };
        match (&sent, pause) {
            (Ok(()), _) => tracing::info!(mail, attempt, "a mail was sent"),
            (Err(error), Some(pause)) => {
                let seconds = pause.as_secs();
                tracing::warn!(mail, attempt, %error, "a mail could not be sent; again in {seconds} s");
            }
            (Err(error), None) => tracing::error!(mail, attempt, %error, "a mail was given up"),
        }
        let retry_at = pause.map(|pause| self.parts.clock.now().plus(pause));
        let done = || self.parts.outbox.done(&intent.id, retry_at);
        if let Err(error) = persistently(STORE, done).await {
            tracing::warn!(mail, %error, "what came of a mail could not be stored; it is sent again");
        }
    }

    async fn send(&self, intent: &MailIntent) -> Result<()> {
        if intent.attempts > ATTEMPTS_MAX {
            // Whoever tried it before did not live to tell.
            return Err(Error::unexpected("it was tried too often"));
        }
        let mail = self.write(intent).await?;
        match tokio::time::timeout(SENDING_MAX, self.parts.mailer.send(mail)).await {
            Ok(sent) => sent,
            Err(_) => Err(Error::unavailable("the mail server took too long")),
        }
    }

    /// The text, with a fresh token in it. The token is stored before anybody can have it.
    async fn write(&self, intent: &MailIntent) -> Result<Mail> {
        if MailKind::from_name(&intent.kind).is_none() {
            return Err(Error::unexpected("this version knows no such kind of mail"));
        }
        // An account may have come or gone since the mail was queued: what its link will do is what counts.
        let who = AccountRef::Email(intent.to.clone());
        let kind = match ours(self.parts.directory.account(&who)).await? {
            Some(_) => MailKind::Recover,
            None => MailKind::Verify,
        };
        let token = self.issue_token(&intent.to).await?;
        Ok(self.parts.letterhead.mail(kind, intent.to.clone(), &token))
    }

    async fn issue_token(&self, email: &str) -> Result<String> {
        let bytes = self.parts.random.bytes(TOKEN_BYTES);
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let now = self.parts.clock.now();
        let stored = Token {
            digest: Sha256::digest(token.as_bytes()).to_vec(),
            email: email.to_owned(),
            expires_at: now.plus(TOKEN_LIFE),
            now,
        };
        ours(self.parts.directory.put_token(stored)).await?;
        Ok(token)
    }
}

/// A store's call. Its fault says nothing about the mail: that is tried again, whatever the store says.
async fn ours<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    bounded(STORE.attempt, call).await.map_err(|error| Error::unavailable(error.to_string()))
}

/// How long to wait after an attempt that failed; none when there is no other.
fn pause(attempt: u32, retry: Retry) -> Option<Duration> {
    let own = FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(ATTEMPTS_MAX));
    let pause = match retry {
        Retry::Never => return None,
        Retry::Backoff => own,
        Retry::After(asked) => own.max(asked),
    };
    (attempt < ATTEMPTS_MAX).then_some(pause.min(PAUSE_MAX))
}

/// A mail that ended in a panic stays leased, and is tried again when its lease ends.
fn note(ended: std::result::Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "the sending of a mail ended in a defect; it is tried again");
    }
}

#[cfg(test)]
mod tests;
