//! Conformance cases of items whose work fails, and of those whose servers or accounts end.

use super::{
    at, expect_ok,
    jobs::{Jobs, claim, create, done, names, stored},
};
use crate::{
    accounts::jobs::{ItemReturn, JobCounts, JobStatus, PauseReason},
    ids::{AccountId, JobId},
    page::PageRequest,
};

/// An item knows since when it fails without an attempt.
pub async fn failed_fetch_of_item_is_remembered_from_first(store: Jobs) {
    create(&store, "a", "one", 1, 0).await;
    for (now, is_failure, since) in [(0, false, None), (10, true, None), (20, true, Some(at(11)))] {
        let claimed = claim(&store, now, 1).await;
        assert_eq!(claimed[0].failing_since, since);
        let returned = ItemReturn { due_at: at(now + 10), is_failure, is_attempt: false, pause: None };
        assert!(expect_ok(store.return_item(&claimed[0].claim, returned, at(now + 1)).await));
    }
    let claimed = claim(&store, 30, 1).await;
    assert_eq!(claimed[0].failing_since, Some(at(11)));
    // A clock that was ahead and was corrected since.
    let returned = ItemReturn { due_at: at(10), is_failure: true, is_attempt: false, pause: None };
    assert!(expect_ok(store.return_item(&claimed[0].claim, returned, at(5)).await));
    let claimed = claim(&store, 10, 1).await;
    assert_eq!(claimed[0].failing_since, Some(at(5)));
    let returned = ItemReturn { due_at: at(60), is_failure: false, is_attempt: true, pause: None };
    assert!(expect_ok(store.return_item(&claimed[0].claim, returned, at(11)).await));
    assert_eq!(claim(&store, 60, 1).await[0].failing_since, None, "an attempt ends the failures before it");
}

/// Time in which an item only waits does not count to its failures, and does not end them. With a resumption they begin
/// again: an item that is fetched and unpaid must not be skipped by a cancellation.
pub async fn waiting_item_does_not_fail(store: Jobs) {
    create(&store, "a", "one", 1, 0).await;
    let reason = PauseReason::PaymentRequired;
    for (now, since, due, is_failure, pause) in [
        (0, None, 20, true, None),
        (20, Some(at(1)), 50, false, None),
        (60, Some(at(30)), 80, true, None),
        (80, Some(at(30)), 81, false, None),
        (81, Some(at(30)), 90, false, Some(reason)),
    ] {
        let claimed = claim(&store, now, 1).await;
        assert_eq!(claimed[0].failing_since, since, "at {now}");
        let returned = ItemReturn { due_at: at(due), is_failure, is_attempt: false, pause };
        assert!(expect_ok(store.return_item(&claimed[0].claim, returned, at(now + 1)).await));
    }
    assert!(expect_ok(store.resume(&JobId::new("a"), reason, at(500)).await));
    expect_ok(store.cancel(&JobId::new("a"), at(500)).await);
    let claimed = claim(&store, 500, 1).await;
    assert_eq!(claimed[0].failing_since, Some(at(500)), "a pause does not count");
    assert!(claimed[0].is_cancelled);
}

/// Of the time in which no server claims a failing item an hour counts to its failures.
pub async fn failing_item_without_claim_fails_for_one_hour_at_most(store: Jobs) {
    create(&store, "a", "one", 1, 0).await;
    for (now, since, is_returned) in [
        (0, None, true),
        // It was due for an hour.
        (3_610, Some(1), true),
        // It was due for 100,000 seconds.
        (103_620, Some(96_401), true),
        (103_630, Some(96_401), false),
        // Its lease ended 100,000 seconds ago.
        (203_690, Some(192_801), true),
        (203_700, Some(192_801), true),
    ] {
        let claimed = claim(&store, now, 1).await;
        assert_eq!(claimed[0].failing_since, since.map(at), "at {now}");
        if is_returned {
            let due_at = at(now + 10);
            let returned = ItemReturn { due_at, is_failure: true, is_attempt: false, pause: None };
            assert!(expect_ok(store.return_item(&claimed[0].claim, returned, at(now + 1)).await));
        }
    }
}

