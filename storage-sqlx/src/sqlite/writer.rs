//! The write queue: the single writing connection with batching.
//!
//! A commit must reach the disk ([`super::wal_sync`]), and each statement costs a round trip to the connection's
//! thread. Therefore all writes in the queue when a transaction begins share it: many writes, one commit, and a
//! reply to each once the commit is on disk. Writes are rarely rejected, and a savepoint is a statement too: only
//! when one was rejected does the batch run again with a savepoint before each write, so that rejected writes are
//! undone and the others stay. A single write can begin and commit with its own statements, which saves two round
//! trips ([`WriteTx::run_standalone`]). The work runs in its own task, so a caller that disconnects leaves no
//! partial transaction: a write that has started runs to its end.

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

use super::wal_sync::WalSyncer;
use crate::error::{DbError, DbResult};
use connection::{UncontendedCount, WriterConnection};

mod connection;

/// Capacity of the queue. Later callers wait for room.
const QUEUE_MAX: usize = 1_024;
/// Most writes in a transaction: other processes also need the write lock.
const BATCH_MAX: usize = 64;
/// Pause between two attempts to begin a transaction while another process writes.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs before the first write of a transaction.
const SAVEPOINT: &str = "SAVEPOINT change";
/// Runs before every other write.
const NEXT_SAVEPOINT: &str = "RELEASE change; SAVEPOINT change";
/// Runs after a rejected write.
const UNDO_WRITE: &str = "ROLLBACK TO change";

/// A write: the work of a port's method on the database, in one transaction.
///
/// It may run more than once, each time on the state before it: when another write of the transaction is
/// rejected, or the database fails midway, all writes are undone and run again.
pub(crate) trait WriteTx: Send + Sync + 'static {
    /// The result of the method.
    type Outcome: Send + 'static;

    /// Runs the write. An error undoes all of it.
    fn run<'a>(
        &'a self,
        db: &'a mut SqliteConnection,
    ) -> impl Future<Output = DbResult<Self::Outcome>> + Send + 'a;

    /// Runs the write as the only one of a transaction. `None` if it has no such form.
    ///
    /// It begins together with its first statement and commits together with its last, since each costs a round
    /// trip. After an error the transaction may stay open.
    fn run_standalone<'a>(
        &'a self,
        _db: &'a mut SqliteConnection,
    ) -> impl Future<Output = Option<TxResult<Self::Outcome>>> + Send + 'a {
        std::future::ready(None)
    }
}

/// The queue of writes for one connection. Drop closes the connection.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    sender: mpsc::Sender<WriterMessage>,
    file: PathBuf,
    timeout: Duration,
    runtime: Handle,
}

enum WriterMessage {
    Write(Box<dyn QueuedWrite>),
    Close(oneshot::Sender<()>),
}

impl WriteQueue {
    /// Starts the writing task and the sync thread.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the system cannot start a thread.
    pub(crate) fn start(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        file: PathBuf,
        timeout: Duration,
    ) -> Result<Self> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let syncer = WalSyncer::start(&file)?;
        let connection = Some(WriterConnection::new(connection));
        let writer = Writer {
            connection,
            options,
            syncer,
            uncontended: UncontendedCount::default(),
            file: file.clone(),
        };
        let runtime = Handle::current();
        runtime.spawn(writer.run(receiver));
        Ok(Self { sender, file, timeout, runtime })
    }

    /// Runs a write and returns its outcome once it is on disk.
    ///
    /// A write that did not start within the timeout is not run.
    pub(crate) async fn run<C: WriteTx>(&self, write: C) -> Result<C::Outcome> {
        let (reply, outcome) = oneshot::channel();
        let deadline = Instant::now() + self.timeout;
        let request = Box::new(WriteRequest { write, outcome: None, deadline, reply: Some(reply) });
        match self.sender.try_send(WriterMessage::Write(request)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(message)) => drop(self.reserve().await?.send(message)),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(super::closed()),
        }
        outcome.await.map_err(|_| super::closed())?
    }

    /// Waits for room in the queue.
    async fn reserve(&self) -> Result<mpsc::OwnedPermit<WriterMessage>> {
        let (sender, timeout) = (self.sender.clone(), self.timeout);
        // The caller's executor may have no timers.
        let permit =
            self.runtime.spawn(async move { tokio::time::timeout(timeout, sender.reserve_owned()).await });
        match permit.await {
            Ok(Ok(Ok(permit))) => Ok(permit),
            Ok(Err(_)) => Err(busy(&self.file)),
            Ok(Ok(Err(_))) | Err(_) => Err(super::closed()),
        }
    }

    /// Waits until the queued writes are done and the connection is closed.
    pub(crate) async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.sender.send(WriterMessage::Close(reply)).await.is_ok() {
            // An error means that it is already closed.
            closed.await.ok();
        }
    }
}

/// A queued write of any type.
#[async_trait]
pub(super) trait QueuedWrite: Send {
    /// Runs the write and stores its outcome for [`Self::reply`].
    async fn run(&mut self, db: &mut SqliteConnection) -> DbResult<()>;

