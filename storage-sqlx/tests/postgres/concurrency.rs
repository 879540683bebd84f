//! Time of the database, its leader leases, and changes that wait for another server's.

use std::sync::Arc;

use transcript_core::{
    accounts::jobs::{CreateJobOutcome, Job, JobLimits, JobStore, SourceList},
    ids::{AccountId, Holder, JobId},
    video::VideoList,
};

use crate::{common::timestamp, disconnect::wait_for_lock_waiter, opening::foreign_connection};

#[tokio::test]
async fn postgres_now_returns_database_time() {
    let (store, database) = crate::store().await;
    let archive = crate::archive_in(&database).await;
    let (before, between, after) =
        (store.now().await.unwrap(), archive.now().await.unwrap(), store.now().await.unwrap());
    assert!(before <= between && between <= after);
}

#[tokio::test]
async fn leader_lease_of_corrected_clock_is_free() {
    let (store, _database) = crate::store().await;
    for (holder, now, leads) in
        [("a", 86_400_000, true), ("b", 86_400_000, false), ("b", 0, true), ("a", 0, false)]
    {
        let (now, end) = (timestamp(now), timestamp(now + 60_000));
        let outcome = store.try_lead("sweep", &Holder::new(holder), now, end).await.unwrap();
        assert_eq!(outcome, leads, "{holder} at {now}");
    }
}

/// An extension that waits for the end of its claim does not replace the due time of the next page.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn listing_extended_at_its_end_keeps_next_due_time() {
    let (store, database) = crate::store().await;
    let jobs: Arc<dyn JobStore> = store;
    let list = VideoList::parse("PL0123456789abcdef").unwrap();
    let list = SourceList { list, limit: 9, since: None, is_open: true };
    let job = Job::of_list(JobId::new("a"), AccountId::new("one"), None, list, timestamp(0));
    let limits = JobLimits { unfinished: 10, stored: 100 };
    assert_eq!(jobs.create(job, Vec::new(), limits).await.unwrap(), CreateJobOutcome::Created);
    let claimed = jobs.claim_listing(timestamp(0), timestamp(60_000), &[]).await.unwrap().unwrap();
    let (mut other, mut watcher) = (foreign_connection(&database).await, foreign_connection(&database).await);
    let ended = "BEGIN; UPDATE jobs SET due_at = 5; UPDATE job_lists SET claims = claims + 1";
    sqlx::raw_sql(ended).execute(&mut other).await.unwrap();
    let extending =
        tokio::spawn(async move { jobs.extend_listing(&claimed.claim, timestamp(120_000)).await.unwrap() });
    wait_for_lock_waiter(&mut watcher).await;
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    assert!(!extending.await.unwrap(), "the claim has ended");
    let due_at: i64 = sqlx::query_scalar("SELECT due_at FROM jobs").fetch_one(&mut watcher).await.unwrap();
    assert_eq!(due_at, 5);
}

#[cfg(feature = "search")]
#[tokio::test]
async fn undecodable_track_is_indexed_for_search() {
    let (index, (archive, database)) = crate::search_index().await;
    crate::common::changed::check_undecodable_track_is_indexed(archive, index, async |damage| {
        crate::run_on_archive(&database, damage).await;
    })
    .await;
}
