//! Who waits for which errand. An errand is in here exactly while a task drives it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{oneshot, watch};

use super::{Outcome, Payment, pace::Pace};
use crate::{archive::Wish, time::Timestamp, video::VideoId};

/// From how many waiters on those who left are thrown away.
const SWEEP_MIN: usize = 64;

/// What is fetched at most once at a time. Fetches and refreshes of the same wish are errands of their own,
/// which the lease in the archive keeps apart.
pub(super) type Errand = (VideoId, Wish, Purpose);

/// Why the suppliers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// Nothing is archived: what comes first stays.
    Fetch,
    /// What is archived is to be replaced, whatever it is.
    Refresh,
}

/// A caller who waits for an errand.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) payment: Option<Payment>,
    pub(super) reply: oneshot::Sender<Outcome>,
}

/// All errands that are driven in this process.
#[derive(Debug)]
pub(super) struct Errands {
    queues: Mutex<Queues>,
    /// How many are driven, and what else runs; whoever closes the engine waits for zero.
    driven: watch::Sender<usize>,
}

/// Something that runs beside the errands, for which whoever closes the engine waits too.
#[derive(Debug)]
pub(super) struct Running(Arc<Errands>);

impl Running {
    pub(super) fn begin(errands: Arc<Errands>) -> Self {
        errands.driven.send_modify(|count| *count += 1);
        Self(errands)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.driven.send_modify(|count| *count -= 1);
    }
}

#[derive(Debug, Default)]
struct Queues {
    /// Numbers the errands, so that one that ended is never taken for the next one of the same name.
    next: u64,
    waiting: HashMap<Errand, Queue>,
}

#[derive(Debug)]
struct Queue {
    number: u64,
    waiters: VecDeque<Waiter>,
    /// At how many waiters those who left are thrown away.
    sweep_at: usize,
    pace: Arc<Pace>,
}

impl Queue {
    /// Work may take half an hour, and each caller who asks after it and leaves is a waiter: as many are kept as
    /// twice those who still wait.
    fn add(&mut self, waiter: Waiter) {
        self.waiters.push_back(waiter);
        if self.waiters.len() >= self.sweep_at {
            self.waiters.retain(|waiter| !waiter.reply.is_closed());
            self.sweep_at = SWEEP_MIN.max(2 * self.waiters.len());
        }
    }
}

impl Errands {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { queues: Mutex::default(), driven: watch::Sender::new(0) })
    }

    /// Joins those who wait for an errand. The first one gets the duty to have it driven.
    pub(super) fn join(self: &Arc<Self>, errand: Errand, waiter: Waiter, now: Timestamp) -> Option<Driving> {
        let mut queues = self.lock();
        if let Some(queue) = queues.waiting.get_mut(&errand) {
            queue.add(waiter);
            return None;
        }
        let number = queues.next;
        queues.next += 1;
        let pace = Arc::new(Pace::new(now));
        let waiters = VecDeque::from([waiter]);
        let queue = Queue { number, waiters, sweep_at: SWEEP_MIN, pace: Arc::clone(&pace) };
        queues.waiting.insert(errand.clone(), queue);
        self.driven.send_modify(|count| *count += 1);
        Some(Driving { errands: Arc::clone(self), errand, number, pace })
    }

    /// How many errands there are that somebody may join, and how many callers wait for them in line.
    pub(super) fn count(&self) -> (u64, u64) {
        let queues = self.lock();
        let still = |queue: &Queue| queue.waiters.iter().filter(|waiter| !waiter.reply.is_closed()).count();
        (queues.waiting.len() as u64, queues.waiting.values().map(still).sum::<usize>() as u64)
    }

    /// How far an errand is; none when nobody waits for it any more.
    pub(super) fn pace(&self, errand: &Errand) -> Option<Arc<Pace>> {
        self.lock().waiting.get(errand).map(|queue| Arc::clone(&queue.pace))
    }

    /// Waits until no errand is driven.
    pub(super) async fn idle(&self) {
        let mut driven = self.driven.subscribe();
        // The sender lives in `self`, so this cannot fail while we hold it.
        let _ = driven.wait_for(|count| *count == 0).await;
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to drive an errand. Whatever happens to it, also a panic or the end of the runtime: once it
/// is dropped nobody waits for the errand any more.
#[derive(Debug)]
pub(super) struct Driving {
    errands: Arc<Errands>,
    errand: Errand,
    number: u64,
    pace: Arc<Pace>,
}

impl Driving {
    pub(super) fn errand(&self) -> &Errand {
        &self.errand
    }

    /// How far it is.
    pub(super) fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// The next caller who still waits.
    pub(super) fn next(&self) -> Option<Waiter> {
        let mut queues = self.errands.lock();
        let queue = self.own(&mut queues)?;
        while let Some(waiter) = queue.waiters.pop_front() {
            if !waiter.reply.is_closed() {
                return Some(waiter);
            }
        }
        None
    }

    /// Whether nobody waits for it, but for whoever's turn it is.
    pub(super) fn is_deserted(&self) -> bool {
        let mut queues = self.errands.lock();
        self.own(&mut queues).is_none_or(|queue| queue.waiters.iter().all(|waiter| waiter.reply.is_closed()))
    }

    /// As [`Self::next`], but the errand ends when nobody waits.
    pub(super) fn next_or_end(&self) -> Option<Waiter> {
        let mut queues = self.errands.lock();
        let waiter = self.own(&mut queues)?.waiters.pop_front();
        if waiter.is_none() {
            queues.waiting.remove(&self.errand);
        }
        waiter
    }

    /// Answers all who wait, and ends the errand: whoever comes later asks the archive anew.
    pub(super) fn answer_all(&self, outcome: &Outcome) {
        for waiter in self.end() {
            // A caller who left needs no answer.
            let _ = waiter.reply.send(outcome.clone());
        }
    }

    fn end(&self) -> VecDeque<Waiter> {
        let mut queues = self.errands.lock();
        match self.own(&mut queues) {
            Some(_) => queues.waiting.remove(&self.errand).map_or_else(VecDeque::new, |queue| queue.waiters),
            None => VecDeque::new(),
        }
    }

    /// This errand's queue; none once it ended, also when the same errand is driven anew.
    fn own<'a>(&self, queues: &'a mut Queues) -> Option<&'a mut Queue> {
        queues.waiting.get_mut(&self.errand).filter(|queue| queue.number == self.number)
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        // Whoever still waits is told by the end of their channel.
        drop(self.end());
        self.errands.driven.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::Platform;

    fn errand() -> Errand {
        (VideoId::new(Platform::VideoSite, "videoNumber").unwrap(), Wish::Default, Purpose::Fetch)
    }

    #[test]
    fn who_left_is_not_kept_while_the_work_runs() {
        let errands = Errands::new();
        let join = || {
            let (reply, answer) = oneshot::channel();
            let waiter = Waiter { payment: None, reply };
            (errands.join(errand(), waiter, Timestamp::from_millis(0)), answer)
        };
        let (driving, first) = join();
        let driving = driving.unwrap();
        let waiting = || errands.lock().waiting[&errand()].waiters.len();
        let mut patient = vec![first];
        for round in 0..10_000 {
            let (_, answer) = join();
            // Every hundredth caller stays.
            if round % 100 == 0 {
                patient.push(answer);
            }
            assert!(waiting() <= SWEEP_MIN.max(2 * patient.len() + 1), "{} after {round}", waiting());
        }
        driving.answer_all(&Outcome::Unsupplied);
        for mut answer in patient {
            assert!(matches!(answer.try_recv(), Ok(Outcome::Unsupplied)));
        }
    }
}
