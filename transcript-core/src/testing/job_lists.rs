//! Conformance cases of the lists of jobs.

use std::sync::Arc;

use super::{at, call_concurrently, expect_ok};
use crate::{
    accounts::jobs::{
        ClaimLimits, ClaimedListing, CreateJobOutcome, ItemFailure, ItemStatus, Job, JobCounts, JobLimits,
        JobStatus, JobStore, ListingOutcome, PauseReason, SourceList,
    },
    ids::{AccountId, JobId},
    supplier::ListPosition,
    time::Timestamp,
    video::{Platform, VideoId, VideoList},
};

/// Generates one test per case of the lists of a [`JobStore`]; see [`crate::testing`].
#[macro_export]
macro_rules! job_lists_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::accounts::jobs::JobStore; [$crate::testing::job_lists];
            list_is_read_page_by_page_and_then_its_items_run
            list_page_is_claimed_once_and_again_after_its_lease
            list_adds_each_video_once_up_to_its_limit
            list_without_new_videos_completes_job
            list_page_that_failed_is_due_later
            failing_list_without_claim_fails_for_one_hour_at_most
            list_that_cannot_be_read_fails_job
            list_of_cancelled_job_is_not_read
            list_of_job_paused_by_operator_waits
            list_of_paused_job_is_read_after_it_is_resumed
            lists_alternate_between_accounts
            list_of_busy_platform_waits
            list_position_is_stored_at_its_full_length
            concurrent_list_claims_have_one_winner
        }
    };
}

type Jobs = Arc<dyn JobStore>;

const LIMITS: JobLimits = JobLimits { unfinished: 10, stored: 100 };

fn videos(numbers: impl IntoIterator<Item = usize>) -> Vec<VideoId> {
    let video = |number| {
        let id = format!("{number:0>11}");
        VideoId::new(Platform::YouTube, &id).unwrap_or_else(|error| panic!("the id {id} is valid: {error}"))
    };
    numbers.into_iter().map(video).collect()
}

fn list(limit: u64) -> SourceList {
    let text = "https://www.youtube.com/@ünï/streams";
    let list = VideoList::parse(text).unwrap_or_else(|error| panic!("{text} is a list: {error}"));
    SourceList { list, limit, since: Some(at(3)), is_open: true }
}

async fn create(store: &Jobs, id: &str, account: &str, limit: u64, now: i64) -> Job {
    let job = Job::of_list(JobId::new(id), AccountId::new(account), None, list(limit), at(now));
    let job = Job { callback_url: Some("https://example.org/hook".to_owned()), ..job };
    let outcome = expect_ok(store.create(job.clone(), Vec::new(), LIMITS).await);
    assert_eq!(outcome, CreateJobOutcome::Created);
    job
}

/// Claims a page for 60 seconds.
async fn claim(store: &Jobs, now: i64) -> Option<ClaimedListing> {
    expect_ok(store.claim_listing(at(now), at(now + 60), &[]).await)
}

async fn claimed(store: &Jobs, now: i64) -> ClaimedListing {
    claim(store, now).await.unwrap_or_else(|| panic!("a page is due"))
}

fn page(numbers: impl IntoIterator<Item = usize>, next: Option<&str>) -> ListingOutcome {
    let next = next.map(|next| ListPosition::new(next).unwrap_or_else(|| panic!("the position is short")));
    ListingOutcome::Page { videos: videos(numbers), next }
}

async fn end(store: &Jobs, listing: &ClaimedListing, outcome: ListingOutcome, now: i64) -> bool {
    expect_ok(store.end_listing(&listing.claim, outcome, at(now)).await)
}

async fn stored(store: &Jobs, id: &str) -> Job {
    expect_ok(store.job(&JobId::new(id)).await).unwrap_or_else(|| panic!("the job {id} is stored"))
}

async fn claim_items(store: &Jobs, now: i64) -> Vec<u64> {
    let claimed = expect_ok(store.claim(at(now), at(now + 60), ClaimLimits::new(100, u32::MAX)).await);
    claimed.iter().map(|item| item.claim.index).collect()
}

