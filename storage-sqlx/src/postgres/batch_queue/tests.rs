use std::{collections::BTreeSet, time::Duration};

use tokio::{sync::Notify, task::JoinSet};

use super::*;
use crate::postgres::options::PostgresOptions;

/// Records the batches.
#[derive(Debug, Default)]
struct SeenBatch {
    /// Sizes of the batches, in the order in which they began.
    groups: Mutex<Vec<usize>>,
    /// Keys of running batches.
    keys: Mutex<BTreeSet<usize>>,
    /// Ends a batch that is held up.
    resume: Notify,
}

struct TestItem {
    key: usize,
    record: Arc<SeenBatch>,
    is_blocked: bool,
    panics: bool,
}

enum RecordingHandler {}

impl BatchHandler for RecordingHandler {
    type Item = TestItem;
    type Outcome = usize;

    async fn serve(_: &PgDatabase, members: Vec<QueueItem<Self>>) {
        let record = Arc::clone(&members[0].0.record);
        record.groups.lock().unwrap().push(members.len());
        let own: BTreeSet<usize> = members.iter().map(|(item, _)| item.key).collect();
        {
            let mut keys = record.keys.lock().unwrap();
            assert!(keys.is_disjoint(&own), "a key runs in two batches at a time");
            keys.extend(&own);
        }
        match members.iter().any(|(item, _)| item.is_blocked) {
            true => record.resume.notified().await,
            false => tokio::time::sleep(Duration::from_micros(50)).await,
        }
        record.keys.lock().unwrap().retain(|key| !own.contains(key));
        assert!(!members.iter().any(|(item, _)| item.panics), "test panic");
        for (item, reply) in members {
            reply.send(Ok(item.key)).ok();
        }
    }
}

struct QueueFixture {
    queue: Arc<BatchQueue<RecordingHandler>>,
    record: Arc<SeenBatch>,
}

impl QueueFixture {
    /// The address has no server, and no test connects to it.
    fn new() -> Self {
        let database =
            PgDatabase::new(PostgresOptions::new("postgres://me@127.0.0.1:1/none"), "main").unwrap();
        Self { queue: Arc::new(BatchQueue::new(&database)), record: Arc::default() }
    }

    fn item(&self, key: usize) -> TestItem {
        TestItem { key, record: Arc::clone(&self.record), is_blocked: false, panics: false }
    }

    fn join(&self, item: TestItem) -> tokio::task::JoinHandle<Result<usize>> {
        let queue = Arc::clone(&self.queue);
        tokio::spawn(async move { queue.submit(&item.key.to_string(), item).await })
    }

    fn groups(&self) -> Vec<usize> {
        self.record.groups.lock().unwrap().clone()
    }

