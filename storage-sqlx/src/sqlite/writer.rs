//! The one connection that writes, and the queue before it.
//!
//! A commit waits for the disk, and a statement costs a hop to the connection's thread. So whatever waits
//! in the queue when a transaction begins shares it: many changes, one commit, and an answer for each
//! once the commit is on disk. The work runs in a task of its own, so a caller who goes away leaves no
//! transaction half done: a change that has begun runs to its end.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::{mpsc, oneshot};
use transcript_core::{Error, Result};

use crate::error::{Fault, Work};

/// How many changes may wait. Whoever comes later waits for room first.
const QUEUE_MAX: usize = 1_024;
/// How many changes share a transaction at most: other processes want the write lock too.
const BATCH_MAX: usize = 64;
/// How long to wait between two attempts to begin a transaction that another process blocks.
const PAUSE: Duration = Duration::from_millis(10);

/// A change: what a port's method does to the database, in one transaction.
///
/// It may be run more than once, each time on the state before it: when a change that shared its
/// transaction failed, all of them are undone and run alone.
pub(crate) trait Change: Send + Sync + 'static {
    /// What the method answers.
    type Outcome: Send + 'static;

    /// Makes the change. A fault undoes all that it did.
    fn make<'a>(
        &'a self,
        db: &'a mut SqliteConnection,
    ) -> impl Future<Output = Work<Self::Outcome>> + Send + 'a;
}

/// The queue before the connection that writes. The connection closes when the queue is dropped.
#[derive(Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Message>,
}

enum Message {
    Change(Box<dyn Waiting>),
    Close(oneshot::Sender<()>),
}

impl Queue {
    /// Starts the task that writes.
    pub(crate) fn start(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        file: PathBuf,
        patience: Duration,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let writer = Writer { connection: Some(connection), options, file, patience };
        tokio::spawn(writer.run(receiver));
        Self { sender }
    }

    /// Makes a change and returns its outcome once it is committed.
    pub(crate) async fn make<C: Change>(&self, change: C) -> Result<C::Outcome> {
        let (answer, outcome) = oneshot::channel();
        let waiting = Box::new(Request { change, outcome: None, answer: Some(answer) });
        self.sender.send(Message::Change(waiting)).await.map_err(|_| super::closed())?;
        outcome.await.map_err(|_| super::closed())?
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
trait Waiting: Send {
    /// Makes the change and keeps its outcome for [`Waiting::answer`].
    async fn make(&mut self, db: &mut SqliteConnection) -> Work<()>;

    /// Tells the caller the outcome, or why there is none.
    fn answer(&mut self, committed: Result<()>);
}

struct Request<C: Change> {
    change: C,
    outcome: Option<C::Outcome>,
    answer: Option<oneshot::Sender<Result<C::Outcome>>>,
}

#[async_trait]
impl<C: Change> Waiting for Request<C> {
    async fn make(&mut self, db: &mut SqliteConnection) -> Work<()> {
        self.outcome = Some(self.change.make(db).await?);
        Ok(())
    }

    fn answer(&mut self, committed: Result<()>) {
        let outcome = committed
            .and_then(|()| self.outcome.take().ok_or_else(|| Error::unexpected("a change was not made")));
        if let Some(answer) = self.answer.take() {
            // Nobody may be waiting any more; the change is made all the same.
            answer.send(outcome).ok();
        }
    }
}

/// Why a transaction came to nothing.
enum Failed {
    /// One of the changes in it failed; the others may do better alone.
    Change(Fault),
    /// It could not begin or commit.
    Transaction(Fault),
}

struct Writer {
    connection: Option<SqliteConnection>,
    options: SqliteConnectOptions,
    file: PathBuf,
    patience: Duration,
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
            self.write(&mut batch).await;
        }
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, file = %self.file.display(), "the database did not close in order");
        }
        for answer in closing {
            answer.send(()).ok();
        }
    }

    async fn write(&mut self, batch: &mut [Box<dyn Waiting>]) {
        match self.transaction(batch).await {
            Ok(()) => batch.iter_mut().for_each(|change| change.answer(Ok(()))),
            Err(Failed::Change(_)) if batch.len() > 1 => {
                for change in batch {
                    let outcome = self.transaction(std::slice::from_mut(change)).await;
                    change.answer(outcome.map_err(|failed| self.error(failed)));
                }
            }
            Err(failed) => {
                let error = self.error(failed);
                batch.iter_mut().for_each(|change| change.answer(Err(error.clone())));
            }
        }
    }

    /// Makes the changes in one transaction: all of them, or none.
    async fn transaction(&mut self, batch: &mut [Box<dyn Waiting>]) -> std::result::Result<(), Failed> {
        if batch.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        loop {
            match self.attempt(batch).await {
                // Only the beginning can be blocked: afterwards the write lock is ours.
                Err(Failed::Transaction(fault)) if fault.is_busy() && begun.elapsed() < self.patience => {
                    tokio::time::sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&mut self, batch: &mut [Box<dyn Waiting>]) -> std::result::Result<(), Failed> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(|error| Failed::Transaction(error.into()))?,
        };
        let outcome = run(&mut connection, batch).await;
        // After a fault SQLite may have rolled back by itself, or not at all. A connection that is
        // dropped always does, so a fresh one is taken.
        if let Ok(()) | Err(Failed::Change(Fault::Refused(_))) = outcome {
            self.connection = Some(connection);
        }
        outcome
    }

    fn error(&self, failed: Failed) -> Error {
        let (Failed::Change(fault) | Failed::Transaction(fault)) = failed;
        fault.into_error(&self.file)
    }
}