/// Each page is claimed at the position of the one before; the items start after the last one.
pub async fn list_is_read_page_by_page_and_then_its_items_run(store: Jobs) {
    assert_eq!(claim(&store, 9).await, None, "there is no job");
    let job = create(&store, "a", "one", 100, 5).await;
    assert_eq!(stored(&store, "a").await, job);
    assert_eq!((job.status, job.is_list_open()), (JobStatus::Listing, true));
    assert_eq!(claim(&store, 4).await, None, "it is not due yet");
    let first = claimed(&store, 5).await;
    assert_eq!((&first.list, &first.position, first.items), (&list(100), &None, 0));
    assert_eq!(first.account, job.account);
    assert!(end(&store, &first, page([1, 2], Some("second")), 6).await);
    let counts = JobCounts { total: 2, ..JobCounts::default() };
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts), (JobStatus::Listing, counts));
    assert_eq!(claim_items(&store, 6).await, Vec::<u64>::new(), "items wait for the end of the list");
    let figures = expect_ok(store.figures().await);
    let listing = figures.iter().find(|found| found.status == JobStatus::Listing);
    assert_eq!(listing.map(|found| (found.jobs, found.queued_items)), Some((1, 2)));
    let second = claimed(&store, 6).await;
    assert_eq!((second.position.as_ref().map(ListPosition::as_str), second.items), (Some("second"), 2));
    assert!(end(&store, &second, page([3], None), 7).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts.total, job.is_list_open()), (JobStatus::Queued, 3, false));
    assert_eq!(claim(&store, 99).await, None, "the list is closed");
    let items = expect_ok(store.items(&job.id, 0, 9).await);
    let found: Vec<_> = items.iter().map(|item| (item.index, item.status, item.video.clone())).collect();
    let expected: Vec<_> = videos(1..4)
        .into_iter()
        .zip(0..)
        .map(|(video, index)| (index, ItemStatus::Queued, Some(video)))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(items[2].url, videos([3])[0].address());
    assert_eq!(claim_items(&store, 7).await, [0, 1, 2]);
}

/// A later claim of a page ends an earlier one.
pub async fn list_page_is_claimed_once_and_again_after_its_lease(store: Jobs) {
    create(&store, "a", "one", 100, 0).await;
    let first = claimed(&store, 0).await;
    assert_eq!(claim(&store, 59).await, None);
    assert!(expect_ok(store.extend_listing(&first.claim, at(100)).await));
    assert_eq!(claim(&store, 99).await, None, "the claim was extended");
    let second = claimed(&store, 100).await;
    assert!(second.claim.number > first.claim.number);
    assert_eq!((first.interruptions, second.interruptions), (0, 1), "a claim ended with its lease");
    assert!(!expect_ok(store.extend_listing(&first.claim, at(900)).await));
    assert!(!end(&store, &first, page([1], None), 101).await);
    assert_eq!(stored(&store, "a").await.counts.total, 0);
    assert!(end(&store, &second, page([1], Some("next")), 102).await);
    assert!(!end(&store, &second, page([2], None), 103).await, "it has ended");
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts.total), (JobStatus::Listing, 1));
    let next = claimed(&store, 103).await;
    assert_eq!((next.interruptions, next.attempts, next.job_created_at), (0, 0, at(0)));
}

/// Videos of one page and of several collapse; the limit ends the list.
pub async fn list_adds_each_video_once_up_to_its_limit(store: Jobs) {
    create(&store, "a", "one", 4, 0).await;
    assert!(end(&store, &claimed(&store, 0).await, page([1, 2, 1], Some("b")), 0).await);
    assert!(end(&store, &claimed(&store, 0).await, page([2, 3, 1], Some("c")), 0).await);
    assert_eq!(stored(&store, "a").await.counts.total, 3);
    assert!(end(&store, &claimed(&store, 0).await, page([4, 5, 6], Some("d")), 0).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts.total), (JobStatus::Queued, 4));
    let found = expect_ok(store.items(&job.id, 0, 9).await).into_iter().filter_map(|item| item.video);
    assert_eq!(found.collect::<Vec<_>>(), videos(1..5));
}

/// A list whose videos are all left out is complete.
pub async fn list_without_new_videos_completes_job(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    assert!(end(&store, &claimed(&store, 0).await, page([], None), 7).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.ended_at, job.due_at), (JobStatus::Completed, Some(at(7)), None));
}

