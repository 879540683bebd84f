use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use rusqlite::Connection;

use super::*;
use crate::sql::values;

/// Counts to a number: some seconds for ten million.
const COUNT: &str =
    "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1) SELECT max(x) FROM n";

/// Lists the numbers up to one.
const LIST: &str =
    "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1) SELECT x FROM n";

fn opened(file: &Path) -> Arc<DatabaseFile> {
    Arc::new(DatabaseFile::new(file, "numbers").unwrap())
}

/// A read pool on a file with one table.
fn reader(folder: &Path, count: u32) -> Arc<ReadPool> {
    let file = folder.join("numbers.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE numbers (n, text, bytes)").unwrap();
    connection
        .execute("INSERT INTO numbers VALUES (1, 'one', x'01'), (2, CAST(x'ff' AS TEXT), NULL)", [])
        .unwrap();
    Arc::new(ReadPool::new(&opened(&file), count, Duration::from_secs(5)))
}

async fn count(reader: &ReadPool, to: i64) -> DbResult<i64> {
    reader.row(COUNT, &values![to]).await.map(|row| row.unwrap().take(0).unwrap())
}

async fn list(reader: &ReadPool, to: i64) -> DbResult<Vec<i64>> {
    reader.rows(LIST, &values![to]).await?.iter().map(|row| row.get(0)).collect()
}

fn idle_count(reader: &ReadPool) -> usize {
    reader.shared.free().len()
}

#[tokio::test]
async fn point_read_completes_within_one_poll() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 2);
    let mut reading = Box::pin(count(&reader, 1_000));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let read = Future::poll(reading.as_mut(), &mut context);
    assert!(matches!(read, std::task::Poll::Ready(Ok(1_000))));
}

#[tokio::test]
async fn point_read_slow_disk_uses_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 2);
    (0..4).for_each(|_| reader.shared.latency_gate.record(Duration::from_secs(60)));
    let reading = Arc::clone(&reader);
    // This test has one thread: it continues while the other thread counts.
    let long = tokio::spawn(async move { count(&reading, 5_000_000).await });
    while reader.row_permits.available_permits() == 2 {
        tokio::task::yield_now().await;
    }
    assert!(!long.is_finished());
    // A cancelled caller leaves nothing behind.
    long.abort();
    assert!(long.await.unwrap_err().is_cancelled());
    assert_eq!(count(&reader, 3).await.unwrap(), 3);
    reader.close().await;
    assert_eq!(idle_count(&reader), 0);
    assert!(count(&reader, 3).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn point_read_connections_stay_within_permits() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 3);
    let idle_max = Arc::new(AtomicUsize::new(0));
    let readers = (0..64).map(|_| {
        let (reader, idle_max) = (Arc::clone(&reader), Arc::clone(&idle_max));
        tokio::spawn(async move {
            assert_eq!(count(&reader, 20_000).await.unwrap(), 20_000);
            idle_max.fetch_max(idle_count(&reader), Ordering::Relaxed);
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    let (idle_max, free) = (idle_max.load(Ordering::Relaxed), idle_count(&reader));
    assert!((1..=3).contains(&idle_max) && free <= 3, "{idle_max}, {free}");
    reader.close().await;
    assert_eq!(idle_count(&reader), 0);
}

#[tokio::test]
async fn point_read_value_of_other_type_is_error() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 1);
    let query = "SELECT n, text, bytes, NULL FROM numbers WHERE n = ?1";
    let mut row = reader.row(query, &values![1_i64]).await.unwrap().unwrap();
    assert_eq!(row.take::<Option<i64>>(0).unwrap(), Some(1));
    assert_eq!(row.take::<String>(1).unwrap(), "one");
    assert_eq!(row.take::<Vec<u8>>(2).unwrap(), [1]);
    assert_eq!(row.take::<Option<i64>>(3).unwrap(), None);
    assert!(reader.row(query, &values![3_i64]).await.unwrap().is_none());
    // A value of another type, null, a missing column, and text that is not UTF-8.
    let mut row = reader.row(query, &values![1_i64]).await.unwrap().unwrap();
    for column in 0..4 {
        let read = if column == 1 { row.take::<i64>(1).err() } else { row.take::<String>(column).err() };
        let error = read.unwrap().into_error(Path::new("numbers.db"));
        assert!(error.message().contains("numbers.db cannot be read back"), "{error}");
    }
    row.take::<i64>(9).unwrap_err();
    let mut row = reader.row(query, &values![2_i64]).await.unwrap().unwrap();
    let error = row.take::<String>(1).unwrap_err().into_error(Path::new("numbers.db"));
    assert_eq!(error.kind(), transcript_core::ErrorKind::Corrupt);
    // Only reads are possible.
    let change = reader.row("DELETE FROM numbers RETURNING n", &[]).await.unwrap_err();
    let error = change.into_error(Path::new("numbers.db"));
    assert!(error.message().contains("read-only"), "{error}");
    let error = reader.row("SELECT wrong FROM nowhere", &[]).await.unwrap_err();
    assert!(!error.is_busy());
    assert!(error.into_error(Path::new("numbers.db")).message().contains("code 1"));
}

#[tokio::test]
async fn point_read_locked_file_waits_without_thread() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 1);
    let file = folder.path().join("numbers.db");
    // Exclusive access to the file, as a copy has.
    let exclusive = Connection::open(&file).unwrap();
    exclusive.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").unwrap();
    let reading = Arc::clone(&reader);
    let waiting = tokio::spawn(async move { count_numbers(&reading).await });
    // This test has one thread, which continues in the meantime.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    drop(exclusive);
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
    let exclusive = Connection::open(&file).unwrap();
    drop(reader);
    exclusive.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").unwrap();
    let short_timeout = ReadPool::new(&opened(&file), 1, Duration::from_millis(20));
    let error = count_numbers(&short_timeout).await.unwrap_err();
    assert!(error.is_busy());
    assert!(error.into_error(&file).message().contains("locked by another process"));
}

