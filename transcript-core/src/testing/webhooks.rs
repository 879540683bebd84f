//! Conformance cases of the store of events.

use std::sync::Arc;

use super::{at, call_concurrently, expect_ok};
use crate::{
    accounts::{
        jobs::{ClaimLimits, ItemOutcome, ItemReturn, Job, JobLimits, JobStore, NewItem, PauseReason},
        webhooks::{EventState, JobEventKind, LeasedEvent, SecretGeneration, WebhookAttempt, WebhookStore},
    },
    ids::{AccountId, JobId},
    time::Timestamp,
    video::{Platform, VideoId},
};

/// Generates one test per case of [`WebhookStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! webhooks_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::testing::webhooks::JobAndWebhookStore;
            [$crate::testing::webhooks];
            ends_and_pauses_are_events
            job_without_callback_has_no_events
            events_are_leased_once_each_account_one
            new_events_are_leased_before_repeated_ones
            ended_attempts_are_recorded
            expired_lease_is_replaced_and_has_no_effect
            event_of_corrected_clock_is_due_soon
            events_are_deleted_with_their_job
            secret_generations_count_per_account
            concurrent_leases_take_each_event_once
        }
    };
}

/// A store of jobs and of their events.
pub trait JobAndWebhookStore: JobStore + WebhookStore {}
impl<S: JobStore + WebhookStore> JobAndWebhookStore for S {}

type Stores = Arc<dyn JobAndWebhookStore>;

const URL: &str = "https://example.org/hook?ü=1";

fn new_job(id: &str, account: &str, count: usize, now: i64) -> (Job, Vec<NewItem>) {
    let video = |number: usize| VideoId::new(Platform::YouTube, &format!("{number:0>11}"));
    let item = |number: usize| NewItem {
        url: format!("link {number}"),
        video: Ok(video(number).unwrap_or_else(|error| panic!("the id is valid: {error}"))),
    };
    let items: Vec<_> = (0..count).map(item).collect();
    let job = Job::new(JobId::new(id), AccountId::new(account), None, &items, at(now));
    (Job { callback_url: Some(URL.to_owned()), ..job }, items)
}

async fn create(store: &Stores, id: &str, account: &str, count: usize, now: i64) {
    let (job, items) = new_job(id, account, count, now);
    let limits = JobLimits { unfinished: 100, stored: 200 };
    expect_ok(store.create(job, items, limits).await);
}

/// Creates a job that is complete, with an event that is due at once.
async fn create_done(store: &Stores, id: &str, account: &str, now: i64) {
    create(store, id, account, 0, now).await;
}

async fn lease(store: &Stores, now: i64, limit: u32) -> Vec<LeasedEvent> {
    expect_ok(store.lease_events(at(now), at(now + 60), limit).await)
}

fn names(leased: &[LeasedEvent]) -> Vec<String> {
    leased.iter().map(|leased| format!("{}/{}", leased.event.job, leased.event.number)).collect()
}

async fn fail(store: &Stores, leased: &LeasedEvent, now: i64, next_at: Option<i64>) -> bool {
    let error = Some("the host answered with status 500".to_owned());
    let (number, next_at) = (leased.attempt, next_at.map(at));
    let attempt = WebhookAttempt { number, at: at(now), status: Some(500), error, next_at };
    expect_ok(store.end_attempt(leased, attempt).await)
}

async fn deliver(store: &Stores, leased: &LeasedEvent, now: i64) -> bool {
    let number = leased.attempt;
    let attempt = WebhookAttempt { number, at: at(now), status: Some(204), error: None, next_at: None };
    expect_ok(store.end_attempt(leased, attempt).await)
}

async fn kinds(store: &Stores, id: &str) -> Vec<(u64, JobEventKind, Timestamp)> {
    let events = expect_ok(store.events(&JobId::new(id)).await).into_iter().map(|log| log.event);
    events.map(|event| (event.number, event.kind, event.created_at)).collect()
}

