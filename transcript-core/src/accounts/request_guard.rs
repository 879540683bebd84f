//! An admitted call, from admission to its response.
//!
//! What it acquires (an idempotency lease, a hold) is released if it ends without a response, also when the
//! client disconnects and everything is dropped.

use std::fmt;

use tokio::{sync::oneshot, task::JoinSet};

use super::{
    AccountPrincipal, Accounts, RateLimitStatus, StoredResponse, V1Endpoint, V1Error, charge::CreditHold,
    reply_metadata::ReplyMetadata,
};
use crate::{
    error::ErrorKind,
    ids::{Holder, random_id},
    ledger::{HoldGuard, HoldRequest},
    retry::{retry_store, with_timeout},
    video::VideoId,
};

/// The lease of an idempotency key.
#[derive(Clone, Debug)]
pub(super) struct IdempotencyLease {
    /// The key, bound to account and endpoint.
    pub(super) key: String,
    /// The guard's id in the idempotency store.
    pub(super) holder: Holder,
    /// The digest of the request.
    pub(super) fingerprint: Vec<u8>,
}

/// Resources of a call, to be released or settled at its end.
#[derive(Debug, Default)]
struct GuardedResources {
    lease: Option<IdempotencyLease>,
    /// Renews the lease; ends with it.
    heartbeat: JoinSet<()>,
    hold: Option<Box<HoldGuard>>,
    /// The video of the response; there is nothing to release.
    video: Option<VideoId>,
}

impl GuardedResources {
    fn is_empty(&self) -> bool {
        self.lease.is_none() && self.hold.is_none()
    }
}

/// An admitted call. It ends with a response ([`RequestGuard::deliver`]) or an error
/// ([`RequestGuard::reject`]). Drop, for example when the client disconnects, releases its hold and lease.
pub struct RequestGuard {
    accounts: Accounts,
    caller: Box<AccountPrincipal>,
    route: V1Endpoint,
    rate: RateLimitStatus,
    /// The id of the work: the same for every attempt with the same idempotency key.
    work_id: String,
    resources: GuardedResources,
}

