//! One call that was let in, from the door to its answer.
//!
//! Whatever it took on its way (an idempotency key, credits) is given back when the visit ends without an
//! answer, also when the caller leaves and everything is dropped.

use std::fmt;

use tokio::{sync::oneshot, task::JoinSet};

use super::{Accounts, Caller, RateState, Refused, Reply, Route, charge::Charge, notes::Notes};
use crate::{
    engine::retry::{bounded, persistently},
    error::ErrorKind,
    ids::{Holder, random_name},
    ledger::HoldRequest,
    video::VideoId,
};

/// An idempotency key that a visit works on.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    /// The key, bound to account and route.
    pub(super) key: String,
    /// The visit's name in the store.
    pub(super) holder: Holder,
    /// The digest of the request.
    pub(super) fingerprint: Vec<u8>,
}

/// What a visit has taken and must give back, or pay, in the end.
#[derive(Clone, Debug, Default)]
struct Taken {
    lease: Option<Lease>,
    charge: Option<Charge>,
    /// Whose words are in the answer; nothing that is given back.
    video: Option<VideoId>,
}

impl Taken {
    fn is_empty(&self) -> bool {
        self.lease.is_none() && self.charge.is_none()
    }
}

/// A call that was let in. It ends with an answer ([`Visit::deliver`]) or a refusal ([`Visit::refuse`]);
/// dropped, as when its caller leaves, it gives back what it took.
pub struct Visit {
    accounts: Accounts,
    caller: Box<Caller>,
    route: Route,
    rate: RateState,
    /// The name of the work: the same for every attempt with the same idempotency key.
    work: String,
    taken: Taken,
    /// Renews what was taken while the work goes on; ends with the visit.
    heart: JoinSet<()>,
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit")
            .field("caller", &self.caller)
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl Visit {
    pub(super) fn new(accounts: &Accounts, caller: Caller, route: Route) -> Self {
        let rate = RateState { name: "", limit: 0, window_s: 0, remaining: 0, reset_s: 0 };
        let work = random_name(accounts.parts().random.as_ref(), route.as_str());
        let (accounts, caller) = (accounts.clone(), Box::new(caller));
        let (taken, heart) = (Taken::default(), JoinSet::new());
        Self { accounts, caller, route, rate, work, taken, heart }
    }

    pub(super) fn admitted(&mut self, rate: RateState) {
        self.rate = rate;
    }

    pub(super) fn lease(&mut self, lease: Lease) {
        self.work = format!("{}-{}", self.route.as_str(), lease.key);
        self.taken.lease = Some(lease);
        self.beat();
    }

    /// The idempotency key is not this visit's, and never was.
    pub(super) fn leave_lease(&mut self) {
        self.taken.lease = None;
        self.heart.abort_all();
    }

    /// Whoever calls.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The endpoint.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The account's rate limit after this call.
    pub fn rate(&self) -> RateState {
        self.rate
    }

    /// A name for what the call does: the same for every attempt with the same idempotency key, unique
    /// without one. At most 128 ASCII characters.
    pub fn work_id(&self) -> &str {
        &self.work
    }

    /// The answer will have words of this video in it. A stored one is not repeated once the video is withdrawn.
    pub fn tells_of(&mut self, video: &VideoId) {
        self.taken.video = Some(video.clone());
    }

    /// Holds credits for the work that follows; returns how many are left. Once per visit.
    ///
    /// `memo` says what it is for, in the account's statement: no text of a person, at most 256 bytes.
    ///
    /// # Errors
    /// [`Refused::PaymentRequired`], [`Refused::Internal`]: nothing is held, and the visit should be refused
    /// with it.
    pub async fn hold(&mut self, cost: u64, memo: &str) -> Result<u64, Refused> {
        let (accounts, ask) = (self.accounts.clone(), self.begin_hold(cost, memo));
        let held = self.accounts.task(async move { accounts.hold(&ask).await }).await;
        self.end_hold(held)
    }

    /// As [`Visit::hold`], on the engine's runtime.
    pub(super) async fn hold_here(&mut self, cost: u64, memo: &str) -> Result<u64, Refused> {
        let ask = self.begin_hold(cost, memo);
        let held = self.accounts.hold(&ask).await;
        self.end_hold(held)
    }

    fn begin_hold(&mut self, cost: u64, memo: &str) -> HoldRequest {
        let ask = self.accounts.request(&self.caller.account, &self.work, cost, memo);
        // Noted before the ledger is asked: whatever becomes of the asking, it is given back.
        self.taken.charge = Some(Charge { hold: ask.id.clone(), amount: cost });
        self.beat();
        ask
    }

    fn end_hold(&mut self, held: Result<u64, Refused>) -> Result<u64, Refused> {
        if let Err(Refused::PaymentRequired { .. }) = held {
            self.taken.charge = None;
            self.beat();
        }
        held
    }

    /// Takes credits for an answer that is at hand; returns how many are left, where that is known.
    ///
    /// Where a reply is to be stored they are only held, and spent when it is.
    pub(super) async fn take(&mut self, cost: u64, memo: &str) -> Result<Option<u64>, Refused> {
        if self.taken.lease.is_some() {
            return self.hold_here(cost, memo).await.map(Some);
        }
        let ask = self.accounts.request(&self.caller.account, &self.work, cost, memo);
        self.accounts.spend(&ask).await
    }

    /// Ends the visit with an answer, which the caller is there to get: stores it for repeats, spends what is
    /// held, and returns it to be sent.
    ///
    /// An answer that is no success (a status other than 2xx) is not stored, and costs nothing.
    ///
    /// # Errors
    /// [`Refused::Conflict`] when another attempt with the same idempotency key took over meanwhile;
    /// [`Refused::Internal`] when the reply cannot be stored. Nothing is charged.
    ///
    /// # Cancellation
    /// Once polled it goes on to its end, also when the future is dropped: the answer was ready and the
    /// caller was there.
    pub async fn deliver(mut self, reply: Reply) -> Result<Reply, Refused> {
        let is_success = (200..300).contains(&reply.status);
        let taken = std::mem::take(&mut self.taken);
        if taken.is_empty() {
            return Ok(reply);
        }
        let (accounts, mut heart) = (self.accounts.clone(), std::mem::take(&mut self.heart));
        let (tell, told) = oneshot::channel();
        self.accounts.parts().transcripts.detach(async move {
            let refused = match is_success {
                true => accounts.finish(&taken, &reply).await.err(),
                false => None,
            };
            if is_success && refused.is_none() {
                return accounts.pay(taken, tell, reply).await;
            }
            heart.abort_all();
            accounts.give_back(taken).await;
            let _ = tell.send(refused.map_or(Ok(reply), Err));
        });
        told.await.unwrap_or_else(|_| Err(Refused::interrupted()))
    }

    /// Ends the visit without an answer; returns why, once everything is given back, so that the caller may
    /// try again at once.
    pub async fn refuse(mut self, refused: Refused) -> Refused {
        self.end().await;
        refused
    }

    /// Ends the visit with an answer that is worth nothing the next time, such as an address that leads somewhere
    /// for minutes: it is not stored, what is held is given back, and a repeat does the work again.
    pub async fn deliver_once(mut self, reply: Reply) -> Reply {
        self.end().await;
        reply
    }

    /// Ends the visit of a caller who left with a part of the answer: spends what is held, as if all had been
    /// delivered. There is nothing to store.
    pub(super) async fn leave_served(mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.heart.abort_all();
        if let Some(charge) = &taken.charge {
            self.accounts.settle_in_the_end(charge).await;
        }
    }

    /// Whether a repeat of the call gets the same answer: it came with an idempotency key.
    pub(super) fn may_be_repeated(&self) -> bool {
        self.taken.lease.is_some()
    }

    /// Gives back what was taken, and waits for that.
    async fn end(&mut self) {
        let (accounts, taken) = (self.accounts.clone(), std::mem::take(&mut self.taken));
        self.heart.abort_all();
        if taken.is_empty() {
            return;
        }
        let (tell, told) = oneshot::channel();
        self.accounts.parts().transcripts.detach(async move {
            accounts.give_back(taken).await;
            let _ = tell.send(());
        });
        // An end by the runtime's end gives nothing back; then all expires by itself.
        let _ = told.await;
    }

    /// Keeps renewing what is taken now.
    fn beat(&mut self) {
        self.heart.abort_all();
        if self.taken.is_empty() {
            return;
        }
        let (accounts, taken) = (self.accounts.clone(), self.taken.clone());
        let runtime = self.accounts.parts().transcripts.runtime().clone();
        self.heart.spawn_on(async move { accounts.renew(&taken).await }, &runtime);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.heart.abort_all();
        let taken = std::mem::take(&mut self.taken);
        if !taken.is_empty() {
            let accounts = self.accounts.clone();
            self.accounts.parts().transcripts.detach(async move { accounts.give_back(taken).await });
        }
    }
}

impl Accounts {
    /// Renews a lease and a hold for as long as it runs. A fault is no loss: the next beat tries again.
    async fn renew(&self, taken: &Taken) {
        let options = self.parts.transcripts.options();
        loop {
            tokio::time::sleep(options.heartbeat).await;
            let now = self.parts.clock.now();
            if let Some(charge) = &taken.charge {
                let extend = self.parts.ledger.extend(&charge.hold, now.plus(options.lease));
                if let Err(error) = bounded(options.store, extend).await {
                    tracing::warn!(hold = %charge.hold, %error, "a hold could not be extended");
                }
            }
            if let Some(lease) = &taken.lease {
                let begin = self.parts.replies.begin(self.attempt(lease, now));
                if let Err(error) = bounded(options.store, begin).await {
                    tracing::warn!(%error, "the lease of a call could not be renewed");
                }
            }
        }
    }

