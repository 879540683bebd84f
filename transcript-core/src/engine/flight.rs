//! One errand from its first caller to everyone's answer.
//!
//! The task that drives an errand claims its lease, lets one caller after another try to pay, fetches,
//! keeps, settles, and then answers all who wait. Whoever cannot pay is answered alone, and the next one
//! takes over; only what the suppliers said is shared.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use super::{
    Inner, Outcome, StillWorking, absence,
    errands::{Driving, Purpose, Waiter},
    known_for,
    payment::{Ending, Held, Holding},
    retry::{bounded, persistently},
    supply::Supply,
};
use crate::{
    archive::{Claim, Lease},
    error::{Error, ErrorKind, Result},
    ids::{Holder, random_name},
    supplier::{SupplyError, SupplyReason},
    time::Timestamp,
};

/// Drives an errand to its end.
pub(super) async fn drive(inner: Arc<Inner>, driving: Driving) {
    let worker = random_name(inner.random.as_ref(), "worker");
    Flight { inner: &inner, driving: &driving, worker, tenure: AtomicU32::new(0) }.run().await;
}

/// The shortest time between two heartbeats.
const BEAT_MIN: Duration = Duration::from_millis(50);
/// How often it is looked whether anybody still waits, where work ends when nobody does.
const LOOK: Duration = Duration::from_millis(25);
/// The part of a lease that is not relied on: work is called off this much before another may claim,
/// since it takes a moment to end, and another machine's clock may be ahead.
const LEASE_RESERVE: u32 = 10;

struct Flight<'a> {
    inner: &'a Inner,
    driving: &'a Driving,
    worker: String,
    /// How often the lease was given back. Whoever claims it anew does so under a new name: a store may
    /// give back the old claim long after we stopped waiting for that.
    tenure: AtomicU32,
}

/// What came of claiming the lease.
enum Claimed {
    /// It is ours until then.
    Until(Timestamp),
    /// The archive knows the answer by now.
    Known(Outcome),
    /// Another holds it, and the caller no longer waits.
    Abandoned,
}

/// How the turn of one paying caller ended.
enum Turn {
    /// There is an answer for all.
    Over(Box<Over>),
    /// This caller alone is answered; the next one takes over.
    Next(Outcome),
}

/// The answer for all.
struct Over {
    /// The payer's own answer.
    own: Outcome,
    /// Everybody else's.
    others: Outcome,
    /// What is to be settled before the payer is answered.
    bill: Option<(Held, Ending)>,
}