/// Changes of a job record their events.
pub async fn ends_and_pauses_are_events(store: Stores) {
    create(&store, "job_a", "one", 2, 0).await;
    assert_eq!(lease(&store, 9, 9).await, [], "a new job has no event");
    let claimed = expect_ok(store.claim(at(0), at(60), ClaimLimits::new(2, u32::MAX)).await);
    let pause = Some(PauseReason::PaymentRequired);
    let returned = ItemReturn { due_at: at(10), is_failure: false, is_attempt: false, pause };
    for item in &claimed {
        assert!(expect_ok(store.return_item(&item.claim, returned.clone(), at(3)).await));
    }
    assert_eq!(kinds(&store, "job_a").await, [(1, JobEventKind::Paused, at(3))], "it paused once");
    expect_ok(store.resume(&JobId::new("job_a"), PauseReason::PaymentRequired, at(4)).await);
    let leased = lease(&store, 4, 9).await;
    let [event] = &leased[..] else { panic!("one event is due: {leased:?}") };
    assert_eq!((event.account.as_str(), event.callback_url.as_str(), event.attempt), ("one", URL, 1));
    assert_eq!(event.event.id(), "evt_a_1");
    assert!(deliver(&store, event, 5).await);
    for (index, now) in [(0, 12), (1, 13)] {
        let claimed = expect_ok(store.claim(at(now), at(now + 60), ClaimLimits::new(1, u32::MAX)).await);
        assert_eq!(claimed[0].claim.index, index);
        expect_ok(store.end_item(&claimed[0].claim, ItemOutcome::Done { spent: 1 }, at(now)).await);
    }
    assert_eq!(kinds(&store, "job_a").await[1..], [(2, JobEventKind::Completed, at(13))]);
    create(&store, "job_b", "one", 1, 20).await;
    expect_ok(store.cancel(&JobId::new("job_b"), at(21)).await);
    expect_ok(store.cancel(&JobId::new("job_b"), at(22)).await);
    assert_eq!(kinds(&store, "job_b").await, [(1, JobEventKind::Cancelled, at(21))]);
    create_done(&store, "job_c", "one", 30).await;
    assert_eq!(kinds(&store, "job_c").await, [(1, JobEventKind::Completed, at(30))]);
}

/// Nothing is recorded for a job that names no address.
pub async fn job_without_callback_has_no_events(store: Stores) {
    let (job, items) = new_job("job_a", "one", 0, 0);
    let job = Job { callback_url: None, ..job };
    expect_ok(store.create(job, items, JobLimits { unfinished: 9, stored: 9 }).await);
    assert_eq!(expect_ok(store.events(&JobId::new("job_a")).await), []);
    assert_eq!((lease(&store, 9, 9).await, expect_ok(store.count_waiting_events().await)), (vec![], 0));
}

/// An account has one event in transit.
pub async fn events_are_leased_once_each_account_one(store: Stores) {
    for (id, account, now) in [("job_a", "one", 1), ("job_b", "one", 2), ("job_c", "two", 3)] {
        create_done(&store, id, account, now).await;
    }
    assert_eq!(lease(&store, 0, 9).await, [], "nothing is due yet");
    let first = lease(&store, 5, 9).await;
    assert_eq!(names(&first), ["job_a/1", "job_c/1"]);
    assert_eq!(lease(&store, 64, 9).await, [], "both accounts have one in transit");
    assert_eq!(expect_ok(store.count_waiting_events().await), 3);
    assert!(deliver(&store, &first[0], 6).await);
    assert_eq!(names(&lease(&store, 7, 9).await), ["job_b/1"]);
    assert_eq!(expect_ok(store.count_waiting_events().await), 2);
}