    /// Runs the write in its own transaction. `None` if it has no such form.
    async fn run_standalone(&mut self, db: &mut SqliteConnection) -> Option<TxResult<()>>;

    /// Stores the reason why the write was undone, for [`Self::reply`].
    fn reject(&mut self, error: Error);

    /// Sends the outcome, or the error of the commit, to the caller.
    fn reply(&mut self, committed: Result<()>);

    /// The time after which the write must not start.
    fn deadline(&self) -> Instant;
}

struct WriteRequest<C: WriteTx> {
    write: C,
    outcome: Option<Result<C::Outcome>>,
    deadline: Instant,
    reply: Option<oneshot::Sender<Result<C::Outcome>>>,
}

#[async_trait]
impl<C: WriteTx> QueuedWrite for WriteRequest<C> {
    async fn run(&mut self, db: &mut SqliteConnection) -> DbResult<()> {
        self.outcome = Some(Ok(self.write.run(db).await?));
        Ok(())
    }

    async fn run_standalone(&mut self, db: &mut SqliteConnection) -> Option<TxResult<()>> {
        let result = self.write.run_standalone(db).await?;
        Some(result.map(|outcome| self.outcome = Some(Ok(outcome))))
    }

    fn reject(&mut self, error: Error) {
        self.outcome = Some(Err(error));
    }

    fn reply(&mut self, committed: Result<()>) {
        let missing = || Err(Error::unexpected("a queued write did not run"));
        let outcome = committed.and_then(|()| self.outcome.take().unwrap_or_else(missing));
        if let Some(reply) = self.reply.take() {
            // The write is stored even if the caller has disconnected.
            reply.send(outcome).ok();
        }
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// Use of savepoints in a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SavepointMode {
    /// No savepoints: a rejected write undoes all writes of the transaction.
    None,
    /// A savepoint before each write, so that a rejected write is undone separately.
    Each,
}

/// Why a transaction failed.
#[derive(Debug)]
pub(crate) enum TxError {
    /// A write without a savepoint was rejected: all writes were undone.
    Rejected(DbError),
    /// It could not begin because another process writes: nothing has happened yet.
    Blocked(DbError),
    /// The database failed during one of its writes; the others may succeed in their own transactions.
    Write(DbError),
    /// It could not begin or commit.
    Transaction(DbError),
}

/// Result of a transaction.
pub(crate) type TxResult<T> = std::result::Result<T, TxError>;

impl TxError {
    fn to_begin(error: sqlx::Error) -> Self {
        let fault = DbError::from(error);
        if fault.is_busy() { Self::Blocked(fault) } else { Self::Transaction(fault) }
    }

    /// An error in the middle of a standalone write.
    pub(super) fn from_write(fault: impl Into<DbError>) -> Self {
        let fault = fault.into();
        if fault.is_limited_to_write() { Self::Rejected(fault) } else { Self::Write(fault) }
    }

    /// An error of a standalone write's first statement, which also begins the transaction.
    pub(super) fn at_first(fault: DbError) -> Self {
        if fault.is_busy() { Self::Blocked(fault) } else { Self::from_write(fault) }
    }

