//! The one connection that writes, and the queue before it.
//!
//! A commit must reach the disk ([`super::keeper`]), and a statement costs a hop to the connection's thread. So whatever
//! waits in the queue when a transaction begins shares it: many changes, one commit, and an answer for each
//! once the commit is on disk. Hardly any is refused, and a savepoint is a statement too: only when one of
//! them was refused are they made anew, now each behind a savepoint of its own, so that the refused ones
//! are undone and the others stay. A change that is alone may begin and commit with its own statements, which saves
//! two hops ([`Change::make_alone`]). The work runs in a task of its own, so a caller who goes away leaves no transaction
//! half done: a change that has begun runs to its end.

use std::{
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::FutureExt;
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};
use transcript_core::{Error, Result};

use super::keeper::Keeper;
use crate::error::{Fault, Work};
use link::{Alone, Link};

mod link;

/// How many changes may wait. Whoever comes later waits for room first.
const QUEUE_MAX: usize = 1_024;
/// How many changes share a transaction at most: other processes want the write lock too.
const BATCH_MAX: usize = 64;
/// How long to wait between two attempts to begin a transaction that another process blocks.
const PAUSE: Duration = Duration::from_millis(10);

/// Before the first change of a transaction.
const MARK: &str = "SAVEPOINT change";
/// Before every other one.
const MARK_NEXT: &str = "RELEASE change; SAVEPOINT change";
/// After one that came to nothing.
const UNDO: &str = "ROLLBACK TO change";

/// A change: what a port's method does to the database, in one transaction.
///
/// It may be run more than once, each time on the state before it: when another change of the transaction is
/// refused, or the database fails in its middle, all its changes are undone and run again.
pub(crate) trait Change: Send + Sync + 'static {
    /// What the method answers.
    type Outcome: Send + 'static;

    /// Makes the change. A fault undoes all that it did.
    fn make<'a>(
        &'a self,
        db: &'a mut SqliteConnection,
    ) -> impl Future<Output = Work<Self::Outcome>> + Send + 'a;

    /// Makes the change as the only one of a transaction, which it begins together with its first statement and
    /// commits together with its last, since each is a hop; none where it does not know how to. A transaction that came
    /// to nothing may be left open.
    fn make_alone<'a>(
        &'a self,
        _db: &'a mut SqliteConnection,
    ) -> impl Future<Output = Option<Attempt<Self::Outcome>>> + Send + 'a {
        std::future::ready(None)
    }
}

/// The queue before the connection that writes. The connection closes when the queue is dropped.
#[derive(Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Message>,
    file: PathBuf,
    patience: Duration,
    runtime: Handle,
}

enum Message {
    Change(Box<dyn Waiting>),
    Close(oneshot::Sender<()>),
}

impl Queue {
    /// Starts the task that writes, and the thread that waits for the disk.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] when the system gives no thread.
    pub(crate) fn start(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        file: PathBuf,
        patience: Duration,
    ) -> Result<Self> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let keeper = Keeper::start(&file)?;
        let link = Some(Link::of(connection));
        let writer = Writer { link, options, keeper, alone: Alone::default(), file: file.clone() };
        let runtime = Handle::current();
        runtime.spawn(writer.run(receiver));
        Ok(Self { sender, file, patience, runtime })
    }

    /// Makes a change and returns its outcome once it is on the disk. One that has not begun when its caller's
    /// patience is over is not made.
    pub(crate) async fn make<C: Change>(&self, change: C) -> Result<C::Outcome> {
        let (answer, outcome) = oneshot::channel();
        let patience_ends = Instant::now() + self.patience;
        let waiting = Box::new(Request { change, outcome: None, patience_ends, answer: Some(answer) });
        match self.sender.try_send(Message::Change(waiting)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(message)) => drop(self.room().await?.send(message)),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(super::closed()),
        }
        outcome.await.map_err(|_| super::closed())?
    }

    /// Waits for room in the queue.
    async fn room(&self) -> Result<mpsc::OwnedPermit<Message>> {
        let (sender, patience) = (self.sender.clone(), self.patience);
        // The caller's executor may have no timers.
        let room =
            self.runtime.spawn(async move { tokio::time::timeout(patience, sender.reserve_owned()).await });
        match room.await {
            Ok(Ok(Ok(room))) => Ok(room),
            Ok(Err(_)) => Err(busy(&self.file)),
            Ok(Ok(Err(_))) | Err(_) => Err(super::closed()),
        }
    }

    /// Waits until all that was queued before is done, and the connection is closed.
    pub(crate) async fn close(&self) {
        let (answer, closed) = oneshot::channel();
        if self.sender.send(Message::Close(answer)).await.is_ok() {
            // An error means that it has closed already.
            closed.await.ok();
        }
    }
}

/// A change of any kind in the queue.
#[async_trait]
pub(super) trait Waiting: Send {
    /// Makes the change and keeps its outcome for [`Waiting::answer`].
    async fn make(&mut self, db: &mut SqliteConnection) -> Work<()>;

