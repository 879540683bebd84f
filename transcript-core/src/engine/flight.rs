//! One flight, from its first waiter to the outcome of all.
//!
//! The flight task acquires the lease, lets one waiter after another try to pay, fetches, archives, ends the payment,
//! and then notifies all waiters. A waiter whose hold is refused gets its own outcome, and those queued with the same
//! payment get it at their turn; the next waiter pays. Only what the suppliers returned is shared by all.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{
    EngineInner, EngineOptions, FetchOutcome, HeldPayment, PaymentHold, QueueOwner, WorkInProgress,
    WorkResult, absence, archived_outcome,
    language_memory::TRACKS_MAX,
    single_flight::{FetchPurpose, FlightLeader, FlightWaiter},
    supply::SupplyResult,
};
use crate::{
    archive::{FetchLease, LeaseOutcome},
    error::{Error, ErrorKind, Result},
    failure_log::log_failure,
    ids::{Holder, random_id},
    retry::{deadline_after, retry_store, with_timeout},
    supplier::{SupplyError, SupplyReason},
    time::Timestamp,
};

/// Runs a flight to its end.
pub(super) async fn run_flight(inner: Arc<EngineInner>, leader: FlightLeader) {
    let worker = random_id(inner.random.as_ref(), "worker");
    let flight = FlightTask {
        inner: &inner,
        leader: &leader,
        worker,
        lease_count: AtomicU32::new(0),
        late_renewals: AtomicU32::new(0),
        is_released: AtomicBool::new(false),
    };
    flight.run().await;
    // The end of the leader ends the wait of `close`, after which an archive may be opened again.
    drop(inner);
    drop(leader);
}

/// The shortest time between two heartbeats.
const HEARTBEAT_MIN: Duration = Duration::from_millis(50);
/// How often unpaid work that ends with its last waiter checks for one.
const WAITER_POLL: Duration = Duration::from_millis(25);
/// Divisor of the lease duration for the part that is not used.
///
/// Work is cancelled this much before another worker may acquire the lease, because cancelling takes time and another
/// machine's clock may be ahead.
const LEASE_RESERVE: u32 = 10;

struct FlightTask<'a> {
    inner: &'a EngineInner,
    leader: &'a FlightLeader,
    worker: String,
    /// How often the lease was released.
    ///
    /// The next lease gets a new holder name: a store may release the old lease long after this task has stopped
    /// waiting for that.
    lease_count: AtomicU32,
    /// Renewals that may take effect after the put that releases the lease, and acquire it again.
    late_renewals: AtomicU32,
    /// Whether the put released the lease.
    is_released: AtomicBool,
}

/// Outcome of acquiring the lease.
enum LeaseClaim {
    /// The lease is held until then.
    Acquired(Timestamp),
    /// The archive has an outcome now.
    Known(FetchOutcome),
    /// Another holder has the lease, and the waiter has disconnected.
    Abandoned,
}

/// Result of one waiter's attempt to pay and fetch.
enum WaiterTurn {
    /// There is an outcome for all.
    Over(Box<FlightResult>),
    /// This outcome is not for all; the flight continues with the next waiter.
    Next(FetchOutcome),
}

/// The outcome of a flight for all of its waiters.
struct FlightResult {
    /// The payer's outcome.
    own: FetchOutcome,
    /// The outcome of all other waiters.
    others: FetchOutcome,
    /// The payment that ends before the payer is notified.
    payment: Option<Box<dyn HeldPayment>>,
    work_result: WorkResult,
}

