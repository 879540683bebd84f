//! Conformance cases of items whose work fails, or whose servers end.

use super::{
    at, expect_ok,
    jobs::{Jobs, claim, create, done, names, stored},
};
use crate::{
    accounts::jobs::{ItemReturn, JobCounts, JobStatus, PauseReason},
    ids::JobId,
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

/// Time in which an item only waits does not count to its failures, and does not end them. A resumption ends them.
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
    let claimed = claim(&store, 500, 1).await;
    assert_eq!(claimed[0].failing_since, None, "a pause does not count");
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
