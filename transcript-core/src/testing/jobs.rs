//! Conformance cases of the store of jobs.

use std::sync::Arc;

pub use super::job_failures::{
    cancelled_job_keeps_failing_items_claimable, claims_that_ended_with_their_lease_are_counted,
    discarded_jobs_end_and_are_deleted_in_steps, expired_claim_is_replaced_and_has_no_effect,
    failed_fetch_of_item_is_remembered_from_first, failing_item_without_claim_fails_for_one_hour_at_most,
    waiting_item_does_not_fail,
};
use super::{at, call_concurrently, expect_ok};
use crate::{
    accounts::jobs::{
        ClaimLimits, ClaimedItem, CreateJobOutcome, ItemFailure, ItemOutcome, ItemReturn, ItemStatus, Job,
        JobCounts, JobLimits, JobStatus, JobStore, NewItem, PauseReason,
    },
    ids::{AccountId, JobId},
    page::PageRequest,
    video::{Platform, VideoId},
};

/// Generates one test per case of [`JobStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! jobs_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::jobs::JobStore; [$crate::testing::jobs];
            created_job_is_stored_with_its_items
            job_created_again_is_unchanged
            job_limits_reject_and_delete
            claims_take_items_in_order_once
            claims_alternate_between_accounts
            claims_leave_places_to_other_accounts
            failed_fetch_of_item_is_remembered_from_first
            waiting_item_does_not_fail
            failing_item_without_claim_fails_for_one_hour_at_most
            expired_claim_is_replaced_and_has_no_effect
            claims_that_ended_with_their_lease_are_counted
            ended_items_complete_job
            claim_of_corrected_clock_is_shortened
            returned_item_is_due_later
            paused_job_is_not_claimed_until_resumed
            pauses_that_are_due_longest_are_checked_first
            job_paused_by_operator_stays_paused
            unfinished_jobs_of_all_accounts_are_listed
            cancelled_job_skips_items_that_did_not_start
            cancelled_job_keeps_started_items_claimable
            cancelled_job_keeps_failing_items_claimable
            cancelled_job_is_stored_until_started_items_end
            job_list_is_newest_first
            ended_jobs_are_deleted
            discarded_jobs_end_and_are_deleted_in_steps
            concurrent_claims_take_each_item_once
        }
    };
}

pub(super) type Jobs = Arc<dyn JobStore>;

const LIMITS: JobLimits = JobLimits { unfinished: 10, stored: 100 };

fn video(number: usize) -> VideoId {
    let id = format!("{number:0>11}");
    VideoId::new(Platform::YouTube, &id).unwrap_or_else(|error| panic!("the id {id} is valid: {error}"))
}

fn items(count: usize) -> Vec<NewItem> {
    (0..count).map(|number| NewItem { url: format!("link {number}"), video: Ok(video(number)) }).collect()
}

fn failure(reason: &str) -> ItemFailure {
    ItemFailure { reason: reason.to_owned(), message: format!("Because of {reason}.") }
}

fn new_job(id: &str, account: &str, items: &[NewItem], now: i64) -> Job {
    Job::new(JobId::new(id), AccountId::new(account), Some("fr".to_owned()), items, at(now))
}

/// Creates a job with this many items.
pub(super) async fn create(store: &Jobs, id: &str, account: &str, count: usize, now: i64) -> Job {
    let items = items(count);
    let job = new_job(id, account, &items, now);
    let outcome = expect_ok(store.create(job.clone(), items, LIMITS).await);
    assert_eq!(outcome, CreateJobOutcome::Created);
    job
}

/// Claims items for 60 seconds.
pub(super) async fn claim(store: &Jobs, now: i64, limit: u32) -> Vec<ClaimedItem> {
    expect_ok(store.claim(at(now), at(now + 60), ClaimLimits::new(limit, u32::MAX)).await)
}

pub(super) fn names(claimed: &[ClaimedItem]) -> Vec<String> {
    claimed.iter().map(|item| format!("{}/{}", item.claim.job, item.claim.index)).collect()
}

pub(super) async fn stored(store: &Jobs, id: &str) -> Job {
    expect_ok(store.job(&JobId::new(id)).await).unwrap_or_else(|| panic!("the job {id} is stored"))
}

