//! The independent oracle of the rate limiter: a log of single units.
//!
//! Each request searches the whole log. It uses none of the arithmetic of the stores ([`crate::limits::rules`]): a test
//! of the tree forbids the import.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::{
    error::Result,
    limits::{LimitOutcome, LimitRequest, RateLimiter, check},
    time::{LEASE_MAX, Timestamp},
};

/// Reference implementation of [`RateLimiter`], exact for any number of units.
#[derive(Debug, Default)]
pub struct LimitModel(Mutex<UnitLog>);

/// The bucket and time of each unit, in the order in which they were taken.
#[derive(Debug, Default)]
struct UnitLog(Vec<(String, i64)>);

impl UnitLog {
    /// The time of the request, which does not run backwards in a bucket.
    fn time(&self, request: &LimitRequest, now: Timestamp) -> i64 {
        let latest = self.0.iter().filter(|(bucket, _)| *bucket == request.bucket).map(|(_, at)| *at).max();
        latest.map_or(now.as_millis(), |latest| latest.max(now.as_millis()))
    }

    /// The times at which the units that count at `time` stop counting.
    fn ends(&self, request: &LimitRequest, time: i64) -> Vec<i64> {
        let window = i64::try_from(request.window_ms).unwrap_or(i64::MAX);
        let units = self.0.iter().filter(|(bucket, _)| *bucket == request.bucket);
        units.map(|(_, at)| at + window).filter(|end| *end > time).collect()
    }

    /// Whether the request is possible at `time`.
    fn fits(&self, request: &LimitRequest, time: i64) -> bool {
        let count = self.ends(request, time).len() as u64;
        request.cost == 0 || count + u64::from(request.cost) <= u64::from(request.max)
    }

    /// The wait until the request is possible: the time until one of the units stops counting.
    fn wait(&self, request: &LimitRequest, now: Timestamp) -> u64 {
        let time = self.time(request, now);
        if self.fits(request, time) {
            return 0;
        }
        let ends = self.ends(request, time);
        let first = ends.into_iter().filter(|end| self.fits(request, *end)).min();
        first.map_or(0, |end| end.abs_diff(time))
    }

    fn acquire(&mut self, requests: &[LimitRequest], now: Timestamp) -> LimitOutcome {
        let is_named = |bucket: &str| requests.iter().any(|request| request.bucket == bucket);
        self.0.retain(|(bucket, at)| !is_named(bucket) || *at <= now.plus(LEASE_MAX).as_millis());
        let waits: Vec<u64> = requests.iter().map(|request| self.wait(request, now)).collect();
        let longest = waits.iter().copied().max().unwrap_or_default();
        if longest > 0 {
            let limit_index = waits.iter().take_while(|wait| **wait < longest).count() as u32;
            return LimitOutcome::Limited { limit_index, retry_after_ms: longest };
        }
        let mut least: Option<(u32, u64)> = None;
        for request in requests {
            let time = self.time(request, now);
            for _ in 0..request.cost {
                self.0.push((request.bucket.clone(), time));
            }
            let ends = self.ends(request, time);
            let remaining = request.max.saturating_sub(ends.len() as u32);
            let reset_ms = ends.iter().max().map_or(0, |end| end.abs_diff(time));
            if least.is_none_or(|(fewest, _)| remaining < fewest) {
                least = Some((remaining, reset_ms));
            }
        }
        let (remaining, reset_ms) = least.unwrap_or_default();
        LimitOutcome::Allowed { remaining, reset_ms }
    }
}

#[async_trait]
impl RateLimiter for LimitModel {
    async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome> {
        check(&requests)?;
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).acquire(&requests, now))
    }
}
