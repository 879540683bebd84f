//! The cases of the replies to repeat.

use std::sync::Arc;

use super::{at, done, refused, together};
use crate::{
    accounts::{Attempt, Begun, Header, Replies, Reply},
    error::ErrorKind,
    ids::Holder,
};

/// Makes a test of every case of [`Replies`]; see [`crate::testing`].
#[macro_export]
macro_rules! replies_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::Replies; [$crate::testing::replies];
            a_new_key_is_fresh
            a_reply_is_repeated_as_it_was
            another_body_is_a_mismatch
            the_same_holder_begins_again
            a_lease_that_has_ended_is_fresh_again
            a_key_is_forgotten_at_its_moment
            the_first_reply_stays
            only_who_works_on_it_finishes
            a_late_holder_finishes_unless_another_began
            an_abandoned_attempt_is_fresh_at_once
            beginning_at_once_is_won_by_one
        }
    };
}

type Store = Arc<dyn Replies>;

/// An attempt at a key: leased for 60 seconds, kept for 1,000.
fn attempt(key: &str, holder: &str, now: i64) -> Attempt {
    Attempt {
        key: key.to_owned(),
        fingerprint: vec![1; 32],
        holder: Holder::new(holder),
        now: at(now),
        lease_until: at(now + 60),
        keep_until: at(now + 1_000),
    }
}

fn reply(text: &str) -> Reply {
    let header = |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned() };
    let headers = vec![header("x-b", "2"), header("content-type", "application/json"), header("x-b", "1")];
    Reply { status: 201, headers, body: text.into() }
}

async fn begin(store: &Store, key: &str, holder: &str, now: i64) -> Begun {
    done(store.begin(attempt(key, holder, now)).await)
}

/// A new key is fresh, and in flight for everyone else.
pub async fn a_new_key_is_fresh(store: Store) {
    assert_eq!(begin(&store, "k", "a", 0).await, Begun::Fresh, "nothing is known of a new key");
    assert_eq!(begin(&store, "k", "b", 59).await, Begun::InFlight, "another works on it");
    assert_eq!(begin(&store, "K", "b", 0).await, Begun::Fresh, "another key is another attempt");
}

/// A reply comes back as it was stored: status, headers in order, any bytes.
pub async fn a_reply_is_repeated_as_it_was(store: Store) {
    let bytes = Reply { body: (0..=255).collect(), headers: vec![], status: 402 };
    let large = Reply { body: vec![b'x'; 300_000], ..reply("") };
    for (key, reply) in [("a", reply("{\"ü\":1}")), ("b", bytes), ("c", large), ("d", reply(""))] {
        begin(&store, key, "h", 0).await;
        done(store.finish(key, &Holder::new("h"), reply.clone()).await);
        for (holder, now) in [("h", 1), ("other", 999)] {
            let begun = begin(&store, key, holder, now).await;
            assert!(begun == Begun::Done(reply.clone()), "a reply is repeated as it was, to whoever asks");
        }
    }
}

/// Another body under a key is a mismatch: in flight, late and answered.
pub async fn another_body_is_a_mismatch(store: Store) {
    let other = |holder, now| Attempt { fingerprint: vec![2; 32], ..attempt("k", holder, now) };
    begin(&store, "k", "a", 0).await;
    for (holder, now) in [("a", 1), ("b", 1), ("b", 60), ("b", 999)] {
        let begun = done(store.begin(other(holder, now)).await);
        assert_eq!(begun, Begun::Mismatch, "the body is compared first");
    }
    done(store.finish("k", &Holder::new("a"), reply("one")).await);
    assert_eq!(done(store.begin(other("b", 2)).await), Begun::Mismatch, "also when it is answered");
    assert_eq!(begin(&store, "k", "b", 3).await, Begun::Done(reply("one")), "and nothing is changed by it");
}

/// The holder of an attempt begins it again with a new lease.
pub async fn the_same_holder_begins_again(store: Store) {
    begin(&store, "k", "a", 0).await;
    assert_eq!(begin(&store, "k", "a", 30).await, Begun::Fresh, "the same holder begins again");
    assert_eq!(begin(&store, "k", "b", 89).await, Begun::InFlight, "with the new lease");
    assert_eq!(begin(&store, "k", "b", 90).await, Begun::Fresh, "which ends at its moment");
}

/// An attempt whose lease has ended is anyone's.
pub async fn a_lease_that_has_ended_is_fresh_again(store: Store) {
    begin(&store, "k", "a", 0).await;
    assert_eq!(begin(&store, "k", "b", 60).await, Begun::Fresh, "a lease that ends now has ended");
    assert_eq!(begin(&store, "k", "a", 61).await, Begun::InFlight, "it is another's now");
}

