//! Conformance cases of the rate limiter.

use std::sync::Arc;

use super::{SeededRng, at, at_ms, call_concurrently, expect_error, expect_ok};
use crate::{
    error::ErrorKind,
    limits::{
        LIMIT_MAX,
        LimitOutcome::{self, Allowed, Limited},
        LimitRequest, RateLimiter, WINDOW_MS_MAX, WINDOW_PARTS,
    },
};

/// Generates one test per case of [`RateLimiter`]; see [`crate::testing`].
#[macro_export]
macro_rules! limits_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::limits::RateLimiter; [$crate::testing::limits];
            window_empty_admits_max
            request_counts_for_exactly_one_window
            limits_are_taken_all_or_none
            retry_after_is_sufficient_and_minimal
            window_never_exceeds_max
            high_limit_is_exact_within_one_part
            zero_cost_takes_nothing
            result_describes_tightest_limit
            max_may_change_between_calls
            earlier_time_counts_as_latest_time
            corrected_clock_removes_later_counts
            request_out_of_bounds_is_invalid
            concurrent_requests_never_exceed_max
        }
    };
}

type RateLimiterStore = Arc<dyn RateLimiter>;

/// Request to a limit with a window of one second.
fn limit_request(bucket: &str, max: u32, cost: u32) -> LimitRequest {
    LimitRequest { bucket: bucket.to_owned(), max, window_ms: 1_000, cost }
}

/// Acquires the limits at a time in milliseconds.
async fn acquire(store: &RateLimiterStore, requests: &[LimitRequest], now: i64) -> LimitOutcome {
    expect_ok(store.acquire(requests.to_vec(), at_ms(now)).await)
}

/// A request to one limit with a window of one second: bucket, maximum and cost, time in milliseconds, outcome, rule.
type LimitStep<'a> = ((&'a str, u32, u32), i64, LimitOutcome, &'a str);

