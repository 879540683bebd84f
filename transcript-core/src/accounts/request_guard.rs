//! An admitted call, from admission to its response.
//!
//! What it acquires (an idempotency lease, a hold) is released if it ends without a response, also when the
//! client disconnects and everything is dropped. A hold that pays for a fetch is then charged or left to the flight
//! ([`FetchPayment`]).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    AccountCredits, AccountPrincipal, PlanState, RateLimitStatus, StoredResponse, V1Endpoint, V1Error,
    charge::CreditHold,
    fetch_payment::{DeliveryPayment, FetchKey, FetchPayment, RequestEnd},
    idempotency_lease::IdempotencyLease,
    prepaid::PrepaidDelivery,
    reply_metadata::{ReplyMetadata, mark_replayed},
    transcript::LanguagePreference,
};
use crate::{
    archive::TrackSelector,
    debug_fields,
    ledger::{HoldGuard, HoldRequest},
    video::VideoId,
};

/// The longest body of a transcript that is stored for replays, in bytes. A repeat makes a longer one again.
const STORED_TRANSCRIPT_MAX: usize = 16 * 1024;
/// The status that is stored in place of a longer one. A server of an earlier version replays it as it is.
const OMITTED_STATUS: u16 = 503;

/// Resources of a call, to be released or settled at its end.
#[derive(Default)]
struct GuardedResources {
    lease: Option<IdempotencyLease>,
    hold: Option<HoldGuard>,
    /// The fetch that the hold pays for.
    fetch: Option<Arc<FetchPayment>>,
    /// The delivery of an archived transcript, if it may be prepaid.
    prepaid: Option<Box<PrepaidDelivery>>,
    /// The prepaid delivery that the response has used in place of a hold.
    consumed: Option<Box<PrepaidDelivery>>,
    /// What pays for the response, once it is stored.
    payment: DeliveryPayment,
    /// Whether the call is charged if the client disconnects; see [`RequestGuard::served`].
    served: Option<Arc<AtomicBool>>,
    /// The video of the response; there is nothing to release.
    video: Option<VideoId>,
}

impl GuardedResources {
    fn is_empty(&self) -> bool {
        self.lease.is_none() && self.hold.is_none()
    }

    /// Stores the response of `route` for replays, if there is an idempotency key; of a long transcript only that it
    /// was delivered.
    async fn store_response(&mut self, route: V1Endpoint, response: &StoredResponse) -> Result<(), V1Error> {
        let Some(lease) = &self.lease else { return Ok(()) };
        // A replay settles the hold that the response names: it must name none that a prepaid delivery replaces, and
        // otherwise be paid also if this server ends before it settles.
        let may_be_prepaid = match self.prepaid_delivery().filter(|_| self.hold.is_some()) {
            Some(delivery) => delivery.may_be_open().await,
            None => false,
        };
        self.payment = if may_be_prepaid { DeliveryPayment::PrepaidFirst } else { DeliveryPayment::Hold };
        let is_omitted = route == V1Endpoint::Transcript && response.body.len() > STORED_TRANSCRIPT_MAX;
        let mut stored = match is_omitted {
            true => StoredResponse { status: OMITTED_STATUS, headers: Vec::new(), body: Vec::new() },
            false => response.clone(),
        };
        let hold = self.hold.as_ref().filter(|_| !may_be_prepaid).map(CreditHold::from);
        ReplyMetadata { hold, video: self.video.clone(), is_omitted }.put(&mut stored);
        lease.complete(stored).await
    }

    /// The delivery, if it may be prepaid.
    fn prepaid_delivery(&self) -> Option<&PrepaidDelivery> {
        match &self.fetch {
            Some(fetch) => fetch.prepaid_delivery(),
            None => self.prepaid.as_deref(),
        }
    }

    /// Settles the hold in full, unless the delivery was prepaid.
    async fn settle(self) {
        match (self.hold, self.fetch, self.prepaid) {
            (Some(hold), Some(fetch), _) => fetch.deliver(hold, self.payment).await,
            (Some(hold), None, Some(prepaid)) if self.payment == DeliveryPayment::PrepaidFirst => {
                let spent = hold.amounts().to_vec();
                prepaid.charge_unless_prepaid(hold, spent).await;
            }
            (Some(hold), None, _) => hold.settle_in_full().await,
            (None, ..) => {}
        }
    }

    /// Whether a client that disconnects is charged.
    fn is_served(&self) -> bool {
        self.served.as_ref().is_some_and(|served| served.load(Ordering::Relaxed))
    }

