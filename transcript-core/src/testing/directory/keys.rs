//! Conformance cases of lookup API keys: adding, entitlement, rotation, revocation.

use super::*;
use crate::{
    directory::{
        AddKeyOutcome::{self, Added},
        RenewRequest,
        RotateOutcome::{Rotated, Stale},
    },
    error::ErrorKind,
    page::{PAGE_LIMIT, PageRequest},
    testing::{call_concurrently, expect_error, read_pages},
};

async fn add(store: &DirectoryStore, key: LookupKey) -> AddKeyOutcome {
    expect_ok(store.add_key(key, 3).await)
}

fn full(room_at: i64) -> AddKeyOutcome {
    AddKeyOutcome::SubjectFull { room_at: Some(at(room_at)) }
}

/// Renews the entitlement of a key, with at most 3 live plus keys per subject.
async fn entitle(store: &DirectoryStore, key: &str, subject: &str, until: i64, now: i64) -> bool {
    let (key, subject) = (KeyId::new(key), subject.to_owned());
    expect_ok(
        store
            .renew_entitlement(RenewRequest {
                key,
                subject,
                until: at(until),
                now: at(now),
                live_per_subject: 3,
            })
            .await,
    )
}

/// An added key returns its owner, unchanged.
pub async fn key_added_returns_its_owner(store: DirectoryStore) {
    assert_eq!(owner(&store, "a").await, None, "an unknown key has no owner");
    let plain = LookupKey { label: None, ..lookup_key("a", 0) };
    let plus = LookupKey { email: Some("a@example.org".to_owned()), ..plus_key("b", "subject", 5, 99) };
    for key in [plain, plus] {
        assert_eq!(add(&store, key.clone()).await, Added, "a new key is added");
        let id = key.key.id.as_str().to_owned();
        assert_eq!(owner(&store, &id).await, lookup_owner(key), "a key is returned as it was added");
    }
    assert_eq!(expect_ok(store.key_owner(&[]).await), None, "an invalid digest has no owner");
    assert_eq!(expect_ok(store.key_owner(&digest("a")[..31]).await), None, "part of a digest has no owner");
}

/// Adding the same key again succeeds and changes nothing.
pub async fn key_added_again_changes_nothing(store: DirectoryStore) {
    let key = plus_key("a", "subject", 0, 99);
    add(&store, key.clone()).await;
    let again = LookupKey { label: None, entitled_until: Some(at(5)), ..key.clone() };
    let added = expect_ok(store.add_key(again.clone(), 1).await);
    assert_eq!(added, Added, "a repeat succeeds, even if the subject is full");
    assert_eq!(owner(&store, "a").await, lookup_owner(key), "a repeat changes nothing");
    expect_ok(store.revoke_key(&KeyId::new("a"), at(9)).await);
    assert_eq!(add(&store, again).await, Added, "a repeat succeeds, even if the key is dead");
    assert_eq!(owner(&store, "a").await, None, "a repeat does not revive the key");
}

/// An id or digest belongs to one key only, live or dead.
pub async fn key_with_used_id_or_digest_is_conflict(store: DirectoryStore) {
    add(&store, lookup_key("a", 0)).await;
    register(&store, "x@example.org", "account-key").await;
    let mut same_id = lookup_key("b", 1);
    same_id.key.id = KeyId::new("a");
    let mut same_digest = lookup_key("b", 1);
    same_digest.key.digest = digest("a");
    let mut of_account = lookup_key("b", 1);
    of_account.key.digest = digest("account-key");
    let mut id_of_account = lookup_key("b", 1);
    id_of_account.key.id = KeyId::new("account-key");
    for key in [same_id.clone(), same_digest, of_account, id_of_account] {
        expect_error(store.add_key(key, 3).await, ErrorKind::Conflict, "an id or digest of another key");
    }
    expect_ok(store.revoke_key(&KeyId::new("a"), at(9)).await);
    expect_error(store.add_key(same_id, 3).await, ErrorKind::Conflict, "also of a dead key");
    assert_eq!(owner(&store, "b").await, None, "a conflict stores nothing");
}

