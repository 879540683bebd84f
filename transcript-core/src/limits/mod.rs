//! Rate limits: at most so many in any window.

use std::fmt;

use async_trait::async_trait;

use crate::{
    error::{Error, Result},
    time::Timestamp,
};

/// One limit to respect: at most `count` in any `per_ms` milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Who is limited in what: `miss/{network}`, `mint/{network}`, `api/{account}`.
    pub bucket: String,
    /// How many may be taken in any window; from 1 to [`COUNT_MAX`].
    pub count: u32,
    /// The window's length in milliseconds, from 1 to [`PER_MS_MAX`]. A bucket always comes with the same
    /// one; its count may change, as plans do.
    pub per_ms: u64,
    /// How many are taken now; 0 only asks, and is never refused.
    pub cost: u32,
}

/// The largest count that a limit can have.
pub const COUNT_MAX: u32 = 100_000;
/// The longest window that a limit can have: a year of 366 days.
pub const PER_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1_000;
/// How many moments of one bucket every implementation tells apart.
pub const MOMENTS_EXACT: usize = 128;
/// Into how many parts a window is divided at least where there are more moments.
pub const PARTS: i64 = 64;
/// The most limits that a request may name.
const TAKES_MAX: usize = 16;
/// The longest name of a bucket, in bytes.
const BUCKET_MAX: usize = 256;

/// Checks the bounds of a request; every implementation calls it first.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] when there is no take or more than 16, a bucket's name is empty, longer
/// than 256 bytes or there twice, a count or window lies outside its bounds, or a cost is above its count.
pub fn check(takes: &[Take]) -> Result<()> {
    if takes.is_empty() || takes.len() > TAKES_MAX {
        return Err(Error::invalid("a request takes from 1 to 16 limits"));
    }
    for (place, take) in takes.iter().enumerate() {
        if take.bucket.is_empty() || take.bucket.len() > BUCKET_MAX {
            return Err(Error::invalid("a bucket's name has from 1 to 256 bytes"));
        }
        if takes.iter().take(place).any(|earlier| earlier.bucket == take.bucket) {
            return Err(Error::invalid("a request names each bucket once"));
        }
        if !(1..=COUNT_MAX).contains(&take.count) || !(1..=PER_MS_MAX).contains(&take.per_ms) {
            return Err(Error::invalid("a limit is from 1 to 100,000 in a window of up to a year"));
        }
        if take.cost > take.count {
            return Err(Error::invalid("no window has room for more than its count"));
        }
    }
    Ok(())
}

/// What came of a request to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All was taken. The figures are of the tightest limit: the one with the least remaining, of several
    /// the one that comes first in the request.
    Allowed {
        /// How many more may be taken at once.
        remaining: u32,
        /// In how many milliseconds the window is as empty as if nothing had ever been taken.
        reset_ms: u64,
    },
    /// Nothing was taken.
    Limited {
        /// The place in the request of the limit that refused and has the longest wait; of several, the
        /// first.
        take: u32,
        /// Waiting this many milliseconds suffices, if nobody else takes meanwhile; nothing shorter does.
        retry_after_ms: u64,
    },
}

/// Counts what is taken in sliding windows.
#[async_trait]
pub trait RateLimiter: fmt::Debug + Send + Sync + 'static {
    /// Takes from all limits, or from none.
    ///
    /// **Behaviour**
    /// - In any window of `per_ms` at most `count` are taken; a window is open at its old end: what was
    ///   taken exactly `per_ms` ago no longer counts.
    /// - Windows are exact as long as something was taken at no more than [`MOMENTS_EXACT`] moments of one.
    ///   Beyond that, so that a request costs the same however high the limit is, what was taken within one
    ///   of [`PARTS`] parts of a window may count as taken at the latest moment of it: never more than
    ///   `count` is taken, and a wait is at most that part longer.
    /// - A moment earlier than one seen before counts as that one: time does not run backwards. Seen are at
    ///   least the moments at which something was taken from the same buckets.
    /// - A bucket is named in one take of a request only.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when a request is outside the bounds that [`check`] names;
    /// [`crate::ErrorKind::Unavailable`] when a shared store cannot be reached.
    async fn take(&self, takes: Vec<Take>, now: Timestamp) -> Result<Taken>;
}
