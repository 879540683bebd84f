//! Keys of Surface A: adding, entitling, rotating, revoking.

use super::*;
use crate::{
    directory::{AddKey, Entitle, Rotated},
    error::ErrorKind,
    page::{PAGE_LIMIT, PageRequest},
    testing::{pages, refused, together},
};

async fn add(store: &Store, key: LookupKey) -> AddKey {
    done(store.add_key(key, 3).await)
}

fn full(room_at: i64) -> AddKey {
    AddKey::SubjectFull { room_at: Some(at(room_at)) }
}

/// Puts off the end of a key's entitlement, with 3 live plus keys for each subject.
async fn entitle(store: &Store, key: &str, subject: &str, until: i64, now: i64) -> bool {
    let (key, subject) = (KeyId::new(key), subject.to_owned());
    done(store.entitle(Entitle { key, subject, until: at(until), now: at(now), live_per_subject: 3 }).await)
}

/// A key that was added opens, whole as it was given.
pub async fn a_key_opens_for_its_owner(store: Store) {
    assert_eq!(owner(&store, "a").await, None, "an unknown key opens nothing");
    let plain = LookupKey { label: None, ..lookup_key("a", 0) };
    let plus = LookupKey { email: Some("a@example.org".to_owned()), ..plus_key("b", "subject", 5, 99) };
    for key in [plain, plus] {
        assert_eq!(add(&store, key.clone()).await, AddKey::Added, "a new key is added");
        let id = key.key.id.as_str().to_owned();
        assert_eq!(owner(&store, &id).await, Some(Owner::Lookup(key)), "a key comes back as it was given");
    }
    assert_eq!(done(store.owner(&[]).await), None, "what is no digest opens nothing");
    assert_eq!(done(store.owner(&digest("a")[..31]).await), None, "part of a digest opens nothing");
}

/// The same key again is added already, and changes nothing.
pub async fn a_key_is_added_once(store: Store) {
    let key = plus_key("a", "subject", 0, 99);
    add(&store, key.clone()).await;
    let again = LookupKey { label: None, entitled_until: Some(at(5)), ..key.clone() };
    let added = done(store.add_key(again.clone(), 1).await);
    assert_eq!(added, AddKey::Added, "a repeat is success, also when the subject is full");
    assert_eq!(owner(&store, "a").await, Some(Owner::Lookup(key)), "and changes nothing");
    done(store.revoke_key(&KeyId::new("a"), at(9)).await);
    assert_eq!(add(&store, again).await, AddKey::Added, "also when the key is dead by now");
    assert_eq!(owner(&store, "a").await, None, "and does not bring it back to life");
}

/// An id or a digest is one key's only, dead or alive.
pub async fn a_key_with_anothers_id_or_digest_is_a_conflict(store: Store) {
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
        refused(store.add_key(key, 3).await, ErrorKind::Conflict, "an id or digest of another key");
    }
    done(store.revoke_key(&KeyId::new("a"), at(9)).await);
    refused(store.add_key(same_id, 3).await, ErrorKind::Conflict, "also of a dead key");
    assert_eq!(owner(&store, "b").await, None, "a conflict stores nothing");
}

/// A subject with as many live plus keys as it may have gets no more.
pub async fn a_subject_has_only_so_many_live_plus_keys(store: Store) {
    for id in ["a", "b", "c"] {
        assert_eq!(add(&store, plus_key(id, "s", 0, 100)).await, AddKey::Added, "below the limit");
    }
    assert_eq!(add(&store, plus_key("d", "s", 99, 500)).await, full(100), "at the limit");
    assert_eq!(owner(&store, "d").await, None, "a key too many is not stored");
    assert_eq!(add(&store, plus_key("e", "S", 0, 100)).await, AddKey::Added, "another subject has its own");
    assert_eq!(add(&store, lookup_key("f", 0)).await, AddKey::Added, "a key of no subject is not counted");
    assert_eq!(
        done(store.add_key(plus_key("g", "s", 0, 100), 4).await),
        AddKey::Added,
        "the limit is the call's"
    );
    let none = done(store.add_key(plus_key("h", "new", 0, 100), 0).await);
    assert_eq!(none, AddKey::SubjectFull { room_at: None }, "a limit of 0 lets no plus key in");
    let lowered = done(store.add_key(plus_key("i", "s", 0, 100), 2).await);
    assert_eq!(lowered, full(100), "a limit that was lowered lets in none until enough have ended");
}

