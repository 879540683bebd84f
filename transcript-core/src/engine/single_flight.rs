//! Single-flight: the waiters of each flight. A flight is in the table exactly while a task runs it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::{FetchOutcome, Payer, progress::ProgressTracker};
use crate::{
    archive::TrackSelector,
    tasks::{ActivityGuard, BackgroundTasks},
    time::Timestamp,
    video::VideoId,
};

/// Number of waiters from which disconnected ones are removed.
const SWEEP_MIN: usize = 64;

/// Key of a flight: at most one flight runs per key and process.
///
/// Fetches and refreshes of one track are separate flights; the lease in the archive keeps them apart.
pub(super) type FlightKey = (VideoId, TrackSelector, FetchPurpose);

/// Why the suppliers are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FetchPurpose {
    /// Nothing is archived: the first result is stored.
    Fetch,
    /// The archived transcript is to be replaced.
    Refresh,
}

/// A caller that waits for a flight.
#[derive(Debug)]
pub(super) struct FlightWaiter {
    pub(super) payer: Option<Arc<dyn Payer>>,
    pub(super) reply: oneshot::Sender<FetchOutcome>,
    /// Its place among all waiters of the flight.
    number: u64,
    /// The outcome at its turn, if a waiter with the same payment was refused.
    pub(super) refusal: Option<FetchOutcome>,
}

impl FlightWaiter {
    pub(super) fn new(payer: Option<Arc<dyn Payer>>, reply: oneshot::Sender<FetchOutcome>) -> Self {
        Self { payer, reply, number: 0, refusal: None }
    }
}

/// All flights of this process.
#[derive(Debug)]
pub(super) struct FlightTable {
    queues: Mutex<FlightQueues>,
    /// Counts the running flights: closing the engine waits for them.
    tasks: BackgroundTasks,
}

#[derive(Debug, Default)]
struct FlightQueues {
    /// Numbers the flights, so that a finished one is never confused with the next one of the same key.
    next: u64,
    waiting: HashMap<FlightKey, FlightQueue>,
}

#[derive(Debug)]
struct FlightQueue {
    number: u64,
    waiters: VecDeque<FlightWaiter>,
    /// Number of waiters that have joined after the first one.
    joined: u64,
    /// Number of waiters at which disconnected ones are removed.
    sweep_at: usize,
    tracker: Arc<ProgressTracker>,
}

impl FlightQueue {
    /// Adds a waiter.
    ///
    /// A flight may take half an hour, and each caller that polls and disconnects leaves a waiter: at most twice the
    /// connected ones are kept.
    fn add(&mut self, waiter: FlightWaiter) {
        self.joined += 1;
        self.waiters.push_back(FlightWaiter { number: self.joined, ..waiter });
        if self.waiters.len() >= self.sweep_at {
            self.waiters.retain(|waiter| !waiter.reply.is_closed());
            self.sweep_at = SWEEP_MIN.max(2 * self.waiters.len());
        }
    }
}

impl FlightTable {
    pub(super) fn new(tasks: BackgroundTasks) -> Arc<Self> {
        Arc::new(Self { queues: Mutex::default(), tasks })
    }

    /// Adds a waiter to a flight. The first one gets the leader, which must run it.
    pub(super) fn join(
        self: &Arc<Self>,
        key: FlightKey,
        waiter: FlightWaiter,
        now: Timestamp,
    ) -> Option<FlightLeader> {
        let mut queues = self.lock();
        if let Some(queue) = queues.waiting.get_mut(&key) {
            queue.add(waiter);
            return None;
        }
        let number = queues.next;
        queues.next += 1;
        let tracker = Arc::new(ProgressTracker::new(now));
        let waiters = VecDeque::from([waiter]);
        let (joined, sweep_at, tracker_copy) = (0, SWEEP_MIN, Arc::clone(&tracker));
        let queue = FlightQueue { number, waiters, joined, sweep_at, tracker: tracker_copy };
        queues.waiting.insert(key.clone(), queue);
        let running = self.tasks.begin();
        Some(FlightLeader { flights: Arc::clone(self), key, number, tracker, _running: running })
    }

    /// Number of running flights, and of callers that wait for them.
    pub(super) fn count(&self) -> (u64, u64) {
        let queues = self.lock();
        let connected =
            |queue: &FlightQueue| queue.waiters.iter().filter(|waiter| !waiter.reply.is_closed()).count();
        (queues.waiting.len() as u64, queues.waiting.values().map(connected).sum::<usize>() as u64)
    }

    /// Progress of a flight; `None` if it is not in the table.
    pub(super) fn tracker(&self, key: &FlightKey) -> Option<Arc<ProgressTracker>> {
        self.lock().waiting.get(key).map(|queue| Arc::clone(&queue.tracker))
    }