    /// Ends hold and lease, the credits first: an immediate retry needs them.
    async fn release(mut self, end: RequestEnd) {
        if let Some(lease) = &mut self.lease {
            lease.stop_renewal();
        }
        let is_charged = end == RequestEnd::Disconnected && self.is_served();
        match (self.hold, self.fetch) {
            (Some(hold), Some(fetch)) if is_charged => {
                fetch.deliver(hold, DeliveryPayment::PrepaidFirst).await;
            }
            (Some(hold), None) if is_charged => hold.settle_in_full().await,
            (Some(hold), Some(fetch)) => fetch.end_request(hold, end).await,
            (Some(hold), None) => hold.release().await,
            (None, _) => {}
        }
        if let Some(consumed) = self.consumed {
            consumed.give_back().await;
        }
        if let Some(lease) = self.lease {
            lease.release().await;
        }
    }
}

/// The call that another one repeats: its response was delivered and not stored.
struct RepeatedCall {
    /// The hold of its credits, which is still open if its server ended before it settled it.
    hold: Option<CreditHold>,
}

/// An admitted call. It ends with a response ([`RequestGuard::deliver`]) or an error
/// ([`RequestGuard::reject`]). Drop, for example when the client disconnects, ends its hold and releases its lease.
pub struct RequestGuard {
    pub(super) credits: Arc<AccountCredits>,
    caller: Box<AccountPrincipal>,
    route: V1Endpoint,
    rate: RateLimitStatus,
    /// The id of the work: the same for every attempt with the same idempotency key.
    work_id: String,
    /// The call that this one repeats: then this one costs nothing.
    repeated: Option<RepeatedCall>,
    resources: GuardedResources,
}

debug_fields!(RequestGuard { caller, route });

impl RequestGuard {
    pub(super) fn new(credits: &Arc<AccountCredits>, caller: AccountPrincipal, route: V1Endpoint) -> Self {
        let rate = RateLimitStatus { name: "", limit: 0, window_s: 0, remaining: 0, reset_s: 0 };
        let work_id = credits.context.random_id(route.as_str());
        let (credits, caller) = (Arc::clone(credits), Box::new(caller));
        let resources = GuardedResources::default();
        Self { credits, caller, route, rate, work_id, repeated: None, resources }
    }

    pub(super) fn set_rate(&mut self, rate: RateLimitStatus) {
        self.rate = rate;
    }

    /// Stores the lease of `key`, which also names the work.
    pub(super) fn set_lease(&mut self, key: &str, lease: IdempotencyLease) {
        self.work_id = format!("{}-{key}", self.route.as_str());
        self.resources.lease = Some(lease);
    }

    /// Drops the lease without releasing it: another attempt has it.
    pub(super) fn discard_lease(&mut self) {
        self.resources.lease = None;
    }

