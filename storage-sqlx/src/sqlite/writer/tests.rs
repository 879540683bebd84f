//! What shares a transaction, and what ends it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use sqlx::{ConnectOptions, Row, sqlite::SqliteSynchronous};
use transcript_core::ErrorKind;

use super::*;
use crate::error::conflict;

/// Adds a number to a table, and then another one; in between, it waits.
struct Add {
    number: i64,
    then: Then,
    made: Arc<AtomicU32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Goes,
    IsRefused,
    Fails,
    Panics,
    Waits,
}

impl Change for Add {
    type Outcome = i64;

    async fn make(&self, db: &mut SqliteConnection) -> Work<i64> {
        self.made.fetch_add(1, Relaxed);
        sqlx::query("INSERT INTO numbers VALUES (?1)").bind(self.number).execute(&mut *db).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        match self.then {
            Then::Goes => {}
            Then::IsRefused => return Err(conflict("this number is refused").into()),
            Then::Fails => {
                sqlx::query("INSERT INTO nowhere VALUES (1)").execute(&mut *db).await?;
            }
            Then::Panics => panic!("a defect of the test's own"),
            Then::Waits => tokio::time::sleep(2 * PATIENCE).await,
        }
        sqlx::query("INSERT INTO numbers VALUES (?1)").bind(-self.number).execute(db).await?;
        Ok(self.number)
    }
}

/// Adds a number's negative, and begins and commits by itself; where it shares a transaction, it is as [`Add`].
struct Lone(Add);

impl Change for Lone {
    type Outcome = i64;

    async fn make(&self, db: &mut SqliteConnection) -> Work<i64> {
        self.0.make(db).await
    }

    async fn make_alone(&self, db: &mut SqliteConnection) -> Option<Attempt<i64>> {
        Some(self.begin_and_commit(db).await)
    }
}

impl Lone {
    async fn begin_and_commit(&self, db: &mut SqliteConnection) -> Attempt<i64> {
        let number = -self.0.number;
        let first = sqlx::query("BEGIN IMMEDIATE; INSERT INTO numbers VALUES (?)").bind(number);
        first.execute(&mut *db).await.map_err(|error| Failed::at_first(error.into()))?;
        self.0.made.fetch_add(1, Relaxed);
        match self.0.then {
            Then::IsRefused => return Err(Failed::of(conflict("this number is refused"))),
            Then::Fails => {
                let nowhere = sqlx::query("INSERT INTO nowhere VALUES (1)");
                nowhere.execute(&mut *db).await.map_err(Failed::of)?;
            }
            Then::Panics => panic!("a defect of the test's own"),
            Then::Goes | Then::Waits => {}
        }
        sqlx::raw_sql("COMMIT").execute(db).await.map_err(Failed::to_commit)?;
        Ok(number)
    }
}

/// Of a caller who is to be told that it waited too long.
const PATIENCE: Duration = Duration::from_secs(2);

struct Fixture {
    queue: Arc<Queue>,
    options: SqliteConnectOptions,
    made: Arc<AtomicU32>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn new() -> Self {
        Self::with_patience(Duration::from_secs(30)).await
    }

