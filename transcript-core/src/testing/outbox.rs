//! Conformance cases of the outbox.

use std::sync::Arc;

use super::{at, call_concurrently, expect_ok};
use crate::accounts::{MailIntent, Outbox};

/// Generates one test per case of [`Outbox`]; see [`crate::testing`].
#[macro_export]
macro_rules! outbox_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::Outbox; [$crate::testing::outbox];
            queued_mail_is_due_immediately
            mail_queued_again_is_unchanged
            leased_mail_is_not_due
            lease_takes_longest_due_mails_first
            failed_mail_is_due_at_retry_time
            mail_of_corrected_clock_is_due_soon
            finished_mail_is_never_due_again
            deleted_address_has_no_mails_left
            waiting_count_excludes_finished_mails
            concurrent_leases_take_each_mail_once
        }
    };
}

type OutboxStore = Arc<dyn Outbox>;

fn mail(id: &str) -> MailIntent {
    MailIntent {
        id: id.to_owned(),
        kind: "verify".to_owned(),
        to: format!("{id}@example.org"),
        attempts: 0,
        language: None,
    }
}

async fn queue(store: &OutboxStore, id: &str, now: i64) {
    expect_ok(store.queue(mail(id), at(now)).await);
}

/// Leases at most 10 due mails for 60 seconds; returns ids and attempts.
async fn due(store: &OutboxStore, now: i64) -> Vec<(String, u32)> {
    let mails = expect_ok(store.lease_due(at(now), at(now + 60), 10).await);
    mails.into_iter().map(|mail| (mail.id, mail.attempts)).collect()
}

fn expected(mails: &[(&str, u32)]) -> Vec<(String, u32)> {
    mails.iter().map(|(id, attempts)| ((*id).to_owned(), *attempts)).collect()
}

/// Deleting an address removes its waiting and leased mails; other mails stay, and ids stay used.
pub async fn deleted_address_has_no_mails_left(store: OutboxStore) {
    assert_eq!(expect_ok(store.cancel_for_address("a@example.org", at(0)).await), 0);
    queue(&store, "a", 0).await;
    assert_eq!(due(&store, 0).await, expected(&[("a", 1)]));
    let again = MailIntent { to: "a@example.org".to_owned(), ..mail("again") };
    expect_ok(store.queue(again.clone(), at(1)).await);
    queue(&store, "b", 1).await;
    assert_eq!(
        expect_ok(store.cancel_for_address("a@example.org", at(2)).await),
        2,
        "the leased mail and the waiting mail"
    );
    assert_eq!(expect_ok(store.cancel_for_address("a@example.org", at(2)).await), 0, "none are left");
    expect_ok(store.finish("a", Some(at(3))).await);
    expect_ok(store.queue(again, at(3)).await);
    assert_eq!(
        due(&store, 999).await,
        expected(&[("b", 1)]),
        "the lease holder cannot restore a deleted mail"
    );
}

/// A queued mail is due immediately and unchanged.
pub async fn queued_mail_is_due_immediately(store: OutboxStore) {
    assert_eq!(due(&store, 0).await, [], "an empty outbox has nothing due");
    let queued = MailIntent {
        kind: "recover".to_owned(),
        to: "ü@exämple.org".to_owned(),
        language: Some("pt-BR".to_owned()),
        ..mail("a")
    };
    expect_ok(store.queue(queued.clone(), at(10)).await);
    assert_eq!(due(&store, 9).await, [], "a mail is not due before it is queued");
    let mails = expect_ok(store.lease_due(at(10), at(70), 10).await);
    assert_eq!(
        mails,
        [MailIntent { attempts: 1, ..queued }],
        "the mail is unchanged except for the attempt count"
    );
}

/// Queueing an existing id changes nothing, even after the mail is done.
pub async fn mail_queued_again_is_unchanged(store: OutboxStore) {
    queue(&store, "a", 0).await;
    let other = MailIntent { to: "other@example.org".to_owned(), ..mail("a") };
    expect_ok(store.queue(other.clone(), at(0)).await);
    let mails = expect_ok(store.lease_due(at(5), at(65), 10).await);
    assert_eq!(mails, [MailIntent { attempts: 1, ..mail("a") }], "the first mail stays, once");
    expect_ok(store.queue(other.clone(), at(6)).await);
    assert_eq!(due(&store, 7).await, [], "queueing again does not end the lease");
    expect_ok(store.finish("a", None).await);
    expect_ok(store.queue(other, at(8)).await);
    assert_eq!(due(&store, 999).await, [], "a finished mail is not queued again");
}

/// A leased mail is not due before its lease ends; each lease counts as an attempt.
pub async fn leased_mail_is_not_due(store: OutboxStore) {
    queue(&store, "a", 0).await;
    assert_eq!(due(&store, 0).await, expected(&[("a", 1)]));
    assert_eq!(due(&store, 59).await, [], "a leased mail is not due");
    assert_eq!(due(&store, 60).await, expected(&[("a", 2)]), "a lease ends at its expiry and was an attempt");
    assert_eq!(due(&store, 120).await, expected(&[("a", 3)]), "each lease counts as an attempt");
}

