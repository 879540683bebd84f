//! Tests of the write queue: shared transactions, rejected writes, timeouts and close.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use sqlx::{ConnectOptions, Row, sqlite::SqliteSynchronous};
use transcript_core::ErrorKind;

use super::*;
use crate::error::conflict;

/// Adds a number to a table, waits, then adds its negative.
struct AddTx {
    number: i64,
    ending: WriteEnding,
    runs: Arc<AtomicU32>,
}

/// How a test write ends, between its two inserts.
#[derive(Clone, Copy, PartialEq)]
enum WriteEnding {
    Success,
    Rejection,
    /// A statement fails in the database.
    DatabaseError,
    Panic,
    /// Waits longer than [`TIMEOUT`].
    Timeout,
}

impl WriteTx for AddTx {
    type Outcome = i64;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<i64> {
        self.runs.fetch_add(1, Relaxed);
        sqlx::query("INSERT INTO numbers VALUES (?1)").bind(self.number).execute(&mut *db).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        match self.ending {
            WriteEnding::Success => {}
            WriteEnding::Rejection => return Err(conflict("this number is rejected").into()),
            WriteEnding::DatabaseError => {
                sqlx::query("INSERT INTO nowhere VALUES (1)").execute(&mut *db).await?;
            }
            WriteEnding::Panic => panic!("test panic"),
            WriteEnding::Timeout => tokio::time::sleep(2 * TIMEOUT).await,
        }
        sqlx::query("INSERT INTO numbers VALUES (?1)").bind(-self.number).execute(db).await?;
        Ok(self.number)
    }
}

/// Adds a number's negative in a separate transaction; in a shared transaction it runs as [`AddTx`].
struct SingleTx(AddTx);

impl WriteTx for SingleTx {
    type Outcome = i64;

    async fn run(&self, db: &mut SqliteConnection) -> DbResult<i64> {
        self.0.run(db).await
    }

    async fn run_standalone(&self, db: &mut SqliteConnection) -> Option<TxResult<i64>> {
        Some(self.begin_and_commit(db).await)
    }
}

impl SingleTx {
    async fn begin_and_commit(&self, db: &mut SqliteConnection) -> TxResult<i64> {
        let number = -self.0.number;
        let first = sqlx::query("BEGIN IMMEDIATE; INSERT INTO numbers VALUES (?)").bind(number);
        first.execute(&mut *db).await.map_err(|error| TxError::at_first(error.into()))?;
        self.0.runs.fetch_add(1, Relaxed);
        match self.0.ending {
            WriteEnding::Rejection => return Err(TxError::from_write(conflict("this number is rejected"))),
            WriteEnding::DatabaseError => {
                let nowhere = sqlx::query("INSERT INTO nowhere VALUES (1)");
                nowhere.execute(&mut *db).await.map_err(TxError::from_write)?;
            }
            WriteEnding::Panic => panic!("test panic"),
            WriteEnding::Success | WriteEnding::Timeout => {}
        }
        sqlx::raw_sql("COMMIT").execute(db).await.map_err(TxError::to_commit)?;
        Ok(number)
    }
}

/// Timeout of a caller that is expected to time out.
const TIMEOUT: Duration = Duration::from_secs(2);

struct WriterFixture {
    queue: Arc<WriteQueue>,
    options: SqliteConnectOptions,
    runs: Arc<AtomicU32>,
    _folder: tempfile::TempDir,
}

impl WriterFixture {
    async fn new() -> Self {
        Self::with_timeout(Duration::from_secs(30)).await
    }

