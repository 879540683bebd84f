//! Look-ups of one row by its key, on the thread of whoever asks.
//!
//! A connection of sqlx lives on a thread of its own, and being woken by it costs several times what SQLite takes for a
//! row. So the few statements that every look-up needs go to connections without a thread (rusqlite, over the same
//! SQLite). A connection is borrowed for one statement, within one poll: whoever goes away has it given back.
//!
//! A row in the page cache takes microseconds, and one on a fast disk some hundred: less than a thread's turn. A disk
//! that lets a read wait for longer is read on threads that may wait ([`Pace`]), so that it never holds up those who
//! ask for something else.

mod pace;
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

use self::pace::Pace;
pub(crate) use self::row::Row;
use super::{
    closed,
    options::{READS_ONLY, SETTINGS},
    readers::unless_blocked,
};
use crate::error::Work;

/// The bounds of [`cache_kib`].
const CACHE_BYTES_MIN: u64 = 512 << 10;
const CACHE_BYTES_MAX: u64 = 16 << 20;

/// A few connections that read one row at a time.
#[derive(Debug)]
pub(super) struct Lookups {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    count: u32,
    patience: Duration,
    runtime: Handle,
}

#[derive(Debug)]
struct Shared {
    file: PathBuf,
    /// Opened when they are first needed, then held. Locked for moments only, never while something is read.
    free: Mutex<Vec<Connection>>,
    pace: Pace,
}

impl Lookups {
    pub(super) fn new(file: &Path, count: u32, patience: Duration) -> Self {
        let shared = Shared { file: file.to_owned(), free: Mutex::default(), pace: Pace::default() };
        let places = Arc::new(Semaphore::new(count as usize));
        Self { shared: Arc::new(shared), places, count, patience, runtime: Handle::current() }
    }

    /// The first row of a statement, with what is bound to it.
    pub(super) async fn row(&self, statement: &'static str, bound: &[Value]) -> Work<Option<Row>> {
        unless_blocked(self.patience, &self.runtime, || self.attempt(statement, bound)).await
    }

    async fn attempt(&self, statement: &'static str, bound: &[Value]) -> Work<Option<Row>> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        if self.shared.pace.is_quick() {
            return self.shared.read(place, statement, bound);
        }
        let (shared, bound) = (Arc::clone(&self.shared), bound.to_vec());
        let read = self.runtime.spawn_blocking(move || shared.read(place, statement, &bound));
        read.await.map_err(|_| closed())?
    }

    /// Waits for what is being read, ends all reading and closes the connections.
    pub(super) async fn close(&self) {
        // Whoever has all places is alone. An error means that it is closed already.
        let alone = self.places.acquire_many(self.count).await;
        self.places.close();
        drop(alone);
        let free = std::mem::take(&mut *self.shared.free());
        // The disk may be waited for.
        self.runtime.spawn_blocking(move || drop(free)).await.ok();
    }
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads, on this thread. The place is given back after the connection.
    fn read(&self, place: OwnedSemaphorePermit, statement: &str, bound: &[Value]) -> Work<Option<Row>> {
        let begun = Instant::now();
        let free = self.free().pop();
        let connection = match free {
            Some(connection) => connection,
            None => open(&self.file)?,
        };
        let row = first_row(&connection, statement, bound)?;
        // After a fault a fresh connection is cheaper than to find out what state this one is in.
        self.free().push(connection);
        drop(place);
        self.pace.took(begun.elapsed());
        Ok(row)
    }
}

/// A connection that reads, and cannot do anything else. It never waits for a lock by itself, since a thread would wait
/// with it.
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

/// How much of a file a connection keeps in memory, in KiB: what leads to the rows, which is about a thousandth of it.
/// A row itself is seldom asked for twice, and passes through the quicker, the less memory it passes through.
fn cache_kib(length: u64) -> i64 {
    let bytes = (CACHE_BYTES_MIN + length / 1_024).min(CACHE_BYTES_MAX);
    i64::try_from(bytes / 1_024).unwrap_or(i64::MAX)
}

fn first_row(connection: &Connection, statement: &str, bound: &[Value]) -> rusqlite::Result<Option<Row>> {
    let mut statement = connection.prepare_cached(statement)?;
    let columns = statement.column_count();
    let mut rows = statement.query(params_from_iter(bound))?;
    rows.next()?.map(|row| Row::of(row, columns)).transpose()
}

#[cfg(test)]
mod tests;