/// Receivers that fail do not delay new events.
pub async fn new_events_are_leased_before_repeated_ones(store: Stores) {
    create_done(&store, "job_a", "one", 0).await;
    let leased = lease(&store, 0, 9).await;
    assert!(fail(&store, &leased[0], 1, Some(2)).await);
    create_done(&store, "job_b", "two", 5).await;
    assert_eq!(names(&lease(&store, 10, 1).await), ["job_b/1"]);
    assert_eq!(names(&lease(&store, 10, 1).await), ["job_a/1"]);
}

/// The log of an event.
pub async fn ended_attempts_are_recorded(store: Stores) {
    create_done(&store, "job_a", "one", 0).await;
    let state = async || {
        let log = expect_ok(store.events(&JobId::new("job_a")).await);
        let [log] = &log[..] else { panic!("one event: {log:?}") };
        (log.state(), log.due_at, log.attempts.len())
    };
    assert_eq!(state().await, (EventState::Pending, Some(at(0)), 0));
    let first = lease(&store, 0, 9).await;
    assert!(fail(&store, &first[0], 2, Some(12)).await);
    assert_eq!(state().await, (EventState::Pending, Some(at(12)), 1));
    assert_eq!(lease(&store, 11, 9).await, [], "it is not due");
    let second = lease(&store, 12, 9).await;
    assert_eq!(second[0].attempt, 2);
    assert!(deliver(&store, &second[0], 13).await);
    assert!(!deliver(&store, &second[0], 14).await, "the attempt has ended");
    assert_eq!(state().await, (EventState::Delivered, None, 2));
    let log = expect_ok(store.events(&JobId::new("job_a")).await);
    let failed = &log[0].attempts[0];
    assert_eq!((failed.number, failed.at, failed.status), (1, at(2), Some(500)));
    assert_eq!(failed.error.as_deref(), Some("the host answered with status 500"));
    assert_eq!(failed.next_at, Some(at(12)));
    create_done(&store, "job_b", "one", 20).await;
    let last = lease(&store, 20, 9).await;
    assert!(fail(&store, &last[0], 21, None).await);
    let log = expect_ok(store.events(&JobId::new("job_b")).await);
    assert_eq!((log[0].state(), log[0].due_at), (EventState::Abandoned, None));
    assert_eq!(lease(&store, 90_000, 9).await, []);
}

/// A later lease ends an earlier one.
pub async fn expired_lease_is_replaced_and_has_no_effect(store: Stores) {
    create_done(&store, "job_a", "one", 0).await;
    let first = lease(&store, 0, 9).await;
    assert_eq!(lease(&store, 59, 9).await, []);
    let second = lease(&store, 60, 9).await;
    assert_eq!(second[0].event.id(), first[0].event.id(), "the same event again");
    assert_eq!((second[0].lease, second[0].attempt), (2, 1), "the first lease recorded no attempt");
    assert!(!fail(&store, &first[0], 61, None).await);
    assert!(fail(&store, &second[0], 62, Some(70)).await);
    let third = lease(&store, 70, 9).await;
    assert_eq!((third[0].lease, third[0].attempt), (3, 2));
    assert!(deliver(&store, &third[0], 71).await);
}

/// Events that a clock that was ahead has recorded, leased or delayed are due soon; the longest pause stays.
pub async fn event_of_corrected_clock_is_due_soon(store: Stores) {
    let day = 86_400;
    create_done(&store, "job_a", "one", day).await;
    assert_eq!(names(&lease(&store, day, 9).await), ["job_a/1"], "the clock is a day ahead");
    create_done(&store, "job_b", "two", day).await;
    assert_eq!(lease(&store, 0, 9).await, [], "a holder may be alive");
    create_done(&store, "job_c", "one", 0).await;
    create_done(&store, "job_d", "three", 0).await;
    let delayed = lease(&store, 0, 9).await;
    assert_eq!(names(&delayed), ["job_d/1"], "the first account has an event in transit");
    assert!(fail(&store, &delayed[0], 0, Some(3_600)).await);
    assert_eq!(lease(&store, 899, 9).await, []);
    let mut ended = lease(&store, 900, 9).await;
    assert_eq!(names(&ended), ["job_c/1", "job_b/1"]);
    for leased in &ended {
        assert!(deliver(&store, leased, 901).await);
    }
    ended = lease(&store, 902, 9).await;
    assert_eq!((names(&ended), ended[0].lease), (vec!["job_a/1".to_owned()], 2));
    assert!(deliver(&store, &ended[0], 903).await);
    assert_eq!(lease(&store, 3_599, 9).await, [], "the longest pause stays");
    let delayed = lease(&store, 3_600, 9).await;
    assert_eq!(names(&delayed), ["job_d/1"]);
    assert!(fail(&store, &delayed[0], 3_600, Some(day)).await);
    for now in [3_600, 4_499] {
        assert_eq!(lease(&store, now, 9).await, [], "a pause of a day");
    }
    assert_eq!(names(&lease(&store, 4_500, 9).await), ["job_d/1"], "it is shortened once");
}