    fn lock(&self) -> MutexGuard<'_, FlightQueues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that runs a flight. Drop removes the flight, also on a panic or a runtime shutdown.
#[derive(Debug)]
pub(super) struct FlightLeader {
    flights: Arc<FlightTable>,
    key: FlightKey,
    number: u64,
    tracker: Arc<ProgressTracker>,
    _running: ActivityGuard,
}

impl FlightLeader {
    pub(super) fn key(&self) -> &FlightKey {
        &self.key
    }

    /// The progress of the flight.
    pub(super) fn tracker(&self) -> &Arc<ProgressTracker> {
        &self.tracker
    }

    /// The next waiter that is still connected.
    pub(super) fn next(&self) -> Option<FlightWaiter> {
        let mut queues = self.flights.lock();
        let queue = self.queue_of(&mut queues)?;
        while let Some(waiter) = queue.waiters.pop_front() {
            if !waiter.reply.is_closed() {
                return Some(waiter);
            }
        }
        None
    }

    /// Number of waiters that have joined after the first one.
    pub(super) fn joined(&self) -> u64 {
        self.queue_of(&mut self.flights.lock()).map_or(0, |queue| queue.joined)
    }

    /// Sets the outcome of the first `joined` waiters as far as they have the payment of `refused`.
    ///
    /// They keep their places: if one before them pays, they get what it paid for.
    pub(super) fn refuse_like(&self, refused: &FlightWaiter, joined: u64, outcome: &FetchOutcome) {
        let Some(payer) = &refused.payer else { return };
        let mut queues = self.flights.lock();
        let Some(queue) = self.queue_of(&mut queues) else { return };
        for waiter in &mut queue.waiters {
            let is_like = |other: &Arc<dyn Payer>| payer.has_same_payment(other.as_ref());
            if waiter.number <= joined && waiter.payer.as_ref().is_some_and(is_like) {
                waiter.refusal = Some(outcome.clone());
            }
        }
    }

    /// Whether all waiters have disconnected, apart from the current payer.
    pub(super) fn has_no_waiters(&self) -> bool {
        let mut queues = self.flights.lock();
        self.queue_of(&mut queues)
            .is_none_or(|queue| queue.waiters.iter().all(|waiter| waiter.reply.is_closed()))
    }

    /// As [`Self::next`], but removes the flight if there is no waiter.
    pub(super) fn next_or_finish(&self) -> Option<FlightWaiter> {
        let mut queues = self.flights.lock();
        let waiter = self.queue_of(&mut queues)?.waiters.pop_front();
        if waiter.is_none() {
            queues.waiting.remove(&self.key);
        }
        waiter
    }

    /// Sends an outcome to all waiters and removes the flight: later callers read the archive first.
    pub(super) fn notify_all(&self, outcome: &FetchOutcome) {
        for waiter in self.remove_flight() {
            // The receiver may be gone.
            let _ = waiter.reply.send(outcome.clone());
        }
    }

    fn remove_flight(&self) -> VecDeque<FlightWaiter> {
        let mut queues = self.flights.lock();
        match self.queue_of(&mut queues) {
            Some(_) => queues.waiting.remove(&self.key).map_or_else(VecDeque::new, |queue| queue.waiters),
            None => VecDeque::new(),
        }
    }

    /// The queue of this flight; `None` once it ended, even if a new flight has the same key.
    fn queue_of<'a>(&self, queues: &'a mut FlightQueues) -> Option<&'a mut FlightQueue> {
        queues.waiting.get_mut(&self.key).filter(|queue| queue.number == self.number)
    }
}

impl Drop for FlightLeader {
    fn drop(&mut self) {
        // Waiters that are left get a closed channel.
        drop(self.remove_flight());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::Platform;

    fn key() -> FlightKey {
        (VideoId::new(Platform::YouTube, "videoNumber").unwrap(), TrackSelector::Default, FetchPurpose::Fetch)
    }

    #[tokio::test]
    async fn flight_disconnected_waiter_is_removed() {
        let flights = FlightTable::new(BackgroundTasks::new(tokio::runtime::Handle::current()));
        let join = || {
            let (reply, answer) = oneshot::channel();
            let waiter = FlightWaiter::new(None, reply);
            (flights.join(key(), waiter, Timestamp::from_millis(0)), answer)
        };
        let (leader, first) = join();
        let leader = leader.unwrap();
        let waiting = || flights.lock().waiting[&key()].waiters.len();
        let mut connected = vec![first];
        for round in 0..10_000 {
            let (_, answer) = join();
            // Every hundredth caller stays.
            if round % 100 == 0 {
                connected.push(answer);
            }
            assert!(waiting() <= SWEEP_MIN.max(2 * connected.len() + 1), "{} after {round}", waiting());
        }
        leader.notify_all(&FetchOutcome::NoSupplier);
        for mut answer in connected {
            assert!(matches!(answer.try_recv(), Ok(FetchOutcome::NoSupplier)));
        }
    }
}
