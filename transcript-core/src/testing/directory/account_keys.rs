//! Cases of several keys for an account.

use super::{key_access::requests, *};
use crate::{
    directory::{
        AccountKey,
        AddAccountKeyOutcome::{self, AccountFull, Added, Missing},
        EraseOutcome, NewAccountKey, RotateOutcome,
    },
    error::ErrorKind,
    testing::{call_concurrently, expect_error},
};

/// Limit of live keys in these cases.
const LIVE_MAX: u32 = 3;
/// Number of concurrent calls.
const CALLS: u32 = 10;

fn further_key(account: &Account, id: &str, seconds: i64) -> NewAccountKey {
    NewAccountKey {
        key: new_key(id, seconds),
        account: account.id.clone(),
        name: format!("Name of «{id}» 🦀"),
    }
}

/// Adds a key at time 20.
async fn add(store: &DirectoryStore, account: &Account, id: &str) -> AddAccountKeyOutcome {
    expect_ok(store.add_account_key(further_key(account, id, 20), LIVE_MAX).await)
}

async fn live(store: &DirectoryStore, account: &Account) -> Vec<AccountKey> {
    expect_ok(store.account_keys(&account.id).await)
}

/// The ids of the live keys of an account.
async fn ids(store: &DirectoryStore, account: &Account) -> Vec<String> {
    live(store, account).await.into_iter().map(|live| live.key.id.to_string()).collect()
}

/// A live key without a name and without a use.
fn unnamed(id: &str, seconds: i64) -> AccountKey {
    AccountKey { key: new_key(id, seconds), name: None, last_used_at: None }
}

/// A rotated or revoked key is not listed; an unknown account has no keys.
pub async fn account_keys_are_its_live_ones(store: DirectoryStore) {
    let account = register(&store, "ann@example.org", "k1").await;
    register(&store, "ben@example.org", "k2").await;
    assert_eq!(live(&store, &account).await, [unnamed("k1", 10)]);
    expect_ok(store.rotate(&digest("k1"), new_key("k3", 20)).await);
    assert_eq!(live(&store, &account).await, [unnamed("k3", 20)]);
    assert!(expect_ok(store.revoke_key(&KeyId::new("k3"), at(30)).await));
    assert_eq!(live(&store, &account).await, []);
    assert_eq!(expect_ok(store.account_keys(&AccountId::new("unknown")).await), []);
}

/// A further key has the same owner as the others, which stay; a revoked key makes room.
pub async fn account_key_is_added_beside_others(store: DirectoryStore) {
    let account = register(&store, "ann@example.org", "k1").await;
    let other = register(&store, "ben@example.org", "other").await;
    assert_eq!(add(&store, &account, "k2").await, Added);
    assert_eq!(add(&store, &account, "k3").await, Added);
    for key in ["k1", "k2", "k3"] {
        assert_eq!(owner(&store, key).await, v1_owner(key, &account), "{key} belongs to the account");
    }
    let named = |id: &str, seconds| AccountKey {
        key: new_key(id, seconds),
        name: Some(further_key(&account, id, seconds).name),
        last_used_at: None,
    };
    assert_eq!(live(&store, &account).await, [unnamed("k1", 10), named("k2", 20), named("k3", 20)]);
    assert_eq!(add(&store, &account, "k4").await, AccountFull);
    assert_eq!(owner(&store, "k4").await, None, "a rejected key is not stored");
    assert_eq!(add(&store, &account, "k2").await, Added, "a repeat succeeds, even if the account is full");
    assert_eq!(add(&store, &other, "k5").await, Added, "each account has its own limit");

    let rotated = expect_ok(store.rotate(&digest("k2"), new_key("k6", 30)).await);
    assert_eq!(rotated, RotateOutcome::Rotated);
    let successor = AccountKey { name: named("k2", 20).name, ..unnamed("k6", 30) };
    let expect = [unnamed("k1", 10), named("k3", 20), successor];
    assert_eq!(live(&store, &account).await, expect, "a successor has the name");
    assert!(expect_ok(store.revoke_key(&KeyId::new("k1"), at(40)).await));
    assert_eq!(add(&store, &account, "k4").await, Added, "one was revoked");
    assert_eq!(ids(&store, &account).await, ["k3", "k6", "k4"]);
    assert_eq!(add(&store, &account, "k1").await, Added, "a repeat succeeds, even if the key is dead");
    assert_eq!(owner(&store, "k1").await, None, "a repeat does not revive the key");
    let unknown = Account { id: AccountId::new("unknown"), ..account };
    assert_eq!(add(&store, &unknown, "k7").await, Missing);
    assert_eq!(owner(&store, "k7").await, None);
}

