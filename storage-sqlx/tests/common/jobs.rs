//! Jobs whose rows cannot be read.

use transcript_core::{
    ErrorKind, PageRequest,
    accounts::{
        jobs::{
            ClaimLimits, CreateJobOutcome, ItemReturn, Job, JobLimits, JobStatus, JobStore, NewItem,
            PauseReason, SourceList,
        },
        webhooks::WebhookStore,
    },
    ids::{AccountId, JobId},
    video::{Platform, VideoId, VideoList},
};

use super::timestamp;

async fn create(store: &dyn JobStore, job: Job, items: Vec<NewItem>) {
    let limits = JobLimits { unfinished: 10, stored: 100 };
    assert_eq!(store.create(job, items, limits).await.unwrap(), CreateJobOutcome::Created);
}

async fn create_with_items(store: &dyn JobStore, id: &str, account: &str, count: usize) {
    let item = |number: usize| {
        NewItem::of_video(VideoId::new(Platform::YouTube, &format!("{number:0>11}")).unwrap())
    };
    let items: Vec<_> = (0..count).map(item).collect();
    let job = Job::new(JobId::new(id), AccountId::new(account), None, &items, timestamp(0));
    create(store, job, items).await;
}

/// The items that a claim returns.
async fn claimed(store: &dyn JobStore, now: i64) -> Vec<String> {
    let limits = ClaimLimits::new(10, u32::MAX);
    let items = store.claim(timestamp(now), timestamp(now + 60_000), limits).await.unwrap();
    items.iter().map(|item| format!("{}/{}", item.claim.job, item.claim.index)).collect()
}

/// A list that cannot be read back delays no other list, and is read once it is repaired.
#[tokio::test]
async fn unreadable_list_delays_no_other_list() {
    let (store, place) = crate::store().await;
    let store: &dyn JobStore = &*store;
    let run = async |sql: &str| crate::run_on_store(&place, sql).await;
    for (id, account) in [("a", "one"), ("b", "two")] {
        let list = VideoList::parse("PL0123456789abcdef").unwrap();
        let list = SourceList { list, limit: 9, since: None, is_open: true };
        let job = Job::of_list(JobId::new(id), AccountId::new(account), None, list, timestamp(0));
        create(store, job, Vec::new()).await;
    }
    let next = async |now: i64| {
        let claimed = store.claim_listing(timestamp(now), timestamp(now + 60_000), &[]).await.unwrap();
        claimed.map(|listing| listing.claim.job.as_str().to_owned())
    };
    run("UPDATE jobs SET list = 'https://www.youtube.com/playlist?list=VL0123456789' WHERE id = 'a'").await;
    assert_eq!(next(0).await.as_deref(), Some("b"));
    assert_eq!(next(0).await, None);
    run("UPDATE jobs SET list = (SELECT list FROM jobs WHERE id = 'b') WHERE id = 'a'").await;
    assert_eq!(next(59_999).await, None, "it waits as long as a lease");
    assert_eq!(next(60_000).await.as_deref(), Some("a"));
    run("UPDATE jobs SET list = NULL WHERE id = 'a'").await;
    assert_eq!(next(120_000).await.as_deref(), Some("b"));
}

/// A job or an item that cannot be read delays no other one.
#[tokio::test]
async fn unreadable_job_delays_no_other_job() {
    let (store, place) = crate::store().await;
    let store: &dyn JobStore = &*store;
    let run = async |sql: &str| crate::run_on_store(&place, sql).await;
    create_with_items(store, "a", "one", 1).await;
    create_with_items(store, "b", "two", 1).await;
    create_with_items(store, "c", "three", 2).await;
    create_with_items(store, "d", "four", 1).await;
    run("UPDATE job_items SET attempts = -1 WHERE job = 'd'").await;
    run("UPDATE jobs SET pause_reason = 'unknown' WHERE id = 'a'").await;
    run("UPDATE job_items SET video = 'unknown' WHERE job = 'c' AND idx = 0").await;
    let mut items = claimed(store, 0).await;
    items.sort();
    assert_eq!(items, ["b/0", "c/1"]);
    run("UPDATE jobs SET pause_reason = NULL WHERE id = 'a'").await;
    assert!(claimed(store, 60_000).await.contains(&"a/0".to_owned()));
}

/// A paused job that cannot be read does not keep others from being checked.
#[tokio::test]
async fn unreadable_pause_delays_no_other_check() {
    let (store, place) = crate::store().await;
    let store: &dyn JobStore = &*store;
    let run = async |sql: &str| crate::run_on_store(&place, sql).await;
    create_with_items(store, "a", "one", 1).await;
    create_with_items(store, "b", "two", 1).await;
    let limits = ClaimLimits::new(10, u32::MAX);
    let pause = Some(PauseReason::PaymentRequired);
    for item in store.claim(timestamp(0), timestamp(60_000), limits).await.unwrap() {
        let due_at = timestamp(10_000);
        let returned = ItemReturn { due_at, is_failure: false, is_attempt: false, pause };
        assert!(store.return_item(&item.claim, returned, timestamp(0)).await.unwrap());
    }
    run("UPDATE jobs SET list = 'no list', list_limit = 9, list_open = 0 WHERE id = 'a'").await;
    let due = store.take_paused(timestamp(10_000), timestamp(20_000), 5).await.unwrap();
    assert_eq!(due.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["b"]);
}