    /// Makes the change with a transaction of its own; none where it does not know how to.
    async fn make_alone(&mut self, db: &mut SqliteConnection) -> Option<Attempt<()>>;

    /// Keeps, for [`Waiting::answer`], why the change was undone.
    fn refuse(&mut self, error: Error);

    /// Tells the caller the outcome, or why there is none.
    fn answer(&mut self, committed: Result<()>);

    /// When the caller has waited long enough for the change to begin.
    fn patience_ends(&self) -> Instant;
}

struct Request<C: Change> {
    change: C,
    outcome: Option<Result<C::Outcome>>,
    patience_ends: Instant,
    answer: Option<oneshot::Sender<Result<C::Outcome>>>,
}

#[async_trait]
impl<C: Change> Waiting for Request<C> {
    async fn make(&mut self, db: &mut SqliteConnection) -> Work<()> {
        self.outcome = Some(Ok(self.change.make(db).await?));
        Ok(())
    }

    async fn make_alone(&mut self, db: &mut SqliteConnection) -> Option<Attempt<()>> {
        let made = self.change.make_alone(db).await?;
        Some(made.map(|outcome| self.outcome = Some(Ok(outcome))))
    }

    fn refuse(&mut self, error: Error) {
        self.outcome = Some(Err(error));
    }

    fn answer(&mut self, committed: Result<()>) {
        let missing = || Err(Error::unexpected("a change was not made"));
        let outcome = committed.and_then(|()| self.outcome.take().unwrap_or_else(missing));
        if let Some(answer) = self.answer.take() {
            // Nobody may be waiting any more; the change is made all the same.
            answer.send(outcome).ok();
        }
    }

    fn patience_ends(&self) -> Instant {
        self.patience_ends
    }
}

/// What stands before the changes of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// Nothing: one that is refused undoes them all.
    None,
    /// A savepoint before each.
    Each,
}

/// Why a transaction came to nothing.
#[derive(Debug)]
pub(crate) enum Failed {
    /// One of its changes was refused, and was not marked: all were undone.
    Refused(Fault),
    /// It could not begin, because another process writes: nothing has happened yet.
    Blocked(Fault),
    /// The database failed during one of the changes in it; the others may do better alone.
    Change(Fault),
    /// It could not begin or commit.
    Transaction(Fault),
}

/// What became of a transaction.
pub(crate) type Attempt<T> = std::result::Result<T, Failed>;

impl Failed {
    fn to_begin(error: sqlx::Error) -> Self {
        let fault = Fault::from(error);
        if fault.is_busy() { Self::Blocked(fault) } else { Self::Transaction(fault) }
    }

    /// In the middle of a change that is made alone.
    pub(super) fn of(fault: impl Into<Fault>) -> Self {
        let fault = fault.into();
        if fault.is_of_one_change() { Self::Refused(fault) } else { Self::Change(fault) }
    }

    /// In what a change that is made alone says first, together with the beginning.
    pub(super) fn at_first(fault: Fault) -> Self {
        if fault.is_busy() { Self::Blocked(fault) } else { Self::of(fault) }
    }

    /// When it was to be committed: it may be.
    pub(super) fn to_commit(fault: impl Into<Fault>) -> Self {
        Self::Transaction(fault.into())
    }
}

