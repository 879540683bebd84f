//! A batch queue: concurrent requests of one kind wait in it and run in batches.
//!
//! Two tasks run batches in parallel: while the database syncs the commit of one, the other works. Requests with one
//! key run in one task at a time, so that those of one server never conflict. Each task takes its share of the ready
//! requests, so that one does not leave the other idle.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::oneshot;
use transcript_core::{Error, Result};

use super::{
    database::PgDatabase,
    sqlstate::{closed, timed_out},
};

/// Number of tasks of a queue.
const TASKS_MAX: usize = 2;
/// Most requests in a batch.
const BATCH_MAX: usize = 64;
/// How often a task yields while the queue grows.
const YIELDS_MAX: usize = 8;
/// Capacity of a queue. Later callers receive an error that they can retry.
const WAITING_MAX: usize = 16_384;

/// A queued request, and the sender of its reply.
pub(super) type QueueItem<S> = (<S as BatchHandler>::Item, ReplySender<<S as BatchHandler>::Outcome>);
pub(super) type ReplySender<O> = oneshot::Sender<Result<O>>;

/// Runs the batches of a queue.
pub(super) trait BatchHandler: Sized + 'static {
    /// The request type.
    type Item: Send + 'static;
    /// The reply type.
    type Outcome: Send + 'static;

    /// Runs these requests, and replies to each.
    fn serve(database: &PgDatabase, members: Vec<QueueItem<Self>>) -> impl Future<Output = ()> + Send;
}

/// A queue of requests of one kind.
pub(super) struct BatchQueue<S: BatchHandler>(Arc<BatchQueueShared<S>>);

struct BatchQueueShared<S: BatchHandler> {
    database: PgDatabase,
    state: Mutex<QueueState<S>>,
}

struct QueueState<S: BatchHandler> {
    /// Queued requests by key, each key's in order.
    waiters: HashMap<QueueKey, VecDeque<QueueWaiter<S>>>,
    /// Number of queued requests.
    count: usize,
    /// Keys with queued requests that can run, in order.
    ready: VecDeque<QueueKey>,
    /// Number of requests with these keys.
    ready_count: usize,
    /// Keys of running batches.
    running: HashSet<QueueKey>,
    /// Number of requests in running batches.
    running_count: usize,
    /// Number of running tasks.
    tasks: usize,
}

/// A queued request, with the time at which it was queued.
type QueueWaiter<S> = (Instant, QueueItem<S>);

/// Hash of a key: on a collision, two keys only wait for each other.
type QueueKey = u64;

fn hash_key(key: &str) -> QueueKey {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

impl<S: BatchHandler> fmt::Debug for BatchQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchQueue").finish_non_exhaustive()
    }
}

impl<S: BatchHandler> BatchQueue<S> {
    /// An empty queue. Its tasks run on the database's runtime; requests beyond its timeout do not run.
    pub(super) fn new(database: &PgDatabase) -> Self {
        Self(Arc::new(BatchQueueShared {
            database: database.clone(),
            state: Mutex::new(QueueState::empty()),
        }))
    }

    /// Whether a request with this key is queued or running.
    pub(super) fn is_busy(&self, key: &str) -> bool {
        let (key, state) = (hash_key(key), self.0.state());
        state.running.contains(&key) || state.waiters.contains_key(&key)
    }

