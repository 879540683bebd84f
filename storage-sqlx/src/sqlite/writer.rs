//! The write queue: one thread owns the writing connection and shares each transaction among queued writes.
//!
//! A commit must reach the disk ([`super::wal_sync`]). Therefore all writes in the queue when a transaction begins
//! share it: many writes, one commit, and a reply to each once the commit is on disk. An outcome that a crash of the
//! machine may undo ([`WriteTx::needs_sync`]) is replied to after the commit, without a sync. Writes are rarely
//! rejected: only when one was rejected does the batch run again with a savepoint before each write, so that rejected
//! writes are undone and the others stay. A caller that disconnects leaves no partial transaction: a write that has
//! started runs to its end.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use transcript_core::{Error, Result};

use super::{
    database_file::{DatabaseFile, FileIdentity},
    session::SqliteSession,
    wal_sync::{WalSyncer, cannot_start_thread},
};
use crate::{
    error::{DbError, DbResult},
    monitor::{StoreErrorKind, StoreOperation},
    sql::WriteTx,
    store::TEST_WRITE,
};

/// Capacity of the queue. Later callers receive an error that they can retry.
const QUEUE_MAX: usize = 16_384;
/// Most writes in a transaction: other processes also need the write lock.
const BATCH_MAX: usize = 64;
/// Pause between two attempts to begin a transaction while another process writes.
const PAUSE: Duration = Duration::from_millis(10);

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// Runs before each write.
const SAVEPOINT: &str = "SAVEPOINT change";
/// Runs after each write.
const RELEASE_SAVEPOINT: &str = "RELEASE change";
/// Runs after a rejected write.
const UNDO_WRITE: &str = "ROLLBACK TO change";

/// The queue of writes for one connection. Drop closes the connection.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    sender: mpsc::Sender<WriterMessage>,
    file: Arc<DatabaseFile>,
    timeout: Duration,
}

enum WriterMessage {
    Write(Box<dyn QueuedWrite>),
    Close(oneshot::Sender<()>),
}

/// Opens a new writing connection after a failure.
type OpenSession = Box<dyn Fn() -> DbResult<SqliteSession> + Send>;

impl WriteQueue {
    /// Starts the writing thread and the sync thread.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Unavailable`] if the system cannot start a thread.
    pub(crate) fn start(
        session: SqliteSession,
        open: OpenSession,
        file: Arc<DatabaseFile>,
        timeout: Duration,
    ) -> Result<Self> {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let syncer = WalSyncer::start(file.path())?;
        let writer = Writer {
            session: Some(session),
            open,
            queue,
            syncer,
            file: Arc::clone(&file),
            log: None,
            is_suspect: false,
        };
        let thread = thread::Builder::new().name("verbatim-write".to_owned());
        thread.spawn(|| writer.run()).map_err(|error| cannot_start_thread(file.path(), &error))?;
        Ok(Self { sender, file, timeout })
    }