pub(super) async fn done(store: &Jobs, item: &ClaimedItem, now: i64) -> bool {
    expect_ok(store.end_item(&item.claim, ItemOutcome::Done { spent: 1 }, at(now)).await)
}

/// A job and its items are returned as they were created.
pub async fn created_job_is_stored_with_its_items(store: Jobs) {
    assert_eq!(expect_ok(store.job(&JobId::new("a")).await), None, "an unknown job");
    assert_eq!(expect_ok(store.items(&JobId::new("a"), 0, 10).await), []);
    let mut new = items(3);
    new[1] = NewItem { url: "ünot \0 a link".to_owned(), video: Err(failure("invalid_url")) };
    let job = new_job("a", "one", &new, 5);
    expect_ok(store.create(job.clone(), new, LIMITS).await);
    assert_eq!(stored(&store, "a").await, job);
    let found = expect_ok(store.items(&job.id, 0, 10).await);
    let states: Vec<_> = found.iter().map(|item| (item.index, item.status)).collect();
    assert_eq!(states, [(0, ItemStatus::Queued), (1, ItemStatus::Failed), (2, ItemStatus::Queued)]);
    assert_eq!(found[0].video, Some(video(0)));
    assert_eq!((found[1].url.as_str(), &found[1].video), ("ünot \0 a link", &None));
    assert_eq!(found[1].failure, Some(failure("invalid_url")));
    assert_eq!(expect_ok(store.items(&job.id, 2, 10).await), found[2..]);
    assert_eq!(expect_ok(store.items(&job.id, 1, 1).await), found[1..2]);
    assert_eq!(names(&claim(&store, 5, 10).await), ["a/0", "a/2"], "a failed item is not claimed");
}

/// Creating a job again returns the stored one.
pub async fn job_created_again_is_unchanged(store: Jobs) {
    let job = create(&store, "a", "one", 2, 0).await;
    let other = new_job("a", "two", &items(1), 9);
    let outcome = expect_ok(store.create(other, items(1), LIMITS).await);
    assert_eq!(outcome, CreateJobOutcome::Exists(Box::new(job)));
    assert_eq!(expect_ok(store.items(&JobId::new("a"), 0, 10).await).len(), 2, "its items stay");
}

/// Unfinished jobs are limited; the oldest ended ones are deleted.
pub async fn job_limits_reject_and_delete(store: Jobs) {
    let limits = JobLimits { unfinished: 2, stored: 3 };
    let create = async |id: &str, account: &str, now: i64| {
        let new = items(1);
        expect_ok(store.create(new_job(id, account, &new, now), new, limits).await)
    };
    for (id, now) in [("a", 1), ("b", 2)] {
        assert_eq!(create(id, "one", now).await, CreateJobOutcome::Created);
    }
    assert_eq!(create("c", "one", 3).await, CreateJobOutcome::TooMany);
    assert_eq!(create("d", "two", 3).await, CreateJobOutcome::Created, "another account has its own limit");
    for (cancelled, id, now) in [("a", "e", 4), ("b", "f", 5)] {
        expect_ok(store.cancel(&JobId::new(cancelled), at(now)).await);
        assert_eq!(create(id, "one", now).await, CreateJobOutcome::Created);
    }
    assert_eq!(expect_ok(store.job(&JobId::new("a")).await), None, "the oldest ended job is deleted");
    assert_eq!(expect_ok(store.items(&JobId::new("a"), 0, 9).await), [], "and its items");
    stored(&store, "b").await;
    stored(&store, "d").await;
}

/// Items are claimed in order, each by one caller.
pub async fn claims_take_items_in_order_once(store: Jobs) {
    assert_eq!(claim(&store, 0, 10).await, [], "there is no job");
    create(&store, "a", "one", 3, 5).await;
    assert_eq!(claim(&store, 4, 10).await, [], "it is not due yet");
    let first = claim(&store, 5, 2).await;
    assert_eq!(names(&first), ["a/0", "a/1"]);
    let item = &first[0];
    assert_eq!((item.account.as_str(), item.language.as_deref()), ("one", Some("fr")));
    assert_eq!(item.job_created_at, at(5));
    assert_eq!((&item.video, item.attempts, item.is_cancelled), (&video(0), 0, false));
    assert_eq!(names(&claim(&store, 5, 10).await), ["a/2"]);
    assert_eq!(claim(&store, 64, 10).await, [], "all are claimed");
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts.running, job.counts.queued()), (JobStatus::Running, 3, 0));
}

