//! Sliding windows of bounded size: the one arithmetic of all rate limiters.

use super::{LimitOutcome, LimitRequest, TIMES_EXACT, WINDOW_PARTS};
use crate::time::{LEASE_MAX, Timestamp};

/// The requests counted in one bucket that have not expired.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    /// Name of the bucket.
    pub bucket: String,
    /// Times in milliseconds and the count at each; the oldest first.
    pub taken: Vec<(i64, u32)>,
    /// Time in milliseconds from which all counts have expired. It moves back only when a clock was corrected.
    pub ends_at: i64,
}

impl SlidingWindow {
    fn fresh(bucket: &str) -> Self {
        Self { bucket: bucket.to_owned(), taken: Vec::new(), ends_at: 0 }
    }

    /// The later of `now` and the newest counted time, so that a clock that steps back a little has no effect.
    fn effective_now(&self, now: i64) -> i64 {
        self.taken.last().map_or(now, |(last, _)| now.max(*last))
    }

    /// Removes expired counts. A count expires exactly `per_ms` after its time.
    ///
    /// Counts far ahead of `now` are of a clock that was corrected since. They are removed too: until that time they
    /// would block their bucket. Moved to `now` they would move again with each refused request, which stores nothing.
    /// A call that waited seconds for the store is not one of a corrected clock, hence the long bound.
    fn slide(&mut self, per_ms: i64, now: i64) {
        let latest = Timestamp::from_millis(now).plus(LEASE_MAX).as_millis();
        if self.taken.last().is_some_and(|(at, _)| *at > latest) {
            self.taken.retain(|(at, _)| *at <= latest);
            self.ends_at = self.taken.last().map_or(0, |(at, _)| at.saturating_add(per_ms));
        }
        let horizon = self.effective_now(now).saturating_sub(per_ms);
        self.taken.retain(|(at, _)| *at > horizon);
    }

    /// Merges counts in the same part of a window once there are too many times.
    ///
    /// A merged count has the latest time of its part, so no window ever exceeds its limit.
    fn merge(&mut self, per_ms: i64) {
        if self.taken.len() <= TIMES_EXACT {
            return;
        }
        let part = (per_ms / WINDOW_PARTS).max(1);
        self.taken.dedup_by(|later, earlier| {
            let is_same = later.0.div_euclid(part) == earlier.0.div_euclid(part);
            if is_same {
                *earlier = (later.0, earlier.1.saturating_add(later.1));
            }
            is_same
        });
    }

    fn used(&self) -> u64 {
        self.taken.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// The wait until the request is possible. `None` if it is possible now.
    fn wait_ms(&self, take: &LimitRequest, now: i64) -> Option<i64> {
        let excess = (self.used() + u64::from(take.cost)).saturating_sub(u64::from(take.max));
        if take.cost == 0 || excess == 0 {
            return None;
        }
        let mut freed = 0;
        let frees_enough = |(_, count): &&(i64, u32)| {
            freed += u64::from(*count);
            freed >= excess
        };
        let effective_now = self.effective_now(now);
        let last = self.taken.iter().find(frees_enough).map_or(effective_now, |(at, _)| *at);
        Some(last.saturating_add(length(take)).saturating_sub(effective_now))
    }

    /// Counts the request; returns the remaining count and the time until all counts have expired.
    fn take(&mut self, take: &LimitRequest, now: i64) -> (u32, u64) {
        let effective_now = self.effective_now(now);
        match self.taken.last_mut() {
            _ if take.cost == 0 => {}
            Some((at, count)) if *at == effective_now => *count = count.saturating_add(take.cost),
            _ => self.taken.push((effective_now, take.cost)),
        }
        self.merge(length(take));
        let left = u64::from(take.max).saturating_sub(self.used());
        let end = self.taken.last().map_or(effective_now, |(last, _)| last.saturating_add(length(take)));
        self.ends_at = self.ends_at.max(end);
        let reset_ms = end.saturating_sub(effective_now).unsigned_abs();
        (u32::try_from(left).unwrap_or(take.max), reset_ms)
    }
}

/// Takes from all windows or none: [`super::RateLimiter::acquire`].
///
/// `windows` contains the stored windows of the requests, in any order; a bucket without one is unused. Afterwards it
/// contains all windows of the requests, to store if the outcome is [`LimitOutcome::Allowed`].
pub fn take(windows: &mut Vec<SlidingWindow>, requests: &[LimitRequest], now: Timestamp) -> LimitOutcome {
    let now = now.as_millis();
    let mut indexes = Vec::with_capacity(requests.len());
    for take in requests {
        let index = windows.iter().position(|window| window.bucket == take.bucket).unwrap_or_else(|| {
            windows.push(SlidingWindow::fresh(&take.bucket));
            windows.len() - 1
        });
        windows[index].slide(length(take), now);
        indexes.push(index);
    }
    let mut limited: Option<(u32, i64)> = None;
    for ((take, index), number) in requests.iter().zip(&indexes).zip(0..) {
        if let Some(wait_ms) = windows[*index].wait_ms(take, now)
            && limited.is_none_or(|(_, longest)| wait_ms > longest)
        {
            limited = Some((number, wait_ms));
        }
    }
    if let Some((take, wait_ms)) = limited {
        return LimitOutcome::Limited { limit_index: take, retry_after_ms: wait_ms.max(1).unsigned_abs() };
    }
    let states = requests.iter().zip(&indexes).map(|(take, index)| windows[*index].take(take, now));
    let (remaining, reset_ms) = states.min_by_key(|(remaining, _)| *remaining).unwrap_or_default();
    LimitOutcome::Allowed { remaining, reset_ms }
}

/// The length of a window in milliseconds.
fn length(take: &LimitRequest) -> i64 {
    i64::try_from(take.window_ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        windows: &mut Vec<SlidingWindow>,
        now: i64,
        count: u32,
        per_ms: u64,
        cost: u32,
        expect: LimitOutcome,
    ) {
        let request = LimitRequest { bucket: "api/a".to_owned(), max: count, window_ms: per_ms, cost };
        assert_eq!(take(windows, &[request], Timestamp::from_millis(now)), expect, "{now}");
    }

    #[test]
    fn window_entry_expires_at_exact_length() {
        let windows = &mut Vec::new();
        check(windows, 1_000, 2, 100, 1, LimitOutcome::Allowed { remaining: 1, reset_ms: 100 });
        check(windows, 1_040, 2, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 1_099, 2, 100, 1, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 1 });
        check(windows, 1_099, 2, 100, 2, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 41 });
        check(windows, 1_099, 1, 100, 0, LimitOutcome::Allowed { remaining: 0, reset_ms: 41 });
        check(windows, 1_100, 2, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
    }