async fn count_numbers(reader: &ReadPool) -> DbResult<i64> {
    reader.row("SELECT count(*) FROM numbers", &[]).await.map(|row| row.unwrap().take(0).unwrap())
}

#[tokio::test]
async fn point_read_changed_schema_prepares_statement_again() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 1);
    let other = Connection::open(folder.path().join("numbers.db")).unwrap();
    assert_eq!(count_numbers(&reader).await.unwrap(), 2);
    other.execute_batch("ALTER TABLE numbers ADD COLUMN more; CREATE INDEX by_n ON numbers (n)").unwrap();
    other.execute_batch("INSERT INTO numbers VALUES (3, 'three', NULL, NULL)").unwrap();
    assert_eq!(count_numbers(&reader).await.unwrap(), 3);
}

#[test]
fn point_read_sees_committed_rows_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reader = runtime.block_on(async { reader(folder.path(), 2) });
    let file = folder.path().join("numbers.db");
    let committed = Arc::new(AtomicUsize::new(2));
    let counted = Arc::clone(&committed);
    let writer = thread::spawn(move || {
        let writer = Connection::open(file).unwrap();
        for n in 3..500 {
            writer
                .execute("INSERT INTO numbers VALUES (?1, 'more', NULL)", [i64::try_from(n).unwrap()])
                .unwrap();
            counted.store(n, Ordering::Release);
        }
    });
    while !writer.is_finished() {
        let known = committed.load(Ordering::Acquire);
        let found = usize::try_from(runtime.block_on(count_numbers(&reader)).unwrap()).unwrap();
        assert!(known <= found, "{found} of {known}");
    }
    writer.join().unwrap();
    assert_eq!(runtime.block_on(count_numbers(&reader)).unwrap(), 499);
}

#[tokio::test]
async fn read_pool_cancelled_list_returns_connection() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 1);
    let reading = Arc::clone(&reader);
    let long = tokio::spawn(async move { list(&reading, 100_000).await });
    while reader.list_permits.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    // A list takes no permit of single rows.
    assert_eq!(count(&reader, 3).await.unwrap(), 3);
    long.abort();
    assert!(long.await.unwrap_err().is_cancelled());
    assert_eq!(list(&reader, 3).await.unwrap(), [1, 2, 3]);
    assert!((1..=2).contains(&idle_count(&reader)));
}

#[tokio::test]
async fn read_pool_close_waits_for_running_list() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 2);
    let reading = Arc::clone(&reader);
    let long = tokio::spawn(async move { list(&reading, 200_000).await });
    while reader.list_permits.available_permits() == 2 {
        tokio::task::yield_now().await;
    }
    reader.close().await;
    assert_eq!((reader.list_permits.available_permits(), idle_count(&reader)), (2, 0));
    assert_eq!(long.await.unwrap().unwrap().len(), 200_000);
    assert!(list(&reader, 1).await.is_err());
    reader.close().await;
}

#[tokio::test]
async fn read_pool_connections_open_on_demand_and_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let reader = reader(folder.path(), 3);
    assert_eq!(idle_count(&reader), 0);
    let read = || async { list(&reader, 20_000).await.unwrap().len() };
    let lists = tokio::join!(read(), read(), read(), read(), read());
    assert_eq!(lists, (20_000, 20_000, 20_000, 20_000, 20_000));
    let idle = idle_count(&reader);
    assert!((1..=3).contains(&idle), "{idle}");
    reader.rows("SELECT wrong FROM nowhere", &[]).await.unwrap_err();
    assert_eq!(idle_count(&reader), idle - 1);
    reader.close().await;
    assert!(list(&reader, 1).await.is_err());
}