    async fn with_patience(patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("numbers.db");
        let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
        let options = options.busy_timeout(Duration::from_millis(50));
        let mut connection = options.connect().await.unwrap();
        sqlx::raw_sql("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
            .execute(&mut connection)
            .await
            .unwrap();
        let queue = Queue::start(connection, options.clone(), file, patience).unwrap();
        Self { queue: Arc::new(queue), options, made: Arc::default(), _folder: folder }
    }

    fn add(&self, number: i64, then: Then) -> tokio::task::JoinHandle<Result<i64>> {
        let queue = Arc::clone(&self.queue);
        let made = Arc::clone(&self.made);
        tokio::spawn(async move { queue.make(Add { number, then, made }).await })
    }

    fn lone(&self, number: i64, then: Then) -> tokio::task::JoinHandle<Result<i64>> {
        let queue = Arc::clone(&self.queue);
        let made = Arc::clone(&self.made);
        tokio::spawn(async move { queue.make(Lone(Add { number, then, made })).await })
    }

    async fn numbers(&self) -> Vec<i64> {
        let mut other = self.options.connect().await.unwrap();
        let rows = sqlx::query("SELECT number FROM numbers ORDER BY abs(number), number");
        rows.fetch_all(&mut other).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

#[tokio::test]
async fn a_change_whose_caller_goes_away_is_made_whole() {
    let fixture = Fixture::new().await;
    let call = fixture.add(1, Then::Goes);
    while fixture.made.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    fixture.queue.close().await;
    assert_eq!(fixture.numbers().await, [-1, 1]);
}

#[tokio::test]
async fn a_change_that_fails_takes_nobody_with_it() {
    let fixture = Fixture::new().await;
    // While the first one runs, the others gather and share the next transaction.
    let first = fixture.add(1, Then::Goes);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let shared = [
        fixture.add(2, Then::Goes),
        fixture.add(3, Then::IsRefused),
        fixture.add(4, Then::Goes),
        fixture.add(5, Then::Fails),
        fixture.add(6, Then::Goes),
    ];
    assert_eq!(first.await.unwrap().unwrap(), 1);
    let mut kinds = Vec::new();
    for call in shared {
        kinds.push(call.await.unwrap().map_err(|error| error.kind()));
    }
    let (refused, failed) = (Err(ErrorKind::Conflict), Err(ErrorKind::Unexpected));
    assert_eq!(kinds, [Ok(2), refused, Ok(4), failed, Ok(6)]);
    assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -4, 4, -6, 6]);
    assert_eq!(
        fixture.made.load(Relaxed),
        1 + 2 + 5,
        "they go again from the first refusal on, and once only"
    );
    fixture.made.store(0, Relaxed);
    let alone = fixture.add(7, Then::IsRefused).await.unwrap();
    assert_eq!(alone.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fixture.made.load(Relaxed), 1, "alone, it takes nobody with it");
    assert_eq!(fixture.add(8, Then::Goes).await.unwrap().unwrap(), 8);
    assert_eq!(fixture.numbers().await.len(), 10);
}

#[tokio::test]
async fn a_change_that_panics_takes_nobody_with_it() {
    let fixture = Fixture::new().await;
    let first = fixture.add(1, Then::Goes);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let shared = [fixture.add(2, Then::Goes), fixture.add(3, Then::Panics), fixture.add(4, Then::Goes)];
    first.await.unwrap().unwrap();
    let mut kinds = Vec::new();
    for call in shared {
        kinds.push(call.await.unwrap().map_err(|error| error.kind()));
    }
    assert_eq!(kinds, [Ok(2), Err(ErrorKind::Unexpected), Ok(4)]);
    assert_eq!(fixture.add(5, Then::Goes).await.unwrap().unwrap(), 5);
    assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -4, 4, -5, 5]);
}

#[tokio::test]
async fn a_change_that_begins_by_itself_takes_nobody_with_it() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.lone(1, Then::Goes).await.unwrap().unwrap(), -1);
    for (number, then, kind) in [
        (2, Then::IsRefused, ErrorKind::Conflict),
        (3, Then::Fails, ErrorKind::Unexpected),
        (4, Then::Panics, ErrorKind::Unexpected),
    ] {
        assert_eq!(fixture.lone(number, then).await.unwrap().unwrap_err().kind(), kind);
        assert_eq!(fixture.lone(number + 10, Then::Goes).await.unwrap().unwrap(), -number - 10);
    }
    assert_eq!(fixture.numbers().await, [-1, -12, -13, -14], "what came to nothing left nothing");
    // While one runs, others gather and share a transaction, which is begun for them.
    let first = fixture.add(21, Then::Goes);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let shared =
        [fixture.lone(22, Then::Goes), fixture.lone(23, Then::IsRefused), fixture.add(24, Then::Goes)];
    first.await.unwrap().unwrap();
    let mut outcomes = Vec::new();
    for call in shared {
        outcomes.push(call.await.unwrap().map_err(|error| error.kind()));
    }
    assert_eq!(outcomes, [Ok(22), Err(ErrorKind::Conflict), Ok(24)]);
    assert_eq!(fixture.numbers().await[4..], [-21, 21, -22, 22, -24, 24]);
}

