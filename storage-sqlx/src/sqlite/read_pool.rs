//! Reading connections: opened on first use, then kept open.
//!
//! A pool of sqlx talks to a connection's thread on every return, which doubles the cost of a short read. Here a
//! connection is borrowed and returned without that, also when the borrower is dropped in the middle of a read.
//! Every read is one statement, so nothing stays open after it.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sqlx::{
    ConnectOptions, Connection, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow},
};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, SemaphorePermit},
};

use crate::error::DbResult;

/// A statement with its bound values.
pub(crate) type ReadRequest = Query<'static, Sqlite, SqliteArguments>;

/// Pause between two attempts at a read while another process holds the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// The rows of a statement to fetch.
#[derive(Clone, Copy, Debug)]
enum RowLimit {
    All,
    First,
}

/// A small number of reading connections.
#[derive(Debug)]
pub(crate) struct ReadPool {
    options: SqliteConnectOptions,
    timeout: Duration,
    count: u32,
    permits: Semaphore,
    runtime: Handle,
    free: Mutex<Vec<SqliteConnection>>,
}

impl ReadPool {
    pub(crate) fn new(options: SqliteConnectOptions, count: u32, timeout: Duration) -> Self {
        let permits = Semaphore::new(count as usize);
        Self { options, timeout, count, permits, runtime: Handle::current(), free: Mutex::default() }
    }

    /// The rows of one statement.
    pub(crate) async fn rows(
        &self,
        query: impl Fn() -> ReadRequest + Send + Sync,
    ) -> DbResult<Vec<SqliteRow>> {
        self.read(RowLimit::All, query).await
    }

    /// The first row of one statement.
    ///
    /// Each further row, and the end of the statement, would wake the reader again.
    pub(crate) async fn row(
        &self,
        query: impl Fn() -> ReadRequest + Send + Sync,
    ) -> DbResult<Option<SqliteRow>> {
        Ok(self.read(RowLimit::First, query).await?.pop())
    }

    async fn read(
        &self,
        wanted: RowLimit,
        query: impl Fn() -> ReadRequest + Send + Sync,
    ) -> DbResult<Vec<SqliteRow>> {
        retry_while_locked(self.timeout, &self.runtime, || self.attempt(wanted, query())).await
    }

    async fn attempt(&self, wanted: RowLimit, query: ReadRequest) -> DbResult<Vec<SqliteRow>> {
        let permit = self.permits.acquire().await.map_err(|_| super::closed())?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut borrowed = BorrowedReader { readers: self, connection: None, _permit: permit };
        let connection = borrowed.connection.insert(match free {
            Some(connection) => connection,
            None => self.options.connect().await?,
        });
        let outcome = match wanted {
            RowLimit::All => query.fetch_all(connection).await,
            RowLimit::First => query.fetch_optional(connection).await.map(Vec::from_iter),
        };
        if outcome.is_err() {
            // After an error a new connection is cheaper than checking the state of this one.
            borrowed.connection = None;
        }
        Ok(outcome?)
    }

    /// Waits for running reads, rejects new ones and closes the connections.
    pub(crate) async fn close(&self) {
        // All permits together mean no running read. An error means that it is already closed.
        let alone = self.permits.acquire_many(self.count).await;
        self.permits.close();
        drop(alone);
        let free = std::mem::take(&mut *self.free.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in free {
            if let Err(error) = connection.close().await {
                tracing::debug!(%error, "reading connection close failed");
            }
        }
    }
}

/// Repeats a read while another process holds the lock, up to the timeout.
///
/// A reader of a write-ahead log is blocked only briefly: while the log is recovered after a crash, or deleted by
/// the last process that closes the file.
pub(super) async fn retry_while_locked<T, F: Future<Output = DbResult<T>> + Send>(
    timeout: Duration,
    runtime: &Handle,
    attempt: impl Fn() -> F + Send + Sync,
) -> DbResult<T> {
    let mut started = None;
    loop {
        match attempt().await {
            // The time starts at the first blocked attempt, since most reads are never blocked.
            Err(fault) if fault.is_busy() && started.get_or_insert_with(Instant::now).elapsed() < timeout => {
                // The caller's executor may have no timers.
                runtime.spawn(async { tokio::time::sleep(PAUSE).await }).await.ok();
            }
            outcome => return outcome,
        }
    }
}

/// A borrowed connection that returns to the pool on drop.
struct BorrowedReader<'a> {
    readers: &'a ReadPool,
    connection: Option<SqliteConnection>,
    _permit: SemaphorePermit<'a>,
}

impl Drop for BorrowedReader<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.readers.free.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sqlx::Row;

    use super::*;

    /// Counts to a number: some seconds for ten million, unless interrupted.
    const LONG: &str = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1)
        SELECT x FROM n";

    fn readers(count: u32) -> Arc<ReadPool> {
        let options = SqliteConnectOptions::new().filename(":memory:");
        Arc::new(ReadPool::new(options, count, Duration::from_secs(1)))
    }

    fn idle_count(readers: &ReadPool) -> usize {
        readers.free.lock().unwrap().len()
    }

    #[tokio::test]
    async fn read_pool_cancelled_read_returns_connection() {
        let readers = readers(1);
        readers.rows(|| sqlx::query(LONG).bind(1)).await.unwrap();
        let reading = Arc::clone(&readers);
        let long = tokio::spawn(async move { reading.rows(|| sqlx::query(LONG).bind(10_000_000)).await });
        while idle_count(&readers) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        long.abort();
        assert!(long.await.unwrap_err().is_cancelled());
        assert_eq!(idle_count(&readers), 1);
        let rows = readers.rows(|| sqlx::query(LONG).bind(3)).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>(), [1, 2, 3]);
        assert_eq!(idle_count(&readers), 1);
    }

    #[tokio::test]
    async fn read_pool_close_waits_for_running_read() {
        let readers = readers(2);
        let reading = Arc::clone(&readers);
        let long = tokio::spawn(async move { reading.rows(|| sqlx::query(LONG).bind(200_000)).await });
        while readers.permits.available_permits() == 2 {
            tokio::task::yield_now().await;
        }
        readers.close().await;
        assert_eq!((readers.permits.available_permits(), idle_count(&readers)), (2, 0));
        assert_eq!(long.await.unwrap().unwrap().len(), 200_000);
        readers.rows(|| sqlx::query(LONG).bind(1)).await.unwrap_err();
        readers.close().await;
    }

    #[tokio::test]
    async fn read_pool_connections_open_on_demand_and_stay_open() {
        let readers = readers(3);
        assert_eq!(idle_count(&readers), 0);
        let read = || async { readers.rows(|| sqlx::query(LONG).bind(1_000)).await.unwrap().len() };
        assert_eq!(tokio::join!(read(), read(), read(), read(), read()), (1_000, 1_000, 1_000, 1_000, 1_000));
        assert_eq!(idle_count(&readers), 3);
        readers.rows(|| sqlx::query("SELECT wrong FROM nowhere")).await.unwrap_err();
        assert_eq!(idle_count(&readers), 2);
        readers.close().await;
        readers.rows(|| sqlx::query(LONG).bind(1)).await.unwrap_err();
    }
}
