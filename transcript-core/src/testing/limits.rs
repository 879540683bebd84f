//! The cases of the rate limiter.

use std::sync::Arc;

use super::{Choices, at, at_ms, done, refused, together};
use crate::{
    error::ErrorKind,
    limits::{COUNT_MAX, PARTS, PER_MS_MAX, RateLimiter, Take, Taken},
};

/// Makes a test of every case of [`RateLimiter`]; see [`crate::testing`].
#[macro_export]
macro_rules! limits_conformance {
    ($make:expr) => {
        $crate::conformance_cases! { $make; $crate::limits::RateLimiter; [$crate::testing::limits];
            a_window_has_room_for_its_count
            what_was_taken_counts_for_exactly_its_window
            all_is_taken_or_nothing
            waiting_as_long_as_told_suffices_and_nothing_shorter
            any_window_has_at_most_its_count
            a_high_limit_is_kept_as_closely_as_its_parts
            a_cost_of_zero_only_asks
            the_tightest_limit_gives_the_figures
            a_limit_may_change_its_count
            time_never_runs_backwards
            takes_out_of_bounds_are_invalid
            taking_at_once_never_goes_beyond_the_count
        }
    };
}

type Store = Arc<dyn RateLimiter>;

/// One limit of a second.
fn take(bucket: &str, count: u32, cost: u32) -> Take {
    Take { bucket: bucket.to_owned(), count, per_ms: 1_000, cost }
}

/// Takes at a moment in milliseconds.
async fn taken(store: &Store, takes: &[Take], now: i64) -> Taken {
    done(store.take(takes.to_vec(), at_ms(now)).await)
}

fn allowed(remaining: u32, reset_ms: u64) -> Taken {
    Taken::Allowed { remaining, reset_ms }
}

fn limited(take: u32, retry_after_ms: u64) -> Taken {
    Taken::Limited { take, retry_after_ms }
}

/// A window takes its count, and tells what remains.
pub async fn a_window_has_room_for_its_count(store: Store) {
    assert_eq!(taken(&store, &[take("a", 3, 1)], 0).await, allowed(2, 1_000), "what remains, and until when");
    assert_eq!(
        taken(&store, &[take("a", 3, 2)], 400).await,
        allowed(0, 1_000),
        "empty when the newest is over"
    );
    assert_eq!(taken(&store, &[take("a", 3, 1)], 401).await, limited(0, 599), "until the oldest is over");
    assert_eq!(
        taken(&store, &[take("b", 3, 3)], 401).await,
        allowed(0, 1_000),
        "other buckets are untouched"
    );
    assert_eq!(taken(&store, &[take("a", 3, 2)], 402).await, limited(0, 998), "until enough is over");
}

/// The window is open at its old end: what was taken exactly its length ago counts no longer.
pub async fn what_was_taken_counts_for_exactly_its_window(store: Store) {
    taken(&store, &[take("a", 1, 1)], 0).await;
    assert_eq!(taken(&store, &[take("a", 1, 1)], 999).await, limited(0, 1), "a millisecond too early");
    assert_eq!(taken(&store, &[take("a", 1, 1)], 1_000).await, allowed(0, 1_000), "exactly a window later");
    assert_eq!(taken(&store, &[take("a", 1, 1)], 1_999).await, limited(0, 1));
    assert_eq!(taken(&store, &[take("a", 1, 0)], 2_000).await, allowed(1, 0), "an empty window is fresh");
    let short = Take { per_ms: 1, ..take("b", 2, 2) };
    for now in 2_000..2_010 {
        assert_eq!(
            taken(&store, std::slice::from_ref(&short), now).await,
            allowed(0, 1),
            "a window of one millisecond"
        );
    }
}

/// When one limit refuses, nothing is taken from any.
pub async fn all_is_taken_or_nothing(store: Store) {
    taken(&store, &[take("full", 1, 1)], 0).await;
    let all = [take("a", 5, 2), take("full", 1, 1), take("b", 5, 2)];
    for now in [1, 2, 3] {
        assert_eq!(
            taken(&store, &all, now).await,
            limited(1, 1_000 - now.unsigned_abs()),
            "the one that refused"
        );
    }
    for bucket in ["a", "b"] {
        assert_eq!(taken(&store, &[take(bucket, 5, 0)], 4).await, allowed(5, 0), "nothing was taken");
    }
    assert_eq!(taken(&store, &all, 1_000).await, allowed(0, 1_000), "all is taken when all allow");
    assert_eq!(taken(&store, &[take("b", 5, 0)], 1_000).await, allowed(3, 1_000));
}