#[tokio::test]
async fn a_change_that_begins_by_itself_waits_for_a_lock() {
    let fixture = Fixture::with_patience(PATIENCE).await;
    let mut other = fixture.options.connect().await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let late = fixture.lone(1, Then::Goes).await.unwrap().unwrap_err();
    assert_eq!((late.kind(), fixture.made.load(Relaxed)), (ErrorKind::Unavailable, 0));
    let waits = fixture.lone(2, Then::Goes);
    tokio::time::sleep(Duration::from_millis(5)).await;
    lock.rollback().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap(), -2);
    assert_eq!(fixture.numbers().await, [-2]);
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_and_nothing_is_made() {
    let fixture = Fixture::with_patience(PATIENCE).await;
    let slow = fixture.add(-1, Then::Waits);
    while fixture.made.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let begun = Instant::now();
    // More than the queue has room for: some wait in it, some before it.
    let last = i64::try_from(QUEUE_MAX).unwrap() + 50;
    let calls: Vec<_> = (2..=last).map(|number| fixture.add(number, Then::Goes)).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert!(begun.elapsed() < 15 * PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(slow.await.unwrap().unwrap(), -1);
    assert_eq!(fixture.made.load(Relaxed), 1);
    assert_eq!(fixture.add(2, Then::Goes).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn a_lock_fails_all_that_wait_and_then_they_go_on() {
    let fixture = Fixture::with_patience(PATIENCE).await;
    let mut other = fixture.options.connect().await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let calls = [fixture.add(1, Then::Goes), fixture.add(2, Then::Goes)];
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert_eq!(fixture.made.load(Relaxed), 0);
    lock.rollback().await.unwrap();
    assert_eq!(fixture.add(1, Then::Goes).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn closing_finishes_what_waits() {
    let fixture = Fixture::new().await;
    let calls: Vec<_> = (1..=3).map(|number| fixture.add(number, Then::Goes)).collect();
    tokio::time::sleep(Duration::from_millis(5)).await;
    fixture.queue.close().await;
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(fixture.numbers().await, [-1, 1, -2, 2, -3, 3]);
    let late = fixture.add(4, Then::Goes).await.unwrap().unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Unavailable);
    fixture.queue.close().await;
}

#[tokio::test]
async fn a_dropped_queue_lets_go_of_the_file() {
    let fixture = Fixture::new().await;
    fixture.add(1, Then::Goes).await.unwrap().unwrap();
    drop(fixture.queue);
    let mut other = fixture.options.connect().await.unwrap();
    // Only the last connection to a file may take this lock.
    let mut alone = Err(String::new());
    for _ in 0..100 {
        let exclusive = sqlx::raw_sql("PRAGMA journal_mode = DELETE");
        let row = exclusive.fetch_one(&mut other).await;
        alone = row.map(|row| row.get::<String, _>(0)).map_err(|error| error.to_string());
        if alone.as_deref() == Ok("delete") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the file is still held: {alone:?}");
}

/// What the connection of a writer says of itself: 1 is NORMAL, 3 is EXTRA.
async fn level(writer: &mut Writer) -> i64 {
    let link = writer.link.as_mut().unwrap();
    let row = sqlx::raw_sql("PRAGMA synchronous").fetch_one(&mut link.connection).await.unwrap();
    let level: i64 = row.get(0);
    assert_eq!(link.keeps(), level == 3);
    level
}

#[tokio::test]
async fn who_writes_alone_waits_for_the_disk_and_among_others_the_keeper_does() {
    let fixture = Fixture::new().await;
    let file = fixture.options.get_filename().to_owned();
    let options = fixture.options.clone().synchronous(SqliteSynchronous::Normal);
    let mut writer =
        Writer { link: None, options, keeper: Keeper::start(&file).unwrap(), alone: Alone::default(), file };
    let add = |number| {
        let change = Add { number, then: Then::Goes, made: Arc::clone(&fixture.made) };
        let (answer, outcome) = oneshot::channel();
        let patience_ends = Instant::now() + PATIENCE;
        let waiting = Request { change, outcome: None, patience_ends, answer: Some(answer) };
        (Box::new(waiting) as Box<dyn Waiting>, outcome)
    };
    let mut number = 0;
    for _ in 0..3 {
        // Somebody else comes, again and again.
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
            writer.alone.count(others == 0);
        }
        (0..10).for_each(|_| writer.alone.count(true));
        number += 1;
        let (change, mut outcome) = add(number);
        assert!(writer.write(vec![change]).await.is_empty());
        assert_eq!(outcome.try_recv().unwrap().unwrap(), number, "it is on the disk already");
        assert_eq!(level(&mut writer).await, 3);
        assert!(writer.keeper.is_idle());
    }
    assert_eq!(fixture.numbers().await.len() as i64, 2 * number);
}
