//! Conformance cases of the idempotency store.

use std::sync::Arc;

use super::{at, call_concurrently, expect_error, expect_ok};
use crate::{
    accounts::{
        IdempotencyAttempt,
        IdempotencyState::{self, Completed, InProgress, Mismatch, New},
        IdempotencyStore, StoredHeader, StoredResponse,
    },
    error::ErrorKind,
    ids::Holder,
};

/// Generates one test per case of [`IdempotencyStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! idempotency_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::IdempotencyStore; [$crate::testing::idempotency];
            new_key_returns_new_and_blocks_others
            stored_response_is_returned_unchanged
            other_body_returns_mismatch
            same_holder_begins_again_with_new_lease
            ended_lease_is_free_for_others
            lease_of_corrected_clock_is_shortened
            key_is_deleted_at_expiry
            first_response_is_never_replaced
            complete_by_other_holder_is_conflict
            complete_after_lease_end_succeeds
            released_attempt_is_free_at_once
            concurrent_begins_grant_one_lease
        }
    };
}

type IdempotencyTestStore = Arc<dyn IdempotencyStore>;

/// Attempt with a lease of 60 s and a retention of 1,000 s.
fn attempt(key: &str, holder: &str, now: i64) -> IdempotencyAttempt {
    IdempotencyAttempt {
        key: key.to_owned(),
        fingerprint: vec![1; 32],
        holder: Holder::new(holder),
        now: at(now),
        lease_until: at(now + 60),
        keep_until: at(now + 1_000),
    }
}

fn response(text: &str) -> StoredResponse {
    let header = |name: &str, value: &str| StoredHeader { name: name.to_owned(), value: value.to_owned() };
    let headers = vec![header("x-b", "2"), header("content-type", "application/json"), header("x-b", "1")];
    StoredResponse { status: 201, headers, body: text.into() }
}

async fn begin(store: &IdempotencyTestStore, key: &str, holder: &str, now: i64) -> IdempotencyState {
    expect_ok(store.begin(attempt(key, holder, now)).await)
}

/// A new key returns `New`, and `InProgress` for other holders.
pub async fn new_key_returns_new_and_blocks_others(store: IdempotencyTestStore) {
    assert_eq!(begin(&store, "k", "a", 0).await, New, "a new key is unknown");
    assert_eq!(begin(&store, "k", "b", 59).await, InProgress, "another holder has the lease");
    assert_eq!(begin(&store, "K", "b", 0).await, New, "keys are case-sensitive");
}

/// A response is returned as stored: status, headers in order, any bytes.
pub async fn stored_response_is_returned_unchanged(store: IdempotencyTestStore) {
    let bytes = StoredResponse { body: (0..=255).collect(), headers: vec![], status: 402 };
    let large = StoredResponse { body: vec![b'x'; 300_000], ..response("") };
    for (key, response) in [("a", response("{\"ü\":1}")), ("b", bytes), ("c", large), ("d", response(""))] {
        begin(&store, key, "h", 0).await;
        expect_ok(store.complete(key, &Holder::new("h"), response.clone()).await);
        for (holder, now) in [("h", 1), ("other", 999)] {
            let state = begin(&store, key, holder, now).await;
            assert!(state == Completed(response.clone()), "every caller gets the stored response unchanged");
        }
    }
}

/// Another body under a key is a mismatch: in progress, late and completed.
pub async fn other_body_returns_mismatch(store: IdempotencyTestStore) {
    let other = |holder, now| IdempotencyAttempt { fingerprint: vec![2; 32], ..attempt("k", holder, now) };
    begin(&store, "k", "a", 0).await;
    for (holder, now) in [("a", 1), ("b", 1), ("b", 60), ("b", 999)] {
        let state = expect_ok(store.begin(other(holder, now)).await);
        assert_eq!(state, Mismatch, "the fingerprint is compared first");
    }
    expect_ok(store.complete("k", &Holder::new("a"), response("one")).await);
    assert_eq!(expect_ok(store.begin(other("b", 2)).await), Mismatch, "also after completion");
    assert_eq!(begin(&store, "k", "b", 3).await, Completed(response("one")), "a mismatch changes nothing");
}

/// The holder of an attempt can begin it again with a new lease.
pub async fn same_holder_begins_again_with_new_lease(store: IdempotencyTestStore) {
    begin(&store, "k", "a", 0).await;
    assert_eq!(begin(&store, "k", "a", 30).await, New, "the same holder begins again");
    assert_eq!(begin(&store, "k", "b", 89).await, InProgress, "with the new lease");
    assert_eq!(begin(&store, "k", "b", 90).await, New, "which ends at its expiry");
}

/// An attempt whose lease has ended is free for any holder.
pub async fn ended_lease_is_free_for_others(store: IdempotencyTestStore) {
    begin(&store, "k", "a", 0).await;
    assert_eq!(begin(&store, "k", "b", 60).await, New, "a lease ends at its expiry");
    assert_eq!(begin(&store, "k", "a", 61).await, InProgress, "the new holder has the lease");
}