/// Accounts take turns: a large job does not delay that of another account.
pub async fn claims_alternate_between_accounts(store: Jobs) {
    create(&store, "a", "one", 6, 0).await;
    create(&store, "b", "one", 6, 1).await;
    let first = claim(&store, 1, 2).await;
    assert_eq!(first.len(), 2);
    create(&store, "c", "two", 2, 2).await;
    let turns = claim(&store, 2, 4).await;
    let accounts: Vec<_> = turns.iter().map(|item| item.account.as_str()).collect();
    let of_two = accounts.iter().filter(|account| **account == "two").count();
    assert_eq!(of_two, 2, "of four claims two are for the account with two items: {accounts:?}");
}

/// An account gets no more than its share, the items that the caller works on included.
pub async fn claims_leave_places_to_other_accounts(store: Jobs) {
    create(&store, "a", "one", 3, 0).await;
    create(&store, "b", "one", 3, 0).await;
    let claim = async |running: usize, now: i64| {
        let mut limits = ClaimLimits::new(9, 6);
        (0..running).for_each(|_| limits.add(&AccountId::new("one")));
        names(&expect_ok(store.claim(at(now), at(now + 60), limits).await))
    };
    assert_eq!(claim(1, 0).await.len(), 2);
    assert_eq!(claim(3, 0).await, Vec::<String>::new());
    create(&store, "c", "two", 1, 0).await;
    assert_eq!(claim(3, 0).await, ["c/0"], "another account has its own share");
    assert_eq!(claim(0, 0).await.len(), 3);
    assert_eq!(claim(0, 0).await.len(), 1, "one item was left");
    expect_ok(store.cancel(&JobId::new("a"), at(1)).await);
    assert_eq!(claim(3, 60).await, ["c/0"], "also if leases have expired, and of a cancelled job");
    assert_eq!(claim(2, 60).await.len(), 1);
}

/// A claim of a clock that was ahead ends at the latest possible time; a pause by the operator stays.
pub async fn claim_of_corrected_clock_is_shortened(store: Jobs) {
    create(&store, "a", "one", 1, 0).await;
    create(&store, "b", "two", 1, 0).await;
    expect_ok(store.pause(&JobId::new("b"), at(0)).await);
    let first = claim(&store, 90_000, 2).await;
    assert_eq!(names(&first), ["a/0"], "the clock is a day ahead");
    assert_eq!(expect_ok(store.take_paused(at(0), at(10), 5).await), []);
    for now in [0, 899] {
        assert_eq!(claim(&store, now, 2).await, [], "its holder may be alive");
    }
    assert_eq!(names(&claim(&store, 900, 2).await), ["a/0"], "its lease has ended");
    assert!(!done(&store, &first[0], 901).await);
    assert_eq!(stored(&store, "b").await.pause_reason, Some(PauseReason::Operator));
    assert_eq!(expect_ok(store.take_paused(at(90_000), at(90_010), 5).await), []);
}

/// The last item completes its job.
pub async fn ended_items_complete_job(store: Jobs) {
    create(&store, "a", "one", 2, 0).await;
    let claimed = claim(&store, 0, 2).await;
    let failed = ItemOutcome::Failed(failure("no_captions"));
    assert!(expect_ok(store.end_item(&claimed[1].claim, failed, at(3)).await));
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts.failed, job.ended_at), (JobStatus::Running, 1, None));
    assert!(done(&store, &claimed[0], 4).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.ended_at, job.due_at), (JobStatus::Completed, Some(at(4)), None));
    assert_eq!(job.counts, JobCounts { total: 2, done: 1, failed: 1, ..JobCounts::default() });
    assert_eq!(job.spent, 1);
    let items = expect_ok(store.items(&job.id, 0, 9).await);
    assert_eq!((items[0].status, items[1].status), (ItemStatus::Done, ItemStatus::Failed));
    assert_eq!(items[1].failure, Some(failure("no_captions")));
    assert_eq!(claim(&store, 999, 9).await, []);
    let none = new_job("b", "one", &[], 7);
    assert_eq!(none.status, JobStatus::Completed, "a job without items is complete");
}