    async fn with_timeout(timeout: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("numbers.db");
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let options = options.busy_timeout(Duration::from_millis(50));
        let mut connection = options.connect().await.unwrap();
        sqlx::raw_sql("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
            .execute(&mut connection)
            .await
            .unwrap();
        let queue = WriteQueue::start(connection, options.clone(), file, timeout).unwrap();
        Self { queue: Arc::new(queue), options, runs: Arc::default(), _folder: folder }
    }

    fn add(&self, number: i64, ending: WriteEnding) -> tokio::task::JoinHandle<Result<i64>> {
        let queue = Arc::clone(&self.queue);
        let runs = Arc::clone(&self.runs);
        tokio::spawn(async move { queue.run(AddTx { number, ending, runs }).await })
    }

    fn add_standalone(&self, number: i64, ending: WriteEnding) -> tokio::task::JoinHandle<Result<i64>> {
        let queue = Arc::clone(&self.queue);
        let runs = Arc::clone(&self.runs);
        tokio::spawn(async move { queue.run(SingleTx(AddTx { number, ending, runs })).await })
    }

    async fn numbers(&self) -> Vec<i64> {
        let mut other = self.options.connect().await.unwrap();
        let rows = sqlx::query("SELECT number FROM numbers ORDER BY abs(number), number");
        rows.fetch_all(&mut other).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

#[tokio::test]
async fn writer_cancelled_caller_write_completes() {
    let fixture = WriterFixture::new().await;
    let call = fixture.add(1, WriteEnding::Success);
    while fixture.runs.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    fixture.queue.close().await;
    assert_eq!(fixture.numbers().await, [-1, 1]);
}

#[tokio::test]
async fn writer_failed_write_leaves_batch_intact() {
    let fixture = WriterFixture::new().await;
    // While the first one runs, the others queue up and share the next transaction.
    let first = fixture.add(1, WriteEnding::Success);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let queued = [
        fixture.add(2, WriteEnding::Success),
        fixture.add(3, WriteEnding::Rejection),
        fixture.add(4, WriteEnding::Success),
        fixture.add(5, WriteEnding::DatabaseError),
        fixture.add(6, WriteEnding::Success),
    ];
    assert_eq!(first.await.unwrap().unwrap(), 1);
    let mut kinds = Vec::new();
    for call in queued {
        kinds.push(call.await.unwrap().map_err(|error| error.kind()));
    }
    let (rejected, failed) = (Err(ErrorKind::Conflict), Err(ErrorKind::Unexpected));
    assert_eq!(kinds, [Ok(2), rejected, Ok(4), failed, Ok(6)]);
    assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -4, 4, -6, 6]);
    assert_eq!(
        fixture.runs.load(Relaxed),
        1 + 2 + 5,
        "the batch runs again after the first rejection, and only once"
    );
    fixture.runs.store(0, Relaxed);
    let single = fixture.add(7, WriteEnding::Rejection).await.unwrap();
    assert_eq!(single.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fixture.runs.load(Relaxed), 1, "a single write runs once");
    assert_eq!(fixture.add(8, WriteEnding::Success).await.unwrap().unwrap(), 8);
    assert_eq!(fixture.numbers().await.len(), 10);
}

#[tokio::test]
async fn writer_panicked_write_leaves_batch_intact() {
    let fixture = WriterFixture::new().await;
    let first = fixture.add(1, WriteEnding::Success);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let queued = [
        fixture.add(2, WriteEnding::Success),
        fixture.add(3, WriteEnding::Panic),
        fixture.add(4, WriteEnding::Success),
    ];
    first.await.unwrap().unwrap();
    let mut kinds = Vec::new();
    for call in queued {
        kinds.push(call.await.unwrap().map_err(|error| error.kind()));
    }
    assert_eq!(kinds, [Ok(2), Err(ErrorKind::Unexpected), Ok(4)]);
    assert_eq!(fixture.add(5, WriteEnding::Success).await.unwrap().unwrap(), 5);
    assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -4, 4, -5, 5]);
}

#[tokio::test]
async fn writer_failed_standalone_write_leaves_others_intact() {
    let fixture = WriterFixture::new().await;
    assert_eq!(fixture.add_standalone(1, WriteEnding::Success).await.unwrap().unwrap(), -1);
    for (number, ending, kind) in [
        (2, WriteEnding::Rejection, ErrorKind::Conflict),
        (3, WriteEnding::DatabaseError, ErrorKind::Unexpected),
        (4, WriteEnding::Panic, ErrorKind::Unexpected),
    ] {
        assert_eq!(fixture.add_standalone(number, ending).await.unwrap().unwrap_err().kind(), kind);
        assert_eq!(
            fixture.add_standalone(number + 10, WriteEnding::Success).await.unwrap().unwrap(),
            -number - 10
        );
    }
    assert_eq!(fixture.numbers().await, [-1, -12, -13, -14], "failed writes left no rows");
    // While one runs, the others queue up and share a transaction that is begun for them.
    let first = fixture.add(21, WriteEnding::Success);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let queued = [
        fixture.add_standalone(22, WriteEnding::Success),
        fixture.add_standalone(23, WriteEnding::Rejection),
        fixture.add(24, WriteEnding::Success),
    ];
    first.await.unwrap().unwrap();
    let mut outcomes = Vec::new();
    for call in queued {
        outcomes.push(call.await.unwrap().map_err(|error| error.kind()));
    }
    assert_eq!(outcomes, [Ok(22), Err(ErrorKind::Conflict), Ok(24)]);
    assert_eq!(fixture.numbers().await[4..], [-21, 21, -22, 22, -24, 24]);
}

#[tokio::test]
async fn writer_standalone_write_waits_for_lock() {
    let fixture = WriterFixture::with_timeout(TIMEOUT).await;
    let mut other = fixture.options.connect().await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let late = fixture.add_standalone(1, WriteEnding::Success).await.unwrap().unwrap_err();
    assert_eq!((late.kind(), fixture.runs.load(Relaxed)), (ErrorKind::Unavailable, 0));
    let waits = fixture.add_standalone(2, WriteEnding::Success);
    tokio::time::sleep(Duration::from_millis(5)).await;
    lock.rollback().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap(), -2);
    assert_eq!(fixture.numbers().await, [-2]);
}