impl fmt::Debug for RequestGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestGuard")
            .field("caller", &self.caller)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl RequestGuard {
    pub(super) fn new(accounts: &Accounts, caller: AccountPrincipal, route: V1Endpoint) -> Self {
        let rate = RateLimitStatus { name: "", limit: 0, window_s: 0, remaining: 0, reset_s: 0 };
        let work_id = random_id(accounts.deps().random.as_ref(), route.as_str());
        let (accounts, caller) = (accounts.clone(), Box::new(caller));
        Self { accounts, caller, route, rate, work_id, resources: GuardedResources::default() }
    }

    pub(super) fn set_rate(&mut self, rate: RateLimitStatus) {
        self.rate = rate;
    }

    pub(super) fn set_lease(&mut self, lease: IdempotencyLease) {
        self.work_id = format!("{}-{}", self.route.as_str(), lease.key);
        let (accounts, renewed) = (self.accounts.clone(), lease.clone());
        let runtime = self.accounts.deps().transcripts.background().runtime();
        self.resources.heartbeat.spawn_on(async move { accounts.renew(&renewed).await }, runtime);
        self.resources.lease = Some(lease);
    }

    /// Drops the lease without releasing it: another attempt has it.
    pub(super) fn discard_lease(&mut self) {
        self.resources.lease = None;
        self.resources.heartbeat.abort_all();
    }

    /// The authenticated caller.
    pub fn caller(&self) -> &AccountPrincipal {
        &self.caller
    }

    /// The endpoint.
    pub fn route(&self) -> V1Endpoint {
        self.route
    }

    /// The account's rate limit after this call.
    pub fn rate(&self) -> RateLimitStatus {
        self.rate
    }

    /// The id of the call's work.
    ///
    /// It is the same for every attempt with the same idempotency key, and unique without one. At most 128 ASCII
    /// characters.
    pub fn work_id(&self) -> &str {
        &self.work_id
    }

    /// Sets the video of the response. After its withdrawal a stored response is not replayed.
    pub fn set_video(&mut self, video: &VideoId) {
        self.resources.video = Some(video.clone());
    }

    /// Holds credits for the work that follows; returns the credits left. Call it once.
    ///
    /// `memo` is the purpose, for the account's statement: no text of a person, at most 256 bytes.
    ///
    /// # Errors
    /// [`V1Error::PaymentRequired`], [`V1Error::Internal`]: nothing is held, and the call should be
    /// rejected with the error.
    pub async fn hold(&mut self, cost: u64, memo: &str) -> Result<u64, V1Error> {
        let (accounts, request) = (self.accounts.clone(), self.hold_request(cost, memo));
        let (hold, credits_left) = self.accounts.task(async move { accounts.hold(request).await }).await?;
        self.resources.hold = Some(hold);
        Ok(credits_left)
    }

    /// As [`RequestGuard::hold`], on the engine's runtime.
    pub(super) async fn hold_on_runtime(&mut self, cost: u64, memo: &str) -> Result<u64, V1Error> {
        let (hold, credits_left) = self.accounts.hold(self.hold_request(cost, memo)).await?;
        self.resources.hold = Some(hold);
        Ok(credits_left)
    }

    fn hold_request(&self, cost: u64, memo: &str) -> HoldRequest {
        self.accounts.hold_request(&self.caller.account, &self.work_id, cost, memo)
    }

    /// Charges credits for an answer that is ready; returns the credits left, if known.
    ///
    /// If the response is to be stored, the credits are only held, and settled when it is.
    pub(super) async fn charge(&mut self, cost: u64, memo: &str) -> Result<Option<u64>, V1Error> {
        if self.resources.lease.is_some() {
            return self.hold_on_runtime(cost, memo).await.map(Some);
        }
        self.accounts.spend(&self.hold_request(cost, memo)).await
    }

    /// Ends the call with a response for a connected client.
    ///
    /// Stores the response for replays, settles the hold, and returns the response for sending.
    ///
    /// A response with a status other than 2xx is not stored and costs nothing.
    ///
    /// # Errors
    /// [`V1Error::Conflict`] if another attempt with the same idempotency key took over;
    /// [`V1Error::Internal`] if the response cannot be stored. Nothing is charged.
    ///
    /// # Cancellation
    /// Once polled, the work continues to its end, also when the future is dropped: the answer was ready and
    /// the client was connected.
    pub async fn deliver(mut self, response: StoredResponse) -> Result<StoredResponse, V1Error> {
        let is_success = (200..300).contains(&response.status);
        let resources = std::mem::take(&mut self.resources);
        if resources.is_empty() {
            return Ok(response);
        }
        let accounts = self.accounts.clone();
        let (sender, receiver) = oneshot::channel();
        self.accounts.deps().transcripts.background().detach(async move {
            let error = match is_success {
                true => accounts.store_response(&resources, &response).await.err(),
                false => None,
            };
            if is_success && error.is_none() {
                if let Some(hold) = resources.hold {
                    hold.settle_in_full().await;
                }
            } else {
                accounts.release_resources(resources).await;
            }
            let _ = sender.send(error.map_or(Ok(response), Err));
        });
        receiver.await.unwrap_or_else(|_| Err(V1Error::interrupted()))
    }

    /// Ends the call without a response; returns the error once hold and lease are released.
    ///
    /// So the caller may retry at once.
    pub async fn reject(mut self, error: V1Error) -> V1Error {
        self.release_and_wait().await;
        error
    }

    /// Ends the call with a response that a replay must not repeat, such as a short-lived URL.
    /// The response is not stored, the hold is released, and a repeat does the work again.
    pub async fn deliver_unstored(mut self, response: StoredResponse) -> StoredResponse {
        self.release_and_wait().await;
        response
    }

    /// Ends the call of a client that disconnected after a part of the answer: settles the hold in full.
    /// Nothing is stored.
    pub(super) async fn settle_disconnected(mut self) {
        let resources = std::mem::take(&mut self.resources);
        if let Some(hold) = resources.hold {
            hold.settle_in_full().await;
        }
    }

    /// Whether the call has an idempotency key, so that a repeat gets the same response.
    pub(super) fn has_idempotency_key(&self) -> bool {
        self.resources.lease.is_some()
    }

    /// Releases hold and lease, and waits for that.
    async fn release_and_wait(&mut self) {
        let (accounts, resources) = (self.accounts.clone(), std::mem::take(&mut self.resources));
        if resources.is_empty() {
            return;
        }
        let (sender, receiver) = oneshot::channel();
        self.accounts.deps().transcripts.background().detach(async move {
            accounts.release_resources(resources).await;
            let _ = sender.send(());
        });
        // If the runtime ends first, nothing is released; hold and lease then expire.
        let _ = receiver.await;
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let resources = std::mem::take(&mut self.resources);
        if !resources.is_empty() {
            let accounts = self.accounts.clone();
            let tasks = self.accounts.deps().transcripts.background();
            tasks.detach(async move { accounts.release_resources(resources).await });
        }
    }
}

impl Accounts {
    /// Renews a lease in a loop. A failed renewal is retried by the next heartbeat.
    async fn renew(&self, lease: &IdempotencyLease) {
        let options = self.deps.transcripts.options();
        loop {
            tokio::time::sleep(options.heartbeat).await;
            let begin = self.deps.replies.begin(self.attempt(lease, self.deps.clock.now()));
            if let Err(error) = with_timeout(options.store_timeout, begin).await {
                tracing::warn!(%error, "idempotency lease renewal failed");
            }
        }
    }

    /// Stores the response for replays, if there is an idempotency key.
    async fn store_response(
        &self,
        resources: &GuardedResources,
        response: &StoredResponse,
    ) -> Result<(), V1Error> {
        let Some(lease) = &resources.lease else { return Ok(()) };
        let mut stored = response.clone();
        let hold = resources.hold.as_ref().map(|hold| CreditHold::from(hold.as_ref()));
        ReplyMetadata { hold, video: resources.video.clone() }.put(&mut stored);
        let complete = || self.deps.replies.complete(&lease.key, &lease.holder, stored.clone());
        match retry_store(self.deps.transcripts.options().request_policy(), complete).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(V1Error::Conflict(
                "Another request with this Idempotency-Key took over. Repeat the request with the same key."
                    .to_owned(),
            )),
            Err(error) => Err(V1Error::from_store_error(&error)),
        }
    }

    /// Releases hold and lease, the credits first: an immediate retry needs them.
    async fn release_resources(&self, mut resources: GuardedResources) {
        resources.heartbeat.abort_all();
        if let Some(hold) = resources.hold {
            hold.release().await;
        }
        if let Some(lease) = &resources.lease {
            let release = self.deps.replies.release(&lease.key, &lease.holder);
            if let Err(error) = with_timeout(self.deps.transcripts.options().store_timeout, release).await {
                tracing::warn!(%error, "idempotency key release failed");
            }
        }
    }
}