/// A key is forgotten when it need no longer be kept, whatever became of it.
pub async fn a_key_is_forgotten_at_its_moment(store: Store) {
    begin(&store, "done", "a", 0).await;
    done(store.finish("done", &Holder::new("a"), reply("one")).await);
    let short = Attempt { keep_until: at(30), ..attempt("open", "a", 0) };
    done(store.begin(short).await);
    let other = |key, now| Attempt { fingerprint: vec![2; 32], ..attempt(key, "b", now) };
    assert_eq!(done(store.begin(other("open", 29)).await), Begun::Mismatch, "kept until its moment");
    assert_eq!(done(store.begin(other("open", 30)).await), Begun::Fresh, "in flight, but kept no longer");
    assert_eq!(begin(&store, "done", "b", 999).await, Begun::Done(reply("one")), "kept until its moment");
    assert_eq!(done(store.begin(other("done", 1_000)).await), Begun::Fresh, "answered, but kept no longer");
    let late = store.finish("done", &Holder::new("a"), reply("late")).await;
    refused(late, ErrorKind::Conflict, "what was forgotten is another's");
    begin(&store, "again", "a", 0).await;
    begin(&store, "again", "a", 50).await;
    let begun = done(store.begin(other("again", 1_049)).await);
    assert_eq!(begun, Begun::Mismatch, "whoever begins sets how long the key is kept");
}

/// The first reply stays; finishing again is success.
pub async fn the_first_reply_stays(store: Store) {
    begin(&store, "k", "a", 0).await;
    for text in ["one", "two"] {
        done(store.finish("k", &Holder::new("a"), reply(text)).await);
    }
    assert_eq!(begin(&store, "k", "a", 5).await, Begun::Done(reply("one")), "the first reply stays");
    done(store.abandon("k", &Holder::new("a")).await);
    assert_eq!(
        begin(&store, "k", "b", 6).await,
        Begun::Done(reply("one")),
        "what is answered is not given up"
    );
}

/// Only the holder of an attempt answers it.
pub async fn only_who_works_on_it_finishes(store: Store) {
    let finish = async |holder: &str| store.finish("k", &Holder::new(holder), reply("x")).await;
    refused(finish("a").await, ErrorKind::Conflict, "nobody works on it");
    begin(&store, "k", "a", 0).await;
    refused(finish("b").await, ErrorKind::Conflict, "another works on it");
    begin(&store, "k", "b", 60).await;
    refused(finish("a").await, ErrorKind::Conflict, "another works on it by now");
    done(finish("b").await);
    refused(finish("a").await, ErrorKind::Conflict, "another has answered it");
    assert_eq!(begin(&store, "k", "c", 61).await, Begun::Done(reply("x")));
}

/// A holder whose lease has ended finishes as long as nobody else began.
pub async fn a_late_holder_finishes_unless_another_began(store: Store) {
    begin(&store, "k", "a", 0).await;
    done(store.finish("k", &Holder::new("a"), reply("late")).await);
    assert_eq!(begin(&store, "k", "b", 500).await, Begun::Done(reply("late")), "late is not too late");
}

/// An abandoned attempt is fresh at once, with another body too.
pub async fn an_abandoned_attempt_is_fresh_at_once(store: Store) {
    let abandon = async |holder: &str| done(store.abandon("k", &Holder::new(holder)).await);
    abandon("a").await;
    begin(&store, "k", "a", 0).await;
    abandon("b").await;
    assert_eq!(begin(&store, "k", "b", 1).await, Begun::InFlight, "nobody gives up another's attempt");
    abandon("a").await;
    let gone = store.finish("k", &Holder::new("a"), reply("x")).await;
    refused(gone, ErrorKind::Conflict, "nobody works on what was given up");
    let other = Attempt { fingerprint: vec![2; 32], ..attempt("k", "b", 2) };
    assert_eq!(done(store.begin(other).await), Begun::Fresh, "what was given up is fresh at once");
}

/// Of many that begin at once one works on it.
pub async fn beginning_at_once_is_won_by_one(store: Store) {
    for now in [0, 60] {
        let begun = together((0..12).map(|n| {
            let store = Arc::clone(&store);
            async move { begin(&store, "k", &format!("{now}/{n}"), now).await }
        }))
        .await;
        assert_eq!(begun.iter().filter(|one| **one == Begun::Fresh).count(), 1, "one works on it");
        assert_eq!(begun.iter().filter(|one| **one == Begun::InFlight).count(), 11, "the others are told");
    }
}