/// Keys that are revoked, or whose entitlement has ended, are not counted.
pub async fn a_full_subject_has_room_again(store: Store) {
    for (id, until) in [("a", 100), ("b", 100), ("c", 50)] {
        add(&store, plus_key(id, "s", 0, until)).await;
    }
    assert_eq!(add(&store, plus_key("d", "s", 49, 100)).await, full(50), "all three are live");
    let fewer = done(store.add_key(plus_key("d", "s", 49, 100), 2).await);
    assert_eq!(fewer, full(100), "there is room when one of the two that end last has ended");
    assert_eq!(add(&store, plus_key("d", "s", 50, 100)).await, AddKey::Added, "one has ended by now");
    done(store.revoke_key(&KeyId::new("a"), at(51)).await);
    assert_eq!(add(&store, plus_key("e", "s", 52, 100)).await, AddKey::Added, "one is revoked");
    assert_eq!(add(&store, plus_key("f", "s", 53, 100)).await, full(100), "three are live again");
    done(store.rotate(&digest("b"), new_key("b2", 54)).await);
    assert_eq!(add(&store, plus_key("f", "s", 55, 100)).await, full(100), "a rotated key counts once");
}

/// Keys added at the same time never take a subject beyond its limit.
pub async fn subjects_at_once_never_go_beyond_their_limit(store: Store) {
    let added = together((0..12).map(|n| {
        let store = Arc::clone(&store);
        async move { done(store.add_key(plus_key(&format!("k{n}"), "s", 0, 100), 3).await) }
    }))
    .await;
    let count = added.iter().filter(|added| **added == AddKey::Added).count();
    assert_eq!(count, 3, "exactly as many as the limit");
    let stored = pages(PAGE_LIMIT, async |page| store.keys(page).await).await;
    assert_eq!(stored.len(), 3, "and no others are stored");
}

/// An entitlement is put off by a proof of its own subject, never brought forward.
pub async fn an_entitlement_is_put_off_by_its_own_subject(store: Store) {
    add(&store, plus_key("a", "s", 0, 100)).await;
    add(&store, lookup_key("plain", 0)).await;
    for (until, expect) in [(200, 200), (150, 200), (200, 200), (201, 201)] {
        assert!(entitle(&store, "a", "s", until, 1).await, "the key is of that subject");
        let now = owner(&store, "a").await;
        assert_eq!(now, Some(Owner::Lookup(plus_key("a", "s", 0, expect))), "never brought forward");
    }
    assert!(!entitle(&store, "a", "S", 900, 1).await, "another subject's proof is not enough");
    assert!(!entitle(&store, "plain", "s", 900, 1).await, "a key of no subject has none");
    assert!(!entitle(&store, "nobody's", "s", 900, 1).await, "an unknown key has none");
    assert_eq!(owner(&store, "a").await, Some(Owner::Lookup(plus_key("a", "s", 0, 201))), "nothing changed");
    let bare = LookupKey { entitled_until: None, ..plus_key("b", "s", 0, 0) };
    add(&store, bare).await;
    assert!(entitle(&store, "b", "s", 300, 1).await, "a first proof is one too");
    assert_eq!(owner(&store, "b").await, Some(Owner::Lookup(plus_key("b", "s", 0, 300))));
    done(store.revoke_key(&KeyId::new("a"), at(9)).await);
    assert!(!entitle(&store, "a", "s", 900, 10).await, "a revoked key is entitled to nothing");
}

/// Keys that have run out come back to life only as far as their subject has room.
pub async fn an_ended_entitlement_needs_room_again(store: Store) {
    for (id, since, until) in [("a", 0, 10), ("b", 20, 100), ("c", 20, 100), ("d", 20, 100)] {
        assert_eq!(add(&store, plus_key(id, "s", since, until)).await, AddKey::Added);
    }
    assert!(!entitle(&store, "a", "s", 200, 20).await, "three others are live");
    assert_eq!(owner(&store, "a").await, Some(Owner::Lookup(plus_key("a", "s", 0, 10))), "nothing changed");
    assert!(entitle(&store, "b", "s", 200, 20).await, "a live key has its own place");
    done(store.revoke_key(&KeyId::new("c"), at(21)).await);
    assert!(entitle(&store, "a", "s", 200, 22).await, "one was revoked");
    assert!(
        entitle(&store, "d", "s", 200, 100).await,
        "its end is the first moment at which it counts no more"
    );
    assert_eq!(add(&store, plus_key("e", "s", 150, 300)).await, full(200), "three are live again");
}

/// A rotated key is dead at once; the new one has all else of the old.
pub async fn a_rotated_key_is_dead_at_once(store: Store) {
    let old = LookupKey { email: Some("a@example.org".to_owned()), ..plus_key("a", "s", 0, 100) };
    add(&store, old.clone()).await;
    let rotated = done(store.rotate(&digest("a"), new_key("b", 20)).await);
    assert_eq!(rotated, Rotated::Rotated);
    assert_eq!(owner(&store, "a").await, None, "the old key is dead at once");
    let new = LookupKey { key: new_key("b", 20), ..old };
    assert_eq!(owner(&store, "b").await, Some(Owner::Lookup(new)), "the new one has the same owner");
    let all = pages(PAGE_LIMIT, async |page| store.keys(page).await).await;
    let dead: Vec<_> = all.iter().map(|one| (one.key.key.id.as_str(), one.revoked_at)).collect();
    assert_eq!(dead, [("a", Some(at(20))), ("b", None)], "the old key is listed as revoked at that moment");
}