    /// Runs a write and returns its outcome once it is on disk.
    ///
    /// A write that did not start within the timeout is not run.
    ///
    /// # Errors
    /// The write may be stored only if its commit or the sync after it failed. Otherwise the error
    /// [has no effect](Error::has_no_effect).
    pub(crate) async fn run<C: WriteTx>(&self, write: C) -> Result<C::Outcome> {
        let (reply, outcome) = oneshot::channel();
        let deadline = Instant::now() + self.timeout;
        let request = WriteRequest { write, outcome: None, deadline, reply: Some(reply) };
        self.sender.try_send(WriterMessage::Write(Box::new(request))).map_err(|rejected| {
            let error = match rejected {
                mpsc::error::TrySendError::Full(_) => busy(self.file.path()),
                mpsc::error::TrySendError::Closed(_) => super::closed(),
            };
            error.without_effect()
        })?;
        outcome.await.unwrap_or_else(|_| Err(super::closed()))
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
pub(super) trait QueuedWrite: Send {
    /// Runs the write and stores its outcome for [`Self::reply`].
    fn run(&mut self, db: &mut SqliteSession) -> DbResult<()>;

    /// Stores the reason why the write was undone, for [`Self::reply`].
    fn reject(&mut self, error: Error);

    /// As [`WriteTx::needs_sync`], of the stored outcome.
    fn needs_sync(&self) -> bool {
        true
    }

    /// Sends the outcome, or the error of the commit, to the caller.
    fn reply(&mut self, committed: Result<()>);

    /// The time after which the write must not start.
    fn deadline(&self) -> Instant;

    /// Whether the caller disconnected and the write must then not start.
    fn is_cancelled(&self) -> bool;
}

struct WriteRequest<C: WriteTx> {
    write: C,
    outcome: Option<Result<C::Outcome>>,
    deadline: Instant,
    reply: Option<oneshot::Sender<Result<C::Outcome>>>,
}

impl<C: WriteTx> QueuedWrite for WriteRequest<C> {
    fn run(&mut self, db: &mut SqliteSession) -> DbResult<()> {
        let waits = || Error::unexpected("a write to a SQLite database waited for something else");
        self.outcome = Some(Ok(self.write.run(db).now_or_never().ok_or_else(waits)??));
        Ok(())
    }

    fn reject(&mut self, error: Error) {
        self.outcome = Some(Err(error.without_effect()));
    }

    fn needs_sync(&self) -> bool {
        !matches!(&self.outcome, Some(Ok(outcome)) if !self.write.needs_sync(outcome))
    }

    fn reply(&mut self, committed: Result<()>) {
        let missing = || Err(Error::unexpected("a queued write did not run").without_effect());
        let outcome = committed.and_then(|()| self.outcome.take().unwrap_or_else(missing));
        if let Some(reply) = self.reply.take() {
            // The write is stored even if the caller has disconnected.
            reply.send(outcome).ok();
        }
    }

    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn is_cancelled(&self) -> bool {
        C::IS_CANCELLABLE && self.reply.as_ref().is_none_or(oneshot::Sender::is_closed)
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
enum TxError {
    /// A write without a savepoint was rejected: all writes were undone.
    Rejected(DbError),
    /// It could not begin or commit because another process uses the file: nothing is stored.
    Blocked(DbError),
    /// The database failed during one of its writes; the others may succeed in their own transactions.
    Write(DbError),
    /// The database failed between the writes: nothing is stored.
    Session(DbError),
    /// The commit failed: it may be stored.
    Commit(DbError),
}

impl TxError {
    fn to_begin(fault: DbError) -> Self {
        if fault.is_busy() { Self::Blocked(fault) } else { Self::Session(fault) }
    }
}

struct Writer {
    session: Option<SqliteSession>,
    open: OpenSession,
    queue: mpsc::Receiver<WriterMessage>,
    syncer: WalSyncer,
    file: Arc<DatabaseFile>,
    /// The log that the connection writes; `None` before its first commit.
    log: Option<FileIdentity>,
    /// Whether the last commit failed with an unknown outcome.
    is_suspect: bool,
}

impl Writer {
    fn run(mut self) {
        let mut closing = Vec::new();
        while let Some(message) = self.queue.blocking_recv() {
            let mut batch = Vec::new();
            let mut next = Some(message);
            while let Some(message) = next {
                match message {
                    WriterMessage::Write(write) => batch.push(write),
                    WriterMessage::Close(reply) => {
                        // Queued writes are still done; new ones are not accepted.
                        self.queue.close();
                        closing.push(reply);
                    }
                }
                next = if batch.len() < BATCH_MAX { self.queue.try_recv().ok() } else { None };
            }
            for write in self.write(batch) {
                self.write(vec![write]);
            }
        }
        // The log must exist until it is synced.
        self.syncer.close();
        if let Some(session) = self.session.take()
            && let Err(error) = session.close()
        {
            tracing::warn!(?error, file = %self.file.path().display(), "database close failed");
        }
        for reply in closing {
            reply.send(()).ok();
        }
    }

    /// Runs the writes in one transaction and sends the replies.
    ///
    /// Returns the writes that must run separately.
    fn write(&mut self, mut batch: Vec<Box<dyn QueuedWrite>>) -> Vec<Box<dyn QueuedWrite>> {
        let mut timeout_error = busy(self.file.path());
        let mut savepoints = SavepointMode::None;
        loop {
            remove_late(&mut batch, &timeout_error, &self.file);
            if batch.is_empty() {
                return batch;
            }
            if let Some(error) = self.syncer.failure() {
                self.file.monitor().failed(StoreOperation::Write, StoreErrorKind::Io, &error);
                reply_to_all(&mut batch, &error.without_effect());
                return Vec::new();
            }
            let error = match self.attempt(&mut batch, savepoints) {
                Ok(()) => {
                    self.file.monitor().succeeded(StoreOperation::Write);
                    batch.retain_mut(|write| {
                        let needs_sync = write.needs_sync();
                        if !needs_sync {
                            write.reply(Ok(()));
                        }
                        needs_sync
                    });
                    if !batch.is_empty() {
                        self.acknowledge(batch);
                    }
                    return Vec::new();
                }
                Err(TxError::Rejected(_)) if batch.len() > 1 => {
                    savepoints = SavepointMode::Each;
                    continue;
                }
                Err(TxError::Blocked(fault)) => {
                    timeout_error = fault.into_error(self.file.path());
                    thread::sleep(PAUSE);
                    continue;
                }
                Err(TxError::Write(fault) | TxError::Session(fault)) if fault.is_sync_failure() => {
                    self.syncer.mark_failed(&fault).without_effect()
                }
                Err(TxError::Commit(fault)) if fault.is_sync_failure() => self.syncer.mark_failed(&fault),
                Err(TxError::Write(_)) if batch.len() > 1 => return batch,
                Err(TxError::Rejected(fault) | TxError::Write(fault) | TxError::Session(fault)) => {
                    self.error(fault).without_effect()
                }
                Err(TxError::Commit(fault)) if fault.is_full() => self.error(fault).without_effect(),
                Err(TxError::Commit(fault)) => {
                    self.is_suspect = true;
                    self.error(fault)
                }
            };
            reply_to_all(&mut batch, &error);
            return Vec::new();
        }
    }

    /// Syncs the committed batch and sends the replies.
    ///
    /// Another thread syncs if other writes wait, which can run in the meantime.
    fn acknowledge(&self, batch: Vec<Box<dyn QueuedWrite>>) {
        if self.queue.is_empty() && self.syncer.is_idle() {
            self.syncer.sync_here_and_ack(batch);
        } else {
            self.syncer.sync_and_ack(batch);
        }
    }

    /// Converts and counts the failure of a write.
    fn error(&self, fault: DbError) -> Error {
        self.file.error(StoreOperation::Write, fault)
    }

    fn attempt(
        &mut self,
        batch: &mut [Box<dyn QueuedWrite>],
        savepoints: SavepointMode,
    ) -> std::result::Result<(), TxError> {
        self.check_files().map_err(TxError::Session)?;
        let mut session = match self.session.take() {
            Some(session) => session,
            None => (self.open)().map_err(TxError::to_begin)?,
        };
        let outcome = match self.is_suspect {
            true => test_write(&mut session),
            false => Ok(()),
        };
        let outcome = outcome.and_then(|()| {
            self.is_suspect = false;
            run(&mut session, batch, savepoints, &self.file)
        });
        // After an error SQLite may have rolled back, or not. Closing a connection always does, so a new one is
        // opened.
        self.session = match outcome {
            Ok(()) | Err(TxError::Blocked(_) | TxError::Rejected(_)) => Some(session),
            Err(_) => None,
        };
        // The last connection that is closed deletes the log, and the next one creates another.
        self.log = match self.session {
            Some(_) => self.log.or_else(|| self.file.log_identity()),
            None => None,
        };
        outcome
    }

    /// Checks that the open files are those at their paths.
    fn check_files(&self) -> DbResult<()> {
        self.file.check()?;
        // A new connection must not be opened here: it would use the index of the log that is gone.
        match self.log.is_some() && self.log != self.file.log_identity() {
            true => Err(DbError::Replaced),
            false => Ok(()),
        }
    }
}

/// Commits a small write after a commit with an unknown outcome.
///
/// So one failure leaves at most one transaction with an unknown outcome, however long its cause lasts.
fn test_write(db: &mut SqliteSession) -> std::result::Result<(), TxError> {
    db.change(BEGIN, &[]).map_err(TxError::to_begin)?;
    for statement in [TEST_WRITE.sqlite, COMMIT] {
        db.change(statement, &[]).map_err(TxError::Session)?;
    }
    Ok(())
}

/// Removes the writes whose deadline has passed, with an error for each, and those that are cancelled.
fn remove_late(batch: &mut Vec<Box<dyn QueuedWrite>>, error: &Error, file: &DatabaseFile) {
    let now = Instant::now();
    batch.retain_mut(|write| {
        let is_in_time = write.deadline() > now;
        if !is_in_time {
            file.monitor().failed(StoreOperation::Write, StoreErrorKind::Busy, error);
            write.reply(Err(error.clone().without_effect()));
        }
        is_in_time && !write.is_cancelled()
    });
}

fn reply_to_all(batch: &mut [Box<dyn QueuedWrite>], error: &Error) {
    batch.iter_mut().for_each(|write| write.reply(Err(error.clone())));
}

/// Runs the writes in one transaction.
fn run(
    db: &mut SqliteSession,
    batch: &mut [Box<dyn QueuedWrite>],
    savepoints: SavepointMode,
    file: &DatabaseFile,
) -> std::result::Result<(), TxError> {
    db.change(BEGIN, &[]).map_err(TxError::to_begin)?;
    for write in batch {
        // The caller may have disconnected while the transaction waited for the lock.
        if write.is_cancelled() {
            continue;
        }
        if savepoints == SavepointMode::Each {
            db.change(SAVEPOINT, &[]).map_err(TxError::Session)?;
        }
        // A panic in one write must not end the thread that serves all.
        let result = catch_unwind(AssertUnwindSafe(|| write.run(db))).unwrap_or(Err(DbError::Panicked));
        match (result, savepoints) {
            (Ok(()), SavepointMode::None) => continue,
            (Ok(()), SavepointMode::Each) => {}
            (Err(fault), SavepointMode::Each) if fault.is_limited_to_write() => {
                write.reject(file.error(StoreOperation::Write, fault));
                db.change(UNDO_WRITE, &[]).map_err(TxError::Session)?;
            }
            (Err(fault), SavepointMode::None) if fault.is_limited_to_write() => {
                db.change(ROLLBACK, &[]).map_err(TxError::Session)?;
                return Err(TxError::Rejected(fault));
            }
            (Err(fault), _) => return Err(TxError::Write(fault)),
        }
        db.change(RELEASE_SAVEPOINT, &[]).map_err(TxError::Session)?;
    }
    match db.change(COMMIT, &[]) {
        Ok(_) => Ok(()),
        // Another process reads a file without a write-ahead log: the transaction is still open.
        Err(fault) if fault.is_busy() => {
            db.change(ROLLBACK, &[]).map_err(TxError::Session)?;
            Err(TxError::Blocked(fault))
        }
        Err(fault) => Err(TxError::Commit(fault)),
    }
}

#[cold]
fn busy(file: &Path) -> Error {
    let file = file.display();
    Error::unavailable(format!(
        "the write queue of the database {file} is full or too slow: retry in a few seconds"
    ))
}

#[cfg(test)]
mod tests;
