//! A line: whoever asks for the same kind of thing at the same time waits in it, and is served together.
//!
//! Two tasks serve it side by side: while the database's disk keeps what one has made, the other one is at work. Those
//! with one name are served by one of them at a time, so that those of one server are never in each other's way; and each
//! takes its share of those who can be served, so that one does not leave the other idle.

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
    database::Database,
    fault::{closed, late},
};

/// How many tasks serve a line.
const SERVING_MAX: usize = 2;
/// How many are served together at most.
const TOGETHER_MAX: usize = 64;
/// How often others may go first while more and more come.
const GATHERING_MAX: usize = 8;
/// How many may wait in a line. Whoever comes later is told to try again.
const WAITING_MAX: usize = 16_384;

/// Who waits: what is asked for, and where the answer goes.
pub(super) type Member<S> = (<S as Serve>::Ask, Answer<<S as Serve>::Outcome>);
/// Where an answer goes.
pub(super) type Answer<O> = oneshot::Sender<Result<O>>;

/// Whoever serves a line.
pub(super) trait Serve: Sized + 'static {
    /// What is asked for.
    type Ask: Send + 'static;
    /// What is answered.
    type Outcome: Send + 'static;

    /// What is answered to those for whom nothing was done, since the line is too long or does not move.
    fn undone(error: Error) -> Result<Self::Outcome> {
        Err(error)
    }

    /// Serves these, and answers each.
    fn serve(database: &Database, members: Vec<Member<Self>>) -> impl Future<Output = ()> + Send;
}

/// A line of those who wait for the same kind of thing.
pub(super) struct Line<S: Serve>(Arc<Shared<S>>);

struct Shared<S: Serve> {
    database: Database,
    waiting: Mutex<Waiting<S>>,
}

struct Waiting<S: Serve> {
    /// Those who wait, by name, each name's in their order.
    waiters: HashMap<Name, VecDeque<Waiter<S>>>,
    /// How many these are.
    count: usize,
    /// The names of those who wait and can be served, in the order in which it is their turn.
    ready: VecDeque<Name>,
    /// How many wait under them.
    ready_count: usize,
    /// The names that are being served.
    served: HashSet<Name>,
    /// How many are being served under them.
    served_count: usize,
    /// How many tasks serve the line.
    tasks: usize,
}

/// Who waits, and since when.
type Waiter<S> = (Instant, Member<S>);

/// What a name is told by: two that are taken for one only wait for each other.
type Name = u64;

fn name_of(name: &str) -> Name {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(name)
}

impl<S: Serve> fmt::Debug for Line<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl<S: Serve> Line<S> {
    /// An empty line, served in tasks of the database; nobody is served who has waited for longer than its patience.
    pub(super) fn new(database: &Database) -> Self {
        Self(Arc::new(Shared { database: database.clone(), waiting: Mutex::new(Waiting::nobody()) }))
    }

    /// Whether somebody of this name waits, or is being served.
    pub(super) fn is_busy(&self, name: &str) -> bool {
        let (name, waiting) = (name_of(name), self.0.waiting());
        waiting.served.contains(&name) || waiting.waiters.contains_key(&name)
    }

    /// Waits under this name for the answer.
    pub(super) async fn ask(&self, name: &str, ask: S::Ask) -> Result<S::Outcome> {
        let (answer, outcome) = oneshot::channel();
        if let Err(error) = self.0.join(name_of(name), (ask, answer)) {
            return S::undone(error);
        }
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl<S: Serve> Shared<S> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<S>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait.
    fn join(self: &Arc<Self>, name: Name, member: Member<S>) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.count >= WAITING_MAX {
            return Err(Error::unavailable("too many charges wait for the database: try again in a moment"));
        }
        waiting.add(name, member);
        let is_wanted = waiting.wants_a_task();
        // A runtime that has ended drops the task on the spot, which then tidies the line.
        drop(waiting);
        if is_wanted {
            self.begin();
        }
        Ok(())
    }

    /// Begins a task that serves the line, and is counted already.
    fn begin(self: &Arc<Self>) {
        let serving = Serving {
            line: Arc::clone(self),
            names: HashSet::new(),
            count: 0,
            has_begun: false,
            has_ended: false,
        };
        self.database.runtime().spawn(serving.run());
    }
}

impl<S: Serve> Waiting<S> {
    /// Nobody waits, and nobody is served.
    fn nobody() -> Self {
        Self {
            waiters: HashMap::new(),
            count: 0,
            ready: VecDeque::new(),
            ready_count: 0,
            served: HashSet::new(),
            served_count: 0,
            tasks: 0,
        }
    }

