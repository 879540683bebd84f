//! Point reads: one row by key, on the caller's thread.
//!
//! A connection of sqlx has its own thread, and waking up costs several times what SQLite takes for a row. So the
//! few statements of every lookup use connections without a thread (rusqlite, over the same SQLite). A connection
//! is borrowed for one statement within one poll, so a cancelled call always returns it.
//!
//! A row in the page cache takes microseconds, and one on a fast disk about a hundred: less than a thread switch.
//! On a slow disk reads move to blocking threads ([`LatencyGate`]), so that they never delay other requests.

mod latency_gate;
mod row;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, params_from_iter, types::Value};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use self::latency_gate::LatencyGate;
pub(crate) use self::row::PointRow;
use super::{
    closed,
    options::{READS_ONLY, SETTINGS},
    read_pool::retry_while_locked,
};
use crate::error::DbResult;

/// The bounds of [`cache_kib`].
const CACHE_BYTES_MIN: u64 = 512 << 10;
const CACHE_BYTES_MAX: u64 = 16 << 20;

/// A few connections that read one row at a time.
#[derive(Debug)]
pub(super) struct PointReader {
    shared: Arc<PointReaderShared>,
    permits: Arc<Semaphore>,
    count: u32,
    timeout: Duration,
    runtime: Handle,
}

#[derive(Debug)]
struct PointReaderShared {
    file: PathBuf,
    /// Opened on first use, then kept. Locked briefly, never during a read.
    free: Mutex<Vec<Connection>>,
    latency_gate: LatencyGate,
}

impl PointReader {
    pub(super) fn new(file: &Path, count: u32, timeout: Duration) -> Self {
        let shared = PointReaderShared {
            file: file.to_owned(),
            free: Mutex::default(),
            latency_gate: LatencyGate::default(),
        };
        let permits = Arc::new(Semaphore::new(count as usize));
        Self { shared: Arc::new(shared), permits, count, timeout, runtime: Handle::current() }
    }

    /// The first row of a statement with these bound values.
    pub(super) async fn row(&self, statement: &'static str, bound: &[Value]) -> DbResult<Option<PointRow>> {
        retry_while_locked(self.timeout, &self.runtime, || self.attempt(statement, bound)).await
    }

    async fn attempt(&self, statement: &'static str, bound: &[Value]) -> DbResult<Option<PointRow>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        if self.shared.latency_gate.is_quick() {
            return self.shared.read(permit, statement, bound);
        }
        let (shared, bound) = (Arc::clone(&self.shared), bound.to_vec());
        let read = self.runtime.spawn_blocking(move || shared.read(permit, statement, &bound));
        read.await.map_err(|_| closed())?
    }

    /// Waits for running reads, rejects new ones and closes the connections.
    pub(super) async fn close(&self) {
        // All permits together mean no running read. An error means that it is already closed.
        let alone = self.permits.acquire_many(self.count).await;
        self.permits.close();
        drop(alone);
        let free = std::mem::take(&mut *self.shared.free());
        // Closing may wait for the disk.
        self.runtime.spawn_blocking(move || drop(free)).await.ok();
    }
}

impl PointReaderShared {
    fn free(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads on this thread. Returns the connection before it releases the permit.
    fn read(
        &self,
        permit: OwnedSemaphorePermit,
        statement: &str,
        bound: &[Value],
    ) -> DbResult<Option<PointRow>> {
        let started = Instant::now();
        let free = self.free().pop();
        let connection = match free {
            Some(connection) => connection,
            None => open(&self.file)?,
        };
        let row = first_row(&connection, statement, bound)?;
        // After an error a new connection is cheaper than checking the state of this one.
        self.free().push(connection);
        drop(permit);
        self.latency_gate.record(started.elapsed());
        Ok(row)
    }
}

/// Opens a connection that can only read. It never waits for a lock, because that would block a thread.
fn open(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    for (name, value) in SETTINGS.into_iter().chain([READS_ONLY]) {
        connection.pragma_update(None, name, value)?;
    }
    let length = std::fs::metadata(file).map_or(0, |file| file.len());
    connection.pragma_update(None, "cache_size", -cache_kib(length))?;
    Ok(connection)
}

/// Page cache of a connection in KiB, for the inner index pages: about a thousandth of the file.
///
/// A row itself is seldom read twice, and is read faster through a small cache.
fn cache_kib(length: u64) -> i64 {
    let bytes = (CACHE_BYTES_MIN + length / 1_024).min(CACHE_BYTES_MAX);
    i64::try_from(bytes / 1_024).unwrap_or(i64::MAX)
}

fn first_row(
    connection: &Connection,
    statement: &str,
    bound: &[Value],
) -> rusqlite::Result<Option<PointRow>> {
    let mut statement = connection.prepare_cached(statement)?;
    let columns = statement.column_count();
    let mut rows = statement.query(params_from_iter(bound))?;
    rows.next()?.map(|row| PointRow::copy_from(row, columns)).transpose()
}

#[cfg(test)]
mod tests;