impl FlightTask<'_> {
    async fn run(&self) {
        while let Some(waiter) = self.next_waiter().await {
            match self.run_waiter_turn(&waiter).await {
                WaiterTurn::Next(own) => {
                    // The receiver may be gone.
                    let _ = waiter.reply.send(own);
                }
                WaiterTurn::Over(result) => return self.finish(*result, waiter).await,
            }
        }
    }

    /// Releases the lease, notifies the other waiters, and ends the payment.
    async fn finish(&self, result: FlightResult, payer: FlightWaiter) {
        let FlightResult { own, others, payment, work_result } = result;
        // Ended here and not in the caller's task: a caller must not avoid the cost by disconnecting.
        let end = async {
            if let Some(payment) = payment {
                payment.end(work_result).await;
            }
        };
        // The receiver may be gone.
        let reply = || drop(payer.reply.send(own));
        // The others pay nothing, so they do not wait for a slow ledger, nor the payment for a slow archive.
        if matches!((&others, self.leader.key().2), (FetchOutcome::Archived(_), FetchPurpose::Fetch)) {
            // Later callers find the transcript in the archive and never need the lease.
            self.leader.notify_all(&others);
            tokio::join!(self.release(), async {
                end.await;
                reply();
            });
        } else {
            let notify = async {
                self.release().await;
                self.leader.notify_all(&others);
            };
            tokio::join!(notify, end);
            // Only now, so that a retry of the payer starts a new flight instead of joining this one.
            reply();
        }
    }

    /// The next connected waiter.
    ///
    /// Without one the lease is released first, and the flight ends only if no waiter has joined by then: so a new
    /// flight never meets the stale lease of this one.
    async fn next_waiter(&self) -> Option<FlightWaiter> {
        if let Some(waiter) = self.leader.next() {
            return Some(waiter);
        }
        self.release().await;
        self.leader.next_or_finish()
    }

    /// Runs the flight for one waiter: acquires the lease, reads the archive again, holds, fetches.
    async fn run_waiter_turn(&self, waiter: &FlightWaiter) -> WaiterTurn {
        if let Some(refusal) = &waiter.refusal {
            return WaiterTurn::Next(refusal.clone());
        }
        let owner = QueueOwner::for_payer(waiter.payer.as_deref());
        let platform = self.leader.key().0.platform();
        // Overload must cost neither the stores nor the ledger anything.
        if let Some(retry_after) = self.inner.suppliers.refuses(platform, &owner, self.inner.clock.now()) {
            return WaiterTurn::Next(FetchOutcome::Busy(retry_after));
        }
        let lease_expires_at = match self.acquire(waiter).await {
            Ok(LeaseClaim::Acquired(expires_at)) => expires_at,
            Ok(LeaseClaim::Known(outcome)) => return end_with(outcome),
            Ok(LeaseClaim::Abandoned) => {
                return WaiterTurn::Next(FetchOutcome::InProgress(WorkInProgress::retry_soon()));
            }
            Err(error) => return end_with(FetchOutcome::StoreFailed(error)),
        };
        // A waiter that disconnected before the hold is not charged.
        if waiter.reply.is_closed() {
            return WaiterTurn::Next(FetchOutcome::InProgress(WorkInProgress::retry_soon()));
        }
        let joined = self.leader.joined();
        let payment = match self.hold(waiter).await {
            Ok(None) => None,
            Ok(Some(PaymentHold::Held(payment))) => Some(payment),
            Ok(Some(PaymentHold::Refused(refusal))) => {
                // A spent allowance costs one turn. Those who join later try again: it may have been raised by then.
                let outcome = FetchOutcome::Refused(refusal);
                self.leader.refuse_like(waiter, joined, &outcome);
                return WaiterTurn::Next(outcome);
            }
            // An unavailable ledger fails for every waiter; any other error is about this payment.
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                return end_with(FetchOutcome::StoreFailed(error));
            }
            Err(error) => return WaiterTurn::Next(FetchOutcome::StoreFailed(error)),
        };
        tokio::select! {
            biased;
            result = self.fetch(lease_expires_at, &owner) => {
                let ((own, others), work_result) = result;
                if matches!(own, FetchOutcome::Busy(_)) {
                    // The next waiter may have another owner, with room in the queue.
                    if let Some(payment) = payment {
                        payment.end(work_result).await;
                    }
                    return WaiterTurn::Next(own);
                }
                WaiterTurn::Over(Box::new(FlightResult { own, others, payment, work_result }))
            }
            // A waiter that joins later starts again from the lease.
            () = self.all_disconnected(waiter, payment.is_none()) => {
                WaiterTurn::Next(FetchOutcome::InProgress(WorkInProgress::retry_soon()))
            }
        }
    }

    /// Holds the waiter's payment; `None` if the fetch is free.
    async fn hold(&self, waiter: &FlightWaiter) -> Result<Option<PaymentHold>> {
        Ok(match &waiter.payer {
            Some(payer) => Some(payer.hold().await?),
            None => None,
        })
    }

    /// Returns once an unpaid flight has no waiters left, if such flights end with their last waiter.
    async fn all_disconnected(&self, waiter: &FlightWaiter, is_free: bool) {
        if self.inner.options.detach_unpaid || !is_free {
            return std::future::pending().await;
        }
        while !(waiter.reply.is_closed() && self.leader.has_no_waiters()) {
            tokio::time::sleep(WAITER_POLL).await;
        }
    }

    /// Acquires the lease, waiting while another holder has it.
    ///
    /// Returns what the archive has by then: the result of the other holder, or what was stored between the first
    /// archive lookup and the lease.
    async fn acquire(&self, waiter: &FlightWaiter) -> Result<LeaseClaim> {
        let policy = self.inner.options.request_policy();
        self.is_released.store(false, Ordering::Relaxed);
        loop {
            let lease = self.lease();
            let outcome = retry_store(policy, || self.inner.archive.acquire_lease(lease.clone())).await?;
            let (video, selector, purpose) = self.leader.key();
            let found = retry_store(policy, || self.inner.find(video, selector)).await;
            if let Some(outcome) = archived_outcome(*purpose, found)? {
                return Ok(LeaseClaim::Known(outcome));
            }
            match outcome {
                LeaseOutcome::Acquired => return Ok(LeaseClaim::Acquired(lease.until)),
                // Another holder's work may take half an hour: stop polling when the waiter is gone.
                LeaseOutcome::Busy { .. } if waiter.reply.is_closed() => return Ok(LeaseClaim::Abandoned),
                LeaseOutcome::Busy { .. } => tokio::time::sleep(self.inner.options.lease_poll).await,
            }
        }
    }

    fn lease(&self) -> FetchLease {
        let now = self.inner.clock.now();
        FetchLease {
            video: self.leader.key().0.clone(),
            selector: self.leader.key().1.clone(),
            holder: self.holder(),
            now,
            until: now.plus(self.inner.options.lease),
        }
    }

    fn holder(&self) -> Holder {
        Holder::new(format!("{}-{}", self.worker, self.lease_count.load(Ordering::Relaxed)))
    }

    /// Releases the lease, unless the put did.
    ///
    /// If the store is unavailable, the lease expires and no new attempt is made.
    async fn release(&self) {
        let (video, selector, _) = self.leader.key();
        let holder = self.holder();
        self.lease_count.fetch_add(1, Ordering::Relaxed);
        if self.is_released.load(Ordering::Relaxed) {
            return;
        }
        let release = || self.inner.archive.release_lease(video, selector, &holder);
        if let Err(error) = retry_store(self.inner.options.request_policy(), release).await {
            log_failure!(warn, [%video, %error], "lease release failed");
        }
    }

    /// Calls the suppliers and stores their output; only then may the payment be settled.
    ///
    /// Returns the payer's outcome and that of the others.
    async fn fetch(
        &self,
        lease_expires_at: Timestamp,
        owner: &QueueOwner,
    ) -> ((FetchOutcome, FetchOutcome), WorkResult) {
        match self.supply(lease_expires_at, owner).await {
            None => (same_for_all(FetchOutcome::StoreFailed(lease_lost())), WorkResult::NotAttempted),
            Some(supply) => tokio::select! {
                biased;
                stored = self.store_supply(supply) => stored,
                never = self.keep_lease() => match never {},
            },
        }
    }

    /// Calls the suppliers while the lease is renewed.
    ///
    /// `None` if the lease ended before a supplier was called: then another worker may be fetching the same track.
    async fn supply(&self, lease_expires_at: Timestamp, owner: &QueueOwner) -> Option<SupplyResult> {
        let lease_expires_at = if self.remaining_lease(lease_expires_at) > self.inner.options.lease_heartbeat
        {
            lease_expires_at
        } else {
            let renewed = self.renew(self.inner.options.store_timeout).await;
            // After a failed renewal the old end is valid, which may be too close to start anything.
            let expires_at = renewed.unwrap_or(Some(lease_expires_at))?;
            (!self.remaining_lease(expires_at).is_zero()).then_some(expires_at)?
        };
        let lease_deadline = deadline_after(self.remaining_lease(lease_expires_at));
        tokio::select! {
            biased;
            supply = self.inner.supply(self.leader.key(), self.leader.tracker(), owner) => Some(supply),
            () = self.heartbeat(lease_deadline) => {
                let message = "The fetch was interrupted because the archive was unreachable. Try again.".to_owned();
                let has_started = self.leader.tracker().has_started();
                let failure = if has_started { SupplyError::new } else { SupplyError::before_request };
                let result = Err(failure(SupplyReason::Cancelled, message));
                Some(SupplyResult { result, suppliers_tried: Vec::new(), refused: None })
            }
        }
    }

    /// Stores the suppliers' output, or the absence that follows from their failure.
    ///
    /// Returns the payer's outcome and that of the others.
    async fn store_supply(&self, supply: SupplyResult) -> ((FetchOutcome, FetchOutcome), WorkResult) {
        let supplied = match supply.result {
            Ok(supplied) => supplied,
            Err(failure) => {
                let work_result =
                    if failure.was_attempted() { WorkResult::Failed } else { WorkResult::NotAttempted };
                if let Some(retry_after) = supply.refused {
                    return (same_for_all(FetchOutcome::Busy(retry_after)), work_result);
                }
                let failure = match self.store_absence(&failure, supply.suppliers_tried).await {
                    Some(wait) => failure.with_retry_after(wait),
                    None => failure,
                };
                return (same_for_all(FetchOutcome::SupplyFailed(failure)), work_result);
            }
        };
        // A refresh that is stored again after a lost reply must not replace a later one: it keeps its lease.
        let lease_holder = (self.leader.key().2 == FetchPurpose::Fetch).then(|| self.holder());
        match self.inner.store_tracks(self.leader.key(), supplied, lease_holder.as_ref()).await {
            Ok(stored) => {
                let is_released = lease_holder.is_some() && self.late_renewals.load(Ordering::Relaxed) == 0;
                self.is_released.store(is_released, Ordering::Relaxed);
                (
                    (FetchOutcome::Fetched(stored.clone()), FetchOutcome::Archived(stored)),
                    WorkResult::Delivered,
                )
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                (same_for_all(FetchOutcome::Withdrawn), WorkResult::NotArchived)
            }
            Err(error) => (same_for_all(FetchOutcome::StoreFailed(error)), WorkResult::NotArchived),
        }
    }

    /// Renews the lease for as long as it is awaited, and ignores failures.
    ///
    /// The transcript is already fetched, and must not be lost if the archive recovers before the lease ends.
    async fn keep_lease(&self) -> Infallible {
        loop {
            tokio::time::sleep(self.inner.options.lease_heartbeat).await;
            // Even if the renewal ends before the put, its effect may follow that of the put.
            self.late_renewals.fetch_add(1, Ordering::Relaxed);
            let _ = self.renew(self.inner.options.lease_heartbeat).await;
        }
    }

    /// Renews the lease while the work runs.
    ///
    /// Returns when the lease is lost, because another worker may then be fetching the same track. Timers measure the
    /// usable time: after a step of the clock, the renewal decides whether another worker has the lease.
    async fn heartbeat(&self, mut deadline: Instant) {
        let EngineOptions { lease, lease_heartbeat, .. } = self.inner.options;
        loop {
            let remaining_lease = time_until(deadline);
            if remaining_lease.is_zero() {
                return;
            }
            // More often as the end comes closer without a renewal.
            tokio::time::sleep(lease_heartbeat.min(remaining_lease / 3).max(HEARTBEAT_MIN)).await;
            let renewed_deadline = deadline_after(lease.saturating_sub(lease / LEASE_RESERVE));
            match self.renew(time_until(deadline)).await {
                Ok(Some(_)) => deadline = renewed_deadline,
                Ok(None) => return,
                // It is unknown whether the renewal took effect: only the end that was granted before is certain.
                Err(_) => {}
            }
        }
    }

    /// The remaining usable time of the lease.
    fn remaining_lease(&self, lease_expires_at: Timestamp) -> Duration {
        let reserve = self.inner.options.lease / LEASE_RESERVE;
        lease_expires_at.since(self.inner.clock.now()).saturating_sub(reserve)
    }

    /// Renews the lease within `limit` and the store timeout. Returns its end, or `None` if another holder has it.
    ///
    /// # Errors
    /// Those of the archive, which are logged.
    async fn renew(&self, limit: Duration) -> Result<Option<Timestamp>> {
        let lease = self.lease();
        let until = lease.until;
        let limit = limit.min(self.inner.options.store_timeout);
        self.late_renewals.fetch_add(1, Ordering::Relaxed);
        let renewed = with_timeout(limit, self.inner.archive.acquire_lease(lease)).await;
        if renewed.is_ok() {
            self.late_renewals.fetch_sub(1, Ordering::Relaxed);
        }
        match renewed {
            Ok(LeaseOutcome::Acquired) => Ok(Some(until)),
            Ok(LeaseOutcome::Busy { .. }) => Ok(None),
            Err(error) => {
                log_failure!(warn, [video = %self.leader.key().0, %error], "lease renewal failed");
                Err(error)
            }
        }
    }

    /// Stores the absence that a failure leaves, if it says something about the video. Returns its duration.
    async fn store_absence(&self, failure: &SupplyError, suppliers_tried: Vec<String>) -> Option<Duration> {
        // Every supplier declined, so none knows anything about the video.
        if failure.is_declined() {
            return None;
        }
        let (video, selector, _) = self.leader.key();
        let now = self.inner.clock.now();
        if let SupplyReason::NoLanguage(tracks) = failure.reason() {
            self.inner.languages.insert(video, tracks);
            let known = tracks.get(..TRACKS_MAX).unwrap_or(tracks);
            let add = || self.inner.archive.add_known_tracks(video, known, now);
            if let Err(error) = retry_store(self.inner.options.request_policy(), add).await {
                log_failure!(warn, [%video, %error], "known tracks not stored");
            }
        }
        let policy = &self.inner.options.absence;
        let absence = absence::from_failure(video, selector, failure, suppliers_tried, policy, now)?;
        let put = || self.inner.archive.put_absence(absence.clone());
        match retry_store(self.inner.options.request_policy(), put).await {
            Ok(()) => Some(absence.until.since(now)),
            Err(error) => {
                log_failure!(warn, [%video, %error], "absence not stored");
                None
            }
        }
    }
}

fn end_with(outcome: FetchOutcome) -> WaiterTurn {
    let (own, others) = same_for_all(outcome);
    WaiterTurn::Over(Box::new(FlightResult {
        own,
        others,
        payment: None,
        work_result: WorkResult::NotAttempted,
    }))
}

fn same_for_all(outcome: FetchOutcome) -> (FetchOutcome, FetchOutcome) {
    (outcome.clone(), outcome)
}

/// The time until a deadline; zero once it has passed.
fn time_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(deadline_after(Duration::ZERO))
}

fn lease_lost() -> Error {
    Error::unavailable("the archive was too slow to renew the lease of the fetch")
}