/// A subject at its limit of live plus keys gets no more.
pub async fn subject_at_limit_gets_no_more_plus_keys(store: DirectoryStore) {
    for id in ["a", "b", "c"] {
        assert_eq!(add(&store, plus_key(id, "s", 0, 100)).await, Added, "below the limit");
    }
    assert_eq!(add(&store, plus_key("d", "s", 99, 500)).await, full(100), "at the limit");
    assert_eq!(owner(&store, "d").await, None, "a rejected key is not stored");
    assert_eq!(add(&store, plus_key("e", "S", 0, 100)).await, Added, "subjects are case-sensitive");
    assert_eq!(add(&store, lookup_key("f", 0)).await, Added, "a key without subject is not counted");
    assert_eq!(
        expect_ok(store.add_key(plus_key("g", "s", 0, 100), 4).await),
        Added,
        "the limit is that of the call"
    );
    let none = expect_ok(store.add_key(plus_key("h", "new", 0, 100), 0).await);
    assert_eq!(none, AddKeyOutcome::SubjectFull { room_at: None }, "a limit of 0 admits no plus key");
    let lowered = expect_ok(store.add_key(plus_key("i", "s", 0, 100), 2).await);
    assert_eq!(lowered, full(100), "a lowered limit admits none until enough have ended");
}

/// Revoked keys and keys with an ended entitlement are not counted.
pub async fn revoked_or_ended_plus_keys_are_not_counted(store: DirectoryStore) {
    for (id, expires_at) in [("a", 100), ("b", 100), ("c", 50)] {
        add(&store, plus_key(id, "s", 0, expires_at)).await;
    }
    assert_eq!(add(&store, plus_key("d", "s", 49, 100)).await, full(50), "all three are live");
    let fewer = expect_ok(store.add_key(plus_key("d", "s", 49, 100), 2).await);
    assert_eq!(fewer, full(100), "there is room when one of the two latest has ended");
    assert_eq!(add(&store, plus_key("d", "s", 50, 100)).await, Added, "one has ended");
    expect_ok(store.revoke_key(&KeyId::new("a"), at(51)).await);
    assert_eq!(add(&store, plus_key("e", "s", 52, 100)).await, Added, "one is revoked");
    assert_eq!(add(&store, plus_key("f", "s", 53, 100)).await, full(100), "three are live again");
    expect_ok(store.rotate(&digest("b"), new_key("b2", 54)).await);
    assert_eq!(add(&store, plus_key("f", "s", 55, 100)).await, full(100), "a rotated key counts once");
}

/// Concurrently added keys never exceed the limit of a subject.
pub async fn concurrent_adds_never_exceed_subject_limit(store: DirectoryStore) {
    let added = call_concurrently(&store, 0..12, |store, n| async move {
        expect_ok(store.add_key(plus_key(&format!("k{n}"), "s", 0, 100), 3).await)
    })
    .await;
    let count = added.iter().filter(|added| **added == Added).count();
    assert_eq!(count, 3, "exactly as many as the limit");
    let stored = read_pages(PAGE_LIMIT, async |page| store.keys(page).await).await;
    assert_eq!(stored.len(), 3, "no others are stored");
}