/// A page is read again when it is due; a page that was read has no attempts.
pub async fn list_page_that_failed_is_due_later(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    let again =
        |due: i64, is_failure, is_attempt| ListingOutcome::Again { due_at: at(due), is_failure, is_attempt };
    for (now, outcome, expected) in [
        (0, again(10, false, false), (0, None::<Timestamp>)),
        (10, again(20, true, false), (0, None)),
        (20, again(30, false, false), (0, Some(at(11)))),
        (30, again(40, true, false), (0, Some(at(20)))),
        (40, again(50, false, true), (0, Some(at(20)))),
        (50, page([1], Some("next")), (1, None)),
        (51, page([2], None), (0, None)),
    ] {
        assert_eq!(claim(&store, now - 1).await, None, "not before it is due");
        let listing = claimed(&store, now).await;
        assert_eq!((listing.attempts, listing.failing_since), expected, "at {now}");
        assert!(end(&store, &listing, outcome, now + 1).await);
    }
    assert_eq!(stored(&store, "a").await.status, JobStatus::Queued);
    // A clock that was a day ahead and was corrected since.
    create(&store, "b", "one", 9, 90_000).await;
    assert!(end(&store, &claimed(&store, 90_000).await, again(50, true, false), 90_000).await);
    for (now, since) in [(50, at(90_000)), (60, at(51)), (70, at(51))] {
        let listing = claimed(&store, now).await;
        assert_eq!(listing.failing_since, Some(since), "at {now}");
        assert!(end(&store, &listing, again(now + 10, true, false), now + 1).await);
    }
    assert_eq!(claimed(&store, 100).await.failing_since, Some(at(51)), "time without a claim counts");
    let id = JobId::new("b");
    expect_ok(store.pause(&id, at(101)).await);
    assert!(expect_ok(store.resume(&id, PauseReason::Operator, at(900)).await));
    assert_eq!(claimed(&store, 900).await.failing_since, None, "a pause does not count");
}

/// Of the time in which no server claims a failing page an hour counts to its failures.
pub async fn failing_list_without_claim_fails_for_one_hour_at_most(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    for (now, since) in [(0, None), (3_610, Some(1)), (103_620, Some(96_401)), (103_630, Some(96_401))] {
        let listing = claimed(&store, now).await;
        assert_eq!(listing.failing_since, since.map(at), "at {now}");
        let again = ListingOutcome::Again { due_at: at(now + 10), is_failure: true, is_attempt: false };
        assert!(end(&store, &listing, again, now + 1).await);
    }
}

/// A job whose list cannot be read fails; what was found is skipped.
pub async fn list_that_cannot_be_read_fails_job(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    assert!(end(&store, &claimed(&store, 0).await, page([1, 2], Some("next")), 0).await);
    let failure = ItemFailure { reason: "private".to_owned(), message: "It is private.".to_owned() };
    assert!(end(&store, &claimed(&store, 0).await, ListingOutcome::Failed(failure.clone()), 8).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.status, &job.failure), (JobStatus::Failed, &Some(failure)));
    assert_eq!((job.ended_at, job.due_at, job.is_list_open()), (Some(at(8)), None, false));
    assert_eq!(job.counts, JobCounts { total: 2, skipped: 2, ..JobCounts::default() });
    let states = expect_ok(store.items(&job.id, 0, 9).await).into_iter().map(|item| item.status);
    assert!(states.eq([ItemStatus::Skipped, ItemStatus::Skipped]));
    assert_eq!((claim(&store, 999).await, claim_items(&store, 999).await), (None, Vec::new()));
}

/// A cancellation skips what was found, and reads no more.
pub async fn list_of_cancelled_job_is_not_read(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    assert!(end(&store, &claimed(&store, 0).await, page([1, 2], Some("next")), 0).await);
    let listing = claimed(&store, 0).await;
    let job = expect_ok(store.cancel(&JobId::new("a"), at(5)).await);
    let job = job.unwrap_or_else(|| panic!("the job is stored"));
    assert_eq!((job.status, job.counts.skipped, job.due_at), (JobStatus::Cancelled, 2, None));
    assert!(!end(&store, &listing, page([3], None), 6).await, "a page that arrives later is void");
    assert_eq!(stored(&store, "a").await, job);
    assert_eq!((claim(&store, 999).await, claim_items(&store, 999).await), (None, Vec::new()));
}

/// The operator's pause keeps the position; a page that was claimed before is stored.
pub async fn list_of_job_paused_by_operator_waits(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    let listing = claimed(&store, 0).await;
    expect_ok(store.pause(&JobId::new("a"), at(1)).await);
    assert!(end(&store, &listing, page([1], Some("next")), 2).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.counts.total), (JobStatus::Paused, 1));
    assert_eq!(claim(&store, 999).await, None);
    assert!(expect_ok(store.resume(&JobId::new("a"), PauseReason::Operator, at(3)).await));
    assert_eq!(stored(&store, "a").await.status, JobStatus::Listing);
    let listing = claimed(&store, 3).await;
    assert_eq!(listing.position.as_ref().map(ListPosition::as_str), Some("next"));
    expect_ok(store.pause(&JobId::new("a"), at(4)).await);
    assert!(end(&store, &listing, page([2], None), 5).await);
    assert!(expect_ok(store.resume(&JobId::new("a"), PauseReason::Operator, at(6)).await));
    assert_eq!(claim(&store, 6).await, None, "the list is closed");
    assert_eq!(claim_items(&store, 6).await, [0, 1]);
}

