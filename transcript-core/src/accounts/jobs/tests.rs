//! Tests of the rules of jobs.

use std::time::Duration;

use super::{worker::ItemEnd, *};
use crate::{
    accounts::V1Error,
    engine::{FailureReason, NoTranscript},
    ids::{AccountId, JobId},
    supplier::{ListPosition, ListedVideo, SupplyError, SupplyReason, TimeRange, VideoListPage},
    time::Timestamp,
    transcript::{LanguageTag, TrackInfo, TrackKind},
    video::{Platform, VideoId, VideoList},
};

#[test]
fn new_items_collapse_links_of_one_video() {
    let urls = [
        "https://www.youtube.com/watch?v=dQw4w9WgXcQ",
        "no link",
        " https://youtu.be/dQw4w9WgXcQ?t=43 ",
        "dQw4w9WgXcQ",
        "no link",
        "https://www.tiktok.com/@a/video/7106594312292453675",
        "https://m.tiktok.com/v/7106594312292453675.html",
        "https://vm.tiktok.com/ZMabcdefg/",
        "aaaaaaaaaaa",
    ];
    let items = source::new_items(urls.map(str::to_owned).to_vec());
    let found: Vec<_> = items.iter().map(|item| item.video.as_ref().map_err(|error| &error.reason)).collect();
    assert_eq!(found.len(), 5, "{found:?}");
    assert_eq!(found[0].unwrap().id(), "dQw4w9WgXcQ");
    assert_eq!(found[1].unwrap_err(), "invalid_url");
    assert_eq!(found[2].unwrap().to_string(), "short_video/7106594312292453675");
    assert_eq!(found[3].unwrap_err(), "invalid_url", "a short link");
    assert_eq!(found[4].unwrap().id(), "aaaaaaaaaaa");
}

#[test]
fn message_of_invalid_link_is_made_when_item_is_read() {
    let long = format!("https://youtu.be/dQw4w9WgXcQ?{}", "x".repeat(5_000));
    for (url, part) in [
        ("no link", "The link names no video: "),
        ("https://vm.tiktok.com/ZMabcdefg/", "A short link does not say"),
        (long.as_str(), "The link is too long"),
    ] {
        let new = source::new_items(vec![url.to_owned()]).remove(0);
        let failure = new.video.unwrap_err();
        assert_eq!(failure.message, "", "it is not stored: {url}");
        let (status, failure) = (ItemStatus::Failed, Some(failure));
        let mut item = JobItem { index: 0, url: new.url, video: None, status, failure };
        source::add_message(&mut item);
        let message = item.failure.map(|failure| failure.message).unwrap_or_default();
        assert!(message.contains(part), "{url}: {message}");
        let lost = ItemFailure { reason: "missing".to_owned(), message: String::new() };
        item.failure = Some(lost.clone());
        source::add_message(&mut item);
        assert_eq!(item.failure, Some(lost));
    }
}

#[test]
fn page_of_invalid_limit_or_cursor_is_rejected() {
    let bad = |message: &str| V1Error::BadRequest(message.to_owned());
    for limit in [0, PAGE_MAX + 1] {
        let checked = AccountJobs::check_limit(limit, PAGE_MAX);
        assert_eq!(checked, Err(bad("limit: it must be a number from 1 to 100")), "{limit}");
    }
    for limit in [1, PAGE_MAX] {
        assert_eq!(AccountJobs::check_limit(limit, PAGE_MAX), Ok(()));
    }
    for cursor in ["", "x", "-1", "+2", "4294967296"] {
        assert_eq!(ResultsPage::position(cursor), Err(bad("cursor: it is not of this list")), "{cursor}");
    }
    assert_eq!(ResultsPage::position("298"), Ok(298));
}

#[test]
fn languages_of_failed_item_are_those_of_error_for_same_request() {
    let track = |tag: &str, kind| TrackInfo::new(LanguageTag::parse(tag).unwrap(), kind);
    // The English track has no text.
    let known = [
        track("fr", TrackKind::Human),
        track("en", TrackKind::Generated),
        track("de", TrackKind::Translated),
        track("en-GB", TrackKind::Translated),
    ];
    for (language, expected) in [(None, &known[..1]), (Some("fr-CA"), &known[..0]), (Some("es"), &known[..])]
    {
        assert_eq!(api::tracks_instead(language, known.to_vec()), expected, "{language:?}");
    }
}