/// Rotating a key that is not live, or was rotated already, is stale and stores nothing.
pub async fn a_rotation_never_takes_effect_twice(store: Store) {
    let stale = async |old: &str, new: &str| {
        let rotated = done(store.rotate(&digest(old), new_key(new, 30)).await);
        assert_eq!(rotated, Rotated::Stale, "{old} is no live key");
    };
    stale("a", "b").await;
    assert_eq!(owner(&store, "b").await, None, "a stale rotation stores nothing");
    add(&store, lookup_key("a", 0)).await;
    done(store.rotate(&digest("a"), new_key("b", 20)).await);
    stale("a", "b").await;
    stale("a", "c").await;
    assert_eq!(owner(&store, "c").await, None, "a stale rotation stores nothing");
    assert!(owner(&store, "b").await.is_some(), "what a rotation made stays live");
    done(store.revoke_key(&KeyId::new("b"), at(40)).await);
    stale("b", "d").await;
}

/// A rotation to an id or digest that is stored is a conflict, and the old key lives.
pub async fn a_rotation_to_a_stored_key_is_a_conflict(store: Store) {
    for id in ["a", "b"] {
        add(&store, lookup_key(id, 0)).await;
    }
    let same_digest = NewKey { digest: digest("b"), ..new_key("c", 20) };
    let same_id = NewKey { id: KeyId::new("b"), ..new_key("c", 20) };
    for new in [same_digest, same_id, new_key("a", 20)] {
        refused(store.rotate(&digest("a"), new).await, ErrorKind::Conflict, "the new key is stored already");
        assert!(owner(&store, "a").await.is_some(), "a conflict changes nothing");
        assert_eq!(owner(&store, "c").await, None, "a conflict stores nothing");
    }
}

/// Of many rotations of one key exactly one takes effect.
pub async fn rotating_at_once_is_won_by_one(store: Store) {
    add(&store, lookup_key("a", 0)).await;
    let rotated = together((0..10).map(|n| {
        let store = Arc::clone(&store);
        async move { done(store.rotate(&digest("a"), new_key(&format!("b{n}"), 20)).await) }
    }))
    .await;
    assert_eq!(rotated.iter().filter(|one| **one == Rotated::Rotated).count(), 1, "one wins");
    for (n, rotated) in rotated.iter().enumerate() {
        let live = owner(&store, &format!("b{n}")).await.is_some();
        assert_eq!(live, *rotated == Rotated::Rotated, "only the winner's key is live");
    }
}

/// A revoked key is dead, and revoking again finds none.
pub async fn a_revoked_key_is_dead(store: Store) {
    for id in ["a", "b"] {
        add(&store, lookup_key(id, 0)).await;
    }
    assert!(done(store.revoke_key(&KeyId::new("a"), at(7)).await), "there was such a live key");
    assert!(!done(store.revoke_key(&KeyId::new("a"), at(8)).await), "it is dead already");
    assert!(!done(store.revoke_key(&KeyId::new("nobody's"), at(8)).await), "there is no such key");
    assert_eq!(owner(&store, "a").await, None, "a revoked key opens nothing");
    assert!(owner(&store, "b").await.is_some(), "others live on");
    let all = pages(PAGE_LIMIT, async |page| store.keys(page).await).await;
    assert_eq!(all[0].key, lookup_key("a", 0), "a revoked key is listed as it was");
    assert_eq!(all[0].revoked_at, Some(at(7)), "with the moment of its first revocation");
}

/// Keys of Surface A come page by page, oldest first.
pub async fn keys_come_in_pages(store: Store) {
    register(&store, "x@example.org", "account-key").await;
    for n in 0..20 {
        add(&store, lookup_key(&format!("k{n:02}"), n)).await;
    }
    done(store.revoke_key(&KeyId::new("k05"), at(30)).await);
    for limit in [1, 6, 19, 20, 21, u32::MAX] {
        let all = pages(limit, async |page| store.keys(page).await).await;
        let ids: Vec<_> = all.iter().map(|one| one.key.key.id.as_str().to_owned()).collect();
        let expect: Vec<_> = (0..20).map(|n| format!("k{n:02}")).collect();
        assert_eq!(ids, expect, "pages of {limit} give every key of Surface A once, oldest first");
    }
    let page = done(store.keys(PageRequest { after: None, limit: 20 }).await);
    assert!(page.next.is_none(), "a full page with nothing after it is the last");
    for n in 0..5 {
        add(&store, lookup_key(&format!("same moment {n}"), 50)).await;
    }
    assert_eq!(pages(2, async |page| store.keys(page).await).await.len(), 25, "also those of one moment");
}