    /// An error of a commit, which may have succeeded.
    pub(super) fn to_commit(fault: impl Into<DbError>) -> Self {
        Self::Transaction(fault.into())
    }
}

struct Writer {
    connection: Option<WriterConnection>,
    options: SqliteConnectOptions,
    syncer: WalSyncer,
    uncontended: UncontendedCount,
    file: PathBuf,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<WriterMessage>) {
        let mut closing = Vec::new();
        while let Some(message) = queue.recv().await {
            let mut batch = Vec::new();
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    WriterMessage::Write(write) => batch.push(write),
                    WriterMessage::Close(reply) => {
                        // Queued writes are still done; new ones are not accepted.
                        queue.close();
                        closing.push(reply);
                    }
                }
                next = if batch.len() < BATCH_MAX { queue.try_recv().ok() } else { None };
            }
            let was_uncontended = self.is_uncontended(&batch);
            if !was_uncontended {
                self.uncontended.record(false);
            }
            for write in self.write(batch).await {
                self.write(vec![write]).await;
            }
            self.uncontended.record(was_uncontended && queue.is_empty());
        }
        // The log must exist until it is synced.
        self.syncer.close().await;
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.connection.close().await
        {
            tracing::warn!(%error, file = %self.file.display(), "database close failed");
        }
        for reply in closing {
            reply.send(()).ok();
        }
    }

    /// Runs the writes in one transaction and sends the replies.
    ///
    /// Returns the writes that must run separately.
    async fn write(&mut self, mut batch: Vec<Box<dyn QueuedWrite>>) -> Vec<Box<dyn QueuedWrite>> {
        let mut timeout_error = busy(&self.file);
        let mut savepoints = SavepointMode::None;
        loop {
            reject_late(&mut batch, &timeout_error);
            if batch.is_empty() {
                return batch;
            }
            if let Some(error) = self.syncer.failure() {
                batch.iter_mut().for_each(|write| write.reply(Err(error.clone())));
                return Vec::new();
            }
            let error = match self.attempt(&mut batch, savepoints).await {
                Ok(()) if self.connection.as_ref().is_some_and(WriterConnection::syncs_on_commit) => {
                    batch.iter_mut().for_each(|write| write.reply(Ok(())));
                    return Vec::new();
                }
                Ok(()) => {
                    self.syncer.sync_and_ack(batch).await;
                    return Vec::new();
                }
                Err(TxError::Write(fault) | TxError::Transaction(fault)) if fault.is_sync_failure() => {
                    self.syncer.mark_failed(&fault)
                }
                Err(TxError::Rejected(_)) if batch.len() > 1 => {
                    savepoints = SavepointMode::Each;
                    continue;
                }
                Err(TxError::Blocked(fault)) => {
                    timeout_error = fault.into_error(&self.file);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                Err(TxError::Write(_)) if batch.len() > 1 => return batch,
                Err(TxError::Rejected(fault) | TxError::Write(fault) | TxError::Transaction(fault)) => {
                    fault.into_error(&self.file)
                }
            };
            batch.iter_mut().for_each(|write| write.reply(Err(error.clone())));
            return Vec::new();
        }
    }

    /// Whether the batch is one write and no earlier commit waits for a sync.
    ///
    /// A commit that syncs itself acknowledges only itself, so earlier commits must be synced before it.
    fn is_uncontended(&self, batch: &[Box<dyn QueuedWrite>]) -> bool {
        batch.len() == 1 && self.syncer.is_idle()
    }

    async fn attempt(
        &mut self,
        batch: &mut [Box<dyn QueuedWrite>],
        savepoints: SavepointMode,
    ) -> TxResult<()> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => WriterConnection::open(&self.options).await.map_err(TxError::to_begin)?,
        };
        connection
            .set_sync(self.uncontended.is_likely() && self.is_uncontended(batch))
            .await
            .map_err(TxError::to_begin)?;
        let outcome = run(&mut connection.connection, batch, savepoints, &self.file).await;
        // After an error SQLite may have rolled back, or not. Dropping a connection always does, so a new one is
        // opened.
        if let Ok(()) | Err(TxError::Blocked(_) | TxError::Rejected(_)) = outcome {
            self.connection = Some(connection);
        }
        outcome
    }
}

/// Removes the writes whose deadline has passed, with an error for each.
fn reject_late(batch: &mut Vec<Box<dyn QueuedWrite>>, error: &Error) {
    let now = Instant::now();
    batch.retain_mut(|write| {
        let in_time = write.deadline() > now;
        if !in_time {
            write.reply(Err(error.clone()));
        }
        in_time
    });
}

/// Runs the writes in one transaction.
async fn run(
    connection: &mut SqliteConnection,
    batch: &mut [Box<dyn QueuedWrite>],
    savepoints: SavepointMode,
    file: &Path,
) -> TxResult<()> {
    let transaction_error = |error: sqlx::Error| TxError::Transaction(error.into());
    if let ([write], SavepointMode::None) = (&mut *batch, savepoints)
        && let Some(result) = run_alone(connection, write.as_mut()).await
    {
        return result;
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(TxError::to_begin)?;
    let mut savepoint = SAVEPOINT;
    for write in batch {
        if savepoints == SavepointMode::Each {
            sqlx::query(savepoint).execute(&mut *transaction).await.map_err(transaction_error)?;
            savepoint = NEXT_SAVEPOINT;
        }
        // A panic in one write must not end the task that serves all.
        let result = AssertUnwindSafe(write.run(&mut transaction)).catch_unwind().await;
        match (result.unwrap_or(Err(DbError::Panicked)), savepoints) {
            (Ok(()), _) => {}
            (Err(fault), SavepointMode::Each) if fault.is_limited_to_write() => {
                write.reject(fault.into_error(file));
                sqlx::query(UNDO_WRITE).execute(&mut *transaction).await.map_err(transaction_error)?;
            }
            (Err(fault), SavepointMode::None) if fault.is_limited_to_write() => {
                transaction.rollback().await.map_err(transaction_error)?;
                return Err(TxError::Rejected(fault));
            }
            (Err(fault), _) => return Err(TxError::Write(fault)),
        }
    }
    transaction.commit().await.map_err(transaction_error)
}

/// Runs a write in its own transaction, if it supports that.
async fn run_alone(connection: &mut SqliteConnection, write: &mut dyn QueuedWrite) -> Option<TxResult<()>> {
    let result = AssertUnwindSafe(write.run_standalone(connection)).catch_unwind().await;
    let result = result.unwrap_or(Some(Err(TxError::Write(DbError::Panicked))))?;
    if let Err(TxError::Rejected(_)) = result
        && let Err(error) = sqlx::raw_sql("ROLLBACK").execute(connection).await
    {
        return Some(Err(TxError::Transaction(error.into())));
    }
    Some(result)
}

#[cold]
pub(super) fn busy(file: &Path) -> Error {
    let file = file.display();
    Error::unavailable(format!("the write queue of the database {file} is full: retry in a few seconds"))
}

#[cfg(test)]
mod tests;
