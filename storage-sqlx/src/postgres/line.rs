//! Lines: whoever asks for the same kind of thing at the same time waits in one, and is served together.

use std::{
    collections::VecDeque,
    fmt,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tokio::sync::oneshot;
use transcript_core::{Error, Result};

use super::{
    database::Database,
    fault::{closed, late},
};

/// How many lines there are.
const LINES: usize = 2;
/// How many are served together at most.
const TOGETHER_MAX: usize = 64;
/// How many may wait in a line. Whoever comes later is told to try again.
const WAITING_MAX: usize = 8_192;

/// Who waits: what is asked for, and where the answer goes.
pub(super) type Member<S> = (<S as Serve>::Ask, Answer<<S as Serve>::Outcome>);
/// Where an answer goes.
pub(super) type Answer<O> = oneshot::Sender<Result<O>>;

/// Whoever serves lines.
pub(super) trait Serve: Sized + 'static {
    /// What is asked for.
    type Ask: Send + 'static;
    /// What is answered.
    type Outcome: Send + 'static;

    /// What is answered to those for whom nothing was done, since the line is too long or does not move.
    fn undone(error: Error) -> Result<Self::Outcome>;

    /// Serves these, and answers each.
    fn serve(database: &Database, members: Vec<Member<Self>>) -> impl Future<Output = ()> + Send;
}

/// Lines of those who wait for the same kind of thing. Those with one name are always in the same line, so that those
/// of one server are never in each other's way.
pub(super) struct Lines<S: Serve>([Arc<Line<S>>; LINES]);

impl<S: Serve> fmt::Debug for Lines<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl<S: Serve> Lines<S> {
    /// Empty lines, served in tasks of the database; nobody waits longer than its patience to be served.
    pub(super) fn new(database: &Database) -> Self {
        let waiting = || Mutex::new(Waiting { queue: VecDeque::new(), is_served: false });
        Self(std::array::from_fn(|_| Arc::new(Line { database: database.clone(), waiting: waiting() })))
    }

    /// Whether somebody is being served in the line of this name.
    pub(super) fn is_busy(&self, name: &str) -> bool {
        self.of(name).waiting().is_served
    }

    /// Waits in the line of this name for the answer.
    pub(super) async fn ask(&self, name: &str, ask: S::Ask) -> Result<S::Outcome> {
        let (answer, outcome) = oneshot::channel();
        if let Err(error) = self.of(name).join(ask, answer) {
            return S::undone(error);
        }
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }

    fn of(&self, name: &str) -> &Arc<Line<S>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        &self.0[usize::try_from(hash % LINES as u64).unwrap_or_default()]
    }
}

struct Line<S: Serve> {
    database: Database,
    waiting: Mutex<Waiting<S>>,
}

struct Waiting<S: Serve> {
    /// Each with the moment since which they wait, in their order.
    queue: VecDeque<(Instant, Member<S>)>,
    /// Whether a task serves this line.
    is_served: bool,
}

impl<S: Serve> Line<S> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<S>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait; the first one begins the task that serves them.
    fn join(self: &Arc<Self>, ask: S::Ask, answer: Answer<S::Outcome>) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.queue.len() >= WAITING_MAX {
            return Err(Error::unavailable("too many charges wait for the database: try again in a moment"));
        }
        waiting.queue.push_back((Instant::now(), (ask, answer)));
        let is_first = !std::mem::replace(&mut waiting.is_served, true);
        // A runtime that has ended drops the task on the spot, which then tidies the line.
        drop(waiting);
        if is_first {
            let serving = Serving { line: Arc::clone(self), has_ended: false };
            self.database.runtime().spawn(serving.run());
        }
        Ok(())
    }

    /// Who is served next, together; nobody when the task that serves has ended with that.
    fn next(&self) -> Vec<Member<S>> {
        let mut waiting = self.waiting();
        let mut next = Vec::with_capacity(waiting.queue.len().min(TOGETHER_MAX));
        while next.len() < TOGETHER_MAX
            && let Some((since, (ask, answer))) = waiting.queue.pop_front()
        {
            if answer.is_closed() {
                // Whoever left need not be served.
            } else if since.elapsed() > self.database.patience() {
                answer.send(S::undone(late(self.database.name()))).ok();
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
            S::serve(&self.line.database, members).await;
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
