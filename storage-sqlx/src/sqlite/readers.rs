//! The connections that read: opened when they are first needed, then held open.
//!
//! A pool of sqlx speaks to a connection's thread whenever one is given back, which doubles the price of
//! a short read. Here a connection is borrowed and given back without a word, also when the borrower is
//! dropped in the middle of a read; every read is one statement, so nothing stays open behind it.

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

use crate::error::Work;

/// A statement with what is bound to it.
pub(crate) type Ask = Query<'static, Sqlite, SqliteArguments>;

/// How long to wait between two attempts at a read that another process blocks.
const PAUSE: Duration = Duration::from_millis(5);

/// How many of a statement's rows are wanted.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    All,
    First,
}

/// A small number of reading connections.
#[derive(Debug)]
pub(crate) struct Readers {
    options: SqliteConnectOptions,
    patience: Duration,
    count: u32,
    places: Semaphore,
    runtime: Handle,
    free: Mutex<Vec<SqliteConnection>>,
}

impl Readers {
    pub(crate) fn new(options: SqliteConnectOptions, count: u32, patience: Duration) -> Self {
        let places = Semaphore::new(count as usize);
        Self { options, patience, count, places, runtime: Handle::current(), free: Mutex::default() }
    }

    /// The rows of one statement.
    pub(crate) async fn rows(&self, ask: impl Fn() -> Ask + Send + Sync) -> Work<Vec<SqliteRow>> {
        self.read(Wanted::All, ask).await
    }

    /// The first row of one statement. Each further row would wake the reader again, and ending the
    /// statement once more.
    pub(crate) async fn row(&self, ask: impl Fn() -> Ask + Send + Sync) -> Work<Option<SqliteRow>> {
        Ok(self.read(Wanted::First, ask).await?.pop())
    }

    async fn read(&self, wanted: Wanted, ask: impl Fn() -> Ask + Send + Sync) -> Work<Vec<SqliteRow>> {
        unless_blocked(self.patience, &self.runtime, || self.attempt(wanted, ask())).await
    }

    async fn attempt(&self, wanted: Wanted, ask: Ask) -> Work<Vec<SqliteRow>> {
        let place = self.places.acquire().await.map_err(|_| super::closed())?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut borrowed = Borrowed { readers: self, connection: None, _place: place };
        let connection = borrowed.connection.insert(match free {
            Some(connection) => connection,
            None => self.options.connect().await?,
        });
        let outcome = match wanted {
            Wanted::All => ask.fetch_all(connection).await,
            Wanted::First => ask.fetch_optional(connection).await.map(Vec::from_iter),
        };
        if outcome.is_err() {
            // After a fault a fresh connection is cheaper than to find out what state this one is in.
            borrowed.connection = None;
        }
        Ok(outcome?)
    }

    /// Waits for what is being read, ends all reading and closes the connections.
    pub(crate) async fn close(&self) {
        // Whoever has all places is alone. An error means that it is closed already.
        let alone = self.places.acquire_many(self.count).await;
        self.places.close();
        drop(alone);
        let free = std::mem::take(&mut *self.free.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in free {
            if let Err(error) = connection.close().await {
                tracing::debug!(%error, "a reading connection did not close in order");
            }
        }
    }
}

/// Reads, again and again while another process blocks it, as long as this patience lasts.
///
/// A reader of a write-ahead log is blocked only for moments: while the log is recovered after a
/// crash, or taken away by the last process that closes the file.
pub(super) async fn unless_blocked<T, F: Future<Output = Work<T>> + Send>(
    patience: Duration,
    runtime: &Handle,
    attempt: impl Fn() -> F + Send + Sync,
) -> Work<T> {
    let mut begun = None;
    loop {
        match attempt().await {
            // Counted from the first time, since most are not blocked at all.
            Err(fault) if fault.is_busy() && begun.get_or_insert_with(Instant::now).elapsed() < patience => {
                // The caller's executor may have no timers.
                runtime.spawn(async { tokio::time::sleep(PAUSE).await }).await.ok();
            }
            outcome => return outcome,
        }
    }
}

/// A connection that goes back when it is dropped.
struct Borrowed<'a> {
    readers: &'a Readers,
    connection: Option<SqliteConnection>,
    _place: SemaphorePermit<'a>,
}

impl Drop for Borrowed<'_> {
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

    /// Counts to ten million: some seconds, unless it is interrupted.
    const LONG: &str = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1)
        SELECT x FROM n";

    fn readers(count: u32) -> Arc<Readers> {
        let options = SqliteConnectOptions::new().filename(":memory:");
        Arc::new(Readers::new(options, count, Duration::from_secs(1)))
    }

    fn held(readers: &Readers) -> usize {
        readers.free.lock().unwrap().len()
    }

    #[tokio::test]
    async fn a_reader_who_goes_away_gives_its_connection_back() {
        let readers = readers(1);
        readers.rows(|| sqlx::query(LONG).bind(1)).await.unwrap();
        let reading = Arc::clone(&readers);
        let long = tokio::spawn(async move { reading.rows(|| sqlx::query(LONG).bind(10_000_000)).await });
        while held(&readers) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        long.abort();
        assert!(long.await.unwrap_err().is_cancelled());
        assert_eq!(held(&readers), 1);
        let rows = readers.rows(|| sqlx::query(LONG).bind(3)).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>(), [1, 2, 3]);
        assert_eq!(held(&readers), 1);
    }

    #[tokio::test]
    async fn closing_waits_for_what_is_being_read() {
        let readers = readers(2);
        let reading = Arc::clone(&readers);
        let long = tokio::spawn(async move { reading.rows(|| sqlx::query(LONG).bind(200_000)).await });
        while readers.places.available_permits() == 2 {
            tokio::task::yield_now().await;
        }
        readers.close().await;
        assert_eq!((readers.places.available_permits(), held(&readers)), (2, 0));
        assert_eq!(long.await.unwrap().unwrap().len(), 200_000);
        readers.rows(|| sqlx::query(LONG).bind(1)).await.unwrap_err();
        readers.close().await;
    }

    #[tokio::test]
    async fn connections_are_opened_when_needed_and_then_held() {
        let readers = readers(3);
        assert_eq!(held(&readers), 0);
        let read = || async { readers.rows(|| sqlx::query(LONG).bind(1_000)).await.unwrap().len() };
        assert_eq!(tokio::join!(read(), read(), read(), read(), read()), (1_000, 1_000, 1_000, 1_000, 1_000));
        assert_eq!(held(&readers), 3);
        readers.rows(|| sqlx::query("SELECT wrong FROM nowhere")).await.unwrap_err();
        assert_eq!(held(&readers), 2);
        readers.close().await;
        readers.rows(|| sqlx::query(LONG).bind(1)).await.unwrap_err();
    }
}