#[test]
fn long_link_is_stored_shortened() {
    let items = source::new_items(vec!["ü".repeat(crate::video::VideoLink::LENGTH_MAX)]);
    assert!(items[0].url.len() <= crate::video::VideoLink::LENGTH_MAX);
    assert!(items[0].video.is_err());
}

const DAY_MS: i64 = 24 * 3_600_000;

/// An item that has failed since the time 0.
fn item(attempts: u32) -> ClaimedItem {
    ClaimedItem {
        claim: ItemClaim { job: JobId::new("job_a"), index: 0, number: 1 },
        account: AccountId::new("one"),
        job_created_at: Timestamp::from_millis(0),
        language: None,
        is_cancelled: false,
        video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
        attempts,
        interruptions: 0,
        failing_since: Some(Timestamp::from_millis(0)),
    }
}

#[test]
fn item_without_transcript_is_tried_again_only_where_it_may_help() {
    let end = |reason, attempted, attempts, failing_ms: i64| {
        let none = NoTranscript { attempted, ..NoTranscript::new(reason, "Why.") };
        worker::unavailable(none, &item(attempts), Timestamp::from_millis(failing_ms))
    };
    for (reason, attempted, attempts, failing_ms, message) in [
        (FailureReason::NoCaptions, true, 0, 0, "Why."),
        (FailureReason::ConfigError, true, 0, 0, "Why."),
        (FailureReason::FetchError, true, 3, 0, "Why."),
        (
            FailureReason::FetchError,
            false,
            0,
            DAY_MS,
            "The fetch was tried for a day and could not begin. Why.",
        ),
    ] {
        let ItemEnd::Ended(ItemOutcome::Failed(failure)) = end(reason, attempted, attempts, failing_ms)
        else {
            panic!("{reason:?} is final");
        };
        assert_eq!((failure.reason.as_str(), failure.message.as_str()), (reason.as_str(), message));
    }
    for (reason, attempted, attempts, failing_ms, seconds) in [
        (FailureReason::FetchError, true, 0, 9 * DAY_MS, 5),
        (FailureReason::RateLimited, true, 2, 0, 20),
        (FailureReason::FetchError, false, 9, DAY_MS - 1, 600),
        (FailureReason::DailyCap, false, 9, 29 * DAY_MS, 600),
    ] {
        let ItemEnd::Again { pause, failure } = end(reason, attempted, attempts, failing_ms) else {
            panic!("{reason:?} is tried again");
        };
        assert_eq!(pause, Duration::from_secs(seconds), "{reason:?}");
        let expected = (reason != FailureReason::DailyCap).then_some(attempted);
        assert_eq!(failure.map(|failure| failure.is_attempt), expected, "{reason:?}");
    }
}

#[test]
fn item_waiting_for_paused_supplier_does_not_fail() {
    let wait = Duration::from_secs(90);
    let paused = NoTranscript::new(FailureReason::RateLimited, "Why.").with_retry_after(wait);
    let end = worker::unavailable(paused, &item(3), Timestamp::from_millis(9 * DAY_MS));
    let ItemEnd::Again { pause, failure } = end else { panic!("it waits") };
    assert_eq!((pause, failure), (wait, None));
}

#[test]
fn waits_count_as_failures_30_days_after_start_of_job() {
    let end = |reason, now_ms, failing_ms: Option<i64>| {
        let paused = NoTranscript::new(reason, "Why.").with_retry_after(Duration::from_secs(1));
        let item = ClaimedItem { failing_since: failing_ms.map(Timestamp::from_millis), ..item(0) };
        worker::unavailable(paused, &item, Timestamp::from_millis(now_ms))
    };
    let is_failure = |end: ItemEnd| match end {
        ItemEnd::Again { failure, .. } => failure.is_some(),
        end => panic!("it is tried again: {end:?}"),
    };
    let (paused, month) = (FailureReason::RateLimited, 30 * DAY_MS);
    assert!(!is_failure(end(paused, month - 1, Some(0))));
    // Its job was paused for a month: the first wait after it does not end the item.
    assert!(is_failure(end(paused, month, None)));
    assert!(is_failure(end(paused, month + DAY_MS - 1, Some(month))));
    let ItemEnd::Ended(ItemOutcome::Failed(failure)) = end(paused, month + DAY_MS, Some(month)) else {
        panic!("it has failed for a day");
    };
    assert_eq!(failure.message, "The fetch was tried for a day and could not begin. Why.");
    assert!(!is_failure(end(FailureReason::DailyCap, month - 1, Some(0))));
    assert!(is_failure(end(FailureReason::DailyCap, month, None)), "a limit of 0 ends no day");
}