    /// Stores the reply for repeats, where there is an idempotency key.
    async fn finish(&self, taken: &Taken, reply: &Reply) -> Result<(), Refused> {
        let Some(lease) = &taken.lease else { return Ok(()) };
        let mut stored = reply.clone();
        Notes { charge: taken.charge.clone(), video: taken.video.clone() }.put(&mut stored);
        let finish = || self.parts.replies.finish(&lease.key, &lease.holder, stored.clone());
        match persistently(self.parts.transcripts.patience(), finish).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(Refused::Conflict(
                "Another request with this Idempotency-Key took over: please ask again, with the same key."
                    .to_owned(),
            )),
            Err(error) => Err(Refused::store(&error)),
        }
    }

    /// Spends what is held, then tells. A ledger that is away is not waited for longer than a caller may be
    /// kept waiting; it is told in the end.
    async fn pay(&self, taken: Taken, tell: oneshot::Sender<Result<Reply, Refused>>, reply: Reply) {
        let Some(charge) = &taken.charge else {
            let _ = tell.send(Ok(reply));
            return;
        };
        let in_time = self.settle_in_time(charge).await.is_ok();
        let _ = tell.send(Ok(reply));
        if !in_time {
            self.settle_in_the_end(charge).await;
        }
    }

    /// Gives back what a visit took, the credits first: whoever tries again at once needs them.
    async fn give_back(&self, taken: Taken) {
        if let Some(charge) = &taken.charge {
            self.release(charge).await;
        }
        if let Some(lease) = &taken.lease {
            let abandon = self.parts.replies.abandon(&lease.key, &lease.holder);
            if let Err(error) = bounded(self.parts.transcripts.options().store, abandon).await {
                tracing::warn!(%error, "an idempotency key could not be given back; its lease will end");
            }
        }
    }
}
