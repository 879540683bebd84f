//! Rate limits over sliding windows.

pub mod network;
#[cfg(feature = "lookup")]
pub(crate) mod network_hasher;
pub mod rules;

use std::fmt;

use async_trait::async_trait;

use crate::{
    error::{Error, Result},
    time::Timestamp,
};

/// Request to one limit: at most `max` per `window_ms` milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRequest {
    /// Scope and subject of the limit: `miss/{network}`, `mint/{network}`, `api/{account}`.
    pub bucket: String,
    /// Maximum in any window; from 1 to [`LIMIT_MAX`].
    pub max: u32,
    /// Length of the window in milliseconds, from 1 to [`WINDOW_MS_MAX`].
    ///
    /// A bucket always uses the same length; its maximum may change, as plans do.
    pub window_ms: u64,
    /// Units to take now; 0 only reads the limit and is never rejected.
    pub cost: u32,
}

impl LimitRequest {
    /// One unit of a limit of `max`, reduced to [`LIMIT_MAX`], per `window_ms` milliseconds.
    pub(crate) fn one(bucket: String, max: u32, window_ms: u64) -> Self {
        Self { bucket, max: max.min(LIMIT_MAX), window_ms, cost: 1 }
    }
}

/// A window of a minute, in milliseconds.
pub(crate) const MINUTE_MS: u64 = 60 * 1_000;
/// A window of an hour, in milliseconds.
pub(crate) const HOUR_MS: u64 = 60 * MINUTE_MS;
/// A window of 24 hours, in milliseconds.
pub(crate) const DAY_MS: u64 = 24 * HOUR_MS;
/// Largest maximum of a limit.
pub const LIMIT_MAX: u32 = 100_000;
/// Longest window of a limit: a year of 366 days.
pub const WINDOW_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;
/// Number of distinct times in one bucket that every implementation stores exactly.
pub const TIMES_EXACT: usize = 128;
/// Minimum number of parts into which a window is divided if it has more distinct times.
pub const WINDOW_PARTS: i64 = 64;
/// Maximum of limits in a request.
const REQUESTS_MAX: usize = 16;
/// Maximum length of a bucket name, in bytes.
const BUCKET_MAX: usize = 256;

/// Checks the bounds of a request; every implementation calls it first.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] if there are no limits or more than 16, a bucket name is empty, exceeds 256 bytes or
/// occurs twice, a maximum or window is out of bounds, or a cost exceeds its maximum.
pub fn check(requests: &[LimitRequest]) -> Result<()> {
    if requests.is_empty() || requests.len() > REQUESTS_MAX {
        let count = requests.len();
        return Err(Error::invalid(format!(
            "rate limit request has {count} buckets; allowed: 1 to {REQUESTS_MAX}"
        )));
    }
    for (index, request) in requests.iter().enumerate() {
        if request.bucket.is_empty() || request.bucket.len() > BUCKET_MAX {
            return Err(Error::invalid("a rate limit bucket name is empty or longer than 256 bytes"));
        }
        if requests.iter().take(index).any(|earlier| earlier.bucket == request.bucket) {
            return Err(Error::invalid("a rate limit request contains the same bucket twice"));
        }
        if !(1..=LIMIT_MAX).contains(&request.max) || !(1..=WINDOW_MS_MAX).contains(&request.window_ms) {
            return Err(Error::invalid(
                "rate limit out of bounds; allowed: 1 to 100,000 per window of up to 366 days",
            ));
        }
        if request.cost > request.max {
            return Err(Error::invalid("the cost of a rate limit request exceeds the limit's maximum"));
        }
    }
    Ok(())
}

/// Charges all limits, or none, within `timeout`.
///
/// A limit of 0 refuses without a store call.
///
/// # Errors
/// As [`RateLimiter::acquire`]; unavailable after the timeout.
#[cfg(any(feature = "accounts", feature = "lookup"))]
pub(crate) async fn acquire(
    limiter: &dyn RateLimiter,
    requests: Vec<LimitRequest>,
    now: Timestamp,
    timeout: std::time::Duration,
) -> Result<LimitOutcome> {
    if let Some((limit_index, refusing)) = (0_u32..).zip(&requests).find(|(_, request)| request.max == 0) {
        return Ok(LimitOutcome::Limited { limit_index, retry_after_ms: refusing.window_ms });
    }
    crate::retry::with_timeout(timeout, limiter.acquire(requests, now)).await
}