/// Waiting as long as told suffices, for all limits together, and no shorter wait does.
pub async fn waiting_as_long_as_told_suffices_and_nothing_shorter(store: Store) {
    let slow = |cost| Take { per_ms: 5_000, ..take("slow", 4, cost) };
    let mut choices = Choices::new(7);
    let mut now = 0;
    let mut waits = 0;
    for _ in 0..150 {
        let asked = [take("fast", 3, choices.below(4) as u32), slow(choices.below(5) as u32)];
        if let Taken::Limited { take: place, retry_after_ms } = taken(&store, &asked, now).await {
            waits += 1;
            assert!(asked[place as usize].cost > 0 && retry_after_ms > 0, "only a taking waits");
            let wait = i64::try_from(retry_after_ms).expect("no wait is longer than its window");
            let early = taken(&store, &asked, now + wait - 1).await;
            assert_eq!(early, limited(place, 1), "nothing shorter suffices, by the limit that was named");
            now += wait;
            let after = taken(&store, &asked, now).await;
            assert!(matches!(after, Taken::Allowed { .. }), "waiting as long as told suffices: {after:?}");
        }
        now += choices.below(700) as i64;
    }
    assert!(waits > 20, "the case waits often enough to tell something: {waits}");
}

/// In any window of any sequence of takings there is at most the count.
pub async fn any_window_has_at_most_its_count(store: Store) {
    let mut choices = Choices::new(11);
    let mut log: Vec<(i64, u32)> = Vec::new();
    let mut now = 0;
    for _ in 0..250 {
        now += choices.below(300) as i64;
        let cost = choices.below(5) as u32;
        let sum: u32 = log.iter().filter(|(then, _)| then + 1_000 > now).map(|(_, cost)| *cost).sum();
        let fits = cost == 0 || sum + cost <= 7;
        match taken(&store, &[take("a", 7, cost)], now).await {
            Taken::Allowed { remaining, .. } => {
                assert!(fits, "at most 7 in any second: {sum} and {cost} at {now}");
                assert_eq!(remaining, 7 - sum - cost, "what remains is what the window still has");
                log.push((now, cost));
            }
            Taken::Limited { .. } => assert!(!fits, "what fits is allowed: {sum} and {cost} at {now}"),
        }
    }
}

/// A limit of more takings than are told apart: never more than its count, and hardly a longer wait.
pub async fn a_high_limit_is_kept_as_closely_as_its_parts(store: Store) {
    let mut choices = Choices::new(13);
    let ask = |cost| Take { bucket: "high".to_owned(), count: 400, per_ms: 6_400, cost };
    let part = 6_400 / PARTS;
    let mut log: Vec<(i64, u32)> = Vec::new();
    let (mut now, mut waits) = (0, 0);
    for _ in 0..1_500 {
        now += choices.below(25) as i64;
        let cost = 1 + choices.below(2) as u32;
        let taken_since = |moment: i64| -> u32 {
            log.iter().filter(|(then, _)| *then > moment).map(|(_, cost)| *cost).sum()
        };
        let sum = taken_since(now - 6_400);
        let figures = taken(&store, &[ask(cost)], now).await;
        match figures {
            Taken::Allowed { remaining, reset_ms } => {
                assert!(sum + cost <= 400, "at most 400 in any window: {sum} and {cost} at {now}");
                assert!(remaining <= 400 - sum - cost, "no more remains than the window has");
                assert_eq!(reset_ms, 6_400, "empty when the newest is over");
                log.push((now, cost));
            }
            Taken::Limited { retry_after_ms, .. } => {
                waits += 1;
                let sum = taken_since(now - 6_400 - part);
                assert!(
                    sum + cost > 400,
                    "what fits by more than a part is allowed: {sum} and {cost} at {now}"
                );
                let wait = i64::try_from(retry_after_ms).expect("no wait is longer than its window");
                let sum = taken_since(now + wait - 6_400);
                assert!(sum + cost <= 400, "the wait that is told is no shorter than the window's");
                now += wait;
                let after = taken(&store, &[ask(cost)], now).await;
                assert!(
                    matches!(after, Taken::Allowed { .. }),
                    "waiting as long as told suffices: {after:?}"
                );
                log.push((now, cost));
            }
        }
    }
    assert!(waits > 20, "the case waits often enough to tell something: {waits}");
}

/// A cost of 0 takes nothing and is never refused.
pub async fn a_cost_of_zero_only_asks(store: Store) {
    assert_eq!(taken(&store, &[take("a", 2, 0)], 0).await, allowed(2, 0), "nothing was ever taken");
    taken(&store, &[take("a", 2, 2)], 10).await;
    for _ in 0..3 {
        assert_eq!(taken(&store, &[take("a", 2, 0)], 20).await, allowed(0, 990), "asking takes nothing");
    }
    let both = [take("a", 2, 0), take("b", 2, 1)];
    assert_eq!(
        taken(&store, &both, 20).await,
        allowed(0, 990),
        "a full limit that is only asked refuses nothing"
    );
    assert_eq!(taken(&store, &[take("b", 2, 0)], 20).await, allowed(1, 1_000), "and the other is taken");
}

