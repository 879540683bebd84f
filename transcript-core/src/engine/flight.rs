//! One errand from its first caller to everyone's answer.
//!
//! The task that drives an errand claims its lease, lets one caller after another try to pay, fetches,
//! keeps, settles, and then answers all who wait. Whoever cannot pay is answered alone, and the next one
//! takes over; only what the suppliers said is shared.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use super::{
    EngineOptions, Errand, Inner, Outcome, Waiter, absence,
    payment::{Ending, Held, Holding},
    retry::{bounded, persistently},
    settled_already,
};
use crate::{
    archive::{Claim, Found, Lease},
    error::{Error, ErrorKind, Result},
    ids::{Holder, random_name},
    supplier::{Supplied, SupplyError, SupplyReason},
    time::Timestamp,
};

/// Drives an errand to its end.
pub(super) async fn drive(inner: Arc<Inner>, errand: Errand) {
    let mut guard = Guard { inner: Arc::clone(&inner), errand: errand.clone(), ended: false };
    let flight = Flight {
        holder: Holder::new(random_name(inner.random.as_ref(), "worker")),
        inner: &inner,
        errand: &errand,
    };
    flight.run().await;
    guard.ended = true;
}

/// Whatever happens, also a panic or the runtime's end: nobody waits for an errand that no task drives.
struct Guard {
    inner: Arc<Inner>,
    errand: Errand,
    /// Whether the errand came to its end and left the map; it may be in there anew by now.
    ended: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.ended {
            self.inner.errands.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.errand);
        }
        self.inner.driven.send_modify(|count| *count -= 1);
    }
}

/// The shortest time between two heartbeats.
const BEAT_MIN: Duration = Duration::from_millis(50);
/// The part of a lease that is not relied on: work is called off this much before another may claim,
/// since it takes a moment to end, and another machine's clock may be ahead.
const LEASE_RESERVE: u32 = 10;

struct Flight<'a> {
    inner: &'a Inner,
    errand: &'a Errand,
    holder: Holder,
}

/// What came of claiming the lease.
enum Claimed {
    /// It is ours until then.
    Until(Timestamp),
    /// The archive knows the answer by now.
    Found(Found),
    /// Another holds it, and the caller no longer waits.
    Abandoned,
}

/// How the turn of one paying caller ended.
enum Turn {
    /// There is an answer for all; this caller's own, where it differs, comes first.
    Over { own: Outcome, others: Outcome },
    /// This caller alone is answered; the next one takes over.
    Next(Outcome),
}

