use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::*;

/// Counts to a number: some seconds for ten million.
const COUNT: &str =
    "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1) SELECT max(x) FROM n";

/// Look-ups in a file with one table.
fn lookups(folder: &Path, count: u32) -> Arc<Lookups> {
    let file = folder.join("numbers.db");
    let made = Connection::open(&file).unwrap();
    made.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE numbers (n, text, bytes)").unwrap();
    made.execute("INSERT INTO numbers VALUES (1, 'one', x'01'), (2, CAST(x'ff' AS TEXT), NULL)", []).unwrap();
    Arc::new(Lookups::new(&file, count, Duration::from_secs(5)))
}

async fn count(lookups: &Lookups, to: i64) -> Work<i64> {
    lookups.row(COUNT, &[Value::Integer(to)]).await.map(|row| row.unwrap().take(0).unwrap())
}

#[tokio::test]
async fn what_is_read_is_read_on_the_thread_of_whoever_asks() {
    let folder = tempfile::tempdir().unwrap();
    let lookups = lookups(folder.path(), 2);
    let mut reading = Box::pin(count(&lookups, 1_000));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let read = Future::poll(reading.as_mut(), &mut context);
    assert!(matches!(read, std::task::Poll::Ready(Ok(1_000))));
}

#[tokio::test]
async fn a_slow_disk_is_waited_for_on_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    let lookups = lookups(folder.path(), 2);
    (0..4).for_each(|_| lookups.shared.pace.took(Duration::from_secs(60)));
    let reading = Arc::clone(&lookups);
    // This test has one thread: it goes on while the other one counts.
    let long = tokio::spawn(async move { count(&reading, 5_000_000).await });
    while lookups.places.available_permits() == 2 {
        tokio::task::yield_now().await;
    }
    assert!(!long.is_finished());
    // Whoever goes away leaves nothing behind.
    long.abort();
    assert!(long.await.unwrap_err().is_cancelled());
    assert_eq!(count(&lookups, 3).await.unwrap(), 3);
    lookups.close().await;
    assert_eq!(lookups.shared.free().len(), 0);
    assert!(count(&lookups, 3).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn there_are_no_more_connections_than_places() {
    let folder = tempfile::tempdir().unwrap();
    let lookups = lookups(folder.path(), 3);
    let most = Arc::new(AtomicUsize::new(0));
    let readers = (0..64).map(|_| {
        let (lookups, most) = (Arc::clone(&lookups), Arc::clone(&most));
        tokio::spawn(async move {
            assert_eq!(count(&lookups, 20_000).await.unwrap(), 20_000);
            most.fetch_max(lookups.shared.free().len(), Ordering::Relaxed);
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    let (most, free) = (most.load(Ordering::Relaxed), lookups.shared.free().len());
    assert!((1..=3).contains(&most) && free <= 3, "{most}, {free}");
    lookups.close().await;
    assert_eq!(lookups.shared.free().len(), 0);
}

#[tokio::test]
async fn values_come_as_they_are_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let lookups = lookups(folder.path(), 1);
    let ask = "SELECT n, text, bytes, NULL FROM numbers WHERE n = ?1";
    let mut row = lookups.row(ask, &[Value::Integer(1)]).await.unwrap().unwrap();
    assert_eq!(row.take::<Option<i64>>(0).unwrap(), Some(1));
    assert_eq!(row.take::<String>(1).unwrap(), "one");
    assert_eq!(row.take::<Vec<u8>>(2).unwrap(), [1]);
    assert_eq!(row.take::<Option<i64>>(3).unwrap(), None);
    assert!(lookups.row(ask, &[Value::Integer(3)]).await.unwrap().is_none());
    // Of another type, null, not there, and no text.
    let mut row = lookups.row(ask, &[Value::Integer(1)]).await.unwrap().unwrap();
    for column in 0..4 {
        let read = if column == 1 { row.take::<i64>(1).err() } else { row.take::<String>(column).err() };
        let error = read.unwrap().into_error(Path::new("numbers.db"));
        assert!(error.message().contains("numbers.db cannot be read back"), "{error}");
    }
    row.take::<i64>(9).unwrap_err();
    let error = lookups.row(ask, &[Value::Integer(2)]).await.unwrap_err().into_error(Path::new("numbers.db"));
    assert_eq!(error.kind(), transcript_core::ErrorKind::Corrupt);
    // Nothing but reading.
    let change = lookups.row("DELETE FROM numbers RETURNING n", &[]).await.unwrap_err();
    let error = change.into_error(Path::new("numbers.db"));
    assert!(error.message().contains("read-only"), "{error}");
    let wrong = lookups.row("SELECT wrong FROM nowhere", &[]).await.unwrap_err();
    assert!(!wrong.is_busy());
    assert!(wrong.into_error(Path::new("numbers.db")).message().contains("code 1"));
}

#[tokio::test]
async fn a_lock_is_waited_for_without_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let lookups = lookups(folder.path(), 1);
    let file = folder.path().join("numbers.db");
    // Alone with the file, as whoever copies it is.
    let alone = Connection::open(&file).unwrap();
    alone.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").unwrap();
    let reading = Arc::clone(&lookups);
    let waiting = tokio::spawn(async move { count_numbers(&reading).await });
    // This test has one thread, which goes on meanwhile.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiting.is_finished());
    drop(alone);
    assert_eq!(waiting.await.unwrap().unwrap(), 2);
    let alone = Connection::open(&file).unwrap();
    drop(lookups);
    alone.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").unwrap();
    let impatient = Lookups::new(&file, 1, Duration::from_millis(20));
    let error = count_numbers(&impatient).await.unwrap_err();
    assert!(error.is_busy());
    assert!(error.into_error(&file).message().contains("locked by another process"));
}

async fn count_numbers(lookups: &Lookups) -> Work<i64> {
    lookups.row("SELECT count(*) FROM numbers", &[]).await.map(|row| row.unwrap().take(0).unwrap())
}

#[tokio::test]
async fn a_statement_is_made_anew_when_the_tables_change() {
    let folder = tempfile::tempdir().unwrap();
    let lookups = lookups(folder.path(), 1);
    let other = Connection::open(folder.path().join("numbers.db")).unwrap();
    assert_eq!(count_numbers(&lookups).await.unwrap(), 2);
    other.execute_batch("ALTER TABLE numbers ADD COLUMN more; CREATE INDEX by_n ON numbers (n)").unwrap();
    other.execute_batch("INSERT INTO numbers VALUES (3, 'three', NULL, NULL)").unwrap();
    assert_eq!(count_numbers(&lookups).await.unwrap(), 3);
}

#[test]
fn what_was_committed_is_seen_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lookups = runtime.block_on(async { lookups(folder.path(), 2) });
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
        let seen = usize::try_from(runtime.block_on(count_numbers(&lookups)).unwrap()).unwrap();
        assert!(known <= seen, "{seen} of {known}");
    }
    writer.join().unwrap();
    assert_eq!(runtime.block_on(count_numbers(&lookups)).unwrap(), 499);
}
