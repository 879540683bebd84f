//! The loop that sends due events.

use std::{sync::Arc, time::Duration};

use super::{AccountWebhooks, JobEvent, LeasedEvent, WebhookAttempt, WebhookClient, WebhookPost, sign};
use crate::{
    accounts::{RETRY_PAUSE_MAX, jobs::JobView},
    debug_fields,
    error::{Error, ErrorKind, Result},
    retry::{Backoff, StorePolicy, retry_store_persistently},
    tasks::LeaseLoop,
    time::Timestamp,
};

/// Events that one process sends at the same time, each of another account.
const CONCURRENCY: u32 = 32;
/// Pause between two looks at the store.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of an attempt, also if the client has none.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(12);
/// Duration of a lease: longer than all work on an attempt can take.
const LEASE: Duration = Duration::from_secs(30);
/// Timeout of a store call, and of storing the end of an attempt.
const STORE_POLICY: StorePolicy =
    StorePolicy { attempt: Duration::from_secs(5), total: Duration::from_secs(10) };
/// The pause after the first attempt; it doubles each time: 5 s, 10 s, 20 s, …
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Attempts at an event, with pauses of nearly 24 hours. A time would depend on the clock that recorded the event.
const ATTEMPTS_MAX: u32 = 33;
/// Leases of an event: those that expire, without a recorded attempt, last 25 hours.
const LEASES_MAX: u32 = 3_000;
/// How long the stop waits for attempts; an interrupted one is repeated.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookResult {
    /// The receiver accepted the event.
    Delivered,
    /// It is tried again.
    Failed,
    /// It was the last attempt.
    Abandoned,
}

/// Receives the result of each attempt. It must not block.
pub type WebhookObserver = Arc<dyn Fn(WebhookResult) + Send + Sync>;

/// The body of an event with its job, for a server with this address.
pub type WebhookBody = fn(&JobEvent, &JobView, &str) -> Result<Vec<u8>>;

/// Dependencies of [`send_webhooks`].
#[derive(Clone)]
pub struct WebhookSenderDeps {
    /// Sends the webhooks.
    pub client: Arc<dyn WebhookClient>,
    /// Writes their bodies.
    pub body: WebhookBody,
    /// Receives the results.
    pub observer: WebhookObserver,
}

debug_fields!(WebhookSenderDeps { client });

/// Sends due events until `stop` resolves.
///
/// `newest` returns the webhooks with the newest settings. One process runs it once.
pub async fn send_webhooks(
    newest: impl Fn() -> Arc<AccountWebhooks> + Send + Sync,
    deps: WebhookSenderDeps,
    stop: impl Future<Output = ()> + Send,
) {
    // The account of an ended attempt may have another event: its end begins the next lease.
    let attempts = LeaseLoop {
        name: "webhook",
        concurrency: CONCURRENCY,
        poll_interval: POLL_INTERVAL,
        store_timeout: STORE_POLICY.attempt,
        stop_timeout: STOP_TIMEOUT,
    };
    attempts.run(|limit| newest().lease(deps.clone(), limit), std::future::pending::<()>, stop).await;
}

