//! Tests of the write queue: shared transactions, rejected writes, timeouts and close.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rusqlite::Connection;
use tokio::sync::Mutex;
use transcript_core::ErrorKind;

use super::*;
use crate::sql::{Session, values};

/// Adds a number to a table, waits until no test holds the gate, then adds its negative.
struct AddTx {
    number: i64,
    ending: WriteEnding,
    runs: Arc<AtomicU32>,
    gate: Arc<Mutex<()>>,
}

/// How a test write ends, between its two inserts.
#[derive(Clone, Copy, PartialEq)]
enum WriteEnding {
    Success,
    Rejection,
    /// A statement fails in the database.
    DatabaseError,
    Panic,
    /// Waits for something that no statement can provide.
    Pending,
}

impl WriteTx for AddTx {
    type Outcome = i64;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<i64> {
        self.runs.fetch_add(1, Relaxed);
        db.execute("INSERT INTO numbers VALUES (?1)", &values![self.number]).await?;
        drop(self.gate.blocking_lock());
        match self.ending {
            WriteEnding::Success => {}
            WriteEnding::Rejection => return Err(Error::conflict("this number is rejected").into()),
            WriteEnding::DatabaseError => {
                db.execute("INSERT INTO nowhere VALUES (1)", &[]).await?;
            }
            WriteEnding::Panic => panic!("test panic"),
            WriteEnding::Pending => std::future::pending().await,
        }
        db.execute("INSERT INTO numbers VALUES (?1)", &values![-self.number]).await?;
        Ok(self.number)
    }
}

/// An [`AddTx`] that is not run for a caller that disconnected.
struct CancellableTx(AddTx);

impl WriteTx for CancellableTx {
    type Outcome = i64;

    const IS_CANCELLABLE: bool = true;

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<i64> {
        self.0.run(db).await
    }
}

/// Timeout of a caller that is expected to time out.
const TIMEOUT: Duration = Duration::from_secs(2);

struct WriterFixture {
    queue: Arc<WriteQueue>,
    file: PathBuf,
    runs: Arc<AtomicU32>,
    gate: Arc<Mutex<()>>,
    _folder: tempfile::TempDir,
}

/// A connection to the file of a fixture.
fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_timeout(Duration::from_millis(50)).unwrap();
    connection.execute_batch("PRAGMA synchronous = NORMAL").unwrap();
    connection
}

impl WriterFixture {
    fn new() -> Self {
        Self::with_timeout(Duration::from_secs(30))
    }

    fn with_timeout(timeout: Duration) -> Self {
        Self::with_journal(timeout, "WAL")
    }

    fn with_journal(timeout: Duration, journal: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("numbers.db");
        let connection = open(&file);
        connection.pragma_update(None, "journal_mode", journal).unwrap();
        connection.execute_batch("CREATE TABLE numbers (number INTEGER PRIMARY KEY)").unwrap();
        let path = file.clone();
        let reopen = Box::new(move || Ok(SqliteSession::new(open(&path))));
        let session = SqliteSession::new(connection);
        let opened = Arc::new(DatabaseFile::new(&file, "numbers").unwrap());
        let queue = WriteQueue::start(session, reopen, opened, timeout).unwrap();
        Self { queue: Arc::new(queue), file, runs: Arc::default(), gate: Arc::default(), _folder: folder }
    }

    fn tx(&self, number: i64, ending: WriteEnding) -> AddTx {
        AddTx { number, ending, runs: Arc::clone(&self.runs), gate: Arc::clone(&self.gate) }
    }

    fn run<C: WriteTx>(&self, write: C) -> tokio::task::JoinHandle<Result<C::Outcome>> {
        let queue = Arc::clone(&self.queue);
        tokio::spawn(async move { queue.run(write).await })
    }

    fn add(&self, number: i64, ending: WriteEnding) -> tokio::task::JoinHandle<Result<i64>> {
        self.run(self.tx(number, ending))
    }

    fn numbers(&self) -> Vec<i64> {
        let other = open(&self.file);
        let mut statement = other.prepare("SELECT number FROM numbers ORDER BY abs(number), number").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
    }