/// Deletion of jobs, and of all jobs of an account.
pub async fn events_are_deleted_with_their_job(store: Stores) {
    for (id, account) in [("job_a", "one"), ("job_b", "two"), ("job_c", "two")] {
        create_done(&store, id, account, 5).await;
    }
    let leased = lease(&store, 5, 9).await;
    assert!(fail(&store, &leased[0], 6, Some(7)).await);
    expect_ok(store.rotate_secret(&AccountId::new("two"), at(9)).await);
    expect_ok(store.discard_for_account(&AccountId::new("two")).await);
    assert_eq!(expect_ok(store.secret_generation(&AccountId::new("two")).await), SecretGeneration::FIRST);
    assert_eq!(names(&lease(&store, 70, 9).await), ["job_a/1"], "those of the discarded jobs are not sent");
    assert_eq!(expect_ok(store.delete_ended(at(1), 9).await), 2);
    assert_eq!(expect_ok(store.events(&JobId::new("job_b")).await), []);
    assert!(!deliver(&store, &leased[1], 9).await, "the event is gone");
    assert_eq!(expect_ok(store.events(&JobId::new("job_a")).await).len(), 1);
    assert_eq!(expect_ok(store.delete_ended(at(99), 9).await), 1);
    assert_eq!(expect_ok(store.events(&JobId::new("job_a")).await), []);
    create_done(&store, "job_a", "one", 100).await;
    let log = expect_ok(store.events(&JobId::new("job_a")).await);
    assert_eq!(log[0].attempts, [], "the attempts were deleted with the event");
}

/// Each account has its own generations.
pub async fn secret_generations_count_per_account(store: Stores) {
    let (one, two) = (AccountId::new("one"), AccountId::new("two"));
    assert_eq!(expect_ok(store.secret_generation(&one).await), SecretGeneration::FIRST);
    for (number, now) in [(2, 10), (3, 20)] {
        let rotated = SecretGeneration { number, rotated_at: Some(at(now)) };
        assert_eq!(expect_ok(store.rotate_secret(&one, at(now)).await), rotated);
        assert_eq!(expect_ok(store.secret_generation(&one).await), rotated);
    }
    assert_eq!(expect_ok(store.secret_generation(&two).await), SecretGeneration::FIRST);
}

/// Of concurrent senders each event has one.
pub async fn concurrent_leases_take_each_event_once(store: Stores) {
    for number in 0..12 {
        create_done(&store, &format!("job_{number}"), &format!("account {number}"), 0).await;
    }
    let leased = call_concurrently(&store, 0..4, |store, _| async move { lease(&store, 1, 5).await }).await;
    let mut found: Vec<_> = leased.iter().flat_map(|leased| names(leased)).collect();
    while let rest = lease(&store, 1, 9).await
        && !rest.is_empty()
    {
        found.extend(names(&rest));
    }
    found.sort();
    let mut once = found.clone();
    once.dedup();
    assert_eq!((once.len(), found.len()), (12, 12));
}
