//! Tests of the rules of jobs.

use std::time::Duration;

use super::{worker::ItemEnd, *};
use crate::{
    engine::{FailureReason, NoTranscript},
    ids::{AccountId, JobId},
    time::Timestamp,
    video::{Platform, VideoId},
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
        "aaaaaaaaaaa",
    ];
    let items = api::new_items(urls.map(str::to_owned).to_vec());
    let found: Vec<_> = items.iter().map(|item| item.video.as_ref().map_err(|error| &error.reason)).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[0].unwrap().id(), "dQw4w9WgXcQ");
    assert_eq!(found[1].unwrap_err(), "invalid_url");
    assert_eq!(found[2].unwrap_err(), "invalid_url", "jobs are for YouTube");
    assert_eq!(found[3].unwrap().id(), "aaaaaaaaaaa");
}

#[test]
fn long_link_is_stored_shortened() {
    let items = api::new_items(vec!["ü".repeat(crate::video::VideoLink::LENGTH_MAX)]);
    assert!(items[0].url.len() <= crate::video::VideoLink::LENGTH_MAX);
    assert!(items[0].video.is_err());
}

#[test]
fn item_without_transcript_is_tried_again_only_where_it_may_help() {
    const DAY_MS: i64 = 24 * 3_600_000;
    let end = |reason, attempted, attempts, failing_ms: i64| {
        let none = NoTranscript { attempted, ..NoTranscript::new(reason, "Why.") };
        let item = ClaimedItem {
            claim: ItemClaim { job: JobId::new("job_a"), index: 0, number: 1 },
            account: AccountId::new("one"),
            language: None,
            is_cancelled: false,
            video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
            attempts,
            failing_since: Some(Timestamp::from_millis(0)),
        };
        worker::unavailable(none, &item, Timestamp::from_millis(failing_ms))
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
        (FailureReason::DailyCap, false, 9, 9 * DAY_MS, 600),
    ] {
        let ItemEnd::Again { pause, failure } = end(reason, attempted, attempts, failing_ms) else {
            panic!("{reason:?} is tried again");
        };
        assert_eq!(pause, Duration::from_secs(seconds), "{reason:?}");
        let expected = (reason != FailureReason::DailyCap).then_some(attempted);
        assert_eq!(failure.map(|failure| failure.is_attempt), expected, "{reason:?}");
    }
}