/// Makes requests in order.
async fn check_steps(store: &RateLimiterStore, steps: &[LimitStep<'_>]) {
    for ((bucket, max, cost), now, expect, rule) in steps {
        let outcome = acquire(store, &[limit_request(bucket, *max, *cost)], *now).await;
        assert_eq!(outcome, *expect, "{rule}: {bucket} at {now}");
    }
}

fn allowed(remaining: u32, reset_ms: u64) -> LimitOutcome {
    Allowed { remaining, reset_ms }
}

fn limited(limit_index: u32, retry_after_ms: u64) -> LimitOutcome {
    Limited { limit_index, retry_after_ms }
}

/// An empty window admits its maximum and returns the remaining count.
pub async fn window_empty_admits_max(store: RateLimiterStore) {
    check_steps(
        &store,
        &[
            (("a", 3, 1), 0, allowed(2, 1_000), "remaining count and reset time"),
            (("a", 3, 2), 400, allowed(0, 1_000), "reset when the newest request leaves the window"),
            (("a", 3, 1), 401, limited(0, 599), "wait until the oldest request leaves"),
            (("b", 3, 3), 401, allowed(0, 1_000), "other buckets are untouched"),
            (("a", 3, 2), 402, limited(0, 998), "wait until enough requests leave"),
        ],
    )
    .await;
}

/// A request counts for exactly one window length; the window excludes its old end.
pub async fn request_counts_for_exactly_one_window(store: RateLimiterStore) {
    acquire(&store, &[limit_request("a", 1, 1)], 0).await;
    check_steps(
        &store,
        &[
            (("a", 1, 1), 999, limited(0, 1), "a millisecond too early"),
            (("a", 1, 1), 1_000, allowed(0, 1_000), "exactly a window later"),
            (("a", 1, 1), 1_999, limited(0, 1), "a millisecond before the first request leaves"),
            (("a", 1, 0), 2_000, allowed(1, 0), "an empty window is unused"),
        ],
    )
    .await;
    let short = LimitRequest { window_ms: 1, ..limit_request("b", 2, 2) };
    for now in 2_000..2_010 {
        assert_eq!(
            acquire(&store, std::slice::from_ref(&short), now).await,
            allowed(0, 1),
            "a window of one millisecond"
        );
    }
}

/// If one limit rejects, nothing is taken from any.
pub async fn limits_are_taken_all_or_none(store: RateLimiterStore) {
    acquire(&store, &[limit_request("full", 1, 1)], 0).await;
    let all = [limit_request("a", 5, 2), limit_request("full", 1, 1), limit_request("b", 5, 2)];
    for now in [1, 2, 3] {
        assert_eq!(
            acquire(&store, &all, now).await,
            limited(1, 1_000 - now.unsigned_abs()),
            "the index of the limit that rejected"
        );
    }
    for bucket in ["a", "b"] {
        check_steps(&store, &[((bucket, 5, 0), 4, allowed(5, 0), "nothing was taken")]).await;
    }
    assert_eq!(acquire(&store, &all, 1_000).await, allowed(0, 1_000), "all limits are taken if all allow");
    check_steps(&store, &[(("b", 5, 0), 1_000, allowed(3, 1_000), "a rejected call takes nothing")]).await;
}

/// The returned wait is sufficient for all limits together, and no shorter wait is.
pub async fn retry_after_is_sufficient_and_minimal(store: RateLimiterStore) {
    let slow = |cost| LimitRequest { window_ms: 5_000, ..limit_request("slow", 4, cost) };
    let mut rng = SeededRng::new(7);
    let mut now = 0;
    let mut waits = 0;
    for _ in 0..150 {
        let requests = [limit_request("fast", 3, rng.below(4) as u32), slow(rng.below(5) as u32)];
        if let Limited { limit_index: index, retry_after_ms } = acquire(&store, &requests, now).await {
            waits += 1;
            assert!(
                requests[index as usize].cost > 0 && retry_after_ms > 0,
                "only a request with a cost waits"
            );
            let wait = i64::try_from(retry_after_ms).expect("no wait is longer than its window");
            let early = acquire(&store, &requests, now + wait - 1).await;
            assert_eq!(early, limited(index, 1), "a shorter wait is rejected by the same limit");
            now += wait;
            let after = acquire(&store, &requests, now).await;
            assert!(matches!(after, Allowed { .. }), "the returned wait is sufficient: {after:?}");
        }
        now += rng.below(700) as i64;
    }
    assert!(waits > 20, "the case waits often enough to be meaningful: {waits}");
}

/// Any window of any sequence of requests contains at most its maximum.
pub async fn window_never_exceeds_max(store: RateLimiterStore) {
    let mut rng = SeededRng::new(11);
    let mut log: Vec<(i64, u32)> = Vec::new();
    let mut now = 0;
    for _ in 0..250 {
        now += rng.below(300) as i64;
        let cost = rng.below(5) as u32;
        let sum: u32 = log.iter().filter(|(then, _)| then + 1_000 > now).map(|(_, cost)| *cost).sum();
        let fits = cost == 0 || sum + cost <= 7;
        match acquire(&store, &[limit_request("a", 7, cost)], now).await {
            Allowed { remaining, .. } => {
                assert!(fits, "at most 7 in any second: {sum} and {cost} at {now}");
                assert_eq!(remaining, 7 - sum - cost, "the remaining count is what the window still admits");
                log.push((now, cost));
            }
            Limited { .. } => {
                assert!(!fits, "a request that fits is allowed: {sum} and {cost} at {now}")
            }
        }
    }
}

/// A limit larger than `PARTS` never exceeds its maximum and waits at most one part longer.
pub async fn high_limit_is_exact_within_one_part(store: RateLimiterStore) {
    let mut rng = SeededRng::new(13);
    let high = |cost| LimitRequest { bucket: "high".to_owned(), max: 400, window_ms: 6_400, cost };
    let part = 6_400 / WINDOW_PARTS;
    let mut log: Vec<(i64, u32)> = Vec::new();
    let (mut now, mut waits) = (0, 0);
    for _ in 0..1_500 {
        now += rng.below(25) as i64;
        let cost = 1 + rng.below(2) as u32;
        let taken_since =
            |time: i64| -> u32 { log.iter().filter(|(then, _)| *then > time).map(|(_, cost)| *cost).sum() };
        let sum = taken_since(now - 6_400);
        let outcome = acquire(&store, &[high(cost)], now).await;
        match outcome {
            Allowed { remaining, reset_ms } => {
                assert!(sum + cost <= 400, "at most 400 in any window: {sum} and {cost} at {now}");
                assert!(remaining <= 400 - sum - cost, "no more remains than the window admits");
                assert_eq!(reset_ms, 6_400, "reset when the newest request leaves the window");
                log.push((now, cost));
            }
            Limited { retry_after_ms, .. } => {
                waits += 1;
                let sum = taken_since(now - 6_400 - part);
                assert!(
                    sum + cost > 400,
                    "a request that fits by more than a part is allowed: {sum} and {cost} at {now}"
                );
                let wait = i64::try_from(retry_after_ms).expect("no wait is longer than its window");
                let sum = taken_since(now + wait - 6_400);
                assert!(sum + cost <= 400, "the returned wait is no shorter than that of the window");
                now += wait;
                let after = acquire(&store, &[high(cost)], now).await;
                assert!(matches!(after, Allowed { .. }), "the returned wait is sufficient: {after:?}");
                log.push((now, cost));
            }
        }
    }
    assert!(waits > 20, "the case waits often enough to be meaningful: {waits}");
}

/// A cost of 0 takes nothing and is never limited.
pub async fn zero_cost_takes_nothing(store: RateLimiterStore) {
    check_steps(&store, &[(("a", 2, 0), 0, allowed(2, 0), "nothing was taken")]).await;
    acquire(&store, &[limit_request("a", 2, 2)], 10).await;
    for _ in 0..3 {
        check_steps(&store, &[(("a", 2, 0), 20, allowed(0, 990), "a cost of 0 takes nothing")]).await;
    }
    let both = [limit_request("a", 2, 0), limit_request("b", 2, 1)];
    assert_eq!(acquire(&store, &both, 20).await, allowed(0, 990), "a full limit does not reject a cost of 0");
    check_steps(&store, &[(("b", 2, 0), 20, allowed(1, 1_000), "the other limit is taken")]).await;
}

/// The result describes the limit with the least remaining, or with the longest wait.
pub async fn result_describes_tightest_limit(store: RateLimiterStore) {
    let slow = |count, cost| LimitRequest { window_ms: 9_000, ..limit_request("slow", count, cost) };
    let all = [limit_request("wide", 9, 1), slow(2, 1), limit_request("middle", 5, 1)];
    assert_eq!(acquire(&store, &all, 0).await, allowed(1, 9_000), "the one with the least remaining");
    let even = [limit_request("x", 4, 1), slow(5, 0)];
    assert_eq!(acquire(&store, &even, 0).await, allowed(3, 1_000), "the smallest remaining decides");
    let tied = [limit_request("t1", 3, 1), LimitRequest { window_ms: 2_000, ..limit_request("t2", 3, 1) }];
    assert_eq!(
        acquire(&store, &tied, 0).await,
        allowed(2, 1_000),
        "of equal limits the first in the request"
    );
    acquire(&store, &[limit_request("fast", 1, 1), slow(2, 1)], 500).await;
    let full = [limit_request("fast", 1, 1), slow(2, 1), limit_request("middle", 5, 1)];
    assert_eq!(
        acquire(&store, &full, 600).await,
        limited(1, 8_400),
        "the rejecting limit with the longest wait"
    );
    let equal_limits = [limit_request("f1", 1, 1), limit_request("f2", 1, 1)];
    acquire(&store, &equal_limits, 700).await;
    assert_eq!(
        acquire(&store, &equal_limits, 800).await,
        limited(0, 900),
        "of equal limits the first in the request"
    );
}

/// The maximum of a bucket may change between calls.
pub async fn max_may_change_between_calls(store: RateLimiterStore) {
    acquire(&store, &[limit_request("a", 10, 8)], 0).await;
    acquire(&store, &[limit_request("a", 10, 1)], 500).await;
    check_steps(
        &store,
        &[
            (("a", 4, 0), 600, allowed(0, 900), "more was taken than the new maximum"),
            (("a", 4, 1), 600, limited(0, 400), "wait until enough requests leave"),
            (("a", 100, 91), 600, allowed(0, 1_000), "a raised maximum admits more"),
        ],
    )
    .await;
}

/// A time slightly earlier than the latest recorded one counts as that latest time.
pub async fn earlier_time_counts_as_latest_time(store: RateLimiterStore) {
    acquire(&store, &[limit_request("a", 2, 1)], 5_000).await;
    check_steps(
        &store,
        &[
            (("a", 2, 1), 3_000, allowed(0, 1_000), "counted at the later time"),
            (("a", 2, 1), 4_000, limited(0, 1_000), "the wait starts at the later time"),
            (("a", 2, 1), 5_999, limited(0, 1), "a millisecond too early"),
            (("a", 2, 2), 6_000, allowed(0, 1_000), "all leave one window after the latest time"),
        ],
    )
    .await;
}

/// After a clock was ahead and corrected, what was counted ahead blocks no request.
pub async fn corrected_clock_removes_later_counts(store: RateLimiterStore) {
    let day = 86_400_000;
    check_steps(
        &store,
        &[
            (("a", 2, 2), day, allowed(0, 1_000), "a day ahead"),
            (("a", 2, 1), 600, allowed(1, 1_000), "what was counted ahead is removed"),
            (("a", 2, 2), 601, limited(0, 999), "what is counted from then on stays"),
            (("a", 2, 2), 1_600, allowed(0, 1_000), "the returned wait is sufficient"),
        ],
    )
    .await;
}

/// A request outside the bounds is invalid and takes nothing.
pub async fn request_out_of_bounds_is_invalid(store: RateLimiterStore) {
    let good = limit_request("good", 5, 1);
    let many: Vec<LimitRequest> = (0..17).map(|n| limit_request(&format!("m{n}"), 5, 1)).collect();
    for (what, wrong) in [
        ("no bucket", vec![]),
        ("too many", many.clone()),
        ("a bucket twice", vec![good.clone(), limit_request("x", 5, 1), good.clone()]),
        ("a maximum of zero", vec![good.clone(), limit_request("x", 0, 0)]),
        ("a maximum too large", vec![good.clone(), limit_request("x", LIMIT_MAX + 1, 1)]),
        ("no window", vec![good.clone(), LimitRequest { window_ms: 0, ..limit_request("x", 5, 1) }]),
        (
            "a window too long",
            vec![good.clone(), LimitRequest { window_ms: WINDOW_MS_MAX + 1, ..limit_request("x", 5, 1) }],
        ),
        (
            "the longest window",
            vec![good.clone(), LimitRequest { window_ms: u64::MAX, ..limit_request("x", 5, 1) }],
        ),
        ("a cost above the maximum", vec![good.clone(), limit_request("x", 5, 6)]),
        ("no name", vec![good.clone(), limit_request("", 5, 1)]),
        ("a long name", vec![good.clone(), limit_request(&"x".repeat(257), 5, 1)]),
    ] {
        expect_error(store.acquire(wrong, at(0)).await, ErrorKind::Invalid, what);
    }
    check_steps(&store, &[(("good", 5, 0), 0, allowed(5, 0), "an invalid request takes nothing")]).await;
    assert_eq!(acquire(&store, &many[..16], 0).await, allowed(4, 1_000));
    let largest =
        LimitRequest { window_ms: WINDOW_MS_MAX, ..limit_request(&"ü".repeat(128), LIMIT_MAX, LIMIT_MAX) };
    assert_eq!(acquire(&store, std::slice::from_ref(&largest), 0).await, allowed(0, WINDOW_MS_MAX));
    assert_eq!(acquire(&store, &[largest], 1).await, limited(0, WINDOW_MS_MAX - 1));
}

/// Concurrent requests never exceed the maximum of a window.
pub async fn concurrent_requests_never_exceed_max(store: RateLimiterStore) {
    let outcomes = call_concurrently(&store, 0..40, |store, n| async move {
        let (a, b) = (limit_request("a", 15, 1), limit_request("b", 30, 1));
        let requests = if n % 2 == 0 { [a, b] } else { [b, a] };
        acquire(&store, &requests, 0).await
    })
    .await;
    let count = outcomes.iter().filter(|outcome| matches!(outcome, Allowed { .. })).count();
    assert_eq!(count, 15, "exactly as many as the tightest limit admits");
    check_steps(&store, &[(("b", 30, 0), 0, allowed(15, 1_000), "rejected requests took nothing")]).await;
}
