//! Cases of the expiry, quota and request counts of keys.

use std::sync::Arc;

use super::{DirectoryStore, digest, expect_ok, lookup_key, lookup_owner, new_key, owner, register};
use crate::{
    directory::{
        FieldChange, KeyAccess, KeyAccessChange, KeyOwner, KeyRequests, LookupKey, PeriodRequests,
        RequestCounts, RequestQuota,
    },
    ids::KeyId,
    ledger::terms::AllowancePeriod,
    page::PageRequest,
    testing::at,
    time::Timestamp,
};

const DAY_SECONDS: i64 = 86_400;

/// Number of concurrent calls.
const CALLS: u64 = 20;

fn quota(max: u64, period: AllowancePeriod) -> RequestQuota {
    RequestQuota { max, period }
}

/// This number of requests at a time.
pub(super) fn requests(key: &str, count: u64, now: Timestamp) -> KeyRequests {
    let of = |period: AllowancePeriod| PeriodRequests { start: Some(period.start(now)), count };
    let (day, month) = (of(AllowancePeriod::Day), of(AllowancePeriod::Month));
    KeyRequests {
        key: KeyId::new(key),
        counts: RequestCounts { total: count, last_at: Some(now), day, month },
    }
}

/// The access of a key, read by its digest.
async fn access(store: &DirectoryStore, key: &str) -> KeyAccess {
    match owner(store, key).await {
        Some(KeyOwner::Lookup(key)) => key.access,
        other => panic!("the owner of a key of the lookup API is the key; got {other:?}"),
    }
}

/// Expiry and quota are stored with the key, and changed separately; a rotation keeps them.
pub async fn key_access_is_stored_and_changed(store: DirectoryStore) {
    let change = async |key: &str, change| expect_ok(store.change_key_access(&KeyId::new(key), change).await);
    let first = KeyAccess {
        expires_at: Some(at(500)),
        quota: Some(quota(7, AllowancePeriod::Day)),
        requests: RequestCounts::default(),
    };
    let key = LookupKey { access: first.clone(), ..lookup_key("a", 0) };
    expect_ok(store.add_key(key.clone(), 3).await);
    assert_eq!(owner(&store, "a").await, lookup_owner(key.clone()));

    let new_quota = quota(1_000_000, AllowancePeriod::Month);
    let set = KeyAccessChange { quota: FieldChange::Set(new_quota), ..KeyAccessChange::default() };
    assert!(change("a", set).await, "the key is live");
    let changed = KeyAccess { quota: Some(new_quota), ..first };
    assert_eq!(access(&store, "a").await, changed, "the expiry stays");
    let listed = expect_ok(store.keys(PageRequest::first()).await).items;
    assert_eq!(listed[0].key, LookupKey { access: changed.clone(), ..key }, "the list shows it");

    expect_ok(store.add_key_requests(vec![requests("a", 2, at(1))]).await);
    expect_ok(store.rotate(&digest("a"), new_key("b", 20)).await);
    let rotated = access(&store, "b").await;
    assert_eq!((rotated.quota, rotated.requests.total), (Some(new_quota), 2), "a rotation changes neither");
    let clear = KeyAccessChange { expires_at: FieldChange::Clear, quota: FieldChange::Clear };
    assert!(change("b", clear).await);
    let cleared = access(&store, "b").await;
    assert_eq!((cleared.expires_at, cleared.quota, cleared.requests.total), (None, None, 2));

    let account = register(&store, "ann@example.org", "v1").await;
    assert!(!account.blocked);
    for dead in ["a", "unknown", "v1"] {
        assert!(!change(dead, set).await, "{dead} is no live key of the lookup API");
    }
}

/// Counts are added per day and month; a key that is not stored is left out.
pub async fn key_requests_are_added(store: DirectoryStore) {
    let add = async |all: Vec<KeyRequests>| expect_ok(store.add_key_requests(all).await);
    for id in ["a", "b"] {
        expect_ok(store.add_key(lookup_key(id, 0), 3).await);
    }
    assert_eq!(access(&store, "a").await, KeyAccess::default());
    assert!(add(Vec::new()).await.is_empty());
    let now = at(40 * DAY_SECONDS);
    let first = requests("a", 3, now);
    let added = add(vec![requests("unknown", 1, now), first.clone()]).await;
    assert_eq!(added, std::slice::from_ref(&first), "an unknown key is left out");
    let tomorrow = requests("a", 2, at(41 * DAY_SECONDS));
    let sum = KeyRequests { counts: first.counts.plus(&tomorrow.counts), ..first.clone() };
    let added = add(vec![tomorrow, requests("b", 1, now)]).await;
    assert!(added.len() == 2 && added.contains(&sum), "the counts are returned: {added:?}");
    assert_eq!(access(&store, "a").await.requests, sum.counts, "and stored");
    assert_eq!((sum.counts.day.count, sum.counts.month.count, sum.counts.total), (2, 5, 5));
    // A server whose clock is behind: its day has ended.
    let late = add(vec![requests("a", 10, now)]).await.remove(0).counts;
    assert_eq!((late.day.count, late.month.count, late.total), (2, 15, 15));
    assert_eq!(late.last_at, sum.counts.last_at, "the time of the last request never goes back");
    assert_eq!(access(&store, "b").await.requests.total, 1);
}

/// Concurrent calls lose no request.
pub async fn concurrent_key_requests_are_all_counted(store: DirectoryStore) {
    for id in ["a", "b"] {
        expect_ok(store.add_key(lookup_key(id, 0), 3).await);
    }
    let calls = (0..CALLS).map(|number| {
        let store = Arc::clone(&store);
        // In both orders.
        let names = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        let all = names.map(|name| requests(name, number + 1, at(1))).to_vec();
        tokio::spawn(async move { store.add_key_requests(all).await })
    });
    for call in calls.collect::<Vec<_>>() {
        expect_ok(call.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())));
    }
    for id in ["a", "b"] {
        let total: u64 = (1..=CALLS).sum();
        let requests = access(&store, id).await.requests;
        assert_eq!((requests.total, requests.day.count), (total, total), "{id}");
    }
}