/// The figures of an answer are those of the limit with the least left, or with the longest wait.
pub async fn the_tightest_limit_gives_the_figures(store: Store) {
    let slow = |count, cost| Take { per_ms: 9_000, ..take("slow", count, cost) };
    let all = [take("wide", 9, 1), slow(2, 1), take("middle", 5, 1)];
    assert_eq!(taken(&store, &all, 0).await, allowed(1, 9_000), "the one with the least remaining");
    let even = [take("x", 4, 1), slow(5, 0)];
    assert_eq!(taken(&store, &even, 0).await, allowed(3, 1_000), "the smallest remaining decides");
    let tied = [take("t1", 3, 1), Take { per_ms: 2_000, ..take("t2", 3, 1) }];
    assert_eq!(taken(&store, &tied, 0).await, allowed(2, 1_000), "of several the first in the request");
    taken(&store, &[take("fast", 1, 1), slow(2, 1)], 500).await;
    let full = [take("fast", 1, 1), slow(2, 1), take("middle", 5, 1)];
    assert_eq!(
        taken(&store, &full, 600).await,
        limited(1, 8_400),
        "the refusing limit with the longest wait"
    );
    let twins = [take("f1", 1, 1), take("f2", 1, 1)];
    taken(&store, &twins, 700).await;
    assert_eq!(taken(&store, &twins, 800).await, limited(0, 900), "of several the first in the request");
}

/// A bucket's count may change from call to call.
pub async fn a_limit_may_change_its_count(store: Store) {
    taken(&store, &[take("a", 10, 8)], 0).await;
    taken(&store, &[take("a", 10, 1)], 500).await;
    assert_eq!(
        taken(&store, &[take("a", 4, 0)], 600).await,
        allowed(0, 900),
        "more was taken than there is now"
    );
    assert_eq!(taken(&store, &[take("a", 4, 1)], 600).await, limited(0, 400), "until enough is over");
    assert_eq!(
        taken(&store, &[take("a", 100, 91)], 600).await,
        allowed(0, 1_000),
        "a raised count has more room"
    );
}

/// A moment before one at which was taken counts as that one.
pub async fn time_never_runs_backwards(store: Store) {
    taken(&store, &[take("a", 2, 1)], 5_000).await;
    assert_eq!(taken(&store, &[take("a", 2, 1)], 0).await, allowed(0, 1_000), "counted at the later moment");
    assert_eq!(
        taken(&store, &[take("a", 2, 1)], 1_000).await,
        limited(0, 1_000),
        "and not over before it is"
    );
    assert_eq!(taken(&store, &[take("a", 2, 1)], 5_999).await, limited(0, 1));
    assert_eq!(taken(&store, &[take("a", 2, 2)], 6_000).await, allowed(0, 1_000));
}

/// A request outside its bounds is invalid and takes nothing.
pub async fn takes_out_of_bounds_are_invalid(store: Store) {
    let good = take("good", 5, 1);
    let many: Vec<Take> = (0..17).map(|n| take(&format!("m{n}"), 5, 1)).collect();
    for (what, wrong) in [
        ("no take", vec![]),
        ("too many", many.clone()),
        ("a bucket twice", vec![good.clone(), take("x", 5, 1), good.clone()]),
        ("no room", vec![good.clone(), take("x", 0, 0)]),
        ("too much room", vec![good.clone(), take("x", COUNT_MAX + 1, 1)]),
        ("no window", vec![good.clone(), Take { per_ms: 0, ..take("x", 5, 1) }]),
        ("a window too long", vec![good.clone(), Take { per_ms: PER_MS_MAX + 1, ..take("x", 5, 1) }]),
        ("the longest window", vec![good.clone(), Take { per_ms: u64::MAX, ..take("x", 5, 1) }]),
        ("more than there is", vec![good.clone(), take("x", 5, 6)]),
        ("no name", vec![good.clone(), take("", 5, 1)]),
        ("a long name", vec![good.clone(), take(&"x".repeat(257), 5, 1)]),
    ] {
        refused(store.take(wrong, at(0)).await, ErrorKind::Invalid, what);
    }
    assert_eq!(
        taken(&store, &[take("good", 5, 0)], 0).await,
        allowed(5, 0),
        "an invalid request takes nothing"
    );
    assert_eq!(taken(&store, &many[..16], 0).await, allowed(4, 1_000));
    let largest = Take { per_ms: PER_MS_MAX, ..take(&"ü".repeat(128), COUNT_MAX, COUNT_MAX) };
    assert_eq!(taken(&store, std::slice::from_ref(&largest), 0).await, allowed(0, PER_MS_MAX));
    assert_eq!(taken(&store, &[largest], 1).await, limited(0, PER_MS_MAX - 1));
}

/// However many take at once, a window takes no more than its count.
pub async fn taking_at_once_never_goes_beyond_the_count(store: Store) {
    let answers = together((0..40).map(|n| {
        let store = Arc::clone(&store);
        async move {
            let (a, b) = (take("a", 15, 1), take("b", 30, 1));
            let takes = if n % 2 == 0 { [a, b] } else { [b, a] };
            taken(&store, &takes, 0).await
        }
    }))
    .await;
    let count = answers.iter().filter(|answer| matches!(answer, Taken::Allowed { .. })).count();
    assert_eq!(count, 15, "exactly as many as the tightest limit has room for");
    assert_eq!(
        taken(&store, &[take("b", 30, 0)], 0).await,
        allowed(15, 1_000),
        "what was refused took nothing"
    );
}