#[tokio::test]
async fn writer_write_past_deadline_is_rejected() {
    let fixture = WriterFixture::with_timeout(TIMEOUT).await;
    let slow = fixture.add(-1, WriteEnding::Timeout);
    while fixture.runs.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let started = Instant::now();
    // More than the queue's capacity: some wait in it, some for room.
    let last = i64::try_from(QUEUE_MAX).unwrap() + 50;
    let calls: Vec<_> = (2..=last).map(|number| fixture.add(number, WriteEnding::Success)).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert!(started.elapsed() < 15 * TIMEOUT, "{:?}", started.elapsed());
    assert_eq!(slow.await.unwrap().unwrap(), -1);
    assert_eq!(fixture.runs.load(Relaxed), 1);
    assert_eq!(fixture.add(2, WriteEnding::Success).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn writer_locked_file_times_out_then_recovers() {
    let fixture = WriterFixture::with_timeout(TIMEOUT).await;
    let mut other = fixture.options.connect().await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let calls = [fixture.add(1, WriteEnding::Success), fixture.add(2, WriteEnding::Success)];
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert_eq!(fixture.runs.load(Relaxed), 0);
    lock.rollback().await.unwrap();
    assert_eq!(fixture.add(1, WriteEnding::Success).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn writer_close_completes_queued_writes() {
    let fixture = WriterFixture::new().await;
    let calls: Vec<_> = (1..=3).map(|number| fixture.add(number, WriteEnding::Success)).collect();
    tokio::time::sleep(Duration::from_millis(5)).await;
    fixture.queue.close().await;
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -3, 3]);
    let late = fixture.add(4, WriteEnding::Success).await.unwrap().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Unavailable);
    fixture.queue.close().await;
}

#[tokio::test]
async fn writer_dropped_queue_closes_file() {
    let fixture = WriterFixture::new().await;
    fixture.add(1, WriteEnding::Success).await.unwrap().unwrap();
    drop(fixture.queue);
    let mut other = fixture.options.connect().await.unwrap();
    // Only the last connection to a file can take this lock.
    let mut single = Err(String::new());
    for _ in 0..100 {
        let exclusive = sqlx::raw_sql("PRAGMA journal_mode = DELETE");
        let row = exclusive.fetch_one(&mut other).await;
        single = row.map(|row| row.get::<String, _>(0)).map_err(|error| error.to_string());
        if single.as_deref() == Ok("delete") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the file is still open: {single:?}");
}

/// The synchronous level of the writer's connection: 1 is NORMAL, 3 is EXTRA.
async fn level(writer: &mut Writer) -> i64 {
    let connection = writer.connection.as_mut().unwrap();
    let row = sqlx::raw_sql("PRAGMA synchronous").fetch_one(&mut connection.connection).await.unwrap();
    let level: i64 = row.get(0);
    assert_eq!(connection.syncs_on_commit(), level == 3);
    level
}

#[tokio::test]
async fn writer_uncontended_commits_sync_themselves() {
    let fixture = WriterFixture::new().await;
    let file = fixture.options.get_filename().to_owned();
    let options = fixture.options.clone().synchronous(SqliteSynchronous::Normal);
    let mut writer = Writer {
        connection: None,
        options,
        syncer: WalSyncer::start(&file).unwrap(),
        uncontended: UncontendedCount::default(),
        file,
    };
    let add = |number| {
        let write = AddTx { number, ending: WriteEnding::Success, runs: Arc::clone(&fixture.runs) };
        let (reply, outcome) = oneshot::channel();
        let deadline = Instant::now() + TIMEOUT;
        let request = WriteRequest { write, outcome: None, deadline, reply: Some(reply) };
        (Box::new(request) as Box<dyn QueuedWrite>, outcome)
    };
    let mut number = 0;
    for _ in 0..3 {
        // Other writes compete repeatedly.
        for (others, expect) in [(1, 1), (0, 1)] {
            let (batch, outcomes): (Vec<_>, Vec<_>) = (0..=others)
                .map(|_| {
                    number += 1;
                    add(number)
                })
                .unzip();
            assert!(writer.write(batch).await.is_empty());
            for outcome in outcomes {
                outcome.await.unwrap().unwrap();
            }
            assert_eq!(level(&mut writer).await, expect);
            writer.uncontended.record(others == 0);
        }
        (0..10).for_each(|_| writer.uncontended.record(true));
        number += 1;
        let (write, mut outcome) = add(number);
        assert!(writer.write(vec![write]).await.is_empty());
        assert_eq!(outcome.try_recv().unwrap().unwrap(), number, "the commit is already on disk");
        assert_eq!(level(&mut writer).await, 3);
        assert!(writer.syncer.is_idle());
    }
    assert_eq!(fixture.numbers().await.len() as i64, 2 * number);
}