#[test]
fn unreadable_charge_fails_item_after_one_day_and_cancelled_one_at_once() {
    let end = |is_cancelled, now_ms| {
        let item = ClaimedItem { is_cancelled, ..item(0) };
        worker::charge_unreadable(&item, Timestamp::from_millis(now_ms))
    };
    let ItemEnd::Again { failure, .. } = end(false, DAY_MS - 1) else { panic!("it is tried again") };
    assert_eq!(failure.map(|failure| failure.is_attempt), Some(false));
    for end in [end(false, DAY_MS), end(true, 0)] {
        let ItemEnd::Ended(ItemOutcome::Failed(failure)) = end else { panic!("it is final") };
        assert_eq!(failure.reason, "damaged");
        assert!(!failure.message.contains("nothing was charged"), "{}", failure.message);
    }
}

#[test]
fn pause_is_as_long_as_named_and_grows_with_attempts() {
    let pause = |attempts, named_s: u64| worker::pause_after(attempts, Some(Duration::from_secs(named_s)));
    for (attempts, named_s, seconds) in [(0, 1, 5), (3, 1, 40), (0, 90, 90), (3, 90, 90), (0, 9_000, 600)] {
        assert_eq!(pause(attempts, named_s), Duration::from_secs(seconds), "{attempts}, {named_s}");
    }
}

#[test]
fn pause_after_uncertain_spend_is_as_long_as_failures_last() {
    for (since, now_s, seconds) in [(None, 90, 5), (Some(0), 400, 400), (Some(0), 9_000, 600)] {
        let item = ClaimedItem { failing_since: since.map(Timestamp::from_millis), ..item(0) };
        let pause = worker::uncertain_pause(&item, Timestamp::from_millis(now_s * 1_000));
        assert_eq!(pause, Duration::from_secs(seconds), "{since:?}, {now_s}");
    }
}

#[test]
fn item_that_cannot_be_read_fails_after_one_day() {
    for (error, reason, seconds) in [
        (V1Error::Damaged, "damaged", 600),
        (V1Error::Internal("The store fails.".to_owned()), "fetch_error", 10),
    ] {
        let end = |now_ms| worker::not_obtained(&error, &item(0), Timestamp::from_millis(now_ms));
        let ItemEnd::Again { pause, failure } = end(DAY_MS - 1) else { panic!("{reason} is tried again") };
        assert_eq!(pause, Duration::from_secs(seconds));
        assert_eq!(failure.map(|failure| failure.is_attempt), Some(false));
        let ItemEnd::Ended(ItemOutcome::Failed(failure)) = end(DAY_MS) else { panic!("{reason} is final") };
        assert_eq!((failure.reason.as_str(), failure.message.as_str()), (reason, error.message()));
    }
}

fn listing() -> ClaimedListing {
    let list = VideoList::parse("https://www.youtube.com/@name").unwrap();
    ClaimedListing {
        claim: ListingClaim { job: JobId::new("job_a"), number: 1 },
        account: AccountId::new("one"),
        job_created_at: Timestamp::from_millis(0),
        list: SourceList { list, limit: 9, since: None, is_open: true },
        items: 0,
        position: None,
        attempts: 0,
        interruptions: 0,
        failing_since: Some(Timestamp::from_millis(0)),
    }
}