async fn run(
    connection: &mut SqliteConnection,
    batch: &mut [Box<dyn Waiting>],
) -> std::result::Result<(), Failed> {
    let whole = |error: sqlx::Error| Failed::Transaction(error.into());
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(whole)?;
    for change in batch {
        if let Err(fault) = change.make(&mut transaction).await {
            if let Fault::Refused(_) = fault {
                transaction.rollback().await.map_err(whole)?;
            }
            return Err(Failed::Change(fault));
        }
    }
    transaction.commit().await.map_err(whole)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    use sqlx::Row;
    use transcript_core::ErrorKind;

    use super::*;
    use crate::error::conflict;

    /// Adds a number to a table, and then another one; in between, it waits.
    struct Add {
        number: i64,
        then: Then,
        made: Arc<AtomicU32>,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Then {
        Goes,
        IsRefused,
        Fails,
    }

    impl Change for Add {
        type Outcome = i64;

        async fn make(&self, db: &mut SqliteConnection) -> Work<i64> {
            self.made.fetch_add(1, Relaxed);
            sqlx::query("INSERT INTO numbers VALUES (?1)").bind(self.number).execute(&mut *db).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            match self.then {
                Then::Goes => {}
                Then::IsRefused => return Err(conflict("this number is refused").into()),
                Then::Fails => {
                    sqlx::query("INSERT INTO nowhere VALUES (1)").execute(&mut *db).await?;
                }
            }
            sqlx::query("INSERT INTO numbers VALUES (?1)").bind(-self.number).execute(db).await?;
            Ok(self.number)
        }
    }

    struct Fixture {
        queue: Arc<Queue>,
        options: SqliteConnectOptions,
        made: Arc<AtomicU32>,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("numbers.db");
            let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
            let options = options.busy_timeout(Duration::from_millis(100));
            let mut connection = options.connect().await.unwrap();
            sqlx::raw_sql("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
                .execute(&mut connection)
                .await
                .unwrap();
            let queue = Queue::start(connection, options.clone(), file, Duration::from_millis(100));
            Self { queue: Arc::new(queue), options, made: Arc::default(), _folder: folder }
        }

        fn add(&self, number: i64, then: Then) -> tokio::task::JoinHandle<Result<i64>> {
            let queue = Arc::clone(&self.queue);
            let made = Arc::clone(&self.made);
            tokio::spawn(async move { queue.make(Add { number, then, made }).await })
        }

        async fn numbers(&self) -> Vec<i64> {
            let mut other = self.options.connect().await.unwrap();
            let rows = sqlx::query("SELECT number FROM numbers ORDER BY abs(number), number");
            rows.fetch_all(&mut other).await.unwrap().iter().map(|row| row.get(0)).collect()
        }
    }

    #[tokio::test]
    async fn a_change_whose_caller_goes_away_is_made_whole() {
        let fixture = Fixture::new().await;
        let call = fixture.add(1, Then::Goes);
        while fixture.made.load(Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        fixture.queue.close().await;
        assert_eq!(fixture.numbers().await, [-1, 1]);
    }

    #[tokio::test]
    async fn a_change_that_fails_takes_nobody_with_it() {
        let fixture = Fixture::new().await;
        // While the first one runs, the others gather and share the next transaction.
        let first = fixture.add(1, Then::Goes);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let shared = [
            fixture.add(2, Then::Goes),
            fixture.add(3, Then::IsRefused),
            fixture.add(4, Then::Goes),
            fixture.add(5, Then::Fails),
            fixture.add(6, Then::Goes),
        ];
        assert_eq!(first.await.unwrap().unwrap(), 1);
        let mut kinds = Vec::new();
        for call in shared {
            kinds.push(call.await.unwrap().map_err(|error| error.kind()));
        }
        let (refused, failed) = (Err(ErrorKind::Conflict), Err(ErrorKind::Unexpected));
        assert_eq!(kinds, [Ok(2), refused, Ok(4), failed, Ok(6)]);
        assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -4, 4, -6, 6]);
        assert!(fixture.made.load(Relaxed) > 6, "they shared a transaction, and then went alone");
    }

    #[tokio::test]
    async fn a_lock_fails_all_that_wait_and_then_they_go_on() {
        let fixture = Fixture::new().await;
        let mut other = fixture.options.connect().await.unwrap();
        let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let calls = [fixture.add(1, Then::Goes), fixture.add(2, Then::Goes)];
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
        }
        assert_eq!(fixture.made.load(Relaxed), 0);
        lock.rollback().await.unwrap();
        assert_eq!(fixture.add(1, Then::Goes).await.unwrap().unwrap(), 1);
    }

    #[tokio::test]
    async fn closing_finishes_what_waits() {
        let fixture = Fixture::new().await;
        let calls: Vec<_> = (1..=3).map(|number| fixture.add(number, Then::Goes)).collect();
        tokio::time::sleep(Duration::from_millis(5)).await;
        fixture.queue.close().await;
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -3, 3]);
        let late = fixture.add(4, Then::Goes).await.unwrap().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Unavailable);
        fixture.queue.close().await;
    }

    #[tokio::test]
    async fn a_dropped_queue_lets_go_of_the_file() {
        let fixture = Fixture::new().await;
        fixture.add(1, Then::Goes).await.unwrap().unwrap();
        drop(fixture.queue);
        let mut other = fixture.options.connect().await.unwrap();
        // Only the last connection to a file may take this lock.
        let mut alone = Err(String::new());
        for _ in 0..100 {
            let exclusive = sqlx::raw_sql("PRAGMA journal_mode = DELETE");
            let row = exclusive.fetch_one(&mut other).await;
            alone = row.map(|row| row.get::<String, _>(0)).map_err(|error| error.to_string());
            if alone.as_deref() == Ok("delete") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the file is still held: {alone:?}");
    }
}
