//! Lines: whoever asks for the same kind of thing at the same time waits in one, and is served together.

use std::{
    collections::VecDeque,
    fmt,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::oneshot};
use transcript_core::{Error, Result};

use super::fault::closed;

/// How many are served together at most.
const TOGETHER_MAX: usize = 64;
/// How many may wait in a line. Whoever comes later is told to try again.
const WAITING_MAX: usize = 8_192;

/// Where an answer goes.
pub(super) type Answer<O> = oneshot::Sender<Result<O>>;

/// The line, of so many, in which those with this name wait: always the same one, so that those of one server are
/// never in each other's way.
pub(super) fn of(name: &str, lines: usize) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
    usize::try_from(hash % lines.max(1) as u64).unwrap_or_default()
}

/// Whoever serves a line.
pub(super) trait Serve: Send + Sync + 'static {
    /// What is asked for.
    type Ask: Send + 'static;
    /// What is answered.
    type Outcome: Send + 'static;

    /// What is answered to whoever has waited in line for as long as anybody waits: nothing was done for them.
    fn too_late(&self) -> Result<Self::Outcome>;

    /// Serves these, and answers each.
    fn serve(&self, members: Vec<(Self::Ask, Answer<Self::Outcome>)>) -> impl Future<Output = ()> + Send;
}

/// A line of those who wait, and who serves them.
pub(super) struct Line<S: Serve> {
    server: S,
    runtime: Handle,
    /// How long anybody waits to be served.
    patience: Duration,
    waiting: Mutex<Waiting<S>>,
}

struct Waiting<S: Serve> {
    /// Since when each waits, in their order.
    queue: VecDeque<(Instant, S::Ask, Answer<S::Outcome>)>,
    /// Whether a task serves this line.
    is_served: bool,
}

impl<S: Serve + fmt::Debug> fmt::Debug for Line<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("server", &self.server).finish_non_exhaustive()
    }
}

impl<S: Serve> Line<S> {
    /// An empty line, served in tasks of `runtime`; nobody waits longer than `patience` to be served.
    pub(super) fn new(server: S, runtime: &Handle, patience: Duration) -> Arc<Self> {
        let waiting = Mutex::new(Waiting { queue: VecDeque::new(), is_served: false });
        Arc::new(Self { server, runtime: runtime.clone(), patience, waiting })
    }

    /// Whether somebody is being served.
    pub(super) fn is_busy(&self) -> bool {
        self.waiting().is_served
    }

    /// Waits in line for the answer.
    ///
    /// # Errors
    /// When the line is too long: then nothing was done. What is wrong with the answer is told within it.
    pub(super) async fn ask(self: &Arc<Self>, ask: S::Ask) -> Result<Result<S::Outcome>> {
        let (answer, outcome) = oneshot::channel();
        self.join(ask, answer)?;
        Ok(outcome.await.unwrap_or_else(|_| Err(closed())))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<S>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait; the first one begins the task that serves them.
    fn join(self: &Arc<Self>, ask: S::Ask, answer: Answer<S::Outcome>) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.queue.len() >= WAITING_MAX {
            return Err(Error::unavailable("too many charges wait for the database: try again in a moment"));
        }
        waiting.queue.push_back((Instant::now(), ask, answer));
        let is_first = !std::mem::replace(&mut waiting.is_served, true);
        // A runtime that has ended drops the task on the spot, which then tidies the line.
        drop(waiting);
        if is_first {
            let serving = Serving { line: Arc::clone(self), has_ended: false };
            self.runtime.spawn(serving.run());
        }
        Ok(())
    }

    /// Who is served next, together; nobody when the task that serves has ended with that.
    fn next(&self) -> Vec<(S::Ask, Answer<S::Outcome>)> {
        let mut waiting = self.waiting();
        let mut next = Vec::with_capacity(waiting.queue.len().min(TOGETHER_MAX));
        while next.len() < TOGETHER_MAX
            && let Some((since, ask, answer)) = waiting.queue.pop_front()
        {
            if answer.is_closed() {
                // Whoever left need not be served.
            } else if since.elapsed() > self.patience {
                answer.send(self.server.too_late()).ok();
            } else {
                next.push((ask, answer));
            }
        }
        waiting.is_served = !next.is_empty();
        next
    }
}

/// The task that serves a line.
struct Serving<S: Serve> {
    line: Arc<Line<S>>,
    has_ended: bool,
}

impl<S: Serve> Serving<S> {
    async fn run(mut self) {
        loop {
            // Whoever is ready to ask does so first, and shares the statements.
            tokio::task::yield_now().await;
            let members = self.line.next();
            if members.is_empty() {
                self.has_ended = true;
                return;
            }
            self.line.server.serve(members).await;
        }
    }
}

impl<S: Serve> Drop for Serving<S> {
    fn drop(&mut self) {
        if !self.has_ended {
            // Its runtime stops, or it panicked: nobody must wait for it.
            let mut waiting = self.line.waiting();
            waiting.is_served = false;
            waiting.queue.clear();
        }
    }
}