/// The mails that have been due longest come first, up to the limit.
pub async fn lease_takes_longest_due_mails_first(store: OutboxStore) {
    for (id, now) in [("c", 3), ("a", 1), ("d", 4), ("b", 2), ("later", 500)] {
        queue(&store, id, now).await;
    }
    let mut order = Vec::new();
    for (limit, expect) in [(0, 0), (1, 1), (2, 2), (10, 1), (10, 0)] {
        let mails = expect_ok(store.lease_due(at(10), at(400), limit).await);
        assert_eq!(mails.len(), expect, "as many as requested and available");
        order.extend(mails.into_iter().map(|mail| mail.id));
    }
    assert_eq!(order, ["a", "b", "c", "d"], "the longest due first");
    expect_ok(store.finish("d", Some(at(20))).await);
    let mut mails = due(&store, 450).await;
    assert_eq!(mails.remove(0), ("d".to_owned(), 2), "the order follows the due time, not the queue time");
    mails.sort();
    assert_eq!(mails, expected(&[("a", 2), ("b", 2), ("c", 2)]), "then the mails whose leases ended");
}

/// A mail whose sending failed is due again at its retry time, not before.
pub async fn failed_mail_is_due_at_retry_time(store: OutboxStore) {
    queue(&store, "a", 0).await;
    due(&store, 0).await;
    expect_ok(store.finish("a", Some(at(30))).await);
    assert_eq!(due(&store, 29).await, [], "not before the retry time");
    assert_eq!(
        due(&store, 30).await,
        expected(&[("a", 2)]),
        "at the retry time, before the first lease would end"
    );
    expect_ok(store.finish("a", Some(at(500))).await);
    assert_eq!(due(&store, 499).await, [], "also if its lease would have ended before");
    assert_eq!(due(&store, 500).await, expected(&[("a", 3)]));
}

/// Mails that a clock that was ahead has queued, leased or delayed are due soon; the longest pause stays.
pub async fn mail_of_corrected_clock_is_due_soon(store: OutboxStore) {
    let day = 86_400;
    queue(&store, "leased", day).await;
    assert_eq!(due(&store, day).await, expected(&[("leased", 1)]), "the clock is a day ahead");
    queue(&store, "new", day).await;
    queue(&store, "delayed", 0).await;
    assert_eq!(due(&store, 0).await, expected(&[("delayed", 1)]));
    expect_ok(store.finish("delayed", Some(at(3_600))).await);
    assert_eq!(due(&store, 899).await, [], "a holder may be alive");
    assert_eq!(due(&store, 900).await, expected(&[("leased", 2), ("new", 1)]));
    for id in ["leased", "new"] {
        expect_ok(store.finish(id, None).await);
    }
    assert_eq!(due(&store, 3_599).await, [], "the longest pause stays");
    assert_eq!(due(&store, 3_600).await, expected(&[("delayed", 2)]));
    expect_ok(store.finish("delayed", Some(at(day))).await);
    for now in [3_600, 4_499] {
        assert_eq!(due(&store, now).await, [], "a pause of a day");
    }
    assert_eq!(due(&store, 4_500).await, expected(&[("delayed", 3)]), "it is shortened once");
}

/// `waiting` counts the mails that are neither sent nor abandoned, leased or not.
pub async fn waiting_count_excludes_finished_mails(store: OutboxStore) {
    let waiting = async || expect_ok(store.count_waiting().await);
    assert_eq!(waiting().await, 0, "an empty outbox");
    for (id, count) in [("a", 1), ("b", 2), ("b", 2), ("c", 3)] {
        queue(&store, id, 0).await;
        assert_eq!(waiting().await, count, "each mail counts once");
    }
    due(&store, 0).await;
    expect_ok(store.finish("a", Some(at(900))).await);
    assert_eq!(waiting().await, 3, "leased and delayed mails count");
    expect_ok(store.finish("b", None).await);
    assert_eq!(waiting().await, 2, "finished mails do not count");
    expect_ok(store.cancel_for_address("c@example.org", at(1)).await);
    assert_eq!(waiting().await, 1, "deleted mails do not count");
}

/// A finished mail is never due again; an unknown id is not an error.
pub async fn finished_mail_is_never_due_again(store: OutboxStore) {
    for id in ["a", "b"] {
        queue(&store, id, 0).await;
    }
    due(&store, 0).await;
    for _ in 0..2 {
        expect_ok(store.finish("a", None).await);
    }
    expect_ok(store.finish("a", Some(at(70))).await);
    expect_ok(store.finish("unknown", None).await);
    expect_ok(store.finish("unknown", Some(at(1))).await);
    assert_eq!(due(&store, 9_999).await, expected(&[("b", 2)]), "a finished mail is never due again");
}

/// Concurrent leases take each mail once.
pub async fn concurrent_leases_take_each_mail_once(store: OutboxStore) {
    for n in 0..20 {
        queue(&store, &format!("m{n:02}"), 0).await;
    }
    let leased = call_concurrently(&store, 0..8, |store, _| async move {
        expect_ok(store.lease_due(at(1), at(61), 4).await)
    })
    .await;
    let mut ids: Vec<_> = leased.into_iter().flatten().map(|mail| mail.id).collect();
    ids.sort();
    let expect: Vec<_> = (0..20).map(|n| format!("m{n:02}")).collect();
    assert_eq!(ids, expect, "every mail is leased once");
}