/// A returned item is claimed again when it is due.
pub async fn returned_item_is_due_later(store: Jobs) {
    create(&store, "a", "one", 1, 0).await;
    let claimed = claim(&store, 0, 1).await;
    for (due, is_attempt) in [(10, true), (20, false)] {
        let claimed = if due == 10 { claimed.clone() } else { claim(&store, 10, 1).await };
        let returned = ItemReturn { due_at: at(due), is_failure: false, is_attempt, pause: None };
        assert!(expect_ok(store.return_item(&claimed[0].claim, returned, at(1)).await));
        assert_eq!(claim(&store, due - 1, 1).await, [], "not before it is due");
        assert_eq!(stored(&store, "a").await.counts.queued(), 1);
    }
    let last = claim(&store, 20, 1).await;
    assert_eq!((names(&last), last[0].attempts), (vec!["a/0".to_owned()], 1), "one return was an attempt");
}

/// Items of a paused job wait until it is resumed.
pub async fn paused_job_is_not_claimed_until_resumed(store: Jobs) {
    create(&store, "a", "one", 3, 0).await;
    let claimed = claim(&store, 0, 2).await;
    let pause = Some(PauseReason::PaymentRequired);
    let returned = ItemReturn { due_at: at(10), is_failure: false, is_attempt: false, pause };
    assert!(expect_ok(store.return_item(&claimed[0].claim, returned.clone(), at(1)).await));
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.pause_reason), (JobStatus::Paused, pause));
    assert_eq!(claim(&store, 500, 9).await, [], "also an item whose lease has expired");
    assert!(done(&store, &claimed[1], 2).await, "a running item ends");
    assert_eq!(expect_ok(store.take_paused(at(9), at(20), 5).await), [], "the check is not due");
    let due = expect_ok(store.take_paused(at(10), at(20), 5).await);
    assert_eq!(due.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(expect_ok(store.take_paused(at(19), at(40), 5).await), [], "the next check is later");
    let reason = PauseReason::PaymentRequired;
    assert!(
        !expect_ok(store.resume(&JobId::new("a"), PauseReason::Operator, at(19)).await),
        "another reason"
    );
    assert!(expect_ok(store.resume(&JobId::new("a"), reason, at(19)).await));
    assert!(!expect_ok(store.resume(&JobId::new("a"), reason, at(19)).await), "it is not paused");
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.pause_reason), (JobStatus::Running, None));
    assert_eq!(names(&claim(&store, 19, 9).await), ["a/0", "a/2"]);
    assert_eq!(expect_ok(store.take_paused(at(99), at(100), 5).await), []);
    let figures = expect_ok(store.figures().await);
    let running = figures.iter().find(|found| found.status == JobStatus::Running);
    assert_eq!(running.map(|found| (found.jobs, found.queued_items, found.running_items)), Some((1, 0, 2)));
}

/// Jobs that stay paused do not keep others from being checked.
pub async fn pauses_that_are_due_longest_are_checked_first(store: Jobs) {
    for number in 0..7 {
        create(&store, &format!("job {number}"), &format!("account {number}"), 1, 0).await;
    }
    for claimed in claim(&store, 0, 7).await {
        let pause = Some(PauseReason::PaymentRequired);
        let returned = ItemReturn { due_at: at(1), is_failure: false, is_attempt: false, pause };
        assert!(expect_ok(store.return_item(&claimed.claim, returned, at(0)).await));
    }
    let mut checked = Vec::new();
    for now in [1, 6, 11] {
        let due = expect_ok(store.take_paused(at(now), at(now + 10), 3).await);
        assert_eq!(due.len(), 3);
        checked.extend(due.into_iter().map(|job| job.id.as_str().to_owned()));
    }
    checked.sort();
    checked.dedup();
    assert_eq!(checked.len(), 7, "the third check takes the last one before the first ones");
}