    /// Waits until the first batch runs.
    async fn wait_for_batch(&self) {
        while self.groups().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    fn is_empty(&self) -> bool {
        let state = self.queue.0.state();
        let counts = [state.count, state.ready_count, state.running_count, state.tasks];
        counts == [0; 4] && state.waiters.is_empty() && state.ready.is_empty() && state.running.is_empty()
    }

    /// Waits until the tasks end because the queue is empty.
    async fn wait_until_empty(&self) {
        for _ in 0..1_000 {
            if self.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("the queue is not empty");
    }
}

#[tokio::test]
async fn batch_queue_same_key_fills_batch_to_limit() {
    let fixture = QueueFixture::new();
    let replies: Vec<_> = (0..100).map(|_| fixture.join(fixture.item(7))).collect();
    for reply in replies {
        assert_eq!(reply.await.unwrap().unwrap(), 7);
    }
    assert_eq!(fixture.groups(), [64, 36]);
    fixture.wait_until_empty().await;
}

#[tokio::test]
async fn batch_queue_many_keys_are_shared_by_two_tasks() {
    let fixture = QueueFixture::new();
    let replies: Vec<_> = (0..32).map(|key| fixture.join(fixture.item(key))).collect();
    for (key, reply) in replies.into_iter().enumerate() {
        assert_eq!(reply.await.unwrap().unwrap(), key);
    }
    assert_eq!(fixture.groups(), [16, 16]);
    fixture.wait_until_empty().await;
}

#[tokio::test]
async fn batch_queue_long_key_does_not_delay_others() {
    let fixture = QueueFixture::new();
    let blocked = fixture.join(TestItem { is_blocked: true, ..fixture.item(1) });
    fixture.wait_for_batch().await;
    let queued: Vec<_> = (0..1_000).map(|_| fixture.join(fixture.item(1))).collect();
    tokio::task::yield_now().await;
    for key in 2..40 {
        assert_eq!(fixture.join(fixture.item(key)).await.unwrap().unwrap(), key);
    }
    assert!(fixture.queue.is_busy("1") && !fixture.queue.is_busy("40"));
    assert!(queued.iter().all(|reply| !reply.is_finished()), "they wait for the first batch");
    fixture.record.resume.notify_one();
    assert_eq!(blocked.await.unwrap().unwrap(), 1);
    for reply in queued {
        assert_eq!(reply.await.unwrap().unwrap(), 1);
    }
    fixture.wait_until_empty().await;
}

#[tokio::test]
async fn batch_queue_panic_fails_only_its_batch() {
    let fixture = QueueFixture::new();
    let panicking = fixture.join(TestItem { is_blocked: true, panics: true, ..fixture.item(1) });
    fixture.wait_for_batch().await;
    let queued = fixture.join(fixture.item(1));
    assert_eq!(fixture.join(fixture.item(2)).await.unwrap().unwrap(), 2);
    assert!(!queued.is_finished());
    fixture.record.resume.notify_one();
    assert!(panicking.await.unwrap().is_err());
    assert_eq!(queued.await.unwrap().unwrap(), 1, "another task continues");
    fixture.wait_until_empty().await;
}

#[test]
fn batch_queue_runtime_shutdown_fails_waiters() {
    let (runtime, other) = (tokio::runtime::Runtime::new().unwrap(), tokio::runtime::Runtime::new().unwrap());
    let fixture = runtime.block_on(async { QueueFixture::new() });
    let replies: Vec<_> = other.block_on(async {
        let blocked = fixture.join(TestItem { is_blocked: true, ..fixture.item(1) });
        fixture.wait_for_batch().await;
        let queued = fixture.join(fixture.item(1));
        while fixture.queue.0.state().count == 0 {
            tokio::task::yield_now().await;
        }
        vec![blocked, queued]
    });
    drop(runtime);
    other.block_on(async {
        for reply in replies {
            assert!(reply.await.unwrap().is_err());
        }
        assert!(fixture.join(fixture.item(2)).await.unwrap().is_err());
    });
    assert!(fixture.is_empty());
}

#[tokio::test]
async fn batch_queue_disconnected_caller_is_skipped() {
    let fixture = QueueFixture::new();
    let blocked = fixture.join(TestItem { is_blocked: true, ..fixture.item(1) });
    fixture.wait_for_batch().await;
    let left: Vec<_> = (0..10).map(|_| fixture.join(fixture.item(1))).collect();
    tokio::task::yield_now().await;
    left.iter().for_each(tokio::task::JoinHandle::abort);
    let stays = fixture.join(fixture.item(1));
    tokio::task::yield_now().await;
    fixture.record.resume.notify_one();
    assert_eq!(blocked.await.unwrap().unwrap(), 1);
    assert_eq!(stays.await.unwrap().unwrap(), 1);
    assert_eq!(fixture.groups(), [1, 1]);
    fixture.wait_until_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batch_queue_concurrent_requests_get_one_reply_each() {
    let fixture = Arc::new(QueueFixture::new());
    let mut clients = JoinSet::new();
    for client in 0..40_usize {
        let fixture = Arc::clone(&fixture);
        clients.spawn(async move {
            for round in 0..200 {
                // Nearly all clients use a few keys, the others use one key each.
                let key = if (client + round) % 3 == 0 { round % 4 } else { 100 + client };
                assert_eq!(fixture.queue.submit(&key.to_string(), fixture.item(key)).await.unwrap(), key);
            }
        });
    }
    clients.join_all().await;
    assert_eq!(fixture.groups().iter().sum::<usize>(), 40 * 200);
    fixture.wait_until_empty().await;
}
