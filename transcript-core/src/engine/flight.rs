//! One flight, from its first waiter to the outcome of all.
//!
//! The flight task acquires the lease, lets one waiter after another try to pay, fetches, archives, ends the payment,
//! and then notifies all waiters. A waiter whose hold is refused gets its own outcome; the next waiter pays. Only what the
//! suppliers returned is shared.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::{
    EngineInner, FetchOutcome, HeldPayment, PaymentHold, WorkInProgress, WorkResult, absence,
    archived_outcome,
    single_flight::{FetchPurpose, FlightLeader, FlightWaiter},
    supply::SupplyResult,
};
use crate::{
    archive::{FetchLease, LeaseOutcome},
    error::{Error, ErrorKind, Result},
    ids::{Holder, random_id},
    retry::{retry_store, with_timeout},
    supplier::{SupplyError, SupplyReason},
    time::Timestamp,
};

/// Runs a flight to its end.
pub(super) async fn run_flight(inner: Arc<EngineInner>, leader: FlightLeader) {
    let worker = random_id(inner.random.as_ref(), "worker");
    FlightTask { inner: &inner, leader: &leader, worker, lease_count: AtomicU32::new(0) }.run().await;
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
    /// This outcome is for this waiter only; the flight continues with the next one.
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
        let end = async {
            // Ended here and not in the caller's task: a caller must not avoid the cost by disconnecting.
            if let Some(payment) = payment {
                payment.end(work_result).await;
            }
            // The receiver may be gone.
            let _ = payer.reply.send(own);
        };
        // The others pay nothing, so they do not wait for a slow ledger.
        if matches!((&others, self.leader.key().2), (FetchOutcome::Archived(_), FetchPurpose::Fetch)) {
            // Later callers find the transcript in the archive and never need the lease.
            self.leader.notify_all(&others);
            tokio::join!(self.release(), end);
        } else {
            self.release().await;
            self.leader.notify_all(&others);
            end.await;
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
        let payment = match self.hold(waiter).await {
            Ok(None) => None,
            Ok(Some(PaymentHold::Held(payment))) => Some(payment),
            Ok(Some(PaymentHold::Refused(refusal))) => {
                return WaiterTurn::Next(FetchOutcome::Refused(refusal));
            }
            // An unavailable ledger fails for every waiter; any other error is about this payment.
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                return end_with(FetchOutcome::StoreFailed(error));
            }
            Err(error) => return WaiterTurn::Next(FetchOutcome::StoreFailed(error)),
        };
        tokio::select! {
            biased;
            result = self.fetch(lease_expires_at) => {
                let ((own, others), work_result) = result;
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
        loop {
            let lease = self.lease();
            let outcome = retry_store(policy, || self.inner.archive.acquire_lease(lease.clone())).await?;
            let (video, selector, purpose) = self.leader.key();
            let found = retry_store(policy, || self.inner.find(video, selector)).await?;
            if let Some(outcome) = archived_outcome(*purpose, found) {
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

    /// Releases the lease. If the store is unavailable, the lease expires and no new attempt is made.
    async fn release(&self) {
        let (video, selector, _) = self.leader.key();
        let holder = self.holder();
        self.lease_count.fetch_add(1, Ordering::Relaxed);
        let release = || self.inner.archive.release_lease(video, selector, &holder);
        if let Err(error) = retry_store(self.inner.options.request_policy(), release).await {
            tracing::warn!(%video, %error, "lease release failed");
        }
    }

    /// Calls the suppliers and stores their output; only then may the payment be settled.
    ///
    /// Returns the payer's outcome and that of the others.
    async fn fetch(&self, lease_expires_at: Timestamp) -> ((FetchOutcome, FetchOutcome), WorkResult) {
        match self.supply(lease_expires_at).await {
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
    async fn supply(&self, lease_expires_at: Timestamp) -> Option<SupplyResult> {
        let lease_expires_at = if self.remaining_lease(lease_expires_at) > self.inner.options.heartbeat {
            lease_expires_at
        } else {
            let expires_at = self.renew(self.inner.options.store_timeout, lease_expires_at).await?;
            // After a failed renewal the old end is valid, which may be too close to start anything.
            (!self.remaining_lease(expires_at).is_zero()).then_some(expires_at)?
        };
        tokio::select! {
            biased;
            supply = self.inner.supply(self.leader.key(), self.leader.tracker()) => Some(supply),
            () = self.heartbeat(lease_expires_at) => {
                let message = "The fetch was interrupted because the archive was unreachable. Try again.".to_owned();
                let has_started = self.leader.tracker().has_started();
                let failure = if has_started { SupplyError::new } else { SupplyError::before_request };
                Some(SupplyResult { result: Err(failure(SupplyReason::Cancelled, message)), suppliers_tried: Vec::new() })
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
                self.store_absence(&failure, supply.suppliers_tried).await;
                let work_result =
                    if failure.was_attempted() { WorkResult::Failed } else { WorkResult::NotAttempted };
                return (same_for_all(FetchOutcome::SupplyFailed(failure)), work_result);
            }
        };
        match self.inner.store_tracks(self.leader.key(), supplied).await {
            Ok(stored) => (
                (FetchOutcome::Fetched(stored.clone()), FetchOutcome::Archived(stored)),
                WorkResult::Delivered,
            ),
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
            tokio::time::sleep(self.inner.options.heartbeat).await;
            self.renew(self.inner.options.heartbeat, self.inner.clock.now()).await;
        }
    }

    /// Renews the lease while the work runs.
    ///
    /// Returns when the lease is lost, because another worker may then be fetching the same track.
    async fn heartbeat(&self, mut lease_expires_at: Timestamp) {
        loop {
            let remaining_lease = self.remaining_lease(lease_expires_at);
            if remaining_lease.is_zero() {
                return;
            }
            // More often as the end comes closer without a renewal.
            tokio::time::sleep(self.inner.options.heartbeat.min(remaining_lease / 3).max(HEARTBEAT_MIN))
                .await;
            match self.renew(self.remaining_lease(lease_expires_at), lease_expires_at).await {
                Some(expires_at) => lease_expires_at = expires_at,
                None => return,
            }
        }
    }

    /// The remaining usable time of the lease.
    fn remaining_lease(&self, lease_expires_at: Timestamp) -> Duration {
        let reserve = self.inner.options.lease / LEASE_RESERVE;
        lease_expires_at.since(self.inner.clock.now()).saturating_sub(reserve)
    }

    /// Renews the lease within `limit` and the store timeout. Returns its end, or `None` if it is lost.
    async fn renew(&self, limit: Duration, expires_at: Timestamp) -> Option<Timestamp> {
        let lease = self.lease();
        let until = lease.until;
        let limit = limit.min(self.inner.options.store_timeout);
        match with_timeout(limit, self.inner.archive.acquire_lease(lease)).await {
            Ok(LeaseOutcome::Acquired) => Some(until),
            Ok(LeaseOutcome::Busy { .. }) => None,
            // It is unknown whether the renewal took effect: only the end that was granted before is certain.
            Err(error) => {
                tracing::warn!(video = %self.leader.key().0, %error, "lease renewal failed");
                (self.inner.clock.now() < expires_at).then_some(expires_at)
            }
        }
    }

    /// Stores the absence that a failure leaves, if it says something about the video.
    async fn store_absence(&self, failure: &SupplyError, suppliers_tried: Vec<String>) {
        let (video, selector, _) = self.leader.key();
        let policy = &self.inner.options.absence;
        let now = self.inner.clock.now();
        let Some(absence) = absence::from_failure(video, selector, failure, suppliers_tried, policy, now)
        else {
            return;
        };
        let put = || self.inner.archive.put_absence(absence.clone());
        if let Err(error) = retry_store(self.inner.options.request_policy(), put).await {
            tracing::warn!(%video, %error, "absence not stored");
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

fn lease_lost() -> Error {
    Error::unavailable("the archive was too slow to renew the lease of the fetch")
}