#[test]
fn page_that_failed_is_read_again_only_where_it_may_help() {
    let end = |error: SupplyError, attempts, now_ms| {
        let listing = ClaimedListing { attempts, ..listing() };
        list_worker::error_outcome(&listing, &error, true, Timestamp::from_millis(now_ms))
    };
    let failed = |reason| SupplyError::new(reason, "Why.");
    let unsent = |reason| SupplyError::before_request(reason, "Why.");
    let wait = Duration::from_secs(90);
    for (error, attempts, now_ms, reason) in [
        (failed(SupplyReason::Unreadable), 3, 0, "unreadable"),
        (failed(SupplyReason::Throttled(None)), 3, 0, "throttled"),
        (unsent(SupplyReason::BotCheck), 0, DAY_MS, "bot_check"),
        (unsent(SupplyReason::Misconfigured), 0, 0, "misconfigured"),
        (unsent(SupplyReason::Throttled(Some(wait))), 0, 30 * DAY_MS, "throttled"),
    ] {
        let expected = worker::failure(reason, "Why.");
        assert_eq!(end(error, attempts, now_ms), ListingOutcome::Failed(expected));
    }
    for (error, attempts, now_ms, seconds, is_failure, is_attempt) in [
        (failed(SupplyReason::Unreadable), 2, DAY_MS, 20, false, true),
        (failed(SupplyReason::Throttled(Some(wait))), 0, 0, 90, false, true),
        (unsent(SupplyReason::Throttled(None)), 0, DAY_MS - 1, 5, true, false),
        (unsent(SupplyReason::Throttled(Some(wait))), 3, 30 * DAY_MS - 1, 90, false, false),
        (failed(SupplyReason::Cancelled), 3, DAY_MS, 0, false, false),
    ] {
        let due_at = Timestamp::from_millis(now_ms + seconds * 1_000);
        let expected = ListingOutcome::Again { due_at, is_failure, is_attempt };
        assert_eq!(end(error, attempts, now_ms), expected);
    }
}

#[test]
fn page_without_lister_is_left_to_other_servers_for_one_day() {
    let error = SupplyError::before_request(SupplyReason::Misconfigured, "Why.");
    let end = |now_ms| list_worker::error_outcome(&listing(), &error, false, Timestamp::from_millis(now_ms));
    let due_at = Timestamp::from_millis(DAY_MS - 1 + 5_000);
    assert_eq!(end(DAY_MS - 1), ListingOutcome::Again { due_at, is_failure: true, is_attempt: false });
    assert_eq!(end(DAY_MS), ListingOutcome::Failed(worker::failure("misconfigured", "Why.")));
}

#[test]
fn repeated_request_has_limit_of_first_one_unless_it_names_another() {
    let job = |limit| {
        let list = SourceList { limit, ..listing().list };
        Job::of_list(JobId::new("job_a"), AccountId::new("one"), None, list, Timestamp::from_millis(0))
    };
    assert!(job(9).is_same_request(&job(9), true));
    assert!(!job(9).is_same_request(&job(5), true));
    // The setting has changed.
    assert!(job(9).is_same_request(&job(5), false));
}

#[test]
fn page_without_videos_fails_only_an_empty_list() {
    let listed = |published_ms: Option<i64>| ListedVideo {
        video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
        title: None,
        author: None,
        duration_s: None,
        published: published_ms.map(Timestamp::from_millis).map(|at| TimeRange { earliest: at, latest: at }),
        live: None,
        members_only: false,
        is_unavailable: false,
    };
    let empty = VideoListPage::default;
    let since = SourceList { since: Some(Timestamp::from_millis(10)), ..listing().list };
    let later = || ClaimedListing { position: ListPosition::new("next"), ..listing() };
    let fails = |listing: ClaimedListing, page| {
        let outcome = list_worker::page_outcome(&listing, page);
        matches!(outcome, ListingOutcome::Failed(failure) if failure.reason == "empty")
    };
    assert!(fails(listing(), empty()));
    assert!(fails(later(), empty()), "no page had videos");
    assert!(!fails(ClaimedListing { items: 1, ..later() }, empty()), "an earlier page had videos");
    assert!(fails(ClaimedListing { list: since.clone(), ..listing() }, empty()));
    assert!(
        !fails(ClaimedListing { list: since.clone(), ..later() }, empty()),
        "earlier videos were too old"
    );
    let next = ListPosition::new("next");
    assert!(!fails(listing(), VideoListPage { next: next.clone(), ..empty() }), "there are more pages");
    let page =
        VideoListPage { videos: vec![listed(Some(20)), listed(None), listed(Some(9))], next, ..empty() };
    let outcome = list_worker::page_outcome(&ClaimedListing { list: since, ..listing() }, page);
    let video = listed(None).video;
    assert_eq!(outcome, ListingOutcome::Page { videos: vec![video.clone(), video], next: None });
}
