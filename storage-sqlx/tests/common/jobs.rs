//! Jobs whose rows cannot be read.

use transcript_core::{
    accounts::jobs::{
        ClaimLimits, CreateJobOutcome, ItemReturn, Job, JobLimits, JobStore, NewItem, PauseReason, SourceList,
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
pub(crate) async fn check_unreadable_list(store: &dyn JobStore, mut run: impl AsyncFnMut(&str)) {
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
}

/// A job or an item that cannot be read delays no other one.
pub(crate) async fn check_unreadable_job(store: &dyn JobStore, mut run: impl AsyncFnMut(&str)) {
    create_with_items(store, "a", "one", 1).await;
    create_with_items(store, "b", "two", 1).await;
    create_with_items(store, "c", "three", 2).await;
    run("UPDATE jobs SET pause_reason = 'unknown' WHERE id = 'a'").await;
    run("UPDATE job_items SET video = 'unknown' WHERE job = 'c' AND idx = 0").await;
    let mut items = claimed(store, 0).await;
    items.sort();
    assert_eq!(items, ["b/0", "c/1"]);
    run("UPDATE jobs SET pause_reason = NULL WHERE id = 'a'").await;
    assert!(claimed(store, 60_000).await.contains(&"a/0".to_owned()));
}

/// A paused job that cannot be read does not keep others from being checked.
pub(crate) async fn check_unreadable_pause(store: &dyn JobStore, mut run: impl AsyncFnMut(&str)) {
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
