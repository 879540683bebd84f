//! Tests of the request counter on the directory in memory.

use super::*;
use crate::{
    directory::{KeyAccess, KeyOwner, NewKeyRecord, RequestQuota},
    ids::WalletId,
    ledger::terms::AllowancePeriod,
    memory::MemoryDirectory,
};

const TIMEOUT: Duration = Duration::from_secs(5);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_795_132_800_000 + seconds * 1_000)
}

fn counter(directory: &MemoryDirectory) -> RequestCounter {
    RequestCounter::new(Arc::new(directory.clone()), TIMEOUT)
}

/// A directory with keys of this quota a day.
async fn directory(names: &[&str], max: u64) -> MemoryDirectory {
    let directory = MemoryDirectory::default();
    for name in names {
        let quota = Some(RequestQuota { max, period: AllowancePeriod::Day });
        let digest = name.bytes().cycle().take(32).collect();
        let key = NewKeyRecord { id: KeyId::new(*name), digest, hint: String::new(), now: at(0) };
        let key = LookupKey {
            key,
            wallet: WalletId::new(*name),
            label: None,
            email: None,
            subject: None,
            entitled_until: None,
            access: KeyAccess { quota, ..KeyAccess::default() },
        };
        directory.add_key(key, 0).await.unwrap();
    }
    directory
}

async fn read(directory: &MemoryDirectory, name: &str) -> LookupKey {
    let digest: Vec<u8> = name.bytes().cycle().take(32).collect();
    match directory.key_owner(&digest).await.unwrap() {
        Some(KeyOwner::Lookup(key)) => key,
        other => panic!("{other:?}"),
    }
}

/// Number of requests that pass until the first is refused.
async fn admitted(counter: &RequestCounter, directory: &MemoryDirectory, now: Timestamp, max: u64) -> u64 {
    for count in 0..max {
        let key = read(directory, "a").await;
        if counter.count(&key, now).await.unwrap() != CountOutcome::Counted {
            return count;
        }
    }
    max
}

#[tokio::test]
async fn request_counter_quota_is_exact_across_flushes_and_restart() {
    let directory = directory(&["a"], 10).await;
    let first = counter(&directory);
    assert_eq!(admitted(&first, &directory, at(1), 4).await, 4);
    first.flush().await.unwrap();
    assert_eq!(read(&directory, "a").await.access.requests.day.count, 4);
    assert_eq!(admitted(&first, &directory, at(2), 3).await, 3);
    first.flush().await.unwrap();
    first.flush().await.unwrap();
    first.flush().await.unwrap();
    assert!(first.lock().is_empty(), "an unused key stays in memory");

    let second = counter(&directory);
    assert_eq!(admitted(&second, &directory, at(3), 99).await, 3);
    let key = read(&directory, "a").await;
    let refused = second.count(&key, at(3)).await.unwrap();
    let retry_after = Duration::from_secs(86_400 - 3);
    assert_eq!(refused, CountOutcome::Exhausted { retry_after });
    assert_eq!(admitted(&second, &directory, at(86_400), 99).await, 10);
    second.flush().await.unwrap();
    let requests = read(&directory, "a").await.access.requests;
    assert_eq!((requests.total, requests.day.count, requests.month.count), (20, 10, 20));
    assert_eq!(requests.last_at, Some(at(86_400)));
}

#[tokio::test]
async fn request_counter_row_read_before_flush_is_not_counted_twice() {
    let directory = directory(&["a"], 10).await;
    let counter = counter(&directory);
    let before = read(&directory, "a").await;
    for _ in 0..6 {
        assert_eq!(counter.count(&before, at(1)).await.unwrap(), CountOutcome::Counted);
    }
    counter.flush().await.unwrap();
    // Six are stored, which this row does not show.
    let mut passed = 0;
    while counter.count(&before, at(1)).await.unwrap() == CountOutcome::Counted {
        passed += 1;
    }
    assert_eq!(passed, 4);
}

#[tokio::test]
async fn request_counter_without_room_stores_first() {
    let names = ["a", "b", "c", "d", "e"];
    let directory = directory(&names, 100).await;
    let counter = RequestCounter { keys_max: 2, ..counter(&directory) };
    for round in 0..3 {
        for name in names {
            let key = read(&directory, name).await;
            assert_eq!(counter.count(&key, at(round)).await.unwrap(), CountOutcome::Counted);
            assert!(counter.lock().len() <= 2);
        }
    }
    counter.flush().await.unwrap();
    for name in names {
        assert_eq!(read(&directory, name).await.access.requests.total, 3, "{name}");
    }
}
