//! Reading connections: opened on first use, then kept open.
//!
//! A connection is borrowed for one statement, so nothing stays open after a read. A single row is read on the
//! caller's thread, within one poll: a row in the page cache takes microseconds, and one on a fast disk about a
//! hundred, which is less than a thread switch. On a slow disk these reads move to blocking threads
//! ([`LatencyGate`]), so that they never delay other requests. Lists are always read on blocking threads, with
//! permits of their own, so that a long list delays no single row.

mod latency_gate;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use self::latency_gate::LatencyGate;
use super::{closed, database_file::DatabaseFile, options::open_reader, session::SqliteSession};
use crate::{
    error::DbResult,
    sql::{Row, Value},
};

/// Pause between two attempts at a read while another process holds the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// A small number of reading connections.
#[derive(Debug)]
pub(super) struct ReadPool {
    shared: Arc<ReadPoolShared>,
    row_permits: Arc<Semaphore>,
    list_permits: Arc<Semaphore>,
    /// Number of permits of each kind.
    count: u32,
    timeout: Duration,
    runtime: Handle,
}

#[derive(Debug)]
struct ReadPoolShared {
    file: Arc<DatabaseFile>,
    /// Locked briefly, never during a read.
    free: Mutex<Vec<SqliteSession>>,
    latency_gate: LatencyGate,
}

impl ReadPool {
    pub(super) fn new(file: &Arc<DatabaseFile>, count: u32, timeout: Duration) -> Self {
        let shared = ReadPoolShared {
            file: Arc::clone(file),
            free: Mutex::default(),
            latency_gate: LatencyGate::default(),
        };
        let permits = || Arc::new(Semaphore::new(count as usize));
        let (shared, row_permits, list_permits) = (Arc::new(shared), permits(), permits());
        Self { shared, row_permits, list_permits, count, timeout, runtime: Handle::current() }
    }

    /// The first row of one statement.
    pub(super) async fn row(&self, statement: &'static str, values: &[Value<'_>]) -> DbResult<Option<Row>> {
        self.retry_while_locked(|| self.attempt_row(statement, values)).await
    }

    pub(super) async fn rows(&self, statement: &'static str, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        self.retry_while_locked(|| self.attempt_rows(statement, values)).await
    }

    async fn attempt_row(&self, statement: &'static str, values: &[Value<'_>]) -> DbResult<Option<Row>> {
        let permit = Arc::clone(&self.row_permits).acquire_owned().await.map_err(|_| closed())?;
        if self.shared.latency_gate.is_quick() {
            return self.shared.read_row(permit, statement, values);
        }
        let (shared, values) = (Arc::clone(&self.shared), Value::to_owned_list(values));
        let read = self.runtime.spawn_blocking(move || shared.read_row(permit, statement, &values));
        read.await.map_err(|_| closed())?
    }

    async fn attempt_rows(&self, statement: &'static str, values: &[Value<'_>]) -> DbResult<Vec<Row>> {
        let permit = Arc::clone(&self.list_permits).acquire_owned().await.map_err(|_| closed())?;
        let (shared, values) = (Arc::clone(&self.shared), Value::to_owned_list(values));
        let read = move || shared.read(permit, |session| session.query(statement, &values));
        self.runtime.spawn_blocking(read).await.map_err(|_| closed())?
    }

    /// Repeats a read while another process holds the lock, up to the timeout.
    ///
    /// A reader of a write-ahead log is blocked only briefly: while the log is recovered after a crash, or deleted
    /// by the last process that closes the file.
    async fn retry_while_locked<T, F: Future<Output = DbResult<T>> + Send>(
        &self,
        attempt: impl Fn() -> F + Send + Sync,
    ) -> DbResult<T> {
        let mut started = None;
        loop {
            match attempt().await {
                // The time starts at the first blocked attempt, since most reads are never blocked.
                Err(fault)
                    if fault.is_busy()
                        && started.get_or_insert_with(Instant::now).elapsed() < self.timeout =>
                {
                    // The caller's executor may have no timers.
                    self.runtime.spawn(async { tokio::time::sleep(PAUSE).await }).await.ok();
                }
                outcome => return outcome,
            }
        }
    }

    /// Waits for running reads, rejects new ones and closes the connections.
    pub(super) async fn close(&self) {
        for permits in [&self.row_permits, &self.list_permits] {
            // All permits together mean no running read. An error means that it is already closed.
            let all = permits.acquire_many(self.count).await;
            permits.close();
            drop(all);
        }
        let free = std::mem::take(&mut *self.shared.free());
        // Closing may wait for the disk.
        self.runtime.spawn_blocking(move || drop(free)).await.ok();
    }
}

impl ReadPoolShared {
    fn free(&self) -> MutexGuard<'_, Vec<SqliteSession>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_row(
        &self,
        permit: OwnedSemaphorePermit,
        statement: &str,
        values: &[Value<'_>],
    ) -> DbResult<Option<Row>> {
        let started = Instant::now();
        let row = self.read(permit, |session| session.query_row(statement, values))?;
        self.latency_gate.record(started.elapsed());
        Ok(row)
    }

    /// Reads on this thread. Returns the connection before it releases the permit.
    fn read<T>(
        &self,
        permit: OwnedSemaphorePermit,
        read: impl FnOnce(&SqliteSession) -> DbResult<T>,
    ) -> DbResult<T> {
        let free = self.free().pop();
        let session = match free {
            Some(session) => session,
            None => {
                // Another file would have other data than the open connections.
                self.file.check()?;
                open_reader(self.file.path())?
            }
        };
        let outcome = read(&session)?;
        // After an error a new connection is cheaper than checking the state of this one.
        self.free().push(session);
        drop(permit);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
