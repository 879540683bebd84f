//! The rate limit of an account: so many requests in any 60 seconds, over all authenticated endpoints.
//!
//! What an idempotency key alone decides (a repeat, a request that is still under way, another body) counts for
//! a limit of its own, which is looser: whoever lost an answer gets it beyond the first limit, and nobody asks
//! without end.

use super::{Accounts, Refused, Standing, refused};
use crate::{
    directory::Account,
    limits::{COUNT_MAX, Take, Taken},
    time::{Timestamp, in_words},
};

/// The window of the rate limit, in milliseconds (specification 8: requests per minute).
const WINDOW_MS: u64 = 60 * 1000;
/// How many repeats an account may make for each request that it may: on the free plan one a second, for a
/// client that waits for an answer which is under way.
const REPEATS_PER_REQUEST: u32 = 6;

/// The limit of what is asked for the first time, and of all calls without an idempotency key.
const REQUESTS: Kind = Kind { name: "account", bucket: "api", per_request: 1, what: "requests" };
/// The limit of what an idempotency key decides.
const REPEATS: Kind =
    Kind { name: "repeats", bucket: "repeat", per_request: REPEATS_PER_REQUEST, what: "repeated requests" };

/// One of the limits that an account has.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    bucket: &'static str,
    per_request: u32,
    what: &'static str,
}

/// A rate limit and what is left of it, as the `RateLimit` and `RateLimit-Policy` fields tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    /// The limit's name: `account`, or `repeats` for what an idempotency key decides.
    pub name: &'static str,
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
        self.count(REQUESTS, account, now).await
    }

    /// Counts one request whose answer an idempotency key decides.
    pub(super) async fn admit_repeat(&self, account: &Account, now: Timestamp) -> Result<RateState, Refused> {
        self.count(REPEATS, account, now).await
    }

    /// Before an idempotency key is looked up: where the account has no request left, what comes counts as a
    /// repeat, so that asking with ever new keys is no way round the limit. Returns whether it was counted.
    pub(super) async fn admit_keyed(&self, account: &Account, now: Timestamp) -> Result<bool, Refused> {
        let ask = Take { cost: 0, ..self.take(REQUESTS, account, now) };
        if ask.count > 0
            && let Taken::Allowed { remaining: 1.., .. } =
                self.once(self.parts.limiter.take(vec![ask], now)).await?
        {
            return Ok(false);
        }
        let Err(as_repeat) = self.admit_repeat(account, now).await else { return Ok(true) };
        // Nobody knows which of the two it is: it waits until it may be either.
        let as_request = self.admit(account, now).await.err();
        Err(as_request
            .filter(|request| request.retry_after_s() > as_repeat.retry_after_s())
            .unwrap_or(as_repeat))
    }

    /// What one request of an account that stands like this takes of its limit.
    pub(super) fn request_take(account: &Account, standing: &Standing) -> Take {
        take(REQUESTS, account, standing)
    }

    /// The limit of a request that takes this.
    ///
    /// # Errors
    /// [`Refused::RateLimited`] where it is closed.
    pub(super) fn rate_limit(&self, take: &Take) -> Result<Limit, Refused> {
        Limit { kind: REQUESTS, count: take.count }.open()
    }

    fn take(&self, kind: Kind, account: &Account, now: Timestamp) -> Take {
        take(kind, account, &Standing::of(account, self.options(), now))
    }

    async fn count(&self, kind: Kind, account: &Account, now: Timestamp) -> Result<RateState, Refused> {
        let take = self.take(kind, account, now);
        let limit = Limit { kind, count: take.count }.open()?;
        match self.once(self.parts.limiter.take(vec![take], now)).await? {
            Taken::Allowed { remaining, reset_ms } => Ok(limit.state(remaining, reset_ms)),
            Taken::Limited { retry_after_ms, .. } => Err(limit.refuse(retry_after_ms)),
        }
    }
}

fn take(kind: Kind, account: &Account, standing: &Standing) -> Take {
    Take {
        bucket: format!("{}/{}", kind.bucket, account.id),
        count: standing.requests_per_minute.saturating_mul(kind.per_request).min(COUNT_MAX),
        per_ms: WINDOW_MS,
        cost: 1,
    }
}

/// One of an account's limits, and how wide it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    kind: Kind,
    count: u32,
}

impl Limit {
    /// The same; one that lets nobody through refuses without asking.
    fn open(self) -> Result<Self, Refused> {
        if self.count == 0 { Err(self.refuse(WINDOW_MS)) } else { Ok(self) }
    }

    /// How the account stands with it.
    pub(super) fn state(self, remaining: u32, reset_ms: u64) -> RateState {
        RateState {
            name: self.kind.name,
            limit: self.count,
            window_s: WINDOW_MS / 1_000,
            remaining,
            reset_s: refused::seconds(reset_ms),
        }
    }

    /// What is said to a call that is beyond it.
    pub(super) fn refuse(self, retry_after_ms: u64) -> Refused {
        too_fast(self.kind, self.state(0, retry_after_ms))
    }
}

fn too_fast(kind: Kind, rate: RateState) -> Refused {
    let message = format!(
        "Too many {}: this account may make {} in any {} seconds. Please try again in {}.",
        kind.what,
        rate.limit,
        rate.window_s,
        in_words(rate.reset_s)
    );
    Refused::RateLimited { message, retry_after_s: rate.reset_s, rate: Some(rate) }
}