/// Nothing but the operator ends the operator's pause.
pub async fn job_paused_by_operator_stays_paused(store: Jobs) {
    assert_eq!(expect_ok(store.pause(&JobId::new("a"), at(0)).await), None);
    create(&store, "a", "one", 3, 0).await;
    let claimed = claim(&store, 0, 2).await;
    let pause = Some(PauseReason::PaymentRequired);
    let returned = ItemReturn { due_at: at(10), is_failure: false, is_attempt: false, pause };
    assert!(expect_ok(store.return_item(&claimed[0].claim, returned.clone(), at(1)).await));
    let job = expect_ok(store.pause(&JobId::new("a"), at(2)).await);
    let job = job.unwrap_or_else(|| panic!("the job is stored"));
    assert_eq!((job.status, job.pause_reason), (JobStatus::Paused, Some(PauseReason::Operator)));
    assert_eq!(stored(&store, "a").await, job);
    assert_eq!(
        expect_ok(store.take_paused(at(90_000_000), at(90_000_010), 5).await),
        [],
        "nothing checks it"
    );
    assert!(expect_ok(store.return_item(&claimed[1].claim, returned, at(3)).await));
    assert_eq!(stored(&store, "a").await.pause_reason, Some(PauseReason::Operator));
    assert_eq!(claim(&store, 100, 9).await, []);
    let figures = expect_ok(store.figures().await);
    let paused = figures.iter().find(|found| found.status == JobStatus::Paused);
    assert_eq!(paused.map(|found| (found.jobs, found.queued_items)), Some((1, 3)));
    assert!(!expect_ok(store.resume(&JobId::new("a"), PauseReason::PaymentRequired, at(100)).await));
    assert!(expect_ok(store.resume(&JobId::new("a"), PauseReason::Operator, at(100)).await));
    assert_eq!(names(&claim(&store, 100, 9).await), ["a/0", "a/1", "a/2"]);
    expect_ok(store.cancel(&JobId::new("a"), at(101)).await);
    let ended = expect_ok(store.pause(&JobId::new("a"), at(102)).await);
    assert_eq!(ended.map(|job| job.status), Some(JobStatus::Cancelled), "a job that has ended is unchanged");
}

/// The jobs of all accounts that have not ended.
pub async fn unfinished_jobs_of_all_accounts_are_listed(store: Jobs) {
    for (id, account) in [("d", "one"), ("a", "two"), ("c", "one"), ("b", "three")] {
        create(&store, id, account, 1, 0).await;
    }
    expect_ok(store.cancel(&JobId::new("c"), at(1)).await);
    expect_ok(store.pause(&JobId::new("d"), at(1)).await);
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = expect_ok(store.unfinished(PageRequest { after, limit: 2 }).await);
        found.extend(page.items.into_iter().map(|job| job.id.as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["a", "b", "d"]);
}

/// A cancellation skips what has not started.
pub async fn cancelled_job_skips_items_that_did_not_start(store: Jobs) {
    assert_eq!(expect_ok(store.cancel(&JobId::new("a"), at(0)).await), None);
    create(&store, "a", "one", 3, 0).await;
    let claimed = claim(&store, 0, 1).await;
    for now in [5, 6] {
        let job = expect_ok(store.cancel(&JobId::new("a"), at(now)).await);
        let job = job.unwrap_or_else(|| panic!("the job is stored"));
        assert_eq!((job.status, job.ended_at), (JobStatus::Cancelled, Some(at(5))), "once");
        assert_eq!((job.counts.skipped, job.counts.running), (2, 1));
    }
    assert_eq!(claim(&store, 6, 9).await, [], "nothing starts");
    assert!(done(&store, &claimed[0], 7).await, "a started item ends");
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.spent, job.ended_at), (JobStatus::Cancelled, 1, Some(at(5))));
    assert_eq!(job.counts, JobCounts { total: 3, done: 1, skipped: 2, ..JobCounts::default() });
    let states = expect_ok(store.items(&job.id, 0, 9).await).into_iter().map(|item| item.status);
    assert!(states.eq([ItemStatus::Done, ItemStatus::Skipped, ItemStatus::Skipped]));
}