/// A proof of the key's own subject extends its entitlement and never shortens it.
pub async fn entitlement_is_renewed_by_own_subject_only(store: DirectoryStore) {
    add(&store, plus_key("a", "s", 0, 100)).await;
    add(&store, lookup_key("plain", 0)).await;
    for (expires_at, expect) in [(200, 200), (150, 200), (200, 200), (201, 201)] {
        assert!(entitle(&store, "a", "s", expires_at, 1).await, "the key belongs to the subject");
        let now = owner(&store, "a").await;
        assert_eq!(now, lookup_owner(plus_key("a", "s", 0, expect)), "an entitlement is never shortened");
    }
    assert!(!entitle(&store, "a", "S", 900, 1).await, "a proof of another subject is rejected");
    assert!(!entitle(&store, "plain", "s", 900, 1).await, "a key without subject is rejected");
    assert!(!entitle(&store, "unknown", "s", 900, 1).await, "an unknown key is rejected");
    assert_eq!(owner(&store, "a").await, lookup_owner(plus_key("a", "s", 0, 201)), "nothing changed");
    let bare = LookupKey { entitled_until: None, ..plus_key("b", "s", 0, 0) };
    add(&store, bare).await;
    assert!(entitle(&store, "b", "s", 300, 1).await, "a first proof is accepted");
    assert_eq!(owner(&store, "b").await, lookup_owner(plus_key("b", "s", 0, 300)));
    expect_ok(store.revoke_key(&KeyId::new("a"), at(9)).await);
    assert!(!entitle(&store, "a", "s", 900, 10).await, "a revoked key is rejected");
}

/// A key with an ended entitlement is renewed only if its subject has room.
pub async fn ended_entitlement_is_renewed_within_limit(store: DirectoryStore) {
    for (id, since, expires_at) in [("a", 0, 10), ("b", 20, 100), ("c", 20, 100), ("d", 20, 100)] {
        assert_eq!(add(&store, plus_key(id, "s", since, expires_at)).await, Added);
    }
    assert!(!entitle(&store, "a", "s", 200, 20).await, "three others are live");
    assert_eq!(owner(&store, "a").await, lookup_owner(plus_key("a", "s", 0, 10)), "nothing changed");
    assert!(entitle(&store, "b", "s", 200, 20).await, "a live key is already counted");
    expect_ok(store.revoke_key(&KeyId::new("c"), at(21)).await);
    assert!(entitle(&store, "a", "s", 200, 22).await, "one was revoked");
    assert!(entitle(&store, "d", "s", 200, 100).await, "at its expiry a key is no longer counted");
    assert_eq!(add(&store, plus_key("e", "s", 150, 300)).await, full(200), "three are live again");
}

/// A rotated key is dead at once; the new key has its other properties.
pub async fn rotated_key_is_dead_at_once(store: DirectoryStore) {
    let old = LookupKey { email: Some("a@example.org".to_owned()), ..plus_key("a", "s", 0, 100) };
    add(&store, old.clone()).await;
    let rotated = expect_ok(store.rotate(&digest("a"), new_key("b", 20)).await);
    assert_eq!(rotated, Rotated);
    assert_eq!(owner(&store, "a").await, None, "the old key is dead at once");
    let new = LookupKey { key: new_key("b", 20), ..old };
    assert_eq!(owner(&store, "b").await, lookup_owner(new), "the new key has the same owner");
    let all = read_pages(PAGE_LIMIT, async |page| store.keys(page).await).await;
    let dead: Vec<_> = all.iter().map(|one| (one.key.key.id.as_str(), one.revoked_at)).collect();
    assert_eq!(dead, [("a", Some(at(20))), ("b", None)], "the old key is listed as revoked at that time");
}

/// Rotating a key that is dead or already rotated is stale and stores nothing.
pub async fn rotation_of_dead_key_is_stale(store: DirectoryStore) {
    let stale = async |old: &str, new: &str| {
        let rotated = expect_ok(store.rotate(&digest(old), new_key(new, 30)).await);
        assert_eq!(rotated, Stale, "{old} is not a live key");
    };
    stale("a", "b").await;
    assert_eq!(owner(&store, "b").await, None, "a stale rotation stores nothing");
    add(&store, lookup_key("a", 0)).await;
    expect_ok(store.rotate(&digest("a"), new_key("b", 20)).await);
    stale("a", "b").await;
    stale("a", "c").await;
    assert_eq!(owner(&store, "c").await, None, "a stale rotation stores nothing");
    assert!(owner(&store, "b").await.is_some(), "the rotated key stays live");
    expect_ok(store.revoke_key(&KeyId::new("b"), at(40)).await);
    stale("b", "d").await;
}

