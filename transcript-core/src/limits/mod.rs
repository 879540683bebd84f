//! Rate limits: at most so many in any window, exactly.

use std::fmt;

use async_trait::async_trait;

use crate::{error::Result, time::Timestamp};

/// One limit to respect: at most `count` in any `per_ms` milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Who is limited in what: `miss/{network}`, `mint/{network}`, `api/{account}`.
    pub bucket: String,
    /// How many may be taken in any window; from 1 to [`COUNT_MAX`].
    pub count: u32,
    /// The window's length in milliseconds, at least 1.
    pub per_ms: u64,
    /// How many are taken now; 0 only asks.
    pub cost: u32,
}

/// The largest count that a limit can have.
pub const COUNT_MAX: u32 = 100_000;

/// What came of a request to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All was taken. The figures are of the tightest limit: the one with the least remaining.
    Allowed {
        /// How many more may be taken at once.
        remaining: u32,
        /// In how many milliseconds the window is as empty as if nothing had ever been taken.
        reset_ms: u64,
    },
    /// Nothing was taken.
    Limited {
        /// The place in the request of the limit that refused and has the longest wait.
        take: u32,
        /// Waiting this many milliseconds suffices, if nobody else takes meanwhile.
        retry_after_ms: u64,
    },
}

/// Counts what is taken in exact sliding windows.
#[async_trait]
pub trait RateLimiter: fmt::Debug + Send + Sync + 'static {
    /// Takes from all limits, or from none.
    ///
    /// **Behaviour**
    /// - In any window of `per_ms` at most `count` are taken; a window is open at its old end: what was
    ///   taken exactly `per_ms` ago no longer counts.
    /// - A moment earlier than one seen before counts as that one: time does not run backwards.
    /// - A bucket is named in one take of a request only.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when there is no take, a bucket is named twice, a count or window
    /// lies outside its bounds, or a cost is above its count; [`crate::ErrorKind::Unavailable`] when a
    /// shared store cannot be reached.
    async fn take(&self, takes: Vec<Take>, now: Timestamp) -> Result<Taken>;
}