/// A lease of a clock that was ahead ends with the lease that another holder requests, unless its holder renews it.
pub async fn lease_of_corrected_clock_is_shortened(store: IdempotencyTestStore) {
    for key in ["dead", "alive"] {
        assert_eq!(begin(&store, key, "a", 86_400).await, New, "the clock is a day ahead");
        for now in [0, 59] {
            assert_eq!(begin(&store, key, "b", now).await, InProgress, "as long as a new lease");
        }
    }
    assert_eq!(begin(&store, "dead", "b", 60).await, New, "it is shortened once");
    assert_eq!(begin(&store, "alive", "a", 59).await, New, "its holder renews it");
    assert_eq!(begin(&store, "alive", "b", 118).await, InProgress);
    assert_eq!(begin(&store, "alive", "b", 119).await, New);
    // The longest lease stays.
    let longest = IdempotencyAttempt { lease_until: at(900), ..attempt("longest", "a", 0) };
    assert_eq!(expect_ok(store.begin(longest).await), New);
    assert_eq!(begin(&store, "longest", "b", 0).await, InProgress);
    assert_eq!(begin(&store, "longest", "b", 899).await, InProgress);
}

/// A key is deleted at the end of its retention, completed or not.
pub async fn key_is_deleted_at_expiry(store: IdempotencyTestStore) {
    begin(&store, "done", "a", 0).await;
    expect_ok(store.complete("done", &Holder::new("a"), response("one")).await);
    let short = IdempotencyAttempt { keep_until: at(30), ..attempt("open", "a", 0) };
    expect_ok(store.begin(short).await);
    let other = |key, now| IdempotencyAttempt { fingerprint: vec![2; 32], ..attempt(key, "b", now) };
    assert_eq!(expect_ok(store.begin(other("open", 29)).await), Mismatch, "kept until its expiry");
    assert_eq!(expect_ok(store.begin(other("open", 30)).await), New, "in progress, but expired");
    assert_eq!(begin(&store, "done", "b", 999).await, Completed(response("one")), "kept until its expiry");
    assert_eq!(expect_ok(store.begin(other("done", 1_000)).await), New, "completed, but expired");
    let late = store.complete("done", &Holder::new("a"), response("late")).await;
    expect_error(late, ErrorKind::Conflict, "an expired key belongs to its new holder");
    begin(&store, "again", "a", 0).await;
    begin(&store, "again", "a", 50).await;
    let state = expect_ok(store.begin(other("again", 1_049)).await);
    assert_eq!(state, Mismatch, "each begin sets the retention");
}

/// The first response stays; completing again succeeds.
pub async fn first_response_is_never_replaced(store: IdempotencyTestStore) {
    begin(&store, "k", "a", 0).await;
    for text in ["one", "two"] {
        expect_ok(store.complete("k", &Holder::new("a"), response(text)).await);
    }
    assert_eq!(begin(&store, "k", "a", 5).await, Completed(response("one")), "the first response stays");
    expect_ok(store.release("k", &Holder::new("a")).await);
    assert_eq!(
        begin(&store, "k", "b", 6).await,
        Completed(response("one")),
        "a completed attempt cannot be released"
    );
}

/// Only the holder of an attempt completes it.
pub async fn complete_by_other_holder_is_conflict(store: IdempotencyTestStore) {
    let finish = async |holder: &str| store.complete("k", &Holder::new(holder), response("x")).await;
    expect_error(finish("a").await, ErrorKind::Conflict, "no attempt is in progress");
    begin(&store, "k", "a", 0).await;
    expect_error(finish("b").await, ErrorKind::Conflict, "another holder has the lease");
    begin(&store, "k", "b", 60).await;
    expect_error(finish("a").await, ErrorKind::Conflict, "another holder has the lease now");
    expect_ok(finish("b").await);
    expect_error(finish("a").await, ErrorKind::Conflict, "another holder has completed it");
    assert_eq!(begin(&store, "k", "c", 61).await, Completed(response("x")));
}

/// A holder whose lease has ended can complete if no other holder has begun.
pub async fn complete_after_lease_end_succeeds(store: IdempotencyTestStore) {
    begin(&store, "k", "a", 0).await;
    expect_ok(store.complete("k", &Holder::new("a"), response("late")).await);
    assert_eq!(begin(&store, "k", "b", 500).await, Completed(response("late")), "a late response is stored");
}

/// A released attempt is free at once, also for another body.
pub async fn released_attempt_is_free_at_once(store: IdempotencyTestStore) {
    let abandon = async |holder: &str| expect_ok(store.release("k", &Holder::new(holder)).await);
    abandon("a").await;
    begin(&store, "k", "a", 0).await;
    abandon("b").await;
    assert_eq!(
        begin(&store, "k", "b", 1).await,
        InProgress,
        "a holder cannot release another holder's attempt"
    );
    abandon("a").await;
    let gone = store.complete("k", &Holder::new("a"), response("x")).await;
    expect_error(gone, ErrorKind::Conflict, "a released attempt has no holder");
    let other = IdempotencyAttempt { fingerprint: vec![2; 32], ..attempt("k", "b", 2) };
    assert_eq!(expect_ok(store.begin(other).await), New, "a released attempt is free at once");
}

/// Of concurrent attempts one gets the lease.
pub async fn concurrent_begins_grant_one_lease(store: IdempotencyTestStore) {
    for now in [0, 60] {
        let state = call_concurrently(&store, 0..12, |store, n| async move {
            begin(&store, "k", &format!("{now}/{n}"), now).await
        })
        .await;
        assert_eq!(state.iter().filter(|one| **one == New).count(), 1, "one attempt gets the lease");
        assert_eq!(state.iter().filter(|one| **one == InProgress).count(), 11, "the others are in progress");
    }
}
