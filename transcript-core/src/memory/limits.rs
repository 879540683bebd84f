//! Rate limits in memory: exact sliding windows, and no more of them than are in use.

use std::collections::{BTreeSet, HashMap, VecDeque};

use async_trait::async_trait;

use super::Shared;
use crate::{
    error::Result,
    limits::{RateLimiter, Take, Taken, check},
    time::Timestamp,
};

/// A [`RateLimiter`] in memory. A clone is the same limiter.
///
/// A bucket is dropped at the first call after its window has emptied, and a refused request stores
/// nothing: what is kept is bounded by what may be taken in a window.
#[derive(Clone, Debug, Default)]
pub struct MemoryRateLimiter {
    windows: Shared<Windows>,
}

#[derive(Debug, Default)]
struct Windows {
    buckets: HashMap<String, Window>,
    /// The buckets by the moment at which they empty.
    emptying: BTreeSet<(i64, String)>,
    /// The latest moment that any call came with.
    now: i64,
}

/// What was taken from one bucket, oldest first: moment and amount.
#[derive(Debug, Default)]
struct Window {
    taken: VecDeque<(i64, u32)>,
    sum: u32,
    /// When the newest of it no longer counts.
    empties: i64,
}

impl Window {
    /// Drops what no longer counts.
    fn slide(&mut self, per_ms: i64, now: i64) {
        while let Some((at, amount)) = self.taken.front().copied()
            && at.saturating_add(per_ms) <= now
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

    /// How many milliseconds it takes until this take fits; 0 when it fits now.
    fn wait(&self, take: &Take, per_ms: i64, now: i64) -> u64 {
        let mut sum = self.sum;
        let mut until = now;
        for (at, amount) in &self.taken {
            if take.cost == 0 || sum.saturating_add(take.cost) <= take.count {
                break;
            }
            sum -= amount;
            until = at.saturating_add(per_ms);
        }
        until.saturating_sub(now).unsigned_abs()
    }
}

/// The window's length, as moments are counted.
fn per_ms(take: &Take) -> i64 {
    i64::try_from(take.per_ms).unwrap_or(i64::MAX)
}

impl Windows {
    fn drop_emptied(&mut self) {
        while let Some((empties, bucket)) = self.emptying.pop_first() {
            if empties > self.now {
                self.emptying.insert((empties, bucket));
                return;
            }
            self.buckets.remove(&bucket);
        }
    }

    fn take(&mut self, takes: &[Take], now: Timestamp) -> Taken {
        self.now = self.now.max(now.as_millis());
        let now = self.now;
        self.drop_emptied();
        let mut refused: Option<(u32, u64)> = None;
        for (take, place) in takes.iter().zip(0..) {
            let Some(window) = self.buckets.get_mut(&take.bucket) else { continue };
            window.slide(per_ms(take), now);
            let wait = window.wait(take, per_ms(take), now);
            if wait > refused.map_or(0, |(_, longest)| longest) {
                refused = Some((place, wait));
            }
        }
        if let Some((take, retry_after_ms)) = refused {
            return Taken::Limited { take, retry_after_ms };
        }
        let figures = takes.iter().map(|take| self.add(take, now));
        let tightest = figures.min_by_key(|(remaining, _)| *remaining);
        let (remaining, reset_ms) = tightest.unwrap_or_default();
        Taken::Allowed { remaining, reset_ms }
    }

    /// Takes from one bucket; returns how many remain, and in how long it is empty.
    fn add(&mut self, take: &Take, now: i64) -> (u32, u64) {
        if take.cost > 0 {
            let window = self.buckets.entry(take.bucket.clone()).or_default();
            self.emptying.remove(&(window.empties, take.bucket.clone()));
            window.add(now, take.cost);
            window.empties = now.saturating_add(per_ms(take));
            self.emptying.insert((window.empties, take.bucket.clone()));
        }
        let Some(window) = self.buckets.get(&take.bucket) else {
            return (take.count, 0);
        };
        let reset_ms = window.empties.saturating_sub(now).unsigned_abs();
        (take.count.saturating_sub(window.sum), reset_ms)
    }
}

#[async_trait]
impl RateLimiter for MemoryRateLimiter {
    async fn take(&self, takes: Vec<Take>, now: Timestamp) -> Result<Taken> {
        check(&takes)?;
        Ok(self.windows.lock().take(&takes, now))
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

    fn take(bucket: String, per_ms: u64) -> Vec<Take> {
        vec![Take { bucket, count: 3, per_ms, cost: 1 }]
    }

    #[tokio::test]
    async fn emptied_buckets_are_dropped() {
        let limiter = MemoryRateLimiter::default();
        for n in 0..100 {
            for bucket in [format!("a{n}"), format!("b{n}"), "same".to_owned()] {
                limiter.take(take(bucket, 10), Timestamp::from_millis(n)).await.unwrap();
            }
            let windows = limiter.windows.lock();
            assert!(windows.buckets.len() <= 21, "{n}: {}", windows.buckets.len());
            assert_eq!(windows.emptying.len(), windows.buckets.len());
            assert!(windows.buckets.values().all(|window| window.taken.len() <= 3));
        }
        let asks = vec![Take { cost: 0, ..take("c".to_owned(), 10).remove(0) }];
        limiter.take(asks, Timestamp::from_millis(1_000)).await.unwrap();
        assert!(limiter.windows.lock().buckets.is_empty());
    }
}