impl Flight<'_> {
    async fn run(&self) {
        while let Some(waiter) = self.next_waiter().await {
            match self.turn(&waiter).await {
                Turn::Next(own) => {
                    // A caller who left needs no answer.
                    let _ = waiter.reply.send(own);
                }
                Turn::Over { own, others } => {
                    self.unclaim().await;
                    let _ = waiter.reply.send(own);
                    self.answer_all(&others);
                    return;
                }
            }
        }
    }

    /// The next caller who still waits. Without any, the lease is given back first, and only then, when
    /// nobody came meanwhile, does the errand end: so a new caller never finds our own stale lease.
    async fn next_waiter(&self) -> Option<Waiter> {
        if let Some(waiter) = self.pop_waiter() {
            return Some(waiter);
        }
        self.unclaim().await;
        let mut errands = self.inner.errands.lock().unwrap_or_else(PoisonError::into_inner);
        let waiter = errands.get_mut(self.errand).and_then(|waiters| waiters.pop_front());
        if waiter.is_none() {
            errands.remove(self.errand);
        }
        waiter
    }

    fn pop_waiter(&self) -> Option<Waiter> {
        let mut errands = self.inner.errands.lock().unwrap_or_else(PoisonError::into_inner);
        let waiters = errands.get_mut(self.errand)?;
        while let Some(waiter) = waiters.pop_front() {
            if !waiter.reply.is_closed() {
                return Some(waiter);
            }
        }
        None
    }

    /// Answers all who wait, and ends the errand: whoever comes later asks the archive anew.
    fn answer_all(&self, outcome: &Outcome) {
        let waiters = self.inner.errands.lock().unwrap_or_else(PoisonError::into_inner).remove(self.errand);
        for waiter in waiters.into_iter().flatten() {
            let _ = waiter.reply.send(outcome.clone());
        }
    }

    /// One caller's turn: claim, look again, hold, fetch.
    async fn turn(&self, waiter: &Waiter) -> Turn {
        let lease_ends = match self.claim(waiter).await {
            Ok(Claimed::Until(ends)) => ends,
            Ok(Claimed::Found(found)) => return for_all(settled_already(found)),
            Ok(Claimed::Abandoned) => return Turn::Next(Outcome::StillWorking),
            Err(error) => return for_all(Outcome::Broken(error)),
        };
        // The claim takes time: who left meanwhile does not pay.
        if waiter.reply.is_closed() {
            return Turn::Next(Outcome::StillWorking);
        }
        match self.inner.hold(waiter.payment.clone()).await {
            Ok(Holding::Free) => self.fetch(lease_ends, None).await,
            Ok(Holding::Held(held)) => self.fetch(lease_ends, Some(held)).await,
            Ok(Holding::Refused { leg, balance }) => Turn::Next(Outcome::Refused { leg, balance }),
            Err(error) => for_all(Outcome::Broken(error)),
        }
    }

    /// Claims the lease, waiting while another holds it. What the archive has by then is returned: the
    /// other's work, or what was kept between our first look and the claim.
    async fn claim(&self, waiter: &Waiter) -> Result<Claimed> {
        let EngineOptions { store, poll, .. } = self.inner.options;
        loop {
            let lease = self.lease();
            let claim = persistently(store, || self.inner.archive.claim(lease.clone())).await?;
            let (video, wish) = self.errand;
            match persistently(store, || self.inner.find(video, wish)).await? {
                Found::Nothing => {}
                found => return Ok(Claimed::Found(found)),
            }
            match claim {
                Claim::Claimed => return Ok(Claimed::Until(lease.until)),
                // Another's work may take half an hour: nobody asks after it for a caller who left.
                Claim::Busy { .. } if waiter.reply.is_closed() => return Ok(Claimed::Abandoned),
                Claim::Busy { .. } => tokio::time::sleep(poll).await,
            }
        }
    }

    fn lease(&self) -> Lease {
        let now = self.inner.clock.now();
        Lease {
            video: self.errand.0.clone(),
            wish: self.errand.1.clone(),
            holder: self.holder.clone(),
            now,
            until: now.plus(self.inner.options.lease),
        }
    }

    /// Gives the lease back. When the store is away it ends by itself, and nobody waits for it.
    async fn unclaim(&self) {
        let (video, wish) = self.errand;
        let store = self.inner.options.store;
        let unclaim = persistently(store, || self.inner.archive.unclaim(video, wish, &self.holder));
        if let Err(error) = bounded(store, unclaim).await {
            tracing::warn!(%video, %error, "a lease could not be given back; it will end by itself");
        }
    }

    /// Asks the suppliers, keeps what they gave, and only then settles.
    async fn fetch(&self, lease_ends: Timestamp, held: Option<Held>) -> Turn {
        let (turn, ending) = match self.supply(lease_ends, held.as_ref()).await {
            None => (for_all(Outcome::Broken(lease_lost())), Ending::NotBegun),
            Some(supply) => self.keep(supply).await,
        };
        if let Some(held) = held {
            self.inner.settle(&held, ending).await;
        }
        turn
    }

    /// Asks the suppliers while lease and hold are kept alive. None when the lease ran out before a
    /// supplier was asked: then another worker may be fetching the same.
    async fn supply(
        &self,
        lease_ends: Timestamp,
        held: Option<&Held>,
    ) -> Option<Result<Supplied, SupplyError>> {
        let lease_ends = if self.left(lease_ends) > self.inner.options.heartbeat {
            lease_ends
        } else {
            let ends = self.beat(self.inner.options.store, lease_ends, held).await?;
            // A fault leaves the old end, which may be too near to begin anything.
            (!self.left(ends).is_zero()).then_some(ends)?
        };
        tokio::select! {
            biased;
            supply = self.inner.supply(self.errand) => Some(supply),
            () = self.heartbeat(lease_ends, held) => {
                let message = "The work was interrupted: the archive could not be reached. Please ask again.";
                Some(Err(SupplyError::new(SupplyReason::Cancelled, message)))
            }
        }
    }

    /// Keeps a supply, or remembers why there is none.
    async fn keep(&self, supply: Result<Supplied, SupplyError>) -> (Turn, Ending) {
        let supplied = match supply {
            Ok(supplied) => supplied,
            Err(failure) => {
                self.remember(&failure).await;
                return (for_all(Outcome::Failed(failure)), Ending::Failed);
            }
        };
        match self.inner.keep(self.errand, supplied).await {
            Ok(stored) => {
                let (own, others) = (Outcome::Fetched(stored.clone()), Outcome::Archived(stored));
                (Turn::Over { own, others }, Ending::Delivered)
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {
                (for_all(Outcome::Withdrawn), Ending::Failed)
            }
            Err(error) => (for_all(Outcome::Broken(error)), Ending::Failed),
        }
    }

    /// Renews lease and hold while the work runs; returns when the lease is lost, since then another
    /// worker may be fetching the same.
    async fn heartbeat(&self, mut lease_ends: Timestamp, held: Option<&Held>) {
        loop {
            let left = self.left(lease_ends);
            if left.is_zero() {
                return;
            }
            // More often as the end comes near without a renewal.
            tokio::time::sleep(self.inner.options.heartbeat.min(left / 3).max(BEAT_MIN)).await;
            match self.beat(self.left(lease_ends), lease_ends, held).await {
                Some(ends) => lease_ends = ends,
                None => return,
            }
        }
    }

    /// How long the lease can still be relied on.
    fn left(&self, lease_ends: Timestamp) -> Duration {
        let reserve = self.inner.options.lease / LEASE_RESERVE;
        lease_ends.since(self.inner.clock.now()).saturating_sub(reserve)
    }

    /// One heartbeat of at most `limit`: renews hold and lease, each by itself, so that a ledger that
    /// hangs does not cost the lease. Returns when the lease ends now, or none when it is lost.
    async fn beat(&self, limit: Duration, lease_ends: Timestamp, held: Option<&Held>) -> Option<Timestamp> {
        let extend = async {
            if let Some(held) = held {
                // A fault is no loss: the next beat tries again.
                let _ = tokio::time::timeout(limit, self.inner.extend(held)).await;
            }
        };
        let ((), renewed) = tokio::join!(extend, tokio::time::timeout(limit, self.renew(lease_ends)));
        renewed.unwrap_or(None)
    }

    /// Renews the lease; returns when it ends now, or none when it is lost.
    async fn renew(&self, ends: Timestamp) -> Option<Timestamp> {
        let lease = self.lease();
        let until = lease.until;
        match bounded(self.inner.options.store, self.inner.archive.claim(lease)).await {
            Ok(Claim::Claimed) => Some(until),
            Ok(Claim::Busy { .. }) => None,
            // Unknown whether it took effect: what counts is the end that was granted for sure.
            Err(error) => {
                tracing::warn!(video = %self.errand.0, %error, "a lease could not be renewed");
                (self.inner.clock.now() < ends).then_some(ends)
            }
        }
    }

    /// Remembers a failure that says something about the video.
    async fn remember(&self, failure: &SupplyError) {
        let (video, wish) = self.errand;
        let policy = &self.inner.options.absence;
        let now = self.inner.clock.now();
        // All of them: each was asked, or need not be, since the answer is final for all.
        let asked = self.inner.suppliers.names(video.platform());
        let Some(absence) = absence::of_failure(video, wish, failure, asked, policy, now) else { return };
        let store = self.inner.options.store;
        if let Err(error) = persistently(store, || self.inner.archive.keep_absence(absence.clone())).await {
            tracing::warn!(%video, %error, "an absence could not be remembered");
        }
    }
}

fn for_all(outcome: Outcome) -> Turn {
    Turn::Over { own: outcome.clone(), others: outcome }
}

fn lease_lost() -> Error {
    Error::unavailable("the archive was too slow to keep the lease of a fetch")
}
