//! The rate limit of an account: so many requests in any 60 seconds, over all authenticated endpoints.

use super::{Accounts, Refused, Standing, refused};
use crate::{
    directory::Account,
    limits::{COUNT_MAX, Take, Taken},
    time::Timestamp,
};

/// The window of the rate limit, in milliseconds (specification 8: requests per minute).
const WINDOW_MS: u64 = 60 * 1000;

/// A rate limit and what is left of it, as the `RateLimit` and `RateLimit-Policy` fields tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    /// Requests in any window.
    pub limit: u32,
    /// The window's length in seconds.
    pub window_s: u64,
    /// How many more requests are admitted at once.
    pub remaining: u32,
    /// After how many seconds there is more room: the whole limit when some is left, else one request.
    pub reset_s: u64,
}

impl Accounts {
    /// Takes from limits; when that is refused, returns which one has the longest wait, and that wait in
    /// milliseconds. A limit of 0 refuses without asking.
    pub(super) async fn limited(
        &self,
        takes: Vec<Take>,
        now: Timestamp,
    ) -> Result<Option<(usize, u64)>, Refused> {
        if let Some((place, closed)) = takes.iter().enumerate().find(|(_, take)| take.count == 0) {
            return Ok(Some((place, closed.per_ms)));
        }
        Ok(match self.once(self.parts.limiter.take(takes, now)).await? {
            Taken::Allowed { .. } => None,
            Taken::Limited { take, retry_after_ms } => Some((take as usize, retry_after_ms)),
        })
    }

    /// Counts one request of an account.
    pub(super) async fn admit(&self, account: &Account, now: Timestamp) -> Result<RateState, Refused> {
        let limit = Standing::of(account, self.options(), now).requests_per_minute.min(COUNT_MAX);
        let state = |remaining, reset_ms| RateState {
            limit,
            window_s: WINDOW_MS / 1_000,
            remaining,
            reset_s: refused::seconds(reset_ms),
        };
        if limit == 0 {
            return Err(too_fast(state(0, WINDOW_MS)));
        }
        let bucket = format!("api/{}", account.id);
        let take = Take { bucket, count: limit, per_ms: WINDOW_MS, cost: 1 };
        match self.once(self.parts.limiter.take(vec![take], now)).await? {
            Taken::Allowed { remaining, reset_ms } => Ok(state(remaining, reset_ms)),
            Taken::Limited { retry_after_ms, .. } => Err(too_fast(state(0, retry_after_ms))),
        }
    }
}

fn too_fast(rate: RateState) -> Refused {
    let message = format!(
        "Too many requests: this account may make {} in any {} seconds. Please try again in {}.",
        rate.limit,
        rate.window_s,
        refused::in_words(rate.reset_s)
    );
    Refused::RateLimited { message, retry_after_s: rate.reset_s, rate: Some(rate) }
}