    /// Waits until writes have run this many times.
    async fn wait_for_runs(&self, count: u32) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.runs.load(Relaxed) < count {
            assert!(Instant::now() < deadline, "the writes do not run");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until this many writes are queued.
    async fn wait_for_queue(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while QUEUE_MAX - self.queue.sender.capacity() < count {
            assert!(Instant::now() < deadline, "the writes are not queued");
            tokio::task::yield_now().await;
        }
    }
}

/// The kind of an error after which the write is certainly not stored.
fn kind(failed: Error) -> ErrorKind {
    assert!(failed.has_no_effect(), "{failed:?}");
    failed.kind()
}

#[tokio::test]
async fn writer_cancelled_caller_write_completes() {
    let fixture = WriterFixture::new();
    let gate = fixture.gate.lock().await;
    let call = fixture.add(1, WriteEnding::Success);
    fixture.wait_for_runs(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    drop(gate);
    fixture.queue.close().await;
    assert_eq!(fixture.numbers(), [-1, 1]);
}

#[tokio::test]
async fn writer_failed_write_leaves_batch_intact() {
    let fixture = WriterFixture::new();
    // While the first one runs, the others queue up and share the next transaction.
    let gate = fixture.gate.lock().await;
    let first = fixture.add(1, WriteEnding::Success);
    fixture.wait_for_runs(1).await;
    let queued = [
        fixture.add(2, WriteEnding::Success),
        fixture.add(3, WriteEnding::Rejection),
        fixture.add(4, WriteEnding::Success),
        fixture.add(5, WriteEnding::DatabaseError),
        fixture.add(6, WriteEnding::Success),
    ];
    fixture.wait_for_queue(5).await;
    drop(gate);
    assert_eq!(first.await.unwrap().unwrap(), 1);
    let mut kinds = Vec::new();
    for call in queued {
        kinds.push(call.await.unwrap().map_err(kind));
    }
    let (rejected, failed) = (Err(ErrorKind::Conflict), Err(ErrorKind::Unexpected));
    assert_eq!(kinds, [Ok(2), rejected, Ok(4), failed, Ok(6)]);
    assert_eq!(fixture.numbers(), [-1, 1, -2, 2, -4, 4, -6, 6]);
    assert_eq!(
        fixture.runs.load(Relaxed),
        1 + 2 + 5,
        "the batch runs again after the first rejection, and only once"
    );
    fixture.runs.store(0, Relaxed);
    let single = fixture.add(7, WriteEnding::Rejection).await.unwrap();
    assert_eq!(single.map_err(kind), Err(ErrorKind::Conflict));
    assert_eq!(fixture.runs.load(Relaxed), 1, "a single write runs once");
    assert_eq!(fixture.add(8, WriteEnding::Success).await.unwrap().unwrap(), 8);
    assert_eq!(fixture.numbers().len(), 10);
}

#[tokio::test]
async fn writer_panicked_write_leaves_batch_intact() {
    let fixture = WriterFixture::new();
    let gate = fixture.gate.lock().await;
    let first = fixture.add(1, WriteEnding::Success);
    fixture.wait_for_runs(1).await;
    let queued = [
        fixture.add(2, WriteEnding::Success),
        fixture.add(3, WriteEnding::Panic),
        fixture.add(4, WriteEnding::Pending),
        fixture.add(5, WriteEnding::Success),
    ];
    fixture.wait_for_queue(4).await;
    drop(gate);
    first.await.unwrap().unwrap();
    let mut kinds = Vec::new();
    for call in queued {
        kinds.push(call.await.unwrap().map_err(kind));
    }
    let failed = Err(ErrorKind::Unexpected);
    assert_eq!(kinds, [Ok(2), failed, failed, Ok(5)]);
    assert_eq!(fixture.add(6, WriteEnding::Success).await.unwrap().unwrap(), 6);
    assert_eq!(fixture.numbers(), [-1, 1, -2, 2, -5, 5, -6, 6]);
}

#[tokio::test]
async fn writer_cancelled_write_is_skipped_if_cancellable() {
    let fixture = WriterFixture::new();
    let gate = fixture.gate.lock().await;
    let first = fixture.add(1, WriteEnding::Success);
    fixture.wait_for_runs(1).await;
    let stays = fixture.run(CancellableTx(fixture.tx(2, WriteEnding::Success)));
    let leaves = fixture.run(CancellableTx(fixture.tx(3, WriteEnding::Success)));
    let leaves_too = fixture.add(4, WriteEnding::Success);
    fixture.wait_for_queue(3).await;
    leaves.abort();
    leaves_too.abort();
    assert!(leaves.await.unwrap_err().is_cancelled() && leaves_too.await.unwrap_err().is_cancelled());
    drop(gate);
    assert_eq!((first.await.unwrap().unwrap(), stays.await.unwrap().unwrap()), (1, 2));
    fixture.queue.close().await;
    assert_eq!(fixture.numbers(), [-1, 1, -2, 2, -4, 4]);
}

/// A file with a journal cannot be committed while another process reads it.
#[tokio::test]
async fn writer_blocked_commit_runs_again() {
    let fixture = WriterFixture::with_journal(TIMEOUT, "DELETE");
    fixture.add(1, WriteEnding::Success).await.unwrap().unwrap();
    let other = open(&fixture.file);
    let read_numbers = "BEGIN; SELECT count(*) FROM numbers";
    other.execute_batch(read_numbers).unwrap();
    fixture.runs.store(0, Relaxed);
    let late = fixture.add(2, WriteEnding::Success).await.unwrap().map_err(kind);
    assert_eq!(late, Err(ErrorKind::Unavailable));
    let runs = fixture.runs.load(Relaxed);
    assert!(runs > 1);
    let waits = fixture.add(3, WriteEnding::Success);
    fixture.wait_for_runs(runs + 2).await;
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(waits.await.unwrap().unwrap(), 3);
    assert_eq!(fixture.numbers(), [-1, 1, -3, 3]);
}

#[tokio::test]
async fn writer_write_past_deadline_is_rejected() {
    let fixture = WriterFixture::with_timeout(TIMEOUT);
    let gate = fixture.gate.lock().await;
    let slow = fixture.add(-1, WriteEnding::Success);
    fixture.wait_for_runs(1).await;
    // More than the queue's capacity: some wait in it until they are late, some are rejected at once.
    let last = i64::try_from(QUEUE_MAX).unwrap() + 50;
    let calls: Vec<_> = (2..=last).map(|number| fixture.add(number, WriteEnding::Success)).collect();
    fixture.wait_for_queue(QUEUE_MAX).await;
    tokio::time::sleep(TIMEOUT).await;
    drop(gate);
    for call in calls {
        assert_eq!(call.await.unwrap().map_err(kind), Err(ErrorKind::Unavailable));
    }
    assert_eq!(slow.await.unwrap().unwrap(), -1);
    assert_eq!(fixture.runs.load(Relaxed), 1);
    assert_eq!(fixture.add(2, WriteEnding::Success).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn writer_locked_file_times_out_then_recovers() {
    let fixture = WriterFixture::with_timeout(TIMEOUT);
    let other = open(&fixture.file);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let calls = [fixture.add(1, WriteEnding::Success), fixture.add(2, WriteEnding::Success)];
    for call in calls {
        assert_eq!(call.await.unwrap().map_err(kind), Err(ErrorKind::Unavailable));
    }
    assert_eq!(fixture.runs.load(Relaxed), 0);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(fixture.add(1, WriteEnding::Success).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn writer_close_completes_queued_writes() {
    let fixture = WriterFixture::new();
    let gate = fixture.gate.lock().await;
    let calls: Vec<_> = (1..=3).map(|number| fixture.add(number, WriteEnding::Success)).collect();
    fixture.wait_for_runs(1).await;
    tokio::join!(fixture.queue.close(), async { drop(gate) });
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(fixture.numbers(), [-1, 1, -2, 2, -3, 3]);
    let late = fixture.add(4, WriteEnding::Success).await.unwrap().map_err(kind);
    assert_eq!(late, Err(ErrorKind::Unavailable));
    fixture.queue.close().await;
}

#[tokio::test]
async fn writer_dropped_queue_closes_file() {
    let fixture = WriterFixture::new();
    fixture.add(1, WriteEnding::Success).await.unwrap().unwrap();
    drop(fixture.queue);
    let other = open(&fixture.file);
    // Only the last connection to a file can take this lock.
    let mut mode = Err(String::new());
    for _ in 0..6_000 {
        let row = other.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
        mode = row.map_err(|error| error.to_string());
        if mode.as_deref() == Ok("delete") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the file is still open: {mode:?}");
}

/// A write that sends the thread which acknowledges it, and whether it succeeded.
struct AckThread {
    sender: std::sync::mpsc::Sender<(thread::ThreadId, bool)>,
    needs_sync: bool,
}

impl QueuedWrite for AckThread {
    fn run(&mut self, db: &mut SqliteSession) -> DbResult<()> {
        db.change("INSERT INTO numbers VALUES (1)", &[]).map(drop)
    }

    fn reject(&mut self, error: Error) {
        panic!("{error}");
    }

    fn needs_sync(&self) -> bool {
        self.needs_sync
    }

    fn reply(&mut self, committed: Result<()>) {
        self.sender.send((thread::current().id(), committed.is_ok())).unwrap();
    }

    fn deadline(&self) -> Instant {
        Instant::now() + TIMEOUT
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A writer of this file whose log is that of `synced`, and its queue.
fn writer(file: &Path, synced: &Path) -> (Writer, mpsc::Sender<WriterMessage>) {
    let connection = open(file);
    connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number)").unwrap();
    let (queued, queue) = mpsc::channel(QUEUE_MAX);
    let writer = Writer {
        session: Some(SqliteSession::new(connection)),
        open: Box::new(|| panic!("the connection is intact")),
        queue,
        syncer: WalSyncer::start(synced).unwrap(),
        file: Arc::new(DatabaseFile::new(file, "numbers").unwrap()),
        log: None,
        is_suspect: false,
    };
    (writer, queued)
}

#[test]
fn writer_syncs_log_itself_only_if_nothing_waits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.db");
    let (mut writer, queued) = writer(&file, &file);
    let (sender, acks) = std::sync::mpsc::channel();
    let ack =
        |needs_sync| -> Box<dyn QueuedWrite> { Box::new(AckThread { sender: sender.clone(), needs_sync }) };
    let write = || ack(true);
    assert!(writer.write(vec![write(), write()]).is_empty());
    let here = thread::current().id();
    assert_eq!([acks.try_recv().unwrap(), acks.try_recv().unwrap()], [(here, true); 2]);
    assert!(queued.try_send(WriterMessage::Write(write())).is_ok());
    assert!(writer.write(vec![write()]).is_empty());
    let (thread, is_stored) = acks.recv().unwrap();
    assert!(thread != here && is_stored);
    // A write that needs no sync waits for no other, and a transaction of such writes is not synced at all.
    assert!(writer.write(vec![write(), ack(false)]).is_empty());
    assert_eq!(acks.recv().unwrap(), (here, true));
    assert_ne!(acks.recv().unwrap().0, here);
    assert!(writer.write(vec![ack(false)]).is_empty());
    assert_eq!(acks.try_recv().unwrap(), (here, true));
    drop(queued);
    writer.run();
    assert_eq!(acks.try_recv().unwrap(), (here, true));
}

#[test]
fn writer_reports_failed_sync_to_writes_that_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    // Every sync fails: the log that is synced is in a missing folder.
    let missing = folder.path().join("missing").join("numbers.db");
    let (mut writer, _queued) = writer(&folder.path().join("numbers.db"), &missing);
    let (sender, acks) = std::sync::mpsc::channel();
    let write =
        |needs_sync| -> Box<dyn QueuedWrite> { Box::new(AckThread { sender: sender.clone(), needs_sync }) };
    let mut stored = |batch| {
        assert!(writer.write(batch).is_empty());
        acks.try_iter().map(|(_, is_stored)| is_stored).collect::<Vec<_>>()
    };
    assert_eq!(stored(vec![write(false)]), [true]);
    assert_eq!(stored(vec![write(true), write(false), write(true)]), [true, false, false]);
    // After a failed sync nothing is written.
    assert_eq!(stored(vec![write(false)]), [false]);
}