/// A rotation to a stored id or digest is a conflict, and the old key stays live.
pub async fn rotation_to_stored_key_is_conflict(store: DirectoryStore) {
    for id in ["a", "b"] {
        add(&store, lookup_key(id, 0)).await;
    }
    let same_digest = NewKeyRecord { digest: digest("b"), ..new_key("c", 20) };
    let same_id = NewKeyRecord { id: KeyId::new("b"), ..new_key("c", 20) };
    for new in [same_digest, same_id, new_key("a", 20)] {
        expect_error(
            store.rotate(&digest("a"), new).await,
            ErrorKind::Conflict,
            "the new key is stored already",
        );
        assert!(owner(&store, "a").await.is_some(), "a conflict changes nothing");
        assert_eq!(owner(&store, "c").await, None, "a conflict stores nothing");
    }
}

/// Of concurrent rotations of one key exactly one takes effect.
pub async fn concurrent_rotations_take_effect_once(store: DirectoryStore) {
    add(&store, lookup_key("a", 0)).await;
    let rotated = call_concurrently(&store, 0..10, |store, n| async move {
        expect_ok(store.rotate(&digest("a"), new_key(&format!("b{n}"), 20)).await)
    })
    .await;
    assert_eq!(rotated.iter().filter(|one| **one == Rotated).count(), 1, "one rotation takes effect");
    for (n, rotated) in rotated.iter().enumerate() {
        let live = owner(&store, &format!("b{n}")).await.is_some();
        assert_eq!(live, *rotated == Rotated, "only the key of that rotation is live");
    }
}

/// A revoked key is dead; revoking it again returns `false`.
pub async fn revoked_key_is_dead(store: DirectoryStore) {
    for id in ["a", "b"] {
        add(&store, lookup_key(id, 0)).await;
    }
    assert!(expect_ok(store.revoke_key(&KeyId::new("a"), at(7)).await), "the key was live");
    assert!(!expect_ok(store.revoke_key(&KeyId::new("a"), at(8)).await), "the key is already dead");
    assert!(!expect_ok(store.revoke_key(&KeyId::new("unknown"), at(8)).await), "the key is unknown");
    assert_eq!(owner(&store, "a").await, None, "a revoked key has no owner");
    assert!(owner(&store, "b").await.is_some(), "other keys stay live");
    let all = read_pages(PAGE_LIMIT, async |page| store.keys(page).await).await;
    assert_eq!(all[0].key, lookup_key("a", 0), "a revoked key is listed as it was");
    assert_eq!(all[0].revoked_at, Some(at(7)), "with the time of its first revocation");
}

/// Lookup keys are paged, oldest first.
pub async fn keys_are_paged_oldest_first(store: DirectoryStore) {
    register(&store, "x@example.org", "account-key").await;
    for n in 0..20 {
        add(&store, lookup_key(&format!("k{n:02}"), n)).await;
    }
    expect_ok(store.revoke_key(&KeyId::new("k05"), at(30)).await);
    for limit in [1, 6, 19, 20, 21, u32::MAX] {
        let all = read_pages(limit, async |page| store.keys(page).await).await;
        let ids: Vec<_> = all.iter().map(|one| one.key.key.id.as_str().to_owned()).collect();
        let expect: Vec<_> = (0..20).map(|n| format!("k{n:02}")).collect();
        assert_eq!(ids, expect, "pages of {limit} contain every lookup key once, oldest first");
    }
    let page = expect_ok(store.keys(PageRequest { after: None, limit: 20 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    for n in 0..5 {
        add(&store, lookup_key(&format!("same time {n}"), 50)).await;
    }
    assert_eq!(
        read_pages(2, async |page| store.keys(page).await).await.len(),
        25,
        "also keys created at the same time"
    );
}