/// An item that had started before a cancellation is claimed again after its server died.
pub async fn cancelled_job_keeps_started_items_claimable(store: Jobs) {
    create(&store, "a", "one", 2, 0).await;
    claim(&store, 0, 1).await;
    expect_ok(store.cancel(&JobId::new("a"), at(5)).await);
    assert_eq!(claim(&store, 59, 9).await, []);
    let again = claim(&store, 60, 9).await;
    assert_eq!(names(&again), ["a/0"]);
    assert!(again[0].is_cancelled);
    assert!(expect_ok(store.end_item(&again[0].claim, ItemOutcome::Skipped, at(61)).await));
    assert_eq!(stored(&store, "a").await.counts.skipped, 2);
}

/// A cancelled job is not deleted while an item runs.
pub async fn cancelled_job_is_stored_until_started_items_end(store: Jobs) {
    create(&store, "a", "one", 2, 0).await;
    let claimed = claim(&store, 0, 1).await;
    expect_ok(store.cancel(&JobId::new("a"), at(1)).await);
    let create_ended = async |id: &str, now: i64| {
        let limits = JobLimits { stored: 1, ..LIMITS };
        let created = expect_ok(store.create(new_job(id, "one", &[], now), Vec::new(), limits).await);
        assert_eq!(created, CreateJobOutcome::Created);
    };
    create_ended("b", 2).await;
    create_ended("c", 3).await;
    assert_eq!(expect_ok(store.job(&JobId::new("b")).await), None, "another job is deleted");
    assert_eq!(expect_ok(store.delete_ended(at(99), 9).await), 1, "only c");
    assert!(expect_ok(store.extend(&claimed[0].claim, at(90)).await));
    assert!(done(&store, &claimed[0], 4).await);
    assert_eq!(stored(&store, "a").await.spent, 1);
    create_ended("d", 5).await;
    assert_eq!(expect_ok(store.job(&JobId::new("a")).await), None, "its items have ended");
}

/// The jobs of an account in pages, the newest first.
pub async fn job_list_is_newest_first(store: Jobs) {
    for (id, account, now) in [("a", "one", 1), ("b", "two", 2), ("c", "one", 3), ("d", "one", 3)] {
        create(&store, id, account, 1, now).await;
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = PageRequest { after, limit: 2 };
        let page = expect_ok(store.jobs_of(&AccountId::new("one"), page).await);
        found.extend(page.items.into_iter().map(|job| job.id.as_str().to_owned()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["d", "c", "a"]);
}

/// Old jobs are deleted.
pub async fn ended_jobs_are_deleted(store: Jobs) {
    for id in ["a", "b"] {
        create(&store, id, "one", 2, 0).await;
    }
    expect_ok(store.cancel(&JobId::new("a"), at(10)).await);
    assert_eq!(expect_ok(store.delete_ended(at(10), 9).await), 0, "it ended at that time");
    assert_eq!(expect_ok(store.delete_ended(at(11), 9).await), 1);
    assert_eq!(expect_ok(store.job(&JobId::new("a")).await), None);
    assert_eq!(names(&claim(&store, 20, 9).await), ["b/0", "b/1"], "the other job stays");
}

/// Concurrent claims take each item once.
pub async fn concurrent_claims_take_each_item_once(store: Jobs) {
    create(&store, "a", "one", 12, 0).await;
    create(&store, "b", "two", 12, 0).await;
    let claimed = call_concurrently(&store, 0..8, |store, _| async move {
        let mut claimed = Vec::new();
        for _ in 0..6 {
            claimed.extend(claim(&store, 1, 2).await);
        }
        claimed
    })
    .await;
    let mut found = names(&claimed.into_iter().flatten().collect::<Vec<_>>());
    found.extend(names(&claim(&store, 1, 50).await));
    found.sort();
    let mut expected: Vec<_> = (0..12).flat_map(|n| [format!("a/{n}"), format!("b/{n}")]).collect();
    expected.sort();
    assert_eq!(found, expected, "every item is claimed once");
}