struct Writer {
    link: Option<Link>,
    options: SqliteConnectOptions,
    keeper: Keeper,
    alone: Alone,
    file: PathBuf,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut closing = Vec::new();
        while let Some(message) = queue.recv().await {
            let mut batch = Vec::new();
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    Message::Change(change) => batch.push(change),
                    Message::Close(answer) => {
                        // What is in the queue already is still done; nothing new gets in.
                        queue.close();
                        closing.push(answer);
                    }
                }
                next = if batch.len() < BATCH_MAX { queue.try_recv().ok() } else { None };
            }
            let was_alone = self.has_alone(&batch);
            if !was_alone {
                self.alone.count(false);
            }
            for change in self.write(batch).await {
                self.write(vec![change]).await;
            }
            self.alone.count(was_alone && queue.is_empty());
        }
        // The log must be there until it is kept.
        self.keeper.close().await;
        if let Some(link) = self.link.take()
            && let Err(error) = link.connection.close().await
        {
            tracing::warn!(%error, file = %self.file.display(), "the database did not close in order");
        }
        for answer in closing {
            answer.send(()).ok();
        }
    }

    /// Makes the changes in one transaction and has them answered. Returns those that must be made alone.
    async fn write(&mut self, mut batch: Vec<Box<dyn Waiting>>) -> Vec<Box<dyn Waiting>> {
        let mut late = busy(&self.file);
        let mut marks = Marks::None;
        loop {
            answer_late(&mut batch, &late);
            if batch.is_empty() {
                return batch;
            }
            if let Some(error) = self.keeper.failure() {
                batch.iter_mut().for_each(|change| change.answer(Err(error.clone())));
                return Vec::new();
            }
            let error = match self.attempt(&mut batch, marks).await {
                Ok(()) if self.link.as_ref().is_some_and(Link::keeps) => {
                    batch.iter_mut().for_each(|change| change.answer(Ok(())));
                    return Vec::new();
                }
                Ok(()) => {
                    self.keeper.keep(batch).await;
                    return Vec::new();
                }
                Err(Failed::Change(fault) | Failed::Transaction(fault)) if fault.is_of_the_disk() => {
                    self.keeper.distrust(&fault)
                }
                Err(Failed::Refused(_)) if batch.len() > 1 => {
                    marks = Marks::Each;
                    continue;
                }
                Err(Failed::Blocked(fault)) => {
                    late = fault.into_error(&self.file);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(Failed::Change(_)) if batch.len() > 1 => return batch,
                Err(Failed::Refused(fault) | Failed::Change(fault) | Failed::Transaction(fault)) => {
                    fault.into_error(&self.file)
                }
            };
            batch.iter_mut().for_each(|change| change.answer(Err(error.clone())));
            return Vec::new();
        }
    }

    /// Whether this is one change, and nobody waits for the disk: a commit that waits speaks for itself only, so what was
    /// committed before must be kept already.
    fn has_alone(&self, batch: &[Box<dyn Waiting>]) -> bool {
        batch.len() == 1 && self.keeper.is_idle()
    }

    async fn attempt(&mut self, batch: &mut [Box<dyn Waiting>], marks: Marks) -> Attempt<()> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => Link::open(&self.options).await.map_err(Failed::to_begin)?,
        };
        link.keep(self.alone.is_likely() && self.has_alone(batch)).await.map_err(Failed::to_begin)?;
        let outcome = run(&mut link.connection, batch, marks, &self.file).await;
        // After a fault SQLite may have rolled back by itself, or not at all. A connection that is
        // dropped always does, so a fresh one is taken.
        if let Ok(()) | Err(Failed::Blocked(_) | Failed::Refused(_)) = outcome {
            self.link = Some(link);
        }
        outcome
    }
}

/// Parts with the changes whose callers have waited long enough.
fn answer_late(batch: &mut Vec<Box<dyn Waiting>>, error: &Error) {
    let now = Instant::now();
    batch.retain_mut(|change| {
        let in_time = change.patience_ends() > now;
        if !in_time {
            change.answer(Err(error.clone()));
        }
        in_time
    });
}

/// Makes the changes in one transaction.
async fn run(
    connection: &mut SqliteConnection,
    batch: &mut [Box<dyn Waiting>],
    marks: Marks,
    file: &Path,
) -> Attempt<()> {
    let whole = |error: sqlx::Error| Failed::Transaction(error.into());
    if let ([change], Marks::None) = (&mut *batch, marks)
        && let Some(made) = alone(connection, change.as_mut()).await
    {
        return made;
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(Failed::to_begin)?;
    let mut mark = MARK;
    for change in batch {
        if marks == Marks::Each {
            sqlx::query(mark).execute(&mut *transaction).await.map_err(whole)?;
            mark = MARK_NEXT;
        }
        // A defect in one change must not end the task that writes for all.
        let made = AssertUnwindSafe(change.make(&mut transaction)).catch_unwind().await;
        match (made.unwrap_or(Err(Fault::Panicked)), marks) {
            (Ok(()), _) => {}
            (Err(fault), Marks::Each) if fault.is_of_one_change() => {
                change.refuse(fault.into_error(file));
                sqlx::query(UNDO).execute(&mut *transaction).await.map_err(whole)?;
            }
            (Err(fault), Marks::None) if fault.is_of_one_change() => {
                transaction.rollback().await.map_err(whole)?;
                return Err(Failed::Refused(fault));
            }
            (Err(fault), _) => return Err(Failed::Change(fault)),
        }
    }
    transaction.commit().await.map_err(whole)
}

/// Makes a change with a transaction of its own, where it knows how to.
async fn alone(connection: &mut SqliteConnection, change: &mut dyn Waiting) -> Option<Attempt<()>> {
    let made = AssertUnwindSafe(change.make_alone(connection)).catch_unwind().await;
    let made = made.unwrap_or(Some(Err(Failed::Change(Fault::Panicked))))?;
    if let Err(Failed::Refused(_)) = made
        && let Err(error) = sqlx::raw_sql("ROLLBACK").execute(connection).await
    {
        return Some(Err(Failed::Transaction(error.into())));
    }
    Some(made)
}

#[cold]
pub(super) fn busy(file: &Path) -> Error {
    let file = file.display();
    Error::unavailable(format!("too much waits to be written to the database {file}: try again in a moment"))
}

#[cfg(test)]
mod tests;
