//! The lease of an idempotency key.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use super::{
    IdempotencyAttempt, IdempotencyState, IdempotencyStore, StoredResponse, V1Error,
    call_context::CallContext,
};
use crate::{
    error::{ErrorKind, Result},
    failure_log::log_failure,
    ids::Holder,
    retry::keep_renewed,
};

/// How long a response is stored for replays.
const RESPONSE_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// How long a call with the same idempotency key or order id counts as a repeat of the same request.
/// A little less than responses are stored and than payment providers remember their idempotency keys.
pub(super) const REPEAT_WINDOW: Duration = Duration::from_secs(23 * 3_600);

/// The message for a key that was used with another body.
pub(super) const KEY_OF_OTHER_REQUEST: &str =
    "Idempotency-Key: this key was used for another request; use a new key for each request";

/// An attempt at a request with an idempotency key. Uses the idempotency store.
#[derive(Debug)]
pub(super) struct KeyedAttempt {
    pub(super) context: Arc<CallContext>,
    pub(super) replies: Arc<dyn IdempotencyStore>,
    /// The key, bound to account and endpoint.
    pub(super) key: String,
    /// The attempt's id in the idempotency store.
    pub(super) holder: Holder,
    /// The digest of the request.
    pub(super) fingerprint: Vec<u8>,
}

impl KeyedAttempt {
    /// Starts the attempt, or renews its lease.
    pub(super) async fn begin(&self) -> Result<IdempotencyState> {
        let now = self.context.now();
        let attempt = IdempotencyAttempt {
            key: self.key.clone(),
            fingerprint: self.fingerprint.clone(),
            holder: self.holder.clone(),
            now,
            lease_until: now.plus(self.context.transcripts.options().hold),
            keep_until: now.plus(RESPONSE_RETENTION),
        };
        self.replies.begin(attempt).await
    }

    /// Renews the lease in a loop.
    async fn renew(self: Arc<Self>) {
        let options = self.context.transcripts.options();
        let log = |renewed: &Result<IdempotencyState>| {
            if let Err(error) = renewed {
                log_failure!(warn, [%error], "idempotency lease renewal failed");
            }
            false
        };
        keep_renewed(options.hold_heartbeat, options.store_timeout, || self.begin(), log).await;
    }
}

/// The lease of an attempt, which renews itself until it ends. Drop does not release it.
#[derive(Debug)]
pub(super) struct IdempotencyLease {
    attempt: Arc<KeyedAttempt>,
    /// Renews the lease; ends with it.
    heartbeat: JoinSet<()>,
}

impl IdempotencyLease {
    pub(super) fn new(attempt: Arc<KeyedAttempt>) -> Self {
        let mut heartbeat = JoinSet::new();
        let runtime = attempt.context.transcripts.background().runtime();
        heartbeat.spawn_on(Arc::clone(&attempt).renew(), runtime);
        Self { attempt, heartbeat }
    }

    /// Stores the response for replays.
    pub(super) async fn complete(&self, response: StoredResponse) -> Result<(), V1Error> {
        let KeyedAttempt { context, replies, key, holder, .. } = &*self.attempt;
        match context.retry_store(|| replies.complete(key, holder, response.clone())).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(V1Error::Conflict(
                "Another request with this Idempotency-Key took over. Repeat the request with the same key."
                    .to_owned(),
            )),
            Err(error) => Err(V1Error::from_store_error(error)),
        }
    }

    /// Stops the renewal: none may follow the release.
    pub(super) fn stop_renewal(&mut self) {
        self.heartbeat.abort_all();
    }

    /// Releases the key, so that the request may be repeated at once. If that fails, the lease expires.
    pub(super) async fn release(self) {
        let KeyedAttempt { context, replies, key, holder, .. } = &*self.attempt;
        if let Err(error) = context.retry_store(|| replies.release(key, holder)).await {
            log_failure!(warn, [%error], "idempotency key release failed");
        }
    }
}