    /// Marks the call as a repeat of one whose response was delivered and not stored. It holds no lease.
    ///
    /// [`RequestGuard::deliver`] settles `hold`, that of the repeated call: a repeat that fails is free.
    pub(super) fn set_repeated(&mut self, hold: Option<CreditHold>) {
        self.repeated = Some(RepeatedCall { hold });
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
    pub(super) fn set_video(&mut self, video: &VideoId) {
        self.resources.video = Some(video.clone());
    }

    /// Starts the payment of a fetch of the track `selector`.
    ///
    /// The work for credits that follows passes it to the engine. A repeated request takes back the hold of the fetch
    /// that it repeats.
    ///
    /// # Errors
    /// [`V1Error::RateLimited`] after too many failed attempts; [`V1Error::Internal`].
    pub(super) async fn start_fetch(
        &mut self,
        video: &VideoId,
        preference: &LanguagePreference,
        selector: &TrackSelector,
    ) -> Result<Arc<FetchPayment>, V1Error> {
        let (account, route) = (self.caller.account.id.clone(), self.route);
        // A repeat is prepaid whichever track is fetched or archived for it.
        let delivery = PrepaidDelivery::new(&self.credits, &self.caller.account, video, preference);
        let (preference, selector) = (preference.clone(), selector.clone());
        let key = FetchKey { account, route, video: video.clone(), preference, selector };
        // A repeat costs nothing, so it leaves the hold of another request alone.
        let adopted = if self.repeated.is_some() { None } else { self.credits.abandoned_fetches.adopt(&key) };
        let fetch = match adopted {
            Some((fetch, hold)) => {
                self.resources.hold = Some(hold);
                fetch
            }
            None => {
                self.check_attempts().await?;
                let context = &self.credits.context;
                let plan = context.effective_plan(&self.caller.account, context.now());
                let pays = plan.state != PlanState::Free;
                FetchPayment::new(&self.credits, key, delivery, pays)
            }
        };
        Ok(Arc::clone(self.resources.fetch.insert(fetch)))
    }

    /// Checks the limit of failed attempts of the account. Counts nothing.
    ///
    /// # Errors
    /// [`V1Error::RateLimited`]; [`V1Error::Internal`].
    pub(super) async fn check_attempts(&self) -> Result<(), V1Error> {
        let AccountCredits { context, limits, .. } = &*self.credits;
        limits.check_attempts(&self.caller.account.id, context.now()).await
    }

    /// Looks for a prepaid delivery of this transcript before its charge.
    pub(super) fn use_prepaid(&mut self, video: &VideoId, preference: &LanguagePreference) {
        let prepaid = PrepaidDelivery::new(&self.credits, &self.caller.account, video, preference);
        self.resources.prepaid = prepaid.may_exist().then(|| Box::new(prepaid));
    }

    async fn credits_left(&self) -> Result<u64, V1Error> {
        let balance = self.credits.balance(&self.caller.account).await;
        Ok(balance.map_err(V1Error::from_store_error)?.remaining)
    }

    /// Holds credits for the work that follows; returns the credits left. Call it once.
    ///
    /// `memo` is the purpose, for the account's statement: no text of a person, at most 256 bytes.
    ///
    /// # Errors
    /// [`V1Error::PaymentRequired`], [`V1Error::Internal`]: nothing is held.
    ///
    /// # Cancellation
    /// If the future is dropped, the guard releases a hold that the ledger may have opened.
    async fn hold(&mut self, cost: u64, memo: &str) -> Result<u64, V1Error> {
        if self.repeated.is_some() || self.resources.hold.is_some() {
            return self.credits_left().await;
        }
        let request = self.hold_request(cost, memo);
        // The guard has the hold before the ledger is called. So if the client disconnects during the call, one task
        // releases first the hold and then the lease.
        let hold = self.resources.hold.insert(self.credits.holds.prepare(&request));
        let opened = self.credits.open_hold(hold, &request).await;
        match &opened {
            Ok((_, true)) => self.resources.fetch.iter().for_each(|fetch| fetch.set_pays()),
            Ok((_, false)) => {}
            Err(_) => self.resources.hold = None,
        }
        opened.map(|(credits_left, _)| credits_left)
    }

    fn hold_request(&self, cost: u64, memo: &str) -> HoldRequest {
        self.credits.hold_request(&self.caller.account, &self.work_id, cost, memo)
    }

    /// Charges credits for an answer that is ready; returns the credits left, if known.
    ///
    /// If the response is to be stored, the credits are only held, and settled when it is.
    async fn charge(&mut self, cost: u64, memo: &str) -> Result<Option<u64>, V1Error> {
        if self.repeated.is_some() {
            return Ok(self.credits_left().await.ok());
        }
        if self.resources.lease.is_some() {
            return self.hold_or_consume(cost, memo).await.map(Some);
        }
        if let Some(prepaid) = &self.resources.prepaid
            && prepaid.consume_certainly().await.map_err(V1Error::from_store_error)?.is_some()
        {
            return Ok(self.credits_left().await.ok());
        }
        self.credits.spend(&self.hold_request(cost, memo)).await
    }

    /// Holds credits; without enough of them, uses a prepaid delivery. Returns the credits left.
    async fn hold_or_consume(&mut self, cost: u64, memo: &str) -> Result<u64, V1Error> {
        let held = self.hold(cost, memo).await;
        let (Err(V1Error::PaymentRequired { .. }), Some(prepaid)) = (&held, &self.resources.prepaid) else {
            return held;
        };
        let Some(consumed) = prepaid.consume_certainly().await.map_err(V1Error::from_store_error)? else {
            return held;
        };
        self.resources.consumed = Some(Box::new(consumed));
        self.credits_left().await
    }

    /// Does the work of the call for credits; returns its result, and the credits left if known.
    ///
    /// Work that is immediate, and free of cost for the operator, is charged in one step when it is done. Other
    /// work is held for first; [`RequestGuard::deliver`] settles the hold. Failed work is not charged.
    pub(super) async fn work_for_credits<T, E: From<V1Error>>(
        &mut self,
        cost: u64,
        memo: &str,
        is_immediate: bool,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<(T, Option<u64>), E> {
        if is_immediate {
            let result = work.await?;
            return Ok((result, self.charge(cost, memo).await?));
        }
        let credits_left = self.hold(cost, memo).await?;
        Ok((work.await?, Some(credits_left)))
    }

    /// Ends the call with a response for a connected client.
    ///
    /// Stores the response for replays, settles the hold, and returns the response for sending.
    ///
    /// A response with a status other than 2xx is not stored and costs nothing.
    ///
    /// # Errors
    /// [`V1Error::Conflict`] if another attempt with the same idempotency key took over;
    /// [`V1Error::Internal`] if the response cannot be stored. Nothing is charged. For a repeat,
    /// [`V1Error::Internal`] if the hold of the repeated call cannot be settled; the next repeat settles it.
    ///
    /// # Cancellation
    /// Once polled, the work continues to its end, also when the future is dropped: the answer was ready and
    /// the client was connected.
    pub async fn deliver(mut self, response: StoredResponse) -> Result<StoredResponse, V1Error> {
        let mut resources = std::mem::take(&mut self.resources);
        if let Some(repeated) = self.repeated.take() {
            return self.deliver_repeat(repeated, response).await;
        }
        if resources.is_empty() {
            return Ok(response);
        }
        let route = self.route;
        let work = async move {
            let is_success = (200..300).contains(&response.status);
            let stored = match is_success {
                true => resources.store_response(route, &response).await,
                false => Ok(()),
            };
            match is_success && stored.is_ok() {
                true => resources.settle().await,
                false => resources.release(RequestEnd::Failed).await,
            }
            stored.map(|()| response)
        };
        self.credits.context.finish(work).await.unwrap_or_else(|| Err(V1Error::interrupted()))
    }

    /// Ends a repeat with the response that was made again; settles the hold of the repeated call if it is open.
    async fn deliver_repeat(
        &self,
        repeated: RepeatedCall,
        mut response: StoredResponse,
    ) -> Result<StoredResponse, V1Error> {
        if !(200..300).contains(&response.status) {
            return Ok(response);
        }
        if let Some(hold) = repeated.hold {
            let credits = Arc::clone(&self.credits);
            let settled = self.credits.context.finish(async move { credits.settle_hold(&hold).await }).await;
            settled.unwrap_or_else(|| Err(V1Error::interrupted()))?;
        }
        mark_replayed(&mut response);
        Ok(response)
    }

    /// Ends the call without a response; returns the error once hold and lease are released.
    ///
    /// So the caller may retry at once.
    pub async fn reject(mut self, error: V1Error) -> V1Error {
        self.release_and_wait().await;
        error
    }

    /// Ends the call with the error for a question that the chat model refused or answered unreadably.
    ///
    /// It is counted as an attempt of the account, because a client can cause it. A refusal costs the fetch before it.
    pub(super) async fn reject_question(mut self, error: V1Error, end: RequestEnd) -> V1Error {
        let resources = std::mem::take(&mut self.resources);
        let (credits, account) = (Arc::clone(&self.credits), self.caller.account.id.clone());
        let work = async move {
            credits.limits.count_attempt(&account, credits.context.now()).await;
            resources.release(end).await;
        };
        self.credits.context.finish(work).await;
        error
    }

    /// Ends the call with a response that a replay must not repeat, such as a short-lived URL.
    /// The response is not stored, the hold is released, and a repeat does the work again.
    pub async fn deliver_unstored(mut self, response: StoredResponse) -> StoredResponse {
        self.release_and_wait().await;
        response
    }

    /// The flag that charges a client that disconnects in full.
    pub(super) fn served(&mut self) -> Arc<AtomicBool> {
        Arc::clone(self.resources.served.get_or_insert_default())
    }

    /// Whether the call has an idempotency key, so that a repeat gets the same response.
    pub(super) fn has_idempotency_key(&self) -> bool {
        self.resources.lease.is_some()
    }

    /// Releases hold and lease, and waits for that.
    async fn release_and_wait(&mut self) {
        let resources = std::mem::take(&mut self.resources);
        if !resources.is_empty() {
            // If the runtime ends first, nothing is released; hold and lease then expire.
            self.credits.context.finish(resources.release(RequestEnd::Failed)).await;
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let resources = std::mem::take(&mut self.resources);
        if !resources.is_empty() {
            self.credits.context.transcripts.background().detach(resources.release(RequestEnd::Disconnected));
        }
    }
}