/// A pause that the work on a page requests keeps the position. It changes no job that was paused or has ended since.
pub async fn list_of_paused_job_is_read_after_it_is_resumed(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    assert!(end(&store, &claimed(&store, 0).await, page([1], Some("next")), 0).await);
    let reason = PauseReason::AccountBlocked;
    let paused = || ListingOutcome::Paused { reason, due_at: at(10) };
    assert!(end(&store, &claimed(&store, 0).await, paused(), 1).await);
    let job = stored(&store, "a").await;
    assert_eq!((job.status, job.pause_reason, job.due_at), (JobStatus::Paused, Some(reason), Some(at(10))));
    assert_eq!((claim(&store, 9).await, claim_items(&store, 9).await), (None, Vec::new()));
    let due = expect_ok(store.take_paused(at(10), at(20), 5).await);
    assert_eq!(due.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(expect_ok(store.resume(&job.id, reason, at(11)).await));
    let listing = claimed(&store, 11).await;
    assert_eq!(listing.position.as_ref().map(ListPosition::as_str), Some("next"));
    assert_eq!((listing.attempts, listing.failing_since), (0, None));
    expect_ok(store.pause(&job.id, at(12)).await);
    assert!(end(&store, &listing, paused(), 13).await);
    assert_eq!(stored(&store, "a").await.pause_reason, Some(PauseReason::Operator));
    assert!(expect_ok(store.resume(&job.id, PauseReason::Operator, at(14)).await));
    let listing = claimed(&store, 14).await;
    expect_ok(store.cancel(&job.id, at(15)).await);
    assert!(!end(&store, &listing, paused(), 16).await);
    assert_eq!(stored(&store, "a").await.status, JobStatus::Cancelled);
}

/// Accounts take turns page by page.
pub async fn lists_alternate_between_accounts(store: Jobs) {
    for (id, account) in [("a", "one"), ("b", "one"), ("c", "two")] {
        create(&store, id, account, 99, 0).await;
    }
    let mut of_two = 0;
    for turn in 0..4 {
        let listing = claimed(&store, 1).await;
        of_two += usize::from(listing.claim.job.as_str() == "c");
        assert!(end(&store, &listing, page([turn], Some("next")), 1).await);
    }
    assert_eq!(of_two, 2, "half of the pages are for the account with one list");
}

/// Lists of one platform do not delay those of another.
pub async fn list_of_busy_platform_waits(store: Jobs) {
    create(&store, "a", "one", 99, 0).await;
    let text = "https://www.tiktok.com/@name";
    let profile = VideoList::parse(text).unwrap_or_else(|error| panic!("{text} is a list: {error}"));
    let source = SourceList { list: profile, ..list(99) };
    let job = Job::of_list(JobId::new("b"), AccountId::new("one"), None, source, at(0));
    assert_eq!(expect_ok(store.create(job, Vec::new(), LIMITS).await), CreateJobOutcome::Created);
    let claim = async |busy: &[Platform]| {
        let claimed = expect_ok(store.claim_listing(at(0), at(60), busy).await);
        claimed.map(|listing| listing.claim.job.as_str().to_owned())
    };
    assert_eq!(claim(&[Platform::TikTok, Platform::YouTube]).await, None);
    assert_eq!(claim(&[Platform::YouTube, Platform::X]).await.as_deref(), Some("b"));
    assert_eq!(claim(&[Platform::YouTube]).await, None, "it is claimed");
    assert_eq!(claim(&[Platform::TikTok]).await.as_deref(), Some("a"));
}

/// A position of the greatest length is returned as it was stored.
pub async fn list_position_is_stored_at_its_full_length(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    let long = "ü".repeat(ListPosition::LENGTH_MAX / 2);
    assert!(end(&store, &claimed(&store, 0).await, page([1], Some(&long)), 0).await);
    assert_eq!(claimed(&store, 0).await.position.as_ref().map(ListPosition::as_str), Some(long.as_str()));
    assert_eq!(expect_ok(store.discard_for_account(&AccountId::new("one")).await), 1);
    assert_eq!(claim(&store, 99).await, None, "the job has ended");
}

/// Of concurrent claims of a page one succeeds.
pub async fn concurrent_list_claims_have_one_winner(store: Jobs) {
    create(&store, "a", "one", 9, 0).await;
    let claims = call_concurrently(&store, 0..8, |store, _| async move { claim(&store, 1).await }).await;
    let winners: Vec<_> = claims.into_iter().flatten().collect();
    assert!(winners.len() <= 1, "{winners:?}");
    let listing = match winners.into_iter().next() {
        Some(winner) => winner,
        None => claimed(&store, 1).await,
    };
    assert!(end(&store, &listing, page([1], None), 2).await);
    assert_eq!(stored(&store, "a").await.counts.total, 1);
}