    fn add(&mut self, name: Name, member: Member<S>) {
        let waiters = self.waiters.entry(name).or_default();
        waiters.push_back((Instant::now(), member));
        self.count += 1;
        // Whoever serves this name comes back for it.
        if !self.served.contains(&name) {
            self.ready_count += 1;
            if waiters.len() == 1 {
                self.ready.push_back(name);
            }
        }
    }

    /// Whether somebody can be served, and too few tasks do: one more is counted then, and is to be begun.
    fn wants_a_task(&mut self) -> bool {
        let is_wanted = !self.ready.is_empty() && self.tasks < SERVING_MAX;
        self.tasks += usize::from(is_wanted);
        is_wanted
    }

    /// Who waits under a name whose turn it is, in their order: at most so many, and at most one name's.
    fn turn(&mut self, count: usize) -> Option<(Name, Vec<Waiter<S>>)> {
        let name = self.ready.pop_front()?;
        let waiters = self.waiters.get_mut(&name)?;
        self.ready_count -= waiters.len();
        let taken: Vec<_> = waiters.drain(..count.min(waiters.len())).collect();
        if waiters.is_empty() {
            self.waiters.remove(&name);
        }
        self.count -= taken.len();
        Some((name, taken))
    }

    /// These names are served no more, and neither are so many who were served under them.
    fn let_go(&mut self, names: impl Iterator<Item = Name>, count: usize) {
        self.served_count -= count;
        for name in names {
            self.served.remove(&name);
            if let Some(waiters) = self.waiters.get(&name) {
                self.ready_count += waiters.len();
                self.ready.push_back(name);
            }
        }
    }
}

/// A task that serves a line.
struct Serving<S: Serve> {
    line: Arc<Shared<S>>,
    /// The names that it serves.
    names: HashSet<Name>,
    /// How many it serves under them.
    count: usize,
    has_begun: bool,
    has_ended: bool,
}

impl<S: Serve> Serving<S> {
    async fn run(mut self) {
        self.has_begun = true;
        loop {
            self.gather().await;
            let members = self.next();
            if members.is_empty() {
                return;
            }
            S::serve(&self.line.database, members).await;
        }
    }

    /// Whoever is ready to ask does so first, and shares the statement: those who have just been answered, above all.
    async fn gather(&self) {
        let mut there = 0;
        for _ in 0..GATHERING_MAX {
            tokio::task::yield_now().await;
            let before = std::mem::replace(&mut there, self.line.waiting().count);
            if there == before || there >= SERVING_MAX * TOGETHER_MAX {
                break;
            }
        }
    }

    /// Who is served next, together; nobody when the task has ended with that.
    fn next(&mut self) -> Vec<Member<S>> {
        let line = Arc::clone(&self.line);
        let patience = line.database.patience();
        let mut waiting = line.waiting();
        waiting.let_go(self.names.drain(), std::mem::take(&mut self.count));
        let share = (waiting.ready_count + waiting.served_count).div_ceil(SERVING_MAX).min(TOGETHER_MAX);
        let mut next = Vec::with_capacity(share);
        // All who wait under a name, also beyond the share: nobody else may serve them meanwhile.
        while next.len() < share
            && let Some((name, waiters)) = waiting.turn(TOGETHER_MAX - next.len())
        {
            waiting.served.insert(name);
            self.names.insert(name);
            for (since, (ask, answer)) in waiters {
                if answer.is_closed() {
                    // Whoever left need not be served.
                } else if since.elapsed() > patience {
                    answer.send(S::undone(late(line.database.name()))).ok();
                } else {
                    next.push((ask, answer));
                }
            }
        }
        self.count = next.len();
        waiting.served_count += next.len();
        if next.is_empty() {
            waiting.let_go(self.names.drain(), 0);
            waiting.tasks -= 1;
            self.has_ended = true;
        }
        let is_wanted = waiting.wants_a_task();
        drop(waiting);
        if is_wanted {
            line.begin();
        }
        next
    }
}

impl<S: Serve> Drop for Serving<S> {
    fn drop(&mut self) {
        if !self.has_ended {
            // It panicked, and another one goes on; or its runtime stops, as one that never began tells: nobody must wait.
            let mut waiting = self.line.waiting();
            waiting.let_go(self.names.drain(), self.count);
            waiting.tasks -= 1;
            let is_wanted = self.has_begun && waiting.wants_a_task();
            if waiting.tasks == 0 {
                *waiting = Waiting::nobody();
            }
            drop(waiting);
            if is_wanted {
                self.line.begin();
            }
        }
    }
}

#[cfg(test)]
mod tests;