    #[test]
    fn window_clock_stepping_back_stands_still() {
        let windows = &mut Vec::new();
        check(windows, 1_000, 1, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 500, 1, 100, 1, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 100 });
        check(windows, 500, 2, 100, 1, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 1_099, 2, 100, 1, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 1 });
        check(windows, 1_100, 2, 100, 2, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
    }

    #[test]
    fn window_clock_stepping_back_far_removes_later_counts() {
        let (windows, ahead) = (&mut Vec::new(), 86_400_000);
        check(windows, 900, 2, 100, 1, LimitOutcome::Allowed { remaining: 1, reset_ms: 100 });
        check(windows, 950 + ahead, 2, 100, 2, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        check(windows, 950, 2, 100, 2, LimitOutcome::Allowed { remaining: 0, reset_ms: 100 });
        assert_eq!(windows[0].ends_at, 1_050);
        check(windows, 1_049, 2, 100, 1, LimitOutcome::Limited { limit_index: 0, retry_after_ms: 1 });
        check(windows, 1_050, 2, 100, 1, LimitOutcome::Allowed { remaining: 1, reset_ms: 100 });
    }

    #[test]
    fn window_many_requests_stays_bounded() {
        for per_ms in [1, 63, 64, 127, 128, 1_000, 60_000, 31_622_400_000] {
            let windows = &mut Vec::new();
            let request =
                LimitRequest { bucket: "api/a".to_owned(), max: 100_000, window_ms: per_ms, cost: 1 };
            let step = i64::try_from(per_ms / 2_000).unwrap().max(1);
            for n in 0..5_000 {
                take(windows, std::slice::from_ref(&request), Timestamp::from_millis(n * step));
                assert!(windows[0].taken.len() <= TIMES_EXACT, "{per_ms}: {}", windows[0].taken.len());
            }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod model_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{limits::RateLimiter, testing::LimitModel};

    /// Pauses, and for each of three buckets the cost of a request and how far its maximum is from 5.
    fn walk() -> impl Strategy<Value = Vec<(i64, [(u32, u32); 3])>> {
        let request = || (0..4_u32, 0..3_u32);
        proptest::collection::vec((0..60_i64, [request(), request(), request()]), 1..80)
    }

    proptest! {
        #[test]
        fn windows_match_model(walk in walk()) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (model, mut windows, mut now) = (LimitModel::default(), Vec::new(), 1_000);
            for (pause, costs) in walk {
                now += pause;
                let requests = costs.iter().zip([100, 170, 1_000]).enumerate().map(|(index, ((cost, more), window_ms))| {
                    LimitRequest { bucket: format!("api/{index}"), max: 5 + more, window_ms, cost: *cost }
                });
                let requests: Vec<LimitRequest> = requests.collect();
                let time = Timestamp::from_millis(now);
                let expected = runtime.block_on(model.acquire(requests.clone(), time)).unwrap();
                prop_assert_eq!(take(&mut windows, &requests, time), expected, "{:?} at {}", requests, now);
            }
        }
    }
}
