//! A bounded queue for permits, with fair turns. No I/O.
//!
//! - Waiters are grouped by owner. Owners take turns in order (round robin); the waiters of one owner are served in
//!   order of arrival. So an owner with a thousand waiters delays another owner's waiter by one turn.
//! - Paying owners come first. Every [`FREE_TURN`]th turn is for a free owner, so that free waiters do not starve.
//! - A full queue is shared too: see [`FairQueue::acquire`].

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// While both classes wait, every fourth turn is for a free owner, and a fourth of the places are theirs.
const FREE_TURN: u32 = 4;

/// The owner of waiters in a [`FairQueue`].
pub(super) trait TurnOwner: Clone + Eq + Hash + Send + Sync {
    /// Whether its waiters come before those of owners that do not pay.
    fn pays(&self) -> bool;
}

/// A queue for a number of permits.
#[derive(Debug)]
pub(super) struct FairQueue<O: TurnOwner>(Arc<Mutex<QueueState<O>>>);

/// The queue is full: the waiter is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

/// A permit; drop passes it to the next waiter.
#[derive(Debug)]
pub(super) struct QueuePermit<O: TurnOwner>(Arc<Mutex<QueueState<O>>>);

/// The permits and waiters of a queue. There are waiters only while no permit is free.
#[derive(Debug)]
struct QueueState<O> {
    permits: usize,
    free_permits: usize,
    waiting_max: usize,
    /// Numbers waiters and turns in order.
    next_number: u64,
    paying: OwnerRing<O>,
    free: OwnerRing<O>,
    /// Turns of paying owners since the last turn of a free one.
    paying_turns: u32,
}

/// The waiting owners of one class, in the order of their turns.
#[derive(Debug, smart_default::SmartDefault)]
struct OwnerRing<O> {
    turns: BTreeMap<u64, O>,
    owners: HashMap<O, OwnerWaiters>,
    /// Number of waiters.
    waiting: usize,
}

/// The waiters of one owner, at least one, in order of arrival.
#[derive(Debug)]
struct OwnerWaiters {
    turn: u64,
    senders: BTreeMap<u64, oneshot::Sender<Verdict>>,
}

/// End of a wait. It is sent under the lock.
type Verdict = Result<(), QueueFull>;

/// What a full queue does with a newcomer.
enum QueueAdmission<O> {
    /// There is room.
    Room,
    /// The last waiter of this owner is refused in its place.
    Displace(O),
    /// It is refused.
    Refuse,
}

impl<O: TurnOwner> FairQueue<O> {
    /// A queue for `permits` permits in which at most `waiting_max` waiters wait.
    pub(super) fn new(permits: usize, waiting_max: usize) -> Self {
        Self(Arc::new(Mutex::new(QueueState {
            permits,
            free_permits: permits,
            waiting_max,
            next_number: 0,
            paying: OwnerRing::default(),
            free: OwnerRing::default(),
            paying_turns: 0,
        })))
    }

    /// Waits for a permit.
    ///
    /// In a full queue a paying owner takes the place of a free owner's waiter, as long as free owners have more than
    /// their share of the places; below it a free owner takes that of a paying one. Within a class an owner takes the
    /// place of an owner with more waiters. The owner with the most waiters gives way, with its last one.
    ///
    /// # Errors
    /// [`QueueFull`], at once or when another waiter takes the place.
    ///
    /// # Cancellation
    /// Dropping the future leaves the queue. A permit that was granted already passes to the next waiter.
    pub(super) async fn acquire(&self, owner: &O) -> Result<QueuePermit<O>, QueueFull> {
        let mut waiter = {
            let mut state = lock(&self.0);
            if state.free_permits > 0 {
                state.free_permits -= 1;
                return Ok(QueuePermit(Arc::clone(&self.0)));
            }
            match state.admit(owner) {
                QueueAdmission::Room => {}
                QueueAdmission::Displace(other) => state.displace(&other),
                QueueAdmission::Refuse => return Err(QueueFull),
            }
            let (number, verdict) = state.add(owner);
            Waiter { queue: Arc::clone(&self.0), owner: owner.clone(), number, verdict }
        };
        // The sender is dropped only after it has sent.
        let verdict = (&mut waiter.verdict).await.unwrap_or(Err(QueueFull));
        verdict.map(|()| QueuePermit(Arc::clone(&self.0)))
    }