/// An id or digest belongs to one key only, of either API.
pub async fn account_key_with_used_id_or_digest_is_conflict(store: DirectoryStore) {
    let account = register(&store, "ann@example.org", "k1").await;
    expect_ok(store.add_key(lookup_key("lookup", 0), 3).await);
    for used in ["k1", "lookup"] {
        let (mut same_id, mut same_digest) =
            (further_key(&account, "k2", 20), further_key(&account, "k2", 20));
        same_id.key.id = KeyId::new(used);
        same_digest.key.digest = digest(used);
        for key in [same_id, same_digest] {
            let added = store.add_account_key(key, LIVE_MAX).await;
            expect_error(added, ErrorKind::Conflict, "an id or digest of another key");
        }
    }
    assert_eq!(ids(&store, &account).await, ["k1"], "a conflict stores nothing");
}

/// A confirmed redemption and the erasure of an account end all of its keys.
pub async fn account_keys_end_with_redemption_and_erasure(store: DirectoryStore) {
    let account = register(&store, "ann@example.org", "k1").await;
    assert_eq!(add(&store, &account, "k2").await, Added);
    expect_ok(store.put_token(token("again", "ann@example.org")).await);
    redeem(&store, "again", "k3", true).await;
    assert_eq!(ids(&store, &account).await, ["k3"], "the redemption replaces all keys");
    assert_eq!(add(&store, &account, "k4").await, Added);
    assert_eq!(expect_ok(store.erase_account(&account.id, 1, at(50)).await), EraseOutcome::Erased);
    for key in ["k1", "k2", "k3", "k4"] {
        assert_eq!(owner(&store, key).await, None, "{key} is dead");
    }
    assert_eq!(add(&store, &account, "k5").await, Missing, "an erased account gets no key");
}

/// Concurrently added keys never exceed the limit of an account.
pub async fn concurrent_account_keys_never_exceed_limit(store: DirectoryStore) {
    let account = register(&store, "ann@example.org", "k").await;
    let added = call_concurrently(&store, 0..CALLS, |store, n| {
        let account = account.clone();
        async move { add(&store, &account, &format!("k{n}")).await }
    })
    .await;
    assert_eq!(added.iter().filter(|added| **added == Added).count(), 2, "the first key counts");
    assert_eq!(live(&store, &account).await.len(), LIVE_MAX as usize, "no others are stored");
}

/// The last use of each key is listed; a successor has none.
pub async fn account_key_use_is_listed_until_rotation(store: DirectoryStore) {
    let account = register(&store, "ann@example.org", "k1").await;
    assert_eq!(add(&store, &account, "k2").await, Added);
    let used = vec![requests("k1", 1, at(25)), requests("k2", 2, at(26))];
    assert_eq!(expect_ok(store.add_key_requests(used).await).len(), 2, "both are counted");
    let earlier = requests("k1", 1, at(24));
    let added = expect_ok(store.add_key_requests(vec![earlier]).await);
    assert_eq!(added.first().map(|added| added.counts.total), Some(2), "the counts are returned");
    let used = async || {
        let live = live(&store, &account).await;
        live.into_iter().map(|live| (live.key.id.to_string(), live.last_used_at)).collect::<Vec<_>>()
    };
    let of = |id: &str, at| (id.to_owned(), at);
    assert_eq!(used().await, [of("k1", Some(at(25))), of("k2", Some(at(26)))]);
    expect_ok(store.rotate(&digest("k1"), new_key("k3", 30)).await);
    assert_eq!(used().await, [of("k2", Some(at(26))), of("k3", None)], "a successor was not used");
    expect_ok(store.add_key_requests(vec![requests("k3", 1, at(31))]).await);
    assert_eq!(used().await, [of("k2", Some(at(26))), of("k3", Some(at(31)))]);
}
