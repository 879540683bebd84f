//! The in-memory rate limiter: the windows in use, over the shared rules.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;

use super::SharedState;
use crate::{
    error::Result,
    limits::{
        LimitOutcome, LimitRequest, RateLimiter, check,
        rules::{self, SlidingWindow},
    },
    time::{LEASE_MAX, Timestamp},
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
    buckets: HashMap<String, SlidingWindow>,
    /// The buckets by the time at which they become empty.
    emptying: BTreeSet<(i64, String)>,
    /// The latest time of any call since the clock was last corrected.
    now: i64,
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
        let is_corrected = now.plus(LEASE_MAX).as_millis() < self.now;
        let now = now.as_millis();
        self.now = if is_corrected { now } else { self.now.max(now) };
        self.drop_emptied();
        let stored = requests.iter().filter_map(|request| self.buckets.remove(&request.bucket));
        let mut windows: Vec<SlidingWindow> = stored.collect();
        for window in &windows {
            self.emptying.remove(&(window.ends_at, window.bucket.clone()));
        }
        let outcome = rules::take(&mut windows, requests, Timestamp::from_millis(self.now));
        for window in windows.into_iter().filter(|window| !window.taken.is_empty()) {
            self.emptying.insert((window.ends_at, window.bucket.clone()));
            self.buckets.insert(window.bucket.clone(), window);
        }
        outcome
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
