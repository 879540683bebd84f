//! The in-memory rate limiter: exact sliding windows, kept only while in use.

use std::collections::{BTreeSet, HashMap, VecDeque};

use async_trait::async_trait;

use super::SharedState;
use crate::{
    error::Result,
    limits::{LimitOutcome, LimitRequest, RateLimiter, check},
    time::Timestamp,
};

/// An in-memory [`RateLimiter`]. A clone is the same limiter.
///
/// A bucket is dropped at the first call after its window has emptied, and a refused request stores nothing: so memory
/// is bounded by what the limits permit in a window.
#[derive(Clone, Debug, Default)]
pub struct MemoryRateLimiter {
    windows: SharedState<RateWindows>,
}

#[derive(Debug, Default)]
struct RateWindows {
    buckets: HashMap<String, RateWindow>,
    /// The buckets by the time at which they become empty.
    emptying: BTreeSet<(i64, String)>,
    /// The latest time of any call.
    now: i64,
}

/// The amounts taken from one bucket, oldest first: time and amount.
#[derive(Debug, Default)]
struct RateWindow {
    taken: VecDeque<(i64, u32)>,
    sum: u32,
    /// When the newest amount leaves the window.
    empties: i64,
}

impl RateWindow {
    /// Drops the amounts that have left the window.
    fn drop_expired(&mut self, window_ms: i64, now: i64) {
        while let Some((at, amount)) = self.taken.front().copied()
            && at.saturating_add(window_ms) <= now
        {
            self.taken.pop_front();
            self.sum -= amount;
        }
    }

    fn add(&mut self, now: i64, amount: u32) {
        self.sum += amount;
        match self.taken.back_mut() {
            Some((at, sum)) if *at == now => *sum += amount,
            _ => self.taken.push_back((now, amount)),
        }
    }

    /// Milliseconds until this request fits; 0 if it fits now.
    fn wait_ms(&self, request: &LimitRequest, window_ms: i64, now: i64) -> u64 {
        let mut sum = self.sum;
        let mut until = now;
        for (at, amount) in &self.taken {
            if request.cost == 0 || sum.saturating_add(request.cost) <= request.max {
                break;
            }
            sum -= amount;
            until = at.saturating_add(window_ms);
        }
        until.saturating_sub(now).unsigned_abs()
    }
}

/// The window's length in milliseconds.
fn window_ms(request: &LimitRequest) -> i64 {
    i64::try_from(request.window_ms).unwrap_or(i64::MAX)
}

impl RateWindows {
    fn drop_emptied(&mut self) {
        while let Some((empties, bucket)) = self.emptying.pop_first() {
            if empties > self.now {
                self.emptying.insert((empties, bucket));
                return;
            }
            self.buckets.remove(&bucket);
        }
    }

    fn acquire(&mut self, requests: &[LimitRequest], now: Timestamp) -> LimitOutcome {
        self.now = self.now.max(now.as_millis());
        let now = self.now;
        self.drop_emptied();
        let mut refused: Option<(u32, u64)> = None;
        for (request, index) in requests.iter().zip(0..) {
            let Some(window) = self.buckets.get_mut(&request.bucket) else { continue };
            window.drop_expired(window_ms(request), now);
            let wait = window.wait_ms(request, window_ms(request), now);
            if wait > refused.map_or(0, |(_, longest)| longest) {
                refused = Some((index, wait));
            }
        }
        if let Some((limit_index, retry_after_ms)) = refused {
            return LimitOutcome::Limited { limit_index, retry_after_ms };
        }
        let results = requests.iter().map(|request| self.add(request, now));
        let tightest = results.min_by_key(|(remaining, _)| *remaining);
        let (remaining, reset_ms) = tightest.unwrap_or_default();
        LimitOutcome::Allowed { remaining, reset_ms }
    }

    /// Takes from one bucket. Returns the remaining amount, and the milliseconds until the bucket is empty.
    fn add(&mut self, request: &LimitRequest, now: i64) -> (u32, u64) {
        if request.cost > 0 {
            let window = self.buckets.entry(request.bucket.clone()).or_default();
            self.emptying.remove(&(window.empties, request.bucket.clone()));
            window.add(now, request.cost);
            window.empties = now.saturating_add(window_ms(request));
            self.emptying.insert((window.empties, request.bucket.clone()));
        }
        let Some(window) = self.buckets.get(&request.bucket) else {
            return (request.max, 0);
        };
        let reset_ms = window.empties.saturating_sub(now).unsigned_abs();
        (request.max.saturating_sub(window.sum), reset_ms)
    }
}

#[async_trait]
impl RateLimiter for MemoryRateLimiter {
    async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        check(&requests)?;
        Ok(self.windows.lock().acquire(&requests, now))
    }
}

#[cfg(all(test, feature = "testing"))]
mod conformance {
    use std::sync::Arc;

    crate::limits_conformance!(Arc::new(super::MemoryRateLimiter::default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_request(bucket: String, window_ms: u64) -> Vec<LimitRequest> {
        vec![LimitRequest { bucket, max: 3, window_ms, cost: 1 }]
    }

    #[tokio::test]
    async fn rate_limiter_drops_empty_buckets() {
        let limiter = MemoryRateLimiter::default();
        for n in 0..100 {
            for bucket in [format!("a{n}"), format!("b{n}"), "same".to_owned()] {
                limiter.acquire(limit_request(bucket, 10), Timestamp::from_millis(n)).await.unwrap();
            }
            let windows = limiter.windows.lock();
            assert!(windows.buckets.len() <= 21, "{n}: {}", windows.buckets.len());
            assert_eq!(windows.emptying.len(), windows.buckets.len());
            assert!(windows.buckets.values().all(|window| window.taken.len() <= 3));
        }
        let requests = vec![LimitRequest { cost: 0, ..limit_request("c".to_owned(), 10).remove(0) }];
        limiter.acquire(requests, Timestamp::from_millis(1_000)).await.unwrap();
        assert!(limiter.windows.lock().buckets.is_empty());
    }
}