impl AccountWebhooks {
    /// Leases due events; returns the attempt at each.
    async fn lease(
        self: Arc<Self>,
        deps: WebhookSenderDeps,
        limit: u32,
    ) -> Result<Vec<impl Future<Output = ()> + Send + 'static>> {
        let now = self.context.now();
        let due = self.store.lease_events(now, now.plus(LEASE), limit).await?;
        let attempt = |leased: LeasedEvent| {
            let (webhooks, deps) = (Arc::clone(&self), deps.clone());
            async move {
                if let Some(result) = webhooks.attempt(&leased, &deps).await {
                    (deps.observer)(result);
                }
            }
        };
        Ok(due.into_iter().map(attempt).collect())
    }

    /// Sends a leased event, and records the attempt. `None` if nothing was sent or recorded.
    async fn attempt(&self, leased: &LeasedEvent, deps: &WebhookSenderDeps) -> Option<WebhookResult> {
        let (event, attempt) = (leased.event.id(), leased.attempt);
        let (sent, is_last) = self.send(leased, deps).await?;
        let (status, error) = match sent {
            Ok(status @ 200..=299) => (Some(status), None),
            Ok(status @ (301..=303 | 307 | 308)) => (
                Some(status),
                Some(format!("the host answered with status {status}; redirects are not followed")),
            ),
            Ok(status) => (Some(status), Some(format!("the host answered with status {status}"))),
            Err(error) => (None, Some(error.message().to_owned())),
        };
        let at = self.context.now();
        let next_at = error.as_ref().filter(|_| !is_last).and_then(|_| next_attempt(attempt, at));
        let ended = WebhookAttempt { number: attempt, at, status, error, next_at };
        let result = match (&ended.error, next_at) {
            (None, _) => WebhookResult::Delivered,
            (Some(_), Some(_)) => WebhookResult::Failed,
            (Some(_), None) => WebhookResult::Abandoned,
        };
        match &ended.error {
            None => tracing::debug!(event, attempt, "webhook delivered"),
            Some(error) => tracing::debug!(event, attempt, error, "webhook failed"),
        }
        let end = || self.store.end_attempt(leased, ended.clone());
        if let Err(error) = retry_store_persistently(STORE_POLICY, end).await {
            tracing::warn!(event, attempt, %error, "webhook attempt not stored");
        }
        Some(result)
    }

    /// Sends a leased event. Returns the status of the response, and whether no later attempt can succeed.
    ///
    /// `None` if nothing was sent, and the event is due again when its lease expires.
    async fn send(&self, leased: &LeasedEvent, deps: &WebhookSenderDeps) -> Option<(Result<u16>, bool)> {
        if leased.lease > LEASES_MAX {
            // Preparing it may be what stopped each server that leased it.
            return Some((Err(Error::unavailable("the server could not send the event for a day")), true));
        }
        match self.post(leased, deps.body).await {
            Ok(post) => match tokio::time::timeout(ATTEMPT_TIMEOUT, deps.client.post(post)).await {
                Ok(sent) => Some((sent, false)),
                Err(_) => Some((Err(Error::unavailable("the host did not respond in time")), false)),
            },
            // The account was erased.
            Err(error) if error.kind() == ErrorKind::NotFound => Some((Err(error), true)),
            Err(error) => {
                let (event, attempt) = (leased.event.id(), leased.attempt);
                tracing::warn!(event, attempt, %error, "webhook not prepared");
                // An outage ends; damaged data stays.
                let is_damaged = error.kind() == ErrorKind::Corrupt;
                // The account reads this message; that of the error may name a file.
                is_damaged.then(|| (Err(Error::unavailable("the server cannot read the job")), false))
            }
        }
    }

    /// The signed request of an event. It shows the job as it is now.
    async fn post(&self, leased: &LeasedEvent, body: WebhookBody) -> Result<WebhookPost> {
        let view = self.jobs.view_of(&leased.event.job).await?;
        let options = &self.context.options;
        let body = body(&leased.event, &view, &options.base_url)?;
        let secrets = self.signing_secrets(&leased.account).await?;
        Ok(WebhookPost {
            url: leased.callback_url.clone(),
            allow_private: options.private_webhooks,
            signature: sign(&body, &secrets, self.context.now()),
            body,
        })
    }
}

/// When the next attempt is due after a failed one; `None` if the event is given up.
pub(super) fn next_attempt(attempt: u32, now: Timestamp) -> Option<Timestamp> {
    let pause = Backoff { first: FIRST_PAUSE, max: RETRY_PAUSE_MAX }.pause(attempt.saturating_sub(1), 1.0);
    (attempt < ATTEMPTS_MAX).then(|| now.plus(pause))
}