    /// How often each permit is used until every present waiter has had one, and the running uses have ended.
    pub(super) fn rounds(&self) -> u32 {
        let state = lock(&self.0);
        let rounds = (state.paying.waiting + state.free.waiting) / state.permits.max(1) + 1;
        u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// Whether a waiter of this owner would be refused now.
    pub(super) fn is_full_for(&self, owner: &O) -> bool {
        let state = lock(&self.0);
        state.free_permits == 0 && matches!(state.admit(owner), QueueAdmission::Refuse)
    }
}

impl<O: TurnOwner> Drop for QueuePermit<O> {
    fn drop(&mut self) {
        lock(&self.0).release();
    }
}

/// A waiter in the queue. Drop leaves the queue, and releases a permit that it did not take.
struct Waiter<O: TurnOwner> {
    queue: Arc<Mutex<QueueState<O>>>,
    owner: O,
    number: u64,
    verdict: oneshot::Receiver<Verdict>,
}

impl<O: TurnOwner> Drop for Waiter<O> {
    fn drop(&mut self) {
        let mut state = lock(&self.queue);
        if state.remove(&self.owner, self.number).is_none() && matches!(self.verdict.try_recv(), Ok(Ok(()))) {
            state.release();
        }
    }
}

impl<O: TurnOwner> QueueState<O> {
    /// Decides about a newcomer that cannot have a permit now.
    fn admit(&self, owner: &O) -> QueueAdmission<O> {
        if self.paying.waiting + self.free.waiting < self.waiting_max {
            return QueueAdmission::Room;
        }
        let free_share = self.waiting_max / FREE_TURN as usize;
        let other_ring = match owner.pays() {
            true => (self.free.waiting > free_share).then_some(&self.free),
            false => (self.free.waiting < free_share).then_some(&self.paying),
        };
        let ring = if owner.pays() { &self.paying } else { &self.free };
        let own = ring.owners.get(owner).map_or(0, |waiters| waiters.senders.len());
        if let Some((other, _)) = other_ring.and_then(OwnerRing::longest) {
            return QueueAdmission::Displace(other.clone());
        }
        match ring.longest() {
            // With one more than this owner would have, both would only change places.
            Some((other, count)) if count > own + 1 => QueueAdmission::Displace(other.clone()),
            _ => QueueAdmission::Refuse,
        }
    }

    fn ring(&mut self, owner: &O) -> &mut OwnerRing<O> {
        if owner.pays() { &mut self.paying } else { &mut self.free }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn add(&mut self, owner: &O) -> (u64, oneshot::Receiver<Verdict>) {
        let (number, (sender, verdict)) = (self.take_number(), oneshot::channel());
        let OwnerRing { turns, owners, waiting } = self.ring(owner);
        let waiters = owners.entry(owner.clone()).or_insert_with(|| {
            turns.insert(number, owner.clone());
            OwnerWaiters { turn: number, senders: BTreeMap::new() }
        });
        waiters.senders.insert(number, sender);
        *waiting += 1;
        (number, verdict)
    }

    /// Removes a waiter; `None` if it is not in the queue.
    fn remove(&mut self, owner: &O, number: u64) -> Option<oneshot::Sender<Verdict>> {
        let OwnerRing { turns, owners, waiting } = self.ring(owner);
        let waiters = owners.get_mut(owner)?;
        let sender = waiters.senders.remove(&number)?;
        if waiters.senders.is_empty() {
            turns.remove(&waiters.turn);
            owners.remove(owner);
        }
        *waiting -= 1;
        Some(sender)
    }

    /// Refuses the last waiter of an owner.
    fn displace(&mut self, owner: &O) {
        let last = self.ring(owner).owners.get(owner).and_then(|waiters| waiters.senders.last_key_value());
        let Some(number) = last.map(|(number, _)| *number) else { return };
        if let Some(sender) = self.remove(owner, number) {
            let _ = sender.send(Err(QueueFull));
        }
    }

    /// Passes a permit to the next waiter, or keeps it.
    fn release(&mut self) {
        while let Some(sender) = self.next_waiter() {
            if sender.send(Ok(())).is_ok() {
                return;
            }
        }
        self.free_permits += 1;
    }

    /// Removes the waiter whose turn it is.
    fn next_waiter(&mut self) -> Option<oneshot::Sender<Verdict>> {
        let is_free_turn = self.paying.turns.is_empty() || self.paying_turns + 1 >= FREE_TURN;
        let is_free_turn = is_free_turn && !self.free.turns.is_empty();
        self.paying_turns = match is_free_turn || self.free.turns.is_empty() {
            true => 0,
            false => self.paying_turns + 1,
        };
        let number = self.take_number();
        let ring = if is_free_turn { &mut self.free } else { &mut self.paying };
        let (_, owner) = ring.turns.pop_first()?;
        let waiters = ring.owners.get_mut(&owner)?;
        let first = waiters.senders.first_key_value().map(|(number, _)| *number)?;
        // The owner's next turn is after those of all other owners.
        waiters.turn = number;
        ring.turns.insert(number, owner.clone());
        self.remove(&owner, first)
    }
}

impl<O: TurnOwner> OwnerRing<O> {
    /// The owner with the most waiters, and their number. Of equal ones the owner with the newest waiter.
    fn longest(&self) -> Option<(&O, usize)> {
        let newest = |waiters: &OwnerWaiters| waiters.senders.last_key_value().map(|(number, _)| *number);
        let longest = self.owners.iter().max_by_key(|(_, waiters)| (waiters.senders.len(), newest(waiters)));
        longest.map(|(owner, waiters)| (owner, waiters.senders.len()))
    }
}

fn lock<O>(state: &Mutex<QueueState<O>>) -> MutexGuard<'_, QueueState<O>> {
    // Consistent after every statement, and nothing is awaited under the lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