/// A job or an item that cannot be read is left out of lists, is an error alone, and is deleted with its account.
#[tokio::test]
async fn unreadable_job_is_left_out_of_lists() {
    let (store, place) = crate::store().await;
    let store: &dyn JobStore = &*store;
    let run = async |sql: &str| crate::run_on_store(&place, sql).await;
    for (id, account) in [("a", "one"), ("b", "one"), ("c", "one"), ("d", "two")] {
        create_with_items(store, id, account, 3).await;
    }
    run("UPDATE jobs SET list = 'no list', list_limit = 9, list_open = 1 WHERE id = 'b'").await;
    run("UPDATE job_items SET status = 'unknown' WHERE job = 'c' AND idx = 1").await;
    let one = AccountId::new("one");
    let ids = |jobs: Vec<Job>| jobs.into_iter().map(|job| job.id.as_str().to_owned()).collect::<Vec<_>>();
    for limit in [1, 2] {
        let (mut own, mut all) = (Vec::new(), Vec::new());
        let mut page = PageRequest { after: None, limit };
        loop {
            let found = store.jobs_of(&one, page.clone()).await.unwrap();
            assert!(found.next.is_none() || found.items.len() == limit as usize, "the page is full");
            own.extend(ids(found.items));
            page.after = found.next;
            if page.after.is_none() {
                break;
            }
        }
        loop {
            let found = store.unfinished(page.clone()).await.unwrap();
            assert!(found.next.is_none() || found.items.len() == limit as usize, "the page is full");
            all.extend(ids(found.items));
            page.after = found.next;
            if page.after.is_none() {
                break;
            }
        }
        assert_eq!(
            (own, all),
            (vec!["c".to_owned(), "a".to_owned()], ["a", "c", "d"].map(str::to_owned).to_vec())
        );
    }
    let items = store.items(&JobId::new("c"), 0, 2).await.unwrap();
    assert_eq!(items.iter().map(|item| item.index).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(store.job(&JobId::new("b")).await.unwrap_err().kind(), ErrorKind::Corrupt);
    run("UPDATE jobs SET status = 'unknown' WHERE id = 'a'").await;
    let figures = store.figures().await.unwrap();
    let queued = figures.iter().find(|found| found.status == JobStatus::Queued);
    assert_eq!(queued.map(|found| found.jobs), Some(3), "{figures:?}");
    assert_eq!(store.discard_for_account(&one).await.unwrap(), 3);
    assert_eq!(store.delete_ended(timestamp(1), 9).await.unwrap(), 3);
    assert_eq!(ids(store.unfinished(PageRequest::first()).await.unwrap().items), ["d"]);
}

/// An event that cannot be read delays no other one, and is sent once it is repaired.
#[tokio::test]
async fn unreadable_event_delays_no_other_event() {
    let (store, place) = crate::store().await;
    let run = async |sql: &str| crate::run_on_store(&place, sql).await;
    let create_with_event = async |id: &str, account: &str| {
        let job = Job::new(JobId::new(id), AccountId::new(account), None, &[], timestamp(0));
        let callback_url = Some("https://example.org/".to_owned());
        create(&*store, Job { callback_url, ..job }, Vec::new()).await;
    };
    let leased = async |now: i64, limit: u32| {
        let leased = store.lease_events(timestamp(now), timestamp(now + 60_000), limit).await.unwrap();
        leased.iter().map(|leased| leased.event.job.as_str().to_owned()).collect::<Vec<_>>()
    };
    create_with_event("a", "one").await;
    create_with_event("b", "two").await;
    // The server that leased it records no end.
    assert_eq!(leased(0, 1).await, ["a"]);
    run("UPDATE job_events SET kind = 'unknown' WHERE job = 'a'").await;
    assert_eq!(leased(60_000, 9).await, ["b"]);
    create_with_event("c", "one").await;
    assert_eq!(leased(60_000, 9).await, ["c"], "another event of its account");
    run("UPDATE job_events SET kind = 'job.completed' WHERE job = 'a'").await;
    // Those of the other jobs are due later.
    run("UPDATE job_events SET leased = 0, due_at = due_at + 3600000 WHERE job <> 'a'").await;
    assert_eq!(leased(3_659_999, 9).await, Vec::<String>::new(), "it waits for an hour");
    assert_eq!(leased(3_660_000, 1).await, ["a"]);
    // A transaction postpones at most a hundred.
    run("WITH RECURSIVE added (number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM added WHERE number < 101)
        INSERT INTO job_events (job, number, account, kind, created_at, attempts, leased, due_at)
        SELECT 'a', number, 'one', 'unknown', 0, 0, 0, 0 FROM added")
    .await;
    assert_eq!(leased(3_720_000, 9).await, Vec::<String>::new());
    assert_eq!(leased(3_720_000, 9).await, ["a", "b"]);
}