/// As [`acquire`]. If a limit refuses, returns the time until a retry in milliseconds.
///
/// # Errors
/// As [`acquire`].
#[cfg(any(feature = "accounts", feature = "lookup"))]
pub(crate) async fn acquire_all(
    limiter: &dyn RateLimiter,
    requests: Vec<LimitRequest>,
    now: Timestamp,
    timeout: std::time::Duration,
) -> Result<Option<u64>> {
    Ok(match acquire(limiter, requests, now, timeout).await? {
        LimitOutcome::Allowed { .. } => None,
        LimitOutcome::Limited { retry_after_ms, .. } => Some(retry_after_ms),
    })
}

/// Time until one more unit of a limit may be taken, in milliseconds; `None` if it may be taken now.
///
/// Takes nothing, unless the last unit has just become free: then the unit is taken, because only a refused request
/// returns the wait.
///
/// # Errors
/// As [`acquire_all`].
#[cfg(any(feature = "accounts", feature = "lookup"))]
pub(crate) async fn wait_for_unit(
    limiter: &dyn RateLimiter,
    unit: LimitRequest,
    now: Timestamp,
    timeout: std::time::Duration,
) -> Result<Option<u64>> {
    if unit.max == 0 {
        return Ok(Some(unit.window_ms));
    }
    let probe = vec![LimitRequest { cost: 0, ..unit.clone() }];
    match crate::retry::with_timeout(timeout, limiter.acquire(probe, now)).await? {
        LimitOutcome::Allowed { remaining: 0, .. } => acquire_all(limiter, vec![unit], now, timeout).await,
        LimitOutcome::Allowed { .. } => Ok(None),
        LimitOutcome::Limited { retry_after_ms, .. } => Ok(Some(retry_after_ms)),
    }
}

/// Outcome of a rate limit request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOutcome {
    /// All limits were charged.
    ///
    /// The figures are of the limit with the least remaining, the first in the request if several are equal.
    Allowed {
        /// Units that may still be taken now.
        remaining: u32,
        /// Milliseconds until the window is empty.
        reset_ms: u64,
    },
    /// Nothing was charged.
    Limited {
        /// Index of the exceeded limit with the longest wait, the first one if several are equal.
        limit_index: u32,
        /// Shortest sufficient wait in milliseconds, if no other call is charged in the meantime.
        retry_after_ms: u64,
    },
}

/// Counts units in sliding windows.
#[async_trait]
pub trait RateLimiter: fmt::Debug + Send + Sync + 'static {
    /// Charges all limits, or none.
    ///
    /// **Behaviour**
    /// - In any window of `window_ms` at most `max` units are charged. A window excludes its old end: a charge exactly
    ///   `window_ms` ago no longer counts.
    /// - Windows are exact while they contain charges at no more than [`TIMES_EXACT`] distinct times. Beyond that, the
    ///   charges within one of [`WINDOW_PARTS`] parts of a window may count as charged at the latest time in that part,
    ///   so that the cost of a request does not depend on the limit. The maximum is never exceeded, and a wait is at
    ///   most that part longer.
    /// - A time up to [`LEASE_MAX`] before an earlier call's time counts as that earlier call's time: time does not
    ///   run backwards. This applies at least to charges of the same buckets. A charge further ahead is of a clock that
    ///   was corrected since, and no longer counts.
    ///
    /// [`LEASE_MAX`]: crate::time::LEASE_MAX
    /// - A request names each bucket once.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if a request exceeds the bounds of [`check`], [`crate::ErrorKind::Unavailable`] if
    /// a shared store cannot be reached.
    async fn acquire(&self, requests: Vec<LimitRequest>, now: Timestamp) -> Result<LimitOutcome>;
}