    /// Queues a request with this key and waits for the reply.
    pub(super) async fn submit(&self, key: &str, item: S::Item) -> Result<S::Outcome> {
        let (reply, outcome) = oneshot::channel();
        self.0.join(hash_key(key), (item, reply)).map_err(Error::without_effect)?;
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl<S: BatchHandler> BatchQueueShared<S> {
    fn state(&self) -> MutexGuard<'_, QueueState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request.
    fn join(self: &Arc<Self>, key: QueueKey, member: QueueItem<S>) -> Result<()> {
        let mut state = self.state();
        if state.count >= WAITING_MAX {
            return Err(Error::unavailable(
                "the charge queue of the database is full: retry in a few seconds",
            ));
        }
        state.add(key, member);
        let needs_worker = state.reserve_worker();
        // A runtime that has shut down drops the task here, which then clears the queue.
        drop(state);
        if needs_worker {
            self.start_worker();
        }
        Ok(())
    }

    /// Starts a worker task that [`QueueState::reserve_worker`] has counted.
    fn start_worker(self: &Arc<Self>) {
        let serving = BatchWorker {
            queue: Arc::clone(self),
            keys: HashSet::new(),
            count: 0,
            has_started: false,
            has_finished: false,
        };
        self.database.runtime().spawn(serving.run());
    }
}

impl<S: BatchHandler> QueueState<S> {
    /// The state of an empty queue.
    fn empty() -> Self {
        Self {
            waiters: HashMap::new(),
            count: 0,
            ready: VecDeque::new(),
            ready_count: 0,
            running: HashSet::new(),
            running_count: 0,
            tasks: 0,
        }
    }

    fn add(&mut self, key: QueueKey, member: QueueItem<S>) {
        let waiters = self.waiters.entry(key).or_default();
        waiters.push_back((Instant::now(), member));
        self.count += 1;
        // If a task runs this key now, it takes the request afterwards.
        if !self.running.contains(&key) {
            self.ready_count += 1;
            if waiters.len() == 1 {
                self.ready.push_back(key);
            }
        }
    }

    /// Counts another worker task if one is useful and permitted; returns whether the caller must start it.
    fn reserve_worker(&mut self) -> bool {
        let needs_worker = !self.ready.is_empty() && self.tasks < TASKS_MAX;
        self.tasks += usize::from(needs_worker);
        needs_worker
    }

    /// Takes requests of the next key, in order: at most `count`, and of one key only.
    fn take_next(&mut self, count: usize) -> Option<(QueueKey, Vec<QueueWaiter<S>>)> {
        let key = self.ready.pop_front()?;
        let waiters = self.waiters.get_mut(&key)?;
        self.ready_count -= waiters.len();
        let taken: Vec<_> = waiters.drain(..count.min(waiters.len())).collect();
        if waiters.is_empty() {
            self.waiters.remove(&key);
        }
        self.count -= taken.len();
        Some((key, taken))
    }

    /// Releases keys, and the running requests with them.
    fn release(&mut self, keys: impl Iterator<Item = QueueKey>, count: usize) {
        self.running_count -= count;
        for key in keys {
            self.running.remove(&key);
            if let Some(waiters) = self.waiters.get(&key) {
                self.ready_count += waiters.len();
                self.ready.push_back(key);
            }
        }
    }
}

/// A task that runs batches.
struct BatchWorker<S: BatchHandler> {
    queue: Arc<BatchQueueShared<S>>,
    /// Keys of its batch.
    keys: HashSet<QueueKey>,
    /// Number of requests in its batch.
    count: usize,
    has_started: bool,
    has_finished: bool,
}

impl<S: BatchHandler> BatchWorker<S> {
    async fn run(mut self) {
        self.has_started = true;
        loop {
            self.yield_while_growing().await;
            let members = self.next();
            if members.is_empty() {
                return;
            }
            S::serve(&self.queue.database, members).await;
        }
    }

    /// Yields so that other ready callers queue first and share the batch, above all those just answered.
    async fn yield_while_growing(&self) {
        let mut queued = 0;
        for _ in 0..YIELDS_MAX {
            tokio::task::yield_now().await;
            let before = std::mem::replace(&mut queued, self.queue.state().count);
            if queued == before || queued >= TASKS_MAX * BATCH_MAX {
                break;
            }
        }
    }

    /// Takes the next batch. It is empty when the task ends.
    fn next(&mut self) -> Vec<QueueItem<S>> {
        let queue = Arc::clone(&self.queue);
        let timeout = queue.database.timeout();
        let mut state = queue.state();
        state.release(self.keys.drain(), std::mem::take(&mut self.count));
        let share = (state.ready_count + state.running_count).div_ceil(TASKS_MAX).min(BATCH_MAX);
        let mut next = Vec::with_capacity(share);
        // All requests of a key, beyond the share too: until then the other task cannot run them.
        while next.len() < share
            && let Some((key, waiters)) = state.take_next(BATCH_MAX - next.len())
        {
            state.running.insert(key);
            self.keys.insert(key);
            for (since, (item, reply)) in waiters {
                if reply.is_closed() {
                    // The caller disconnected: nothing to run.
                } else if since.elapsed() > timeout {
                    reply.send(Err(timed_out(queue.database.name()).without_effect())).ok();
                } else {
                    next.push((item, reply));
                }
            }
        }
        self.count = next.len();
        state.running_count += next.len();
        if next.is_empty() {
            state.release(self.keys.drain(), 0);
            state.tasks -= 1;
            self.has_finished = true;
        }
        let needs_worker = state.reserve_worker();
        drop(state);
        if needs_worker {
            queue.start_worker();
        }
        next
    }
}

impl<S: BatchHandler> Drop for BatchWorker<S> {
    fn drop(&mut self) {
        if !self.has_finished {
            // After a panic another task continues. If the task never began, its runtime is shutting down, and no
            // caller may wait.
            let mut state = self.queue.state();
            state.release(self.keys.drain(), self.count);
            state.tasks -= 1;
            let needs_worker = self.has_started && state.reserve_worker();
            if state.tasks == 0 {
                *state = QueueState::empty();
            }
            drop(state);
            if needs_worker {
                self.queue.start_worker();
            }
        }
    }
}

#[cfg(test)]
mod tests;
