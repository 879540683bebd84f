//! Tests of the rules of webhooks.

use super::{callback_url::check_callback_url, sender::next_attempt, *};
use crate::{
    accounts::jobs::{Job, JobStatus},
    ids::{AccountId, JobId},
    time::Timestamp,
};

#[test]
fn callback_url_must_be_public_https_without_credentials() {
    for (text, is_public, is_private) in [
        ("https://hooks.example.org/verbatim?x=1", true, true),
        ("https://example.org:8443/", true, true),
        ("https://ümlaut.example/", true, true),
        ("http://example.org/", false, true),
        ("https://localhost/", false, true),
        ("https://localhost./", false, true),
        ("https://127.0.0.1/", false, true),
        ("https://0x7f.1/", false, true),
        ("https://[::1]/", false, true),
        ("https://8.8.8.8/", false, true),
        ("https://user@example.org/", false, false),
        ("https://:word@example.org/", false, false),
        ("https://example.org/#part", false, false),
        ("https://example.org/\r\nX: y", false, false),
        ("https://exa\tmple.org/", false, false),
        (" https://example.org/ ", false, false),
        ("https://example.org/\u{a0}", false, false),
        ("https://example.org/\0", false, false),
        ("ftp://example.org/", false, false),
        ("file:///etc/passwd", false, false),
        ("https://", false, false),
        ("/path", false, false),
        ("", false, false),
    ] {
        assert_eq!(check_callback_url(text, false).is_ok(), is_public, "{text}");
        assert_eq!(check_callback_url(text, true).is_ok(), is_private, "{text}");
    }
    let long = format!("https://example.org/{}", "a".repeat(CALLBACK_URL_MAX));
    assert!(check_callback_url(&long, true).is_err());
}

#[test]
fn attempts_back_off_and_end_after_a_day() {
    let created = Timestamp::from_millis(1_000_000);
    let (mut now, mut attempt, mut pauses) = (created, 1, Vec::new());
    while let Some(next) = next_attempt(attempt, now) {
        pauses.push(next.since(now).as_secs());
        (now, attempt) = (next, attempt + 1);
    }
    assert_eq!(pauses[..11], [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
    assert_eq!(attempt, 33, "{pauses:?}");
    let total: u64 = pauses.iter().sum();
    assert!((23 * 3_600..=24 * 3_600).contains(&total), "{total}");
    assert!(next_attempt(u32::MAX, now).is_none());
}

#[test]
fn ends_and_pauses_of_jobs_with_callback_are_events() {
    let job = |status, callback: Option<&str>| Job {
        status,
        callback_url: callback.map(str::to_owned),
        ..Job::new(JobId::new("job_a"), AccountId::new("one"), None, &[], Timestamp::from_millis(0))
    };
    let counts = EventCounts::default();
    let event = |before, after, counts| job(after, Some("https://example.org/")).event_since(before, counts);
    for (before, after, kind) in [
        (JobStatus::Running, JobStatus::Completed, Some(JobEventKind::Completed)),
        (JobStatus::Running, JobStatus::Paused, Some(JobEventKind::Paused)),
        (JobStatus::Paused, JobStatus::Cancelled, Some(JobEventKind::Cancelled)),
        (JobStatus::Listing, JobStatus::Failed, Some(JobEventKind::Failed)),
        (JobStatus::Queued, JobStatus::Running, None),
        (JobStatus::Paused, JobStatus::Running, None),
        (JobStatus::Cancelled, JobStatus::Cancelled, None),
    ] {
        assert_eq!(event(before, after, counts), kind, "{before:?} to {after:?}");
        assert_eq!(job(after, None).event_since(before, counts), None);
    }
    let waiting = EventCounts { all: 1, waiting_pauses: 1 };
    assert_eq!(event(JobStatus::Running, JobStatus::Paused, waiting), None);
    let many = EventCounts { all: 20, waiting_pauses: 0 };
    assert_eq!(event(JobStatus::Running, JobStatus::Paused, many), None);
    assert_eq!(event(JobStatus::Running, JobStatus::Completed, many), Some(JobEventKind::Completed));
}

#[test]
fn previous_secret_signs_for_a_day() {
    let now = Timestamp::from_millis(0);
    assert_eq!(SecretGeneration::FIRST.previous_until(now), None);
    let second = SecretGeneration::FIRST.next(now);
    let day = std::time::Duration::from_secs(24 * 3_600);
    assert_eq!((second.number, second.previous_until(now)), (2, Some(now.plus(day))));
    assert_eq!(second.previous_until(now.plus(day)), None);
}