impl Flight<'_> {
    async fn run(&self) {
        while let Some(waiter) = self.next_waiter().await {
            match self.turn(&waiter).await {
                Turn::Next(own) => {
                    // A caller who left needs no answer.
                    let _ = waiter.reply.send(own);
                }
                Turn::Over(over) => return self.end(*over, waiter).await,
            }
        }
    }

    /// Gives the lease back, answers the others, and settles.
    async fn end(&self, over: Over, payer: Waiter) {
        let Over { own, others, bill } = over;
        // The others pay nothing, so a slow ledger is no reason for them to wait.
        if matches!((&others, self.driving.errand().2), (Outcome::Archived(_), Purpose::Fetch)) {
            // Whoever comes now finds it in the archive, and never asks for the lease.
            self.driving.answer_all(&others);
            tokio::join!(self.unclaim(), self.settle(bill, payer, own));
        } else {
            self.unclaim().await;
            self.driving.answer_all(&others);
            self.settle(bill, payer, own).await;
        }
    }

    /// Settles and answers the payer. A ledger that is away keeps the words from nobody for long: the
    /// answer goes out, and settling goes on.
    async fn settle(&self, bill: Option<(Held, Ending)>, payer: Waiter, own: Outcome) {
        let Some((held, ending)) = bill else {
            let _ = payer.reply.send(own);
            return;
        };
        // Counted here, and not by whoever asked: they may have left, and must not fail for free by that.
        let is_in_vain = ending == Ending::Failed && matches!(own, Outcome::Failed(_));
        let in_vain = async {
            if is_in_vain {
                held.tell_in_vain().await;
            }
        };
        let mut settle = pin!(async { tokio::join!(in_vain, self.inner.settle(&held, ending)) });
        let settled = tokio::time::timeout(self.inner.options.store, &mut settle).await;
        let _ = payer.reply.send(own);
        if settled.is_err() {
            settle.await;
        }
    }

    /// The next caller who still waits. Without any, the lease is given back first, and only then, when
    /// nobody came meanwhile, does the errand end: so a new caller never finds our own stale lease.
    async fn next_waiter(&self) -> Option<Waiter> {
        if let Some(waiter) = self.driving.next() {
            return Some(waiter);
        }
        self.unclaim().await;
        self.driving.next_or_end()
    }

    /// One caller's turn: claim, look again, hold, fetch.
    async fn turn(&self, waiter: &Waiter) -> Turn {
        let lease_ends = match self.claim(waiter).await {
            Ok(Claimed::Until(ends)) => ends,
            Ok(Claimed::Known(outcome)) => return for_all(outcome),
            Ok(Claimed::Abandoned) => return Turn::Next(Outcome::StillWorking(StillWorking::soon())),
            Err(error) => return for_all(Outcome::Broken(error)),
        };
        // The claim takes time: who left meanwhile does not pay.
        if waiter.reply.is_closed() {
            return Turn::Next(Outcome::StillWorking(StillWorking::soon()));
        }
        let held = match self.inner.hold(waiter.payment.clone()).await {
            Ok(Holding::Free) => None,
            Ok(Holding::Held(held)) => Some(held),
            Ok(Holding::Refused { leg, balance }) => return Turn::Next(Outcome::Refused { leg, balance }),
            // A ledger that is away is away for everybody; any other fault is about this payment.
            Err(error) if error.kind() == ErrorKind::Unavailable => return for_all(Outcome::Broken(error)),
            Err(error) => return Turn::Next(Outcome::Broken(error)),
        };
        tokio::select! {
            biased;
            over = self.fetch(lease_ends, held.as_ref()) => {
                let (own, others, ending) = over;
                Turn::Over(Box::new(Over { own, others, bill: held.map(|held| (held, ending)) }))
            }
            // Whoever came meanwhile takes over, and begins anew.
            () = self.deserted(waiter, held.is_none()) => Turn::Next(Outcome::StillWorking(StillWorking::soon())),
        }
    }

    /// Returns once nobody waits for work that nobody pays for, where such work ends with that.
    async fn deserted(&self, waiter: &Waiter, is_free: bool) {
        if self.inner.options.outlives || !is_free {
            return std::future::pending().await;
        }
        while !(waiter.reply.is_closed() && self.driving.is_deserted()) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Claims the lease, waiting while another holds it. What the archive has by then is returned: the
    /// other's work, or what was kept between our first look and the claim.
    async fn claim(&self, waiter: &Waiter) -> Result<Claimed> {
        let brief = self.inner.brief();
        loop {
            let lease = self.lease();
            let claim = persistently(brief, || self.inner.archive.claim(lease.clone())).await?;
            let (video, wish, purpose) = self.driving.errand();
            let found = persistently(brief, || self.inner.find(video, wish)).await?;
            if let Some(outcome) = known_for(*purpose, found) {
                return Ok(Claimed::Known(outcome));
            }
            match claim {
                Claim::Claimed => return Ok(Claimed::Until(lease.until)),
                // Another's work may take half an hour: nobody asks after it for a caller who left.
                Claim::Busy { .. } if waiter.reply.is_closed() => return Ok(Claimed::Abandoned),
                Claim::Busy { .. } => tokio::time::sleep(self.inner.options.poll).await,
            }
        }
    }

    fn lease(&self) -> Lease {
        let now = self.inner.clock.now();
        Lease {
            video: self.driving.errand().0.clone(),
            wish: self.driving.errand().1.clone(),
            holder: self.holder(),
            now,
            until: now.plus(self.inner.options.lease),
        }
    }

    fn holder(&self) -> Holder {
        Holder::new(format!("{}-{}", self.worker, self.tenure.load(Ordering::Relaxed)))
    }

    /// Gives the lease back. When the store is away it ends by itself, and nobody waits for it.
    async fn unclaim(&self) {
        let (video, wish, _) = self.driving.errand();
        let holder = self.holder();
        self.tenure.fetch_add(1, Ordering::Relaxed);
        let unclaim = || self.inner.archive.unclaim(video, wish, &holder);
        if let Err(error) = persistently(self.inner.brief(), unclaim).await {
            tracing::warn!(%video, %error, "a lease could not be given back; it will end by itself");
        }
    }

    /// Asks the suppliers and keeps what they gave; then, and only then, may the payment be settled. Returns the
    /// payer's answer and the others'.
    async fn fetch(&self, lease_ends: Timestamp, held: Option<&Held>) -> (Outcome, Outcome, Ending) {
        let ((own, others), ending) = match self.supply(lease_ends, held).await {
            None => (same(Outcome::Broken(lease_lost())), Ending::NotBegun),
            Some(supply) => tokio::select! {
                biased;
                kept = self.keep(supply) => kept,
                never = self.keep_alive(held) => match never {},
            },
        };
        (own, others, ending)
    }

    /// Asks the suppliers while lease and hold are kept alive. None when the lease ran out before a
    /// supplier was asked: then another worker may be fetching the same.
    async fn supply(&self, lease_ends: Timestamp, held: Option<&Held>) -> Option<Supply> {
        let lease_ends = if self.left(lease_ends) > self.inner.options.heartbeat {
            lease_ends
        } else {
            let ends = self.beat(self.inner.options.store, lease_ends, held).await?;
            // A fault leaves the old end, which may be too near to begin anything.
            (!self.left(ends).is_zero()).then_some(ends)?
        };
        tokio::select! {
            biased;
            supply = self.inner.supply(self.driving.errand(), self.driving.pace()) => Some(supply),
            () = self.heartbeat(lease_ends, held) => {
                let message = "The work was interrupted: the archive could not be reached. Please ask again.".to_owned();
                let was_asked = self.driving.pace().was_asked();
                let failure = if was_asked { SupplyError::new } else { SupplyError::unasked };
                Some(Supply { result: Err(failure(SupplyReason::Cancelled, message)), asked: Vec::new() })
            }
        }
    }

    /// Keeps a supply, or remembers why there is none. Returns the payer's answer and the others'.
    async fn keep(&self, supply: Supply) -> ((Outcome, Outcome), Ending) {
        let supplied = match supply.result {
            Ok(supplied) => supplied,
            Err(failure) => {
                self.remember(&failure, supply.asked).await;
                let ending = if failure.was_asked() { Ending::Failed } else { Ending::NotBegun };
                return (same(Outcome::Failed(failure)), ending);
            }
        };
        match self.inner.keep(self.driving.errand(), supplied).await {
            Ok(stored) => ((Outcome::Fetched(stored.clone()), Outcome::Archived(stored)), Ending::Delivered),
            Err(error) if error.kind() == ErrorKind::Conflict => (same(Outcome::Withdrawn), Ending::Failed),
            Err(error) => (same(Outcome::Broken(error)), Ending::Failed),
        }
    }

    /// Renews lease and hold for as long as it is awaited, whatever comes of it: the words are here, and
    /// an archive that comes back within the minute must not lose them.
    async fn keep_alive(&self, held: Option<&Held>) -> Infallible {
        loop {
            tokio::time::sleep(self.inner.options.heartbeat).await;
            self.beat(self.inner.options.heartbeat, self.inner.clock.now(), held).await;
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
                tracing::warn!(video = %self.driving.errand().0, %error, "a lease could not be renewed");
                (self.inner.clock.now() < ends).then_some(ends)
            }
        }
    }

    /// Remembers a failure that says something about the video.
    async fn remember(&self, failure: &SupplyError, asked: Vec<String>) {
        let (video, wish, _) = self.driving.errand();
        let policy = &self.inner.options.absence;
        let now = self.inner.clock.now();
        let Some(absence) = absence::of_failure(video, wish, failure, asked, policy, now) else { return };
        let keep = || self.inner.archive.keep_absence(absence.clone());
        if let Err(error) = persistently(self.inner.brief(), keep).await {
            tracing::warn!(%video, %error, "an absence could not be remembered");
        }
    }
}

fn for_all(outcome: Outcome) -> Turn {
    let (own, others) = same(outcome);
    Turn::Over(Box::new(Over { own, others, bill: None }))
}

fn same(outcome: Outcome) -> (Outcome, Outcome) {
    (outcome.clone(), outcome)
}

fn lease_lost() -> Error {
    Error::unavailable("the archive was too slow to keep the lease of a fetch")
}