/// An item that fails may be charged: a cancellation does not skip it.
pub async fn cancelled_job_keeps_failing_items_claimable(store: Jobs) {
    create(&store, "a", "one", 3, 0).await;
    let claimed = claim(&store, 0, 2).await;
    for (claimed, is_failure) in claimed.iter().zip([true, false]) {
        let returned = ItemReturn { due_at: at(10), is_failure, is_attempt: !is_failure, pause: None };
        assert!(expect_ok(store.return_item(&claimed.claim, returned, at(1)).await));
    }
    expect_ok(store.cancel(&JobId::new("a"), at(5)).await);
    let counts = JobCounts { total: 3, skipped: 2, ..JobCounts::default() };
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts, job.due_at), (JobStatus::Cancelled, counts, Some(at(10))));
    assert_eq!(claim(&store, 9, 9).await, [], "it is not due");
    let again = claim(&store, 10, 9).await;
    assert_eq!((names(&again), again[0].is_cancelled), (vec!["a/0".to_owned()], true));
    assert!(done(&store, &again[0], 11).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.counts, job.due_at, job.spent), (JobCounts { done: 1, ..counts }, None, 1));
}

/// The jobs of an account that is erased end at once, and are deleted before all others that have ended.
pub async fn discarded_jobs_end_and_are_deleted_in_steps(store: Jobs) {
    for (id, account) in [("a", "one"), ("b", "two"), ("c", "one"), ("d", "one"), ("e", "two")] {
        create(&store, id, account, 2, 0).await;
    }
    for id in ["d", "e"] {
        expect_ok(store.cancel(&JobId::new(id), at(1)).await);
    }
    let claimed = claim(&store, 1, 2).await;
    assert_eq!(names(&claimed), ["a/0", "b/0"]);
    let one = AccountId::new("one");
    for count in [3, 0] {
        assert_eq!(expect_ok(store.discard_for_account(&one).await), count);
    }
    assert!(!expect_ok(store.extend(&claimed[0].claim, at(99)).await), "its claim has ended");
    assert!(!done(&store, &claimed[0], 2).await);
    let returned = ItemReturn { due_at: at(2), is_failure: true, is_attempt: false, pause: None };
    assert!(!expect_ok(store.return_item(&claimed[0].claim, returned, at(2)).await));
    assert!(done(&store, &claimed[1], 2).await, "that of another account goes on");
    assert_eq!(names(&claim(&store, 99, 9).await), ["b/1"]);
    for left in [2, 1, 0] {
        assert_eq!(expect_ok(store.delete_ended(at(2), 1).await), 1);
        let own = expect_ok(store.jobs_of(&one, PageRequest::first()).await).items;
        assert_eq!(own.len(), left, "the jobs of another account are deleted later");
    }
    assert_eq!(expect_ok(store.items(&JobId::new("a"), 0, 9).await), []);
    assert_eq!(expect_ok(store.discard_for_account(&one).await), 0);
    assert_eq!(expect_ok(store.delete_ended(at(2), 9).await), 1, "e");
}

/// A later claim ends an earlier one, whose effects are void.
pub async fn expired_claim_is_replaced_and_has_no_effect(store: Jobs) {
    create(&store, "a", "one", 1, 0).await;
    let first = claim(&store, 0, 1).await;
    assert!(expect_ok(store.extend(&first[0].claim, at(100)).await));
    assert_eq!(claim(&store, 99, 1).await, [], "the claim was extended");
    let second = claim(&store, 100, 1).await;
    assert_eq!(names(&second), ["a/0"], "its lease has expired");
    assert_ne!(second[0].claim, first[0].claim);
    assert!(!expect_ok(store.extend(&first[0].claim, at(900)).await));
    assert!(!done(&store, &first[0], 101).await);
    let again = ItemReturn { due_at: at(101), is_failure: false, is_attempt: true, pause: None };
    assert!(!expect_ok(store.return_item(&first[0].claim, again, at(101)).await));
    assert_eq!(stored(&store, "a").await.counts.running, 1);
    assert!(done(&store, &second[0], 102).await);
    assert!(!done(&store, &second[0], 103).await, "it has ended");
    assert_eq!(stored(&store, "a").await.spent, 1);
}

/// Claims in a row that ended with their lease are counted apart from attempts.
pub async fn claims_that_ended_with_their_lease_are_counted(store: Jobs) {
    create(&store, "a", "one", 1, 0).await;
    for (now, attempts, interruptions, is_attempt) in [
        (0, 0, 0, None),
        (60, 0, 1, None),
        (120, 0, 2, Some(true)),
        (180, 1, 0, None),
        (240, 1, 1, Some(false)),
        (300, 1, 0, None),
    ] {
        let claimed = claim(&store, now, 1).await;
        assert_eq!((claimed[0].attempts, claimed[0].interruptions), (attempts, interruptions), "at {now}");
        if let Some(is_attempt) = is_attempt {
            let returned = ItemReturn { due_at: at(now + 60), is_failure: false, is_attempt, pause: None };
            assert!(expect_ok(store.return_item(&claimed[0].claim, returned, at(now + 1)).await));
        }
    }
}
